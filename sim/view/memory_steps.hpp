// Memory of a rank during the iteration: the activations that its passes allocate and free, as steps.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

struct MemoryStep {
  Duration time{};
  Bytes held;  // bytes from then on
  friend bool operator==(const MemoryStep&, const MemoryStep&) = default;
};

// [simulated rank]: by time, one for each change. Memory freed at an instant can be allocated at that
// instant. A step that is undone at its own instant stays, so no peak is hidden.
[[nodiscard]] std::vector<std::vector<MemoryStep>> memory_steps(const Program& program,
                                                                const Timeline& timeline);

}  // namespace stagecraft
