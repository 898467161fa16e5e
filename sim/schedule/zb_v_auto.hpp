// ZB-V fitted to the costs: two chunks a rank, down and back in a V, and greedy rules that use the durations
// of the passes. The hand-crafted ZB-V has no bubble only where F = I = W.
//
//   placement  V: rank r holds stages r and 2p-1-r; two chunks; backward split.
//   rules      Warm up in pairs along the V; then in each round one input gradient and one forward a rank,
//              the chunk that is behind first; weight gradients where they fit in front of what has not
//              arrived. All of it is repeated with the idle times of the last try as an allowance while the
//              worst of them falls. Of several variants the order of least span is kept.
//   peak       the memory limit, held until W; 2p chunks (as much as p stages of 1F1B) unless the costs say
//              another.
//   source     Qi et al., "Pipeline Parallelism with Controllable Memory" (arXiv 2405.15362), section 4 and
//              appendix; the rules are those that its published program runs.
#pragma once

#include <optional>

#include "sim/schedule/order_builder.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// The order of least span that the rules give under pipeline.memory_limit; nullopt where they lead nowhere,
// which happens under limits below 2p chunks. requires two chunks and V placement.
[[nodiscard]] std::optional<Schedule> zb_v_auto(const SplitPipeline& pipeline);

// The kind zb-v: the hand-crafted order at equal times without messages; elsewhere, and where the memory
// limit is too low for it, the shorter in span of that order and the one made to measure. requires a legal
// shape and a memory limit of 0, for 2p chunks, or at least 2.
[[nodiscard]] Schedule zb_v_made_to_measure(const PipelineShape& shape, const ScheduleCosts& costs);

}  // namespace stagecraft
