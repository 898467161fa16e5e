// Several iterations of an asynchronous order, as one order that begins and ends.
//
// In the steady state of a pipeline that never drains, a forward that stands behind its backward belongs to
// the next iteration. Unrolled, the first iteration is preceded by the forwards that an iteration before it
// would have run, and the last runs no forward of an iteration that is not there: that is the warm-up and the
// cool-down that the authors' programs have at the two ends of a training run.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// The passes of one rank in iterations that follow each other, cut where its iterations end: one stretch an
// iteration, and of an order that never drains one more in front, with the forwards of the warm-up alone. In
// such a stretch forwards of the next iteration may stand. Micro-batches are numbered as by unrolled().
[[nodiscard]] std::vector<std::vector<Action>> stretches(const Schedule& schedule, int rank, int iterations);

// Micro-batch j of iteration i becomes micro-batch i*m + j (of a bidirectional order by halves, so that each
// keeps its direction); the result drains. For an order that drains already the iterations follow each other,
// each rank in its order and with no barrier between them. requires iterations >= 1 and that the result is no
// longer than an order may be.
[[nodiscard]] Schedule unrolled(const Schedule& schedule, int iterations);

}  // namespace stagecraft
