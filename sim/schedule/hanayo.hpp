// Hanayo: waves down the pipeline and back up, with one copy of the weights.
//
// W waves are v = 2W chunks a rank, each leg of a wave in the opposite direction of the one before, so that a
// micro-batch turns at the ends without a message. The authors published neither code nor a rule, so the
// order is ours: list scheduling at the given costs. A rank that is free takes, of the passes whose input is
// there, either backwards before forwards or forwards before backwards; the deepest stage first among
// forwards and the shallowest among backwards. A micro-batch enters once fewer than a cap are in flight. Caps
// from p to 3p are tried with both rules, at the given costs and as if all passes lasted alike, and the
// shortest order is kept, then the one that holds least; no two makespans of others' figures can be expected
// to match it.
//
//   costs    of the passes and the messages; memory_limit, in chunks of a rank, rules orders out as long as
//            one stays below it.
//   returns  the orders of all ranks, 2*m*v actions each, wave placement.
//   source   placement: Liu et al., SC'23 (arXiv 2308.15762), section 3. Order: ours.
//   throws   InternalError on a shape that hanayo_constraint refuses.
#pragma once

#include <optional>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt for any m >= 1 with an even number of chunks a rank and no group.
[[nodiscard]] std::optional<ScheduleProblem> hanayo_constraint(const PipelineShape& shape);
[[nodiscard]] Schedule hanayo(const PipelineShape& shape, const ScheduleCosts& costs);

}  // namespace stagecraft
