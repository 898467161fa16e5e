// Sets up Oobleck's planner for a job: layers, memory, links, and the parts of a step beyond its pipelines.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/ceil_div.hpp"
#include "sim/goodput/expected_failures.hpp"
#include "sim/goodput/never.hpp"
#include "sim/goodput/oobleck/plan.hpp"
#include "sim/goodput/policies/oobleck.hpp"
#include "sim/mixed_prices.hpp"
#include "sim/resilience/plain_pipeline.hpp"
#include "sim/resilience/setup_parts.hpp"

namespace stagecraft {
namespace {

StageOption option_of(const JobCosts& costs, const std::vector<JobLayer>& layers) {
  StageOption option{.gpus = costs.stage_gpus, .layers = {}};
  for (const JobLayer& layer : layers)
    option.layers.push_back({.forward = layer.forward, .backward = layer.backward});
  return option;
}

bool has_stages_within_nodes(const GoodputJob& job, Diagnostics& diagnostics) {
  const JobCosts& costs = job.costs;
  if (costs.gpus_per_node % costs.stage_gpus != 0) {
    diagnostics.error({.code = "policy-constraint",
                       .path = "failures.policy",
                       .message = fmt::format("a stage of {} GPUs is no part of a node of {}",
                                              costs.stage_gpus, costs.gpus_per_node),
                       .hint = "Oobleck's stages lie within nodes: use a smaller tensor · context"});
    return false;
  }
  const std::optional<ClusterSpec>& cluster = job.scenario.cluster;
  if (cluster && cluster->groups.size() > 1)
    for (const NodeGroup& group : cluster->groups) {
      if (group.node.gpus == costs.gpus_per_node) continue;
      diagnostics.error({.code = "not-supported-yet",
                         .path = "failures.policy",
                         .message = fmt::format("nodes of {} and of {} GPUs in one cluster are not supported "
                                                "yet by Oobleck's templates",
                                                costs.gpus_per_node, group.node.gpus),
                         .hint = "use nodes with the same number of GPUs"});
      return false;
    }
  return true;
}

// Each kind of device with layer times of its own.
std::vector<AlikeNodes> groups_of(const GoodputJob& job) {
  const JobCosts& costs = job.costs;
  const std::optional<ClusterSpec>& cluster = job.scenario.cluster;
  if (!cluster)
    return {{.nodes = job.shapes.nodes(), .options = {option_of(costs, costs.layers)}, .name = {}}};
  std::vector<AlikeNodes> groups;
  for (std::size_t i = 0; i < cluster->groups.size(); ++i) {
    const NodeGroup& group = cluster->groups[i];
    const auto& layers = costs.group_layers.empty() ? costs.layers : costs.group_layers[i];
    groups.push_back({.nodes = group.count, .options = {option_of(costs, layers)}, .name = group.node.name});
  }
  return groups;
}

// The nodes whose devices hold least.
std::size_t smallest_group(const Scenario& scenario) {
  const auto& profiles = scenario.group_profiles;
  if (profiles.empty()) return 0;
  return static_cast<std::size_t>(&smallest_device(scenario) - profiles.data());
}

// One pipeline over `nodes` nodes, with its layers spread as evenly as possible and enough micro-batches to
// fill it.
std::optional<Scenario> one_pipeline(const GoodputJob& job, int nodes) {
  const auto* model = std::get_if<TransformerSpec>(&job.scenario.model);
  const int stages = nodes * job.costs.gpus_per_node / job.costs.stage_gpus;
  if (model == nullptr || stages > model->layers) return std::nullopt;
  Scenario scenario = plain_pipeline(job.scenario, job.plan());
  ParallelSpec& parallelism = scenario.parallelism;
  parallelism.pipeline = stages;
  parallelism.data = 1;
  parallelism.stage_layers = spread_layers(model->layers, stages);
  scenario.training.global_batch_size = scenario.training.micro_batch_size * stages;
  const ClusterSpec& cluster = *job.scenario.cluster;
  scenario.cluster =
      with_groups(cluster, {{.node = cluster.groups[smallest_group(job.scenario)].node, .count = nodes}});
  scenario.profile = smallest_device(job.scenario);
  scenario.group_profiles.clear();
  return scenario;
}

// n0: the least nodes whose memory holds a pipeline; 1 where none do, as if they did. Abstract stages and
// cards of unknown size fit anywhere.
int least_nodes_of(const GoodputJob& job) {
  if (!job.scenario.cluster || job.simulation.report.memory.capacity == Bytes(0)) return 1;
  for (int nodes = 1; nodes < job.shapes.nodes(); ++nodes) {
    const std::optional<Scenario> scenario = one_pipeline(job, nodes);
    if (!scenario) return job.shapes.fits() ? nodes : 1;
    Diagnostics refusals;
    if (!prepare(*scenario, refusals)) continue;
    if (memory_of(*scenario).verdict() != Verdict::kOutOfMemory) return nodes;
  }
  return job.shapes.fits() ? job.shapes.nodes() : 1;
}

// Templates priced by the simulator in place of the equations.
PipelineTime simulated_time(const GoodputJob& job) {
  const auto layers = static_cast<int>(job.costs.layers.size());
  return [&times = job.pipelines, layers](const PipelineTemplate& made, int micro_batches) {
    return times.time(layers_per_stage(made.partition, layers), made.composition, micro_batches);
  };
}

// Time of a step beyond its slowest pipeline: pipelines that share all nodes and micro-batches evenly,
// simulated together, less the price of one of their templates. With the equations it contains messages, the
// optimizer and the exposed reductions; otherwise only these reductions.
class Tails {
 public:
  Tails(const PipelineTimes& times, const OobleckSpec& spec)
      : times_(times),
        spec_(spec),
        range_(range_of(spec)),
        templates_(spec.groups, spec.gpus_per_node, {.rule = spec.rule, .time = spec.time}) {}

  // Tails by number of pipelines: computed at the fewest and the most pipelines of a size, and linear
  // between.
  [[nodiscard]] std::vector<Duration> all() {
    const int most = std::min(range_.nodes / range_.min_nodes, spec_.micro_batches);
    std::vector<Duration> tails(1);
    for (int first = 1; first <= most; first = static_cast<int>(tails.size())) {
      const int last = std::min(most, range_.nodes / (range_.nodes / first));
      const Duration from = of(first), to = of(last);
      for (int pipelines = first; pipelines <= last; ++pipelines)
        tails.push_back(from + (to - from) * (pipelines - first) / std::max(1, last - first));
    }
    return tails;
  }

 private:
  // The tail of the kind of node whose pipelines have the longest.
  [[nodiscard]] Duration of(int pipelines) {
    const int micro_batches = ceil_div(spec_.micro_batches, pipelines);
    Duration longest{};
    for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
      Composition nodes(spec_.groups.size());
      nodes[group] = std::min(range_.nodes / pipelines, range_.most_nodes);
      const int number = templates_.find(nodes).value();
      const std::vector<int> layers = layers_per_stage(templates_.at(number).partition, templates_.layers());
      const Duration together = times_.time(layers, nodes, micro_batches, pipelines);
      longest = std::max(longest, together - templates_.time(number, micro_batches));
    }
    return longest;
  }

  const PipelineTimes& times_;
  const OobleckSpec& spec_;
  TemplateRange range_;
  Templates templates_;
};

std::optional<OobleckSpec> oobleck_spec(const SetupRequest& request, Diagnostics& diagnostics) {
  const GoodputJob& job = request.job;
  if (!has_stages_within_nodes(job, diagnostics)) return std::nullopt;
  const PolicySpec& policy = request.spec.policy;
  const TrainingSpec& training = job.scenario.training;
  const bool published = policy.rules == Rules::kPublished;
  OobleckSpec spec{.groups = groups_of(job),
                   .gpus_per_node = job.costs.gpus_per_node,
                   .min_nodes = least_nodes_of(job),
                   .max_failures = policy.max_failures,
                   .micro_batches = static_cast<int>(training.global_batch_size / training.micro_batch_size),
                   .rule = published ? PipelineRule::kPublished : PipelineRule::kCorrected};
  for (const JobLayer& layer : job.costs.layers) spec.layer_state.push_back(layer.state);
  // Without a network, states move instantly.
  constexpr Bandwidth kAtOnce(1e18);
  const Bandwidth network = job.costs.node_network;
  spec.links.in = spec.links.out = network.count() > 0 ? network : kAtOnce;
  if (policy.simulated_cost) spec.time = simulated_time(job);
  return spec;
}

// Experts that the job has on ranks of several replicas.
std::vector<std::string> notes_on_experts(const GoodputJob& job) {
  const ParallelPlan& plan = job.plan();
  const ParallelSpec alone = plain_pipeline(job.scenario, plan).parallelism;
  const int holders = plan.expert * plan.expert_tensor, of_pipeline = alone.expert * alone.expert_tensor;
  if (!plan.has_experts() || holders == of_pipeline) return {};
  return {
      fmt::format("experts lie on {} ranks of several replicas, but each pipeline of oobleck shares all of "
                  "them out over {} of its own: its steps are priced so",
                  holders, of_pipeline)};
}

// Reports errors unchanged, but with a path.
bool is_possible(const OobleckSpec& spec, Diagnostics& diagnostics) {
  bool possible = true;
  for (Diagnostic found : check_oobleck(spec)) {
    if (found.severity != Severity::kError) continue;
    possible = false;
    if (found.path.empty()) found.path = "failures.policy.max_failures";
    diagnostics.add(std::move(found));
  }
  return possible;
}

// nullptr with diagnostics where the job has no plan.
std::unique_ptr<SharedPlanner> planner_of(const SetupRequest& request, Diagnostics& diagnostics) {
  std::optional<OobleckSpec> spec = oobleck_spec(request, diagnostics);
  if (!spec || !is_possible(*spec, diagnostics)) return nullptr;
  spec->tail = [tails = Tails(request.job.pipelines, *spec).all()](int pipelines) {
    return tails.at(static_cast<std::size_t>(pipelines));
  };
  return std::make_unique<SharedPlanner>(*std::move(spec));
}

std::vector<std::string> notes_of(const GoodputJob& job) {
  std::vector<std::string> notes = notes_on_experts(job);
  for (const Diagnostic& warning : check_oobleck(job.planner->spec())) notes.push_back(warning.message);
  return notes;
}

}  // namespace

std::optional<GoodputSetup> set_up_oobleck(const SetupRequest& request, Diagnostics& diagnostics) {
  const PolicySpec& policy = request.spec.policy;
  std::unique_ptr<SharedPlanner>& kept = request.job.planner;
  if (!kept) kept = planner_of(request, diagnostics);
  if (!kept) return std::nullopt;
  SharedPlanner& shared = *kept;
  GoodputSetup setup{.nodes = request.job.shapes.nodes(), .notes = notes_of(request.job)};
  const bool whole = policy.reconfigure.has_value();
  const Duration reconfigure = reconfigure_time(request);
  if (request.describe)
    setup.description = shared.ask([&](OobleckPlanner& planner) {
      return render_plan(plan_oobleck(planner, {.time = reconfigure, .copy_included = whole}));
    });
  setup.ideal = full_step(request);
  const Duration least = shared.ask([](OobleckPlanner& planner) { return planner.least_step(); });
  setup.ideal.duration = std::min(setup.ideal.duration, least);
  // Each lost node returns: two changes per failure.
  const double changes = 2 * failures_per_second(request.spec, setup.nodes);
  const OobleckPolicySpec spec{.samples = setup.ideal.samples,
                               .reconfigure = reconfigure,
                               .copy_included = whole,
                               .recompose = policy.recompose_on_join,
                               .between_changes = mean_time_between(changes),
                               .least_step = setup.ideal.duration};
  setup.policy = [&shared, spec] { return std::make_unique<OobleckPolicy>(shared, spec); };
  return setup;
}

}  // namespace stagecraft
