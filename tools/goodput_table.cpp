#include "tools/goodput_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "tools/wrapped_text.hpp"

namespace stagecraft {
namespace {

// What a variant is called beside the number that varies: its values, its policy where nothing else varies.
std::string line_name(const GoodputComparison& comparison, std::size_t variant,
                      std::optional<std::size_t> axis) {
  const GoodputReport& report = *comparison.outcomes[variant].report;
  std::vector<std::string> words;
  const bool files =
      std::any_of(comparison.variants.begin(), comparison.variants.end(),
                  [&](const Variant& v) { return v.file != comparison.variants.front().file; });
  if (files) words.push_back(report.name);
  for (std::size_t i = 0; i < comparison.paths.size(); ++i) {
    if (i == axis) continue;
    // A mapping is too long for a name.
    const bool policy = comparison.paths[i] == "failures.policy";
    words.push_back(policy ? report.policy : comparison.variants[variant].values[i]);
  }
  return words.empty() ? report.policy : join(words, ", ");
}

// Policies that put all nodes to work have a larger one than those that keep the job's shape.
struct Ideals {
  double least = 0, most = 0;  // samples/s
};
Ideals ideals_of(const GoodputComparison& comparison) {
  std::vector<double> ideals;
  for (const GoodputOutcome& outcome : comparison.outcomes)
    if (outcome.report) ideals.push_back(outcome.report->ideal_samples_per_s);
  if (ideals.empty()) return {};
  const auto [least, most] = std::minmax_element(ideals.begin(), ideals.end());
  return {.least = *least, .most = *most};
}

// The column and the chart may rank policies oppositely: each row is over its own ideal, the chart over one.
std::string word_on_ideals(const GoodputComparison& comparison) {
  const Ideals ideals = ideals_of(comparison);
  const std::string least = fmt::format("{:.4g}", ideals.least), most = fmt::format("{:.4g}", ideals.most);
  if (least == most) return "";
  std::string text =
      fmt::format("of ideal: of the row's own, {} to {} samples/s without failures", least, most);
  if (number_axis(comparison)) text += "; the chart takes the largest for all";
  return wrapped_text("", "  ", text);
}

GoodputChartOptions chart_options(const GoodputComparison& comparison, std::size_t axis) {
  GoodputChartOptions options;
  const std::string& path = comparison.paths[axis];
  options.rate_name = path.ends_with("rate_per_node_day") ? "failures per node-day" : path;
  options.ideal_samples_per_s = ideals_of(comparison).most;
  for (const GoodputOutcome& outcome : comparison.outcomes)
    if (outcome.report && options.title.empty()) options.title = outcome.report->name;
  return options;
}

// A mapping is too long for a cell: the policy's name stands for it.
std::string cell_of(const GoodputComparison& comparison, std::size_t variant, std::size_t path) {
  const bool policy = comparison.paths[path] == "failures.policy";
  return policy ? comparison.outcomes[variant].report->policy : comparison.variants[variant].values[path];
}

std::string table_of(const GoodputComparison& comparison) {
  std::vector<Align> columns(comparison.paths.size(), Align::kLeft);
  columns.insert(columns.end(), 5, Align::kRight);
  TextTable table(columns);
  std::vector<std::string> head;
  for (const std::string& path : comparison.paths) head.push_back(path.substr(path.rfind('.') + 1));
  head.insert(head.end(), {"samples/s", "95 %", "of ideal", "ETTR", "failures"});
  table.row(head);
  for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
    if (!comparison.outcomes[i].report) continue;
    const GoodputReport& report = *comparison.outcomes[i].report;
    std::vector<std::string> row;
    for (std::size_t path = 0; path < comparison.paths.size(); ++path)
      row.push_back(cell_of(comparison, i, path));
    const MeanInterval& rate = report.samples_per_s;
    row.insert(row.end(),
               {fmt::format("{:.4g}", rate.mean), fmt::format("± {:.2g}", rate.ci95[1] - rate.mean),
                percent(report.fraction_of_ideal.mean, 2), percent(report.ettr.mean, 2),
                fmt::format("{:.3g}", report.failures)});
    table.row(row);
  }
  return table.str();
}

// Variants that cannot run, with their reasons.
std::string refusals_of(const GoodputComparison& comparison) {
  std::string out;
  for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
    if (comparison.outcomes[i].report) continue;
    out += fmt::format("cannot run: {} {}\n", comparison.variants[i].file,
                       join(comparison.variants[i].overrides, " "));
    for (const Diagnostic& diagnostic : comparison.outcomes[i].diagnostics)
      if (diagnostic.severity == Severity::kError) out += "  " + render(diagnostic) + "\n";
  }
  return out;
}

std::string crossings_text(const std::vector<GoodputRow>& rows) {
  std::string out;
  for (const GoodputCrossing& crossing : crossings_of(rows))
    out +=
        fmt::format("{} falls behind {} at {:.3g} ({:.4g} samples/s){}\n", crossing.before, crossing.after,
                    crossing.rate, crossing.samples_per_s, crossing.leads ? ", which leads from there" : "");
  return out;
}

}  // namespace

std::optional<std::size_t> number_axis(const GoodputComparison& comparison) {
  for (std::size_t i = 0; i < comparison.paths.size(); ++i) {
    std::vector<double> values;
    for (const Variant& variant : comparison.variants)
      if (const std::optional<double> value = parse_number(variant.values[i])) values.push_back(*value);
    const bool varies = std::any_of(values.begin(), values.end(), [&](double v) { return v != values[0]; });
    if (values.size() == comparison.variants.size() && varies) return i;
  }
  return std::nullopt;
}

std::vector<GoodputRow> rows_of(const GoodputComparison& comparison, std::size_t axis) {
  std::vector<GoodputRow> rows;
  for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
    if (!comparison.outcomes[i].report) continue;
    rows.push_back({.rate = parse_number(comparison.variants[i].values[axis]).value_or(0),
                    .policy = line_name(comparison, i, axis),
                    .samples_per_s = comparison.outcomes[i].report->samples_per_s.mean});
  }
  return rows;
}

std::string render_text(const GoodputComparison& comparison) {
  std::string out = table_of(comparison) + word_on_ideals(comparison);
  if (const std::optional<std::size_t> axis = number_axis(comparison)) {
    const std::vector<GoodputRow> rows = rows_of(comparison, *axis);
    out += "\n" + chart_text(rows, chart_options(comparison, *axis));
    const std::string crossings = crossings_text(rows);
    if (!crossings.empty()) out += "\n" + crossings;
  }
  const std::string refusals = refusals_of(comparison);
  return refusals.empty() ? out : out + "\n" + refusals;
}

std::string render_svg(const GoodputComparison& comparison) {
  const std::optional<std::size_t> axis = number_axis(comparison);
  return axis ? chart_svg(rows_of(comparison, *axis), chart_options(comparison, *axis)) : "";
}

}  // namespace stagecraft
