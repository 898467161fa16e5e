#include "sim/goodput/oobleck/state_copy.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// The nodes that hold each layer, by number.
std::vector<std::vector<int>> holders(std::span<const NodeLayers> nodes, std::size_t layers) {
  std::vector<std::vector<int>> out(layers);
  for (const NodeLayers& held : nodes)
    for (int layer = held.first; layer < held.end; ++layer)
      out.at(static_cast<std::size_t>(layer)).push_back(held.node);
  for (std::vector<int>& of_layer : out) std::ranges::sort(of_layer);
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
    if (copy.busiest >= 0 && time <= copy.time) continue;
    copy.busiest = node;
    copy.time = time;
  }
}

}  // namespace

StateCopy copy_state(std::span<const NodeLayers> before, std::span<const NodeLayers> after,
                     std::span<const Bytes> layer_bytes, const CopyLinks& links) {
  const auto had = holders(before, layer_bytes.size());
  const auto wanted = holders(after, layer_bytes.size());
  StateCopy copy;
  for (std::size_t layer = 0; layer < layer_bytes.size(); ++layer) {
    LayerTransfer transfer{.layer = static_cast<int>(layer)};
    std::ranges::set_difference(wanted[layer], had[layer], std::back_inserter(transfer.receivers));
    if (transfer.receivers.empty()) continue;
    if (had[layer].empty()) {
      copy.lost_layers.push_back(transfer.layer);
      continue;
    }
    transfer.source = had[layer].front();
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
