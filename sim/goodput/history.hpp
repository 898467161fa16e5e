// All incidents of one repeat, from the failure processes of a scenario.
//
// The draws of a node are its own: another node more, another policy, another order of events change none of
// them, and a longer horizon only adds incidents. Processes that hit the cluster as a whole (weibull-cluster,
// maintenance, counts) choose among the nodes that are up, by a stream of their own for each event. A node
// that is down does not fail; its clocks start anew when it is back.
//
//   source   docs/resilience.md, sections 1 (random streams, order) and 2 (laws).
#pragma once

#include <cstdint>

#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/incident.hpp"

namespace stagecraft {

// nodes >= 1: the job's and its spares, of which there are `spares` < nodes. Laws of the size of the job do not
// count these. The same bits for the same arguments, on any thread.
//   throws InternalError on what the loader refuses (negative rates, no causes, shares that do not add up to
//   1).
[[nodiscard]] History history_of(const FailureSpec& spec, int nodes, std::uint64_t seed, int repeat,
                                 int spares = 0);

}  // namespace stagecraft
