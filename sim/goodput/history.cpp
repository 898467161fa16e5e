#include "sim/goodput/history.hpp"

#include <cstdint>

#include "base/check.hpp"
#include "sim/goodput/processes/fleet.hpp"

namespace stagecraft {

History history_of(const FailureSpec& spec, int nodes, std::uint64_t seed, int repeat, int spares) {
  SC_CHECK(repeat >= 0, "repeats count from 0");
  SC_CHECK(spares >= 0 && spares < nodes, "a job has nodes besides its spares");
  return Fleet(spec, {.nodes = nodes, .spares = spares},
               {.seed = seed, .repeat = static_cast<std::uint32_t>(repeat)})
      .run();
}

}  // namespace stagecraft
