// Chimera with two pipelines: one copy of the model down the ranks, one up, half of the micro-batches each.
//
// Each direction fills the bubbles of the other. The price is a second copy of the weights and of their
// gradients, which the ranks r and p-1-r add up at the end.
//
//   Units of p micro-batches, one after the other. Micro-batch i in [0, p/2) of unit u has base 2pu + 2i.
//   Down, number up+i, stage s on rank s: rank r runs F in slot base+r, B in slot base+2p-1-r. Up, number
//   up+p/2+i, stage s on rank p-1-s: F in slot base+p-1-r, B in slot base+p+r. No two passes of a rank share
//   a slot.
//
//   rank     in [0, p).
//   returns  2*m actions in the order of their slots, which is all that the slots are for.
//   bound    p/2 + 1 + min(rank, p-1-rank) chunk activations are live at once.
//   source   Li and Hoefler, SC'21 (arXiv 2107.06925), section 3; order of Shigangli/Chimera,
//            chimera_pipeline_rank.py. Its forward doubling and backward halving are not covered.
//   throws   InternalError on a shape that chimera_constraint refuses, or a rank outside the shape.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt when p is even and divides m, with one chunk a rank (of either direction) and no group.
[[nodiscard]] std::optional<ScheduleProblem> chimera_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> chimera(const PipelineShape& shape, int rank);

}  // namespace stagecraft
