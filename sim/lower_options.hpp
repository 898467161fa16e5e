// Options for lowering a scenario: overlap, the time of optimizer steps, and the slowdown of passes by
// overlapped traffic.
#pragma once

#include "sim/lower/lower.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// The options for one folded copy on links of its own, without faults.
[[nodiscard]] LowerOptions lower_options(const Scenario& scenario, const Schedule& schedule,
                                         const IterationPrices& prices);

}  // namespace stagecraft
