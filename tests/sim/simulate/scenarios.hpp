// Scenarios for tests: read from text, or from the files that we ship, against the repository's own data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/simulate.hpp"

namespace stagecraft {

// The repository as a data directory.
[[nodiscard]] const DataDirectory& repository();

// throws ScenarioError with everything that is wrong.
[[nodiscard]] Scenario scenario_of(const std::string& yaml);
// `name` is the stem of a file in scenarios/; `overrides` as of --set.
[[nodiscard]] Scenario shipped(const std::string& name, const std::vector<std::string>& overrides = {});

// Sum of the parts.
[[nodiscard]] Duration sum_of(const std::array<Duration, kCategoryCount>& breakdown);
[[nodiscard]] inline Duration part_of(const Report& report, Category category) {
  return report.breakdown[static_cast<std::size_t>(category)];
}

}  // namespace stagecraft
