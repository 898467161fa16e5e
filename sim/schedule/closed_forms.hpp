// Closed forms of a schedule: its bubble and the activations that it holds.
//
// Assumptions: equal stages, messages without cost, and fused pairs that last the sum of their passes. Per
// chunk: F, I, W of one chunk, B = I + W. A form returns nullopt outside the sizes and costs for which it is
// known to be exact. A test compares each with the order itself over its whole range.
//
//   bubble   makespan - ideal.
//   peak     the most chunk activations that a rank holds, as peak_in_flight counts them.
//   source   each function's own; "checked" means found by playing orders, and then for all sizes tried.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// F = I = W, for which several forms are known.
[[nodiscard]] bool passes_alike(const StageCosts& costs);

using Bubble64 = std::optional<std::int64_t>;

// GPipe, 1F1B, and interleaved 1F1B, whose chunks last a v-th: (p-1)(F+B) for every m. Narayanan et al.,
// SC'21, sections 2.2 and 2.2.2.
[[nodiscard]] Bubble64 fill_and_drain_bubble(const PipelineShape& shape, const StageCosts& costs);
// m v of GPipe and Looped BFS.
[[nodiscard]] std::optional<int> all_micro_batches_peak(const PipelineShape& shape, int rank);
[[nodiscard]] std::optional<int> one_f_one_b_peak(const PipelineShape& shape, int rank);

[[nodiscard]] std::optional<int> interleaved_peak(const PipelineShape& shape, int rank);
// (v-1)(p-m)(F+B) more where m < p; of Looped BFS as well. Checked.
[[nodiscard]] Bubble64 interleaved_pytorch_bubble(const PipelineShape& shape, const StageCosts& costs);
[[nodiscard]] std::optional<int> interleaved_pytorch_peak(const PipelineShape& shape, int rank);
// 2(p-1) + (v-1)(p-g) passes at F = I = W, where g divides m and m >= p. Checked.
[[nodiscard]] Bubble64 interleaved_group_bubble(const PipelineShape& shape, const StageCosts& costs);
[[nodiscard]] std::optional<int> interleaved_group_peak(const PipelineShape& shape, int rank);

// (p-1)(F+I) - (min(m,p)-1) min(F,I,W); for m >= p and W <= F, I the published (p-1)(F+I-W). Qi et al., arXiv
// 2401.10241, table 2; the general form checked.
[[nodiscard]] Bubble64 zb_h1_bubble(const PipelineShape& shape, const StageCosts& costs);
[[nodiscard]] std::optional<int> zb_h1_peak(const PipelineShape& shape, int rank);
// (p-1)(F+I-min(F,I,W)) for m >= p. Checked.
[[nodiscard]] Bubble64 interleaved_zb_bubble(const PipelineShape& shape, const StageCosts& costs);
[[nodiscard]] std::optional<int> interleaved_zb_peak(const PipelineShape& shape, int rank);
// zb-v, zb-h2, zb-2p: p-1 passes at F = I = W and m >= 2p-1, all of it the skew between the ranks. Qi et al.,
// arXiv 2401.10241; checked.
[[nodiscard]] Bubble64 zb_skew_bubble(const PipelineShape& shape, const StageCosts& costs);
[[nodiscard]] std::optional<int> zb_v_peak(const PipelineShape& shape, int rank);

// (p/2-1)([FB]+B-3W) with p/2 legs of ranks for DualPipe, p for DualPipeV. deepseek-ai/DualPipe, README;
// exact at F = I >= W, an upper bound elsewhere (checked).
[[nodiscard]] Bubble64 dual_pipe_bubble(const PipelineShape& shape, const StageCosts& costs);
[[nodiscard]] std::optional<int> dual_pipe_peak(const PipelineShape& shape, int rank);
[[nodiscard]] Bubble64 dual_pipe_v_bubble(const PipelineShape& shape, const StageCosts& costs);
[[nodiscard]] std::optional<int> dual_pipe_v_peak(const PipelineShape& shape, int rank);

// F = B: (p-2)F; B = 2F: (p-2)(m/p+1)F. Checked.
[[nodiscard]] Bubble64 chimera_bubble(const PipelineShape& shape, const StageCosts& costs);
[[nodiscard]] std::optional<int> chimera_peak(const PipelineShape& shape, int rank);

// Recomputed activations of one micro-batch, ever.
[[nodiscard]] std::optional<int> varuna_peak(const PipelineShape& shape, int rank);

// No bubble in the steady state: the period is the work of the busiest rank.
[[nodiscard]] Bubble64 no_bubble(const PipelineShape& shape, const StageCosts& costs);

}  // namespace stagecraft
