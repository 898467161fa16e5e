#include "sim/schedule/closed_forms.hpp"

#include <algorithm>

#include "sim/schedule/interleaved.hpp"
#include "sim/schedule/interleaved_pytorch.hpp"

namespace stagecraft {
namespace {

std::int64_t both(const StageCosts& costs) {
  return costs.forward + costs.input_gradient + costs.weight_gradient;
}

std::int64_t shortest(const StageCosts& costs) {
  return std::min({costs.forward, costs.input_gradient, costs.weight_gradient});
}

int pairs_of(const PipelineShape& shape) {
  return shape.micro_batches * shape.chunks;
}

std::optional<int> warm_up_and_one(const PipelineShape& shape, int rank, int group) {
  return std::min(interleaved_warm_up(shape, rank, group) + 1, pairs_of(shape));
}

// `legs` of ranks that a micro-batch goes down before it turns.
Bubble64 dual_bubble(int legs, const StageCosts& costs) {
  if (costs.forward != costs.input_gradient || costs.weight_gradient > costs.forward) return std::nullopt;
  const std::int64_t backward = costs.input_gradient + costs.weight_gradient;
  return (legs - 1) * (costs.forward + 2 * backward - 3 * costs.weight_gradient);
}

}  // namespace

bool passes_alike(const StageCosts& costs) {
  return costs.forward == costs.input_gradient && costs.forward == costs.weight_gradient;
}

Bubble64 fill_and_drain_bubble(const PipelineShape& shape, const StageCosts& costs) {
  return (shape.ranks - 1) * both(costs);
}

std::optional<int> all_micro_batches_peak(const PipelineShape& shape, int) {
  return pairs_of(shape);
}

std::optional<int> one_f_one_b_peak(const PipelineShape& shape, int rank) {
  return std::min(shape.ranks - rank, shape.micro_batches);
}

std::optional<int> interleaved_peak(const PipelineShape& shape, int rank) {
  return warm_up_and_one(shape, rank, group_of(shape));
}

Bubble64 interleaved_pytorch_bubble(const PipelineShape& shape, const StageCosts& costs) {
  const std::int64_t missing = std::max(0, shape.ranks - shape.micro_batches);
  return (shape.ranks - 1 + (shape.chunks - 1) * missing) * both(costs);
}

std::optional<int> interleaved_pytorch_peak(const PipelineShape& shape, int rank) {
  return warm_up_and_one(shape, rank, shape.micro_batches / pytorch_rounds(shape));
}

Bubble64 interleaved_group_bubble(const PipelineShape& shape, const StageCosts& costs) {
  const int group = group_of(shape);
  if (!passes_alike(costs) || shape.micro_batches < shape.ranks || shape.micro_batches % group != 0)
    return std::nullopt;
  return (2 * (shape.ranks - 1) + (shape.chunks - 1) * (shape.ranks - group)) * costs.forward;
}

std::optional<int> interleaved_group_peak(const PipelineShape& shape, int rank) {
  const int group = group_of(shape);
  if (shape.micro_batches < shape.ranks || shape.micro_batches % group != 0) return std::nullopt;
  return group * (shape.chunks - 1) + shape.ranks - rank;
}

Bubble64 zb_h1_bubble(const PipelineShape& shape, const StageCosts& costs) {
  const int filled = std::min(shape.micro_batches, shape.ranks) - 1;
  return (shape.ranks - 1) * (costs.forward + costs.input_gradient) - filled * shortest(costs);
}

std::optional<int> zb_h1_peak(const PipelineShape& shape, int) {
  if (shape.micro_batches < shape.ranks) return std::nullopt;
  return shape.ranks;
}

Bubble64 interleaved_zb_bubble(const PipelineShape& shape, const StageCosts& costs) {
  if (shape.micro_batches < shape.ranks) return std::nullopt;
  return (shape.ranks - 1) * (costs.forward + costs.input_gradient - shortest(costs));
}

std::optional<int> interleaved_zb_peak(const PipelineShape& shape, int) {
  if (shape.micro_batches < shape.ranks) return std::nullopt;
  const int group = shape.micro_batches / pytorch_rounds(shape);
  return std::min((shape.chunks - 1) * group + shape.ranks, pairs_of(shape));
}

Bubble64 zb_skew_bubble(const PipelineShape& shape, const StageCosts& costs) {
  if (!passes_alike(costs) || shape.micro_batches < 2 * shape.ranks - 1) return std::nullopt;
  return (shape.ranks - 1) * costs.forward;
}

std::optional<int> zb_v_peak(const PipelineShape& shape, int) {
  if (shape.micro_batches < 2 * shape.ranks - 1) return std::nullopt;
  return 2 * shape.ranks;
}

Bubble64 dual_pipe_bubble(const PipelineShape& shape, const StageCosts& costs) {
  return dual_bubble(shape.ranks / 2, costs);
}

std::optional<int> dual_pipe_peak(const PipelineShape& shape, int) {
  return shape.ranks + 1;
}

Bubble64 dual_pipe_v_bubble(const PipelineShape& shape, const StageCosts& costs) {
  return dual_bubble(shape.ranks, costs);
}

std::optional<int> dual_pipe_v_peak(const PipelineShape& shape, int) {
  return 2 * shape.ranks + 1;
}

Bubble64 chimera_bubble(const PipelineShape& shape, const StageCosts& costs) {
  const std::int64_t backward = costs.input_gradient + costs.weight_gradient;
  if (backward == costs.forward) return (shape.ranks - 2) * costs.forward;
  if (backward != 2 * costs.forward) return std::nullopt;
  return (shape.ranks - 2) * (shape.micro_batches / shape.ranks + 1) * costs.forward;
}

std::optional<int> chimera_peak(const PipelineShape& shape, int rank) {
  return shape.ranks / 2 + 1 + std::min(rank, shape.ranks - 1 - rank);
}

std::optional<int> varuna_peak(const PipelineShape&, int) {
  return 1;
}

Bubble64 no_bubble(const PipelineShape&, const StageCosts&) {
  return 0;
}

}  // namespace stagecraft
