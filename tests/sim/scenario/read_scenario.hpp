// Scenarios of tests as a loader reads them, with everything it says of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {

inline std::filesystem::path scenario_folder() {
  return std::filesystem::path(STAGECRAFT_SOURCE_DIR) / "scenarios";
}

struct Result {
  std::optional<Scenario> scenario;
  std::string messages;
};

inline std::string text_of(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += render(diagnostic) + "\n";
  return text;
}

inline Result read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Diagnostics diagnostics;
  const auto root = parse_yaml(text, "s.yaml", diagnostics);
  Result result;
  if (root) {
    ScenarioTree tree{.root = *root, .source = "some/s.yaml", .folder = scenario_folder()};
    apply_overrides(tree, overrides, repository_files(), diagnostics);
    result.scenario = read_scenario(tree, repository_files(), diagnostics);
  }
  result.messages = text_of(diagnostics.sorted());
  return result;
}

inline Result load(const std::string& name, std::vector<std::string> overrides) {
  Diagnostics diagnostics;
  auto scenario = load_scenario(scenario_folder() / name, overrides, repository_files(), diagnostics);
  return {std::move(scenario), text_of(diagnostics.sorted())};
}

}  // namespace stagecraft
