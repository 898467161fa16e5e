// Which nodes get which layers from whom when pipelines change, and how long that takes.
//
// For every layer: nodes that hold it now and did not before get it from the first surviving node that did,
// by number. A source that serves k nodes sends the layer k times, or once where the copy is a broadcast
// tree: a chain in the order of the receivers, in which each but the last passes on what it gets, so that
// what goes out is what comes in. All layers travel at once, and one barrier ends them:
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
  Bandwidth in{};  // of a node, from other nodes
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
  std::map<int, NodeTraffic> nodes = {};      // those that send or receive
  std::vector<int> lost_layers = {};          // new owners want them, and no survivor has them
  Bytes moved{};                              // over all receivers
  int busiest = -1;                           // the node that is done last; -1: nothing moves
  Duration time{};                            // of the transfers
};

// `before`: the surviving nodes and what they hold, each once; `after`: those of the new plan. `layer_bytes`:
// weights, gradients and optimizer state of each. requires bandwidths > 0 where anything moves.
[[nodiscard]] StateCopy copy_state(std::span<const NodeLayers> before, std::span<const NodeLayers> after,
                                   std::span<const Bytes> layer_bytes, const CopyLinks& links);

}  // namespace stagecraft
