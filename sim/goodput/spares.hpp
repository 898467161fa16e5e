// Number of spares that keep all places of a job filled in 99 % of the time.
//
//   alone     nodes that fail at a constant rate are away independently of each other: a binomial law
//             (closed_forms.hpp, standby_pool).
//   counted   bursts and recorded faults take several at once, failures of weibull-cluster and of nodes with
//             infant mortality come in clusters, and lemons fail more and more often: the 99th percentile over
//             the time of made histories, which have a seed of their own.
//   planned   and as many as maintenance takes at once.
//   without   nodes that never come back, and where a process says which nodes there are.
//
//   source    docs/resilience.md, section 6.
#pragma once

#include "sim/goodput/failure_spec.hpp"

namespace stagecraft {

// Covers nodes away for repair or maintenance, spares included.
[[nodiscard]] int spares_for(const FailureSpec& spec, int nodes);

}  // namespace stagecraft
