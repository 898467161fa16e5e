// Duration and memory of an order in four figures: those of play() without the times of its passes, and the
// peaks.
//
// For code that compares orders: a search, a test. An engine gives the same integers (a property test).
//
//   source  Qi et al., ICLR'24 (arXiv 2401.10241), section 4 minimises the span.
//   time    linear in the passes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/costs.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

struct Evaluation {
  std::int64_t makespan = 0;        // as of Play
  std::int64_t span = 0;            // as of Play
  std::vector<std::int64_t> busy;   // [rank] -> the sum of its passes
  std::vector<int> peak_in_flight;  // [rank] -> as peak_in_flight()
  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

// requires an order that drains and that check() finds valid, and costs for its stages; throws InternalError
// on a deadlock.
[[nodiscard]] Evaluation evaluate(const Schedule& schedule, const ScheduleCosts& costs = {});

}  // namespace stagecraft
