// Transfers of collective algorithms: bytes from GPU to GPU over the whole collective.
//
// Channels, chunks and steps are summed. An algorithm that spreads its channels over the GPUs of a node is a
// list in which every GPU has its share. Rings, trees and rails use the members in the order given, those of
// one node next to each other, so a ring crosses each boundary between nodes once per channel. Bytes are
// conserved: every byte that a GPU sends, another receives. Switches that add and multicast (NVLS, CollNet)
// receive S from each port and send S to each port; a transfer of S from each member to the next loads the
// links equally.
//
// n members on N nodes, r of them on one; f = bus_factor(kind, n), the bytes that a rank sends per byte of S.
//
//   ring              f(n)*S from each to the next: inside a node in all channels but the one that leaves
//                     there, between nodes 1/r of it on each of r rails. A broadcast starts at the first
//                     member and does not return to it.
//   hierarchical      f(r)*S around each node, f(N)*S/r around each rail: a 2D ring.
//   tree              S/2 up and down each edge of two trees over the nodes, 1/r of it on each rail; chains
//                     in a node, (r-1)/r*S up and down between neighbours. All-reduce alone, as the next
//                     four.
//   nvls              S into the NVSwitch and S out of it. One node.
//   nvls-tree         nvls in every node and the two trees between them.
//   collnet           f(r)*S around each node; the fabric's switches take S/r from each rail and give it back
//                     (SHARP).
//   halving-doubling  S/2 with the nearest partner, S/4 with one at twice the distance and so on, and the way
//                     back; members beyond a power of two give S to a partner first and get it back last.
//   pat               all-gather and reduce-scatter: 2^j hops away go the blocks whose last hop is that long,
//                     far ones first: (n-1)/n*S from each.
//   direct, pairwise  all-to-all: S/n from each to each, at once or in n-1 rounds. Send-receive: S from each
//                     to the next.
//   any               what a fit does not say: the ring, or direct.
//   none              nothing.
//
//   source  ring, tree, nvls, collnet, PAT: NCCL 2.28.9; two trees: Sanders, Speck and Träff (Parallel
//           Computing 35, 2009); halving-doubling: Thakur, Rabenseifner and Gropp (IJHPCA 19, 2005); PAT:
//           Jeaugey (arXiv 2506.20252); bytes a rank sends: nccl-tests PERFORMANCE.md.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {

struct Transfer {
  DeviceId from;
  DeviceId to;
  double bytes = 0;
};

// Members of a group by node, in the order in which they were given.
using MembersByNode = std::vector<std::vector<DeviceId>>;

struct CollectiveAlgorithm {
  std::string_view name;
  bool (*serves)(CollectiveKind);
  std::vector<Transfer> (*transfers)(const MembersByNode&, CollectiveKind, double size);
};

// All algorithms; the names are those of CollectiveCost::algorithm.
[[nodiscard]] std::span<const CollectiveAlgorithm> collective_algorithms();

// Transfers of at least one byte's share; empty for a group of one or no bytes. A pair may be listed more
// than once.
//
//   throws  InternalError on an unknown algorithm, one that does not serve `kind`, a negative size, nvls over
//           nodes, or a GPU that is a member twice.
[[nodiscard]] std::vector<Transfer> collective_transfers(const Cluster& cluster,
                                                         std::span<const DeviceId> members,
                                                         CollectiveKind kind, std::string_view algorithm,
                                                         Bytes size);

// The two trees over `nodes` nodes: parent[i] of node i, -1 at the root. A leaf of one tree is an inner node
// of the other, so that together they load each node's links in both directions equally.
[[nodiscard]] std::array<std::vector<int>, 2> double_tree(int nodes);

}  // namespace stagecraft
