// Which bytes a collective or a message puts on which link: what a network of shared links needs to know of
// it.
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
  double bytes = 0;  // payload, both tiers of an algorithm together
};

// Ascending by link, each link once. `algorithm` as CollectiveCost names it.
//
//   throws  InternalError as collective_transfers() does.
[[nodiscard]] std::vector<LinkLoad> collective_loads(const Cluster& cluster,
                                                     std::span<const DeviceId> members, CollectiveKind kind,
                                                     std::string_view algorithm, Bytes size);

// The same for one message; empty where it has nowhere to go.
[[nodiscard]] std::vector<LinkLoad> message_loads(const Cluster& cluster, DeviceId from, DeviceId to,
                                                  Bytes size);

}  // namespace stagecraft
