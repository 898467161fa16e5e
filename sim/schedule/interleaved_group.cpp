#include "sim/schedule/interleaved_group.hpp"

#include <algorithm>
#include <string>

#include "base/ceil_div.hpp"
#include "base/check.hpp"
#include "sim/schedule/alternation.hpp"
#include "sim/schedule/interleaved.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {

std::optional<ScheduleProblem> interleaved_group_constraint(const PipelineShape& shape) {
  if (auto problem = refuse_shape(shape)) return problem;
  if (auto problem = refuse_single_chunk(shape, "interleaved-group", "1f1b")) return problem;
  const int least = shape.ranks / 2 + shape.ranks % 2;
  const int group = group_of(shape);
  if (group >= least && group <= shape.ranks) return std::nullopt;
  const std::string limits = std::to_string(least) + " to " + std::to_string(shape.ranks);
  return ScheduleProblem{
      .message = "micro-batch group " + std::to_string(group) + " lies outside " + limits + ", half the " +
                 std::to_string(shape.ranks) + " ranks to all of them",
      .hint = "give " + limits + (group > shape.ranks ? ", or use interleaved-1f1b for larger groups" : "")};
}

std::vector<Action> interleaved_group(const PipelineShape& shape, int rank) {
  SC_CHECK(!interleaved_group_constraint(shape), "ask interleaved_group_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  const int p = shape.ranks;
  const int v = shape.chunks;
  const int group = group_of(shape);
  const int groups = ceil_div(shape.micro_batches, group);
  const std::vector<ChunkStep> table = chunk_table(groups * group, v, group);
  const std::size_t n = table.size();
  const std::size_t warm_up = std::min(static_cast<std::size_t>((p - 1 - rank) + (v - 1) * group), n);

  std::vector<Action> order;
  order.reserve(3 * static_cast<std::size_t>(shape.micro_batches) * static_cast<std::size_t>(v));
  const auto run = [&](Pass pass, int chunk, int j) {
    if (j < shape.micro_batches) order.push_back({.pass = pass, .stage = chunk * p + rank, .micro_batch = j});
  };
  const auto forward = [&](std::size_t k) { run(Pass::kForward, table[k].chunk, table[k].micro_batch); };
  const auto backward = [&](std::size_t k) {
    const int chunk = v - 1 - table[k].chunk;
    run(Pass::kInputGradient, chunk, table[k].micro_batch);
    run(Pass::kWeightGradient, chunk, table[k].micro_batch);
  };
  alternate(n, warm_up, forward, backward);
  return order;
}

}  // namespace stagecraft
