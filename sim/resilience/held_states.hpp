// Holders of each state of a job: the states that a peer can give to a node that has lost its own.
//
//   state   weights and optimizer of the dense part of a pipeline rank, as a tensor rank has it; and of its
//           experts, as a rank of the expert mesh has them. From ZeRO 1 on each shard of them, by its position
//           among those that share a copy, is a state of its own.
//   unit    whoever is lost and comes back as one: a node, or a replica
//   source  who shares what: sim/plan/parallel_plan.hpp.
#pragma once

#include <optional>
#include <vector>

#include "models/model_spec.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// For each state the units that hold it, ascending.
using Holders = std::vector<std::vector<int>>;

struct JobStates {
  const ModelSpec& model;
  const ParallelPlan& plan;
  int zero_stage = 0;
};

// Holders by node; node i has node_gpus[i] GPUs, in the order of the ranks. GPUs beyond the plan hold
// nothing.
[[nodiscard]] Holders held_by_nodes(const JobStates& job, const std::vector<int>& node_gpus);
// Holders by data replica; `side_by_side` replicas are lost together.
[[nodiscard]] Holders held_by_replicas(const JobStates& job, int side_by_side);

// The most data replicas that are lost with the same nodes, which have `node_gpus` GPUs in the order of the
// ranks: those with ranks on one node, and those that share further nodes with these.
[[nodiscard]] int replicas_lost_together(const ParallelPlan& plan, int node_gpus);

// The first unit with a state that no other has; nullopt: each has peers.
[[nodiscard]] std::optional<int> without_peer(const Holders& holders);
// Does each of `units` units have all states?
[[nodiscard]] bool are_copies(const Holders& holders, int units);

}  // namespace stagecraft
