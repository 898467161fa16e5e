#include "sim/scenario/known_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/key_survey.hpp"
#include "base/text.hpp"
#include "base/usual_names.hpp"
#include "base/yaml.hpp"

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

// A scenario of one kind of node and all sections, for who has none that loads. Its numbers mean nothing.
constexpr const char* kWhole =
    "stagecraft: 1\n"
    "model: {family: gpt, layers: 1, hidden: 64, heads: 1, max_sequence_length: 64}\n"
    "cluster: {nodes: 1, node: {device: any, gpus: 1, nics: 1, nic_bandwidth: 1 GB/s, pcie: 1 GB/s}}\n"
    "training: {global_batch_size: 1, sequence_length: 64}\n"
    "failures: {process: {rate_per_node_day: 0.001}, policy: checkpoint-restart, horizon: 1 days}\n";

std::vector<std::string> keys_of_whole(Library& library) {
  Diagnostics ignored;
  std::optional<YamlNode> root = parse_yaml(kWhole, "whole", ignored);
  ScenarioTree tree{.root = root.value(), .source = "whole", .folder = {}, .needs_profile = false};
  if (const auto scenario = read_scenario(tree, library, ignored))
    if (auto whole = parse_yaml(to_yaml(*scenario), "whole", ignored)) tree.root = *std::move(whole);
  return keys_asked_of(tree, library);
}

// Keys of this scenario and of any dense model on a cluster; no items of lists.
std::vector<std::string> all_keys(const ScenarioTree& tree, Library& library) {
  std::vector<std::string> paths = known_keys(tree, library);
  for (std::string& path : keys_of_whole(library))
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
  std::erase_if(paths, [](const std::string& path) { return path.find_first_of("[<") != std::string::npos; });
  return paths;
}

bool is_given(const YamlNode& root, std::string_view path, const std::string& file) {
  const YamlNode* at = &root;
  for (const std::string_view key : split(path, '.'))
    if (at = at->find(key); at == nullptr) return false;
  return at->where.file == file;
}

// Does the hint say more than another place would? A slip of a section's own key, or its own key by another name.
bool is_settled(const Diagnostic& mistake, std::string_view key) {
  const std::optional<UsualName> usual = key_called(key);
  if (usual && !usual->way.empty()) return true;
  if (mistake.path.size() > key.size()) return mistake.hint.starts_with("did you mean");
  return usual && mistake.hint == fmt::format("did you mean {}?", in_quotes(usual->key));
}

}  // namespace

std::vector<std::string> known_keys(const ScenarioTree& tree, Library& library) {
  std::vector<std::string> asked = keys_asked_of(tree, library);
  ScenarioTree known = tree;
  std::erase_if(known.root.entries,
                [&](const YamlEntry& entry) { return std::ranges::find(asked, entry.key) == asked.end(); });
  Diagnostics ignored;
  KeySurvey unused(tree.root.where.file);
  ignored.survey_keys(&unused);  // whose readers make no hints
  const auto scenario = read_scenario(known, library, ignored);
  // With all sections present, readers request all keys.
  auto whole = scenario ? parse_yaml(to_yaml(*scenario), tree.source, ignored) : std::nullopt;
  if (!whole) return asked;
  known.root = *std::move(whole);
  return keys_asked_of(known, library);
}

void point_elsewhere(std::vector<Diagnostic>& said, const ScenarioTree& tree, Library& library) {
  std::optional<std::vector<std::string>> all;  // made for the first such key
  for (Diagnostic& mistake : said) {
    const std::string key = mistake.path.substr(mistake.path.rfind('.') + 1);
    if (mistake.code != "unknown-key" || key.empty() || is_settled(mistake, key)) continue;
    if (!all) all = all_keys(tree, library);
    std::vector<std::string> paths = *all;
    std::erase_if(paths,
                  [&](const std::string& path) { return is_given(tree.root, path, mistake.where.file); });
    if (std::string place = places_of_key(key, paths); !place.empty()) mistake.hint = std::move(place);
  }
}

}  // namespace stagecraft
