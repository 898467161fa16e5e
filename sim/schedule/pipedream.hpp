// Asynchronous pipelines: 1F1B that never drains. There is no bubble, at the price of stale weights.
//
// One iteration of the steady state: while a rank runs the backwards of a batch, its forwards are p-1-rank
// micro-batches ahead, and the last of them belong to the next batch. They run before this batch's optimizer
// step, with weights that are one step old. Each scheme has its own remedy.
//
//   PipeDream-2BW  keeps two versions of the weights: forwards into the next batch and all backwards of this
//                  one use the older, so that a forward and its backward agree; gradients are applied one
//                  step late.
//   PipeMare       keeps one version and lets a backward use newer weights than its forward did, by up to
//                  p-1-rank micro-batches; a running average of the weights' size corrects for it.
//
//   rank     in [0, p).
//   returns  2*m actions: for k in [0, m), F of micro-batch (k + p-1-rank) mod m, then B of micro-batch k. A
//            forward that stands behind its backward belongs to the next iteration; see unrolled().
//   bound    p - rank forwards are live at once, as in 1F1B.
//   source   Narayanan et al., ICML'21 (PipeDream-2BW, arXiv 2006.09503), section 3, order of
//            msr-fiddle/pipedream, branch pipedream_2bw; Yang et al., MLSys'21 (PipeMare, arXiv 1910.05124).
//   throws   InternalError on a shape that the constraint refuses, or a rank outside the shape.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt when m >= p, so that forwards reach into the next batch and no further, with one chunk a rank and
// no group.
[[nodiscard]] std::optional<ScheduleProblem> pipedream_2bw_constraint(const PipelineShape& shape);
[[nodiscard]] std::optional<ScheduleProblem> pipemare_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> steady_one_f_one_b(const PipelineShape& shape, int rank);

}  // namespace stagecraft
