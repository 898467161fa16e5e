#include "topology/pairwise_transfers.hpp"

#include <bit>

#include "topology/ring_transfers.hpp"

namespace stagecraft {
namespace {

std::vector<DeviceId> in_a_row(const MembersByNode& nodes) {
  std::vector<DeviceId> ranks;
  for (const std::vector<DeviceId>& node : nodes) ranks.insert(ranks.end(), node.begin(), node.end());
  return ranks;
}

void add_exchange(std::vector<Transfer>& transfers, DeviceId a, DeviceId b, double bytes) {
  transfers.push_back({a, b, bytes});
  transfers.push_back({b, a, bytes});
}

}  // namespace

std::vector<Transfer> direct_transfers(const MembersByNode& nodes, CollectiveKind kind, double size) {
  const std::vector<DeviceId> ranks = in_a_row(nodes);
  std::vector<Transfer> transfers;
  if (kind == CollectiveKind::kSendReceive) {
    add_circle(transfers, ranks, size);
    return transfers;
  }
  transfers.reserve(ranks.size() * (ranks.size() - 1));
  for (const DeviceId from : ranks)
    for (const DeviceId to : ranks)
      if (from != to) transfers.push_back({from, to, size / static_cast<double>(ranks.size())});
  return transfers;
}

std::vector<Transfer> halving_doubling_transfers(const MembersByNode& nodes, CollectiveKind, double size) {
  const std::vector<DeviceId> ranks = in_a_row(nodes);
  const std::size_t core = std::bit_floor(ranks.size());
  std::vector<Transfer> transfers;
  for (std::size_t extra = core; extra < ranks.size(); ++extra)
    add_exchange(transfers, ranks[extra], ranks[extra - core], size);
  for (std::size_t distance = 1; distance < core; distance *= 2)
    for (std::size_t i = 0; i < core; ++i)  // half of this on the way down, half on the way back
      transfers.push_back({ranks[i], ranks[i ^ distance], size / static_cast<double>(distance)});
  return transfers;
}

std::vector<Transfer> pat_transfers(const MembersByNode& nodes, CollectiveKind kind, double size) {
  const std::vector<DeviceId> ranks = in_a_row(nodes);
  const std::size_t n = ranks.size();
  // A reduce-scatter is an all-gather run backwards.
  const bool backwards = kind == CollectiveKind::kReduceScatter;
  std::vector<Transfer> transfers;
  for (std::size_t hop = 1; hop < n; hop *= 2) {
    const std::size_t blocks = (n - 1 - hop) / (2 * hop) + 1;  // offsets below n with `hop` as lowest bit
    const double bytes = size * static_cast<double>(blocks) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      const DeviceId near = ranks[i], far = ranks[(i + hop) % n];
      transfers.push_back(backwards ? Transfer{far, near, bytes} : Transfer{near, far, bytes});
    }
  }
  return transfers;
}

}  // namespace stagecraft
