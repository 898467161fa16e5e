#include "sim/schedule/interleaved_pytorch.hpp"

#include <algorithm>
#include <string>

#include "base/check.hpp"
#include "sim/schedule/interleaved.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

bool equal_rounds(int ranks, int micro_batches) {
  return micro_batches % std::max(1, micro_batches / ranks) == 0;
}

}  // namespace

int pytorch_rounds(const PipelineShape& shape) {
  return std::max(1, shape.micro_batches / shape.ranks);
}

std::optional<ScheduleProblem> refuse_unequal_rounds(const PipelineShape& shape, std::string_view schedule) {
  const int p = shape.ranks;
  const int m = shape.micro_batches;
  if (equal_rounds(p, m)) return std::nullopt;
  int below = m - 1;  // fewer than two rounds are always equal, so that both searches end
  while (!equal_rounds(p, below)) --below;
  int above = m + 1;
  while (!equal_rounds(p, above)) ++above;
  return ScheduleProblem{
      .message = std::to_string(m) + " micro-batches over " + std::to_string(p) + " ranks make " +
                 std::to_string(pytorch_rounds(shape)) +
                 " rounds, which do not divide them: " + std::string(schedule) + " runs equal rounds",
      .hint = std::to_string(below) + " or " + std::to_string(above) + " micro-batches would be legal"};
}

std::optional<ScheduleProblem> interleaved_pytorch_constraint(const PipelineShape& shape) {
  if (auto problem = refuse_shape(shape)) return problem;
  if (auto problem = refuse_single_chunk(shape, "interleaved-pytorch", "1f1b")) return problem;
  if (auto problem = refuse_group(shape, "interleaved-pytorch")) return problem;
  return refuse_unequal_rounds(shape, "interleaved-pytorch");
}

std::vector<Action> interleaved_pytorch(const PipelineShape& shape, int rank) {
  SC_CHECK(!interleaved_pytorch_constraint(shape), "ask interleaved_pytorch_constraint first");
  return interleaved_in_groups(shape, rank, shape.micro_batches / pytorch_rounds(shape));
}

}  // namespace stagecraft
