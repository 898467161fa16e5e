// A word on groups that lie unevenly over NVLink domains, and on the domain that would make them even.
//
// In a group that lies 8 + 56 over two domains of 72 GPUs, all that the 56 exchange with the 8 goes through 8
// NICs. Domains that are used in part waste GPUs, and often less than that costs.
#pragma once

#include <optional>
#include <string>

#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// A word on uneven groups of experts, else of tensor or context ranks, else on data groups with less than
// half in one domain of what they have in another; nullopt where there are none, or where the scenario has
// unlike nodes or no NVLink domains. Names the largest even domain of at least half the nodes of one.
[[nodiscard]] std::optional<std::string> word_on_uneven_groups(const Scenario& scenario,
                                                               const ParallelPlan& plan);

}  // namespace stagecraft
