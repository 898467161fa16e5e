#include "sim/lower/memory_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ceil_div.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "models/memory.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"
#include "models/partition.hpp"
#include "sim/lower/ledger_items.hpp"
#include "sim/lower/memory_replay.hpp"
#include "sim/lower/pass_memory.hpp"
#include "sim/lower/rank_states.hpp"
#include "sim/lower/stage_parameters.hpp"
#include "sim/schedule/unrolled.hpp"

namespace stagecraft {
namespace {

using enum MemoryClass;

// Reserved over allocated memory, less 1: 2 to 15 % in steady runs.
constexpr double kLeastFragmentation = 0.02;

// Tensors that the passes of every stage hold. All ranks share them, and stages of equal content share one
// entry of `contents`.
struct PipelineTensors {
  std::vector<StageTensors> contents;
  std::vector<std::size_t> content_of;  // [stage]
  std::vector<PassMemory> passes;       // [stage]

  [[nodiscard]] const StageTensors& of(std::size_t stage) const { return contents[content_of[stage]]; }
};

PipelineTensors pipeline_tensors(const TransformerSpec& model, const LedgerRequest& request) {
  const PassHabits habits = habits_of(request.job);
  PipelineTensors tensors;
  std::vector<const StageContent*> contents;
  for (const StageContent& content : request.job.plan.stages) {
    const auto known = std::ranges::find_if(contents, [&](const StageContent* c) { return *c == content; });
    tensors.content_of.push_back(static_cast<std::size_t>(known - contents.begin()));
    if (known == contents.end()) {
      contents.push_back(&content);
      tensors.contents.push_back(stage_tensors(model, request.job.shard, content, habits));
    }
    const std::size_t stage = tensors.passes.size();
    PassMemory& pass = tensors.passes.emplace_back(pass_memory(tensors.of(stage)));
    add_gradients_of_passes(pass, model, request.job, static_cast<int>(stage));
  }
  return tensors;
}

// A stage with a recompute pass holds activations from that pass on, as in peak_in_flight().
PeakMoment moment_of(const std::vector<Action>& order, const ReplayPeak& peak,
                     const std::vector<PassMemory>& passes) {
  PeakMoment moment{.action = order[peak.action], .in_flight = 0, .time = {}};
  for (const StageInFlight& count : peak.in_flight) {
    const bool again = passes[static_cast<std::size_t>(count.stage)].made_again > Bytes(0);
    moment.in_flight += count.held + (again ? count.again : count.whole);
  }
  return moment;
}

// A schedule without a flush has its memory peak where two iterations overlap, so two are replayed. nullopt
// for schedules with a flush.
std::optional<Schedule> replayed(const Schedule& schedule) {
  return schedule.flush ? std::nullopt : std::optional(unrolled(schedule, 2));
}

// Of a tensor that lives while a pass runs.
MemoryClass class_of(std::string_view transient) {
  if (transient == kGradientsMade) return kGradients;
  return transient == kRecomputedLayer || transient == kHeldForWeightGradients ? kActivations : kBuffers;
}

// Activations that the passes offload: the forward writes them, its backward reads them.
std::vector<PassMemory> offloaded_passes(const TransformerSpec& model, const LedgerRequest& request) {
  std::vector<PassMemory> passes;
  for (const StageContent& content : request.job.plan.stages) {
    const Bytes all = offloadable(model, request.job.shard, content, request.job.training.recompute);
    const Bytes out = share_of(all, request.job.offload.activations);
    passes.push_back(
        {.kept = out, .freed_by_input_gradient = out, .forward_transient = {}, .backward_transient = {}});
  }
  return passes;
}

// One pipeline rank: its states, and the tensors that its passes hold.
class RankLedger {
 public:
  RankLedger(const TransformerSpec& model, const LedgerRequest& request, int rank)
      : model_(model),
        request_(request),
        plan_(request.job.plan),
        shard_(request.job.shard),
        rank_(rank),
        states_(model, request, rank) {}

  StageMemory stage(const PipelineTensors& tensors) const;
  // `passes`: offloaded_passes().
  Bytes on_host(const std::vector<PassMemory>& passes) const;

 private:
  const StageContent& content(int stage) const { return plan_.stages[static_cast<std::size_t>(stage)]; }
  bool holds(bool StageContent::*end) const {
    return std::ranges::any_of(states_.held(), [&](int stage) { return content(stage).*end; });
  }
  Bytes staged_activations() const;
  [[nodiscard]] Bytes largest_message() const;
  void add_messages(LedgerItems& items) const;
  Bytes merged_outputs() const;
  void add_buffers(LedgerItems& items, RankStates::When when) const;
  void add_activations(LedgerItems& items, const ReplayPeak& peak, const PipelineTensors& tensors) const;
  Bytes beside_gradients(const std::vector<Action>& order, const ReplayPeak& peak) const;
  Bytes add_overhead(LedgerItems& items, Bytes step_blocks, Bytes gradient_blocks) const;
  Bytes unused_blocks(Bytes size, Bytes left) const;
  int communicators() const;

  const TransformerSpec& model_;
  const LedgerRequest& request_;
  const ParallelPlan& plan_;
  const Shard& shard_;
  const int rank_;
  const RankStates states_;
};

// Most activations in transit to or from the host, over the rank's stages. Under full recompute the
// checkpoint in use is not in transit.
Bytes RankLedger::staged_activations() const {
  const std::int64_t group = pass_habits(request_.job.training.recompute, OffloadSpec{}).checkpoint_group;
  const bool full = shard_.recompute == Recompute::kFull;
  Bytes most{};
  for (const int stage : states_.held()) {
    const StageContent& here = content(stage);
    std::vector<KeptLayers> layers;
    const LayerNumbers all = here.layers.by_memory(), again = here.recomputed.by_memory();
    for (const LayerKind kind : kLayerKinds) {
      const std::int64_t kept = all[kind] - (full ? again[kind] : 0);
      if (kept > 0) layers.push_back({.count = kept, .each = total(layer_tensors(model_, shard_, kind))});
    }
    if (full)
      layers.push_back(
          {.count = ceil_div(here.recomputed.all(), group) - 1, .each = boundary_activation(model_, shard_)});
    most = std::max(most, on_their_way(layers));
  }
  return most;
}

// The largest message of the rank: behind a stage of multi-token prediction alone it has the states of all
// predictions.
Bytes RankLedger::largest_message() const {
  std::int64_t states = 1;
  for (const int stage : states_.held()) {
    if (stage > 0) states = std::max(states, 1 + content(stage - 1).mtp_layers);
    if (!content(stage).head) states = std::max(states, 1 + content(stage).mtp_layers);
  }
  return boundary_activation(model_, shard_) * states;
}

// Two message buffers in each direction. Software with step messages instead has a receive buffer per
// micro-batch, two gradients in transit, and where it keeps them the outputs of the step.
void RankLedger::add_messages(LedgerItems& items) const {
  if (plan_.pipeline == 1) return;
  const Bytes message = largest_message();
  if (!shard_.rules.step_messages) return items.add(kBuffers, "messages between stages", message * 4);
  items.add(kBuffers, "messages between stages", message * 2);
  const std::int64_t micro_batches = plan_.micro_batches;
  const Bytes logits = head_logits(model_, shard_);
  for (const int stage : states_.held()) {
    const bool first = content(stage).embedding, last = content(stage).head;
    const int neighbours = (first ? 0 : 1) + (last ? 0 : 1);
    items.add(kBuffers, "receive buffers of the step", message * micro_batches * neighbours);
    if (shard_.software.keep_outputs)
      items.add(kBuffers, "outputs of the step", (last ? logits : message) * micro_batches);
  }
}

// The last stage concatenates the outputs that it kept after the passes. With more than two micro-batches no
// freed block can hold the result: the largest block is one of fp32 logits.
//   source  torch/distributed/pipelining/schedules.py, _merge_outputs; pytorch/pytorch #138504, #159251.
Bytes RankLedger::merged_outputs() const {
  const std::int64_t micro_batches = plan_.micro_batches;
  const bool keeps = shard_.rules.step_messages && shard_.software.keep_outputs;
  const bool merges = keeps && plan_.pipeline > 1 && holds(&StageContent::head);
  return merges && micro_batches > 2 ? head_logits(model_, shard_) * micro_batches : Bytes(0);
}

void RankLedger::add_buffers(LedgerItems& items, RankStates::When when) const {
  const Bytes message = boundary_activation(model_, shard_);
  add_messages(items);
  if (plan_.pipeline == 1 && shard_.software.keep_outputs)
    items.add(kBuffers, "logits that the loop keeps", returned_logits(model_, shard_));
  LayerNumbers held;
  for (const int stage : states_.held()) held += content(stage).layers.by_memory();
  for (const LayerKind kind : kLayerKinds)
    if (held[kind] > 0)
      items.add(kBuffers, "gradient placeholders", gradient_placeholders(model_, shard_, kind));
  if (request_.job.offload.activations > 0 && when == RankStates::When::kPasses)
    items.add(kBuffers, "activations on their way to the host",
              share_of(staged_activations(), request_.job.offload.activations));
  // Buffers are registered once, for the inputs and outputs of a layer's four GEMMs that sequence parallelism
  // gathers and scatters.
  if (shard_.rules.user_buffers && shard_.overlap_tensor && shard_.sequence_parallel && plan_.tensor > 1)
    items.add(kBuffers, "user buffers", message * plan_.tensor * 4);
  items.add(kBuffers, "cuBLAS workspace", request_.profile.memory.workspace.value);
}

void RankLedger::add_activations(LedgerItems& items, const ReplayPeak& peak,
                                 const PipelineTensors& tensors) const {
  for (const StageInFlight& count : peak.in_flight) {
    if (count == StageInFlight{.stage = count.stage}) continue;
    const StageTensors& held = tensors.of(static_cast<std::size_t>(count.stage));
    for (const SavedTensor& tensor : held.kept)
      items.add(kActivations, tensor.name, tensor.size * count.whole);
    for (const SavedTensor& tensor : held.made_again)
      items.add(kActivations, tensor.name, tensor.size * count.again);
    items.add(kActivations, kHeldForWeightGradients, held.held_for_weight_gradients * count.held);
    if (count.gradients) states_.add_whole_gradients(items, count.stage);
  }
  if (peak.transient == Bytes(0)) return;
  const std::vector<Action>& order = request_.schedule.ranks[static_cast<std::size_t>(rank_)];
  for (std::size_t i = peak.action; i < peak.action + peak.actions; ++i) {
    states_.add_waiting_gradients(items, order[i]);
    const StageTensors& running = tensors.of(static_cast<std::size_t>(order[i].stage));
    for (const SavedTensor& tensor : running.transient(order[i].pass)) {
      items.add(class_of(tensor.name), tensor.name, tensor.size);
    }
  }
}

// One communicator per group with traffic: each parallel axis, and the neighbours along the pipeline. The two
// ranks with a word embedding have one more, and so has every rank of a bidirectional pipeline.
int RankLedger::communicators() const {
  int count = 0;
  for (const int ranks : {plan_.tensor, plan_.context, plan_.data, plan_.pipeline}) count += ranks > 1;
  if (model_.experts) {
    count += plan_.expert > 1;
    count += plan_.expert_tensor > 1;
    const bool as_dense = plan_.expert == 1 && plan_.expert_tensor == plan_.tensor;  // the data group
    count += !as_dense && plan_.expert_data() > 1;
  }
  if (plan_.places().copies() > 1) ++count;  // with the rank that holds the other copies of its stages
  const std::optional<int> second = second_embedding(model_, plan_);
  const bool one_of_two =
      second && (holds(&StageContent::embedding) || std::ranges::count(states_.held(), *second) > 0);
  return count + (one_of_two ? 1 : 0);
}

// Cached blocks that nothing fits in, of `size` allocated bytes. Before an allocation fails PyTorch gives back what it can,
// so on a full card they are what is left, down to the least that steady runs show.
//   source  c10/cuda/CUDACachingAllocator.cpp, malloc: release_cached_blocks and another try
Bytes RankLedger::unused_blocks(Bytes size, Bytes left) const {
  if (shard_.software.fragmentation) return share_of(size, *shard_.software.fragmentation);
  const double usual = request_.profile.memory.fragmentation.value;
  const Bytes unused = share_of(size, usual), least = share_of(size, std::min(usual, kLeastFragmentation));
  return request_.profile.device.memory == Bytes(0) ? unused : std::max(std::min(unused, left), least);
}

// Adds overhead. Returns the part of it that is fragmentation.
Bytes RankLedger::add_overhead(LedgerItems& items, Bytes step_blocks, Bytes gradient_blocks) const {
  const MemoryOverheads& overheads = request_.profile.memory;
  const Bytes blocks = states_.stream_blocks() + gradient_blocks;
  const Bytes communicators_of_nccl = overheads.communicators.value * communicators();
  const Bytes others = blocks + step_blocks + overheads.context.value + communicators_of_nccl;
  const Bytes unused = unused_blocks(items.allocated() + gradient_blocks,
                                     request_.profile.device.memory - items.allocated() - others);
  items.add(kOverhead, "fragmentation", unused);
  items.add(kOverhead, "blocks of other streams", blocks);
  items.add(kOverhead, "blocks of the step", step_blocks);
  items.add(kOverhead, "CUDA context", overheads.context.value);
  items.add(kOverhead, "NCCL communicators", communicators_of_nccl);
  return unused + blocks + step_blocks;
}

// Memory that the passes need beyond their peak, because gradients of a stream of their own take no room that activations
// have left.
Bytes RankLedger::beside_gradients(const std::vector<Action>& order, const ReplayPeak& peak) const {
  const Bytes gradients = states_.gradients_apart();
  if (gradients == Bytes(0)) return Bytes(0);
  const PassHabits habits =
      pass_habits(request_.job.training.recompute, request_.job.offload);  // that make none
  std::vector<PassMemory> passes;
  for (const StageContent& here : plan_.stages) passes.push_back(pass_memory(model_, shard_, here, habits));
  const ReplayPeak without = replay_memory(order, passes);
  return without.live + without.transient + gradients - peak.live - peak.transient;
}

StageMemory RankLedger::stage(const PipelineTensors& tensors) const {
  const std::vector<Action>& order = request_.schedule.ranks[static_cast<std::size_t>(rank_)];
  const ReplayPeak peak = replay_memory(order, tensors.passes);

  const auto held = [&](RankStates::When when) {
    LedgerItems items(!request_.until_over);
    states_.add_weights(items, when);
    states_.add_gradients(items, when);
    states_.add_optimizer(items);
    add_buffers(items, when);
    return items;
  };
  LedgerItems items = held(RankStates::When::kPasses), step = held(RankStates::When::kStep);
  states_.add_step(step);
  const MemorySums beside_passes = items.sums(), in_step = step.sums();
  add_activations(items, peak, tensors);

  PeakMoment moment;
  Bytes apart = beside_gradients(order, peak);
  const Bytes blocks = states_.step_blocks() + merged_outputs() + apart;
  const Bytes reserved = std::max(items.allocated() + blocks, step.allocated());
  if (step.allocated() > items.allocated()) {
    items = std::move(step);
    apart = Bytes(0);
  } else {
    moment = moment_of(order, peak, tensors.passes);
  }
  const Bytes fragmentation = add_overhead(items, reserved - items.allocated() - apart, apart);
  StageMemory memory = std::move(items).stage(rank_);
  memory.fragmentation = fragmentation;
  memory.moment = moment;
  memory.beside_passes = beside_passes;
  memory.in_step = in_step;
  return memory;
}

Bytes RankLedger::on_host(const std::vector<PassMemory>& passes) const {
  const std::vector<Action>& order = request_.schedule.ranks[static_cast<std::size_t>(rank_)];
  return states_.on_host() + replay_memory(order, passes).live;
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
  return std::max(verdict_of(heaviest().peak(), capacity), host.verdict());
}

std::string MemoryLedger::rule() const {
  static constexpr std::string_view kRules[] = {"at most 80 % of", "over 80 % of", "more than"};
  const Verdict on_gpu = verdict_of(heaviest().peak(), capacity);
  if (host.verdict() > on_gpu)
    return fmt::format("offloaded to the memory of a node: {}, {} {}", human(host.used),
                       kRules[static_cast<std::size_t>(host.verdict())], human(host.capacity));
  if (capacity == Bytes(0)) return "the capacity is not given";
  return fmt::format("reserved + context + NCCL: {}, {} {}", human(heaviest().peak()),
                     kRules[static_cast<std::size_t>(on_gpu)], human(capacity));
}

std::string MemoryLedger::shortage() const {
  if (verdict_of(heaviest().peak(), capacity) != Verdict::kOutOfMemory)
    return fmt::format("a node offloads {} and has {}", human(host.used), human(host.capacity));
  return fmt::format("stage {} needs {} of {}", heaviest().stage, human(heaviest().peak()), human(capacity));
}

MemoryLedger transformer_ledger(const TransformerSpec& model, const LedgerRequest& job) {
  const std::optional<Schedule> drained = replayed(job.schedule);
  const LedgerRequest request{.job = job.job,
                              .schedule = drained ? *drained : job.schedule,
                              .profile = job.profile,
                              .until_over = job.until_over};
  MemoryLedger ledger{.capacity = request.profile.device.memory, .stages = {}};
  const PipelineTensors tensors = pipeline_tensors(model, request);
  const bool offloads = request.job.offload != OffloadSpec{};
  const std::vector<PassMemory> offloaded =
      offloads ? offloaded_passes(model, request) : std::vector<PassMemory>{};
  for (int rank = 0; rank < request.job.plan.pipeline; ++rank) {
    const RankLedger here(model, request, rank);
    ledger.stages.push_back(here.stage(tensors));
    if (offloads) ledger.stages.back().on_host = here.on_host(offloaded);
    const Verdict verdict = verdict_of(ledger.stages.back().peak(), ledger.capacity);
    if (request.until_over && verdict == Verdict::kOutOfMemory) break;
  }
  return ledger;
}

MemoryLedger stages_ledger(const StagesSpec& model, const ParallelPlan& plan, const Schedule& schedule,
                           Bytes capacity) {
  std::vector<PassMemory> passes;
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage)
    passes.push_back(pass_memory(model, plan.stages[stage], stage));
  const std::optional<Schedule> unrolled_twice = replayed(schedule);
  const Schedule& drained = unrolled_twice ? *unrolled_twice : schedule;
  MemoryLedger ledger{.capacity = capacity, .stages = {}};
  const StagePlaces places = plan.places();
  std::vector<LedgerItems> ranks(static_cast<std::size_t>(plan.pipeline));
  for (const HeldStage& held : places.all())
    ranks[static_cast<std::size_t>(places.rank_of(held.stage, held.copy))].add(
        kGradients, "gradients", of_stage(model.gradient, static_cast<std::size_t>(held.stage)));
  for (int rank = 0; rank < plan.pipeline; ++rank) {
    const std::vector<Action>& order = drained.ranks[static_cast<std::size_t>(rank)];
    const ReplayPeak peak = replay_memory(order, passes);
    LedgerItems& items = ranks[static_cast<std::size_t>(rank)];
    const MemorySums always = items.sums();
    items.add(kActivations, "activations", peak.live);
    StageMemory& memory = ledger.stages.emplace_back(std::move(items).stage(rank));
    memory.moment = moment_of(order, peak, passes);
    memory.beside_passes = memory.in_step = always;
  }
  return ledger;
}

}  // namespace stagecraft
