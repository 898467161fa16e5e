#include "sim/schedule/gpipe.hpp"

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {

std::optional<ScheduleProblem> gpipe_constraint(const PipelineShape& shape) {
  return refuse_interleaving(shape, "gpipe");
}

std::vector<Action> gpipe(const PipelineShape& shape, int rank) {
  SC_CHECK(!gpipe_constraint(shape), "ask gpipe_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  std::vector<Action> order;
  order.reserve(2 * static_cast<std::size_t>(shape.micro_batches));
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    for (int j = 0; j < shape.micro_batches; ++j) {
      order.push_back({.pass = pass, .stage = rank, .micro_batch = j});
    }
  }
  return order;
}

}  // namespace stagecraft
