#include "base/hash.hpp"
#include "sim/engine/engine.hpp"

namespace stagecraft {

std::uint64_t hash(const Timeline& timeline) {
  StableHash hash;
  for (const Duration start : timeline.start) hash.add(start.count());
  for (const Duration end : timeline.end) hash.add(end.count());
  return hash.value();
}

}  // namespace stagecraft
