#include "sim/lower/rank_states.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "models/layer_matrices.hpp"
#include "models/memory.hpp"
#include "sim/lower/pass_memory.hpp"
#include "sim/lower/price_gradients.hpp"

namespace stagecraft {
namespace {

using enum MemoryClass;

constexpr std::int64_t kFp32Bytes = 4;

// Two that follow each other, at most.
std::int64_t largest_pair(std::span<const std::int64_t> sizes) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    most = std::max(most, sizes[i] + (i + 1 < sizes.size() ? sizes[i + 1] : 0));
  return most;
}

}  // namespace

RankStates::RankStates(const TransformerSpec& model, const LedgerRequest& request, int rank)
    : model_(model),
      request_(request),
      plan_(request.job.plan),
      shard_(request.shard),
      parameters_(rank_share(model, request.job.plan, rank)) {
  for (const HeldStage& held : plan_.places().held_by(rank)) held_.push_back(held.stage);
}

std::vector<StageUnit> RankStates::units() const {
  std::vector<StageUnit> units;
  for (const int stage : held_) {
    const std::vector<StageUnit> here = stage_units(model_, plan_, stage);
    units.insert(units.end(), here.begin(), here.end());
  }
  return units;
}

Bytes RankStates::largest_unit(std::int64_t bytes) const {
  std::int64_t most = 0;
  for (const StageUnit& unit : units()) most = std::max(most, unit.gathered.all());
  return Bytes(most * bytes);
}

// Parameters that come together, in the order in which they come; the root of FSDP2, empty or not, first.
std::vector<std::int64_t> RankStates::gathers() const {
  std::vector<std::int64_t> gathers;
  const bool root = shard_.software.fully_shard;
  if (root) gathers.push_back(0);
  for (const StageUnit& unit : units()) {
    if (root && (unit.kind == UnitKind::kEmbedding || unit.kind == UnitKind::kHead))
      gathers.front() += unit.gathered.all();
    else
      gathers.push_back(unit.gathered.all());
  }
  return gathers;
}

// Under ZeRO 3: the unit that computes, and the next one where it is gathered beside; all of them where they
// are kept from the forward to the backward. FSDP2's root stays.
Bytes RankStates::gathered_units(std::int64_t bytes) const {
  if (!request_.job.options.reshard_after_forward) return Bytes(parameters_.all() * bytes);
  const std::vector<std::int64_t> all = gathers();
  const std::size_t resident = shard_.software.fully_shard ? 1 : 0;
  const std::span<const std::int64_t> passing = std::span(all).subspan(resident);
  const std::int64_t kept = resident > 0 ? all.front() : 0;
  if (request_.job.overlap.parameters) return Bytes((kept + largest_pair(passing)) * bytes);
  return Bytes((kept + (passing.empty() ? 0 : std::ranges::max(passing))) * bytes);
}

// What the stream of FSDP2's gathers has cached and no other can use: the outputs of two of them, which are
// copied out on the stream that computes. Reductions allocate on that one (pytorch/pytorch #129721, #132445).
Bytes RankStates::stream_blocks() const {
  if (!shard_.software.fully_shard || zero() < 2 || plan_.shard_group == 1) return Bytes(0);
  return Bytes(largest_pair(gathers()) * state_bytes(shard_.precision, shard_.gradient).weight);
}

// The unit that computes and the one that is on its way from the host, of ZeRO 3 the rank's shards of them;
// never more than there are.
Bytes RankStates::staged_units(std::int64_t bytes) const {
  const auto shard = [&](const ParameterShare& share) {
    const std::int64_t n = zero() >= 3 ? plan_.shard_group : 1;
    const std::int64_t expert_n = zero() >= 3 ? plan_.expert_shard_group() : 1;
    return (share.dense * bytes + n - 1) / n + (share.experts * bytes + expert_n - 1) / expert_n;
  };
  std::int64_t most = 0;
  for (const StageUnit& unit : units()) most = std::max(most, shard(unit.gathered));
  return Bytes(std::min(2 * most, shard(parameters_)));
}

// `bytes` for each parameter of the rank, or of its shard; `kept` of it on the GPU.
RankStates::HeldBytes RankStates::held_bytes(std::int64_t bytes, bool sharded, double kept) const {
  const auto part = [&](std::int64_t count, int ranks) {
    const std::int64_t n = sharded ? ranks : 1;
    return share_of(Bytes((count * bytes + n - 1) / n), kept);
  };
  return {.dense = part(parameters_.dense, plan_.shard_group),
          .experts = part(parameters_.experts, plan_.expert_shard_group())};
}

void RankStates::add_sharded(LedgerItems& items, MemoryClass kind, std::int64_t bytes, bool sharded,
                             double kept) const {
  const HeldBytes held = held_bytes(bytes, sharded, kept);
  const std::string_view name = kMemoryClassNames[static_cast<std::size_t>(kind)];
  items.add(kind, name, held.dense);
  if (parameters_.experts > 0) items.add(kind, "experts' " + std::string(name), held.experts);
}

// Transformer Engine casts weights once an iteration and keeps what it cast. Of gathered ones it keeps the
// transposes for the backward, which a layer that is recomputed makes again.
Bytes RankStates::fp8_copies() const {
  if (!shard_.keeps_fp8()) return Bytes(0);
  const bool gathered = shard_.gathered_weights;
  std::int64_t cast = 0;
  const auto add = [&](LayerKind kind, std::int64_t layers) {
    if (layers > 0) cast += layers * product_weights(model_, kind, shard_.weight_split());
  };
  for (const int stage : held_) {
    const StageContent& here = content(stage);
    const std::int64_t again = gathered ? here.recomputed : 0;
    const std::int64_t again_experts = gathered ? here.recomputed_experts : 0;
    add(LayerKind::kDense, here.layers - here.expert_layers - (again - again_experts));
    add(LayerKind::kExperts, here.expert_layers - again_experts);
    add(model_.mtp_kind(), here.mtp_layers);
  }
  const auto& copies = request_.profile.memory.fp8_copies;
  return share_of(Bytes(cast), gathered ? 1 : copies ? copies->value : 2);
}

void RankStates::add_weights(LedgerItems& items) const {
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  const double offloaded = request_.job.offload.weights;
  const bool gathered = shard_.gathered_weights;
  const bool masters = gathered && shard_.software.fp32_shards && shard_.precision != Precision::kFp32;
  if (!masters)  // else the optimizer's fp32 weights are all that there is
    add_sharded(items, kWeights, state.weight, zero() >= 3, 1 - offloaded);
  items.add(kWeights, "fp8 copies of weights", fp8_copies());
  const ScheduleKind* kind = find_schedule(request_.schedule.name);
  if (kind != nullptr && !kind->kept_beside.empty())
    items.add(kWeights, kind->kept_beside, Bytes(parameters_.all() * kFp32Bytes));
  if (gathered) items.add(kWeights, "gathered units", gathered_units(state.weight));
  if (offloaded > 0)
    items.add(kWeights, "units from the host", share_of(staged_units(state.weight), offloaded));
}

void RankStates::add_gradients(LedgerItems& items) const {
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  add_sharded(items, kGradients, state.gradient, zero() >= 2 && !accumulates_whole(), 1);
  if (plan_.replicas() == 1) return;
  const Bytes bucket(std::min(parameters_.all(), bucket_parameters(request_.job)) * state.gradient);
  if (zero() == 2) items.add(kGradients, "bucket", bucket);
  if (zero() == 3) items.add(kGradients, "gradients of a gathered unit", largest_unit(state.gradient));
  if (zero() < 2 && shard_.software.bucket_copies) items.add(kGradients, "bucket", bucket);
}

void RankStates::add_optimizer(LedgerItems& items) const {
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  add_sharded(items, kOptimizer, state.optimizer, zero() >= 1, 1 - request_.job.offload.optimizer);
}

// DeepSpeed's fp32 gradients are one tensor, and under ZeRO those in 16 bit that it is cast from are another:
// no block of the activations holds so much, so that both lie beside those (deepspeed/runtime/zero/
// stage_1_and_2.py, single_grad_partition; deepspeed/runtime/fp16/fused_optimizer.py, grads_groups_flat).
Bytes RankStates::joined_gradients() const {
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  if (!shard_.software.bucket_copies || state.gradient_copy == 0) return Bytes(0);
  const double kept = 1 - request_.job.offload.optimizer;
  const bool sharded = zero() >= 1;
  const HeldBytes held = held_bytes(state.gradient_copy + (sharded ? state.gradient : 0), sharded, kept);
  return held.dense + held.experts;
}

// Gradients reduced in 16 bit are stepped in fp32: a copy of the shard, when the activations are gone. Of
// DeepSpeed they are joined; without ZeRO it casts tensor by tensor and joins the copies.
void RankStates::add_step(LedgerItems& step) const {
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  if (zero() == 0 || !shard_.software.bucket_copies)
    add_sharded(step, kGradients, state.gradient_copy, zero() >= 1, 1 - request_.job.offload.optimizer);
  step.add(kGradients, "joined gradients", joined_gradients());
}

}  // namespace stagecraft
