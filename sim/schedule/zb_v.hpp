// ZB-V, the hand-crafted order: two chunks a rank, down the pipeline and back up, and a split backward.
//
// Since the first and the last stage share rank 0, a micro-batch returns to its origin, and every rank holds
// the same amount. The memory is that of 1F1B, and no rank idles between its first and last pass. This holds
// where F, I and W last equally long; for unequal times a fitted order is better.
//
//   rank     in [0, p); chunk 0 is stage rank, chunk 1 stage 2p-1-rank.
//   returns  6*m actions; made for max(m, 2p-1) micro-batches, and the passes of those beyond m dropped.
//   bound    2p chunk activations are live at once, freed at W.
//   source   Qi et al., arXiv 2401.10241, section 6 and appendix; order of the authors' handcrafted_zb_v.py
//            (sail-sg/zero-bubble-pipeline-parallelism, tag zero-bubble-v0.1.0).
//   throws   InternalError on a shape that zb_v_constraint refuses, or a rank outside the shape.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt for any m >= 1 with two chunks a rank and no group.
[[nodiscard]] std::optional<ScheduleProblem> zb_v_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> zb_v(const PipelineShape& shape, int rank);

}  // namespace stagecraft
