// What the GPUs of a node offload, and what the node has.
#pragma once

#include <span>

#include "sim/lower/memory_ledger.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// The host memory of the node that is filled most; where no node says what it has, of the one that gets most.
// GPU r of the cluster is rank r of the plan. {} where nothing is offloaded.
//   requires  `stages` by pipeline rank; ranks behind its end keep nothing.
[[nodiscard]] HostMemory host_memory(std::span<const StageMemory> stages, const ParallelPlan& plan,
                                     const ClusterSpec& cluster);

}  // namespace stagecraft
