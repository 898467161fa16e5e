#include "sim/scenario/load_machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "base/text_file.hpp"
#include "formats/hf_config.hpp"
#include "models/load_model.hpp"
#include "topology/fabric.hpp"
#include "topology/load_cluster.hpp"
#include "topology/load_links.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kMaxGpus = 1'000'000;
constexpr double kMaxCables = 1e7;  // between switches: more do not fit into memory

// Calls `load(map, name)` on the mapping that `key` of `map` writes in place or names; nullopt when that went
// wrong.
template <class Spec, class Load>
std::optional<Spec> load_preset(YamlMap& map, std::string_view key, PresetKind kind,
                                const PresetPlaces& places, Origins& origins, Load load) {
  Diagnostics& diagnostics = map.diagnostics();
  const ErrorWatch watch(diagnostics);
  const YamlNode* node = map.get(key);
  map.accepts(key, {.kind = KeyForm::Kind::kText});
  if (node == nullptr) {
    map.error(key, "missing-key", "is required, but not given");
    return std::nullopt;
  }
  std::optional<Spec> spec;
  if (node->kind != YamlNode::Kind::kScalar) {
    YamlMap inner = map.map(key);
    if (inner.present()) spec = load(inner, std::string());
  } else if (const auto file = find_preset(map, key, node->text, kind, places)) {
    const YamlNode* tree = places.library.tree(*file, diagnostics);
    if (tree == nullptr) return std::nullopt;
    YamlMap inner(tree, map.path_of(key), tree->where, diagnostics, &origins);
    spec = load(inner, file->stem().string());
  }
  return watch.clean() ? spec : std::nullopt;
}

std::optional<NodeSpec> load_node_preset(YamlMap& map, const PresetPlaces& places, Origins& origins) {
  return load_preset<NodeSpec>(map, "node", kNodePreset, places, origins,
                               [](YamlMap& node, std::string name) {
                                 name = node.name("name", std::move(name));
                                 NodeSpec spec = load_node(node);
                                 spec.name = std::move(name);
                                 return spec;
                               });
}

FabricSpec read_fabric(YamlMap& fabric, std::string name) {
  name = fabric.name("name", std::move(name));
  FabricSpec spec = load_fabric(fabric);
  spec.name = std::move(name);
  return spec;
}

std::int64_t node_count(YamlMap& map) {
  return map.integer("nodes", {.min = 1, .max = kMaxGpus, .fallback = {}});
}

// Neighbours of one kind are one group: the NVLink domains of a group are counted from its first node.
void append(std::vector<NodeGroup>& groups, NodeSpec node, std::int64_t count) {
  if (groups.empty() || !(groups.back().node == node) || groups.back().count + count > kMaxGpus)
    groups.push_back({.node = std::move(node), .count = 0});
  groups.back().count += static_cast<int>(count);
}

// `nodes: [{node: dgx-h100, nodes: 2}, …]`
std::vector<NodeGroup> load_groups(YamlMap& map, const YamlNode& list, const PresetPlaces& places,
                                   Origins& origins) {
  std::vector<NodeGroup> groups;
  if (map.has("node"))
    map.error("node", "contradiction", "`nodes` is a list of groups, each with its own node",
              "remove `node`");
  if (map.has("gpus"))
    map.error("gpus", "contradiction", "`gpus` is a part of one node, and `nodes` is a list of groups",
              "give either `nodes` or `gpus`");
  if (list.items.empty()) map.error("nodes", "empty-list", "has no group");
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    YamlMap item(&list.items[i], fmt::format("{}.{}", map.path_of("nodes"), i), list.items[i].where,
                 map.diagnostics(), &origins);
    if (!item.present()) continue;
    auto node = load_node_preset(item, places, origins);
    const std::int64_t count = node_count(item);
    item.finish();
    if (node) append(groups, *std::move(node), count);
  }
  return groups;
}

// `node`, and `nodes` or `gpus`.
void load_one_group(YamlMap& map, const PresetPlaces& places, Origins& origins, ClusterSpec& cluster) {
  auto node = load_node_preset(map, places, origins);
  const ErrorWatch watch(map.diagnostics());
  std::int64_t nodes = 1;
  if (!map.has("gpus")) {
    if (!map.has("nodes"))
      map.error("nodes", "missing-key", "is required, but not given",
                "how many nodes? or `gpus`: part of one node");
    else
      nodes = node_count(map);
  } else if (map.has("nodes")) {
    map.error("gpus", "contradiction", "`gpus` stands in place of `nodes`, and both are given",
              "give either `nodes` or `gpus`");
  } else {
    cluster.gpus_used = static_cast<int>(map.integer("gpus", {.min = 1, .max = kMaxGpus, .fallback = {}}));
  }
  if (!node || !watch.clean()) return;
  if (cluster.gpus_used > node->gpus)
    map.error("gpus", "too-many-gpus",
              fmt::format("{} are more than the {} GPUs of one node", cluster.gpus_used, node->gpus),
              cluster.gpus_used % node->gpus == 0
                  ? fmt::format("use nodes: {}", cluster.gpus_used / node->gpus)
                  : "use `nodes` for more than one node");
  cluster.groups.push_back({.node = *std::move(node), .count = static_cast<int>(nodes)});
}

void check_groups(YamlMap& map, const std::vector<NodeGroup>& groups) {
  std::int64_t gpus = 0;  // at most a million groups of 2^40 GPUs
  for (const NodeGroup& group : groups) gpus += static_cast<std::int64_t>(group.count) * group.node.gpus;
  if (gpus > kMaxGpus)
    map.error("nodes", "too-large", fmt::format("{} GPUs are more than {}", gpus, kMaxGpus));
}

// The nodes share one fabric: without a word that of the first.
void warn_of_other_fabrics(YamlMap& map, const std::vector<NodeGroup>& groups) {
  const NodeSpec& first = groups.front().node;
  const auto other = std::ranges::find_if(groups, [&](const NodeGroup& group) {
    return !group.node.default_fabric.empty() && group.node.default_fabric != first.default_fabric;
  });
  if (other == groups.end()) return;
  map.warning("fabric", "assumed",
              fmt::format("is not given: all nodes are on {}, as node {} has it; {} has {}",
                          first.default_fabric, first.name, other->node.name, other->node.default_fabric),
              "name the network between the nodes");
}

FabricSpec load_fabric_key(YamlMap& map, const ClusterSpec& cluster, const PresetPlaces& places,
                           Origins& origins) {
  if (map.has("fabric"))
    return load_preset<FabricSpec>(map, "fabric", kFabricPreset, places, origins, read_fabric)
        .value_or(FabricSpec{});
  if (cluster.groups.empty()) return {};
  const NodeGroup& first = cluster.groups.front();
  if (first.node.default_fabric.empty()) {
    const bool one_node = cluster.groups.size() == 1 && first.count == 1;
    if (!one_node)
      map.error("fabric", "missing-key", "is required, but not given",
                "the node has no default fabric: name the network between the nodes");
    return {};
  }
  warn_of_other_fabrics(map, cluster.groups);
  const auto file = find_preset(map, "fabric", first.node.default_fabric, kFabricPreset, places);
  if (!file) return {};
  const YamlNode* tree = places.library.tree(*file, map.diagnostics());
  if (tree == nullptr) return {};
  YamlMap fabric(tree, map.path_of("fabric"), tree->where, map.diagnostics());
  return read_fabric(fabric, file->stem().string());
}

// NIC vertices: where NICs outnumber GPUs, a GPU has them as one.
int nics_in(const NodeSpec& node, const FabricSpec& fabric) {
  return std::min(fabric.nics_of(node), node.gpus);
}

int most_nics(const ClusterSpec& cluster) {
  int most = 0;
  for (const NodeGroup& group : cluster.groups) most = std::max(most, nics_in(group.node, cluster.fabric));
  return most;
}

void check_planes(YamlMap& fabric_map, const ClusterSpec& cluster) {
  const int planes = cluster.fabric.planes, most = most_nics(cluster);
  for (const NodeGroup& group : cluster.groups) {
    const int nics = nics_in(group.node, cluster.fabric);
    if (nics < planes) {
      fabric_map.error("planes", "does-not-fit",
                       fmt::format("a node with {} NICs has none in some of {} planes", nics, planes),
                       "NICs alternate between planes: at most as many planes as NICs (and GPUs)");
      return;
    }
  }
  if (cluster.fabric.kind == FabricKind::kRailOptimized && most % planes != 0)
    fabric_map.error("planes", "not-divisible", fmt::format("{} planes do not divide {} rails", planes, most),
                     "every plane has the same rails");
}

// Checks that need both, the fabric and the nodes on it.
void check_fabric_size(YamlMap& fabric_map, const ClusterSpec& cluster) {
  const FabricSpec& fabric = cluster.fabric;
  const std::int64_t nodes = cluster.server_count();
  if (fabric.kind == FabricKind::kTorus) {
    std::int64_t routers = 1;
    for (const int size : fabric.dims) routers = std::min<std::int64_t>(routers * size, 1 << 30);
    if (routers != nodes)
      fabric_map.error("dims", "does-not-fit",
                       fmt::format("{} = {} routers are not the cluster's {}", fmt::join(fabric.dims, " x "),
                                   routers, counted(nodes, "node")),
                       "a torus has a router for every node");
  }
  if (fabric.kind == FabricKind::kDragonfly) {
    const std::int64_t routers = std::int64_t{fabric.groups} * fabric.routers_per_group;
    if (routers * fabric.nodes_per_router < nodes)
      fabric_map.error("groups", "does-not-fit",
                       fmt::format("{} groups x {} routers x {} nodes hold {}, not the cluster's {}",
                                   fabric.groups, fabric.routers_per_group, fabric.nodes_per_router,
                                   routers * fabric.nodes_per_router, nodes),
                       "more groups, more routers in a group or more nodes on a router");
  }
  const double cables = cables_of(fabric, cluster.server_count(), most_nics(cluster));
  if (cables > kMaxCables)
    fabric_map.error(
        "", "too-large",
        fmt::format("its switches have {:.1e} cables, more than the {:.0e} that fit", cables, kMaxCables),
        "fewer switches may stand for all of them, as one spine does");
}

void check_fabric(YamlMap& map, const ClusterSpec& cluster) {
  if (cluster.server_count() < 2) return;
  const YamlNode* node = map.get("fabric");
  if (node != nullptr && node->kind == YamlNode::Kind::kMap) {
    YamlMap fabric = map.map("fabric");
    check_planes(fabric, cluster);
    check_fabric_size(fabric, cluster);
    return;
  }
  // A preset: its keys are named at `fabric`.
  const SourceLocation where = node != nullptr ? node->where : map.where();
  YamlMap fabric(nullptr, map.path_of("fabric"), where, map.diagnostics());
  check_planes(fabric, cluster);
  check_fabric_size(fabric, cluster);
}

ModelSpec load_named_model(YamlMap& model, const std::string& stem) {
  const bool named = model.has("name");
  ModelSpec spec = load_model(model);
  if (!named && !stem.empty()) std::visit([&](auto& any) { any.name = stem; }, spec);
  return spec;
}

// A scenario named as a model provides its `model:` mapping: the output of `stagecraft import` is both.
ModelSpec load_lent_model(YamlMap& scenario, const std::string& stem) {
  const YamlNode* model = scenario.get("model");
  if (model == nullptr || model->kind != YamlNode::Kind::kMap) {
    scenario.error("model", "not-a-mapping", "the file is a scenario, and has no mapping `model:` to lend",
                   "name the model itself");
    return TransformerSpec{};
  }
  YamlMap lent = scenario.map("model");
  return load_named_model(lent, stem);
}

// `model: config.json`, relative to the scenario's folder.
std::optional<ModelSpec> load_hf_model(YamlMap& root, const std::string& name, const PresetPlaces& places,
                                       Origins& origins, std::vector<std::string>& assumed) {
  const auto file = find_preset(root, "model", name, kModelPreset, places);
  if (!file) return std::nullopt;
  const std::string* text = places.library.text(*file, root.diagnostics());
  if (text == nullptr) return std::nullopt;
  auto read = read_hf_config(*text, place_name(*file), root.diagnostics(), &origins);
  if (!read) return std::nullopt;
  assumed = std::move(read->fragment.assumed);
  return std::move(read->model);
}

}  // namespace

bool is_hf_model(YamlMap& root) {
  const YamlNode* node = root.get("model");
  return node != nullptr && node->kind == YamlNode::Kind::kScalar && node->text.ends_with(".json");
}

std::optional<ModelSpec> load_model_section(YamlMap& root, const PresetPlaces& places, Origins& origins,
                                            std::vector<std::string>& assumed) {
  if (is_hf_model(root)) return load_hf_model(root, root.get("model")->text, places, origins, assumed);
  return load_preset<ModelSpec>(root, "model", kModelPreset, places, origins,
                                [](YamlMap& model, const std::string& stem) {
                                  if (!stem.empty() && model.has("stagecraft"))
                                    return load_lent_model(model, stem);
                                  return load_named_model(model, stem);
                                });
}

ClusterSection load_cluster_section(YamlMap& root, const PresetPlaces& places, Origins& origins) {
  const ErrorWatch watch(root.diagnostics());
  YamlMap map = root.map("cluster");
  if (!map.present()) return {};
  ClusterSpec cluster;
  const YamlNode* nodes = map.get("nodes");
  if (nodes != nullptr && nodes->kind == YamlNode::Kind::kSequence)
    cluster.groups = load_groups(map, *nodes, places, origins);
  else
    load_one_group(map, places, origins, cluster);
  check_groups(map, cluster.groups);
  // Where neither is given, a misspelt key may have said how many nodes there are.
  ClusterSection section;
  if (watch.clean() && (map.has("nodes") || map.has("gpus"))) section.counted = cluster;
  cluster.fabric = load_fabric_key(map, cluster, places, origins);
  if (watch.clean()) check_fabric(map, cluster);
  cluster.links = load_links(map, watch.clean() ? &cluster : nullptr, origins);
  map.finish();
  if (watch.clean()) section.whole = section.counted = std::move(cluster);
  return section;
}

std::optional<std::filesystem::path> find_profile(YamlMap& root, const ClusterSpec* cluster, bool required,
                                                  const PresetPlaces& places) {
  if (root.has("profile")) {
    const ErrorWatch watch(root.diagnostics());
    const std::string name = root.text("profile");
    if (!watch.clean()) return std::nullopt;
    return find_preset(root, "profile", name, kProfilePreset, places);
  }
  if (cluster == nullptr) return std::nullopt;
  const std::string& name = cluster->groups.front().node.default_profile;
  if (!name.empty()) return find_preset(root, "profile", name, kProfilePreset, places);
  if (required)
    root.error("profile", "missing-key", "is required, but not given",
               fmt::format("the node has no default profile; installed: {}",
                           join(places.library.data().names(std::string(kProfilePreset.folder)), ", ")));
  return std::nullopt;
}

bool has_several_devices(const ClusterSpec& cluster) {
  const auto differs = [&](const NodeGroup& group) {
    return group.node.device != cluster.groups.front().node.device;
  };
  return std::ranges::any_of(cluster.groups, differs);
}

std::vector<HardwareProfile> load_group_profiles(YamlMap& root, const ClusterSpec& cluster,
                                                 const PresetPlaces& places) {
  std::vector<HardwareProfile> profiles;
  if (root.has("profile")) {
    root.error("profile", "contradiction",
               fmt::format("one profile is of one device, and the cluster has {} and others",
                           in_quotes(cluster.groups.front().node.device)),
               "leave it out: each group takes its node's own");
    return profiles;
  }
  for (const NodeGroup& group : cluster.groups) {
    if (group.node.default_profile.empty()) {
      root.error("cluster", "missing-key",
                 fmt::format("node {} has no default profile", in_quotes(group.node.name)),
                 "in a cluster of several devices every node names its profile");
      return {};
    }
    const auto file = find_preset(root, "profile", group.node.default_profile, kProfilePreset, places);
    const HardwareProfile* profile = file ? places.library.profile(*file, root.diagnostics()) : nullptr;
    if (profile == nullptr) return {};
    profiles.push_back(*profile);
  }
  return profiles;
}

}  // namespace stagecraft
