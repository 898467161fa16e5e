// Oobleck's planner, told of a job: layers, memory, links, and what a step has beyond its pipelines.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/goodput/history.hpp"
#include "sim/goodput/oobleck/plan.hpp"
#include "sim/goodput/policies/oobleck.hpp"
#include "sim/mixed_prices.hpp"
#include "sim/resilience/pipeline_times.hpp"
#include "sim/resilience/policy_setup.hpp"

namespace stagecraft {
namespace {

StageOption option_of(const JobCosts& costs, const std::vector<LayerJob>& layers) {
  StageOption option{.gpus = costs.stage_gpus, .layers = {}};
  for (const LayerJob& layer : layers)
    option.layers.push_back({.forward = layer.forward, .backward = layer.backward});
  return option;
}

std::optional<StageOption> stage_option(const SetupRequest& request, Diagnostics& diagnostics) {
  const JobCosts& costs = request.costs;
  if (costs.gpus_per_node % costs.stage_gpus != 0) {
    diagnostics.error({.code = "policy-constraint",
                       .path = "failures.policy",
                       .message = fmt::format("a stage of {} GPUs is no part of a node of {}",
                                              costs.stage_gpus, costs.gpus_per_node),
                       .hint = "Oobleck's stages lie within nodes: use a smaller tensor · context"});
    return std::nullopt;
  }
  const std::optional<ClusterSpec>& cluster = request.scenario.cluster;
  if (cluster && cluster->groups.size() > 1)
    for (const NodeGroup& group : cluster->groups) {
      if (group.node.gpus == costs.gpus_per_node) continue;
      diagnostics.error({.code = "not-supported-yet",
                         .path = "failures.policy",
                         .message = fmt::format("nodes of {} and of {} GPUs in one cluster are not supported "
                                                "yet by Oobleck's templates",
                                                costs.gpus_per_node, group.node.gpus),
                         .hint = "use nodes with the same number of GPUs"});
      return std::nullopt;
    }
  return option_of(costs, costs.layers);
}

// Each kind of device with layer times of its own.
std::vector<AlikeNodes> groups_of(const SetupRequest& request, const StageOption& option) {
  const std::optional<ClusterSpec>& cluster = request.scenario.cluster;
  if (!cluster) return {{.nodes = request.shapes.nodes(), .options = {option}, .name = {}}};
  const auto& own = request.costs.group_layers;
  std::vector<AlikeNodes> groups;
  for (std::size_t i = 0; i < cluster->groups.size(); ++i) {
    const NodeGroup& group = cluster->groups[i];
    groups.push_back({.nodes = group.count,
                      .options = {own.empty() ? option : option_of(request.costs, own[i])},
                      .name = group.node.name});
  }
  return groups;
}

// The nodes whose devices hold least.
std::size_t smallest_group(const Scenario& scenario) {
  const auto& profiles = scenario.group_profiles;
  if (profiles.empty()) return 0;
  return static_cast<std::size_t>(&smallest_device(scenario) - profiles.data());
}

// One pipeline over so many nodes, its layers spread as evenly as they go, with enough micro-batches to fill
// it.
std::optional<Scenario> one_pipeline(const SetupRequest& request, int nodes) {
  const auto* model = std::get_if<TransformerSpec>(&request.scenario.model);
  const int stages = nodes * request.costs.gpus_per_node / request.costs.stage_gpus;
  if (model == nullptr || stages > model->layers) return std::nullopt;
  Scenario scenario = request.scenario;
  ParallelSpec& parallelism = scenario.parallelism;
  parallelism.pipeline = stages;
  parallelism.data = 1;
  parallelism.virtual_stages = 1;
  parallelism.zero_group.reset();
  parallelism.embedding_as_layer = parallelism.loss_as_layer = false;
  parallelism.stage_layers.assign(static_cast<std::size_t>(stages), model->layers / stages);
  // The ends hold more besides: what is left over goes to the middle.
  const std::int64_t rest = model->layers % stages;
  for (std::int64_t i = 0; i < rest; ++i)
    ++parallelism.stage_layers[static_cast<std::size_t>((stages - rest) / 2 + i)];
  scenario.order.reset();
  scenario.schedule = {.name = "1f1b"};
  scenario.training.global_batch_size = scenario.training.micro_batch_size * stages;
  ClusterSpec& cluster = *scenario.cluster;
  cluster.groups = {{.node = cluster.groups[smallest_group(scenario)].node, .count = nodes}};
  scenario.profile = smallest_device(request.scenario);
  scenario.group_profiles.clear();
  cluster.links.clear();
  scenario.network.background.clear();
  return scenario;
}

// n0: the least nodes whose memory holds a pipeline. Abstract stages and cards of unknown size fit anywhere.
int least_nodes_of(const SetupRequest& request) {
  if (!request.scenario.cluster || !request.shapes.fits()) return 1;
  if (request.simulation.report.memory.capacity == Bytes(0)) return 1;
  for (int nodes = 1; nodes < request.shapes.nodes(); ++nodes) {
    const std::optional<Scenario> scenario = one_pipeline(request, nodes);
    if (!scenario) return nodes;
    Diagnostics refusals;
    if (!prepare(*scenario, refusals)) continue;
    if (memory_of(*scenario).verdict() != Verdict::kOutOfMemory) return nodes;
  }
  return request.shapes.nodes();
}

// Layers of each stage of the scenario's own pipeline, its ends counted as layers.
std::vector<int> own_layers(const ParallelPlan& plan) {
  std::vector<int> layers;
  for (const StageContent& stage : plan.stages)
    layers.push_back(static_cast<int>(stage.layers) + (stage.embedding ? 1 : 0) + (stage.head ? 1 : 0));
  return layers;
}

// Of one of the scenario's own pipelines: how many nodes of each group hold its stages. A stage is where its
// first replica is.
std::vector<int> nodes_by_group(const SetupRequest& request, int stages) {
  const ClusterSpec& cluster = *request.scenario.cluster;
  const int stage_gpus = request.costs.stage_gpus, node_gpus = request.costs.gpus_per_node;
  const ParallelPlan& plan = request.simulation.prepared.plan;
  std::vector<int> gpus(cluster.groups.size());
  for (int stage = 0; stage < stages; ++stage) {
    int left = plan.mesh.rank_at({0, 0, 0, 0, stage});
    std::size_t group = 0;
    while (left >= cluster.groups[group].count * node_gpus) left -= cluster.groups[group++].count * node_gpus;
    gpus[group] += stage_gpus;
  }
  for (int& count : gpus) count = (count + node_gpus - 1) / node_gpus;
  return gpus;
}

// What the simulated iteration has beyond its pipelines: by the equations also messages, else reductions
// alone.
Duration tail_of(const SetupRequest& request, const OobleckSpec& spec) {
  const ParallelPlan& plan = request.simulation.prepared.plan;
  std::vector<Duration> work(static_cast<std::size_t>(plan.pipeline));
  for (std::size_t stage = 0; stage < request.costs.stage_forward.size(); ++stage)
    work[static_cast<std::size_t>(plan.places().rank_of(static_cast<int>(stage)))] +=
        request.costs.stage_forward[stage] + request.costs.stage_backward[stage];
  Duration pipelines = pipeline_line(work, spec.rule).time(plan.micro_batches);
  if (request.spec.policy.simulated_cost && plan.virtual_stages == 1)
    pipelines = PipelineTimes(request.scenario)
                    .time(own_layers(plan), nodes_by_group(request, plan.pipeline), plan.micro_batches);
  return std::max(Duration::zero(), request.simulation.report.iteration_time - pipelines);
}

// Templates priced by the simulator in place of the equations.
PipelineTime simulated_time(const SetupRequest& request) {
  const auto layers = static_cast<int>(request.costs.layers.size());
  return [times = PipelineTimes(request.scenario), layers](const PipelineTemplate& made, int micro_batches) {
    return times.time(layers_per_stage(made.partition, layers), made.composition, micro_batches);
  };
}

std::optional<OobleckSpec> oobleck_spec(const SetupRequest& request, Diagnostics& diagnostics) {
  const std::optional<StageOption> option = stage_option(request, diagnostics);
  if (!option) return std::nullopt;
  const PolicySpec& policy = request.spec.policy;
  const TrainingSpec& training = request.scenario.training;
  const bool published = policy.rules == Rules::kPublished;
  OobleckSpec spec{.groups = groups_of(request, *option),
                   .gpus_per_node = request.costs.gpus_per_node,
                   .min_nodes = least_nodes_of(request),
                   .max_failures = policy.max_failures,
                   .micro_batches = static_cast<int>(training.global_batch_size / training.micro_batch_size),
                   .rule = published ? PipelineRule::kPublished : PipelineRule::kCorrected};
  for (const LayerJob& layer : request.costs.layers) spec.layer_state.push_back(layer.state);
  // Without a network to wait for, states move at once.
  constexpr Bandwidth kAtOnce(1e18);
  const Bandwidth network = request.costs.node_network;
  spec.links.in = spec.links.out = network.count() > 0 ? network : kAtOnce;
  if (policy.simulated_cost) spec.time = simulated_time(request);
  spec.tail = [tail = tail_of(request, spec)](int) { return tail; };
  return spec;
}

// Errors as they are, with a place to go to; warnings become notes.
bool is_possible(const OobleckSpec& spec, Diagnostics& diagnostics, std::vector<std::string>& notes) {
  bool possible = true;
  for (Diagnostic found : check_oobleck(spec)) {
    if (found.severity == Severity::kError) {
      possible = false;
      if (found.path.empty()) found.path = "failures.policy.max_failures";
      diagnostics.add(std::move(found));
    } else {
      notes.push_back(found.message);
    }
  }
  return possible;
}

}  // namespace

std::optional<GoodputSetup> set_up_oobleck(const SetupRequest& request, Diagnostics& diagnostics) {
  const PolicySpec& policy = request.spec.policy;
  if (policy.simulated_cost && std::holds_alternative<StagesSpec>(request.scenario.model)) {
    diagnostics.error(
        {.code = "not-supported-yet",
         .path = "failures.policy.cost",
         .message = "abstract stages have no layers to cut anew, so that nothing can be simulated",
         .hint = "use cost: paper"});
    return std::nullopt;
  }
  std::optional<OobleckSpec> spec = oobleck_spec(request, diagnostics);
  if (!spec) return std::nullopt;
  GoodputSetup setup{.nodes = request.shapes.nodes()};
  if (!is_possible(*spec, diagnostics, setup.notes)) return std::nullopt;
  setup.planner = std::make_unique<SharedPlanner>(*std::move(spec));
  const bool whole = policy.reconfigure.has_value();
  const Duration reconfigure = reconfigure_time(request);
  if (request.describe)
    setup.description = setup.planner->ask([&](OobleckPlanner& planner) {
      return render_plan(plan_oobleck(planner, {.time = reconfigure, .copy_included = whole}));
    });
  setup.ideal = full_step(request);
  const Duration least = setup.planner->ask([](OobleckPlanner& planner) { return planner.least_step(); });
  setup.ideal.duration = std::min(setup.ideal.duration, least);
  const double rate = failures_per_second(request.spec, setup.nodes);
  // Each node that goes comes back: two changes a failure.
  const OobleckPolicySpec job{.samples = setup.ideal.samples,
                              .reconfigure = reconfigure,
                              .copy_included = whole,
                              .recompose = policy.recompose_on_join,
                              .between_changes = rate > 0 ? from_seconds(1 / (2 * rate)) : Duration::max(),
                              .least_step = setup.ideal.duration};
  setup.policy = [planner = setup.planner.get(), job] {
    return std::make_unique<OobleckPolicy>(*planner, job);
  };
  return setup;
}

}  // namespace stagecraft
