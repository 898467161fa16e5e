#include "topology/cluster_spec.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

bool has_room(const FabricSpec& fabric, int servers) {
  if (fabric.kind == FabricKind::kTorus) {
    std::int64_t routers = 1;
    for (const int size : fabric.dims) routers *= size;
    return routers == servers;
  }
  const std::int64_t routers = std::int64_t{fabric.groups} * fabric.routers_per_group;
  return fabric.kind != FabricKind::kDragonfly || routers * fabric.nodes_per_router >= servers;
}

FabricSpec as_one_switch(const FabricSpec& fabric) {
  FabricSpec one = fabric;
  one.kind = FabricKind::kSingleSwitch;
  one.groups = one.routers_per_group = one.nodes_per_router = 0;
  one.global_links = 1;
  one.dims.clear();
  one.link_bandwidth = one.global_bandwidth = Bandwidth(0);
  return one;
}

// Each node in each plane, and each plane with the same rails.
bool has_planes(const ClusterSpec& cluster) {
  const FabricSpec& fabric = cluster.fabric;
  int most = 0;
  for (const NodeGroup& group : cluster.groups) {
    const int nics = std::min(fabric.nics_of(group.node), group.node.gpus);
    if (nics < fabric.planes) return false;
    most = std::max(most, nics);
  }
  return fabric.kind != FabricKind::kRailOptimized || most % fabric.planes == 0;
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

int ClusterSpec::gpus_of_server(int server) const {
  return gpus_of(groups[group_of(*this, server)].node);
}

std::size_t group_of(const ClusterSpec& cluster, int server) {
  SC_CHECK(server >= 0 && server < cluster.server_count(), "a server of the cluster");
  std::size_t group = 0;
  for (; server >= cluster.groups[group].count; ++group) server -= cluster.groups[group].count;
  return group;
}

ClusterSpec part_of(const ClusterSpec& whole, std::span<const int> servers) {
  ClusterSpec part{.groups = {}, .gpus_used = whole.gpus_used, .fabric = whole.fabric, .links = {}};
  std::optional<std::size_t> last;
  for (const int server : servers) {
    const std::size_t group = group_of(whole, server);
    if (last != group) part.groups.push_back({.node = whole.groups[group].node, .count = 0});
    last = group;
    ++part.groups.back().count;
  }
  return part;
}

ClusterSpec with_groups(const ClusterSpec& cluster, std::vector<NodeGroup> groups) {
  ClusterSpec other{.groups = std::move(groups), .gpus_used = 0, .fabric = cluster.fabric, .links = {}};
  if (!has_room(other.fabric, other.server_count())) other.fabric = as_one_switch(other.fabric);
  if (!has_planes(other)) other.fabric.planes = 1;
  return other;
}

void scale_nvlink(ClusterSpec& cluster, double factor) {
  for (NodeGroup& group : cluster.groups)
    for (Bandwidth* rate : {&group.node.nvlink, &group.node.nvswitch}) *rate = *rate * factor;
}

void scale_network(ClusterSpec& cluster, double factor) {
  FabricSpec& fabric = cluster.fabric;
  for (NodeGroup& group : cluster.groups) group.node.nic_bandwidth = group.node.nic_bandwidth * factor;
  for (Bandwidth* rate : {&fabric.nic_bandwidth, &fabric.link_bandwidth, &fabric.global_bandwidth})
    *rate = *rate * factor;
}

}  // namespace stagecraft
