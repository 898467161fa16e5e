#include "sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>
#include <variant>

#include "sim/lower/background.hpp"
#include "sim/make_report.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {
namespace {

SourceLocation place_of(const Scenario& scenario, const std::string& path) {
  const auto known = scenario.origins.find(path);
  return known != scenario.origins.end() ? known->second : SourceLocation{.file = scenario.source};
}

PricingRequest pricing_request(const Scenario& scenario, const ParallelPlan& plan) {
  return {.plan = plan,
          .parallelism = scenario.parallelism,
          .training = scenario.training,
          .overlap = scenario.overlap,
          .options = scenario.options,
          .offload = scenario.offload,
          .shared_links = scenario.network.shared()};
}

// What compute loses to the traffic of weights and gradients beside it.
double overlap_slowdown_of(const Scenario& scenario) {
  if (!scenario.profile) return 1;
  const HardwareProfile& profile = *scenario.profile;
  const bool sharded = scenario.parallelism.zero_stage >= 2;
  return (sharded ? profile.sharded_overlap_slowdown : profile.gradient_overlap_slowdown).value;
}

IterationPrices price(const Scenario& scenario, const ParallelPlan& plan, const Cluster* cluster) {
  const PricingRequest request = pricing_request(scenario, plan);
  if (const auto* stages = std::get_if<StagesSpec>(&scenario.model)) {
    const HardwareProfile* profile = scenario.profile ? &*scenario.profile : nullptr;
    return price_stages(*stages, profile, cluster, request);
  }
  SC_CHECK(cluster != nullptr && scenario.profile, "a transformer needs a cluster and a profile");
  return price_transformer(std::get<TransformerSpec>(scenario.model), *scenario.profile, *cluster, request);
}

// What an order that is made to measure is made for: the passes of each stage, the slowest message, and the
// smallest share of its activations that an input gradient frees.
ScheduleCosts measures(const Scenario& scenario, const ParallelPlan& plan) {
  std::optional<Cluster> cluster;
  if (scenario.cluster) cluster.emplace(*scenario.cluster);
  const IterationPrices prices = price(scenario, plan, cluster ? &*cluster : nullptr);
  ScheduleCosts costs;
  double freed = 1;
  for (const StagePrice& stage : prices.stages) {
    const Duration backward = stage.recompute.total() + stage.input_gradient.total();
    costs.stages.push_back({.forward = stage.forward.total().count(),
                            .input_gradient = backward.count(),
                            .weight_gradient = stage.weight_gradient.total().count()});
    const double kept = static_cast<double>(stage.memory.kept.count());
    if (kept > 0)
      freed = std::min(freed, static_cast<double>(stage.memory.freed_by_input_gradient.count()) / kept);
    else
      freed = 0;
  }
  for (const EdgePrice& edge : prices.edges)
    costs.message = std::max({costs.message, edge.forward.total().count(), edge.backward.total().count()});
  costs.freed_by_input_gradient = std::max(freed, 0.0);
  return costs;
}

// The order of a file, which has to be for the sizes of the scenario.
std::optional<Schedule> given_schedule(const Scenario& scenario, const ParallelPlan& plan,
                                       Diagnostics& diagnostics) {
  const PipelineShape& shape = scenario.order->schedule.shape;
  const std::tuple<const char*, int, int> sizes[] = {
      {"pipeline", shape.ranks, plan.pipeline},
      {"virtual_stages", shape.chunks, plan.virtual_stages},
      {"micro-batches", shape.micro_batches, plan.micro_batches}};
  bool fits = true;
  for (const auto& [what, in_file, here] : sizes) {
    if (in_file == here) continue;
    fits = false;
    diagnostics.error(
        {.code = "schedule-constraint",
         .where = place_of(scenario, "schedule.file"),
         .path = "schedule.file",
         .message = fmt::format("the order is for {} {}, and the scenario has {}", what, in_file, here),
         .hint = "change the scenario, or write the order anew"});
  }
  if (!fits) return std::nullopt;
  return scenario.order->schedule;
}

std::optional<Schedule> make_schedule(const Scenario& scenario, const ParallelPlan& plan,
                                      Diagnostics& diagnostics) {
  if (scenario.order) return given_schedule(scenario, plan, diagnostics);
  const ScheduleKind* kind = find_schedule(scenario.schedule.name);
  SC_CHECK(kind != nullptr, "the loader accepts only schedules that exist");
  const PipelineShape shape{.ranks = plan.pipeline,
                            .micro_batches = plan.micro_batches,
                            .chunks = plan.virtual_stages,
                            .group = scenario.schedule.micro_batch_group};
  if (const std::optional<ScheduleProblem> problem = kind->constraint(shape)) {
    diagnostics.error({.code = "schedule-constraint",
                       .where = place_of(scenario, "schedule"),
                       .path = "schedule",
                       .message = problem->message,
                       .hint = problem->hint});
    return std::nullopt;
  }
  if (!kind->to_measure || diagnostics.has_errors()) return generate(*kind, shape);
  return generate(*kind, shape, measures(scenario, plan));
}

void check_precision(const Scenario& scenario, Diagnostics& diagnostics) {
  if (!scenario.profile || scenario.profile->supports(scenario.training.precision)) return;
  const std::string_view precision = kPrecisionNames[static_cast<std::size_t>(scenario.training.precision)];
  diagnostics.error({.code = "not-supported-by-device",
                     .where = place_of(scenario, "training.precision"),
                     .path = "training.precision",
                     .message = scenario.profile->device.name + " has no " + std::string(precision) + " mode",
                     .hint = "bf16 and fp16 are there, or name the profile of another device"});
}

// Background traffic leaves something of every link.
void check_background(const Scenario& scenario, Diagnostics& diagnostics) {
  if (scenario.network.background.empty()) return;
  const Cluster cluster(*scenario.cluster);
  const auto load = background_load(cluster, scenario.network.background);
  for (std::uint32_t i = 0; i < load.size(); ++i) {
    const EdgeId link(i);
    const Bandwidth capacity = cluster.link(link).capacity;
    if (load[link] < capacity) continue;
    diagnostics.error(
        {.code = "out-of-range",
         .where = place_of(scenario, "network.background.0.rate"),
         .path = "network.background",
         .message = fmt::format("the traffic asks {:.4g} GB/s of {}, which has {:.4g} GB/s",
                                load[link].count() * 1e-9, cluster.link_name(link), capacity.count() * 1e-9),
         .hint = "leave something for the training: use lower rates"});
    return;
  }
}

MemoryLedger ledger_of(const Scenario& scenario, const Prepared& prepared) {
  if (const auto* stages = std::get_if<StagesSpec>(&scenario.model)) {
    return stages_ledger(*stages, prepared.plan, prepared.schedule,
                         scenario.profile ? scenario.profile->device.memory : Bytes(0));
  }
  const PricingRequest job = pricing_request(scenario, prepared.plan);
  const Shard shard = shard_of(job);
  return transformer_ledger(
      std::get<TransformerSpec>(scenario.model),
      {.job = job, .shard = shard, .schedule = prepared.schedule, .profile = *scenario.profile});
}

NetworkReport network_of(const Simulation& simulation, std::span<const FoldedLink> links) {
  std::vector<int> alike;
  for (const FoldedLink& link : links) alike.push_back(link.alike);
  const Duration idle = run(simulation.program, {.idle_network = true}).makespan;
  return measure_network(simulation.program, simulation.timeline, alike, idle);
}

Prepared prepare_or_throw(const Scenario& scenario) {
  Diagnostics diagnostics;
  std::optional<Prepared> prepared = prepare(scenario, diagnostics);
  diagnostics.throw_if_errors();
  SC_CHECK(prepared.has_value(), "a refusal gives its reason");
  return *std::move(prepared);
}

}  // namespace

std::optional<Prepared> prepare(const Scenario& scenario, Diagnostics& diagnostics) {
  check_precision(scenario, diagnostics);
  check_background(scenario, diagnostics);
  const std::optional<ParallelPlan> plan =
      resolve({.model = scenario.model,
               .cluster = scenario.cluster ? &*scenario.cluster : nullptr,
               .parallelism = scenario.parallelism,
               .training = scenario.training,
               .origins = scenario.origins,
               .fallback = {.file = scenario.source}},
              diagnostics);
  if (!plan) return std::nullopt;
  std::optional<Schedule> schedule = make_schedule(scenario, *plan, diagnostics);
  if (!schedule || diagnostics.has_errors()) return std::nullopt;
  return Prepared{.plan = *plan, .schedule = *std::move(schedule)};
}

Simulation simulate_in_full(const Scenario& scenario, const SimulateOptions& options) {
  Prepared prepared = prepare_or_throw(scenario);
  std::optional<Cluster> cluster;
  if (scenario.cluster) cluster.emplace(*scenario.cluster);
  IterationPrices prices = price(scenario, prepared.plan, cluster ? &*cluster : nullptr);
  std::optional<SharedNetwork> shared;
  if (cluster && scenario.network.shared())
    shared.emplace(SharedNetwork{.cluster = *cluster,
                                 .background = background_load(*cluster, scenario.network.background)});
  const int copies = prepared.plan.data * prepared.plan.tensor * prepared.plan.context;
  LoweredFlows lowered = lower_flows(prepared.schedule, prices,
                                     {.blocking_messages = !scenario.overlap.pipeline,
                                      .overlap_gradients = scenario.overlap.gradients,
                                      .overlap_parameters = scenario.overlap.parameters,
                                      .reduce_last = scenario.options.memory.whole_gradients,
                                      .overlap_slowdown = overlap_slowdown_of(scenario),
                                      .replicas = options.unfold ? copies : 1,
                                      .network = shared ? &*shared : nullptr});
  Timeline timeline = run(lowered.program);
  Simulation simulation{.prepared = std::move(prepared),
                        .prices = std::move(prices),
                        .program = std::move(lowered.program),
                        .timeline = std::move(timeline),
                        .network = {},
                        .report = {}};
  if (shared) simulation.network = network_of(simulation, lowered.links);
  simulation.report = make_report(scenario, simulation, ledger_of(scenario, simulation.prepared));
  return simulation;
}

Report simulate(const Scenario& scenario, const SimulateOptions& options) {
  return simulate_in_full(scenario, options).report;
}

MemoryLedger memory_of(const Scenario& scenario) {
  return ledger_of(scenario, prepare_or_throw(scenario));
}

}  // namespace stagecraft
