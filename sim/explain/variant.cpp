#include "sim/explain/variant.hpp"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

bool names_software(const std::vector<std::string>& set) {
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
  const bool orders = !software.schedules || !software.schedules->empty();
  return orders || (parallelism.pipeline == 1 && parallelism.tensor == 1);
}

Variant variant_of(const Scenario& scenario, std::vector<std::string> set, const Reload& reload,
                   Diagnostics& diagnostics) {
  Variant variant{.set = std::move(set), .scenario = {}};
  variant.scenario = read(variant.set, reload, diagnostics);
  if (!variant.scenario || names_software(variant.set)) return variant;
  const OptionsSpec& now = scenario.options;
  if (variant.scenario->options.software == now.software) return variant;
  if (!has_ranks(now.rules, variant.scenario->parallelism)) return variant;
  variant.set.push_back("options.software=" + now.software);
  variant.scenario = read(variant.set, reload, diagnostics);
  return variant;
}

}  // namespace stagecraft
