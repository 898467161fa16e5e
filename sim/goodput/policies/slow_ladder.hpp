// Reaction to slow nodes: the cheapest rung of a ladder, by expected cost.
//
//   ignore      a synchronous step takes as long as its slowest replica
//   rebalance   slow replicas get fewer micro-batches: the step lasts max_i nb_i·f_i with Σ nb_i kept, which
//               costs nothing and is done at once
//   exchange    the job moves from the slow nodes to spares, by a checkpoint and a restart: where the time
//               that this is expected to save exceeds its cost
//   restart     the same without spares: the job goes on without the slow nodes, in the best smaller shape,
//               and grows again when nodes are well
//   source      docs/resilience.md, section 6 (FALCON, arXiv 2410.12588: noticed from 10 % on).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "sim/goodput/machines.hpp"
#include "sim/goodput/policies/seats.hpp"
#include "sim/goodput/slowness.hpp"

namespace stagecraft {

struct SlowLadder {
  double notice = 1.1;         // slower than that is noticed
  Duration remaining{};        // expected duration of slowness at its start
  Duration undisturbed{};      // expected time without a failure or a new slow node
  Duration checkpoint_cost{};  // cost of a checkpoint on demand
  bool exchange = true;
  bool restart = false;
  int replica_nodes = 0;           // nodes per replica, on average; 0: nothing to rebalance
  std::int64_t micro_batches = 1;  // micro-batches per replica
  // Absent: places from r·replica_nodes on form replica r, which takes its slowest node's factor.
  SlowReplicas slow_replicas = {};
};

// The seats' nodes that are noticeably slow, in the order in which they became so.
[[nodiscard]] std::vector<int> noticed(const SlowLadder& ladder, const Seats& seats,
                                       const Machines& machines);

// Factor on a step, rebalanced where that helps. `without`: nodes that do not count.
[[nodiscard]] double pace_of(const SlowLadder& ladder, const Seats& seats, const Machines& machines,
                             const std::vector<int>& without = {});

// Does the lower pace save more during `lasting` than the change costs?
[[nodiscard]] bool pays(Duration lasting, double pace, double pace_after, Duration cost);

// The least max_i nb_i·f_i/Nb with Σ nb_i = replicas·Nb, nb_i whole: of `replicas`, those listed are slow.
//   requires at most as many slow ones, each with a factor >= 1; micro_batches >= 1
[[nodiscard]] double rebalanced_pace(const std::vector<double>& slow, int replicas,
                                     std::int64_t micro_batches);

}  // namespace stagecraft
