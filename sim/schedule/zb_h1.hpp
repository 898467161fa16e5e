// ZB-H1 (ZB1P) and its interleaved form: the backward in two halves, the weight gradients held back.
//
// The stage before waits only for the input gradient, so weight gradients can fill idle time: rank r runs
// each of them r input gradients late. Peak activations equal those of 1F1B, and a third of its bubble
// remains when F, I and W last equally long.
//
//   rank     in [0, p).
//   returns  3*n actions, n = m*v: with chunk_table in groups of N (interleaved_pytorch.hpp) and
//            w = min((p-1-rank) + (v-1)N, n): F of step 0..w-1, then F(w+k) I(k) for k in [0, n-w), then the
//            I's left; after the k-th I, if k >= rank, the W of the (k-rank)-th; the W's left at the end.
//   bound    p chunk activations for v = 1 and m >= p, min((v-1)N + p, m*v) for v >= 2, freed at W.
//   source   Qi et al., ICLR'24 (arXiv 2401.10241), section 2; order of PyTorch's
//            ScheduleInterleavedZeroBubble, whose one-chunk form is ZB1P.
//   throws   InternalError on a shape that the constraint refuses, or a rank outside the shape.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt for any m >= 1 with one chunk a rank and no group.
[[nodiscard]] std::optional<ScheduleProblem> zb_h1_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> zb_h1(const PipelineShape& shape, int rank);

// nullopt when v >= 2 and max(1, m div p) divides m; a group cannot be chosen.
[[nodiscard]] std::optional<ScheduleProblem> interleaved_zb_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> interleaved_zb(const PipelineShape& shape, int rank);

}  // namespace stagecraft
