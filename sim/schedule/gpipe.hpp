// GPipe, fill and drain: all forwards, then all backwards.
//
// The simplest order, with the most memory: a rank holds the activations of all its micro-batches when the
// first backward starts. It takes as long as 1F1B, which makes it a reference.
//
//   rank     in [0, p).
//   returns  2*m actions: F 0..m-1, then B 0..m-1. PyTorch runs the backward in this direction; torchgpipe
//            is said to descend. Both take the same time.
//   bound    m forwards are live at once.
//   source   Huang et al., NeurIPS'19 (arXiv 1811.06965); direction of PyTorch's ScheduleGPipe.
//   throws   InternalError on a shape that gpipe_constraint refuses, or a rank outside the shape.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// nullopt for any m >= 1 with one chunk a rank and no group.
[[nodiscard]] std::optional<ScheduleProblem> gpipe_constraint(const PipelineShape& shape);
[[nodiscard]] std::vector<Action> gpipe(const PipelineShape& shape, int rank);

}  // namespace stagecraft
