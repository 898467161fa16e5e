// Zero-bubble orders fitted to the costs: greedy rules that use the durations of the passes, the time of a
// message and the memory limit of a rank.
//
//   placement  loop, one chunk a rank; backward split, memory freed at the weight gradient.
//   rules      Warm up with as many forwards as the memory and the way of the first gradient allow. Then each
//              rank alternates a forward and an input gradient; a weight gradient runs where it fits in
//              front of something that has not arrived, or where its memory is needed, and otherwise
//              where waiting would make the rank the worst. Eight variants of the rules are tried and the
//              one of least span is kept.
//   peak       the memory limit: zb-h2 2p-1 chunks, zb-2p 2p, unless the costs say another. zb-2p left to
//              itself counts half a chunk as freed by I where that saves time (W < F or I), as the paper's
//              figures do; then up to 4p chunks wait for their W. A limit given in the costs is kept in the
//              measure of the costs.
//   bubble     F=I=W and m >= 2p-1: none in the span, p-1 passes in the makespan (the fill).
//   source     Qi et al., ICLR'24 (arXiv 2401.10241), section 3.1 and appendix; the rules are those that its
//              published program runs. Table 5 of the paper is reproduced to its four digits.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/schedule/costs.hpp"
#include "sim/schedule/order_builder.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

[[nodiscard]] std::optional<ScheduleProblem> zb_h2_constraint(const PipelineShape& shape);
[[nodiscard]] std::optional<ScheduleProblem> zb_2p_constraint(const PipelineShape& shape);
[[nodiscard]] Schedule zb_h2(const PipelineShape& shape, const ScheduleCosts& costs);
[[nodiscard]] Schedule zb_2p(const PipelineShape& shape, const ScheduleCosts& costs);

// The order of least span that the rules give under pipeline.memory_limit >= 1. requires one chunk, loop.
[[nodiscard]] Schedule zb_auto(const SplitPipeline& pipeline);

}  // namespace stagecraft
