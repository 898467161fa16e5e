// The most memory that the tasks of each resource held at once.
#pragma once

#include "sim/engine/engine.hpp"

namespace stagecraft {

// Highest running sum of each resource's own deltas, at least zero.
//
//   A stream's deltas apply in program order. On a concurrent resource, at one instant, tasks that end come
//   before tasks that start, because what is freed at an instant can be taken at that instant; then TaskId
//   decides. A task without duration starts and ends in one step.
[[nodiscard]] IdVector<ResourceId, Bytes> memory_high_water(const Program& program, const Timeline& timeline);

}  // namespace stagecraft
