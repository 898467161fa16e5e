// Steps of simulate() for callers that run them one by one. A search over thousands of plans keeps shared
// results between the steps; explanations and recovery policies price pieces of a stage. Internal. The other
// steps are in make_schedule.hpp, price_iteration.hpp and lower_options.hpp.
#pragma once

#include <optional>

#include "base/diagnostic.hpp"
#include "sim/lower/memory_ledger.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// The checks of prepare() that need no order of passes, and the placement.
[[nodiscard]] std::optional<ParallelPlan> place(const Scenario& scenario, Diagnostics& diagnostics);

// `until_over`: as in LedgerRequest.
[[nodiscard]] MemoryLedger ledger_of(const Scenario& scenario, const ParallelPlan& plan,
                                     const Schedule& schedule, bool until_over = false);

}  // namespace stagecraft
