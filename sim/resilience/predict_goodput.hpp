// The second composition: from a scenario with failures to its throughput.
//
//   Scenario -> iteration times of the shapes that remain (simulate, each once) -> FailureSpec x Policy ->
//   repeats -> GoodputReport
//
// Pure and reentrant; the same bits on any number of threads.
//
//   throws  ScenarioError when the scenario has no `failures`, cannot run, or asks its policy for what it
//           cannot do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "sim/report/goodput_report.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

struct GoodputOptions {
  std::uint64_t seed = 1;
  int threads = 1;
  bool inputs = false;    // try each dominating input at half and twice its value: more runs
  bool timeline = false;  // the diary of the first repeat
  bool plan = false;      // Oobleck's templates, and the effect of each failure
  // Called after each repeat with those done, of all, from any thread and one at a time.
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

[[nodiscard]] GoodputReport predict_goodput(const Scenario& scenario, const GoodputOptions& options = {});

}  // namespace stagecraft
