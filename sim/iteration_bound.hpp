// Lower bound of an iteration, computed from its prices without a run.
//
//   For every pipeline rank r, with the stages s that it holds (of a copy c each):
//
//     T >= head(r) + busy(r) + tail(r),    and the iteration >= max over r of T(r) + step
//
//     busy(r)  all passes of all its micro-batches: its compute stream runs one at a time, and cutting a pass
//              into segments, or slowing it down by traffic beside it, never shortens it
//     head(r)  its first pass is a forward of some s that it holds, which waits for the forwards of stages
//              0..s-1 of that micro-batch and for the messages between them; the least over its stages
//     tail(r)  where backwards are whole, its last pass is the backward of some s that it holds, behind which
//              the backwards of s-1..0 of that micro-batch and their messages still come; the least over its
//              stages. Where they are split, the last pass may be a weight gradient, and tail is 0. Where
//              gradients are not reduced beside the backward, all of a rank's reductions follow its last
//              pass, one after another: tail is at least their sum
//     step     norm, optimizer and host of the slowest rank: they wait for all passes of all ranks
//
//   Each term is a chain of tasks, every one of which waits for the end of the one before it, so no run of
//   the task graph is shorter. A fused pair may take less than its passes: then head and tail are 0, and busy
//   is taken at the pair's share.
#pragma once

#include "sim/lower/lower.hpp"
#include "sim/plan/parallel_plan.hpp"

namespace stagecraft {

// 0 where the proof does not hold: several iterations in a row, shared links, steps without a barrier.
[[nodiscard]] Duration iteration_at_least(const ParallelPlan& plan, const Schedule& schedule,
                                          const IterationPrices& prices, const LowerOptions& options);

}  // namespace stagecraft
