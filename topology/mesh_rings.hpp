// Rings inside nodes whose GPUs have a mesh of NVLinks in place of an NVSwitch.
#pragma once

#include <vector>

#include "topology/collective_transfers.hpp"

namespace stagecraft {

// NCCL searches as many rings as links allow, each over links that it has to itself, so that a member's bytes leave by
// all of its links to the others: `transfers` inside the node of `members`, spread so. A node where some member has no
// link to another keeps its one ring; so does one with an NVSwitch, where every order of the members is alike.
//   source  NCCL 2.28.9, src/graph/search.cc: channels are added while paths have bandwidth left
void spread_over_mesh(const Cluster& cluster, const std::vector<DeviceId>& members,
                      std::vector<Transfer>& transfers);

}  // namespace stagecraft
