// The processes by their effect on the fleet; each is the law of one entry of `failures.process`.
#pragma once

#include <memory>

#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/processes/fleet.hpp"
#include "sim/goodput/processes/process.hpp"

namespace stagecraft {

// `number`: of the entry in FailureSpec::processes. The process writes to `fleet` and must not outlive it.
[[nodiscard]] std::unique_ptr<Process> make_process(const FailureSpec& spec, int number, Fleet& fleet);

// r·(N/reference)^exponent, per node and day of a job of N nodes, its spares not counted.
[[nodiscard]] double effective_rate(const ExponentialFailures& law, int nodes);
// A node's rate after an incident over that before; 1 of laws that know no lemons.
[[nodiscard]] double lemon_factor(const FailureLaw& law);

// Incidents a day of `nodes`, at most, lemons aside; those of a trace are bounded by its length.
[[nodiscard]] double most_incidents_per_day(const FailureLaw& law, int nodes);

// Do its failures need repairs?
[[nodiscard]] bool breaks_nodes(const FailureLaw& law);

// Does the law announce its removals? These need no detection.
[[nodiscard]] bool is_announced(const FailureLaw& law);

// Does the law say which nodes there are? Then none is there at the start but those that it adds.
[[nodiscard]] bool says_who_is_there(const FailureLaw& law);

}  // namespace stagecraft
