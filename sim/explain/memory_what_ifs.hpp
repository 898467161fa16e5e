// Changes that would make a job fit: one at a time, or two where one is not enough, each simulated.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario_tree.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

struct WhatIf {
  std::vector<std::string> change;  // as in --set: "training.recompute=full"
  Bytes peak;                       // peak of the fullest GPU
  Bytes on_host;                    // offloaded bytes on the fullest node
  Bytes shortage;                   // memory that GPUs and hosts lack together
  Verdict verdict = Verdict::kFits;
  Duration iteration_time{};
};

// The scenario of which changes are tried. A dead node stops the iteration of `report`, and says nothing of times:
// then it is the one without faults, which do not move memory.
[[nodiscard]] Scenario without_stop(Scenario scenario, const Report& report);

// Of settings_for_memory() the feasible ones that lack less memory than `now`, the report of the scenario; where
// none is lacking, those that use less of the fuller of GPUs and hosts. Where no change alone makes a job fit, or
// the fastest one costs more than a tenth of the time, a few pairs that do are among them. Fitting variants come
// first, by time, then the others by their shortage. `reload`: of the scenario, or of the same with faults.
// requires a scenario whose iteration ends.
[[nodiscard]] std::vector<WhatIf> memory_what_ifs(const Scenario& scenario, const Report& now,
                                                  const Reload& reload);

}  // namespace stagecraft
