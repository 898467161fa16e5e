// Parameters that one GPU of a pipeline rank holds: what memory, gradient traffic and optimizer steps are
// counted from.
//
//   A tied word embedding is held once where first and last stage are one rank (p = 1); with p > 1 each end
//   has its own copy.
#pragma once

#include <cstdint>

#include "models/model_spec.hpp"
#include "sim/plan/parallel_plan.hpp"

namespace stagecraft {

[[nodiscard]] std::int64_t stage_parameters(const TransformerSpec& model, const ParallelPlan& plan,
                                            int stage);
// Of all stages of the rank.
[[nodiscard]] std::int64_t rank_parameters(const TransformerSpec& model, const ParallelPlan& plan, int rank);

}  // namespace stagecraft
