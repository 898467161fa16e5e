#include "topology/uplink_table.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "topology/collective_transfers.hpp"
#include "topology/pairwise_transfers.hpp"
#include "topology/ring_transfers.hpp"
#include "topology/tree_transfers.hpp"

namespace stagecraft {
namespace {

bool below_one_leaf(const Cluster& cluster, std::span<const DeviceId> members) {
  const int leaf = cluster.leaf_of(members.front());
  return std::ranges::all_of(members, [&](DeviceId member) { return cluster.leaf_of(member) == leaf; });
}

// Members of a node lie side by side.
MembersByNode nodes_of(const Cluster& cluster, std::span<const DeviceId> members) {
  MembersByNode nodes;
  int before = -1;
  for (const DeviceId member : members) {
    if (const int node = cluster.node_of(member); node != std::exchange(before, node)) nodes.emplace_back();
    nodes.back().push_back(member);
  }
  return nodes;
}

}  // namespace

UplinkTable::Leaf& UplinkTable::leaf_of(const Cluster& cluster, DeviceId gpu) {
  const auto [at, is_new] = leaves_.try_emplace(cluster.leaf_of(gpu));
  if (is_new) at->second.uplinks = cluster.leaf_uplinks(gpu);
  return at->second;
}

void UplinkTable::add(const Cluster& cluster, std::span<const DeviceId> members) {
  if (members.empty() || below_one_leaf(cluster, members)) return;
  add_ways(cluster, members);
  add_pairs(cluster, members);
}

void UplinkTable::add_ways(const Cluster& cluster, std::span<const DeviceId> members) {
  const MembersByNode nodes = nodes_of(cluster, members);
  std::vector<Transfer> ways;
  const auto take = [&](double UplinkLoad::*load) {
    for (const Transfer& way : ways)
      if (cluster.leaf_of(way.from) != cluster.leaf_of(way.to))
        leaf_of(cluster, way.from).bytes.*load += way.bytes;
    ways.clear();
  };
  add_rail_circle(ways, nodes, 1);
  take(&UplinkLoad::ring);
  add_double_tree(ways, nodes, 1);
  take(&UplinkLoad::tree);
  if (nodes.size() < members.size()) return;
  ways = pat_transfers(nodes, CollectiveKind::kAllGather, 1);
  take(&UplinkLoad::pat);
}

// S/n from each member to each on another node and below another leaf.
void UplinkTable::add_pairs(const Cluster& cluster, std::span<const DeviceId> members) {
  std::map<int, int> below, on;  // members, by leaf; by node
  for (const DeviceId member : members) {
    ++below[cluster.leaf_of(member)];
    ++on[cluster.node_of(member)];
  }
  const auto all = static_cast<double>(members.size());
  for (auto first = members.begin(); first != members.end();) {
    // Ascending members of one node below one leaf lie side by side.
    const int leaf = cluster.leaf_of(*first), node = cluster.node_of(*first);
    const auto end = std::find_if(first, members.end(), [&](DeviceId member) {
      return cluster.leaf_of(member) != leaf || cluster.node_of(member) != node;
    });
    const auto here = static_cast<double>(end - first);
    const double elsewhere = all - below[leaf] - (on[node] - here);
    leaf_of(cluster, *first).bytes.direct += here * elsewhere / all;
    first = end;
  }
}

UplinkLoad UplinkTable::of(const Cluster& cluster, std::span<const DeviceId> members) const {
  UplinkLoad most;
  if (members.empty() || below_one_leaf(cluster, members)) return most;
  int before = -1;
  for (const DeviceId member : members) {
    const int leaf = cluster.leaf_of(member);
    if (leaf == std::exchange(before, leaf)) continue;
    const auto at = leaves_.find(leaf);
    SC_CHECK(at != leaves_.end(), "a group of the table");
    const auto& [bytes, uplinks] = at->second;
    for (double UplinkLoad::*load :
         {&UplinkLoad::ring, &UplinkLoad::tree, &UplinkLoad::pat, &UplinkLoad::direct})
      most.*load = std::max(most.*load, bytes.*load / uplinks.count());
  }
  return most;
}

}  // namespace stagecraft
