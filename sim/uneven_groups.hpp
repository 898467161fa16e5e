// A note on groups that lie unevenly over NVLink domains, and on the domain size that would make them even.
//
// In a group that lies 8 + 56 over two domains of 72 GPUs, all traffic between the two parts uses 8 NICs.
// Partly used domains waste GPUs, but often cost less than that.
#pragma once

#include <optional>
#include <string>

#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// A note on uneven groups of experts; otherwise of tensor or context ranks; otherwise of data groups with
// less than half as many ranks in one domain as in another. nullopt where there are none, where nodes differ,
// or without NVLink domains. Names the largest even domain of at least half the nodes of one.
[[nodiscard]] std::optional<std::string> word_on_uneven_groups(const Scenario& scenario,
                                                               const ParallelPlan& plan);

}  // namespace stagecraft
