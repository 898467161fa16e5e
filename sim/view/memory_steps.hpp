// What a rank holds while the iteration runs: the activations that its passes take and free, as steps.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

struct MemoryStep {
  Duration time{};
  Bytes held;  // from then on
  friend bool operator==(const MemoryStep&, const MemoryStep&) = default;
};

// [simulated rank]: by time, one for each change. What is freed at an instant is free for who takes at that
// instant, and a step that is undone at its own instant stays: nothing that was held is hidden.
[[nodiscard]] std::vector<std::vector<MemoryStep>> memory_steps(const Program& program,
                                                                const Timeline& timeline);

}  // namespace stagecraft
