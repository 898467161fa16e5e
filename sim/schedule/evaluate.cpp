#include "sim/schedule/evaluate.hpp"

#include <utility>

#include "sim/schedule/play.hpp"

namespace stagecraft {

Evaluation evaluate(const Schedule& schedule, const ScheduleCosts& costs) {
  Play times = play(schedule, costs);
  return {.makespan = times.makespan,
          .span = times.span,
          .busy = std::move(times.busy),
          .peak_in_flight = peak_in_flight(schedule)};
}

}  // namespace stagecraft
