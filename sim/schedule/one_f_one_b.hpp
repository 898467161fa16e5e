// 1F1B (PipeDream-Flush, DAPPLE): each rank warms up with as many forwards as there are ranks after it, then
// takes turns.
//
// A backward as early as possible frees its activations early, so that the number held depends on the place
// in the pipeline and no longer on the number of micro-batches. The iteration takes as long as GPipe's.
//
//   rank     in [0, p); the last rank has no warm-up.
//   returns  2*m actions: F 0..w-1, then F(w+k) B(k) for k in [0, m-w), then B m-w..m-1, with
//            w = min(p-1-rank, m).
//   bound    min(m, p - rank) forwards are live at once.
//   source   Narayanan et al., SC'21 (arXiv 2104.04473), section 2.2.1; order of Megatron-LM. m < p is legal.
//   throws   InternalError on a shape that one_f_one_b_constraint refuses, or a rank outside the shape.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt for any m >= 1 with one chunk a rank and no group.
[[nodiscard]] std::optional<ScheduleProblem> one_f_one_b_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> one_f_one_b(const PipelineShape& shape, int rank);

}  // namespace stagecraft
