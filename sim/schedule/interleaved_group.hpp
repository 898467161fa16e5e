// Interleaved schedule with small groups and a split backward (PipeOffload).
//
// Interleaving with groups of g <= p micro-batches instead of p: a rank turns to its next chunk sooner and
// holds fewer activations, and pays for that with bubble. The backward is split, so that the previous stage
// gets its gradient before the weight gradient is computed, which allows half the warm-up of interleaved
// 1F1B.
//
//   rank     in [0, p).
//   returns  3*m*v actions. With m padded up to a multiple of g, n = padded m*v steps of chunk_table and
//            w = min((p-1-rank) + (v-1)g, n): F of step 0..w-1, then F(w+k), I(k), W(k) for k in [0, n-w),
//            then I and W of the steps left; the passes of padded micro-batches are dropped.
//   bound    g(v-1) + p - rank chunk activations are live at once, freed at W; exactly so when g divides m
//            and m >= p.
//   source   Wan et al., ICML'25 (PipeOffload, arXiv 2503.01328); order of the authors'
//            sail-sg/zero-bubble-pipeline-parallelism, group_interleaved_1f1b.py.
//   throws   InternalError on a shape that interleaved_group_constraint refuses, or a rank outside the shape.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt when v >= 2 and ceil(p/2) <= g <= p; g defaults to p. Any m >= 1.
[[nodiscard]] std::optional<ScheduleProblem> interleaved_group_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> interleaved_group(const PipelineShape& shape, int rank);

}  // namespace stagecraft
