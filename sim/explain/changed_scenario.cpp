#include "sim/explain/changed_scenario.hpp"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

bool sets_software(const std::vector<std::string>& set) {
  return std::ranges::any_of(
      set, [](const std::string& assignment) { return assignment.starts_with("options.software="); });
}

std::optional<Scenario> read(const std::vector<std::string>& set, const Reload& reload,
                             Diagnostics& diagnostics) {
  std::optional<Scenario> scenario = reload(set, diagnostics);
  return diagnostics.has_errors() ? std::nullopt : std::move(scenario);
}

}  // namespace

bool has_ranks(const SoftwareRules& software, const ParallelSpec& parallelism) {
  return software.has_orders() || (parallelism.pipeline == 1 && parallelism.tensor == 1);
}

ChangedScenario changed_scenario(const Scenario& scenario, std::vector<std::string> set, const Reload& reload,
                                 Diagnostics& diagnostics) {
  ChangedScenario changed{.set = std::move(set), .scenario = {}};
  changed.scenario = read(changed.set, reload, diagnostics);
  if (!changed.scenario || sets_software(changed.set)) return changed;
  const OptionsSpec& now = scenario.options;
  if (changed.scenario->options.software == now.software) return changed;
  if (!has_ranks(now.rules, changed.scenario->parallelism)) return changed;
  changed.set.push_back("options.software=" + now.software);
  changed.scenario = read(changed.set, reload, diagnostics);
  return changed;
}

}  // namespace stagecraft
