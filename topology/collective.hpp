// What a collective or a message costs on an otherwise idle network (closed form).
//
//   inside a node   t = a + S*factor/B + c*sqrt(S), with the profile's fit for the kind and group size; between fitted group
//                   sizes the constants are interpolated, other kinds follow from all-reduce by their bus factor.
//   over N nodes    latency + max(in-node byte term, NIC byte term): NCCL pipelines the tiers. Every group on a node shares
//                   its NICs: bytes out of a node = groups_per_node * 2(N-1)/N * S for an all-reduce.
//   S is in nccl-tests' convention: whole buffer of an all-reduce, whole output of an all-gather, whole input of a
//   reduce-scatter. Groups of one cost nothing.
#pragma once

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "topology/cluster.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

struct CollectiveCost {
  Duration time{};
  std::string_view algorithm;  // "none", "ring", "tree", "nvls", "hierarchical": what NCCL would run
  double relative_spread = 0;
  Provenance provenance = Provenance::kAnalytic;
};

// Bus factor: bytes each rank sends per byte of S: 2(n-1)/n all-reduce, (n-1)/n gather, scatter and all-to-all, 1 else.
[[nodiscard]] double bus_factor(CollectiveKind kind, int ranks);

// `member` is any GPU of the group: it says whose NICs and NVLinks are used.
[[nodiscard]] CollectiveCost collective_cost(const Cluster& cluster, const HardwareProfile& profile, DeviceId member,
                                             const GroupPlacement& group, CollectiveKind kind, Bytes size);

// A message of `size` from each of `concurrent` GPUs of one node to its peer at the same time (the tensor ranks of a stage).
// Same node: NVLink. Other node: each gets its share of the node's NICs, at most one NIC when NICs are as many as GPUs.
[[nodiscard]] CollectiveCost message_cost(const Cluster& cluster, DeviceId from, DeviceId to, Bytes size, int concurrent);

}  // namespace stagecraft
