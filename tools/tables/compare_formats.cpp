#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/wrapped_text.hpp"
#include "base/yaml_json.hpp"
#include "sim/study/reasons.hpp"
#include "sim/study/row_columns.hpp"
#include "tools/command_line/document_origin.hpp"
#include "tools/tables/compare_table.hpp"

namespace stagecraft {
namespace {

std::string lines(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += wrapped_text("", "  ", text);
  return out;
}

// Missed assertions are marked in the table, and are diagnostics. Without the first variant the table has no
// relative times.
std::vector<std::string> cannot_run(const Comparison& comparison) {
  const std::vector<std::string> reasons = reasons_of(comparison);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < reasons.size(); ++i)
    if (!comparison.outcomes[i].report) out.push_back(reasons[i]);
  const auto ran = [](const Outcome& outcome) { return outcome.report.has_value(); };
  if (!ran(comparison.outcomes.front()) && std::ranges::any_of(comparison.outcomes, ran))
    out.push_back("times are relative to the first variant, which cannot run: name another one first");
  return out;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += " " + markdown_cell(cell) + " |";
  return out + "\n";
}

std::string csv_row(const std::vector<std::string>& cells) {
  std::vector<std::string> quoted;
  for (const std::string& cell : cells) quoted.push_back(csv_quoted(cell));
  return join(quoted, ",") + "\n";
}

std::string_view compared_name(const Comparison& comparison) {
  return kComparedTimeNames[static_cast<std::size_t>(comparison.compared())];
}

// The number as JSON writes it.
template <class T>
std::string number(T value) {
  return JsonWriter().value(value).str();
}

std::vector<std::string> csv_header(const Comparison& comparison) {
  std::vector<std::string> header = {"scenario"};
  header.insert(header.end(), comparison.paths.begin(), comparison.paths.end());
  for (const char* name : {"reason", "iteration_time_s", "relative_time", "relative_per", "tokens_per_s",
                           "mfu", "bubble.over_ideal", "memory.peak_bytes", "memory.verdict"})
    header.emplace_back(name);
  for (const std::string_view part : kCategoryNames) header.push_back(fmt::format("breakdown_s.{}", part));
  for (const std::string_view part : kCategoryNames) header.push_back(fmt::format("{}_moved_s", part));
  header.insert(header.end(), {"gpus", "tokens_per_s_per_gpu"});
  return header;
}

void add_figures(const Comparison& comparison, std::size_t variant, std::vector<std::string>& row) {
  const Report& report = *comparison.outcomes[variant].report;
  const std::optional<double> relative = comparison.relative_time(variant);
  row.push_back(number(report.iteration_time));
  row.push_back(relative ? number(*relative) : "");
  row.emplace_back(compared_name(comparison));
  row.push_back(number(report.tokens_per_s()));
  row.push_back(number(report.mfu()));
  row.push_back(number(report.bubble.over_ideal));
  row.push_back(number(report.memory.heaviest().peak()));
  row.emplace_back(name_of(report.memory.verdict()));
  for (const Duration part : report.breakdown) row.push_back(number(part));
  const std::optional<Report>& first = comparison.outcomes.front().report;
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    row.push_back(first ? number(to_seconds(report.breakdown[c] - first->breakdown[c])) : "");
  row.push_back(number(report.gpus));
  row.push_back(number(report.tokens_per_s() / report.gpus));
}

void write_moved(JsonWriter& json, const Report& first, const Report& here) {
  const Duration whole = here.iteration_time - first.iteration_time;
  json.field("difference_s", whole).key("moved").begin_array();
  for (const MovedPart& part : moved_parts(first, here)) {
    json.begin_object().field("part", kCategoryNames[static_cast<std::size_t>(part.part)]);
    json.field("first_s", part.first).field("here_s", part.here).field("difference_s", part.difference());
    json.key("share");
    if (whole != Duration::zero())
      json.value(static_cast<double>(part.difference().count()) / static_cast<double>(whole.count()));
    else
      json.null();
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string render_text(const Comparison& comparison) {
  const VariantCells cells = cells_of(comparison);
  TextTable table(cells.aligns);
  for (const std::vector<std::string>& row : cells.rows) table.row(row);
  return table.str() + lines(cannot_run(comparison)) + lines(best_of(comparison)) +
         lines(explanations(comparison));
}

std::string render_markdown(const Comparison& comparison) {
  const VariantCells cells = cells_of(comparison);
  std::string out = markdown_row(cells.rows.front()) + "|";
  for (const Align align : cells.aligns) out += align == Align::kRight ? " ---: |" : " --- |";
  out += "\n";
  for (std::size_t i = 1; i < cells.rows.size(); ++i) out += markdown_row(cells.rows[i]);
  for (const auto& texts : {cannot_run(comparison), best_of(comparison), explanations(comparison)}) {
    if (!texts.empty()) out += "\n";
    for (const std::string& text : texts) out += "- " + text + "\n";
  }
  return out;
}

std::string render_csv(const Comparison& comparison) {
  const std::vector<std::string> header = csv_header(comparison);
  std::string out = csv_row(header);
  const std::vector<std::string> reasons = reasons_of(comparison);
  for (std::size_t i = 0; i < comparison.outcomes.size(); ++i) {
    std::vector<std::string> row = {comparison.variants[i].file};
    row.insert(row.end(), comparison.variants[i].values.begin(), comparison.variants[i].values.end());
    row.push_back(reasons[i]);
    if (comparison.outcomes[i].report) add_figures(comparison, i, row);
    row.resize(header.size());
    out += csv_row(row);
  }
  return out;
}

std::string render_json(const Comparison& comparison, std::size_t variant) {
  const Outcome& outcome = comparison.outcomes.at(variant);
  const std::optional<Report>& first = comparison.outcomes.front().report;
  JsonWriter json;
  json.begin_object();
  if (!outcome.report) json.field("scenario", comparison.variants.at(variant).file);
  if (!outcome.missed.empty()) write_reasons(json, outcome.missed);
  json.key("vary").begin_object();
  for (std::size_t i = 0; i < comparison.paths.size(); ++i)
    write_json_of_yaml(json.key(comparison.paths[i]), comparison.variants.at(variant).values.at(i));
  json.end_object().field("relative_time", comparison.relative_time(variant));
  json.field("relative_per", compared_name(comparison));
  if (first && outcome.report)
    write_moved(json, *first, *outcome.report);
  else
    json.key("difference_s").null().key("moved").null();
  json.end_object();
  // The document of `run`, or of its errors, with these keys behind its own.
  std::string document = outcome.report ? with_origin(render_json(*outcome.report), *outcome.scenario)
                                        : render_json(outcome.diagnostics);
  return with_keys(std::move(document), json.str());
}

}  // namespace stagecraft
