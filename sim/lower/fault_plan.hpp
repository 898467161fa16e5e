// Which pipelines faults make unlike the others, and what changes when.
//
// Without faults one simulated pipeline stands for all data replicas. A slow or dead GPU makes its replica
// another one, and those that exchange experts with it inside their passes: they are simulated apart, as one
// copy, and the rest as another. Tensor and context ranks of a GPU meet it inside every pass, so a pass of
// theirs lasts as long as on the slowest of them: all of it, its communication as well, which says too much
// where that is long. Reductions, gathers and messages do not compute and keep their speed.
//
// A dead GPU stops what runs on its rank, and the collectives of all copies of that rank: they have lost a
// member.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/plan/fault_spec.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {

// The speed of a rank from `time` on, until the next for the same copy and rank.
struct RankSpeed {
  Duration time{};
  int copy = 0;
  int rank = 0;      // pipeline rank
  double speed = 1;  // of its passes; 0 = dead
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
  std::vector<std::vector<int>> copies;  // data replicas that each stands for: those with faults first
  std::vector<RankSpeed> speeds;         // ascending by time
  std::vector<LinkShareChange> links;    // ascending by time
};

// `unfold`: every replica is a copy. `cluster`: where links are named; may be null without degraded links.
//   requires  ranks of the plan, names that mean links.
[[nodiscard]] FaultPlan plan_faults(std::span<const FaultSpec> faults, const ParallelPlan& plan,
                                    const Cluster* cluster, bool unfold);

}  // namespace stagecraft
