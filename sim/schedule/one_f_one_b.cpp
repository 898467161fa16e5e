#include "sim/schedule/one_f_one_b.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {

std::optional<ScheduleProblem> one_f_one_b_constraint(const PipelineShape& shape) {
  return refuse_interleaving(shape, "1f1b");
}

std::vector<Action> one_f_one_b(const PipelineShape& shape, int rank) {
  SC_CHECK(!one_f_one_b_constraint(shape), "ask one_f_one_b_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  const int m = shape.micro_batches;
  const int warm_up = std::min(shape.ranks - 1 - rank, m);
  std::vector<Action> order;
  order.reserve(2 * static_cast<std::size_t>(m));
  const auto run = [&](Pass pass, int j) {
    order.push_back({.pass = pass, .stage = rank, .micro_batch = j});
  };

  for (int j = 0; j < warm_up; ++j) run(Pass::kForward, j);
  for (int k = 0; k < m - warm_up; ++k) {
    run(Pass::kForward, warm_up + k);
    run(Pass::kBackward, k);
  }
  for (int j = m - warm_up; j < m; ++j) run(Pass::kBackward, j);
  return order;
}

}  // namespace stagecraft
