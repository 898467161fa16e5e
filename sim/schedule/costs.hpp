// Durations of the passes of a pipeline, for orders that depend on costs and for orders on their own.
//
// Integers in any unit: nanoseconds in a simulation, small numbers in a test. Orders with a fixed rule ignore
// the costs; searched orders use them. Every order is timed with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace stagecraft {

// Costs of one global stage, that is one chunk. An unsplit backward lasts input_gradient + weight_gradient.
struct StageCosts {
  std::int64_t forward = 1;
  std::int64_t input_gradient = 1;
  std::int64_t weight_gradient = 1;
  std::int64_t recompute = 0;  // cost of an R pass; it counts only where the order has R passes
  friend bool operator==(const StageCosts&, const StageCosts&) = default;
};

struct ScheduleCosts {
  std::vector<StageCosts> stages = {};  // [global stage]; one entry: all stages equal; none: all equal to 1
  std::int64_t message = 0;             // between ranks, in either direction
  int memory_limit = 0;                 // chunk activations that a rank may hold; 0 = the schedule's own
  // Share of a chunk's activations that its input gradient frees; the weight gradient frees the rest. None:
  // the schedule's own measure, which is 0 unless its header says another.
  std::optional<double> freed_by_input_gradient = {};
  double fused = 1;                       // duration of a fused pair as a fraction of the sum of its passes
  std::optional<std::int64_t> pair = {};  // duration of every fused pair, in place of the fraction

  // The costs of one stage. requires that `stages` is empty, has one entry, or one per stage.
  [[nodiscard]] StageCosts of(int stage) const {
    if (stages.empty()) return {};
    return stages[stages.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
  }
  friend bool operator==(const ScheduleCosts&, const ScheduleCosts&) = default;
};

}  // namespace stagecraft
