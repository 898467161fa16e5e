#include "sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "base/ids.hpp"
#include "base/text.hpp"
#include "sim/fit_schedule.hpp"
#include "sim/lower/background.hpp"
#include "sim/lower/fault_plan.hpp"
#include "sim/lower/host_memory.hpp"
#include "sim/lower/stage_parameters.hpp"
#include "sim/make_report.hpp"
#include "sim/mixed_prices.hpp"
#include "sim/price_iteration.hpp"
#include "sim/report/memory_moment.hpp"
#include "sim/scenario/load_faults.hpp"
#include "sim/scenario/load_jobs.hpp"
#include "sim/shared_fabric.hpp"
#include "sim/simulate_parts.hpp"
#include "topology/cluster.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

namespace {

SourceLocation place_of(const Scenario& scenario, const std::string& path) {
  const auto known = scenario.origins.find(path);
  return known != scenario.origins.end() ? known->second : SourceLocation{.file = scenario.source};
}

// What compute loses to the traffic of weights and gradients beside it.
double overlap_slowdown_of(const Scenario& scenario) {
  const bool sharded = scenario.parallelism.zero_stage >= 2;
  if (sharded && scenario.options.sharded_overlap_slowdown) return *scenario.options.sharded_overlap_slowdown;
  double most = 1;
  for (const HardwareProfile* profile : profiles_of(scenario))
    most = std::max(most,
                    (sharded ? profile->sharded_overlap_slowdown : profile->gradient_overlap_slowdown).value);
  return most;
}

std::optional<FusedPairRule> pair_rule(const Scenario& scenario) {
  const bool neighbours = overlaps_expert_exchanges(scenario);
  if (!neighbours && !runs_fused_pairs(scenario)) return std::nullopt;
  FusedPairRule rule{.neighbours = neighbours, .expert_overlap = scenario.options.expert_overlap};
  if (!neighbours) rule.share = scenario.schedule.fused_share;
  if (scenario.profile) {
    for (const HardwareProfile* profile : profiles_of(scenario)) {
      rule.slowdown = std::max(rule.slowdown, profile->gradient_overlap_slowdown.value);
      rule.tensor_overlap = std::min(rule.tensor_overlap, profile->tensor_overlap.value);
    }
  }
  return rule;
}

// What an order that is made to measure is made for: the passes of each stage, the slowest message, and the
// smallest share of its activations that an input gradient frees. Nobody reads the links here.
ScheduleCosts measures(const Scenario& scenario, const ParallelPlan& plan, bool split_backward) {
  std::optional<Cluster> cluster;
  if (scenario.cluster) cluster.emplace(*scenario.cluster);
  const IterationPrices prices =
      price(scenario, cluster ? &*cluster : nullptr, pricing_request(scenario, plan, false));
  ScheduleCosts costs;
  double freed = 1;
  for (const StagePrice& stage : prices.stages) {
    const Duration weight_gradient = stage.weight_gradient.total();
    const Duration input_gradient = split_backward
                                        ? pass_price(stage, Pass::kInputGradient, true).total()
                                        : pass_price(stage, Pass::kBackward, true).total() - weight_gradient;
    costs.stages.push_back({.forward = stage.forward.total().count(),
                            .input_gradient = input_gradient.count(),
                            .weight_gradient = weight_gradient.count()});
    const double kept = static_cast<double>(stage.memory.kept.count());
    if (kept > 0)
      freed = std::min(freed, static_cast<double>(stage.memory.freed_by_input_gradient.count()) / kept);
    else
      freed = 0;
  }
  for (const EdgePrice& edge : prices.edges)
    costs.message = std::max({costs.message, edge.forward.total().count(), edge.backward.total().count()});
  if (std::holds_alternative<TransformerSpec>(scenario.model))
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

}  // namespace

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
  return generate(*kind, shape, measures(scenario, plan, kind->split_backward));
}

namespace {

void check_precision(const Scenario& scenario, Diagnostics& diagnostics) {
  const std::string_view precision = kPrecisionNames[static_cast<std::size_t>(scenario.training.precision)];
  for (const HardwareProfile* profile : profiles_of(scenario)) {
    if (profile->supports(scenario.training.precision)) continue;
    diagnostics.error({.code = "not-supported-by-device",
                       .where = place_of(scenario, "training.precision"),
                       .path = "training.precision",
                       .message = profile->device.name + " has no " + std::string(precision) + " mode",
                       .hint = "bf16 and fp16 are there, or name the profile of another device"});
  }
}

// Traffic of several devices is not told apart on shared links yet.
void check_devices(const Scenario& scenario, Diagnostics& diagnostics) {
  if (scenario.group_profiles.empty() || !scenario.network.shared()) return;
  diagnostics.error(
      {.code = "not-supported-yet",
       .where = place_of(scenario, "network"),
       .path = "network",
       .message = "links that flows share are not supported yet on a cluster of several devices",
       .hint = "use network: closed-form"});
}

const ClusterSpec& whole_cluster(const Scenario& scenario) {
  return scenario.fabric ? *scenario.fabric : *scenario.cluster;
}

// Every GPU reaches every other, whatever links are missing; all prices rest on it.
bool check_ways(const Scenario& scenario, Diagnostics& diagnostics) {
  if (!scenario.cluster) return true;
  const ClusterSpec& spec = whole_cluster(scenario);
  std::vector<std::string> missing;
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < spec.links.size(); ++i) {
    if (!spec.links[i].missing) continue;
    missing.push_back(in_quotes(spec.links[i].name));
    if (!first) first = i;
  }
  if (!first) return true;
  const Cluster cluster(spec);
  const auto pair = cluster.unreachable();
  if (!pair) return true;
  const std::string path = fmt::format("cluster.links.{}.missing", *first);
  diagnostics.error(
      {.code = "no-way",
       .where = place_of(scenario, path),
       .path = path,
       .message = fmt::format("no way is left from {} to {} without {}", cluster.name_of(pair->first),
                              cluster.name_of(pair->second), join(missing, " and ")),
       .hint = "keep one link of each way, or take the node out of the cluster"});
  return false;
}

// A GPU is one that there is.
void check_faulty_gpus(const Scenario& scenario, const ParallelPlan& plan, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    const FaultSpec& fault = scenario.faults[i];
    const auto beyond =
        std::find_if(fault.ranks.begin(), fault.ranks.end(), [&](int rank) { return rank >= plan.gpus(); });
    if (beyond == fault.ranks.end()) continue;
    const std::string path = fmt::format("faults.{}.gpu", i);
    diagnostics.error({.code = "out-of-range",
                       .where = place_of(scenario, path),
                       .path = path,
                       .message = fmt::format("GPU {} is not one of the job's {}", *beyond, plan.gpus()),
                       .hint = fmt::format("GPUs are 0 to {}", plan.gpus() - 1)});
  }
}

// A cluster's links, what others take of them, and the least that has to be left.
class SlowedLinks {
 public:
  explicit SlowedLinks(const Scenario& scenario)
      : cluster_(whole_cluster(scenario)),
        usual_(as_the_rule_says(whole_cluster(scenario))),
        load_(background_load(cluster_, scenario.network.background)) {}

  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] Bandwidth capacity(EdgeId link) const { return cluster_.link(link).capacity; }
  [[nodiscard]] Bandwidth load(EdgeId link) const { return load_[link]; }

  // Is enough left of it where faults leave it this share?
  [[nodiscard]] bool suffices(EdgeId link, double share) const {
    const Link& ends = cluster_.link(link);
    const EdgeId same = usual_.graph().find(ends.from, ends.to).value();
    return share * ends.capacity - load_[link] >= kLeastLinkShare * usual_.link(same).capacity;
  }

 private:
  static ClusterSpec as_the_rule_says(ClusterSpec spec) {
    spec.links.clear();
    return spec;
  }

  Cluster cluster_, usual_;
  IdVector<EdgeId, Bandwidth> load_;
};

std::string gigabytes(Bandwidth rate) {
  return fmt::format("{:.12g} GB/s", rate.count() * 1e-9);
}

// Degraded links, with what others take of them.
void check_degraded_links(const Scenario& scenario, const ParallelPlan& plan, Diagnostics& diagnostics) {
  const bool degrades = std::ranges::any_of(
      scenario.faults, [](const FaultSpec& fault) { return fault.kind == FaultKind::kDegradedLink; });
  if (!degrades || diagnostics.has_errors()) return;
  const SlowedLinks links(scenario);
  for (const LinkShareChange& change : plan_faults(scenario.faults, plan, &links.cluster(), false).links) {
    if (links.suffices(change.link, change.share)) continue;
    std::string message =
        fmt::format("leave {} of the {} of {}", gigabytes(change.share * links.capacity(change.link)),
                    gigabytes(links.capacity(change.link)), links.cluster().link_name(change.link));
    if (links.load(change.link) > Bandwidth(0))
      message += fmt::format(", and background traffic asks {}", gigabytes(links.load(change.link)));
    diagnostics.error({.code = "out-of-range",
                       .where = place_of(scenario, "faults"),
                       .path = "faults",
                       .message = std::move(message),
                       .hint = "leave the training at least a millionth of the link: use larger factors, or "
                               "lower rates"});
    return;
  }
}

// Background traffic leaves something of every link.
void check_background(const Scenario& scenario, Diagnostics& diagnostics) {
  if (scenario.network.background.empty()) return;
  const SlowedLinks links(scenario);
  for (std::uint32_t i = 0; i < links.cluster().link_count(); ++i) {
    const EdgeId link(i);
    if (links.load(link) == Bandwidth(0) || links.suffices(link, 1)) continue;
    diagnostics.error(
        {.code = "out-of-range",
         .where = place_of(scenario, "network.background.0.rate"),
         .path = "network.background",
         .message = fmt::format("the traffic asks {} of {}, which has {}", gigabytes(links.load(link)),
                                links.cluster().link_name(link), gigabytes(links.capacity(link))),
         .hint = "leave the training at least a millionth of it: use lower rates"});
    return;
  }
}

Placement placement_of(const Scenario& scenario) {
  if (scenario.order) return scenario.order->schedule.placement;
  const ScheduleKind* kind = find_schedule(scenario.schedule.name);
  return kind != nullptr ? kind->placement : Placement::kLoop;
}

StepRule step_rule(const Scenario& scenario, const Schedule& schedule) {
  if (schedule.flush) return scenario.schedule.global_step ? StepRule::kBarrier : StepRule::kPostValidated;
  const ScheduleKind* kind = find_schedule(scenario.schedule.name);
  const bool stashed = kind != nullptr && kind->weight_versions > 1;
  return stashed && scenario.overlap.gradients ? StepRule::kDelayed : StepRule::kOwn;
}

// A step that is taken back costs itself and the forwards that ran with its weights: on rank r about the
// first 2(p-1-r) of the next iteration, until the word of all ranks has come back. The rank that loses most
// counts.
//   source  Qi et al., ICLR'24 (arXiv 2401.10241), section 4
Duration expected_rollback(const Scenario& scenario, const Schedule& schedule,
                           const IterationPrices& prices) {
  Duration most{};
  if (scenario.schedule.rollback == 0) return most;
  const int p = schedule.shape.ranks;
  for (int rank = 0; rank < p; ++rank) {
    Duration lost = prices.ranks[static_cast<std::size_t>(rank)].optimizer.total() + prices.host.total();
    int left = 2 * (p - 1 - rank);
    for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)]) {
      if (action.pass != Pass::kForward || left-- == 0) break;
      const int copy = schedule.copy_of(action.micro_batch);
      lost += prices.stages[schedule.places().index_of(action.stage, copy)].forward.total();
    }
    most = std::max(most, lost);
  }
  return from_seconds(to_seconds(most) * scenario.schedule.rollback);
}

// The bubble, and the moments of the memory peaks, of an iteration alone: what its order is known for.
void add_single(Simulation& simulation, LowerOptions how) {
  how.iterations = 1;
  const Program program = lower(simulation.prepared.schedule, simulation.prices, how);
  const Timeline timeline = run(program);
  simulation.report.bubble = measure_bubble(program, timeline);
  time_peaks(simulation.report.memory, program, timeline);
}

Prepared prepare_or_throw(const Scenario& scenario) {
  Diagnostics diagnostics;
  std::optional<Prepared> prepared = prepare(scenario, diagnostics);
  diagnostics.throw_if_errors();
  SC_CHECK(prepared.has_value(), "a refusal gives its reason");
  return *std::move(prepared);
}

// Each bucket is a task of its own, and memory is not endless.
bool check_buckets(const Scenario& scenario, const ParallelPlan& plan, Diagnostics& diagnostics) {
  constexpr std::int64_t kMost = 1'000'000;
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr || !scenario.options.bucket_parameters) return true;
  const std::int64_t size = *scenario.options.bucket_parameters;
  std::int64_t parameters = 0;
  for (int rank = 0; rank < plan.pipeline; ++rank) parameters += rank_share(*model, plan, rank).all();
  if (parameters / size <= kMost) return true;
  diagnostics.error({.code = "too-many",
                     .where = place_of(scenario, "options.bucket_parameters"),
                     .path = "options.bucket_parameters",
                     .message = fmt::format("makes {} buckets, and at most {} are simulated",
                                            with_thousands(parameters / size), with_thousands(kMost)),
                     .hint = fmt::format("it counts parameters: {} or more would do, and the usual is {}",
                                         with_thousands(parameters / kMost + 1), "40,000,000")});
  return false;
}

}  // namespace

MemoryLedger ledger_of(const Scenario& scenario, const ParallelPlan& plan, const Schedule& schedule,
                       bool until_over) {
  if (const auto* stages = std::get_if<StagesSpec>(&scenario.model)) {
    return stages_ledger(*stages, plan, schedule,
                         scenario.profile ? scenario.profile->device.memory : Bytes(0));
  }
  const PricingRequest job = pricing_request(scenario, plan);
  const Shard shard = shard_of(job);
  MemoryLedger ledger =
      transformer_ledger(std::get<TransformerSpec>(scenario.model), {.job = job,
                                                                     .shard = shard,
                                                                     .schedule = schedule,
                                                                     .profile = smallest_device(scenario),
                                                                     .until_over = until_over});
  if (scenario.cluster) ledger.host = host_memory(ledger.stages, plan, *scenario.cluster);
  return ledger;
}

std::optional<ParallelPlan> place(const Scenario& scenario, Diagnostics& diagnostics) {
  if (!check_ways(scenario, diagnostics)) return std::nullopt;
  check_precision(scenario, diagnostics);
  check_devices(scenario, diagnostics);
  check_background(scenario, diagnostics);
  std::optional<ParallelPlan> plan = resolve({.model = scenario.model,
                                              .cluster = scenario.cluster ? &*scenario.cluster : nullptr,
                                              .parallelism = scenario.parallelism,
                                              .training = scenario.training,
                                              .origins = scenario.origins,
                                              .fallback = {.file = scenario.source},
                                              .placement = placement_of(scenario)},
                                             diagnostics);
  if (plan && !check_buckets(scenario, *plan, diagnostics)) return std::nullopt;
  return plan;
}

std::optional<Prepared> prepare(const Scenario& scenario, Diagnostics& diagnostics) {
  std::optional<ParallelPlan> plan = place(scenario, diagnostics);
  if (!plan) return std::nullopt;
  std::optional<Schedule> schedule = make_schedule(scenario, *plan, diagnostics);
  check_faulty_gpus(scenario, *plan, diagnostics);
  check_degraded_links(scenario, *plan, diagnostics);
  for (const OtherJob& job : scenario.jobs) (void)prepare(job.scenario, diagnostics);
  if (schedule) fit_schedule(scenario, *schedule, *plan, diagnostics);
  if (!schedule || diagnostics.has_errors()) return std::nullopt;
  return Prepared{.plan = *plan, .schedule = *std::move(schedule)};
}

LowerOptions lower_options(const Scenario& scenario, const Schedule& schedule,
                           const IterationPrices& prices) {
  const bool keeps_whole = scenario.options.reduces_behind_backward && scenario.parallelism.pipeline > 1;
  return {.blocking_messages = !scenario.overlap.pipeline,
          .overlap_gradients = scenario.overlap.gradients,
          .overlap_parameters = scenario.overlap.parameters,
          .aligned_gradients = scenario.options.aligned_gradients,
          .reduce_last = scenario.options.memory.whole_gradients,
          .reduce_behind = keeps_whole && scenario.options.memory.whole_gradients,
          .gather_once = keeps_whole,
          .overlap_slowdown = overlap_slowdown_of(scenario),
          .iterations = scenario.schedule.iterations,
          .step = step_rule(scenario, schedule),
          .rollback = expected_rollback(scenario, schedule, prices),
          .pairs = pair_rule(scenario)};
}

namespace {

struct LoweredJob {
  Prepared prepared;
  IterationPrices prices;
  FaultPlan faults;
  Program program;
};

// Which copies of the pipeline are simulated, and what happens to them.
FaultPlan copies_of(const Scenario& scenario, const ParallelPlan& plan, const Cluster* cluster, bool unfold) {
  if (!scenario.faults.empty()) return plan_faults(scenario.faults, plan, cluster, unfold);
  const int copies = unfold ? plan.data * plan.tensor * plan.context : 1;
  return {.copies = std::vector<std::vector<int>>(static_cast<std::size_t>(copies), {0}),
          .speeds = {},
          .links = {}};
}

// Of these copies, on links of their own.
LowerOptions lower_options(const Scenario& scenario, const Schedule& schedule, const IterationPrices& prices,
                           const FaultPlan& faults) {
  LowerOptions how = lower_options(scenario, schedule, prices);
  how.replicas = static_cast<int>(faults.copies.size());
  for (const std::vector<int>& copy : faults.copies) how.weights.push_back(static_cast<int>(copy.size()));
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
  Program program = lower(prepared.schedule, prices, how);
  return {.prepared = std::move(prepared),
          .prices = std::move(prices),
          .faults = std::move(faults),
          .program = std::move(program)};
}

// The links of `part`, and what nobody's job leaves of them.
SharedNetwork network_on(const Cluster& part, const Cluster& whole, const Scenario& scenario) {
  return {.cluster = part, .background = background_load(whole, scenario.network.background)};
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
  simulation.report = make_report(
      scenario, simulation, ledger_of(scenario, simulation.prepared.plan, simulation.prepared.schedule));
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
