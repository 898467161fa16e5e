// Varuna: 1F1B with full recomputation, for slow and jittery networks.
//
// Every rank keeps only the inputs of the micro-batches in flight and runs a forward again (R) before its
// backward, except the last, whose backward follows its forward at once. The order comes from a simulation in
// ticks, which prefers what frees memory: B before R before F.
//
//   A tick is one F, one R, or half a B. At each tick each rank takes, on what the tick before has left, the
//   first that there is of: the second half of its B; a B; an R; an F. F(s,j) then brings F(s+1,j), on the
//   last rank its own B; the first half of B(s,j) brings R(s-1,j); R(s,j) brings B(s,j).
//
//   returns  the orders of all ranks: 3*m actions each, 2*m on the last.
//   bound    one chunk's activations a rank, and the inputs of the micro-batches in flight.
//   source   Athlur et al., EuroSys'22 (arXiv 2111.04007), section 3.2; order of microsoft/varuna,
//            generate_schedule.cc. At run time Varuna skips the R of a micro-batch whose F was the last pass
//            run, and may pull an F ahead of an R whose gradient is late: neither is in the order.
//   throws   InternalError on a shape that varuna_constraint refuses.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt for any m >= 1 with one chunk a rank and no group.
[[nodiscard]] std::optional<ScheduleProblem> varuna_constraint(const PipelineShape& shape);
[[nodiscard]] Schedule varuna(const PipelineShape& shape, const ScheduleCosts& costs);

}  // namespace stagecraft
