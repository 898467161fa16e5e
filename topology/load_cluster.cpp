#include "topology/load_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace stagecraft {
namespace {

constexpr int kMostOfAKind = 1 << 20;

// A bandwidth above zero. A value that could not be read was already reported and is not reported twice.
Bandwidth positive_bandwidth(YamlMap& map, std::string_view key, std::optional<Bandwidth> fallback = {}) {
  const ErrorWatch watch(map.diagnostics());
  const Bandwidth value = map.bandwidth(key, fallback);
  if (map.has(key) && watch.clean() && value <= Bandwidth(0))
    map.error(key, "out-of-range", "must be above 0",
              "a bandwidth per direction, for instance 25 GB/s or 200 Gb/s");
  return value;
}

int count(YamlMap& map, std::string_view key, std::optional<std::int64_t> fallback = {}) {
  return static_cast<int>(map.integer(key, {.min = 1, .max = kMostOfAKind, .fallback = fallback}));
}

double share(YamlMap& map, std::string_view key) {
  return map.number(key, {.min = 0.01, .max = 1, .fallback = 1.0});
}

void contradiction(YamlMap& map, std::string_view key, std::string message, std::string hint) {
  map.error(key, "contradiction", std::move(message), std::move(hint));
}

// [GPU, GPU, links], or two GPUs with one link.
std::optional<NvlinkPair> read_pair(const YamlNode& item) {
  std::vector<int> numbers;
  for (const YamlNode& entry : item.items) {
    const auto number = entry.kind == YamlNode::Kind::kScalar ? parse_integer(entry.text) : std::nullopt;
    if (!number || *number < 0 || *number > kMostOfAKind) return std::nullopt;
    numbers.push_back(static_cast<int>(*number));
  }
  if (numbers.size() < 2 || numbers.size() > 3) return std::nullopt;
  const NvlinkPair pair{.a = numbers[0], .b = numbers[1], .links = numbers.size() == 3 ? numbers[2] : 1};
  return pair.links > 0 ? std::optional(pair) : std::nullopt;
}

std::vector<NvlinkPair> load_pairs(YamlMap& map, int gpus) {
  const YamlNode* list = map.get("nvlink_pairs");
  map.accepts("nvlink_pairs", {});
  if (list == nullptr) return {};
  const auto error = [&](const SourceLocation& where, std::string message) {
    map.diagnostics().error(
        {.code = "nvlink-pair",
         .where = where,
         .path = map.path_of("nvlink_pairs"),
         .message = std::move(message),
         .hint = "two GPUs and the number of NVLinks between them, for instance [0, 1, 2]"});
  };
  if (list->kind != YamlNode::Kind::kSequence || list->items.empty())
    error(list->where, "expected a list of pairs of GPUs");
  std::vector<NvlinkPair> pairs;
  std::set<std::pair<int, int>> seen;
  for (const YamlNode& item : list->items) {
    const auto pair = read_pair(item);
    if (!pair)
      error(item.where, "is no pair of GPUs");
    else if (pair->a == pair->b || std::max(pair->a, pair->b) >= gpus)
      error(item.where,
            fmt::format("{} and {} are not two of the {} GPUs, which count from 0", pair->a, pair->b, gpus));
    else if (!seen.insert(std::minmax(pair->a, pair->b)).second)
      error(item.where, fmt::format("the pair of {} and {} is given twice", pair->a, pair->b));
    else
      pairs.push_back(*pair);
  }
  return pairs;
}

// Links inside a node besides the GPUs' own. `most`: of its GPUs, as far as they are known.
void load_inside(YamlMap& map, int most, NodeSpec& node) {
  node.nvswitch = positive_bandwidth(map, "nvswitch", Bandwidth(0));
  node.nvlink_pairs = load_pairs(map, most);
  node.nvlink_domain = count(map, "nvlink_domain", 1);
  for (const char* key : {"nvswitch", "nvlink_pairs", "nvlink_domain"})
    if (map.has(key) && !map.has("nvlink"))
      contradiction(map, key, "is given without `nvlink`",
                    "give `nvlink`, what one GPU sends over all its NVLinks");
  for (const char* key : {"nvswitch", "nvlink_domain"})
    if (map.has(key) && map.has("nvlink_pairs"))
      contradiction(map, key, "is given together with `nvlink_pairs`, which means NVLinks without a switch",
                    "leave one of them out");
  node.gpus_per_pcie_switch =
      static_cast<int>(map.integer("gpus_per_pcie_switch", {.min = 1, .max = most, .fallback = 0}));
  node.pcie_uplink = positive_bandwidth(map, "pcie_uplink", Bandwidth(0));
  if (map.has("pcie_uplink") && !map.has("gpus_per_pcie_switch"))
    contradiction(map, "pcie_uplink", "is given without `gpus_per_pcie_switch`", "how many GPUs share it?");
  const ErrorWatch watch(map.diagnostics());
  node.sockets = static_cast<int>(map.integer("sockets", {.min = 1, .max = most, .fallback = 1}));
  const bool one_socket = node.sockets == 1 && watch.clean();
  node.socket_link = positive_bandwidth(map, "socket_link", Bandwidth(0));
  if (node.sockets > 1 && !map.has("socket_link"))
    map.error("socket_link", "missing-key", "is required, but not given",
              "what goes from one socket to another");
  if (one_socket && map.has("socket_link"))
    contradiction(map, "socket_link", "is given for one socket", "give `sockets: 2`");
  const bool nvswitch = map.has("nvlink") && !map.has("nvlink_pairs");
  if (node.sockets > 1 && nvswitch && !map.has("gpus_per_pcie_switch"))
    contradiction(map, "sockets", "nothing meets there: GPUs have their NVSwitch, and every NIC its GPU",
                  "give `gpus_per_pcie_switch`, or leave `sockets` out");
}

// Keys that mean nothing for a kind of fabric.
void refuse(YamlMap& map, std::initializer_list<const char*> keys, FabricKind kind) {
  const std::string_view name = kFabricKindNames[static_cast<std::size_t>(kind)];
  for (const char* key : keys)
    if (map.has(key)) contradiction(map, key, fmt::format("has no meaning for {}", name), "leave it out");
}

void load_pods(YamlMap& map, FabricSpec& fabric) {
  fabric.spines = count(map, "spines", 1);
  fabric.nodes_per_pod = count(map, "nodes_per_pod", 0);
  fabric.cores = count(map, "cores", 1);
  fabric.core_oversubscription = map.number("core_oversubscription", {.min = 1, .fallback = 1.0});
  if (fabric.nodes_per_pod % fabric.nodes_per_leaf != 0)
    map.error("nodes_per_pod", "not-divisible",
              fmt::format("{} nodes of a leaf do not divide {}", fabric.nodes_per_leaf, fabric.nodes_per_pod),
              fmt::format("a pod has whole leaves: {} or {}",
                          std::max(1, fabric.nodes_per_pod / fabric.nodes_per_leaf) * fabric.nodes_per_leaf,
                          (fabric.nodes_per_pod / fabric.nodes_per_leaf + 1) * fabric.nodes_per_leaf));
  for (const char* key : {"cores", "core_oversubscription"})
    if (map.has(key) && !map.has("nodes_per_pod"))
      contradiction(map, key, "is given without pods", "give `nodes_per_pod`: pods meet in the core");
  if (fabric.cores > 1 && fabric.cores % fabric.spines != 0)
    map.error("cores", "not-divisible",
              fmt::format("{} spine switches of a pod do not divide {}", fabric.spines, fabric.cores),
              "every spine switch has as many core switches above it; left out, one stands for all");
}

void load_dragonfly(YamlMap& map, FabricSpec& fabric) {
  fabric.groups = count(map, "groups");
  fabric.routers_per_group = count(map, "routers_per_group");
  fabric.nodes_per_router = count(map, "nodes_per_router");
  fabric.global_links = count(map, "global_links", 1);
  fabric.link_bandwidth = positive_bandwidth(map, "link_bandwidth");
  fabric.global_bandwidth = positive_bandwidth(map, "global_bandwidth", Bandwidth(0));
  if (map.has("global_links") && map.has("routers_per_group") &&
      fabric.global_links > fabric.routers_per_group)
    map.error("global_links", "out-of-range",
              fmt::format("{} links between two groups are more than the {} routers of a group",
                          fabric.global_links, fabric.routers_per_group),
              "each ends at a router of its own: fewer links with more `global_bandwidth` carry the same");
}

void load_torus(YamlMap& map, FabricSpec& fabric) {
  if (!map.has("dims"))
    map.error("dims", "missing-key", "is required, but not given", "for instance [4, 4, 4]");
  for (const std::int64_t size : map.integers("dims", {.min = 1, .max = kMostOfAKind}))
    fabric.dims.push_back(static_cast<int>(size));
  fabric.link_bandwidth = positive_bandwidth(map, "link_bandwidth");
}

void load_shape(YamlMap& map, FabricSpec& fabric) {
  const auto refuse_all = [&](std::initializer_list<const char*> keys) { refuse(map, keys, fabric.kind); };
  const bool torus = fabric.kind == FabricKind::kTorus, dragonfly = fabric.kind == FabricKind::kDragonfly;
  if (torus || dragonfly) refuse_all({"nodes_per_leaf", "oversubscription"});
  if (torus || dragonfly || fabric.kind == FabricKind::kSingleSwitch)
    refuse_all({"spines", "nodes_per_pod", "cores", "core_oversubscription"});
  else
    load_pods(map, fabric);
  if (dragonfly)
    load_dragonfly(map, fabric);
  else
    refuse_all({"groups", "routers_per_group", "nodes_per_router", "global_links", "global_bandwidth"});
  if (torus)
    load_torus(map, fabric);
  else
    refuse_all({"dims"});
  if (!torus && !dragonfly) refuse_all({"link_bandwidth"});
  fabric.planes = count(map, "planes", 1);
  fabric.routing = map.choose("routing", kRoutingNames, Routing::kAdaptive);
  fabric.routing_seed = map.integer("routing_seed", {.min = 0, .fallback = 0});
  if (map.has("routing_seed") && fabric.routing != Routing::kEcmp)
    contradiction(map, "routing_seed", "adaptive routing has nothing to draw", "give `routing: ecmp`");
}

}  // namespace

Duration load_latency(YamlMap& map, std::string_view key, std::optional<Duration> fallback) {
  constexpr Duration kLongest = std::chrono::hours(1);
  const Duration time = map.duration(key, fallback);
  if (time <= kLongest) return time;
  map.error(key, "out-of-range", human(time) + " is more than an hour", "latencies are microseconds");
  return Duration::zero();
}

NodeSpec load_node(YamlMap& map) {
  NodeSpec node;
  node.device = map.text("device");
  const ErrorWatch watch(map.diagnostics());
  node.gpus = count(map, "gpus");
  const int most = watch.clean() ? node.gpus : kMostOfAKind;
  node.nvlink = positive_bandwidth(map, "nvlink", Bandwidth(0));
  node.nvlink_latency = load_latency(
      map, "nvlink_latency", map.has("nvlink") ? std::optional<Duration>{} : std::optional(Duration::zero()));
  node.nics = count(map, "nics");
  node.nic_bandwidth = positive_bandwidth(map, "nic_bandwidth");
  node.pcie = positive_bandwidth(map, "pcie");
  node.host_memory = map.bytes("host_memory", Bytes(0));
  node.host_memory_bandwidth = positive_bandwidth(map, "host_memory_bandwidth", Bandwidth(0));
  load_inside(map, most, node);
  node.default_profile = map.text("profile", "");
  node.default_fabric = map.text("fabric", "");
  node.source = map.text("source", "");
  map.finish();
  return node;
}

FabricSpec load_fabric(YamlMap& map) {
  const FabricSpec ideal;
  FabricSpec fabric;
  fabric.kind = map.choose<FabricKind>("kind", kFabricKindNames);
  fabric.nics_per_node = count(map, "nics_per_node", 0);
  fabric.nic_bandwidth = positive_bandwidth(map, "nic_bandwidth", Bandwidth(0));
  fabric.nodes_per_leaf = count(map, "nodes_per_leaf", ideal.nodes_per_leaf);
  fabric.oversubscription = map.number("oversubscription", {.min = 1, .fallback = 1.0});
  if (fabric.oversubscription > fabric.nodes_per_leaf)
    map.error("oversubscription", "out-of-range",
              fmt::format("{:g} is more than the {} nodes below a leaf", fabric.oversubscription,
                          fabric.nodes_per_leaf),
              "downlinks over uplinks of a leaf switch: 1 is non-blocking, 2 has half as many uplinks");
  load_shape(map, fabric);
  fabric.switch_latency = load_latency(map, "switch_latency");
  fabric.collective_efficiency = share(map, "collective_efficiency");
  if (map.has("rail_efficiency")) fabric.rail_efficiency = share(map, "rail_efficiency");
  if (map.has("crossing_efficiency")) fabric.crossing_efficiency = share(map, "crossing_efficiency");
  fabric.point_to_point_efficiency = share(map, "point_to_point_efficiency");
  fabric.collective_latency = load_latency(map, "collective_latency");
  fabric.step_latency = load_latency(map, "step_latency");
  fabric.chunking = map.number("chunking", {.min = 0, .max = 1, .fallback = 0.0});
  fabric.chunk = map.bytes("chunk", Bytes(0));
  fabric.sharp = map.boolean("sharp", false);
  fabric.point_to_point_latency = load_latency(map, "point_to_point_latency");
  fabric.tensor_collective_factor =
      map.number("tensor_collective_factor", {.min = 1, .max = 10, .fallback = 1});
  fabric.tensor_collective_overhead = load_latency(map, "tensor_collective_overhead");
  fabric.source = map.text("source", "");
  map.finish();
  return fabric;
}

}  // namespace stagecraft
