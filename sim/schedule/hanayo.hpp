// Hanayo: waves down the pipeline and back up, with one copy of the weights.
//
// W waves are v = 2W chunks a rank. Each leg of a wave runs opposite to the leg before it, so a micro-batch
// turns at the ends without a message. The authors published neither code nor a rule, so the order is our own
// list scheduling at the given costs. A free rank takes, of the passes whose input has arrived, either
// backwards before forwards or forwards before backwards: the deepest stage first among forwards, the
// shallowest among backwards. A micro-batch enters once fewer than a cap are in flight. Caps from p to 3p are
// tried with both rules, at the given costs and at equal costs. The shortest order is kept, on ties the one
// that holds least. Published makespans cannot be expected to match.
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
