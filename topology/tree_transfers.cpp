#include "topology/tree_transfers.hpp"

#include "base/check.hpp"
#include "topology/ring_transfers.hpp"

namespace stagecraft {
namespace {

// Parent of place i in the tree over 0 .. places-1 in which a place hangs on the next multiple of twice its
// lowest bit, or on the one before where that one is missing; place 0 is the root.
int parent_in_order(int i, int places) {
  if (i == 0) return -1;
  const int bit = i & -i;
  const int up = (i ^ bit) | (bit << 1);
  return up < places ? up : i ^ bit;
}

}  // namespace

void add_double_tree(std::vector<Transfer>& transfers, const MembersByNode& nodes, double size) {
  for (const std::vector<int>& parents : double_tree(static_cast<int>(nodes.size())))
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (parents[i] < 0) continue;
      const std::vector<DeviceId>& parent = nodes[static_cast<std::size_t>(parents[i])];
      add_rails(transfers, nodes[i], parent, size / 2);
      add_rails(transfers, parent, nodes[i], size / 2);
    }
}

std::array<std::vector<int>, 2> double_tree(int nodes) {
  SC_CHECK(nodes >= 1, "a tree has a node");
  std::array<std::vector<int>, 2> parents{std::vector<int>(static_cast<std::size_t>(nodes)),
                                          std::vector<int>(static_cast<std::size_t>(nodes))};
  // Leaves are odd places: reading an even number of places backwards, or an odd one shifted, swaps the
  // roles.
  const bool even = nodes % 2 == 0;
  const auto place = [&](int node) { return even ? nodes - 1 - node : (node + nodes - 1) % nodes; };
  const auto node_at = [&](int place_in_tree) {
    return even ? nodes - 1 - place_in_tree : (place_in_tree + 1) % nodes;
  };
  for (int i = 0; i < nodes; ++i) {
    parents[0][static_cast<std::size_t>(i)] = parent_in_order(i, nodes);
    const int up = parent_in_order(place(i), nodes);
    parents[1][static_cast<std::size_t>(i)] = up < 0 ? -1 : node_at(up);
  }
  return parents;
}

std::vector<Transfer> tree_transfers(const MembersByNode& nodes, CollectiveKind, double size) {
  std::vector<Transfer> transfers;
  for (const std::vector<DeviceId>& node : nodes) {
    if (node.size() < 2) continue;
    // A channel's chain begins at each member in turn: every pair of neighbours is in all of them but one.
    const double chain = size * static_cast<double>(node.size() - 1) / static_cast<double>(node.size());
    add_circle(transfers, node, chain);
    add_circle(transfers, {node.rbegin(), node.rend()}, chain);
  }
  add_double_tree(transfers, nodes, size);
  return transfers;
}

std::vector<Transfer> nvls_transfers(const MembersByNode& nodes, CollectiveKind, double size) {
  SC_CHECK(nodes.size() == 1, "NVLS is inside a node; over nodes it is nvls-tree");
  std::vector<Transfer> transfers;
  add_circle(transfers, nodes.front(), size);
  return transfers;
}

std::vector<Transfer> nvls_tree_transfers(const MembersByNode& nodes, CollectiveKind, double size) {
  std::vector<Transfer> transfers;
  for (const std::vector<DeviceId>& node : nodes) add_circle(transfers, node, size);
  add_double_tree(transfers, nodes, size);
  return transfers;
}

std::vector<Transfer> collnet_transfers(const MembersByNode& nodes, CollectiveKind kind, double size) {
  std::vector<Transfer> transfers;
  for (const std::vector<DeviceId>& node : nodes)
    add_circle(transfers, node, bus_factor(kind, static_cast<int>(node.size())) * size);
  add_rail_circle(transfers, nodes, size);
  return transfers;
}

}  // namespace stagecraft
