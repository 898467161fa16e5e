#include "sim/explain/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "sim/explain/explain_memory.hpp"
#include "sim/explain/explain_passes.hpp"
#include "sim/explain/inputs.hpp"
#include "sim/report/rank_passes.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {
namespace {

// Texts for figures without a formula, by the beginning of their paths.
struct Said {
  std::string_view prefix;
  OriginKind kind;
  std::string_view text;
};
constexpr std::array<Said, 17> kSaid = {
    {{"iteration_time_s", OriginKind::kSimulation, "between the ends of two simulated iterations"},
     {"bubble.makespan_s", OriginKind::kSimulation,
      "from 0 to the last end of a pass on any rank; of iterations in a row one of them, less its step"},
     {"bubble.span_s", OriginKind::kSimulation,
      "the longest that a rank takes from its first start to its last end"},
     {"bubble.ideal_s", OriginKind::kSimulation, "work of the busiest rank"},
     {"bubble.fraction", OriginKind::kSimulation,
      "1 - work of all ranks / (bubble.makespan_s * simulated ranks)"},
     {"bubble.over_ideal", OriginKind::kSimulation, "(bubble.makespan_s - bubble.ideal_s) / bubble.ideal_s"},
     {"breakdown_s", OriginKind::kSimulation, "in the iteration that is reported, of several in a row"},
     {"critical_path", OriginKind::kSimulation,
      "tasks from 0 to the last end, each starting when the one before ends, summed by name"},
     {"memory", OriginKind::kLedger, "the memory ledger; `stagecraft memory` shows it"},
     {"offload", OriginKind::kPrice, "what copies to and from host memory take, and would need"},
     {"network", OriginKind::kSimulation, "links that flows share, as they were used"},
     {"faults", OriginKind::kSimulation, "of the faults of the scenario"},
     {"provenance", OriginKind::kPrice,
      "share of all priced time of an iteration, over all ranks, by how it is known"},
     {"tasks", OriginKind::kSimulation, "tasks of the simulated program"},
     {"simulated_ranks", OriginKind::kSimulation, "ranks that are alike are simulated once"},
     {"samples_per_s", OriginKind::kSimulation, "training.global_batch_size / iteration_time_s"},
     {"", OriginKind::kSimulation, "of the simulated iteration"}}};

std::string part_path(Category category) {
  return fmt::format("breakdown_s.{}", kCategoryNames[static_cast<std::size_t>(category)]);
}

Explanation as_said(const std::string& path, const Amount& value) {
  const auto said =
      std::ranges::find_if(kSaid, [&](const Said& entry) { return path.starts_with(entry.prefix); });
  return leaf(path, value, {.kind = said->kind, .text = std::string(said->text)});
}

std::string_view spread_of(const Scenario& scenario, const HardwareProfile& profile) {
  if (!profile.residuals) return "its spread of prices, by how they are known";
  return names_software(scenario) ? "what its residuals leave open of families of operations, by their "
                                    "shares of the time, and of a run"
                                  : "what its residuals leave open of families of operations, by their "
                                    "shares of the time, of a run, and of software that is not named";
}

// Source of the spread of an iteration in make_report().
Origin interval_origin(const Scenario& scenario) {
  if (!scenario.profile)
    return {.kind = OriginKind::kSimulation,
            .text = "the iteration time: costs that are given have no spread"};
  const HardwareProfile& profile = *scenario.profile;
  return {.kind = OriginKind::kProfile,
          .text = fmt::format("{}: the iteration time divided and multiplied by e^(1.645 x {})",
                              dated_name(profile), spread_of(scenario, profile))};
}

// The peak of a GPU.
Explanation peak_of(const Scenario& scenario, const HardwareProfile& profile) {
  const auto precision = static_cast<std::size_t>(scenario.training.precision);
  return leaf(fmt::format("profile.device.peak_{}", kPrecisionNames[precision]),
              profile.peak(scenario.training.precision),
              profile_origin(profile, profile.device.provenance, profile.device.source));
}

// The mean over the GPUs of the cluster, from its parts where there are several devices.
Explanation mean_peak_of(const Scenario& scenario) {
  if (scenario.group_profiles.empty()) return peak_of(scenario, *scenario.profile);
  std::vector<Explanation> peaks, counts;
  for (std::size_t i = 0; i < scenario.group_profiles.size(); ++i) {
    const NodeGroup& group = scenario.cluster->groups[i];
    const std::string& node = group.node.name.empty() ? group.node.device : group.node.name;
    counts.push_back(leaf(fmt::format("GPUs of {}", node),
                          Amount::count(std::int64_t{group.count} * group.node.gpus),
                          {.kind = OriginKind::kCluster, .text = group.node.device}));
    peaks.push_back(formula(fmt::format("peaks of {}", node), Operation::kProduct,
                            {counts.back(), peak_of(scenario, scenario.group_profiles[i])}));
  }
  return formula("mean peak of the cluster's GPUs", Operation::kQuotient,
                 {formula("peaks of all GPUs", Operation::kSum, std::move(peaks)),
                  formula("GPUs of the cluster", Operation::kSum, std::move(counts))});
}

Explanation degree(const Scenario& scenario, const char* name, int value) {
  return key_input(scenario, fmt::format("parallelism.{}", name), Amount::count(value));
}

}  // namespace

Explainer::Explainer(const Scenario& scenario, const Simulation& simulation)
    : scenario_(scenario),
      simulation_(simulation),
      alone_(scenario.schedule.iterations == 1),
      pieces_(scenario, simulation.prepared.plan) {
  if (!alone_) return;
  sources_ = breakdown_sources(simulation.program, simulation.timeline);
  busiest_work_ = passes_by_rank(simulation.program, simulation.timeline)[sources_.rank].work;
  path_ = critical_path(simulation.program, simulation.timeline);
}

std::optional<Explanation> Explainer::passes(Category category) {
  return explain_passes(scenario_, simulation_, {.rank = sources_.rank, .category = category}, pieces_);
}

Explanation Explainer::gpus() const {
  const ParallelPlan& plan = simulation_.prepared.plan;
  return formula("gpus", Operation::kProduct,
                 {degree(scenario_, "tensor", plan.tensor), degree(scenario_, "context", plan.context),
                  degree(scenario_, "pipeline", plan.pipeline), degree(scenario_, "data", plan.data)});
}

Explanation Explainer::samples() const {
  return key_input(scenario_, "training.global_batch_size", Amount::count(simulation_.report.samples));
}

Explanation Explainer::tokens() const {
  return formula("tokens", Operation::kProduct,
                 {samples(), key_input(scenario_, "training.sequence_length",
                                       Amount::count(scenario_.training.sequence_length))});
}

Explanation Explainer::iteration_time() {
  std::vector<Explanation> parts;
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    if (simulation_.report.breakdown[c] != Duration::zero()) parts.push_back(part(Category(c)));
  if (parts.empty())
    return leaf("iteration_time_s", simulation_.report.iteration_time,
                {.kind = OriginKind::kSimulation, .text = "nothing takes time"});
  return formula("iteration_time_s", Operation::kSum, std::move(parts));
}

// Tasks of the critical path besides passes that spend time on it: "send forward x 7".
std::string Explainer::exposed_text(Category category) const {
  std::vector<std::pair<std::string, int>> names;
  const Program& program = simulation_.program;
  for (const TaskId task : path_) {
    const Label& label = program.labels[program.label[task]];
    const bool here = std::ranges::any_of(label.parts, [&](const TaskPart& task_part) {
      return task_part.category == static_cast<std::int32_t>(category);
    });
    if (is_pass(program, task) || !here) continue;
    auto known = std::ranges::find(names, label.name, &std::pair<std::string, int>::first);
    if (known == names.end()) known = names.insert(names.end(), {label.name, 0});
    ++known->second;
  }
  std::vector<std::string> words;
  for (const auto& [name, count] : names) words.push_back(fmt::format("{} x {}", name, count));
  return words.empty() ? "on the critical path" : "on the critical path: " + join(words, ", ");
}

Explanation Explainer::waited(Category category) const {
  return leaf(fmt::format("{} before the last pass ends", part_path(category)),
              sources_.waited[static_cast<std::size_t>(category)],
              {.kind = OriginKind::kSimulation, .text = exposed_text(category)});
}

// The rest until the last pass ends, without the work of the busiest rank and its exposed waits.
Explanation Explainer::bubble_left() const {
  std::vector<Explanation> inputs = {leaf("end of the last pass", sources_.last_pass_end,
                                          {.kind = OriginKind::kSimulation, .text = "of any rank"}),
                                     leaf(fmt::format("work of rank {}", sources_.rank), busiest_work_,
                                          {.kind = OriginKind::kSimulation, .text = "the busiest"})};
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    if (Category(c) != Category::kBubble && sources_.waited[c] != Duration::zero())
      inputs.push_back(waited(Category(c)));
  return formula("idle", Operation::kDifference, std::move(inputs));
}

Explanation Explainer::part(Category category) {
  const auto c = static_cast<std::size_t>(category);
  const std::string path = part_path(category);
  if (simulation_.report.breakdown[c] == Duration::zero())
    return leaf(path, simulation_.report.breakdown[c],
                {.kind = OriginKind::kSimulation, .text = "nothing of it"});
  std::vector<Explanation> inputs;
  if (alone_) {
    if (auto own = passes(category)) inputs.push_back(*std::move(own));
    if (sources_.waited[c] != Duration::zero())
      inputs.push_back(category == Category::kBubble ? bubble_left() : waited(category));
    if (sources_.after[c] != Duration::zero())
      inputs.push_back(leaf(path + " after the last pass", sources_.after[c],
                            {.kind = OriginKind::kSimulation, .text = exposed_text(category)}));
  }
  if (inputs.empty()) return as_said(path, simulation_.report.breakdown[c]);
  return formula(path, Operation::kSum, std::move(inputs));
}

Explanation Explainer::ideal() {
  std::vector<Explanation> inputs;
  Duration sum{};
  for (std::size_t c = 0; c < kCategoryCount && alone_; ++c) {
    auto own = passes(Category(c));
    if (!own) continue;
    own->name = fmt::format("{} of the passes of rank {}", kCategoryNames[c], sources_.rank);
    sum += own->value.time();
    inputs.push_back(*std::move(own));
  }
  if (inputs.empty() || sum != simulation_.report.bubble.ideal)
    return as_said("bubble.ideal_s", simulation_.report.bubble.ideal);
  return formula("bubble.ideal_s", Operation::kSum, std::move(inputs));
}

Explanation Explainer::over_ideal() {
  const Explanation work = ideal();
  return formula("bubble.over_ideal", Operation::kQuotient,
                 {formula("(bubble.makespan_s - bubble.ideal_s)", Operation::kDifference,
                          {as_said("bubble.makespan_s", simulation_.report.bubble.makespan), work}),
                  work});
}

Explanation Explainer::flop_rate(bool hardware) {
  const char* words = hardware ? "model FLOPs and what is recomputed"
                               : "3 x the forward of the model, attention counted dense";
  return formula(fmt::format("{} FLOP/s per GPU", hardware ? "hardware" : "model"), Operation::kQuotient,
                 {leaf(hardware ? "hardware FLOPs" : "model FLOPs",
                       hardware ? simulation_.report.hardware_flops : simulation_.report.model_flops,
                       {.kind = OriginKind::kModel, .text = words}),
                  iteration_time(), gpus()});
}

Explanation Explainer::utilization(bool hardware) {
  return formula(hardware ? "hfu" : "mfu", Operation::kQuotient,
                 {flop_rate(hardware), mean_peak_of(scenario_)});
}

std::optional<Explanation> Explainer::rate(const std::string& path) {
  const Report& report = simulation_.report;
  if (!report.finishes() || report.iteration_time <= Duration::zero()) return std::nullopt;
  if (path == "samples_per_s") return formula(path, Operation::kQuotient, {samples(), iteration_time()});
  if (path == "tokens_per_s") return formula(path, Operation::kQuotient, {tokens(), iteration_time()});
  if (path == "tokens_per_s_per_gpu")
    return formula(path, Operation::kQuotient, {*rate("tokens_per_s"), gpus()});
  if (report.peak <= FlopRate(0)) return std::nullopt;
  const bool hardware = path == "hfu" || path.starts_with("hardware");
  if (path == "mfu" || path == "hfu") return utilization(hardware);
  if (path == "model_tflops_per_gpu" || path == "hardware_tflops_per_gpu")
    return formula(path, Operation::kProduct,
                   {flop_rate(hardware), leaf("10^-12", Amount::tera(), {.kind = OriginKind::kConstant})});
  return std::nullopt;
}

std::optional<Explanation> Explainer::tree(const std::string& path) {
  if (path == "gpus") return gpus();
  if (path == "iteration_time_s" && simulation_.report.finishes()) return iteration_time();
  if (path == "bubble.ideal_s") return ideal();
  if (path == "bubble.over_ideal" && alone_ && simulation_.report.bubble.ideal > Duration::zero())
    return over_ideal();
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    if (path == part_path(Category(c))) return part(Category(c));
  if (path.starts_with("memory.")) return explain_memory(scenario_, simulation_, path);
  return rate(path);
}

Explanation Explainer::of(const Figure& figure) {
  std::optional<Explanation> found = tree(figure.path);
  if (!found && figure.path.starts_with("interval_90_s"))
    return leaf(figure.path, figure.value, interval_origin(scenario_));
  // A formula that does not give the figure is none.
  return found && found->value.value() == figure.value.value() ? *std::move(found)
                                                               : as_said(figure.path, figure.value);
}

}  // namespace stagecraft
