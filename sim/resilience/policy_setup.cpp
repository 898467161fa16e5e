#include "sim/resilience/policy_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/ceil_div.hpp"
#include "base/check.hpp"
#include "sim/goodput/expected_failures.hpp"
#include "sim/goodput/never.hpp"
#include "sim/goodput/policies/checkpoint_restart.hpp"
#include "sim/goodput/policies/elastic.hpp"
#include "sim/goodput/policies/hot_spares.hpp"
#include "sim/goodput/policies/throughput_table.hpp"
#include "sim/goodput/policies/varuna.hpp"
#include "sim/goodput/replay/scenario_replay.hpp"
#include "sim/goodput/spares.hpp"
#include "sim/resilience/checkpoint_times.hpp"
#include "sim/resilience/held_states.hpp"
#include "sim/resilience/setup_parts.hpp"

namespace stagecraft {
namespace {

// Numbers of nodes that a policy goes on with: from `least` to those of the job, `step` apart.
struct NodeNumbers {
  int least = 1, step = 1;
};

// Does the table train on each of them?
bool trains_on_all(const SetupRequest& request, NodeNumbers numbers, Diagnostics& diagnostics) {
  const PolicySpec& policy = request.spec.policy;
  int nodes = numbers.least;
  while (nodes <= request.job.shapes.nodes() && throughput_of(policy.throughput, nodes) > 0)
    nodes += numbers.step;
  if (nodes > request.job.shapes.nodes()) return true;
  diagnostics.error(
      {.code = "policy-constraint",
       .path = "failures.policy.throughput",
       .message = fmt::format("the table does not train on {} nodes, with which {} may have to go on", nodes,
                              kPolicyNames[static_cast<std::size_t>(policy.kind)]),
       .hint = "give their row a throughput above 0, or leave it out: the one before then counts"});
  return false;
}

// Can a policy that is no replay train by its table: on all nodes, and for ReCycle on any number that holds a
// pipeline?
bool has_row_that_trains(const SetupRequest& request, Diagnostics& diagnostics) {
  const PolicySpec& policy = request.spec.policy;
  const bool recycles = policy.kind == PolicyKind::kRecycle;
  const int least = recycles ? pipeline_nodes(request.job) : request.job.shapes.nodes();
  if (throughput_of(policy.throughput, least) > 0)
    return !recycles || trains_on_all(request, {.least = least}, diagnostics);
  diagnostics.error(
      {.code = "policy-constraint",
       .path = "failures.policy.throughput",
       .message = fmt::format("the table says nothing of {} nodes, {}", least,
                              recycles ? "the least that hold a pipeline" : "the whole job"),
       .hint = fmt::format("add a row {}: samples per second, or one with fewer nodes", least)});
  return false;
}

// Caps the rate of every shape at the rate of all nodes.
ShapeOf at_most(const ShapedStep& ideal, ShapeOf shape) {
  return [ideal, shape = std::move(shape)](int nodes) {
    std::optional<ShapedStep> step = shape(nodes);
    if (step && rate_of(*step) > rate_of(ideal))
      step->duration = from_seconds(static_cast<double>(step->samples) / rate_of(ideal)) + Duration(1);
    return step;
  };
}

// Data replicas that are lost together, which elastic data parallelism counts as one, and their nodes.
struct ReplicaGroup {
  int replicas = 1;
  int nodes = 1;
};

class Setup {
 public:
  Setup(const SetupRequest& request, Diagnostics& diagnostics)
      : request_(request), job_(request.job), policy_(request.spec.policy), diagnostics_(diagnostics) {}

  std::optional<GoodputSetup> run();

 private:
  // Reports an error and returns false where it matters which nodes were lost. Nodes or their links differ
  // there, but a degraded shape always stands on the first nodes.
  bool may_lose_any_node();
  std::optional<GoodputSetup> checkpoint_restart();
  std::optional<GoodputSetup> hot_spares();
  std::optional<GoodputSetup> elastic();
  std::optional<GoodputSetup> varuna();

  [[nodiscard]] ShapedStep full() const { return full_step(request_); }
  [[nodiscard]] const ParallelPlan& plan() const { return job_.plan(); }
  [[nodiscard]] ShapeOf replicas(BatchRule batch) const;
  [[nodiscard]] BatchRule batch_rule() const {
    return policy_.keep_batch ? BatchRule::kKept : BatchRule::kShrunk;
  }
  std::optional<ReplicaGroup> replica_group();
  [[nodiscard]] ElasticSpec elastic_spec(const ReplicaGroup& group) const;
  bool trains_when_fewest(const ElasticSpec& spec, const ReplicaGroup& group);
  [[nodiscard]] int fewest_replicas(const ElasticSpec& spec) const;
  [[nodiscard]] int replicas_on_a_node() const {
    return std::max(1, gpus_per_node() / job_.costs.replica_gpus);
  }
  [[nodiscard]] double failures_per_s() const { return failures_per_second(request_.spec, nodes()); }
  [[nodiscard]] int nodes() const { return job_.shapes.nodes(); }
  [[nodiscard]] int gpus_per_node() const { return job_.costs.gpus_per_node; }
  [[nodiscard]] int spares() const;
  [[nodiscard]] SlowLadder ladder();
  bool has_peers(HotSparesSpec& spec);
  [[nodiscard]] Duration checkpoint_on_demand();
  void error(const char* path, std::string message, std::string hint) const;

  const SetupRequest& request_;
  GoodputJob& job_;
  const PolicySpec& policy_;
  Diagnostics& diagnostics_;
};

void Setup::error(const char* path, std::string message, std::string hint) const {
  diagnostics_.error(
      {.code = "policy-constraint", .path = path, .message = std::move(message), .hint = std::move(hint)});
}

ShapeOf Setup::replicas(BatchRule batch) const {
  if (!policy_.throughput.empty()) return shapes_of(policy_.throughput, full().samples);
  return at_most(full(), [&shapes = job_.shapes, batch](int n) { return shapes.replicas(n, batch); });
}

Duration Setup::checkpoint_on_demand() {
  const auto times = checkpointing_of(request_.spec.checkpoint,
                                      {.costs = job_.costs,
                                       .nodes = nodes(),
                                       .gpus = plan().gpus(),
                                       .iteration = full().duration,
                                       .failures_per_s = failures_per_s()},
                                      diagnostics_);
  return times ? times->on_demand() : Duration::zero();
}

std::optional<GoodputSetup> Setup::checkpoint_restart() {
  const CheckpointRestartSpec spec{
      .nodes = nodes(),
      .lost = policy_.lost,
      .restart = policy_.restart,
      .gpus_per_node = gpus_per_node(),
      .shape = replicas(BatchRule::kKept),
      .between_failures = mean_time_between(failures_per_s()),
      .checkpoint_cost = policy_.lost == LostNode::kDoneWithout ? checkpoint_on_demand() : Duration::zero()};
  return GoodputSetup{.policy = [spec] { return std::make_unique<CheckpointRestart>(spec); },
                      .ideal = full(),
                      .nodes = nodes(),
                      .checkpoints = policy_.kind != PolicyKind::kNone};
}

int Setup::spares() const {
  return policy_.spares ? *policy_.spares : spares_for(request_.spec, nodes());
}

SlowLadder Setup::ladder() {
  const SlowRungs& rungs = policy_.slow;
  const SlownessExpected expected = slowness_expected(request_.spec, nodes());
  const bool alike = nodes() % plan().data == 0;
  return {.notice = rungs.notice,
          .remaining = rungs.lasts.value_or(expected.lasts),
          .undisturbed = mean_time_between(failures_per_s() + expected.onsets_per_s),
          .checkpoint_cost = checkpoint_on_demand(),
          .exchange = rungs.exchange,
          .restart = rungs.restart,
          .replica_nodes = rungs.rebalance && alike ? nodes() / plan().data : 0,
          .micro_batches = plan().micro_batches,
          .slow_replicas = slow_replicas_of(job_.shapes, policy_)};
}

// Do other nodes hold the state of a lost node? Fills in the holders.
bool Setup::has_peers(HotSparesSpec& spec) {
  spec.peer_transfer = peer_transfer(job_.costs);
  if (policy_.backup) {
    spec.backup_distance = std::max(1, nodes() / plan().data);
    if (nodes() > 1) return true;
    error("failures.policy.backup", "a job of one node has nobody to keep a copy", "use state: checkpoint");
    return false;
  }
  spec.holders = [&shapes = job_.shapes](int places) { return shapes.holders(places); };
  const std::optional<int> alone = without_peer(spec.holders(nodes()));
  if (!alone) return true;
  const bool sharded = job_.scenario.parallelism.zero_stage > 0;
  error("failures.policy.state",
        fmt::format("{}: no peer holds the states of node {}", what_keeps_states_apart(job_), *alone),
        sharded ? "use backup: 0.009, which copies every shard to a peer, or state: checkpoint"
                : "use state: checkpoint, with mode: in-memory where it has to be fast");
  return false;
}

std::optional<GoodputSetup> Setup::hot_spares() {
  HotSparesSpec spec{.nodes = nodes(),
                     .step = from_seconds(to_seconds(full().duration) * (1 + policy_.backup.value_or(0))),
                     .samples = full().samples,
                     .swap = policy_.swap,
                     .restart = policy_.restart,
                     .gpus_per_node = gpus_per_node(),
                     .state = policy_.state};
  const int pool = spares();
  GoodputSetup setup{.ideal = full(),
                     .ideal_lacks = policy_.backup.value_or(0) > 0 ? "backups" : "",
                     .nodes = nodes() + pool,
                     .spares = pool};
  if (policy_.state == StateSource::kPeer && !has_peers(spec)) return std::nullopt;
  if (policy_.slow.any()) spec.slow = ladder();
  if (policy_.slow.restart) spec.smaller = replicas(BatchRule::kKept);
  setup.policy = [spec] { return std::make_unique<HotSpares>(spec); };
  return setup;
}

// Where a table of throughput says itself what is left, only those that a node holds are lost together.
std::optional<ReplicaGroup> Setup::replica_group() {
  const int replica_gpus = job_.costs.replica_gpus, node_gpus = gpus_per_node();
  const int together =
      policy_.throughput.empty() ? replicas_lost_together(plan(), node_gpus) : replicas_on_a_node();
  const bool all = together == plan().data, whole = together * replica_gpus % node_gpus == 0;
  const ReplicaGroup group{.replicas = together,
                           .nodes = all ? nodes() : std::max(1, together * replica_gpus / node_gpus)};
  if ((all || whole) && nodes() % group.nodes == 0) return group;
  error("failures.policy",
        fmt::format("replicas of {} GPUs do not fill nodes of {} in equal groups", replica_gpus, node_gpus),
        "elastic data parallelism drops whole nodes: change tensor or pipeline");
  return std::nullopt;
}

ElasticSpec Setup::elastic_spec(const ReplicaGroup& group) const {
  return {.replicas = nodes() / group.nodes,
          .replica_nodes = group.nodes,
          .min_replicas = ceil_div(policy_.min_replicas, group.replicas),
          .stall = policy_.stall,
          .reload = policy_.degraded,
          .rejoin = policy_.rejoin,
          .restart = policy_.restart,
          .gpus_per_node = gpus_per_node(),
          .shape = [shape = replicas(batch_rule()), quorum = policy_.quorum, &shapes = job_.shapes](int n) {
            std::optional<ShapedStep> step = shape(n);
            if (!step) return step;
            step->duration += quorum;
            shapes.list_with(*step);
            return step;
          }};
}

// Can the fewest replicas that the policy may go on with train, and by a table all numbers above them?
bool Setup::trains_when_fewest(const ElasticSpec& spec, const ReplicaGroup& group) {
  const bool tabled = !policy_.throughput.empty();
  if (!spec.shape(spec.min_replicas * group.nodes)) {
    const auto replicas_of = [&](int groups) { return std::min(groups * group.replicas, plan().data); };
    error("failures.policy.min_replicas",
          fmt::format("{} of the {} replicas cannot train on their own", replicas_of(spec.min_replicas),
                      plan().data),
          fmt::format("min_replicas: {} is the least that {}", replicas_of(fewest_replicas(spec)),
                      tabled ? "the table of throughput names" : "can"));
    return false;
  }
  return !tabled || trains_on_all(request_, {.least = spec.min_replicas * group.nodes, .step = group.nodes},
                                  diagnostics_);
}

std::optional<GoodputSetup> Setup::elastic() {
  const std::optional<ReplicaGroup> group = replica_group();
  if (!group) return std::nullopt;
  if (policy_.min_replicas > plan().data) {
    error("failures.policy.min_replicas",
          fmt::format("{} is more than the job's {} replicas", policy_.min_replicas, plan().data),
          "use fewer");
    return std::nullopt;
  }
  const ElasticSpec spec = elastic_spec(*group);
  if (!trains_when_fewest(spec, *group)) return std::nullopt;
  const int spares = policy_.spares.value_or(0);
  GoodputSetup setup{.policy = [spec] { return std::make_unique<ElasticDataParallel>(spec); },
                     .ideal = full(),
                     .ideal_lacks = policy_.quorum > Duration::zero() ? "quorums" : "",
                     .nodes = nodes() + spares,
                     .spares = spares,
                     .notes = notes_on_copies(request_, group->replicas)};
  if (group->replicas > replicas_on_a_node())
    setup.notes.push_back(
        fmt::format("{} of the {} replicas share nodes and are lost together: each has stages on the "
                    "others' nodes (parallelism.order)",
                    group->replicas, plan().data));
  return setup;
}

// The fewest that can train, if all can: as the policy counts them, those lost together as one.
int Setup::fewest_replicas(const ElasticSpec& spec) const {
  int fewest = spec.min_replicas;
  if (policy_.throughput.empty()) {
    const int data = job_.shapes.fewest_replicas(batch_rule());
    const int gpus = spec.replica_nodes * spec.gpus_per_node;
    fewest = std::max(fewest, ceil_div(data * job_.costs.replica_gpus, gpus));
  }
  while (fewest < spec.replicas && !spec.shape(fewest * spec.replica_nodes)) ++fewest;
  return fewest;
}

std::optional<GoodputSetup> Setup::varuna() {
  const std::optional<ShapedStep> best = job_.shapes.morph(nodes());
  const bool better = best && (rate_of(*best) > rate_of(full()) || !job_.shapes.fits());
  const ShapedStep ideal = better ? *best : full();
  const VarunaSpec spec{.nodes = nodes(),
                        .shape = at_most(ideal, [&shapes = job_.shapes](int n) { return shapes.morph(n); }),
                        .restart = policy_.restart,
                        .gpus_per_node = gpus_per_node(),
                        .transient_wait = policy_.transient_wait,
                        .announced_wait = policy_.announced_wait,
                        .notice = policy_.notice,
                        .checkpoint_cost = checkpoint_on_demand()};
  GoodputSetup setup{
      .policy = [spec] { return std::make_unique<Varuna>(spec); }, .ideal = ideal, .nodes = nodes()};
  if (policy_.checkpoint_every > 0 && !job_.scenario.origins.contains("failures.checkpoint.interval"))
    setup.checkpoint_every = policy_.checkpoint_every;
  return setup;
}

bool Setup::may_lose_any_node() {
  const bool degrades = policy_.kind == PolicyKind::kElastic || policy_.kind == PolicyKind::kVaruna ||
                        policy_.kind == PolicyKind::kBamboo || policy_.slow.restart ||
                        policy_.lost == LostNode::kDoneWithout;
  const Scenario& scenario = job_.scenario;
  const auto refuse = [&](const char* path, const char* what) {
    diagnostics_.error(
        {.code = "not-supported-yet",
         .path = path,
         .message =
             fmt::format("{} is not supported yet by {}, whose smaller shapes count nodes and not which "
                         "ones are left",
                         what, kPolicyNames[static_cast<std::size_t>(policy_.kind)]),
         .hint =
             "leave it out, give a table of throughput, or use a policy that keeps the shape: hot-spares, or "
             "checkpoint-restart where lost nodes are waited for or replaced"});
    return false;
  };
  if (!policy_.throughput.empty()) return true;
  if (degrades && !scenario.group_profiles.empty())
    return refuse("cluster.nodes", "a cluster of several devices");
  if (!degrades && policy_.kind != PolicyKind::kOobleck) return true;
  if (scenario.cluster && !scenario.cluster->links.empty())
    return refuse("cluster.links", "a link that differs");
  if (!scenario.network.background.empty()) return refuse("network.background", "traffic of others");
  return true;
}

std::optional<GoodputSetup> Setup::run() {
  if (!may_lose_any_node()) return std::nullopt;
  switch (policy_.kind) {
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
      return set_up_redundant(request_, diagnostics_);
  }
  SC_CHECK(false, "every policy is set up");
  return std::nullopt;
}

// Steps come from the simulator.
std::optional<GoodputSetup> set_up_simulated(const SetupRequest& request, Diagnostics& diagnostics) {
  if (request.job.simulation.report.iteration_time > Duration::zero())
    return Setup(request, diagnostics).run();
  diagnostics.error({.code = "policy-constraint",
                     .path = "failures",
                     .message = "an iteration takes no time, and nothing can be lost of it",
                     .hint = "give a pass of the model a duration above 0"});
  return std::nullopt;
}

// Steps come from the table of throughputs.
std::optional<GoodputSetup> set_up_by_table(const SetupRequest& request, Diagnostics& diagnostics) {
  std::optional<GoodputSetup> setup;
  if (is_replay(request.spec.policy))
    setup = set_up_replay(request, diagnostics);
  else if (has_row_that_trains(request, diagnostics))
    setup = Setup(request, diagnostics).run();
  if (setup) setup->notes.emplace_back("steps come from failures.policy.throughput, not from the simulator");
  return setup;
}

}  // namespace

SlowReplicas slow_replicas_of(DegradedShapes& shapes, const PolicySpec& policy) {
  if (!policy.throughput.empty()) return {};
  return
      [&shapes](int nodes, const std::vector<SlowPlace>& slow) { return shapes.slow_replicas(nodes, slow); };
}

std::optional<GoodputSetup> set_up(const SetupRequest& request, Diagnostics& diagnostics) {
  return request.spec.policy.throughput.empty() ? set_up_simulated(request, diagnostics)
                                                : set_up_by_table(request, diagnostics);
}

}  // namespace stagecraft
