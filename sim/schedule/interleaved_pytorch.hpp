// Interleaved 1F1B with PyTorch's choice of group: as many equal rounds as the ranks fit into the
// micro-batches.
//
// Megatron-LM groups p micro-batches and refuses a short last group; PyTorch stretches the groups until they
// are equal, and also runs fewer micro-batches than ranks, at the price of extra bubble.
//
//   rank     in [0, p).
//   returns  2*m*v actions: interleaved's order with groups of N = m / rounds, rounds = max(1, m div p).
//   bound    min(2(p-1-rank) + (v-1)N + 1, m*v) chunk activations are live at once.
//   source   Narayanan et al., SC'21 (arXiv 2104.04473), section 2.2.2; order of PyTorch's
//            ScheduleInterleaved1F1B.
//   throws   InternalError on a shape that interleaved_pytorch_constraint refuses, or a rank outside the
//   shape.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// max(1, m div p); equal groups need a multiple of it.
[[nodiscard]] int pytorch_rounds(const PipelineShape& shape);

// nullopt when there are equal rounds; the hint names the micro-batches next to m that have them. `schedule`
// is its name. requires a shape that refuse_shape accepts.
[[nodiscard]] std::optional<ScheduleProblem> refuse_unequal_rounds(const PipelineShape& shape,
                                                                   std::string_view schedule);

// nullopt when v >= 2 and rounds divides m; a group cannot be chosen.
[[nodiscard]] std::optional<ScheduleProblem> interleaved_pytorch_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> interleaved_pytorch(const PipelineShape& shape, int rank);

}  // namespace stagecraft
