// Algorithms of NCCL for a collective between nodes, with their costs there.
//
// A way is an algorithm: bytes that it sends out of a node, steps, and which share of the links it gets. The
// formulas are those of collective.hpp.
#pragma once

#include <string_view>
#include <vector>

#include "topology/collective.hpp"

namespace stagecraft {

struct NetworkWay {
  std::string_view algorithm;
  double latency = 0;     // seconds, all steps
  double chunking = 0;    // seconds of them that chunks pay again
  double filling = 0;     // seconds until a chunk has passed all steps but the last
  double bytes = 0;       // seconds, with all groups of the node at the same time
  double efficiency = 1;  // payload over raw capacity of the links
};

// The ways of a collective over the network, at least one. For groups over several nodes only.
[[nodiscard]] std::vector<NetworkWay> network_ways(const CollectiveRequest& request);

}  // namespace stagecraft
