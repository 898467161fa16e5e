#include "tools/validation/score.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "calibrate/samples/statistics.hpp"
#include "sim/accuracy/compute_split.hpp"
#include "sim/op_families.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {
namespace {

// Why a row is skipped: "parallelism.tensor: 6 does not divide …", of the first error.
std::string refusal_of(const Diagnostics& diagnostics) {
  const std::vector<Diagnostic> sorted = diagnostics.sorted();
  const Diagnostic* error = first_error(sorted);
  return error == nullptr ? "refused" : one_line(*error);
}

// Seconds per iteration as measured; throughput is inverted.
std::optional<double> measured_seconds(const PublishedRow& row, const Report& report) {
  if (row.iteration_seconds) return row.iteration_seconds;
  if (!row.tokens_per_s_per_gpu) return std::nullopt;
  return static_cast<double>(report.tokens) / (*row.tokens_per_s_per_gpu * report.gpus);
}

bool splits_backward(const Scenario& scenario) {
  const ScheduleKind* kind = find_schedule(scenario.schedule.name);
  return kind != nullptr && kind->split_backward;
}

ScoredRow scored(const PublishedRow& row, const Scenario& scenario, const Simulation& simulation,
                 double measured) {
  const Report& report = simulation.report;
  const ParallelPlan& plan = simulation.prepared.plan;
  ScoredRow out;
  out.id = row.id;
  out.model = row.model;
  out.gpus = report.gpus;
  out.keys = row.keys;
  out.peers = row.peers;
  out.predicted = to_seconds(report.iteration_time);
  out.measured = measured;
  out.interval = {to_seconds(report.interval_90[0]), to_seconds(report.interval_90[1])};
  out.shares = family_shares(report.breakdown);
  out.ran = what_ran(scenario);
  out.tokens = static_cast<double>(report.tokens);
  out.null = {.flops = report.hardware_flops.count() / report.gpus,
              .bubble = null_bubble(plan.pipeline, plan.micro_batches, plan.virtual_stages,
                                    splits_backward(scenario)),
              .measured = measured};
  return out;
}

// Compute by kernels; the other families as they are.
std::vector<double> causes_of(const FamilyShares& shares, const KernelShares& kernels) {
  std::vector<double> out;
  for (const double kernel : kernels) out.push_back(kernel * shares[0]);
  out.insert(out.end(), shares.begin() + 1, shares.end());
  return out;
}

// The keys that a comparison may differ in; all others are equal.
struct RatioKind {
  std::string_view name;
  std::vector<std::string_view> keys;
};

const std::vector<RatioKind>& ratio_kinds() {
  static const std::vector<RatioKind> kinds = {{"schedule", {"schedule", "virtual_stages"}},
                                               {"recompute", {"recompute", "sequence_parallel"}}};
  return kinds;
}

std::string all_but(const ScoredRow& row, const RatioKind& kind) {
  std::string text;
  for (const auto& [key, value] : row.keys)
    if (std::ranges::find(kind.keys, key) == kind.keys.end()) text += key + "=" + value + ";";
  return text;
}

void add_ratios(const std::vector<ScoredRow>& rows, const RatioKind& kind, std::vector<RatioScore>& out) {
  std::map<std::string, const ScoredRow*> firsts;
  for (const ScoredRow& row : rows) {
    const ScoredRow* first = firsts.try_emplace(all_but(row, kind), &row).first->second;
    const auto leading = [&](const ScoredRow& of) { return of.keys.find(std::string(kind.keys.front())); };
    const bool differs = first != &row && leading(row) != row.keys.end() &&
                         leading(*first) != first->keys.end() &&
                         leading(row)->second != leading(*first)->second;
    if (!differs) continue;
    out.push_back({.kind = kind.name,
                   .first = first->id,
                   .second = row.id,
                   .predicted = row.predicted / first->predicted,
                   .measured = row.measured / first->measured});
  }
}

}  // namespace

std::vector<double> SetScore::errors() const {
  std::vector<double> out;
  for (const ScoredRow& row : rows) out.push_back(row.error());
  return out;
}

std::vector<RankCorrelation> SetScore::ranks(bool by_gpus) const {
  std::map<std::pair<std::string, int>, std::vector<const ScoredRow*>> groups;
  for (const ScoredRow& row : rows) groups[{row.model, by_gpus ? row.gpus : 0}].push_back(&row);
  std::vector<RankCorrelation> out;
  for (const auto& [key, members] : groups) {
    std::vector<double> predicted, measured;
    for (const ScoredRow* row : members) {
      predicted.push_back(row->gpu_seconds_per_token(row->predicted));
      measured.push_back(row->gpu_seconds_per_token(row->measured));
    }
    if (const auto correlation = rank_correlation(predicted, measured))
      out.push_back(
          {.model = key.first, .gpus = key.second, .rows = members.size(), .correlation = *correlation});
  }
  return out;
}

std::vector<RatioScore> SetScore::ratios() const {
  std::vector<RatioScore> out;
  for (const RatioKind& kind : ratio_kinds()) add_ratios(rows, kind, out);
  return out;
}

NullModel SetScore::null_model(bool with_bubble) const {
  std::vector<NullRow> null_rows;
  for (const ScoredRow& row : rows) null_rows.push_back(row.null);
  return fit_null_model(null_rows, with_bubble);
}

std::vector<PeerScore> SetScore::peers() const {
  std::map<std::string, std::vector<double>> errors;
  for (const ScoredRow& row : rows)
    for (const auto& [tool, seconds] : row.peers) errors[tool].push_back(seconds / row.measured - 1);
  std::vector<PeerScore> out;
  for (const auto& [tool, of_tool] : errors) {
    const ErrorSummary summary = summarise(of_tool);
    out.push_back({.tool = tool,
                   .rows = summary.rows,
                   .mean_absolute = summary.mean_absolute,
                   .remark = "the seconds that the rows print"});
  }
  return out;
}

double SetScore::coverage() const {
  const auto inside = std::ranges::count_if(rows, &ScoredRow::covered);
  return rows.empty() ? 0 : static_cast<double>(inside) / static_cast<double>(rows.size());
}

double SetScore::median_width() const {
  std::vector<double> widths;
  for (const ScoredRow& row : rows) widths.push_back(row.relative_width());
  return widths.empty() ? 0 : median(widths);
}

std::optional<double> mean_rank(const std::vector<RankCorrelation>& groups) {
  double sum = 0, weight = 0;
  for (const RankCorrelation& group : groups) {
    sum += group.correlation * static_cast<double>(group.rows);
    weight += static_cast<double>(group.rows);
  }
  if (weight == 0) return std::nullopt;
  return sum / weight;
}

std::vector<LoadedRow> load_rows(const PublishedSet& set, Library& library,
                                 const std::vector<std::string>& overrides) {
  std::vector<LoadedRow> loaded;
  for (const PublishedRow& row : set.rows) {
    LoadedRow& out = loaded.emplace_back(LoadedRow{.row = &row, .scenario = {}, .refused = row.skip});
    if (!row.skip.empty()) continue;
    Diagnostics diagnostics;
    ScenarioTree tree{.root = row.scenario, .source = row.id, .folder = set.folder};
    for (const std::string& change : overrides) apply_override(tree.root, change, diagnostics);
    out.scenario = read_scenario(tree, library, diagnostics);
    const auto prepared = out.scenario ? prepare(*out.scenario, diagnostics) : std::nullopt;
    if (!prepared) {
      out.refused = refusal_of(diagnostics);
    } else if (row.gpus && *row.gpus != prepared->plan.gpus()) {
      out.refused =
          fmt::format("{} GPUs were measured, its scenario has {}: does `gpus_per_node` fit its node?",
                      *row.gpus, prepared->plan.gpus());
    }
    if (!out.refused.empty()) out.scenario.reset();
  }
  return loaded;
}

SetScore score_set(const PublishedSet& set, const std::vector<LoadedRow>& rows, const ScoreOptions& options) {
  SetScore score{.name = set.name,
                 .title = set.title,
                 .origin = set.origin,
                 .licence = set.licence,
                 .assumed = set.assumed,
                 .known = set.known,
                 .profile = {},
                 .rows = {},
                 .skipped = {}};
  for (const LoadedRow& loaded : rows) {
    if (!loaded.scenario) {
      score.skipped.push_back({loaded.row->id, loaded.refused});
      continue;
    }
    Scenario scenario = *loaded.scenario;
    if (options.change) options.change(scenario);
    const Simulation simulation = simulate_in_full(scenario);
    const auto measured = measured_seconds(*loaded.row, simulation.report);
    if (!measured) {
      score.skipped.push_back({loaded.row->id, "no time was measured"});
      continue;
    }
    if (scenario.profile) {
      score.profile = scenario.profile->name;
      score.profile_hashes.push_back(scenario.profile->hash);
    }
    score.rows.push_back(scored(*loaded.row, scenario, simulation, *measured));
    if (options.causes)
      score.rows.back().causes =
          causes_of(score.rows.back().shares, split_compute(scenario, simulation.prepared.plan));
  }
  return score;
}

std::vector<std::string_view> cause_names() {
  std::vector<std::string_view> names(kKernelFamilyNames.begin(), kKernelFamilyNames.end());
  names.insert(names.end(), kOpFamilyNames.begin() + 1, kOpFamilyNames.end());
  return names;
}

Attribution attribute_errors(const SetScore& score) {
  std::vector<AttributionRow> rows;
  for (const ScoredRow& row : score.rows)
    rows.push_back({.shares = row.causes, .excess = row.measured / row.predicted - 1});
  return attribute_errors(rows);
}

std::vector<ResidualRow> residual_rows(const SetScore& score, int source) {
  std::vector<ResidualRow> rows;
  for (const ScoredRow& row : score.rows)
    rows.push_back({.shares = row.shares,
                    .log_error = std::log(row.measured / row.predicted),
                    .source = source,
                    .ran = row.ran});
  return rows;
}

}  // namespace stagecraft
