// The order of passes that a scenario asks for: of a file, or of a kind of schedule; some are made to the measure
// of what the passes cost.
#pragma once

#include <optional>

#include "base/diagnostic.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// Where it puts the chunks of a rank.
[[nodiscard]] Placement placement_of(const Scenario& scenario);

// nullopt after reporting where the schedule does not take the plan's sizes.
[[nodiscard]] std::optional<Schedule> make_schedule(const Scenario& scenario, const ParallelPlan& plan,
                                                    Diagnostics& diagnostics);

}  // namespace stagecraft
