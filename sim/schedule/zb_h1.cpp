#include "sim/schedule/zb_h1.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "sim/schedule/alternation.hpp"
#include "sim/schedule/interleaved.hpp"
#include "sim/schedule/interleaved_pytorch.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

// The order for any number of chunks; one chunk is ZB-H1, whatever the group.
std::vector<Action> lagging_weight_gradients(const PipelineShape& shape, int rank, int group) {
  const int p = shape.ranks;
  const int v = shape.chunks;
  const std::vector<ChunkStep> table = chunk_table(shape.micro_batches, v, group);
  const std::size_t n = table.size();
  const std::size_t warm_up = std::min(static_cast<std::size_t>((p - 1 - rank) + (v - 1) * group), n);
  const auto lag = static_cast<std::size_t>(rank);

  std::vector<Action> order;
  order.reserve(3 * n);
  const auto forward = [&](std::size_t k) {
    order.push_back(
        {.pass = Pass::kForward, .stage = table[k].chunk * p + rank, .micro_batch = table[k].micro_batch});
  };
  const auto gradient = [&](Pass pass, std::size_t k) {
    const int stage = (v - 1 - table[k].chunk) * p + rank;
    order.push_back({.pass = pass, .stage = stage, .micro_batch = table[k].micro_batch});
  };
  alternate(n, warm_up, forward, [&](std::size_t k) {
    gradient(Pass::kInputGradient, k);
    if (k >= lag) gradient(Pass::kWeightGradient, k - lag);
  });
  for (std::size_t k = n - std::min(lag, n); k < n; ++k) gradient(Pass::kWeightGradient, k);
  return order;
}

}  // namespace

std::optional<ScheduleProblem> zb_h1_constraint(const PipelineShape& shape) {
  return refuse_interleaving(shape, "zb-h1", "interleaved-zb");
}

std::vector<Action> zb_h1(const PipelineShape& shape, int rank) {
  SC_CHECK(!zb_h1_constraint(shape), "ask zb_h1_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  return lagging_weight_gradients(shape, rank, shape.micro_batches);
}

std::optional<ScheduleProblem> interleaved_zb_constraint(const PipelineShape& shape) {
  if (auto problem = refuse_shape(shape)) return problem;
  if (auto problem = refuse_single_chunk(shape, "interleaved-zb", "zb-h1")) return problem;
  if (auto problem = refuse_group(shape, "interleaved-zb")) return problem;
  return refuse_unequal_rounds(shape, "interleaved-zb");
}

std::vector<Action> interleaved_zb(const PipelineShape& shape, int rank) {
  SC_CHECK(!interleaved_zb_constraint(shape), "ask interleaved_zb_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  return lagging_weight_gradients(shape, rank, shape.micro_batches / pytorch_rounds(shape));
}

}  // namespace stagecraft
