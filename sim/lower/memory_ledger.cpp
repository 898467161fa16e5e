#include "sim/lower/memory_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "models/layer_matrices.hpp"
#include "models/memory.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"
#include "models/partition.hpp"
#include "sim/lower/memory_replay.hpp"
#include "sim/lower/pass_memory.hpp"
#include "sim/lower/price_gradients.hpp"
#include "sim/lower/stage_parameters.hpp"
#include "sim/schedule/unrolled.hpp"

namespace stagecraft {
namespace {

using enum MemoryClass;

// Everything that a rank holds at one moment, item by item where somebody reads the items.
class Items {
 public:
  explicit Items(bool itemised = true) : itemised_(itemised) {}

  void add(MemoryClass kind, std::string_view name, Bytes size) {
    if (size == Bytes(0)) return;
    sums_[static_cast<std::size_t>(kind)] += size;
    if (!itemised_) return;
    const auto same = [&](const MemoryItem& item) { return item.kind == kind && item.name == name; };
    const auto known = std::find_if(items_.begin(), items_.end(), same);
    if (known != items_.end()) {
      known->size += size;
    } else {
      items_.push_back({.kind = kind, .name = std::string(name), .size = size});
    }
  }

  [[nodiscard]] Bytes of(MemoryClass kind) const { return sums_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] Bytes allocated() const {
    return std::accumulate(sums_.begin(), sums_.end(), Bytes(0)) - of(kOverhead);
  }

  [[nodiscard]] StageMemory stage(int rank) && {
    return {.stage = rank,
            .weights = of(kWeights),
            .gradients = of(kGradients),
            .optimizer = of(kOptimizer),
            .activations = of(kActivations),
            .buffers = of(kBuffers),
            .overhead = of(kOverhead),
            .fragmentation = {},
            .items = std::move(items_),
            .moment = {}};
  }

 private:
  bool itemised_;
  std::array<Bytes, std::size(kMemoryClassNames)> sums_{};
  std::vector<MemoryItem> items_;
};

constexpr std::int64_t kFp32Bytes = 4;

// What the passes of every stage hold: alike for all ranks, and for stages of the same content, so it is
// asked once.
struct PipelineTensors {
  std::vector<StageTensors> contents;
  std::vector<std::size_t> content_of;  // [stage]
  std::vector<PassMemory> passes;       // [stage]

  [[nodiscard]] const StageTensors& of(std::size_t stage) const { return contents[content_of[stage]]; }
};

PipelineTensors pipeline_tensors(const TransformerSpec& model, const LedgerRequest& request) {
  const PassHabits habits = pass_habits(request.job.training.recompute, request.job.offload);
  PipelineTensors tensors;
  std::vector<const StageContent*> contents;
  for (const StageContent& content : request.job.plan.stages) {
    const auto known = std::ranges::find_if(contents, [&](const StageContent* c) { return *c == content; });
    tensors.content_of.push_back(static_cast<std::size_t>(known - contents.begin()));
    if (known == contents.end()) {
      contents.push_back(&content);
      tensors.contents.push_back(stage_tensors(model, request.shard, content, habits));
    }
    tensors.passes.push_back(pass_memory(tensors.of(tensors.content_of.size() - 1)));
  }
  return tensors;
}

// A stage that is recomputed by a pass of its own holds activations from that pass on, as peak_in_flight()
// counts.
PeakMoment moment_of(const std::vector<Action>& order, const ReplayPeak& peak,
                     const std::vector<PassMemory>& passes) {
  PeakMoment moment{.action = order[peak.action], .in_flight = 0, .time = {}};
  for (std::size_t stage = 0; stage < passes.size(); ++stage) {
    const StageInFlight& count = peak.in_flight[stage];
    moment.in_flight += count.held + (passes[stage].made_again > Bytes(0) ? count.again : count.whole);
  }
  return moment;
}

// An order that never drains is at its fullest when one iteration runs into the next; nullopt for others.
std::optional<Schedule> replayed(const Schedule& schedule) {
  return schedule.flush ? std::nullopt : std::optional(unrolled(schedule, 2));
}

// Of dense parameters and of routed experts, which are sharded over other ranks.
struct HeldBytes {
  Bytes dense, experts;
};

// One rank of the pipeline: what it holds whatever runs, and what its passes hold.
class RankLedger {
 public:
  RankLedger(const TransformerSpec& model, const LedgerRequest& request, int rank)
      : model_(model),
        request_(request),
        plan_(request.job.plan),
        shard_(request.shard),
        rank_(rank),
        parameters_(rank_share(model, request.job.plan, rank)) {
    for (const HeldStage& held : plan_.places().held_by(rank)) held_.push_back(held.stage);
  }

  StageMemory stage(const PipelineTensors& tensors) const;

 private:
  int zero() const { return request_.job.parallelism.zero_stage; }
  const StageContent& content(int stage) const { return plan_.stages[static_cast<std::size_t>(stage)]; }
  bool holds(bool StageContent::*end) const {
    return std::ranges::any_of(held_, [&](int stage) { return content(stage).*end; });
  }

  // One micro-batch has nothing to add to.
  bool accumulates_whole() const { return shard_.software.whole_gradients && plan_.micro_batches > 1; }
  std::vector<StageUnit> units() const;
  std::vector<std::int64_t> gathers() const;
  Bytes largest_unit(std::int64_t bytes) const;
  Bytes gathered_units(std::int64_t bytes) const;
  Bytes staged_units(std::int64_t bytes) const;
  Bytes staged_activations() const;
  Bytes stream_blocks() const;
  Bytes joined_gradients() const;
  Bytes fp8_copies() const;
  void add_weights(Items& items) const;
  void add_gradients(Items& items) const;
  void add_optimizer(Items& items) const;
  HeldBytes held_bytes(std::int64_t bytes, bool sharded, double kept) const;
  void add_sharded(Items& items, MemoryClass kind, std::int64_t bytes, bool sharded, double kept) const;
  void add_messages(Items& items) const;
  void add_buffers(Items& items) const;
  void add_activations(Items& items, const ReplayPeak& peak, const PipelineTensors& tensors) const;
  void add_step(Items& step) const;
  void add_overhead(Items& items, StageMemory& memory, Bytes step_blocks) const;
  int communicators() const;

  const TransformerSpec& model_;
  const LedgerRequest& request_;
  const ParallelPlan& plan_;
  const Shard& shard_;
  const int rank_;
  const ParameterShare parameters_;  // held
  std::vector<int> held_;            // stages, by chunk
};

std::vector<StageUnit> RankLedger::units() const {
  std::vector<StageUnit> units;
  for (const int stage : held_) {
    const std::vector<StageUnit> here = stage_units(model_, plan_, stage);
    units.insert(units.end(), here.begin(), here.end());
  }
  return units;
}

Bytes RankLedger::largest_unit(std::int64_t bytes) const {
  std::int64_t most = 0;
  for (const StageUnit& unit : units()) most = std::max(most, unit.gathered.all());
  return Bytes(most * bytes);
}

// Parameters that come together, in the order in which they come; the root of FSDP2, empty or not, first.
std::vector<std::int64_t> RankLedger::gathers() const {
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

// Two that follow each other, at most.
std::int64_t largest_pair(std::span<const std::int64_t> sizes) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    most = std::max(most, sizes[i] + (i + 1 < sizes.size() ? sizes[i + 1] : 0));
  return most;
}

// Under ZeRO 3: the unit that computes, and the next one where it is gathered beside; all of them where they
// are kept from the forward to the backward. FSDP2's root stays.
Bytes RankLedger::gathered_units(std::int64_t bytes) const {
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
Bytes RankLedger::stream_blocks() const {
  if (!shard_.software.fully_shard || zero() < 2 || plan_.shard_group == 1) return Bytes(0);
  return Bytes(largest_pair(gathers()) * state_bytes(shard_.precision, shard_.gradient).weight);
}

// The unit that computes and the one that is on its way from the host, of ZeRO 3 the rank's shards of them;
// never more than there are.
Bytes RankLedger::staged_units(std::int64_t bytes) const {
  const auto shard = [&](const ParameterShare& share) {
    const std::int64_t n = zero() >= 3 ? plan_.shard_group : 1;
    const std::int64_t expert_n = zero() >= 3 ? plan_.expert_shard_group() : 1;
    return (share.dense * bytes + n - 1) / n + (share.experts * bytes + expert_n - 1) / expert_n;
  };
  std::int64_t most = 0;
  for (const StageUnit& unit : units()) most = std::max(most, shard(unit.gathered));
  return Bytes(std::min(2 * most, shard(parameters_)));
}

// What two layers keep, the one that computes and the one that is on its way, as far as there are two; of
// checkpoints those beside the one that is being made again.
Bytes RankLedger::staged_activations() const {
  const std::int64_t group = pass_habits(request_.job.training.recompute, OffloadSpec{}).checkpoint_group;
  const bool full = shard_.recompute == Recompute::kFull;
  Bytes most{};
  for (const int stage : held_) {
    const StageContent& here = content(stage);
    std::vector<Bytes> layers;
    const auto add = [&](std::int64_t count, Bytes size) {
      layers.insert(layers.end(), static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, 2)), size);
    };
    const std::int64_t experts = here.expert_layers - (full ? here.recomputed_experts : 0);
    const std::int64_t plain = here.layers - (full ? here.recomputed : 0);
    if (plain > experts) add(plain - experts, total(layer_tensors(model_, shard_)));
    if (experts > 0) add(experts, total(layer_tensors(model_, shard_, LayerKind::kExperts)));
    if (full) add((here.recomputed + group - 1) / group - 1, boundary_activation(model_, shard_));
    std::ranges::sort(layers, std::greater{});
    layers.resize(std::min<std::size_t>(layers.size(), 2));
    most = std::max(most, std::accumulate(layers.begin(), layers.end(), Bytes(0)));
  }
  return most;
}

// `bytes` for each parameter of the rank, or of its shard; `kept` of it on the GPU.
HeldBytes RankLedger::held_bytes(std::int64_t bytes, bool sharded, double kept) const {
  const auto part = [&](std::int64_t count, int ranks) {
    const std::int64_t n = sharded ? ranks : 1;
    return share_of(Bytes((count * bytes + n - 1) / n), kept);
  };
  return {.dense = part(parameters_.dense, plan_.shard_group),
          .experts = part(parameters_.experts, plan_.expert_shard_group())};
}

void RankLedger::add_sharded(Items& items, MemoryClass kind, std::int64_t bytes, bool sharded,
                             double kept) const {
  const HeldBytes held = held_bytes(bytes, sharded, kept);
  const std::string_view name = kMemoryClassNames[static_cast<std::size_t>(kind)];
  items.add(kind, name, held.dense);
  if (parameters_.experts > 0) items.add(kind, "experts' " + std::string(name), held.experts);
}

// Transformer Engine casts weights once an iteration and keeps what it cast. Of gathered ones it keeps the
// transposes for the backward, which a layer that is recomputed makes again.
Bytes RankLedger::fp8_copies() const {
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

void RankLedger::add_weights(Items& items) const {
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  const double offloaded = request_.job.offload.weights;
  const bool masters = shard_.software.fp32_shards && zero() >= 3 && shard_.precision != Precision::kFp32;
  if (!masters)  // else the optimizer's fp32 weights are all that there is
    add_sharded(items, kWeights, state.weight, zero() >= 3, 1 - offloaded);
  items.add(kWeights, "fp8 copies of weights", fp8_copies());
  const ScheduleKind* kind = find_schedule(request_.schedule.name);
  if (kind != nullptr && !kind->kept_beside.empty())
    items.add(kWeights, kind->kept_beside, Bytes(parameters_.all() * kFp32Bytes));
  if (zero() >= 3 && plan_.shard_group > 1)
    items.add(kWeights, "gathered units", gathered_units(state.weight));
  if (offloaded > 0)
    items.add(kWeights, "units from the host", share_of(staged_units(state.weight), offloaded));
}

void RankLedger::add_gradients(Items& items) const {
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  add_sharded(items, kGradients, state.gradient, zero() >= 2 && !accumulates_whole(), 1);
  if (plan_.replicas() == 1) return;
  const Bytes bucket(std::min(parameters_.all(), bucket_parameters(request_.job)) * state.gradient);
  if (zero() == 2) items.add(kGradients, "bucket", bucket);
  if (zero() == 3) items.add(kGradients, "gradients of a gathered unit", largest_unit(state.gradient));
  if (zero() < 2 && shard_.software.bucket_copies) items.add(kGradients, "bucket", bucket);
}

void RankLedger::add_optimizer(Items& items) const {
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  add_sharded(items, kOptimizer, state.optimizer, zero() >= 1, 1 - request_.job.offload.optimizer);
}

// DeepSpeed's fp32 gradients are one tensor, and under ZeRO those in 16 bit that it is cast from are another:
// no block of the activations holds so much, so that both lie beside those (deepspeed/runtime/zero/
// stage_1_and_2.py, single_grad_partition; deepspeed/runtime/fp16/fused_optimizer.py, grads_groups_flat).
Bytes RankLedger::joined_gradients() const {
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  if (!shard_.software.bucket_copies || state.gradient_copy == 0) return Bytes(0);
  const double kept = 1 - request_.job.offload.optimizer;
  const bool sharded = zero() >= 1;
  const HeldBytes held = held_bytes(state.gradient_copy + (sharded ? state.gradient : 0), sharded, kept);
  return held.dense + held.experts;
}

// Gradients reduced in 16 bit are stepped in fp32: a copy of the shard, when the activations are gone. Of
// DeepSpeed they are joined; without ZeRO it casts tensor by tensor and joins the copies.
void RankLedger::add_step(Items& step) const {
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  if (zero() == 0 || !shard_.software.bucket_copies)
    add_sharded(step, kGradients, state.gradient_copy, zero() >= 1, 1 - request_.job.offload.optimizer);
  step.add(kGradients, "joined gradients", joined_gradients());
}

// Two each way, or a receive buffer for every micro-batch and the outputs of the step, and two gradients on
// their way.
void RankLedger::add_messages(Items& items) const {
  if (plan_.pipeline == 1) return;
  const Bytes message = boundary_activation(model_, shard_);
  if (!shard_.software.step_messages) return items.add(kBuffers, "messages between stages", message * 4);
  items.add(kBuffers, "messages between stages", message * 2);
  const std::int64_t micro_batches = plan_.micro_batches;
  const Bytes logits(element_bytes(shard_.precision) * shard_.tokens() *
                     vocabulary_share(model_, shard_.tensor));
  for (const int stage : held_) {
    const bool first = content(stage).embedding, last = content(stage).head;
    const int neighbours = (first ? 0 : 1) + (last ? 0 : 1);
    items.add(kBuffers, "receive buffers of the step", message * micro_batches * neighbours);
    items.add(kBuffers, "outputs of the step", (last ? logits : message) * micro_batches);
  }
}

void RankLedger::add_buffers(Items& items) const {
  const Bytes message = boundary_activation(model_, shard_);
  add_messages(items);
  bool dense = false, experts = false;
  for (const int stage : held_) {
    dense = dense || content(stage).layers > content(stage).expert_layers;
    experts = experts || content(stage).expert_layers > 0;
  }
  if (dense) items.add(kBuffers, "gradient placeholders", gradient_placeholders(model_, shard_));
  if (experts)
    items.add(kBuffers, "gradient placeholders", gradient_placeholders(model_, shard_, LayerKind::kExperts));
  if (request_.job.offload.activations > 0)
    items.add(kBuffers, "activations on their way to the host",
              share_of(staged_activations(), request_.job.offload.activations));
  // Registered once for the inputs and outputs of a layer's four products, which sequence parallelism gathers
  // and scatters.
  if (shard_.software.user_buffers && shard_.overlap_tensor && shard_.sequence_parallel && plan_.tensor > 1)
    items.add(kBuffers, "user buffers", message * plan_.tensor * 4);
  items.add(kBuffers, "cuBLAS workspace", request_.profile.memory.workspace.value);
}

void RankLedger::add_activations(Items& items, const ReplayPeak& peak, const PipelineTensors& tensors) const {
  for (std::size_t stage = 0; stage < peak.in_flight.size(); ++stage) {
    const StageInFlight& count = peak.in_flight[stage];
    if (count == StageInFlight{}) continue;
    const StageTensors& held = tensors.of(stage);
    for (const SavedTensor& tensor : held.kept)
      items.add(kActivations, tensor.name, tensor.size * count.whole);
    for (const SavedTensor& tensor : held.made_again)
      items.add(kActivations, tensor.name, tensor.size * count.again);
    items.add(kActivations, "held for weight gradients", held.held_for_weight_gradients * count.held);
  }
  if (peak.transient == Bytes(0)) return;
  const std::vector<Action>& order = request_.schedule.ranks[static_cast<std::size_t>(rank_)];
  for (std::size_t i = peak.action; i < peak.action + peak.actions; ++i) {
    const Action& action = order[i];
    if (action.pass == Pass::kWeightGradient || action.pass == Pass::kRecompute) continue;
    const StageTensors& running = tensors.of(static_cast<std::size_t>(action.stage));
    const SavedTensors& working =
        action.pass == Pass::kForward ? running.forward_transient : running.backward_transient;
    for (const SavedTensor& tensor : working)
      items.add(tensor.name == "recomputed layer" ? kActivations : kBuffers, tensor.name, tensor.size);
  }
}

// Groups that send at all, one communicator each. A pipeline rank has one for its neighbours; the ends of a
// pipeline with tied words or multi-token prediction have one more, and so has every rank of one that runs
// both ways.
int RankLedger::communicators() const {
  int count = 0;
  for (const int ranks : {plan_.tensor, plan_.context, plan_.data, plan_.pipeline}) count += ranks > 1;
  if (model_.experts) {
    count += plan_.expert > 1;
    count += plan_.expert_tensor > 1;
    count += plan_.expert > 1 && plan_.expert_data() > 1;  // else they are the data group
  }
  const bool end = holds(&StageContent::embedding) || holds(&StageContent::head);
  if (plan_.places().copies() > 1) ++count;  // with the rank that has the other copies
  const bool two_copies = model_.tied_embeddings || model_.mtp_layers > 0;  // of the words
  return count + (two_copies && !ends_meet(plan_) && end ? 1 : 0);
}

void RankLedger::add_overhead(Items& items, StageMemory& memory, Bytes step_blocks) const {
  const MemoryOverheads& overheads = request_.profile.memory;
  const double share = shard_.software.fragmentation.value_or(overheads.fragmentation.value);
  memory.fragmentation = share_of(items.allocated(), share);
  items.add(kOverhead, "fragmentation", memory.fragmentation);
  const Bytes blocks = stream_blocks();
  items.add(kOverhead, "blocks of other streams", blocks);
  items.add(kOverhead, "blocks of the step", step_blocks);
  memory.fragmentation += blocks + step_blocks;
  items.add(kOverhead, "CUDA context", overheads.context.value);
  items.add(kOverhead, "NCCL communicators", overheads.communicators.value * communicators());
}

StageMemory RankLedger::stage(const PipelineTensors& tensors) const {
  const std::vector<Action>& order = request_.schedule.ranks[static_cast<std::size_t>(rank_)];
  const ReplayPeak peak = replay_memory(order, tensors.passes);

  Items items(!request_.until_over);
  add_weights(items);
  add_gradients(items);
  add_optimizer(items);
  add_buffers(items);
  Items step = items;
  add_step(step);
  add_activations(items, peak, tensors);

  StageMemory memory;
  PeakMoment moment;
  const Bytes joined = joined_gradients();
  const Bytes reserved = std::max(items.allocated() + joined, step.allocated());
  if (step.allocated() > items.allocated()) {
    items = std::move(step);
  } else {
    moment = moment_of(order, peak, tensors.passes);
  }
  add_overhead(items, memory, reserved - items.allocated());
  const Bytes fragmentation = memory.fragmentation;
  memory = std::move(items).stage(rank_);
  memory.fragmentation = fragmentation;
  memory.moment = moment;
  return memory;
}

}  // namespace

Verdict verdict_of(Bytes peak, Bytes capacity) {
  if (capacity == Bytes(0)) return Verdict::kFits;
  const double share = peak / capacity;
  return share > 1 ? Verdict::kOutOfMemory : share > kTightShare ? Verdict::kTight : Verdict::kFits;
}

const StageMemory& MemoryLedger::heaviest() const {
  SC_CHECK(!stages.empty(), "a ledger has a stage");
  return *std::max_element(stages.begin(), stages.end(),
                           [](const StageMemory& a, const StageMemory& b) { return a.peak() < b.peak(); });
}

Verdict MemoryLedger::verdict() const {
  return verdict_of(heaviest().peak(), capacity);
}

std::string MemoryLedger::rule() const {
  if (capacity == Bytes(0)) return "the capacity is not given";
  static constexpr std::string_view kRules[] = {"at most 80 % of", "over 80 % of", "more than"};
  return fmt::format("reserved + context + NCCL: {}, {} {}", human(heaviest().peak()),
                     kRules[static_cast<std::size_t>(verdict())], human(capacity));
}

MemoryLedger transformer_ledger(const TransformerSpec& model, const LedgerRequest& job) {
  const std::optional<Schedule> drained = replayed(job.schedule);
  const LedgerRequest request{.job = job.job,
                              .shard = job.shard,
                              .schedule = drained ? *drained : job.schedule,
                              .profile = job.profile,
                              .until_over = job.until_over};
  MemoryLedger ledger{.capacity = request.profile.device.memory, .stages = {}};
  const PipelineTensors tensors = pipeline_tensors(model, request);
  for (int rank = 0; rank < request.job.plan.pipeline; ++rank) {
    ledger.stages.push_back(RankLedger(model, request, rank).stage(tensors));
    const Verdict verdict = verdict_of(ledger.stages.back().peak(), ledger.capacity);
    if (request.until_over && verdict == Verdict::kOutOfMemory) break;
  }
  return ledger;
}

MemoryLedger stages_ledger(const StagesSpec& model, const ParallelPlan& plan, const Schedule& schedule,
                           Bytes capacity) {
  const auto entry = [](const std::vector<Bytes>& list, std::size_t stage) {
    return list.empty() ? Bytes(0) : list.size() == 1 ? list.front() : list.at(stage);
  };
  std::vector<PassMemory> passes;
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    PassMemory& pass = passes.emplace_back();
    // How large the inputs are that recomputed stages keep is not given.
    (plan.stages[stage].recompute_pass ? pass.made_again : pass.kept) = entry(model.activation, stage);
  }
  const std::optional<Schedule> unrolled_twice = replayed(schedule);
  const Schedule& drained = unrolled_twice ? *unrolled_twice : schedule;
  MemoryLedger ledger{.capacity = capacity, .stages = {}};
  for (int rank = 0; rank < plan.pipeline; ++rank) {
    const std::vector<Action>& order = drained.ranks[static_cast<std::size_t>(rank)];
    const ReplayPeak peak = replay_memory(order, passes);
    Items items;
    for (const HeldStage& held : plan.places().held_by(rank))
      items.add(kGradients, "gradients", entry(model.gradient, static_cast<std::size_t>(held.stage)));
    items.add(kActivations, "activations", peak.live);
    ledger.stages.push_back(std::move(items).stage(rank));
    ledger.stages.back().moment = moment_of(order, peak, passes);
  }
  return ledger;
}

}  // namespace stagecraft
