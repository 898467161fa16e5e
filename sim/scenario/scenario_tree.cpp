#include "sim/scenario/scenario_tree.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/yaml_assign.hpp"
#include "formats/fragment.hpp"
#include "formats/hf_config.hpp"
#include "sim/scenario/preset.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// Without `fabric:` the node's default fabric counts, so an override of a part of the fabric starts from it.
void write_default_fabric(YamlNode& root, const PresetPlaces& places, Diagnostics& diagnostics) {
  YamlNode* cluster = root.find("cluster");
  const YamlNode* node = cluster == nullptr ? nullptr : cluster->find("node");
  if (node == nullptr || cluster->find("fabric") != nullptr) return;
  if (node->kind == YamlNode::Kind::kScalar) {
    const auto file = preset_path(node->text, kNodePreset, places);
    node = file ? places.library.tree(*file, diagnostics) : nullptr;
    if (node == nullptr) return;  // reported when the name is read
  }
  const YamlNode* fabric = node->find("fabric");
  if (fabric == nullptr || fabric->kind != YamlNode::Kind::kScalar) return;
  cluster->entries.push_back({.key = "fabric", .where = fabric->where, .value = *fabric});
}

// The mapping that a file of `kind` stands for: of a config.json the model that it describes, of a scenario
// that is named as a model its `model:`. nullopt where it has none, which is reported when the name is read.
std::optional<YamlNode> mapping_of(const fs::path& file, const PresetKind& kind, Library& library) {
  Diagnostics silent;
  if (file.extension() == ".json") {
    const std::string* text = library.text(file, silent);
    const auto read = text != nullptr ? read_hf_config(*text, file.string(), silent) : std::nullopt;
    if (!read) return std::nullopt;
    const YamlNode scenario =
        to_tree(read->fragment.entries, {.file = file.string(), .line = 1, .column = 1});
    const YamlNode* model = scenario.find("model");
    return model == nullptr ? std::nullopt : std::optional(*model);
  }
  const YamlNode* tree = library.tree(file, silent);
  if (tree == nullptr || tree->kind != YamlNode::Kind::kMap) return std::nullopt;
  if (kind.folder != kModelPreset.folder || tree->find("stagecraft") == nullptr) return *tree;
  const YamlNode* lent = tree->find("model");
  const bool lends = lent != nullptr && lent->kind == YamlNode::Kind::kMap;
  return lends ? std::optional(*lent) : std::nullopt;
}

// `--set model.layers=4` changes the preset behind `model: gpt3-175b`: the name is replaced by its mapping.
void expand_name(YamlNode& root, const std::string& assignment, const PresetPlaces& places,
                 Diagnostics& diagnostics) {
  struct Place {
    std::string_view prefix, section, key;
    std::optional<PresetKind> kind;
    const char* name = "name";  // the key of the mapping that keeps the name
  };
  static constexpr std::array<Place, 8> kPlaces{
      {{"model.", "", "model", kModelPreset},
       {"cluster.node.", "cluster", "node", kNodePreset},
       {"cluster.fabric.", "cluster", "fabric", kFabricPreset},
       {"schedule.", "", "schedule", std::nullopt},
       {"network.", "", "network", std::nullopt, "mode"},
       {"training.recompute.", "training", "recompute", std::nullopt, "granularity"},
       {"failures.policy.", "failures", "policy", std::nullopt},
       {"failures.process.", "failures", "process", std::nullopt, "kind"}}};
  if (assignment.starts_with("cluster.fabric.")) write_default_fabric(root, places, diagnostics);
  for (const Place& place : kPlaces) {
    if (!assignment.starts_with(place.prefix)) continue;
    YamlNode* section = place.section.empty() ? &root : root.find(place.section);
    YamlNode* value = section == nullptr ? nullptr : section->find(place.key);
    if (value == nullptr || value->kind != YamlNode::Kind::kScalar) return;
    YamlNode mapping;
    mapping.kind = YamlNode::Kind::kMap;
    mapping.where = value->where;
    std::string name = value->text;
    if (place.kind) {
      const auto file = preset_path(name, *place.kind, places);
      std::optional<YamlNode> named = file ? mapping_of(*file, *place.kind, places.library) : std::nullopt;
      if (!named) return;
      mapping = *std::move(named);
      name = file->stem().string();
    }
    if (mapping.find(place.name) == nullptr)
      mapping.entries.push_back(
          {.key = place.name, .where = mapping.where, .value = yaml_scalar(name, mapping.where)});
    *value = std::move(mapping);
    return;
  }
}

// `--set trainin.recompute=null` removes a missing key. A value in its place shows whether such a key exists
// at all.
void check_taken_away(const ScenarioTree& tree, const std::string& assignment, Library& library,
                      Diagnostics& diagnostics) {
  const auto equals = assignment.find('=');
  if (equals == std::string::npos) return;
  Diagnostics silent;
  const SourceLocation where{.file = "--set " + assignment};
  const auto value = parse_yaml(std::string_view(assignment).substr(equals + 1), where.file, silent);
  if (!value || value->kind != YamlNode::Kind::kNull) return;
  const std::string path = assignment.substr(0, equals);
  YamlNode root = tree.root;
  apply_override(root, path, yaml_scalar("null", where), silent);
  Diagnostics read;
  (void)read_scenario({.root = std::move(root), .source = tree.source, .folder = tree.folder}, library, read);
  for (const Diagnostic& mistake : read.items())
    if (mistake.code == "unknown-key" && mistake.where.file == where.file) diagnostics.add(mistake);
}

}  // namespace

bool looks_like_sweep(const YamlNode& root) {
  return root.find("model") == nullptr && (root.find("base") != nullptr || root.find("vary") != nullptr);
}

void apply_overrides(ScenarioTree& tree, std::span<const std::string> overrides, Library& library,
                     Diagnostics& diagnostics) {
  if (tree.root.kind != YamlNode::Kind::kMap) return;  // no scenario, which is said when it is read
  for (const std::string& assignment : overrides) {
    expand_name(tree.root, assignment, {.library = library, .folder = tree.folder}, diagnostics);
    apply_override(tree.root, assignment, diagnostics);
  }
  for (const std::string& assignment : overrides) check_taken_away(tree, assignment, library, diagnostics);
}

Reload reload_of(ScenarioTree tree, Library& library) {
  return [tree = std::move(tree), &library](const std::vector<std::string>& set, Diagnostics& diagnostics) {
    ScenarioTree changed = tree;
    apply_overrides(changed, set, library, diagnostics);
    return read_scenario(changed, library, diagnostics);
  };
}

std::optional<ScenarioTree> load_tree(const fs::path& word, Library& library, Diagnostics& diagnostics) {
  const std::optional<fs::path> file = find_scenario(word, library, diagnostics);
  auto root = file ? library.data().load(*file, diagnostics) : std::nullopt;
  if (!root) return std::nullopt;
  return ScenarioTree{.root = *std::move(root), .source = word.string(), .folder = file->parent_path()};
}

ScenarioTree assigned(const ScenarioTree& tree, std::span<const Assignment> assignments, Library& library,
                      Diagnostics& diagnostics) {
  ScenarioTree all = tree;
  for (const Assignment& assignment : assignments) {
    if (all.root.kind != YamlNode::Kind::kMap) break;  // no scenario, which is said when it is read
    expand_name(all.root, assignment.path, {.library = library, .folder = tree.folder}, diagnostics);
    apply_override(all.root, assignment.path, assignment.value, diagnostics);
  }
  return all;
}

std::optional<Scenario> load_scenario(const ScenarioTree& tree, std::span<const Assignment> assignments,
                                      Library& library, Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  auto scenario = read_scenario(assigned(tree, assignments, library, diagnostics), library, diagnostics);
  return watch.clean() ? std::move(scenario) : std::nullopt;
}

}  // namespace stagecraft
