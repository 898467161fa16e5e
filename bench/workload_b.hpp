// Workload B: one ring all-reduce of 1 GiB over N ranks, message by message.
//
// 2(N-1) steps; in each, every rank sends 1/N of the buffer to the next one, as soon as it has sent the piece
// before and received the one that it passes on. Links carry 50 GiB/s and take 1 us each; messages cut
// through, so a path of several links moves the bytes once.
//
//   ring      one link from each rank to the next.
//   switch    an egress and an ingress link per rank: 2 us per message.
//   fat tree  two levels, 8 hosts per leaf, 8 spines, 50 GB/s: the network of workload C (then it is C1).
//
// Nobody is in anybody's way, so it takes 2(N-1) * (1 GiB / N / 50 GiB/s + latency): at N = 1024 on a
// ring 42.0 ms (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69(2), 2009). The same is priced in closed
// form, as a scenario without shared links prices it: in place of 2N(N-1) messages one formula.
#pragma once

#include <cstddef>

#include "calibrate/profile/hardware_profile.hpp"
#include "sim/program/program.hpp"
#include "topology/cluster.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

enum class RingNetwork { kRing, kSwitch, kFatTree };

struct WorkloadB {
  int ranks = 2;  // N
  RingNetwork network = RingNetwork::kRing;
};

// 2N(N-1)
[[nodiscard]] std::size_t task_count(const WorkloadB& workload);
// What the formula above gives, with pieces rounded to bytes and their times to nanoseconds. No fat tree: its
// messages take one of two latencies.
[[nodiscard]] Duration bound(const WorkloadB& workload);

[[nodiscard]] Program build(const WorkloadB& workload);

// N servers of one GPU and one NIC, and a fabric that takes for a step what a message takes of latency.
struct WorkloadBCluster {
  Cluster cluster;
  HardwareProfile profile{};
  GroupPlacement group{};
};
[[nodiscard]] WorkloadBCluster cluster_of(const WorkloadB& workload);
// What collective_cost() says of the all-reduce: bound(), but for the rounding of pieces. No fat tree.
[[nodiscard]] Duration closed_form(const WorkloadBCluster& workload);

}  // namespace stagecraft
