#include "sim/simulate.hpp"

#include <fmt/format.h>

#include <utility>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "sim/check_job.hpp"
#include "sim/fit_schedule.hpp"
#include "sim/lower/background.hpp"
#include "sim/lower/fault_plan.hpp"
#include "sim/lower/host_memory.hpp"
#include "sim/lower_options.hpp"
#include "sim/make_report.hpp"
#include "sim/make_schedule.hpp"
#include "sim/mixed_prices.hpp"
#include "sim/price_iteration.hpp"
#include "sim/report/measure.hpp"
#include "sim/report/memory_moment.hpp"
#include "sim/scenario/load_faults.hpp"
#include "sim/scenario/load_jobs.hpp"
#include "sim/shared_fabric.hpp"
#include "sim/simulate_parts.hpp"
#include "topology/cluster.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

namespace {

// Adds the bubble and the times of the memory peaks, measured on one iteration simulated alone.
void add_single(Simulation& simulation, LowerOptions how) {
  how.iterations = 1;
  const Program program = lower(simulation.prepared.schedule, simulation.prices, how);
  const Timeline timeline = run(program);
  simulation.report.bubble = measure_bubble(program, timeline, how.weights);
  time_peaks(simulation.report.memory, program, timeline);
}

Prepared prepare_or_throw(const Scenario& scenario) {
  Diagnostics diagnostics;
  std::optional<Prepared> prepared = prepare(scenario, diagnostics);
  diagnostics.throw_if_errors();
  SC_CHECK(prepared.has_value(), "a refusal gives its reason");
  return *std::move(prepared);
}

}  // namespace

MemoryLedger ledger_of(const Scenario& scenario, const ParallelPlan& plan, const Schedule& schedule,
                       bool until_over) {
  if (const auto* stages = std::get_if<StagesSpec>(&scenario.model)) {
    return stages_ledger(*stages, plan, schedule,
                         scenario.profile ? scenario.profile->device.memory : Bytes(0));
  }
  const HardwareProfile& smallest = smallest_device(scenario);
  PricingRequest job = pricing_request(scenario, plan);
  job.shard.fp8_layouts = smallest.memory.fp8_weight_copies();
  MemoryLedger ledger =
      transformer_ledger(std::get<TransformerSpec>(scenario.model),
                         {.job = job, .schedule = schedule, .profile = smallest, .until_over = until_over});
  if (scenario.cluster) ledger.host = host_memory(ledger.stages, plan, *scenario.cluster);
  return ledger;
}

std::optional<ParallelPlan> place(const Scenario& scenario, Diagnostics& diagnostics) {
  const bool connected = check_cluster(scenario, diagnostics);
  std::optional<ParallelPlan> plan = resolve({.model = scenario.model,
                                              .cluster = scenario.cluster ? &*scenario.cluster : nullptr,
                                              .parallelism = scenario.parallelism,
                                              .training = scenario.training,
                                              .origins = scenario.origins,
                                              .fallback = {.file = scenario.source},
                                              .placement = placement_of(scenario)},
                                             diagnostics);
  if (!connected || (plan && !check_buckets(scenario, *plan, diagnostics))) return std::nullopt;
  return plan;
}

std::optional<Prepared> prepare(const Scenario& scenario, Diagnostics& diagnostics) {
  std::optional<ParallelPlan> plan = place(scenario, diagnostics);
  if (!plan) return std::nullopt;
  std::optional<Schedule> schedule = make_schedule(scenario, *plan, diagnostics);
  check_faults(scenario, *plan, diagnostics);
  for (const OtherJob& job : scenario.jobs) (void)prepare(job.scenario, diagnostics);
  if (schedule) fit_schedule(scenario, *schedule, *plan, diagnostics);
  if (!schedule || diagnostics.has_errors()) return std::nullopt;
  return Prepared{.plan = *plan, .schedule = *std::move(schedule)};
}

namespace {

struct LoweredJob {
  Prepared prepared;
  IterationPrices prices;
  FaultPlan faults;
  Program program;
};

// The simulated copies of the pipeline, with their faults.
FaultPlan copies_of(const Scenario& scenario, const ParallelPlan& plan, const Cluster* cluster, bool unfold) {
  if (!scenario.faults.empty()) return plan_faults(scenario.faults, plan, cluster, unfold);
  const int copies = unfold ? plan.data * plan.tensor * plan.context : 1;
  return {.copies = std::vector<std::vector<int>>(static_cast<std::size_t>(copies), {0}),
          .speeds = {},
          .links = {}};
}

std::vector<int> weights_of(const FaultPlan& faults) {
  std::vector<int> weights;
  for (const std::vector<int>& copy : faults.copies) weights.push_back(static_cast<int>(copy.size()));
  return weights;
}

// The options for the copies of a fault plan, on links of their own.
LowerOptions lower_options(const Scenario& scenario, const Schedule& schedule, const IterationPrices& prices,
                           const FaultPlan& faults) {
  LowerOptions how = lower_options(scenario, schedule, prices);
  how.replicas = static_cast<int>(faults.copies.size());
  how.weights = weights_of(faults);
  how.speeds = faults.speeds;
  return how;
}

LoweredJob lower_job(const Scenario& scenario, Prepared prepared, const Cluster* cluster,
                     std::optional<SharedNetwork> network, const SimulateOptions& options = {}) {
  IterationPrices prices = price(scenario, cluster, pricing_request(scenario, prepared.plan));
  FaultPlan faults = copies_of(scenario, prepared.plan, cluster, options.unfold);
  if (network) network->changes = faults.links;
  LowerOptions how = lower_options(scenario, prepared.schedule, prices, faults);
  how.network = network ? &*network : nullptr;
  how.queued_messages =
      how.queued_messages || (network && !how.blocking_messages);  // shared links stretch them
  Program program = lower(prepared.schedule, prices, how);
  return {.prepared = std::move(prepared),
          .prices = std::move(prices),
          .faults = std::move(faults),
          .program = std::move(program)};
}

// The links of `part`, with the background load on them.
SharedNetwork network_on(const Cluster& part, const Cluster& whole, const Scenario& scenario) {
  SharedNetwork network{.background = background_load(whole, scenario.network.background)};
  for (std::uint32_t i = 0; i < part.link_count(); ++i)
    network.links.push_back({.name = part.link_name(EdgeId(i)), .capacity = part.link(EdgeId(i)).capacity});
  return network;
}

FabricJob lower_other(const OtherJob& job, const Cluster& whole, const Scenario& host) {
  const Cluster part = whole.part(job.nodes);
  return {
      .name = job.name,
      .nodes = node_list_text(job.nodes),
      .start = job.start,
      .program = lower_job(job.scenario, prepare_or_throw(job.scenario), &part, network_on(part, whole, host))
                     .program};
}

Program without_changes(Program program) {
  program.link_changes.clear();
  program.speed_changes.clear();
  return program;
}

// "pipeline 2, data 1-15", by simulated rank.
std::vector<std::string> rank_names(const ParallelPlan& plan, const FaultPlan& faults) {
  std::vector<std::string> names;
  for (const std::vector<int>& copy : faults.copies)
    for (int rank = 0; rank < plan.pipeline; ++rank)
      names.push_back(fmt::format("pipeline {}, data {}", rank, node_list_text(copy)));
  return names;
}

FaultReport fault_report(const Scenario& scenario, const Simulation& simulation, const FaultPlan& faults,
                         Duration without) {
  FaultReport report{.faults = {}, .without = without};
  for (const FaultSpec& fault : scenario.faults) report.faults.push_back(to_text(fault));
  if (!simulation.timeline.stall) return report;
  report.stall = simulation.timeline.stall->time;
  report.ranks =
      measure_stall(simulation.program, simulation.timeline, rank_names(simulation.prepared.plan, faults));
  return report;
}

}  // namespace

Simulation simulate_in_full(const Scenario& scenario, const SimulateOptions& options) {
  Prepared prepared = prepare_or_throw(scenario);  // first: traffic needs ways
  std::optional<Cluster> whole, part;
  if (scenario.cluster) whole.emplace(whole_cluster(scenario));
  if (scenario.fabric) part.emplace(whole->part(scenario.network.placement));
  const Cluster* cluster = part ? &*part : whole ? &*whole : nullptr;
  std::optional<SharedNetwork> shared;
  if (cluster != nullptr && scenario.network.shared()) shared.emplace(network_on(*cluster, *whole, scenario));
  LoweredJob job = lower_job(scenario, std::move(prepared), cluster, shared, options);
  std::vector<FabricJob> others;
  for (const OtherJob& other : scenario.jobs) others.push_back(lower_other(other, *whole, scenario));
  const auto run_all = [&](Program& program) {
    return shared ? run_together(program, others, scenario.network.iterations)
                  : SharedRun{.timeline = run(program), .network = {}};
  };
  Program without = scenario.faults.empty() ? Program() : without_changes(job.program);
  SharedRun result = run_all(job.program);
  Simulation simulation{.prepared = std::move(job.prepared),
                        .prices = std::move(job.prices),
                        .program = std::move(job.program),
                        .timeline = std::move(result.timeline),
                        .network = std::move(result.network),
                        .report = {}};
  simulation.report =
      make_report(scenario, simulation, weights_of(job.faults),
                  ledger_of(scenario, simulation.prepared.plan, simulation.prepared.schedule));
  if (!scenario.faults.empty())
    simulation.report.faults =
        fault_report(scenario, simulation, job.faults, run_all(without).timeline.makespan);
  const Schedule& order = simulation.prepared.schedule;
  if (scenario.schedule.iterations > 1 && order.flush)
    add_single(simulation, lower_options(scenario, order, simulation.prices, job.faults));
  return simulation;
}

Report simulate(const Scenario& scenario, const SimulateOptions& options) {
  return simulate_in_full(scenario, options).report;
}

MemoryLedger memory_of(const Scenario& scenario) {
  const Prepared prepared = prepare_or_throw(scenario);
  return ledger_of(scenario, prepared.plan, prepared.schedule);
}

}  // namespace stagecraft
