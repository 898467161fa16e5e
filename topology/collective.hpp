// Cost of a collective or a message on an otherwise idle network (closed form).
//
// Size S follows nccl-tests: the whole buffer of an all-reduce, an all-to-all or a broadcast, the whole
// output of an all-gather, the whole input of a reduce-scatter, one message of a send-receive (each rank to
// its neighbour in a ring). n ranks lie on N nodes, r of them on each, g such groups on a node at the same
// time. Groups of one and sizes of 0 cost nothing. For an uneven group r is, inside a node, that of the
// fullest node and, between nodes, that of the emptiest, k: traffic leaves a node through the k NICs there.
// The ranks of the emptiest node send the most in an all-to-all, (n-k)/n*S each. Trees take the emptiest node
// to be the busiest.
//
//   in a node    t = a + S*f/B + c*sqrt(S), f the bus factor; a, B and c are the profile's fit for (kind, n),
//                stretched to go through the points of its curve where the profile keeps them.
//                Between fitted group sizes a, B and c are linear in log2 n, beyond them those of the nearest
//                size hold. A kind without fits follows from all-reduce: the same B, and half of a and c for
//                the one-way kinds, so that reduce-scatter and all-gather together make one all-reduce. Where
//                fits of several algorithms exist, NVLS runs from the size on at which NCCL's own estimate
//                prefers it (nccl_model.hpp) and below that the fastest; a fit of NVLS serves only the ranks
//                between its rows and no other kind. A profile without any fit: 12 us + S*f/(0.78 NVLink) + 8
//                ns * sqrt(S). Where the node's NVLink rate is not the one that the fits were made on, B
//                scales; in a mesh of NVLinks it is the rate of a GPU's links to the others of the group.
//   over nodes   t = a + c*sqrt(S) of the r ranks in a node + network latency + bytes + filling + root,
//                bytes = max(S*f(r)/B(r), network bytes),
//                filling of the two trees = (steps - 1) * min(S, chunk) * g/(efficiency * W),
//                root = 2*sqrt(chunking * steps * step_latency * bytes).
//                NCCL pipelines the tiers, so their bytes overlap and their latencies add. A node of a tree
//                passes a chunk on when it has the whole of it, so that the first one is paid for at each
//                step; NVLSTree's is 8 MiB from 4 nodes on: 16 channels * 8 GPUs * 64 KiB. The root is what
//                chunks cost whose size follows S. Fabrics that describe training leave both out.
//   bytes        of the network: g * E / (efficiency * W); W is the node's network, but never more than its
//                r*g senders get through their own NICs, of an uneven group k senders' part of that (r*g of
//                the fullest node, at most its GPUs), and where all its GPUs send, as much as the NIC that
//                serves most of them lets each have; where the NIC of a rank serves several groups (rails of
//                an uneven group), as many times as long; efficiency is collective_efficiency times a share,
//                and where r = 1 rail_efficiency: what enters a node by a NIC leaves it by the same one.
//                Where several groups of r > 1 lie in a node, crossing_efficiency: their ranks are not
//                neighbours, so that a ring comes in by one NIC, goes out by another and crosses the rails. A
//                group that has the node to itself has a neighbour at the same NIC to go out by.
//   latency      of the network: collective_latency + step_latency * steps; of a send-receive that of a
//                message.
//
//                algorithm  kinds            E of each group             steps              share
//                ring       all-reduce       2(n-1)/n*S                  2(N-1)             1
//                           gather, scatter  (n-1)/n*S                   N-1                1
//                           broadcast        S                           N-1                1
//                tree       all-reduce       S on 2 nodes, 3S/2 on 3,    2*ceil(log2 N)     0.92; 1 on 2
//                                            2S on more
//                nvls-tree  all-reduce       as tree                     2*ceil(log2 N)     1
//                collnet    all-reduce       S                           2                  1
//                pat        gather, scatter  (n-1)/n*S                   log2(N)/3.5 + n/5  0.375
//                direct     all-to-all       r*S*(n-r)/n                 N-1                1
//                           send-receive     S                           0                  1
//
//                The fastest that is there runs, as in NCCL: nvls-tree in place of the ring on Hopper and
//                later with more than two ranks on each node (its bytes in the node are those of NVLS),
//                collnet where the fabric's switches add (`sharp`), pat with one GPU per node. Where uplinks
//                are oversubscribed, the bytes take at least U / (efficiency * uplinks), U what all groups of
//                the kind in the job send out of the leaf that has most to send (uplink_table.hpp): E of each
//                ring that leaves it, S/2 for each edge of a tree, S/n for each pair of an all-to-all.
//                node_efficiency is what B leaves a GPU's link to carry of its capacity: B/NVLink of a ring.
//
//   source       f: nccl-tests PERFORMANCE.md. Steps and shares: NCCL 2.28.9 src/graph/tuning.cc; chunks of
//                NVLSTree: src/enqueue.cc since 2.19.3. Bytes of
//                the two trees: collective_transfers.hpp. Chunks: Sanders, Speck and Träff (2009). The
//                default fit: 8 H100 through XLA's collective tables (12 us, 0.78, 8 ns).
//                Constants of a fabric: its YAML file says where from.
//   not in it    NVLS for gathers (with SHARP only), multi-node fits of a profile: they were measured on
//                somebody's fabric, and the fabric of the scenario decides here. How well it foretells
//                published curves: docs/accuracy.md.
#pragma once

#include <string_view>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "topology/cluster.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

// One collective of one group. It only refers to what it is made of, and lives no longer than a call.
struct CollectiveRequest {
  const Cluster& cluster;
  const HardwareProfile& profile;
  DeviceId member;  // any GPU of the group: its NICs and NVLinks are used
  const GroupPlacement& group;
  CollectiveKind kind;
  Bytes size;
};

struct CollectiveCost {
  Duration time{};
  Duration transfer{};  // the transfer within `time`, which grows where links are shared; the rest is latency
  // How long links inside nodes, and those between them, are busy with it: the longer of the two is `transfer`.
  Duration in_node{}, between_nodes{};
  // One of collective_algorithms() (collective_transfers.hpp), "none", "direct" for all-to-all and messages,
  // or "any": NCCL's own choice when the fit was measured.
  std::string_view algorithm = "none";
  // One standard deviation, from the profile; 0 for messages, which no profile describes.
  double relative_spread = 0;
  Provenance provenance = Provenance::kAnalytic;
  // Payload over raw capacity that the bytes assume, of the links between nodes and of those inside one: a
  // link that carries L bytes of the algorithm is in use for L / (efficiency * capacity). 1 where it sends
  // none.
  double network_efficiency = 1;
  double node_efficiency = 1;
};

// In a group over different nodes ask one member of each kind and take the slowest. throws InternalError on a
// negative size or an impossible placement.
[[nodiscard]] CollectiveCost collective_cost(const CollectiveRequest& request);

// A message of `size` from each of `concurrent` GPUs of one node to its peer at the same time (the tensor
// ranks of a stage).
//
//   same node    two NVLink hops + S / (kCopyShare * NVLink), whoever else sends: the NVSwitch has room for
//                all. In a mesh NVLink is a pair's.
//   other node   point_to_point_latency + switch_latency per switch + S / (point_to_point_efficiency *
//                share); the share is the node's network over `concurrent`, but at most the GPU's own NIC.
//                The slower end decides, or `beyond_leaf`, where given: what the uplinks on the way leave to
//                each message.
//   throws       InternalError on a negative size or concurrent < 1.
[[nodiscard]] CollectiveCost message_cost(const Cluster& cluster, DeviceId from, DeviceId to, Bytes size,
                                          int concurrent, std::optional<Bandwidth> beyond_leaf = {});

}  // namespace stagecraft
