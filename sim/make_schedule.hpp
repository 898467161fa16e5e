// The order of passes of a scenario: from a file, or of a kind of schedule; some are fitted to the costs of
// the passes.
#pragma once

#include <optional>

#include "base/diagnostic.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// Placement of the chunks of a rank.
[[nodiscard]] Placement placement_of(const Scenario& scenario);

// nullopt, with an error, where the schedule does not allow the plan's sizes.
[[nodiscard]] std::optional<Schedule> make_schedule(const Scenario& scenario, const ParallelPlan& plan,
                                                    Diagnostics& diagnostics);

}  // namespace stagecraft
