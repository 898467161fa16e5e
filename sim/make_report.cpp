#include "sim/make_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/hash.hpp"
#include "calibrate/profile/provenance.hpp"
#include "models/operators.hpp"
#include "sim/idle_uplinks.hpp"
#include "sim/lower_options.hpp"
#include "sim/op_families.hpp"
#include "sim/report/measure.hpp"
#include "sim/report/memory_moment.hpp"
#include "sim/scenario/device_modes.hpp"
#include "sim/shaped_operators.hpp"
#include "sim/uneven_groups.hpp"

namespace stagecraft {
namespace {

// Number of runs of each pass in each stage of each copy, as the prices count them.
std::vector<std::array<int, kPassCount>> passes_by_place(const Prepared& prepared) {
  const StagePlaces places = prepared.plan.places();
  std::vector<std::array<int, kPassCount>> counts(places.count());
  for (const std::vector<Action>& order : prepared.schedule.ranks)
    for (const Action& action : order) {
      const std::size_t place = places.index_of(action.stage, prepared.schedule.copy_of(action.micro_batch));
      ++counts[place][static_cast<std::size_t>(action.pass)];
    }
  return counts;
}

// Shares of all priced time of an iteration, over all ranks.
ByProvenance provenance_shares(const Scenario& scenario, const IterationPrices& prices,
                               const Prepared& prepared) {
  ByProvenance seconds{};
  const auto take = [&](const PassPrice& price, double times) {
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += price.seconds_by_provenance()[i] * times;
  };
  const std::vector<std::array<int, kPassCount>> passes = passes_by_place(prepared);
  const int micro_batches = prepared.plan.micro_batches / prepared.plan.places().copies();
  const LowerOptions options = lower_options(scenario, prepared.schedule, prices);
  for (std::size_t place = 0; place < prices.stages.size(); ++place) {
    const StagePrice& stage = prices.stages[place];
    const bool recomputes = passes[place][static_cast<std::size_t>(Pass::kRecompute)] == 0;
    for (std::size_t pass = 0; pass < kPassCount; ++pass)
      for (const PassPrice* part : parts_of(stage, static_cast<Pass>(pass), recomputes))
        take(*part, passes[place][pass]);
    for (const UnitPrice& unit : stage.units) {
      const UnitCounts counts = unit_counts(stage, unit, options, micro_batches);
      take(unit.gather, counts.gathers);
      take(unit.reduce, counts.reductions);
      take(unit.replicate, counts.reductions);
    }
  }
  for (const EdgePrice& edge : prices.edges) {
    take(edge.forward, micro_batches);
    take(edge.backward, micro_batches);
  }
  for (const RankPrice& rank : prices.ranks)
    for_each_price(rank, [&](const PassPrice& price) { take(price, 1); });
  take(prices.ranks.front().tied_embedding, 1);  // of the other rank
  take(prices.host, 1);
  double total = 0;
  for (const double s : seconds) total += s;
  if (total > 0) {
    for (double& s : seconds) s /= total;
  }
  return seconds;
}

// For an unscored profile: errors of one provenance are fully correlated, those of different ones
// independent.
double sigma_by_provenance(const HardwareProfile& profile, const Report& report) {
  double variance = 0;
  for (std::size_t i = 0; i < report.provenance.size(); ++i) {
    const double spread = report.provenance[i] * profile.relative_spread[i];
    variance += spread * spread;
  }
  return std::sqrt(variance);
}

double sigma_of(const HardwareProfile& profile, const Scenario& scenario, const Report& report) {
  if (!profile.residuals) return sigma_by_provenance(profile, report);
  return profile.residuals->sigma(family_shares(report.breakdown), what_ran(scenario));
}

std::array<Duration, 2> interval(const Scenario& scenario, const Report& report) {
  double sigma = 0;  // of several devices the widest
  for (const HardwareProfile* profile : profiles_of(scenario))
    sigma = std::max(sigma, sigma_of(*profile, scenario, report));
  return interval_90(report.iteration_time, sigma);
}

// "recompute mlp+moe", "recompute full block 4": what differs from the granularity's default.
std::string recompute_words(const RecomputeSpec& recompute) {
  const bool full = recompute.granularity == Recompute::kFull;
  std::string words = "recompute";
  if (full || recompute.modules == kCoreAttentionOnly) {
    words += ' ' + std::string(kRecomputeNames[static_cast<std::size_t>(recompute.granularity)]);
    const bool block = full && recompute.method == RecomputeMethod::kBlock;
    if (block) words += " block";
    if (block || (full && recompute.layers > 1)) words += ' ' + std::to_string(recompute.layers);
    return words;
  }
  char between = ' ';
  for (std::size_t i = 0; i < kRecomputeModuleNames.size(); ++i) {
    if (!recompute.modules.has(static_cast<RecomputeModule>(i))) continue;
    words += std::exchange(between, '+') + std::string(kRecomputeModuleNames[i]);
  }
  return words;
}

// "tp 8 · sp · cp 2 · ep 8 · pp 8 · dp 16 · mb 2 · 1f1b · zero 1 · recompute full": of the optional degrees,
// those above 1.
std::string headline(const Scenario& scenario, const ParallelPlan& plan) {
  std::string line = "tp " + std::to_string(plan.tensor);
  const auto add = [&](const char* name, std::int64_t value) {
    line += std::string(" · ") + name + ' ' + std::to_string(value);
  };
  if (scenario.parallelism.sequence_parallel && plan.tensor > 1) line += " · sp";
  if (plan.context > 1) add("cp", plan.context);
  if (plan.expert > 1) add("ep", plan.expert);
  if (plan.expert_tensor > 1) add("etp", plan.expert_tensor);
  add("pp", plan.pipeline);
  add("dp", plan.data);
  if (scenario.training.micro_batch_size > 1) add("mb", scenario.training.micro_batch_size);
  line += " · " + scenario.schedule.name;
  if (plan.virtual_stages > 1) line += " x" + std::to_string(plan.virtual_stages);
  if (scenario.parallelism.zero_stage > 0) {
    add("zero", scenario.parallelism.zero_stage);
    if (plan.shard_group < plan.replicas()) line += " over " + std::to_string(plan.shard_group);
  }
  if (scenario.training.recompute.granularity != Recompute::kNone)
    line += " · " + recompute_words(scenario.training.recompute);
  return line;
}

// Layers that full recompute repeats.
LayerCounts recomputed_layers(const TransformerSpec& model, const RecomputeSpec& recompute,
                              const ParallelPlan& plan) {
  LayerCounts counts{.predictions = recompute.repeats_mtp() ? model.mtp_layers : 0};
  for (const StageContent& content : plan.stages) counts.layers += content.recomputed;
  return counts;
}

// Flash attention recomputes its scores inside its kernel: there is a core to repeat only where the software
// runs the kernel again.
RecomputeModules repeated_modules(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  const bool without_core = training.attention == Attention::kFlash && !scenario.options.rules.repeats_flash;
  return without_core ? training.recompute.modules - kCoreAttentionOnly : training.recompute.modules;
}

void fill_work(const Scenario& scenario, const ParallelPlan& plan, Report& report) {
  const TrainingSpec& training = scenario.training;
  report.samples = training.global_batch_size;
  report.tokens = training.global_batch_size * training.sequence_length;
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr) return;
  report.model_flops = model_flops(*model, training.global_batch_size, training.sequence_length);
  report.hardware_flops =
      hardware_flops(*model, training.global_batch_size, training.sequence_length,
                     {.granularity = training.recompute.granularity,
                      .modules = repeated_modules(scenario),
                      .flash_core = training.attention == Attention::kFlash,
                      .stops_early = scenario.options.rules.stops_early(training.recompute),
                      .layers = recomputed_layers(*model, training.recompute, plan)});
  report.peak = mean_peak(scenario);
}

// Is the key written, or for a mapping anything below it?
bool is_given(const Scenario& scenario, std::string_view path) {
  const auto at = scenario.origins.lower_bound(std::string(path));
  return at != scenario.origins.end() &&
         (at->first == path || at->first.starts_with(std::string(path) + "."));
}

// Defaults that affect the result and were not given.
std::vector<std::string> assumed_defaults(const Scenario& scenario, const ParallelPlan& plan) {
  if (!scenario.profile || !scenario.cluster) return {};
  const auto yes_no = [](bool flag) { return std::string(flag ? "true" : "false"); };
  const TrainingSpec& training = scenario.training;
  const ParallelSpec& parallel = scenario.parallelism;
  std::vector<std::pair<std::string, std::string>> values = {
      {"profile", scenario.profile->name},
      {"cluster.fabric", scenario.cluster->fabric.name},
      {"parallelism.data", std::to_string(plan.data)},
      {"parallelism.zero_stage", std::to_string(parallel.zero_stage)},
      {"parallelism.sequence_parallel", yes_no(parallel.sequence_parallel)},
      {"schedule", scenario.schedule.name},
      {"training.micro_batch_size", std::to_string(training.micro_batch_size)},
      {"training.precision", std::string(kPrecisionNames[static_cast<std::size_t>(training.precision)])},
      {"training.gradient_dtype", std::string(kPrecisionNames[static_cast<std::size_t>(training.gradient)])},
      {"training.recompute",
       std::string(kRecomputeNames[static_cast<std::size_t>(training.recompute.granularity)])},
      {"training.attention", std::string(kAttentionNames[static_cast<std::size_t>(training.attention)])},
      {"overlap.gradients", yes_no(scenario.overlap.gradients)},
      {"overlap.pipeline", yes_no(scenario.overlap.pipeline)},
      {"options.software", scenario.options.software},
      {"options.cuda_graphs",
       std::string(kCudaGraphsNames[static_cast<std::size_t>(scenario.options.cuda_graphs)])},
      {"options.fused_kernels", yes_no(scenario.options.fused_kernels)}};
  if (training.sequence_length > 0)  // 0: the model has no tokens
    values.emplace_back("training.sequence_length", std::to_string(training.sequence_length));
  if (const auto* model = std::get_if<TransformerSpec>(&scenario.model); model && model->experts)
    values.emplace_back("options.expert_dispatcher",
                        kExpertDispatcherNames[static_cast<std::size_t>(scenario.options.expert_dispatcher)]);
  std::vector<std::string> assumed;
  for (const auto& [path, value] : values)
    if (!is_given(scenario, path)) assumed.push_back(path + ": " + value);
  for (const std::string& line : scenario.model_assumptions) assumed.push_back("model: " + line);
  return assumed;
}

// Figures: calibrate/validation/megatron_moe_long_h100.yaml, the same jobs with balanced and with free routing.
std::optional<std::string> word_on_even_routing(const Scenario& scenario) {
  constexpr std::string_view kPath = "model.experts.imbalance";
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  const bool free = model != nullptr && model->experts && !model->experts->levels();
  if (!free || scenario.parallelism.expert == 1 || model->experts->imbalance > 1) return std::nullopt;
  if (is_given(scenario, kPath)) return std::nullopt;
  return fmt::format(
      "{}: routing is taken as even; in published jobs whose router chose freely the busiest rank had 1.2 to "
      "1.5 times its share, and an iteration took 9 to 24 % longer",
      kPath);
}

// Not where they are part of one kernel (options.fused_experts). Figures: calibrate/validation/megatron_bridge_gpt_oss_*.yaml,
// 18 jobs in bf16.
std::optional<std::string> word_on_biased_experts(const Scenario& scenario) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr || !model->experts || !model->biases) return std::nullopt;
  const OptionsSpec& options = scenario.options;
  if (options.fuses_experts(scenario.training.precision)) return std::nullopt;
  return "model.biases: biases of experts are kernels of PyTorch, expert by expert; published jobs of "
         "gpt-oss in "
         "bf16 took 3 to 34 % longer than is said here";
}

// A fabric that a scenario writes out is ideal but for what it says (FabricSpec). Figures: the six jobs of
// SC'21 with `{kind: fat-tree}` in place of hdr-fat-tree.
std::optional<std::string> word_on_ideal_fabric(const Scenario& scenario) {
  const bool written = is_given(scenario, "cluster.fabric.kind");
  if (!written || scenario.cluster->server_count() == 1) return std::nullopt;
  if (is_given(scenario, "cluster.fabric.collective_efficiency")) return std::nullopt;
  return "cluster.fabric: collectives between nodes are taken to reach the full rate of the NICs, as "
         "collective_efficiency is not given; the fabrics of scenarios/fabrics/ have 0.42 to 0.85, and "
         "published jobs on A100 come out 1 to 13 % too fast without";
}

// Where no software is named the ZeRO stage chooses it, so stages differ in more than what they shard.
std::optional<std::string> word_on_sharded_software(const Scenario& scenario) {
  if (!scenario.profile || zero_stage_in_effect(scenario) < 2 || names_software(scenario))
    return std::nullopt;
  const std::string &runs = scenario.options.software, &below = scenario.profile->software.replicated;
  if (runs == below) return std::nullopt;
  const bool whole = scenario.parallelism.pipeline > 1 && keeps_gradients_whole(scenario);
  return fmt::format(
      "options.software: none is named, so zero_stage {} runs {}, where less than 2 would run {}{}; name one "
      "to compare stages",
      scenario.parallelism.zero_stage, runs, below,
      whole ? ", and keeps the gradients and gathered weights of a pipeline until its step" : "");
}

}  // namespace

FlopRate mean_peak(const Scenario& scenario) {
  const Precision precision = scenario.training.precision;
  if (scenario.group_profiles.empty()) return scenario.profile->peak(precision);
  double sum = 0, gpus = 0;
  for (std::size_t i = 0; i < scenario.group_profiles.size(); ++i) {
    const NodeGroup& group = scenario.cluster->groups[i];
    const double count = static_cast<double>(group.count) * group.node.gpus;
    sum += count * scenario.group_profiles[i].peak(precision).count();
    gpus += count;
  }
  return FlopRate(sum / gpus);
}

Report make_report(const Scenario& scenario, const Simulation& simulation, std::span<const int> weights,
                   MemoryLedger memory) {
  Report report;
  report.scenario = scenario.source;
  report.name = scenario.name;
  report.headline = headline(scenario, simulation.prepared.plan);
  report.gpus = simulation.prepared.plan.gpus();
  fill_work(scenario, simulation.prepared.plan, report);
  const Window window = iteration_window(simulation.program, simulation.timeline);
  const bool alone = scenario.schedule.iterations == 1;
  report.iteration_time = window.length();
  report.bubble = alone ? measure_bubble(simulation.program, simulation.timeline, weights)
                        : measure_steady_bubble(simulation.program, simulation.timeline, window);
  report.breakdown = alone ? measure_breakdown(simulation.program, simulation.timeline)
                           : measure_steady_breakdown(simulation.program, simulation.timeline, window);
  report.critical_path = alone ? measure_critical_path(simulation.program, simulation.timeline)
                               : measure_steady_path(simulation.program, simulation.timeline, window);
  report.memory = std::move(memory);
  if (alone || !simulation.prepared.schedule.flush)
    time_peaks(report.memory, simulation.program, simulation.timeline);
  report.network = simulation.network;
  report.offload = simulation.prices.offload;
  report.provenance = provenance_shares(scenario, simulation.prices, simulation.prepared);
  report.shapes = priced_shapes(scenario, simulation.prepared.plan);
  report.interval_90 = interval(scenario, report);
  report.tasks = static_cast<std::int64_t>(simulation.program.task_count());
  report.simulated_ranks = simulation.program.rank_count();
  report.warnings = one_lines(scenario.warnings);
  if (scenario.failures) report.warnings.emplace_back(kFailuresLeftOut);
  if (auto word = word_on_uneven_groups(scenario, simulation.prepared.plan))
    report.warnings.push_back(std::move(*word));
  if (auto word = word_on_idle_uplinks(scenario, simulation.prepared.plan, simulation.prices))
    report.warnings.push_back(std::move(*word));
  for (auto* const word_on :
       {word_on_even_routing, word_on_biased_experts, word_on_ideal_fabric, word_on_sharded_software})
    if (auto word = word_on(scenario)) report.warnings.push_back(std::move(*word));
  const bool ends = !simulation.timeline.stall;  // until a stall, little time goes with the work of all
  if (ends && (report.mfu() > 1 || report.hfu() > 1))
    report.warnings.emplace_back(
        "MFU and HFU count every score of attention, as papers do, and kernels skip those that the causal "
        "mask hides: over long sequences shares of the peak above 100 % are no mistake of the times");
  report.assumptions = assumed_defaults(scenario, simulation.prepared.plan);
  if (scenario.profile) report.profile = dated_name(*scenario.profile);
  for (const HardwareProfile& profile : scenario.group_profiles)
    if (profile.name != scenario.profile->name) report.profile += ", " + dated_name(profile);
  report.software = scenario.options.software;
  report.software_is_assumed = scenario.profile && scenario.cluster && !names_software(scenario);
  report.graphs_may_help = scenario.options.launches_operators();
  StableHash digest;
  digest.add(hash(simulation.timeline));
  report.timeline_hash = digest.hex();
  return report;
}

}  // namespace stagecraft
