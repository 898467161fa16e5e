// Splits the data replicas by their faults, and lists the changes of speed over time.
//
// Without faults one simulated pipeline stands for all data replicas. A slow or dead GPU makes its replica
// different, and with it the replicas that exchange expert tokens with it inside their passes. These are
// simulated as one copy, and all other replicas as another. The tensor and context ranks of a GPU meet it
// inside every pass, so their pass lasts as long as on the slowest of them. The slowdown is applied to the
// communication of the pass as well, which overestimates long communication. Reductions, gathers and messages
// do not compute and keep their speed.
//
// A dead GPU stops the tasks of its rank, and the collectives of all copies of that rank, which have lost a
// member.
#pragma once

#include <span>
#include <vector>

#include "sim/plan/fault_spec.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {

// The speed of a rank from `time` on, until the next entry for the same copy and rank.
struct RankSpeed {
  Duration time{};
  int copy = 0;
  int rank = 0;      // pipeline rank
  double speed = 1;  // relative speed of its passes; 0 = dead
  friend bool operator==(const RankSpeed&, const RankSpeed&) = default;
};

// A link has this share of its capacity from `time` on.
struct LinkShareChange {
  Duration time{};
  EdgeId link;
  double share = 1;
  friend bool operator==(const LinkShareChange&, const LinkShareChange&) = default;
};

struct FaultPlan {
  // The data replicas that each copy stands for; copies with faults come first.
  std::vector<std::vector<int>> copies;
  std::vector<RankSpeed> speeds;       // ascending by time
  std::vector<LinkShareChange> links;  // ascending by time
};

// `unfold`: every replica is a copy. `cluster` resolves link names; it may be null without degraded links.
//   requires  ranks of the plan, names that mean links.
[[nodiscard]] FaultPlan plan_faults(std::span<const FaultSpec> faults, const ParallelPlan& plan,
                                    const Cluster* cluster, bool unfold);

}  // namespace stagecraft
