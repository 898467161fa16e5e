#include "sim/scenario/known_keys.hpp"

#include <algorithm>
#include <utility>

#include "base/key_survey.hpp"

namespace stagecraft {

namespace {

std::vector<std::string> keys_asked_of(const ScenarioTree& tree, Library& library) {
  Diagnostics ignored;
  KeySurvey survey(tree.root.where.file);
  ignored.survey_keys(&survey);
  (void)read_scenario(tree, library, ignored);
  std::vector<std::string> paths;
  for (const KeySurvey::Entry& entry : survey.entries()) paths.push_back(entry.path);
  return paths;
}

}  // namespace

std::vector<std::string> known_keys(const ScenarioTree& tree, Library& library) {
  std::vector<std::string> asked = keys_asked_of(tree, library);
  ScenarioTree known = tree;
  std::erase_if(known.root.entries,
                [&](const YamlEntry& entry) { return std::ranges::find(asked, entry.key) == asked.end(); });
  Diagnostics ignored;
  const auto scenario = read_scenario(known, library, ignored);
  // With all sections present, readers request all keys.
  auto whole = scenario ? parse_yaml(to_yaml(*scenario), tree.source, ignored) : std::nullopt;
  if (!whole) return asked;
  known.root = *std::move(whole);
  return keys_asked_of(known, library);
}

}  // namespace stagecraft
