// DualPipe and DualPipeV: forwards and backwards of two streams of micro-batches, run in fused pairs.
//
// A pair overlaps the communication of one pass with the computation of the other. With expert parallelism, a
// single pass would wait for its all-to-alls. DualPipe feeds micro-batches in at both ends and holds two
// copies of the model. DualPipeV is one folded half of it: its first and last stage share rank 0.
//
//   h = p/2, q = min(rank, p-1-rank), n = m/2 for DualPipe (m counts both directions); h = p, q = rank, n = m
//   for DualPipeV. Phase 0 and 1 are the two stages of a rank; F0 is the next forward of phase 0, B1 the next
//   backward of phase 1; a W is the oldest pending weight gradient of either phase.
//
//   rank     in [0, p).
//   returns  1. 2(h-1-q) F0. 2. q+1 times F0 F1. 3. h-1-q times I1 W F1. 4. n-2h+q+1 times (F0;B1) (F1;B0),
//            on the innermost rank the first pair one by one. 5. h-1-q times B1 (F1;B0). 6. q+1 times B1 B0,
//            their second half as I1 I0. 7. h-1-q times W I0. 8. q+1 times W.
//   bound    p+1 (DualPipe) or 2p+1 (DualPipeV) chunk activations are live at once, freed at W.
//   source   DeepSeek-AI, DeepSeek-V3 technical report (arXiv 2412.19437), section 3.2.1; order of
//            deepseek-ai/DualPipe, dualpipe.py and dualpipev.py.
//   throws   InternalError on a shape that the constraint refuses, or a rank outside the shape.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt when p and m are even, m >= 2p, one chunk a rank (of either direction) and no group.
[[nodiscard]] std::optional<ScheduleProblem> dual_pipe_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> dual_pipe(const PipelineShape& shape, int rank);

// nullopt when m >= 2p, two chunks a rank and no group.
[[nodiscard]] std::optional<ScheduleProblem> dual_pipe_v_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> dual_pipe_v(const PipelineShape& shape, int rank);

}  // namespace stagecraft
