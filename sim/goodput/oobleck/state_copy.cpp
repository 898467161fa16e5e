#include "sim/goodput/oobleck/state_copy.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// Layers held by each node, by number; empty for nodes that are not listed.
std::vector<NodeLayers> by_node(std::span<const NodeLayers> held) {
  std::vector<NodeLayers> out;
  for (const NodeLayers& one : held) {
    const auto node = static_cast<std::size_t>(one.node);
    if (out.size() <= node) out.resize(node + 1);
    out[node] = one;
  }
  return out;
}

// The least node that holds each layer, -1: none.
std::vector<int> first_holders(std::span<const NodeLayers> nodes, std::size_t layers) {
  std::vector<int> out(layers, -1);
  for (const NodeLayers& held : nodes)
    for (int layer = held.first; layer < held.end; ++layer) {
      int& first = out.at(static_cast<std::size_t>(layer));
      if (first < 0 || held.node < first) first = held.node;
    }
  return out;
}

// New holders of each layer, by number.
std::vector<std::vector<int>> newcomers(std::span<const NodeLayers> before, std::span<const NodeLayers> after,
                                        std::size_t layers) {
  const std::vector<NodeLayers> had = by_node(before);
  std::vector<std::vector<int>> out(layers);
  for (const NodeLayers& held : after) {
    const auto node = static_cast<std::size_t>(held.node);
    const NodeLayers old = node < had.size() ? had[node] : NodeLayers{};
    for (int layer = held.first; layer < held.end; ++layer)
      if (layer < old.first || layer >= old.end) out.at(static_cast<std::size_t>(layer)).push_back(held.node);
  }
  for (std::vector<int>& receivers : out) std::ranges::sort(receivers);
  return out;
}

void send(StateCopy& copy, int from, int to, Bytes bytes) {
  NodeTraffic& sender = copy.nodes[from];
  sender.out += bytes;
  ++sender.messages_out;
  NodeTraffic& receiver = copy.nodes[to];
  receiver.in += bytes;
  ++receiver.messages_in;
  copy.moved += bytes;
}

void add_time(StateCopy& copy, const CopyLinks& links) {
  for (const auto& [node, traffic] : copy.nodes) {
    Duration time{};
    if (traffic.messages_in > 0) time = traffic.in / links.in + links.latency * traffic.messages_in;
    if (traffic.messages_out > 0)
      time = std::max(time, traffic.out / links.out + links.latency * traffic.messages_out);
    copy.time = std::max(copy.time, time);
  }
}

}  // namespace

StateCopy copy_state(std::span<const NodeLayers> before, std::span<const NodeLayers> after,
                     std::span<const Bytes> layer_bytes, const CopyLinks& links) {
  const std::vector<int> sources = first_holders(before, layer_bytes.size());
  auto receivers = newcomers(before, after, layer_bytes.size());
  StateCopy copy;
  for (std::size_t layer = 0; layer < layer_bytes.size(); ++layer) {
    if (receivers[layer].empty()) continue;
    LayerTransfer transfer{
        .layer = static_cast<int>(layer), .source = sources[layer], .receivers = std::move(receivers[layer])};
    if (transfer.source < 0) {
      copy.lost_layers.push_back(transfer.layer);
      continue;
    }
    int from = transfer.source;
    for (const int receiver : transfer.receivers) {
      send(copy, from, receiver, layer_bytes[layer]);
      if (links.broadcast_tree) from = receiver;
    }
    copy.transfers.push_back(std::move(transfer));
  }
  add_time(copy, links);
  return copy;
}

}  // namespace stagecraft
