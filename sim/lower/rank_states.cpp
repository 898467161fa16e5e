#include "sim/lower/rank_states.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "models/fp8_casts.hpp"
#include "models/memory.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"
#include "sim/lower/gradient_queue.hpp"
#include "sim/lower/pass_memory.hpp"
#include "sim/lower/price_gradients.hpp"

namespace stagecraft {
namespace {

using enum MemoryClass;

constexpr std::int64_t kHalfBytes = 2, kFp32Bytes = 4;

// Largest sum of one entry and the entries gathered ahead of it: the next one, and more until they reach `ahead`.
// Beside an entry of `alone` or more nothing is gathered ahead.
Bytes largest_run(std::span<const Bytes> sizes, Bytes ahead = {}, std::optional<Bytes> alone = {}) {
  Bytes most{};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Bytes behind{};
    for (std::size_t j = i + 1; j < sizes.size() && (j == i + 1 || behind < ahead); ++j) behind += sizes[j];
    most = std::max(most, alone && sizes[i] >= *alone ? sizes[i] : sizes[i] + behind);
  }
  return most;
}

void add_apart(LedgerItems& items, MemoryClass kind, Bytes dense, Bytes experts) {
  const std::string_view name = name_of(kind);
  items.add(kind, name, dense);
  if (experts > Bytes(0)) items.add(kind, "experts' " + std::string(name), experts);
}

}  // namespace

bool accumulates_whole(const PricingRequest& job) {
  return job.zero_stage() >= 2 && job.keeps_gradients_whole() && job.plan.micro_batches > 1;
}

ByteShare whole_gradients(const TransformerSpec& model, const PricingRequest& job, int stage) {
  if (!accumulates_whole(job)) return {};
  const ParallelPlan& plan = job.plan;
  const ByteShare whole = stage_share(model, plan, stage) * Bytes(state_bytes(job.shard).gradient);
  return whole - sharded(whole, plan);
}

FreshGradients fresh_gradients(const PricingRequest& job) {
  const ParallelPlan& plan = job.plan;
  if (!job.shard.rules.fresh_gradients || plan.micro_batches > 1 || plan.pipeline > 1) return {};
  const auto bytes = static_cast<double>(state_bytes(job.shard).kept_gradient);
  if (job.zero_stage() < 2) return {.dense = bytes, .experts = bytes};
  return {.dense = bytes / static_cast<double>(plan.shard_group),
          .experts = bytes / static_cast<double>(plan.expert_shard_group())};
}

PassHabits habits_of(const PricingRequest& job) {
  PassHabits habits = pass_habits(job.training.recompute, job.offload);
  habits.gradients = fresh_gradients(job);
  return habits;
}

// Under ZeRO 2 a queue is no longer than its buckets. Queued gradients and shards together do not exceed the
// gradients without ZeRO. Where gradients stay unsharded, those that wait are among them.
QueuedGradients waiting_gradients(const TransformerSpec& model, const PricingRequest& job, int stage) {
  if (!job.shard.rules.is_megatron_fsdp() || job.zero_stage() < 2 || accumulates_whole(job)) return {};
  const std::vector<StageUnit> units = stage_units(model, job.plan, stage);
  const std::int64_t capacity = queue_capacity(units, job.shard, job.zero_stage());
  const ByteShare all = stage_share(model, job.plan, stage) * Bytes(state_bytes(job.shard).gradient);
  Bytes most = (all - sharded(all, job.plan)).all();
  if (job.zero_stage() == 2)
    most = std::min(most, Bytes((capacity + 2 * bucket_parameters(job)) * state_bytes(job.shard).gradient));
  const QueuedGradients queued = queued_gradients(model, job.shard, units, capacity, job.offload.activations);
  return {.backward = std::min(queued.backward, most),
          .weight_gradient = std::min(queued.weight_gradient, most)};
}

void add_gradients_of_passes(PassMemory& memory, const TransformerSpec& model, const PricingRequest& job,
                             int stage) {
  memory.gradients = whole_gradients(model, job, stage).all();
  const QueuedGradients waiting = waiting_gradients(model, job, stage);
  memory.backward_transient += waiting.backward;
  memory.weight_gradient_transient += waiting.weight_gradient;
}

RankStates::RankStates(const TransformerSpec& model, const LedgerRequest& request, int rank)
    : model_(model),
      request_(request),
      plan_(request.job.plan),
      shard_(request.job.shard),
      parameters_(rank_share(model, request.job.plan, rank)),
      products_(rank_products(model, request.job.plan, rank)) {
  for (const HeldStage& held : plan_.places().held_by(rank)) {
    held_.push_back(held.stage);
    const std::vector<StageUnit> here = stage_units(model_, plan_, held.stage);
    units_.insert(units_.end(), here.begin(), here.end());
  }
}

// DeepSpeed's BF16_Optimizer adds the 16-bit gradients of a micro-batch to unsharded fp32 gradients after its
// backward, and frees them when the next backward begins.
//   source  deepspeed/runtime/bf16_optimizer.py, update_hp_grads and clear_lp_grads; deepspeed/runtime/pipe/
//           engine.py, _bf16_reduce_grads; runtime/engine.py, communication_data_type.
bool RankStates::accumulates_apart() const {
  return shard_.software.bucket_copies && runs_zero() <= 1 && shard_.precision == Precision::kBf16 &&
         shard_.gradient == Precision::kFp32;
}

ByteShare RankStates::weights_of(const StageUnit& unit) const {
  return weight_bytes(gathered_of(unit, shard_), unit.products, shard_);
}

ByteShare RankStates::weights() const {
  return weight_bytes(parameters_, products_, shard_);
}

Bytes RankStates::largest_unit(Bytes each) const {
  std::int64_t most = 0;
  if (request_.job.options.rules.gathers_matrices) {
    for (const std::int64_t size : matrices()) most = std::max(most, size);
  } else {
    for (const StageUnit& unit : units_)
      if (!reduces_root_last(shard_) || !is_root(unit)) most = std::max(most, unit.gathered.all());
  }
  return most * each;
}

// `whole` bytes held unsharded beside the shards, capped so that both together do not exceed the total
// without ZeRO.
Bytes RankStates::beside_shards(Bytes whole, const ByteShare& all) const {
  return std::min(whole, (all - sharded(all, plan_)).all());
}

// Parameter counts of the matrices of all units, in model order.
std::vector<std::int64_t> RankStates::matrices() const {
  std::vector<std::int64_t> all;
  const MatricesOfUnits of_units(model_, shard_);
  for (const StageUnit& unit : units_) {
    const UnitMatrices here = of_units.of(unit);
    all.insert(all.end(), here.dense.begin(), here.dense.end());
    all.insert(all.end(), here.experts.begin(), here.experts.end());
  }
  return all;
}

// Bytes of each all-gather of weights, in order. A root that stays gathered comes first, even if it is empty.
std::vector<Bytes> RankStates::gathers() const {
  std::vector<Bytes> gathers;
  if (request_.job.options.rules.gathers_matrices) {
    for (const std::int64_t size : matrices()) gathers.push_back(size * Bytes(state_bytes(shard_).weight));
    return gathers;
  }
  const bool root = root_stays_gathered(shard_);
  if (root) gathers.emplace_back(0);
  for (const StageUnit& unit : units_) {
    const Bytes bytes = weights_of(unit).all();
    if (root && is_root(unit))
      gathers.front() += bytes;
    else
      gathers.push_back(bytes);
  }
  return gathers;
}

// The size from which on a unit that computes is gathered alone.
std::optional<Bytes> RankStates::gathered_alone() const {
  const std::int64_t live = shard_.rules.live_parameters;
  return live > 0 ? std::optional(live * Bytes(state_bytes(shard_).weight)) : std::nullopt;
}

// Gathered weights under ZeRO 3: the unit that computes, and the next one where its gather overlaps; all
// units where they stay gathered until the backward. A root that stays gathered lies beside them.
Bytes RankStates::gathered_units() const {
  if (!request_.job.reshards_after_forward()) return weights().all();
  const std::vector<Bytes> all = gathers();
  const std::size_t resident = root_stays_gathered(shard_) ? 1 : 0;
  const std::span<const Bytes> passing = std::span(all).subspan(resident);
  const Bytes kept = resident > 0 ? all.front() : Bytes(0);
  if (request_.job.overlap.parameters) {
    const Bytes ahead(queue_capacity(units_, shard_, zero()) / 2 * state_bytes(shard_).weight);
    const Bytes run = kept + largest_run(passing, ahead, gathered_alone());
    return ahead > Bytes(0) ? beside_shards(run, weights()) : run;
  }
  return passing.empty() ? kept : kept + std::ranges::max(passing);
}

Bytes RankStates::kept_by_autograd() const {
  if (!request_.job.reshards_after_forward()) return {};  // they are what stays gathered
  Bytes kept{};
  for (const StageUnit& unit : units_)
    if (!unit.recomputed) kept += weights_of(unit).all();
  return kept;
}

// Memory that the caching allocator keeps for FSDP2's all-gather stream and no other stream can use: two
// all-gather outputs, which are copied out on the compute stream. Reductions allocate on the compute stream
// (pytorch/pytorch #129721, #132445).
Bytes RankStates::stream_blocks() const {
  if (!shard_.rules.fully_shard || zero() < 2) return Bytes(0);
  return largest_run(gathers());
}

// FSDP's shards of gradients.
//   source  torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce; torch/distributed/fsdp/
//           _runtime_utils.py, _post_backward_hook
Bytes RankStates::gradients_apart() const {
  if (!makes_gradients() || zero() < 2 || !shard_.rules.wraps_modules()) return Bytes(0);
  return sharded(parameters_ * Bytes(state_bytes(shard_).kept_gradient), plan_).all();
}

// Weights staged from the host: the unit that computes and the one in transit; under ZeRO 3 the rank's shards
// of them. Never more than all weights.
Bytes RankStates::staged_units() const {
  const auto shard = [&](const ByteShare& bytes) {
    return (zero() >= 3 ? sharded(bytes, plan_) : bytes).all();
  };
  Bytes most{};
  for (const StageUnit& unit : units_) most = std::max(most, shard(weights_of(unit)));
  return std::min(2 * most, shard(weights()));
}

// The rank's part of `bytes`, times the fraction `kept`: its shard where `cut`, otherwise all of them.
ByteShare RankStates::held_bytes(const ByteShare& bytes, bool cut, double kept) const {
  const ByteShare part = cut ? sharded(bytes, plan_) : bytes;
  return {.dense = share_of(part.dense, kept), .experts = share_of(part.experts, kept)};
}

void RankStates::add_sharded(LedgerItems& items, MemoryClass kind, const ByteShare& bytes, bool cut,
                             double kept) const {
  const ByteShare held = held_bytes(bytes, cut, kept);
  add_apart(items, kind, held.dense, held.experts);
}

// Transformer Engine casts weights once an iteration and keeps the copies; weights stored in fp8 count as one
// copy. Of gathered weights it keeps the transposes for the backward, except in recomputed layers.
// Megatron-FSDP frees the transposes of weights gathered in fp8 (--keep-fp8-transpose-cache is off).
Bytes RankStates::fp8_copies() const {
  const bool gathered = shard_.gathered_weights;
  if (!shard_.keeps_fp8() || (gathered && shard_.fp8_parameters)) return Bytes(0);
  std::int64_t cast = 0;
  for (const StageUnit& unit : units_)
    if (!gathered || !unit.recomputed) cast += unit.products.all();
  const double copies =
      std::max(fp8_weight_copies(shard_) - (shard_.fp8_parameters ? fp8_weight(shard_) : 0), 0.0);
  return share_of(Bytes(cast), gathered ? fp8_weight(shard_) : copies);
}

void RankStates::add_weights(LedgerItems& items, When when) const {
  const double offloaded = request_.job.offload.weights;
  if (!masters_alone(shard_)) add_sharded(items, kWeights, weights(), zero() >= 3, 1 - offloaded);
  items.add(kWeights, shard_.casts_to_fp4() ? "fp4 copies of weights" : "fp8 copies of weights",
            fp8_copies());
  const ScheduleKind* kind = find_schedule(request_.schedule.name);
  if (kind != nullptr && !kind->kept_beside.empty())
    items.add(kWeights, kind->kept_beside, Bytes(parameters_.all() * kFp32Bytes));
  if (when == When::kStep) return;
  if (shard_.gathered_weights) items.add(kWeights, "gathered units", gathered_units());
  if (shard_.gathered_weights && shard_.rules.keeps_gathered)
    items.add(kWeights, "weights that autograd keeps", kept_by_autograd());
  if (offloaded > 0 && !masters_alone(shard_))
    items.add(kWeights, "units from the host", share_of(staged_units(), offloaded));
}

void RankStates::add_gradients(LedgerItems& items, When when) const {
  const StateBytes state = state_bytes(shard_);
  if (when == When::kStep || !makes_gradients())
    add_sharded(items, kGradients, parameters_ * Bytes(state.kept_gradient), zero() >= 2, 1);
  if (accumulates_apart())
    return items.add(kGradients, "16-bit gradients", Bytes(parameters_.all() * kHalfBytes));
  if (!plan_.has_replicas()) return;
  const Bytes bucket(std::min(parameters_.all(), bucket_parameters(request_.job)) * state.gradient);
  const bool by_unit = zero() == 3 || (zero() == 2 && shard_.rules.wraps_modules());
  if (by_unit && when == When::kPasses) add_unit_gradients(items);
  if (zero() == 2 && !by_unit)
    items.add(kGradients, "bucket", beside_shards(bucket, parameters_ * Bytes(state.gradient)));
  if (zero() < 2 && shard_.software.bucket_copies) items.add(kGradients, "bucket", bucket);
  if (zero() < 2 && shard_.rules.fresh_gradients)
    items.add(kGradients, "buckets", Bytes(parameters_.all() * state.gradient));
}

// Unsharded gradients, reduced unit by unit: those of the unit that runs. Queues are of passes. Where passes
// hold unsharded gradients, those include the gradients of the unit.
void RankStates::add_unit_gradients(LedgerItems& items) const {
  if (shard_.rules.is_megatron_fsdp() || accumulates_whole(request_.job)) return;
  const Bytes each(state_bytes(shard_).gradient);
  items.add(kGradients, "gradients of a gathered unit",
            beside_shards(largest_unit(each), parameters_ * each));
}

void RankStates::add_waiting_gradients(LedgerItems& items, const Action& action) const {
  const QueuedGradients waiting = waiting_gradients(model_, request_.job, action.stage);
  if (action.pass == Pass::kBackward) items.add(kGradients, "gradients to be reduced", waiting.backward);
  if (action.pass == Pass::kWeightGradient)
    items.add(kGradients, "gradients to be reduced", waiting.weight_gradient);
}

void RankStates::add_whole_gradients(LedgerItems& items, int stage) const {
  const ByteShare whole = whole_gradients(model_, request_.job, stage);
  add_apart(items, kGradients, whole.dense, whole.experts);
}

void RankStates::add_optimizer(LedgerItems& items) const {
  const StateBytes state = state_bytes(shard_);
  add_sharded(items, kOptimizer, parameters_ * Bytes(state.optimizer), zero() >= 1,
              1 - request_.job.offload.optimizer);
}

Bytes RankStates::on_host() const {
  const OffloadSpec& offload = request_.job.offload;
  const StateBytes state = state_bytes(shard_);
  const ByteShare stepped = parameters_ * Bytes(state.optimizer + kFp32Bytes);
  const Bytes states = held_bytes(stepped, zero() >= 1, offload.optimizer).all();
  return masters_alone(shard_) ? states : states + held_bytes(weights(), zero() >= 3, offload.weights).all();
}

// DeepSpeed joins the fp32 gradients in one tensor; under ZeRO it joins the 16-bit gradients that they are
// cast from in another. No block of the activations is that large, so both need new memory
// (deepspeed/runtime/zero/stage_1_and_2.py, single_grad_partition; deepspeed/runtime/fp16/fused_optimizer.py,
// grads_groups_flat). In BF16_Optimizer the fp32 gradients are one tensor from the start, which is cast for
// the reduction.
Bytes RankStates::joined_gradients() const {
  if (accumulates_apart()) return Bytes(plan_.has_replicas() ? parameters_.all() * kHalfBytes : 0);
  const StateBytes state = state_bytes(shard_);
  if (!shard_.software.bucket_copies || state.gradient_copy == 0) return Bytes(0);
  const double kept = 1 - request_.job.offload.optimizer;
  const bool cut = runs_zero() >= 1;
  const Bytes each(state.gradient_copy + (cut ? state.gradient : 0));
  return held_bytes(parameters_ * each, cut, kept).all();
}

// Without ZeRO the copies are made tensor by tensor and then joined. Copies larger than every activation
// tensor fit in no freed block: PyTorch's caching allocator does not join segments.
Bytes RankStates::large_copies() const {
  const std::int64_t bytes = state_bytes(shard_).gradient_copy;
  if (!shard_.software.bucket_copies || bytes == 0 || runs_zero() >= 1) return Bytes(0);
  Shard plain = shard_;
  plain.recompute = Recompute::kNone;
  Bytes block{};
  const LayerNumbers numbers = model_.numbers();
  for (const LayerKind kind : kLayerKinds) {
    if (numbers[kind] == 0) continue;
    for (const SavedTensor& tensor : layer_tensors(model_, plain, kind)) block = std::max(block, tensor.size);
  }
  const auto copy_of = [&](std::int64_t parameters) {
    const Bytes copy(parameters * bytes);
    return copy > block ? copy : Bytes(0);
  };
  const MatricesOfUnits matrices(model_, plain);
  Bytes sum{};
  for (const StageUnit& unit : units_) {
    if (is_root(unit)) {
      sum += copy_of(unit.reduced.dense);
      continue;
    }
    const UnitMatrices here = matrices.of(unit);
    for (const std::vector<std::int64_t>* sizes : {&here.dense, &here.experts})
      for (const std::int64_t size : *sizes) sum += copy_of(size);
  }
  return share_of(sum, 1 - request_.job.offload.optimizer);
}

Bytes RankStates::step_blocks() const {
  return joined_gradients() + large_copies();
}

// Gradients reduced in 16 bit are cast to fp32 for the optimizer step: a copy of the shard, after the
// activations are freed. DeepSpeed joins them in one tensor; without ZeRO it casts tensor by tensor and joins
// the copies.
void RankStates::add_step(LedgerItems& step) const {
  const StateBytes state = state_bytes(shard_);
  if (runs_zero() == 0 || !shard_.software.bucket_copies)
    add_sharded(step, kGradients, parameters_ * Bytes(state.gradient_copy), runs_zero() >= 1,
                1 - request_.job.offload.optimizer);
  step.add(kGradients, "joined gradients", joined_gradients());
  if (shard_.foreach_step)
    step.add(kOptimizer, "square roots of the step",
             held_bytes(parameters_ * Bytes(operand_bytes(shard_.moment)), runs_zero() >= 1,
                        1 - request_.job.offload.optimizer)
                 .all());
}

}  // namespace stagecraft
