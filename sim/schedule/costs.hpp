// What the passes of a pipeline last, for orders that are made to measure and for orders on their own.
//
// Integers in any unit: nanoseconds in a simulation, small numbers in a test. An order with a fixed rule does
// not look at them; an order found by a search does, and every order lasts what they say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace stagecraft {

// What one global stage takes, that is one chunk. A whole backward lasts input_gradient + weight_gradient.
struct StageCosts {
  std::int64_t forward = 1;
  std::int64_t input_gradient = 1;
  std::int64_t weight_gradient = 1;
  std::int64_t recompute = 0;  // of an R pass; a pass R that is in no order costs nothing
  friend bool operator==(const StageCosts&, const StageCosts&) = default;
};

struct ScheduleCosts {
  std::vector<StageCosts> stages = {};  // [global stage]; one alone: all stages alike; none: all alike and 1
  std::int64_t message = 0;             // from rank to rank, either way
  int memory_limit = 0;                 // chunk activations that a rank may hold; 0 = the schedule's own
  // Share of a chunk's activations that its input gradient frees; the weight gradient frees the rest. None:
  // the schedule's own measure, which is 0 unless its header says another.
  std::optional<double> freed_by_input_gradient = {};
  double fused = 1;                       // share of the sum of its passes that a fused pair takes
  std::optional<std::int64_t> pair = {};  // what every fused pair takes, in place of a share

  // The costs of one stage. requires that `stages` is empty, has one entry, or one per stage.
  [[nodiscard]] StageCosts of(int stage) const {
    if (stages.empty()) return {};
    return stages[stages.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
  }
  friend bool operator==(const ScheduleCosts&, const ScheduleCosts&) = default;
};

}  // namespace stagecraft
