// Several iterations of an asynchronous order, as one order that begins and ends.
//
// In the steady state of a pipeline that never drains, a forward after its backward belongs to the next
// iteration. The unrolled order adds the forwards of the iteration before the first one, and drops those of
// an iteration after the last. These are the warm-up and the cool-down of the authors' programs at the two
// ends of a training run.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// The passes of one rank in iterations that follow each other, cut where its iterations end: one stretch an
// iteration, and of an order that never drains one more in front, with the forwards of the warm-up alone. In
// such a stretch forwards of the next iteration may stand. Micro-batches are numbered as by unrolled().
[[nodiscard]] std::vector<std::vector<Action>> stretches(const Schedule& schedule, int rank, int iterations);

// Micro-batch j of iteration i becomes micro-batch i*m + j (in a bidirectional order by halves, so that each
// keeps its direction). The result drains. For an order that already drains the iterations follow each other,
// each rank in its order and without a barrier. requires iterations >= 1, and a result within the limit on
// the length of an order.
[[nodiscard]] Schedule unrolled(const Schedule& schedule, int iterations);

}  // namespace stagecraft
