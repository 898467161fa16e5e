#include "sim/lower/memory_ledger.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "models/memory.hpp"
#include "sim/lower/stage_parameters.hpp"

namespace stagecraft {
namespace {

// The most bytes of kept activations on a rank at once: taken at a forward, freed at B or W.
Bytes replay(const Schedule& schedule, int rank, const std::vector<Bytes>& kept_by_stage) {
  Bytes live{}, peak{};
  for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)]) {
    const Bytes kept = kept_by_stage[static_cast<std::size_t>(action.stage)];
    if (action.pass == Pass::kForward) peak = std::max(peak, live += kept);
    if (action.pass == Pass::kBackward || action.pass == Pass::kWeightGradient) live -= kept;
  }
  return peak;
}

std::vector<Bytes> kept_by_stage(const TransformerSpec& model, const Shard& shard, const ParallelPlan& plan) {
  const LayerActivation layer = layer_activation(model, shard);
  std::vector<Bytes> kept;
  for (const StageContent& content : plan.stages) {
    Bytes bytes = layer.kept * content.layers;
    if (content.embedding) bytes += embedding_activation(model, shard);
    if (content.head) bytes += head_activation(model, shard);
    kept.push_back(bytes);
  }
  return kept;
}

// Gathered input of a column-parallel layer, and messages under way: two each way.
Bytes buffer_bytes(const TransformerSpec& model, const Shard& shard, const ParallelPlan& plan) {
  const Bytes message = boundary_activation(model, shard);
  Bytes bytes{};
  if (shard.sequence_parallel && shard.tensor > 1) bytes += message * shard.tensor;
  if (plan.pipeline > 1) bytes += message * 4;
  return bytes;
}

// What the program around the tensors takes, and what the allocator cannot use.
Bytes overhead_bytes(const MemoryOverheads& overheads, Bytes allocated, int gpus) {
  const Bytes fixed = overheads.context.value + overheads.workspace.value +
                      (gpus > 1 ? overheads.communicators.value : Bytes(0));
  return fixed + to_bytes(static_cast<double>(allocated.count()) * overheads.fragmentation.value);
}

StageMemory rank_memory(const TransformerSpec& model, const LedgerRequest& request, int rank,
                        const std::vector<Bytes>& kept) {
  const ParallelPlan& plan = request.plan;
  const StateBytes state = state_bytes(request.shard.precision, request.shard.gradient);
  const std::int64_t shards = request.zero_stage >= 1 ? plan.data : 1;
  const std::int64_t parameters = rank_parameters(model, plan, rank);
  const Bytes transient = layer_activation(model, request.shard).transient;
  StageMemory memory{.stage = rank,
                     .weights = Bytes(parameters * state.weight),
                     .gradients = Bytes(parameters * state.gradient),
                     .optimizer = Bytes((parameters * state.optimizer + shards - 1) / shards),
                     .activations = replay(request.schedule, rank, kept) + transient,
                     .buffers = buffer_bytes(model, request.shard, plan),
                     .overhead = {}};
  const bool has_head = plan.stages.back().head && plan.rank_of_stage(plan.stage_count() - 1) == rank;
  if (has_head) memory.buffers += head_transient(model, request.shard);
  memory.overhead = overhead_bytes(request.profile.memory, memory.activations + memory.buffers, plan.gpus());
  return memory;
}

}  // namespace

const StageMemory& MemoryLedger::heaviest() const {
  SC_CHECK(!stages.empty(), "a ledger has a stage");
  return *std::max_element(stages.begin(), stages.end(),
                           [](const StageMemory& a, const StageMemory& b) { return a.peak() < b.peak(); });
}

Verdict MemoryLedger::verdict() const {
  if (capacity == Bytes(0)) return Verdict::kFits;
  const double share = heaviest().peak() / capacity;
  return share > 1 ? Verdict::kOutOfMemory : share > kTightShare ? Verdict::kTight : Verdict::kFits;
}

MemoryLedger transformer_ledger(const TransformerSpec& model, const LedgerRequest& request) {
  const std::vector<Bytes> kept = kept_by_stage(model, request.shard, request.plan);
  MemoryLedger ledger{.capacity = request.profile.device.memory, .stages = {}};
  for (int rank = 0; rank < request.plan.pipeline; ++rank) {
    ledger.stages.push_back(rank_memory(model, request, rank, kept));
  }
  return ledger;
}

MemoryLedger stages_ledger(const StagesSpec& model, const ParallelPlan& plan, const Schedule& schedule,
                           Bytes capacity) {
  const auto entry = [](const std::vector<Bytes>& list, std::size_t stage) {
    return list.empty() ? Bytes(0) : list.size() == 1 ? list.front() : list.at(stage);
  };
  std::vector<Bytes> kept;
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage)
    kept.push_back(entry(model.activation, stage));
  MemoryLedger ledger{.capacity = capacity, .stages = {}};
  for (int rank = 0; rank < plan.pipeline; ++rank) {
    StageMemory memory{.stage = rank,
                       .weights = {},
                       .gradients = {},
                       .optimizer = {},
                       .activations = replay(schedule, rank, kept),
                       .buffers = {},
                       .overhead = {}};
    for (int stage = rank; stage < plan.stage_count(); stage += plan.pipeline) {
      memory.gradients += entry(model.gradient, static_cast<std::size_t>(stage));
    }
    ledger.stages.push_back(memory);
  }
  return ledger;
}

}  // namespace stagecraft
