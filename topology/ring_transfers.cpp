#include "topology/ring_transfers.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

int count(const MembersByNode& nodes) {
  std::size_t ranks = 0;
  for (const std::vector<DeviceId>& node : nodes) ranks += node.size();
  return static_cast<int>(ranks);
}

}  // namespace

void add_circle(std::vector<Transfer>& transfers, const std::vector<DeviceId>& members, double bytes) {
  if (members.size() < 2) return;
  for (std::size_t i = 0; i < members.size(); ++i)
    transfers.push_back({members[i], members[(i + 1) % members.size()], bytes});
}

void add_rails(std::vector<Transfer>& transfers, const std::vector<DeviceId>& from,
               const std::vector<DeviceId>& to, double bytes) {
  // Both sides divide the same stretch of a*b pieces: member i of `from` has b of them, member j of `to` has
  // a.
  const std::size_t a = from.size(), b = to.size(), pieces = a * b;
  for (std::size_t at = 0; at < pieces;) {
    const std::size_t end = std::min((at / b + 1) * b, (at / a + 1) * a);
    transfers.push_back(
        {from[at / b], to[at / a], bytes * static_cast<double>(end - at) / static_cast<double>(pieces)});
    at = end;
  }
}

void add_rail_circle(std::vector<Transfer>& transfers, const MembersByNode& nodes, double bytes) {
  if (nodes.size() < 2) return;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    add_rails(transfers, nodes[i], nodes[(i + 1) % nodes.size()], bytes);
}

std::vector<Transfer> ring_transfers(const MembersByNode& nodes, CollectiveKind kind, double size) {
  const double hop = bus_factor(kind, count(nodes)) * size;
  std::vector<Transfer> transfers;
  for (const std::vector<DeviceId>& node : nodes) {
    const auto ranks = static_cast<double>(node.size());
    add_circle(transfers, node, nodes.size() == 1 ? hop : hop * (ranks - 1) / ranks);
  }
  add_rail_circle(transfers, nodes, hop);
  if (kind == CollectiveKind::kBroadcast) {
    const DeviceId root = nodes.front().front();
    std::erase_if(transfers, [root](const Transfer& transfer) { return transfer.to == root; });
  }
  return transfers;
}

std::vector<Transfer> hierarchical_transfers(const MembersByNode& nodes, CollectiveKind kind, double size) {
  std::vector<Transfer> transfers;
  for (const std::vector<DeviceId>& node : nodes)
    add_circle(transfers, node, bus_factor(kind, static_cast<int>(node.size())) * size);
  add_rail_circle(transfers, nodes, bus_factor(kind, static_cast<int>(nodes.size())) * size);
  return transfers;
}

}  // namespace stagecraft
