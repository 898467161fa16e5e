// Checks for impossible demands of a job, beyond its keys, its placement and its order. Each check reports
// every mistake that it finds.
#pragma once

#include "base/diagnostic.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Ways between all GPUs, a precision that the devices have, and background traffic that leaves something of
// every link. False where a way is missing: then nothing can be placed or priced.
[[nodiscard]] bool check_cluster(const Scenario& scenario, Diagnostics& diagnostics);

// Each bucket of gradients is a task of its own, and memory is not endless. False where there are too many.
[[nodiscard]] bool check_buckets(const Scenario& scenario, const ParallelPlan& plan,
                                 Diagnostics& diagnostics);

// Faults meet GPUs that there are, and leave something of every link.
void check_faults(const Scenario& scenario, const ParallelPlan& plan, Diagnostics& diagnostics);

}  // namespace stagecraft
