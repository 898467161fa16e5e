#include "sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>
#include <variant>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "models/operators.hpp"
#include "sim/lower/background.hpp"
#include "sim/report/memory_moment.hpp"
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

// Shares of all priced time of an iteration, over all ranks.
std::array<double, 5> provenance_shares(const IterationPrices& prices, int micro_batches) {
  std::array<double, 5> seconds{};
  const auto take = [&](const PassPrice& price, double times) {
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += price.seconds_by_provenance()[i] * times;
  };
  for (const StagePrice& stage : prices.stages) {
    for (const PassPrice* pass :
         {&stage.forward, &stage.recompute, &stage.input_gradient, &stage.weight_gradient}) {
      take(*pass, micro_batches);
    }
    for (const UnitPrice& unit : stage.units) {
      take(unit.gather, (stage.kept_gathered ? 1.0 : 2.0) * micro_batches);
      take(unit.reduce, micro_batches);
    }
  }
  for (const EdgePrice& edge : prices.edges) {
    take(edge.forward, micro_batches);
    take(edge.backward, micro_batches);
  }
  for (const RankPrice& rank : prices.ranks) {
    for (const auto* list : {&rank.gradient_buckets, &rank.parameter_buckets}) {
      for (const auto& chunk : *list) {
        for (const PassPrice& bucket : chunk) take(bucket, 1);
      }
    }
    for (const PassPrice* tail : {&rank.tied_embedding, &rank.gradient_norm, &rank.optimizer}) take(*tail, 1);
  }
  double total = 0;
  for (const double s : seconds) total += s;
  if (total > 0) {
    for (double& s : seconds) s /= total;
  }
  return seconds;
}

// Errors of one kind of knowledge go the same way, those of different kinds are independent.
std::array<Duration, 2> interval(const Scenario& scenario, const Report& report) {
  if (!scenario.profile) return {report.iteration_time, report.iteration_time};
  double variance = 0;
  for (std::size_t i = 0; i < report.provenance.size(); ++i) {
    const double spread = report.provenance[i] * scenario.profile->relative_spread[i];
    variance += spread * spread;
  }
  constexpr double kNormal90 = 1.6448536269514722;  // two-sided 90 % of a normal distribution
  const double factor = 1 + kNormal90 * std::sqrt(variance);
  const double seconds = to_seconds(report.iteration_time);
  return {from_seconds(seconds / factor), from_seconds(seconds * factor)};
}

// "tp 8 · cp 2 · ep 8 · pp 8 · dp 16 · 1f1b · zero 1": of the optional degrees, those above 1.
std::string headline(const Scenario& scenario, const ParallelPlan& plan) {
  std::string line = "tp " + std::to_string(plan.tensor);
  const auto add = [&](const char* name, int value) {
    line += std::string(" · ") + name + ' ' + std::to_string(value);
  };
  if (plan.context > 1) add("cp", plan.context);
  if (plan.expert > 1) add("ep", plan.expert);
  if (plan.expert_tensor > 1) add("etp", plan.expert_tensor);
  add("pp", plan.pipeline);
  add("dp", plan.data);
  line += " · " + scenario.schedule.name;
  if (plan.virtual_stages > 1) line += " x" + std::to_string(plan.virtual_stages);
  if (scenario.parallelism.zero_stage == 0) return line;
  add("zero", scenario.parallelism.zero_stage);
  if (plan.shard_group < plan.replicas()) line += " over " + std::to_string(plan.shard_group);
  return line;
}

// Of the model's layers, those that full recompute repeats.
double recomputed_share(const TransformerSpec& model, const ParallelPlan& plan) {
  std::int64_t layers = 0;
  for (const StageContent& content : plan.stages) layers += content.recomputed;
  return static_cast<double>(layers) / static_cast<double>(model.layers);
}

// Flash attention makes its scores again inside its kernel: there is no core to repeat.
RecomputeModules repeated_modules(const TrainingSpec& training) {
  RecomputeModules repeated;
  for (std::size_t i = 0; i < kRecomputeModuleNames.size(); ++i) {
    const auto module = static_cast<RecomputeModule>(i);
    const bool inside = module == RecomputeModule::kCoreAttention && training.attention == Attention::kFlash;
    if (training.recompute.modules.has(module) && !inside) repeated = repeated.with(module);
  }
  return repeated;
}

void fill_work(const Scenario& scenario, const ParallelPlan& plan, Report& report) {
  const TrainingSpec& training = scenario.training;
  report.samples = training.global_batch_size;
  report.tokens = training.global_batch_size * training.sequence_length;
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr) return;
  report.model_flops = model_flops(*model, training.global_batch_size, training.sequence_length);
  report.hardware_flops = hardware_flops(*model, training.global_batch_size, training.sequence_length,
                                         {.granularity = training.recompute.granularity,
                                          .modules = repeated_modules(training),
                                          .layers = recomputed_share(*model, plan)});
  report.peak = scenario.profile->peak(training.precision);
}

// Defaults that move the result, for whoever did not write them.
std::vector<std::string> assumed_defaults(const Scenario& scenario) {
  if (!scenario.profile || !scenario.cluster) return {};
  const auto yes_no = [](bool flag) { return std::string(flag ? "true" : "false"); };
  const TrainingSpec& training = scenario.training;
  const std::pair<std::string, std::string> values[] = {
      {"profile", scenario.profile->name},
      {"cluster.fabric", scenario.cluster->fabric.name},
      {"schedule", scenario.schedule.name},
      {"training.precision", std::string(kPrecisionNames[static_cast<std::size_t>(training.precision)])},
      {"training.gradient_dtype", std::string(kPrecisionNames[static_cast<std::size_t>(training.gradient)])},
      {"training.recompute",
       std::string(kRecomputeNames[static_cast<std::size_t>(training.recompute.granularity)])},
      {"training.attention", std::string(kAttentionNames[static_cast<std::size_t>(training.attention)])},
      {"overlap.gradients", yes_no(scenario.overlap.gradients)},
      {"overlap.pipeline", yes_no(scenario.overlap.pipeline)},
      {"options.fused_kernels", yes_no(scenario.options.fused_kernels)}};
  std::vector<std::string> assumed;
  for (const auto& [path, value] : values) {
    // A mapping is given when anything below it is.
    const auto at = scenario.origins.lower_bound(path);
    const bool given = at != scenario.origins.end() && at->first.starts_with(path);
    if (!given) assumed.push_back(path + ": " + value);
  }
  return assumed;
}

NetworkReport network_of(const Simulation& simulation, std::span<const FoldedLink> links) {
  std::vector<int> alike;
  for (const FoldedLink& link : links) alike.push_back(link.alike);
  const Duration idle = run(simulation.program, {.idle_network = true}).makespan;
  return measure_network(simulation.program, simulation.timeline, alike, idle);
}

Report make_report(const Scenario& scenario, const Simulation& simulation) {
  Report report;
  report.scenario = scenario.source;
  report.name = scenario.name;
  report.headline = headline(scenario, simulation.prepared.plan);
  report.gpus = simulation.prepared.plan.gpus();
  fill_work(scenario, simulation.prepared.plan, report);
  report.iteration_time = simulation.timeline.makespan;
  report.bubble = measure_bubble(simulation.program, simulation.timeline);
  report.breakdown = measure_breakdown(simulation.program, simulation.timeline);
  report.critical_path = measure_critical_path(simulation.program, simulation.timeline);
  report.memory = ledger_of(scenario, simulation.prepared);
  time_peaks(report.memory, simulation.program, simulation.timeline);
  report.network = simulation.network;
  report.offload = simulation.prices.offload;
  report.provenance = provenance_shares(simulation.prices, simulation.prepared.plan.micro_batches);
  report.interval_90 = interval(scenario, report);
  report.tasks = static_cast<std::int64_t>(simulation.program.task_count());
  for (const Resource& resource : simulation.program.resources) {
    report.simulated_ranks = std::max(report.simulated_ranks, resource.rank + 1);
  }
  for (const Diagnostic& warning : scenario.warnings)
    report.warnings.push_back(warning.path + ": " + warning.message);
  report.assumptions = assumed_defaults(scenario);
  if (scenario.profile) report.profile = scenario.profile->name + " of " + scenario.profile->date;
  StableHash digest;
  digest.add(hash(simulation.timeline));
  report.timeline_hash = digest.hex();
  return report;
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
  LoweredFlows lowered = lower_flows(
      prepared.schedule, prices,
      {.blocking_messages = !scenario.overlap.pipeline,
       .overlap_gradients = scenario.overlap.gradients,
       .overlap_parameters = scenario.overlap.parameters,
       .reduce_last = scenario.options.memory.whole_gradients,
       .overlap_slowdown = scenario.profile ? scenario.profile->gradient_overlap_slowdown.value : 1,
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
  simulation.report = make_report(scenario, simulation);
  return simulation;
}

Report simulate(const Scenario& scenario, const SimulateOptions& options) {
  return simulate_in_full(scenario, options).report;
}

MemoryLedger memory_of(const Scenario& scenario) {
  return ledger_of(scenario, prepare_or_throw(scenario));
}

}  // namespace stagecraft
