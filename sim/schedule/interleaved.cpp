#include "sim/schedule/interleaved.hpp"

#include <algorithm>
#include <string>

#include "base/check.hpp"
#include "sim/schedule/alternation.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

bool legal_group(int ranks, int micro_batches, int group) {
  const int last = micro_batches % group;
  return ranks <= group && group <= micro_batches && (last == 0 || last >= ranks);
}

// "micro-batch group 5 or 10": the legal groups next to `group` on either side. requires ranks <=
// micro_batches, which makes at least the group of all micro-batches legal.
std::string nearest_legal_groups(int ranks, int micro_batches, int group) {
  std::string text;
  for (int below = std::min(group - 1, micro_batches); below >= ranks; --below) {
    if (!legal_group(ranks, micro_batches, below)) continue;
    text = std::to_string(below);
    break;
  }
  for (int above = std::max(group + 1, ranks); above <= micro_batches; ++above) {
    if (!legal_group(ranks, micro_batches, above)) continue;
    text += (text.empty() ? "" : " or ") + std::to_string(above);
    break;
  }
  return "micro-batch group " + text;
}

ScheduleProblem short_last_group(int ranks, int micro_batches, int group) {
  const int last = micro_batches % group;
  const int fewer = micro_batches - last;
  const int more = fewer + ranks;  // a last group of p, which is a whole one when group = p
  return {.message = std::to_string(micro_batches) + " micro-batches in groups of " + std::to_string(group) +
                     " leave a last group of " + std::to_string(last) + ", fewer than the " +
                     std::to_string(ranks) + " ranks: that adds bubble or deadlocks",
          .hint = nearest_legal_groups(ranks, micro_batches, group) + " would be legal, or " +
                  std::to_string(fewer) + " or " + std::to_string(more) + " micro-batches"};
}

}  // namespace

std::vector<ChunkStep> chunk_table(int micro_batches, int chunks, int group) {
  SC_CHECK(micro_batches >= 1 && chunks >= 1 && group >= 1, "a table needs rows");
  std::vector<ChunkStep> table;
  table.reserve(static_cast<std::size_t>(micro_batches) * static_cast<std::size_t>(chunks));
  for (int begin = 0; begin < micro_batches; begin += group) {
    const int end = std::min(begin + group, micro_batches);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int j = begin; j < end; ++j) table.push_back({.chunk = chunk, .micro_batch = j});
    }
  }
  return table;
}

int group_of(const PipelineShape& shape) {
  return shape.group > 0 ? shape.group : shape.ranks;
}

int interleaved_warm_up(const PipelineShape& shape, int rank, int group) {
  return std::min(2 * (shape.ranks - 1 - rank) + (shape.chunks - 1) * group,
                  shape.micro_batches * shape.chunks);
}

std::optional<ScheduleProblem> interleaved_constraint(const PipelineShape& shape) {
  if (auto problem = refuse_shape(shape)) return problem;
  const int p = shape.ranks;
  const int m = shape.micro_batches;
  const int group = group_of(shape);
  if (auto problem = refuse_single_chunk(shape, "interleaved-1f1b", "1f1b")) return problem;
  if (m < p) {
    return ScheduleProblem{
        .message = std::to_string(m) + " micro-batches are fewer than the " + std::to_string(p) + " ranks",
        .hint = std::to_string(p) + " micro-batches in groups of " + std::to_string(p) +
                " would be legal; or use 1f1b with 1 chunk a rank"};
  }
  if (group < p) {
    return ScheduleProblem{.message = "micro-batch group " + std::to_string(group) + " is smaller than the " +
                                      std::to_string(p) + " ranks",
                           .hint = nearest_legal_groups(p, m, group) + " would be legal"};
  }
  if (group > m) {
    return ScheduleProblem{.message = "micro-batch group " + std::to_string(group) + " is larger than the " +
                                      std::to_string(m) + " micro-batches",
                           .hint = nearest_legal_groups(p, m, group) + " would be legal"};
  }
  if (!legal_group(p, m, group)) return short_last_group(p, m, group);
  return std::nullopt;
}

std::vector<Action> interleaved(const PipelineShape& shape, int rank) {
  SC_CHECK(!interleaved_constraint(shape), "ask interleaved_constraint first");
  return interleaved_in_groups(shape, rank, group_of(shape));
}

std::vector<Action> interleaved_in_groups(const PipelineShape& shape, int rank, int group) {
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  const int p = shape.ranks;
  const int v = shape.chunks;
  const std::vector<ChunkStep> table = chunk_table(shape.micro_batches, v, group);
  const std::size_t n = table.size();
  const auto warm_up = static_cast<std::size_t>(interleaved_warm_up(shape, rank, group));

  std::vector<Action> order;
  order.reserve(2 * n);
  const auto forward = [&](std::size_t k) {
    const auto [chunk, j] = table[k];
    order.push_back({.pass = Pass::kForward, .stage = chunk * p + rank, .micro_batch = j});
  };
  const auto backward = [&](std::size_t k) {
    const auto [chunk, j] = table[k];
    order.push_back({.pass = Pass::kBackward, .stage = (v - 1 - chunk) * p + rank, .micro_batch = j});
  };
  alternate(n, warm_up, forward, backward);
  return order;
}

}  // namespace stagecraft
