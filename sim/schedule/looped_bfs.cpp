#include "sim/schedule/looped_bfs.hpp"

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {

std::optional<ScheduleProblem> looped_bfs_constraint(const PipelineShape& shape) {
  if (auto problem = refuse_shape(shape)) return problem;
  return refuse_group(shape, "looped-bfs");
}

std::vector<Action> looped_bfs(const PipelineShape& shape, int rank) {
  SC_CHECK(!looped_bfs_constraint(shape), "ask looped_bfs_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  std::vector<Action> order;
  order.reserve(2 * static_cast<std::size_t>(shape.micro_batches) * static_cast<std::size_t>(shape.chunks));
  for (int stage = rank; stage < shape.ranks * shape.chunks; stage += shape.ranks) {
    for (int j = 0; j < shape.micro_batches; ++j)
      order.push_back({.pass = Pass::kForward, .stage = stage, .micro_batch = j});
  }
  for (int stage = shape.ranks * (shape.chunks - 1) + rank; stage >= 0; stage -= shape.ranks) {
    for (int j = shape.micro_batches - 1; j >= 0; --j)
      order.push_back({.pass = Pass::kBackward, .stage = stage, .micro_batch = j});
  }
  return order;
}

}  // namespace stagecraft
