#include "topology/collective_transfers.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/check.hpp"
#include "topology/mesh_rings.hpp"
#include "topology/pairwise_transfers.hpp"
#include "topology/ring_transfers.hpp"
#include "topology/tree_transfers.hpp"

namespace stagecraft {
namespace {

bool all_reduce(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce;
}

bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
}

bool reduces_or_gathers(CollectiveKind kind) {
  return all_reduce(kind) || gathers(kind);
}

bool goes_round(CollectiveKind kind) {
  return reduces_or_gathers(kind) || kind == CollectiveKind::kBroadcast;
}

bool pairs(CollectiveKind kind) {
  return !goes_round(kind);
}

bool all_to_all(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll;
}

bool every_kind(CollectiveKind) {
  return true;
}

std::vector<Transfer> no_transfers(const MembersByNode&, CollectiveKind, double) {
  return {};
}

std::vector<Transfer> any_transfers(const MembersByNode& nodes, CollectiveKind kind, double size) {
  return goes_round(kind) ? ring_transfers(nodes, kind, size) : direct_transfers(nodes, kind, size);
}

constexpr CollectiveAlgorithm kAlgorithms[] = {
    {"ring", goes_round, ring_transfers},
    {"hierarchical", reduces_or_gathers, hierarchical_transfers},
    {"tree", all_reduce, tree_transfers},
    {"nvls", all_reduce, nvls_transfers},
    {"nvls-tree", all_reduce, nvls_tree_transfers},
    {"collnet", all_reduce, collnet_transfers},
    {"halving-doubling", all_reduce, halving_doubling_transfers},
    {"pat", gathers, pat_transfers},
    {"direct", pairs, direct_transfers},
    {"pairwise", all_to_all, direct_transfers},
    {"any", every_kind, any_transfers},
    {"none", every_kind, no_transfers},
};

MembersByNode by_node(const Cluster& cluster, std::span<const DeviceId> members) {
  std::vector<DeviceId> sorted(members.begin(), members.end());
  std::ranges::sort(sorted);
  SC_CHECK(std::ranges::adjacent_find(sorted) == sorted.end(), "a GPU is a member once");
  MembersByNode nodes;
  std::unordered_map<int, std::size_t> places;  // index in `nodes`, by server
  for (const DeviceId member : members) {
    const auto [place, is_new] = places.try_emplace(cluster.node_of(member), nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[place->second].push_back(member);
  }
  return nodes;
}

}  // namespace

std::span<const CollectiveAlgorithm> collective_algorithms() {
  return kAlgorithms;
}

std::vector<Transfer> collective_transfers(const Cluster& cluster, std::span<const DeviceId> members,
                                           CollectiveKind kind, std::string_view algorithm, Bytes size) {
  SC_CHECK(size >= Bytes(0), "a collective moves no negative bytes");
  if (members.size() < 2 || size == Bytes(0)) return {};
  const auto found = std::ranges::find(kAlgorithms, algorithm, &CollectiveAlgorithm::name);
  SC_CHECK(found != std::end(kAlgorithms), "an algorithm is one of the table");
  SC_CHECK(found->serves(kind), "an algorithm serves the kind of its collective");
  const MembersByNode nodes = by_node(cluster, members);
  std::vector<Transfer> transfers = found->transfers(nodes, kind, static_cast<double>(size.count()));
  if (reduces_or_gathers(kind))
    for (const std::vector<DeviceId>& node : nodes) spread_over_mesh(cluster, node, transfers);
  return transfers;
}

}  // namespace stagecraft
