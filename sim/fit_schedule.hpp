// Demands of an order on a placement beyond its own constraints: recompute passes, and iterations that
// overlap.
#pragma once

#include "base/diagnostic.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// Notes in the plan which stages the order makes again by passes of its own; of such an order the other
// stages repeat nothing. Refuses
//
//   recompute passes    of some micro-batches of a stage and not of others; without training.recompute: full,
//                       whose layers they make again; with ZeRO 2 and 3, whose passes are cut into units; of
//                       layers of multi-token prediction
//   no flush            with ZeRO: a step that no rank waits for has no place to gather weights
//   several iterations  on shared links, and with faults
void fit_schedule(const Scenario& scenario, const Schedule& schedule, ParallelPlan& plan,
                  Diagnostics& diagnostics);

}  // namespace stagecraft
