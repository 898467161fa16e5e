// State transfers when pipelines change: source, receivers and time of each layer.
//
// For every layer: new holders receive it from the first surviving node that held it, by number. A source
// with k receivers sends the layer k times; with a broadcast tree it sends once, and each receiver but the
// last passes the layer on, so outgoing equals incoming traffic. All layers travel at once, and one barrier
// ends them:
//
//   time = max over nodes of max(in / in-bandwidth + latency * messages in,
//                                out / out-bandwidth + latency * messages out).
//
// A layer that no surviving node holds can only come from a checkpoint.
//
//   source  Jang et al., "Oobleck", SOSP 2023, section 5; docs/resilience.md, sections 1 (the law of the
//           time) and 5.6
#pragma once

#include <map>
#include <span>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

// The layers [first, end) on a node.
struct NodeLayers {
  int node = 0;
  int first = 0;
  int end = 0;
};

struct CopyLinks {
  Bandwidth in{};  // bandwidth of a node from other nodes
  Bandwidth out{};
  Duration latency{};  // per message
  bool broadcast_tree = true;
};

struct LayerTransfer {
  int layer = 0;
  int source = 0;
  std::vector<int> receivers = {};  // by number
};

struct NodeTraffic {
  Bytes in{};
  Bytes out{};
  int messages_in = 0;
  int messages_out = 0;
};

struct StateCopy {
  std::vector<LayerTransfer> transfers = {};  // by layer
  std::map<int, NodeTraffic> nodes = {};      // nodes that send or receive
  std::vector<int> lost_layers = {};          // new owners want them, and no survivor has them
  Bytes moved{};                              // over all receivers
  Duration time{};                            // until the last node has finished
};

// `before`: the surviving nodes and their layers, each node once. `after`: those of the new plan.
// `layer_bytes`: weights, gradients and optimizer state of each layer. requires bandwidths > 0 where there
// are transfers.
[[nodiscard]] StateCopy copy_state(std::span<const NodeLayers> before, std::span<const NodeLayers> after,
                                   std::span<const Bytes> layer_bytes, const CopyLinks& links);

}  // namespace stagecraft
