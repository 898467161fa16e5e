#include "sim/schedule/pipedream.hpp"

#include <string>

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

std::optional<ScheduleProblem> refuse_short_batch(const PipelineShape& shape, std::string_view schedule) {
  if (auto problem = refuse_interleaving(shape, schedule)) return problem;
  constexpr int kPlayed = 4;  // iterations in a row, to see how long one takes
  PipelineShape played = shape;
  played.micro_batches = shape.micro_batches > kMaxStageMicroBatches / kPlayed
                             ? shape.micro_batches
                             : kPlayed * shape.micro_batches;
  if (shape.micro_batches >= shape.ranks) return refuse_shape(played);
  const std::string ranks = std::to_string(shape.ranks);
  return ScheduleProblem{
      .message = std::to_string(shape.micro_batches) + " micro-batches are fewer than the " + ranks +
                 " ranks: " + std::string(schedule) + " would run more than one batch ahead",
      .hint = ranks + " micro-batches would be legal"};
}

}  // namespace

std::optional<ScheduleProblem> pipedream_2bw_constraint(const PipelineShape& shape) {
  return refuse_short_batch(shape, "pipedream-2bw");
}

std::optional<ScheduleProblem> pipemare_constraint(const PipelineShape& shape) {
  return refuse_short_batch(shape, "pipemare");
}

std::vector<Action> steady_one_f_one_b(const PipelineShape& shape, int rank) {
  SC_CHECK(!refuse_short_batch(shape, "an asynchronous order"), "ask the constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  const int m = shape.micro_batches;
  const int ahead = shape.ranks - 1 - rank;
  std::vector<Action> order;
  order.reserve(2 * static_cast<std::size_t>(m));
  for (int k = 0; k < m; ++k) {
    order.push_back({.pass = Pass::kForward, .stage = rank, .micro_batch = (k + ahead) % m});
    order.push_back({.pass = Pass::kBackward, .stage = rank, .micro_batch = k});
  }
  return order;
}

}  // namespace stagecraft
