// Looped breadth-first: all micro-batches through chunk 0, then all through chunk 1, and back the same way.
//
// A stage runs all its micro-batches in a row, so fully sharded data parallelism gathers its weights once per
// pass instead of once per group. The price is the memory of GPipe. With more micro-batches than ranks, the
// micro-batches in between hide the message from the last rank back to the first.
//
//   rank     in [0, p).
//   returns  2*m*v actions: for c = 0..v-1 F of stage c*p+rank for all micro-batches; then for c = v-1..0 B,
//            micro-batches descending as PyTorch runs them. Ascending takes as long.
//   bound    m*v chunk activations are live at once.
//   source   Lamy-Poirier, MLSys'23 (arXiv 2211.05953); order of PyTorch's ScheduleLoopedBFS.
//   throws   InternalError on a shape that looped_bfs_constraint refuses, or a rank outside the shape.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt for any m >= 1 and v >= 1; there are no groups.
[[nodiscard]] std::optional<ScheduleProblem> looped_bfs_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> looped_bfs(const PipelineShape& shape, int rank);

}  // namespace stagecraft
