// Why an iteration is not faster, in three sentences: its bound, its non-compute parts, and the most helpful
// change of a list. Where it is much, one more says what traffic beside the passes adds to them, and one which
// rank of the pipeline the others wait for.
//
//   The changes are those of settings_to_try() and, for comparison, links of twice the bandwidth. Each is
//   simulated. One that does not fit into memory helps nobody. Where the scenario does not fit, changes that
//   save memory are tried as well, and the fastest that fits is named, however long it takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

struct TriedChange {
  std::string words;             // "schedule=zb-h1 parallelism.virtual_stages=1", "twice the NIC bandwidth"
  std::vector<std::string> set;  // as in --set; empty for hardware
  std::optional<Duration> iteration_time = {};
  Verdict verdict = Verdict::kFits;
  std::string refused = {};  // why it cannot run
};

struct Why {
  std::string bound_by;  // the largest part of the breakdown, by its JSON name
  std::vector<std::string> sentences;
  std::optional<TriedChange> best;   // among settings, and fits; none where nothing saves 0.5 %
  std::vector<TriedChange> changes;  // in the order of the list
};

// `simulation`: of the scenario, one that finishes. `reload`: of the scenario.
[[nodiscard]] Why explain_why(const Scenario& scenario, const Simulation& simulation, const Reload& reload);

void write(JsonWriter& json, const Why& why);

}  // namespace stagecraft
