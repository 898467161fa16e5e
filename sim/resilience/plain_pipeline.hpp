// The pipelines of a scenario as Oobleck's templates are: 1F1B, one stage a rank, each pipeline with a whole
// copy of the model.
//
//   experts  lie on the tensor and context ranks of one pipeline alone, on as many as the scenario's degrees
//            have in common with them. Experts on ranks of other pipelines would be lost with these.
//   order    pipelines side by side; where dense layers and experts would then have their stages on different
//            ranks, the stages' distance is that of all pipelines
//   layers   the caller splits them: it sets `pipeline`, `data`, `stage_layers` and the batch
#pragma once

#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// `plan`: the scenario's.
[[nodiscard]] Scenario plain_pipeline(const Scenario& scenario, const ParallelPlan& plan);

}  // namespace stagecraft
