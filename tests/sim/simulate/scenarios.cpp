#include "tests/sim/simulate/scenarios.hpp"

#include <numeric>

#include "base/check.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {

const DataDirectory& repository() {
  static const DataDirectory kData{.root = STAGECRAFT_SOURCE_DIR};
  return kData;
}

Scenario scenario_of(const std::string& yaml) {
  Diagnostics diagnostics;
  std::optional<Scenario> scenario;
  if (const auto root = parse_yaml(yaml, "s.yaml", diagnostics))
    scenario = read_scenario({.root = *root, .source = "s.yaml", .folder = repository().root / "scenarios"},
                             repository_files(), diagnostics);
  diagnostics.throw_if_errors();
  SC_CHECK(scenario.has_value(), "a refusal gives its reason");
  return *std::move(scenario);
}

Scenario shipped(const std::string& name, const std::vector<std::string>& overrides) {
  Diagnostics diagnostics;
  auto scenario = load_scenario(repository().root / "scenarios" / (name + ".yaml"), overrides,
                                repository_files(), diagnostics);
  diagnostics.throw_if_errors();
  SC_CHECK(scenario.has_value(), "a refusal gives its reason");
  return *std::move(scenario);
}

Duration sum_of(const std::array<Duration, kCategoryCount>& breakdown) {
  return std::accumulate(breakdown.begin(), breakdown.end(), Duration::zero());
}

}  // namespace stagecraft
