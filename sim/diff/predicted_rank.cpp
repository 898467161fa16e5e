#include <algorithm>
#include <optional>
#include <string_view>
#include <variant>

#include "models/compute_cost.hpp"
#include "models/operators.hpp"
#include "sim/diff/rank_ops.hpp"
#include "sim/explain/stage_pieces.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/price_layers.hpp"
#include "sim/lower/price_operators.hpp"
#include "sim/lower/task_names.hpp"
#include "sim/price_iteration.hpp"
#include "sim/report/measure.hpp"
#include "sim/report/rank_passes.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {
namespace {

// Host time and pipeline idle time are no activity of the GPU.
std::optional<Activity> activity_of(Category category) {
  switch (category) {
    case Category::kForward:
    case Category::kBackward:
    case Category::kRecompute:
    case Category::kOptimizer:
      return Activity::kCompute;
    case Category::kTensorComm:
      return Activity::kTensor;
    case Category::kContextComm:
      return Activity::kContext;
    case Category::kExpertComm:
      return Activity::kExpert;
    case Category::kPipelineComm:
      return Activity::kPipeline;
    case Category::kDataComm:
      return Activity::kData;
    case Category::kBubble:
    case Category::kOther:
      return std::nullopt;
  }
  return std::nullopt;
}

Activity activity_of(CommGroup group) {
  switch (group) {
    case CommGroup::kTensor:
      return Activity::kTensor;
    case CommGroup::kContext:
      return Activity::kContext;
    case CommGroup::kExpert:
    case CommGroup::kExpertTensor:
      return Activity::kExpert;
  }
  return Activity::kOtherGroup;
}

WorkKind work_of(OpKind kind) {
  switch (kind) {
    case OpKind::kGemm:
    case OpKind::kBatchedGemm:
    case OpKind::kGroupedGemm:
      return WorkKind::kProduct;
    case OpKind::kFlashForward:
    case OpKind::kFlashBackward:
      return WorkKind::kAttention;
    case OpKind::kMemory:
    case OpKind::kPermutation:
      return WorkKind::kMemory;
    case OpKind::kLoss:
      return WorkKind::kLoss;
    case OpKind::kCollective:
      break;
  }
  return WorkKind::kCommunication;
}

// Role of an operator of the model, by its name.
OperatorRole role_of(const Op& op) {
  if (op.kind == OpKind::kFlashForward || op.kind == OpKind::kFlashBackward) return OperatorRole::kAttention;
  constexpr std::pair<std::string_view, OperatorRole> kEndings[] = {
      {"norm", OperatorRole::kNorm},           {"activation", OperatorRole::kActivation},
      {"softmax", OperatorRole::kSoftmax},     {"dropout", OperatorRole::kDropout},
      {"dropout add", OperatorRole::kDropout}, {"rope", OperatorRole::kRope},
      {"embedding", OperatorRole::kEmbedding}, {"loss", OperatorRole::kLoss},
      {"loss gradient", OperatorRole::kLoss},  {"residual add", OperatorRole::kAdd},
      {"shared add", OperatorRole::kAdd},      {"residual gradient", OperatorRole::kAdd},
      {"gradient sum", OperatorRole::kAdd},    {"positions", OperatorRole::kAdd},
      {"qkv split", OperatorRole::kMove},      {"head transposition", OperatorRole::kMove},
      {"concatenation", OperatorRole::kMove},  {"cast", OperatorRole::kMove}};
  const auto* const found =
      std::ranges::find_if(kEndings, [&](const auto& entry) { return op.name.ends_with(entry.first); });
  return found == std::end(kEndings) ? OperatorRole::kNone : found->second;
}

std::int64_t elements_of(const Op& op) {
  if (op.attention.batch == 0) return op.elements;
  return op.attention.batch * op.attention.queries * op.attention.keys;
}

std::string collective_word(CollectiveKind kind) {
  return std::string(kCollectiveNames[static_cast<std::size_t>(kind)]);
}

// Key of a communication task beside the passes.
std::optional<TrafficKey> traffic_of(BesideTask task, int zero_stage) {
  switch (task) {
    case BesideTask::kSendForward:
    case BesideTask::kSendBackward:
    case BesideTask::kSendNorm:
      return TrafficKey{Activity::kPipeline, "send-receive"};
    case BesideTask::kParameterGather:
      return TrafficKey{Activity::kData, "all-gather"};
    case BesideTask::kGradientReduction:
      return TrafficKey{Activity::kData, zero_stage == 0 ? "all-reduce" : "reduce-scatter"};
    case BesideTask::kGradientReplication:
      return TrafficKey{Activity::kData, "all-reduce"};
    case BesideTask::kCopySum:
    case BesideTask::kEmbeddingSum:
    case BesideTask::kGradientNorm:
    case BesideTask::kPartialNorm:
      return TrafficKey{Activity::kOtherGroup, "all-reduce"};
    case BesideTask::kOptimizer:
    case BesideTask::kHost:
    case BesideTask::kRollback:
      return std::nullopt;
  }
  return std::nullopt;
}

// Adds the simulated rank's tasks: its busy times, and the traffic beside its passes that begins in the
// iteration.
void add_timeline(const Scenario& scenario, const Simulation& simulation, std::int32_t rank, RankOps& out) {
  const Program& program = simulation.program;
  const Window window = iteration_window(program, simulation.timeline);
  std::vector<Busy> busy;
  const auto add_traffic = [&](TaskId task) {
    const Duration start = simulation.timeline.start[task], length = time_of(simulation.timeline, task);
    if (start < window.begin || start >= window.end || length == Duration::zero()) return;
    const auto beside = beside_task(program.labels[program.label[task]].name);
    const auto traffic =
        beside ? traffic_of(*beside, scenario.parallelism.zero_stage) : std::optional<TrafficKey>();
    if (!traffic) return;
    out.traffic[*traffic].add(1, to_seconds(length));
    out.kernels += 1;
  };
  for (std::size_t r = 0; r < program.resources.size(); ++r) {
    const ResourceId resource(static_cast<std::uint32_t>(r));
    if (program.resources[resource].rank != rank) continue;
    for (std::uint32_t t = program.resource_begin[r]; t < program.resource_begin[r + 1]; ++t) {
      const TaskId task(t);
      add_traffic(task);
      Duration at = simulation.timeline.start[task];
      for (const TaskPart& part : parts_of(program, simulation.timeline, task)) {
        if (const auto activity = activity_of(static_cast<Category>(part.category)))
          busy.push_back({*activity, at, at + part.time});
        at += part.time;
      }
    }
  }
  out.occupation = occupation(busy, window.begin, window.end);
}

// Counts operators priced alone, with their number per iteration.
class OpCounter {
 public:
  OpCounter(const Network& network, const LayerGroups& groups, Precision precision, RankOps& out)
      : network_(network), groups_(groups), precision_(precision), out_(out) {}

  void add(const LayerOps& ops, double times) {
    for (const Ops* pass : {&ops.forward, &ops.recompute})
      for (const Op& op : *pass) add(op, times, false);
    for (const Ops* pass : {&ops.input_gradient, &ops.weight_gradient})
      for (const Op& op : *pass) add(op, times, true);
  }

  // Between the counted kernels: a part of an operator's price, and of no kernel of a trace.
  [[nodiscard]] Duration gaps() const { return from_seconds(gap_seconds_); }

 private:
  void add(const Op& op, double times, bool backward) {
    const double launches = times * op.kernels;
    if (op.kind == OpKind::kCollective) {
      const double seconds = launches * to_seconds(layer_collective_cost(network_, groups_, op).time);
      if (seconds <= 0) return;  // a group of one
      out_.kernels += launches;
      out_.traffic[{activity_of(op.group), collective_word(op.collective)}].add(launches, seconds);
      return;
    }
    const Duration gaps = op.kernels * network_.profile.host.kernel_gap.value;
    const double seconds = times * to_seconds(compute_cost(network_.profile, precision_, op).time - gaps);
    gap_seconds_ += times * to_seconds(gaps);
    const WorkKind kind = work_of(op.kind);
    out_.kernels += launches;
    out_.kinds[kind].add(launches, seconds);
    if (kind != WorkKind::kProduct) {
      const OtherKey key{.kind = kind,
                         .role = role_of(op),
                         .backward = backward,
                         .elements = elements_of(op),
                         .name = std::string(op.name)};
      return out_.others[key].add(launches, seconds);
    }
    NamedTotal& product = out_.products[product_key(op.gemm.m, op.gemm.n, op.gemm.k, op.gemm.batch)];
    product.names.emplace(op.name);
    product.total.add(times, seconds);
  }

  const Network& network_;
  const LayerGroups& groups_;
  Precision precision_;
  RankOps& out_;
  double gap_seconds_ = 0;
};

// Gaps between kernels are compute of a pass, and idle time of its GPU.
void take_gaps(Duration gaps, Occupation& occupation) {
  gaps = std::min(gaps, occupation.compute);
  occupation.compute -= gaps;
  occupation.busy[static_cast<std::size_t>(Activity::kCompute)] -= gaps;
  occupation.idle += gaps;
}

void add_operators(const Scenario& scenario, const Simulation& simulation, int pipeline_rank, RankOps& out) {
  const ParallelPlan& plan = simulation.prepared.plan;
  const Cluster cluster(*scenario.cluster);
  const PricingRequest request = pricing_request(scenario, plan, false);
  PlacementMemo memo;
  const Network network = network_of(cluster, *scenario.profile, request, memo);
  const std::vector<LayerGroups> groups = layer_groups_of(network, pipeline_rank);
  OpCounter counter(network, groups.front(), scenario.training.precision, out);
  StagePieces pieces(scenario, plan);
  const StagePlaces places = plan.places();
  const double times = static_cast<double>(plan.micro_batches) / places.copies();
  for (const HeldStage& held : places.held_by(pipeline_rank))
    for (const StagePiece& piece : pieces.of(held))
      counter.add(piece.ops, times * static_cast<double>(piece.times));
  take_gaps(counter.gaps(), out.occupation);
}

}  // namespace

PredictedRank predicted_rank(const Scenario& scenario, const Simulation& simulation, int rank) {
  const ParallelPlan& plan = simulation.prepared.plan;
  const int pipeline_rank = plan.mesh.coordinate(rank, Axis::kPipeline);
  PredictedRank out;
  add_timeline(scenario, simulation, pipeline_rank, out.ops);
  if (!std::holds_alternative<TransformerSpec>(scenario.model) || !scenario.cluster || !scenario.profile)
    return out;
  add_operators(scenario, simulation, pipeline_rank, out.ops);
  const Duration step = simulation.prices.ranks[static_cast<std::size_t>(pipeline_rank)].optimizer.total();
  if (step > Duration::zero()) {
    out.ops.kernels += 1;
    out.ops.kinds[WorkKind::kOptimizer].add(1, to_seconds(step));
    const OtherKey key{
        .kind = WorkKind::kOptimizer, .role = OperatorRole::kOptimizer, .name = "optimizer step"};
    out.ops.others[key].add(1, to_seconds(step));
  }
  double operators = 0;
  for (const auto& [kind, total] : out.ops.kinds) operators += total.seconds;
  out.beyond = out.ops.occupation.compute - from_seconds(operators);
  return out;
}

}  // namespace stagecraft
