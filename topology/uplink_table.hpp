// What the groups of one kind, all at once, put on the uplinks of each leaf: traffic that leaves a leaf
// shares them.
//
// The bytes are those of the algorithm's transfers (collective_transfers.hpp) between nodes below different
// leaves. As many leave a leaf as enter it.
#pragma once

#include <map>
#include <span>

#include "topology/cluster.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

class UplinkTable {
 public:
  // Members of a node lie side by side. Cost: that of the transfers of a ring, two trees and, where each is
  // alone on its node, PAT; next to nothing for a group below one leaf.
  void add(const Cluster& cluster, std::span<const DeviceId> members);

  // Of the leaves that one of the groups lies on, the one whose uplinks are in use for longest; nothing for a
  // group below one leaf.
  [[nodiscard]] UplinkLoad of(const Cluster& cluster, std::span<const DeviceId> members) const;

 private:
  struct Leaf {
    UplinkLoad bytes;  // by all groups, per byte
    Bandwidth uplinks{};
  };
  Leaf& leaf_of(const Cluster& cluster, DeviceId gpu);
  void add_ways(const Cluster& cluster, std::span<const DeviceId> members);
  void add_pairs(const Cluster& cluster, std::span<const DeviceId> members);

  std::map<int, Leaf> leaves_;
};

}  // namespace stagecraft
