// What a collective or a message costs on an otherwise idle network (closed form).
//
// Size S is in nccl-tests' convention: whole buffer of an all-reduce, an all-to-all or a broadcast, whole
// output of an all-gather, whole input of a reduce-scatter, one message of a send-receive (each rank to its
// neighbour in a ring). n ranks on N nodes, r of them on each, g such groups on a node at the same time.
// Groups of one and sizes of 0 cost nothing.
//
//   in a node    t = a + S*f/B + c*sqrt(S), f the bus factor; a, B and c are the profile's fit for (kind, n).
//                Between fitted group sizes a, B and c are linear in log2 n, beyond them those of the nearest
//                size hold. A kind without fits follows from all-reduce: the same B, and half of a and c for
//                the one-way kinds, so that reduce-scatter and all-gather together make one all-reduce. Where
//                fits of several algorithms exist the fastest runs, as in NCCL; a fit of NVLS serves only the
//                sizes between its rows and no other kind. A profile without any fit: 12 us + S*f/(0.78
//                NVLink) + 8 ns * sqrt(S/B). Where the node's NVLink rate is not the one that the fits were
//                made on, B scales with it.
//   over nodes   t = a + c*sqrt(S) of the r ranks in a node + network latency + max(S*f(r)/B(r), network
//   bytes):
//                NCCL pipelines the tiers, so their bytes overlap and their latencies add.
//   network bytes   g * E / (collective_efficiency * W); W is the node's network, but never more than its r*g
//   senders get
//                through their own NICs; E leaves the node for each group: ring all-reduce 2(N-1)/N*S,
//                all-gather and reduce-scatter half of it, tree all-reduce 2S/0.92, all-to-all r*S*(n-r)/n,
//                broadcast and send-receive S. Only all-to-all feels oversubscription: E is then also at
//                least o * r*S*(n-r*L)/n with L nodes below a leaf; a ring crosses each uplink once.
//   network latency collective_latency + step_latency * steps: ring 2(N-1), tree 2*ceil(log2 N), one-way
//   kinds N-1. The
//                all-reduce takes ring or tree, whichever is done first. Send-receive: the constants of a
//                message.
//   source       fits, hierarchical bound, NIC shares: nccl-tests PERFORMANCE.md for f; NCCL 2.28.9
//   src/graph/tuning.cc for
//                steps of ring and tree, the tree's two passes at 0.92 of the bus rate, NVLS for all-reduce
//                alone and the choice by least time. The default fit: 8 H100 through XLA's collective tables
//                (12 us, 0.78, 8 ns). collective_efficiency and latencies of a fabric: its YAML file says
//                where from.
//   not in it    NCCL's PAT (gathers with one GPU per node), CollNet/SHARP, multi-node fits of a profile:
//   they were
//                measured on somebody's fabric, and the fabric of the scenario decides here.
#pragma once

#include <string_view>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "topology/cluster.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

struct CollectiveCost {
  Duration time{};
  Duration transfer{};  // of `time`: the bytes, which take longer where links are shared; the rest is latency
  // "none", "ring", "tree", "nvls", "direct" (all-to-all, messages), or "any": what NCCL chose when the fit
  // was measured.
  std::string_view algorithm = "none";
  double relative_spread =
      0;  // one standard deviation, from the profile; 0 for messages, which no profile describes
  Provenance provenance = Provenance::kAnalytic;
  // Payload over raw capacity that the bytes assume, of the links between nodes and of those inside one: a
  // link that carries L bytes of the algorithm is in use for L / (efficiency * capacity). 1 where it sends
  // none.
  double network_efficiency = 1;
  double node_efficiency = 1;
};

// `member` is any GPU of the group: it says whose NICs and NVLinks are used. In a group over unlike nodes ask
// one member of each kind and take the slowest. throws InternalError on a negative size or an impossible
// placement.
[[nodiscard]] CollectiveCost collective_cost(const Cluster& cluster, const HardwareProfile& profile,
                                             DeviceId member, const GroupPlacement& group,
                                             CollectiveKind kind, Bytes size);

// A message of `size` from each of `concurrent` GPUs of one node to its peer at the same time (the tensor
// ranks of a stage).
//
//   same node    two NVLink hops + S / (0.87 * NVLink), whoever else sends: the NVSwitch has room for all.
//   other node   point_to_point_latency + switch_latency per switch + S / (point_to_point_efficiency *
//   share); the share is
//                the node's network over `concurrent`, but at most the GPU's own NIC. The slower end decides.
//   source       0.87: copies between GPU pairs reach 274 of 300 GB/s on A100, 376 of 450 on H100 and 396 of
//   450 on H200
//                (stas00/ml-engineering, network/README.md); PCIe 5 copies 55.4 of 63 (the same).
//   throws       InternalError on a negative size or concurrent < 1.
[[nodiscard]] CollectiveCost message_cost(const Cluster& cluster, DeviceId from, DeviceId to, Bytes size,
                                          int concurrent);

}  // namespace stagecraft
