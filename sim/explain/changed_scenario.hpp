// A scenario with a change of its settings, as --set has it: what is said of it comes true when it is set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_tree.hpp"

namespace stagecraft {

struct ChangedScenario {
  std::vector<std::string> set;      // as in --set: "training.recompute=full"
  std::optional<Scenario> scenario;  // nothing where that is refused
};

// `reload`: of the scenario. Which software is assumed may depend on what is set (ZeRO stages, replicas). The
// one of the scenario stays where it can, and then `set` names it as well.
[[nodiscard]] ChangedScenario changed_scenario(const Scenario& scenario, std::vector<std::string> set,
                                               const Reload& reload, Diagnostics& diagnostics);

// Does the software have the pipeline and tensor ranks that are asked of it?
[[nodiscard]] bool has_ranks(const SoftwareRules& software, const ParallelSpec& parallelism);

}  // namespace stagecraft
