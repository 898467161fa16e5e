#include "sim/schedule/one_f_one_b.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "sim/schedule/alternation.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {

std::optional<ScheduleProblem> one_f_one_b_constraint(const PipelineShape& shape) {
  return refuse_interleaving(shape, "1f1b");
}

std::vector<Action> one_f_one_b(const PipelineShape& shape, int rank) {
  SC_CHECK(!one_f_one_b_constraint(shape), "ask one_f_one_b_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  const auto m = static_cast<std::size_t>(shape.micro_batches);
  const std::size_t warm_up = std::min(static_cast<std::size_t>(shape.ranks - 1 - rank), m);
  std::vector<Action> order;
  order.reserve(2 * m);
  const auto add = [&](Pass pass, std::size_t j) {
    order.push_back({.pass = pass, .stage = rank, .micro_batch = static_cast<int>(j)});
  };
  alternate(
      m, warm_up, [&](std::size_t j) { add(Pass::kForward, j); },
      [&](std::size_t j) { add(Pass::kBackward, j); });
  return order;
}

}  // namespace stagecraft
