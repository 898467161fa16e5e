// Bytes that a collective or a message puts on each link: the input of a network of shared links.
//
// The transfers of the algorithm (collective_transfers.hpp), each spread over the ways that the cluster has
// for it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "topology/cluster.hpp"
#include "topology/collective_transfers.hpp"

namespace stagecraft {

struct LinkLoad {
  EdgeId link;
  double bytes = 0;  // payload over its tier's efficiency, both tiers of an algorithm together
};

// Shares of the links' rates that payload gets. A transfer over the fabric has the network's on all of its
// way, also on the PCIe links between a GPU and its NIC; one inside a node or an NVLink domain the node's.
struct TierEfficiency {
  double node = 1, network = 1;
};

// Ascending by link, each link once. `algorithm` as CollectiveCost names it.
//
//   throws  InternalError as collective_transfers() does.
[[nodiscard]] std::vector<LinkLoad> collective_loads(const Cluster& cluster,
                                                     std::span<const DeviceId> members, CollectiveKind kind,
                                                     std::string_view algorithm, Bytes size,
                                                     TierEfficiency efficiency = {});

// The loads of one message; empty where it has nowhere to go.
[[nodiscard]] std::vector<LinkLoad> message_loads(const Cluster& cluster, DeviceId from, DeviceId to,
                                                  Bytes size, TierEfficiency efficiency = {});

}  // namespace stagecraft
