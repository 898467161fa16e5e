// Memory offloaded by the GPUs of a node, against the memory of the node.
#pragma once

#include <span>

#include "sim/lower/memory_ledger.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// The host memory of the fullest node; where no capacity is given, of the node with the most offloaded bytes.
// GPU r of the cluster is rank r of the plan. {} where nothing is offloaded.
//   requires  `stages` by pipeline rank; ranks behind its end keep nothing.
[[nodiscard]] HostMemory host_memory(std::span<const StageMemory> stages, const ParallelPlan& plan,
                                     const ClusterSpec& cluster);

}  // namespace stagecraft
