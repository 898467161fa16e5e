// Rings in nodes and over nodes, of which the other algorithms are built.
#pragma once

#include <vector>

#include "topology/collective_transfers.hpp"

namespace stagecraft {

// `bytes` from each member of a node to the next, and from the last to the first; nothing for a single
// member.
void add_circle(std::vector<Transfer>& transfers, const std::vector<DeviceId>& members, double bytes);

// `bytes` from one node to another, on rails: equal shares leave the members of `from` and reach those of
// `to`, place by place where there are as many of them.
void add_rails(std::vector<Transfer>& transfers, const std::vector<DeviceId>& from,
               const std::vector<DeviceId>& to, double bytes);

// add_rails around all nodes; nothing for one node.
void add_rail_circle(std::vector<Transfer>& transfers, const MembersByNode& nodes, double bytes);

[[nodiscard]] std::vector<Transfer> ring_transfers(const MembersByNode& nodes, CollectiveKind kind,
                                                   double size);
[[nodiscard]] std::vector<Transfer> hierarchical_transfers(const MembersByNode& nodes, CollectiveKind kind,
                                                           double size);

}  // namespace stagecraft
