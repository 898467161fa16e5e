#include "sim/resilience/policy_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "sim/goodput/closed_forms.hpp"
#include "sim/goodput/history.hpp"
#include "sim/goodput/policies/checkpoint_restart.hpp"
#include "sim/goodput/policies/elastic.hpp"
#include "sim/goodput/policies/hot_spares.hpp"
#include "sim/goodput/policies/varuna.hpp"
#include "sim/goodput/replay/scenario_replay.hpp"
#include "sim/resilience/checkpoint_times.hpp"

namespace stagecraft {
namespace {

constexpr double kDay = 86'400;

double rate_of(const ShapedStep& step) {
  return static_cast<double>(step.samples) / to_seconds(step.duration);
}

// No shape counts as faster than all nodes.
ShapeOf at_most(const ShapedStep& ideal, ShapeOf shape) {
  return [ideal, shape = std::move(shape)](int nodes) {
    std::optional<ShapedStep> step = shape(nodes);
    if (step && rate_of(*step) > rate_of(ideal))
      step->duration = from_seconds(static_cast<double>(step->samples) / rate_of(ideal)) + Duration(1);
    return step;
  };
}

class Setup {
 public:
  Setup(const SetupRequest& request, Diagnostics& diagnostics)
      : request_(request), spec_(request.spec.policy), diagnostics_(diagnostics) {}

  std::optional<GoodputSetup> run();

 private:
  std::optional<GoodputSetup> checkpoint_restart();
  std::optional<GoodputSetup> hot_spares();
  std::optional<GoodputSetup> elastic();
  std::optional<GoodputSetup> varuna();

  [[nodiscard]] ShapedStep full() const { return full_step(request_); }
  [[nodiscard]] const ParallelPlan& plan() const { return request_.simulation.prepared.plan; }
  [[nodiscard]] ShapeOf replicas(BatchRule batch) const;
  [[nodiscard]] double failures_per_s() const { return failures_per_second(request_.spec, nodes()); }
  [[nodiscard]] int nodes() const { return request_.shapes.nodes(); }
  [[nodiscard]] int gpus_per_node() const { return request_.costs.gpus_per_node; }
  [[nodiscard]] int spares() const;
  [[nodiscard]] Duration checkpoint_on_demand();
  void error(const char* path, std::string message, std::string hint) const;

  const SetupRequest& request_;
  const PolicySpec& spec_;
  Diagnostics& diagnostics_;
};

void Setup::error(const char* path, std::string message, std::string hint) const {
  diagnostics_.error(
      {.code = "policy-constraint", .path = path, .message = std::move(message), .hint = std::move(hint)});
}

ShapeOf Setup::replicas(BatchRule batch) const {
  return at_most(full(), [&shapes = request_.shapes, batch](int n) { return shapes.replicas(n, batch); });
}

// Until it is usable.
Duration Setup::checkpoint_on_demand() {
  const auto times = checkpointing_of(request_.spec.checkpoint,
                                      {.costs = request_.costs,
                                       .nodes = nodes(),
                                       .gpus = plan().gpus(),
                                       .iteration = full().duration,
                                       .failures_per_s = failures_per_s()},
                                      diagnostics_);
  return times ? times->block + times->persist : Duration::zero();
}

std::optional<GoodputSetup> Setup::checkpoint_restart() {
  const double rate = failures_per_s();
  const CheckpointRestartSpec job{
      .nodes = nodes(),
      .lost = spec_.lost,
      .restart = spec_.restart,
      .gpus_per_node = gpus_per_node(),
      .shape = replicas(BatchRule::kKept),
      .between_failures = rate > 0 ? from_seconds(1 / rate) : Duration::max(),
      .checkpoint_cost = spec_.lost == LostNode::kDoneWithout ? checkpoint_on_demand() : Duration::zero()};
  return GoodputSetup{.policy = [job] { return std::make_unique<CheckpointRestart>(job); },
                      .ideal = full(),
                      .nodes = nodes(),
                      .checkpoints = spec_.kind != PolicyKind::kNone};
}

// Spares for all but one day in a hundred. source: ByteRobust (resilience.md, section 6).
int Setup::spares() const {
  if (spec_.spares) return *spec_.spares;
  const double daily = -std::expm1(-failures_per_s() / nodes() * kDay);
  return standby_pool(nodes(), daily);
}

std::optional<GoodputSetup> Setup::hot_spares() {
  HotSparesSpec job{.nodes = nodes(),
                    .step = full().duration,
                    .samples = full().samples,
                    .swap = spec_.swap,
                    .restart = spec_.restart,
                    .gpus_per_node = gpus_per_node(),
                    .state = spec_.state};
  GoodputSetup setup{.ideal = full(), .nodes = nodes() + spares(), .spares = spares()};
  if (spec_.state == StateSource::kPeer) {
    const int zero = request_.scenario.parallelism.zero_stage;
    if (plan().data < 2 || zero > 0 || nodes() % plan().data != 0) {
      error("failures.policy.state",
            zero > 0
                ? fmt::format("zero_stage {} keeps one copy of each state: no peer has that of a lost node",
                              zero)
                : fmt::format("{} replicas on {} nodes: no peer holds the states of a whole node",
                              plan().data, nodes()),
            "use state: checkpoint, with mode: in-memory where it has to be fast");
      return std::nullopt;
    }
    job.replica_nodes = nodes() / plan().data;
    job.peer_transfer = peer_transfer(request_.costs);
  }
  setup.policy = [job] { return std::make_unique<HotSpares>(job); };
  return setup;
}

std::optional<GoodputSetup> Setup::elastic() {
  const int replica_gpus = request_.costs.replica_gpus, node_gpus = gpus_per_node();
  const bool whole_nodes = replica_gpus % node_gpus == 0, whole_replicas = node_gpus % replica_gpus == 0;
  if (!whole_nodes && !whole_replicas) {
    error("failures.policy",
          fmt::format("a replica of {} GPUs neither fills nodes of {} nor shares them evenly", replica_gpus,
                      node_gpus),
          "elastic data parallelism drops whole nodes: change tensor or pipeline");
    return std::nullopt;
  }
  // Replicas that share a node go with it.
  const int replica_nodes = whole_nodes ? replica_gpus / node_gpus : 1;
  const int replicas_of_job = nodes() / replica_nodes;
  if (spec_.min_replicas > replicas_of_job) {
    error("failures.policy.min_replicas",
          fmt::format("{} is more than the job's {} replicas", spec_.min_replicas, replicas_of_job),
          "use fewer");
    return std::nullopt;
  }
  const ElasticSpec job{.replicas = replicas_of_job,
                        .replica_nodes = replica_nodes,
                        .min_replicas = spec_.min_replicas,
                        .stall = spec_.stall,
                        .reload = spec_.degraded,
                        .rejoin = spec_.rejoin,
                        .restart = spec_.restart,
                        .gpus_per_node = node_gpus,
                        .shape = replicas(spec_.keep_batch ? BatchRule::kKept : BatchRule::kShrunk)};
  return GoodputSetup{.policy = [job] { return std::make_unique<ElasticDataParallel>(job); },
                      .ideal = full(),
                      .nodes = nodes()};
}

std::optional<GoodputSetup> Setup::varuna() {
  const std::optional<ShapedStep> best = request_.shapes.morph(nodes());
  const ShapedStep ideal = best && rate_of(*best) > rate_of(full()) ? *best : full();
  const VarunaSpec job{
      .nodes = nodes(),
      .shape = at_most(ideal, [&shapes = request_.shapes](int n) { return shapes.morph(n); }),
      .restart = spec_.restart,
      .gpus_per_node = gpus_per_node(),
      .transient_wait = spec_.transient_wait,
      .announced_wait = spec_.announced_wait,
      .notice = spec_.notice,
      .checkpoint_cost = checkpoint_on_demand()};
  GoodputSetup setup{
      .policy = [job] { return std::make_unique<Varuna>(job); }, .ideal = ideal, .nodes = nodes()};
  if (spec_.checkpoint_every > 0 && !request_.scenario.origins.contains("failures.checkpoint.interval"))
    setup.checkpoint_every = spec_.checkpoint_every;
  return setup;
}

std::optional<GoodputSetup> Setup::run() {
  switch (spec_.kind) {
    case PolicyKind::kCheckpointRestart:
    case PolicyKind::kNone:
      return checkpoint_restart();
    case PolicyKind::kHotSpares:
      return hot_spares();
    case PolicyKind::kElastic:
      return elastic();
    case PolicyKind::kVaruna:
      return varuna();
    case PolicyKind::kOobleck:
      return set_up_oobleck(request_, diagnostics_);
    case PolicyKind::kBamboo:
    case PolicyKind::kRecycle:
      break;
  }
  return set_up_redundant(request_, diagnostics_);
}

}  // namespace

ShapedStep full_step(const SetupRequest& request) {
  return {.duration = request.simulation.report.iteration_time,
          .samples = request.scenario.training.global_batch_size,
          .nodes = request.shapes.nodes()};
}

Duration peer_transfer(const JobCosts& costs) {
  if (costs.node_network.count() <= 0) return Duration::zero();
  return costs.state_of_node / costs.node_network;
}

Duration reconfigure_time(const SetupRequest& request) {
  return request.spec.policy.reconfigure.value_or(request.spec.policy.swap);
}

namespace {

bool comes_and_goes(const FailureLaw& law) {
  return !std::holds_alternative<FailSlow>(law) && !std::holds_alternative<SilentCorruption>(law) &&
         !std::holds_alternative<Maintenance>(law);
}

// A replay knows nodes that come and go, and nothing else.
bool is_replayable(const FailureSpec& spec, Diagnostics& diagnostics) {
  const bool nodes_only = std::ranges::all_of(spec.processes, [](const FailureProcess& process) {
    return comes_and_goes(process.law) && std::ranges::none_of(process.causes, [](const Cause& cause) {
             return cause.severity == FailureSeverity::kProcess && cause.share > 0;
           });
  });
  if (nodes_only && ideal_throughput(spec.policy) > 0) return true;
  diagnostics.error(
      {.code = "policy-constraint",
       .path = nodes_only ? "failures.policy.throughput" : "failures.process",
       .message = nodes_only ? "no row of the table trains"
                             : "a policy with a table of throughputs replays a published evaluation, which "
                               "knows only nodes that come and go",
       .hint = nodes_only ? "give a throughput above 0"
                          : "use kind: trace or spot, or causes of severity node; or leave throughput out"});
  return false;
}

// The checkpoint's blocking time is what Varuna writes.
std::optional<GoodputSetup> set_up_replay(const SetupRequest& request, Diagnostics& diagnostics) {
  const FailureSpec& spec = request.spec;
  if (!is_replayable(spec, diagnostics)) return std::nullopt;
  const JobCosts& costs = request.costs;
  const std::int64_t samples = spec.policy.samples_per_step > 0 ? spec.policy.samples_per_step
                                                                : request.scenario.training.global_batch_size;
  const int pipeline_nodes = std::max(1, costs.replica_gpus / costs.gpus_per_node);
  const double ideal = ideal_throughput(spec.policy);
  GoodputSetup setup{.ideal = {.duration = from_seconds(static_cast<double>(samples) / ideal),
                               .samples = samples,
                               .nodes = request.shapes.nodes()},
                     .nodes = request.shapes.nodes(),
                     .checkpoints = false};
  setup.replay = replayed({.policy = spec.policy,
                           .samples_per_step = samples,
                           .gpus_per_node = costs.gpus_per_node,
                           .stages = spec.policy.stages > 0 ? spec.policy.stages : pipeline_nodes,
                           .checkpoint_write = spec.checkpoint.block.value_or(Duration::zero()),
                           .horizon = spec.horizon});
  setup.notes.push_back("steps come from failures.policy.throughput, not from the simulator");
  return setup;
}

}  // namespace

std::optional<GoodputSetup> set_up(const SetupRequest& request, Diagnostics& diagnostics) {
  if (is_replay(request.spec.policy)) return set_up_replay(request, diagnostics);
  if (!request.spec.policy.throughput.empty()) {
    diagnostics.error({.code = "not-supported-yet",
                       .path = "failures.policy.throughput",
                       .message = "this policy takes its steps from the simulator alone",
                       .hint = "leave it out, or use oobleck, varuna or bamboo, which replay a table"});
    return std::nullopt;
  }
  return Setup(request, diagnostics).run();
}

}  // namespace stagecraft
