// The steps of simulate(), for who takes them one by one: a search that has thousands of plans to try keeps
// what they share between the steps; explanations and recovery policies price pieces of a stage. Not for
// others.
#pragma once

#include <optional>

#include "sim/price_iteration.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// The checks of prepare() that need no order of passes, and the placement.
[[nodiscard]] std::optional<ParallelPlan> place(const Scenario& scenario, Diagnostics& diagnostics);

// The order of passes. nullopt after reporting where the schedule does not take the plan's sizes.
[[nodiscard]] std::optional<Schedule> make_schedule(const Scenario& scenario, const ParallelPlan& plan,
                                                    Diagnostics& diagnostics);

// Of one folded copy on links of its own, without faults.
[[nodiscard]] LowerOptions lower_options(const Scenario& scenario, const Schedule& schedule,
                                         const IterationPrices& prices);

// `until_over`: as in LedgerRequest.
[[nodiscard]] MemoryLedger ledger_of(const Scenario& scenario, const ParallelPlan& plan,
                                     const Schedule& schedule, bool until_over = false);

}  // namespace stagecraft
