#include "topology/cluster_spec.hpp"

#include <fmt/format.h>

#include <optional>

namespace stagecraft {
namespace {

// A bandwidth above zero. A value that could not be read was already reported and is not reported twice.
Bandwidth positive_bandwidth(YamlMap& map, std::string_view key, std::optional<Bandwidth> fallback = {}) {
  const std::size_t before = map.diagnostics().error_count();
  const Bandwidth value = map.bandwidth(key, fallback);
  if (map.has(key) && map.diagnostics().error_count() == before && value <= Bandwidth(0))
    map.error(key, "out-of-range", "must be above 0",
              "a bandwidth per direction, for instance 25 GB/s or 200 Gb/s");
  return value;
}

int count(YamlMap& map, std::string_view key, std::optional<std::int64_t> fallback = {}) {
  return static_cast<int>(map.integer(key, {.min = 1, .max = 1 << 20, .fallback = fallback}));
}

double share(YamlMap& map, std::string_view key) {
  return map.number(key, {.min = 0.01, .max = 1, .fallback = 1.0});
}

}  // namespace

int ClusterSpec::gpu_count() const {
  if (gpus_used > 0) return gpus_used;
  int total = 0;
  for (const NodeGroup& group : groups) total += group.count * group.node.gpus;
  return total;
}

int ClusterSpec::server_count() const {
  int total = 0;
  for (const NodeGroup& group : groups) total += group.count;
  return total;
}

NodeSpec load_node(YamlMap& map) {
  NodeSpec node;
  node.device = map.text("device");
  node.gpus = count(map, "gpus");
  node.nvlink = positive_bandwidth(map, "nvlink", Bandwidth(0));
  node.nvlink_latency = map.duration(
      "nvlink_latency", map.has("nvlink") ? std::optional<Duration>{} : std::optional(Duration::zero()));
  node.nics = count(map, "nics");
  node.nic_bandwidth = positive_bandwidth(map, "nic_bandwidth");
  node.pcie = positive_bandwidth(map, "pcie");
  node.host_memory = map.bytes("host_memory", Bytes(0));
  node.host_memory_bandwidth = positive_bandwidth(map, "host_memory_bandwidth", Bandwidth(0));
  node.default_profile = map.text("profile", "");
  node.default_fabric = map.text("fabric", "");
  node.source = map.text("source", "");
  map.finish();
  return node;
}

FabricSpec load_fabric(YamlMap& map) {
  const std::vector<std::string> kinds(kFabricKindNames.begin(), kFabricKindNames.end());
  const FabricSpec ideal;
  FabricSpec fabric;
  fabric.kind = static_cast<FabricKind>(map.choice("kind", kinds));
  fabric.nics_per_node = count(map, "nics_per_node", 0);
  fabric.nic_bandwidth = positive_bandwidth(map, "nic_bandwidth", Bandwidth(0));
  fabric.nodes_per_leaf = count(map, "nodes_per_leaf", ideal.nodes_per_leaf);
  fabric.oversubscription = map.number("oversubscription", {.min = 1, .fallback = 1.0});
  if (fabric.oversubscription > fabric.nodes_per_leaf)
    map.error("oversubscription", "out-of-range",
              fmt::format("{:g} is more than the {} nodes below a leaf", fabric.oversubscription,
                          fabric.nodes_per_leaf),
              "downlinks over uplinks of a leaf switch: 1 is non-blocking, 2 has half as many uplinks");
  fabric.switch_latency = map.duration("switch_latency", Duration::zero());
  fabric.collective_efficiency = share(map, "collective_efficiency");
  fabric.point_to_point_efficiency = share(map, "point_to_point_efficiency");
  fabric.collective_latency = map.duration("collective_latency", Duration::zero());
  fabric.step_latency = map.duration("step_latency", Duration::zero());
  fabric.point_to_point_latency = map.duration("point_to_point_latency", Duration::zero());
  fabric.tensor_collective_factor =
      map.number("tensor_collective_factor", {.min = 1, .max = 10, .fallback = 1});
  fabric.tensor_collective_overhead = map.duration("tensor_collective_overhead", Duration::zero());
  fabric.source = map.text("source", "");
  map.finish();
  return fabric;
}

}  // namespace stagecraft
