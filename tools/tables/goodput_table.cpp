#include "tools/tables/goodput_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/wrapped_text.hpp"
#include "base/yaml.hpp"
#include "base/yaml_json.hpp"
#include "sim/report/goodput_chart.hpp"

namespace stagecraft {
namespace {

// A value of failures.policy: a name, and as a mapping keys of its own.
struct PolicyValue {
  std::string name;
  std::map<std::string, std::string> keys = {};
};

std::string text_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kScalar) return node.text;
  JsonWriter json;
  write_json(json, node);
  return json.str();
}

PolicyValue policy_value(const std::string& text) {
  Diagnostics diagnostics;
  const std::optional<YamlNode> node = parse_yaml(text, "failures.policy", diagnostics);
  if (!node || node->kind != YamlNode::Kind::kMap) return {.name = text};
  PolicyValue value{.name = text};
  for (const YamlEntry& entry : node->entries)
    if (entry.key == "name")
      value.name = entry.value.text;
    else
      value.keys[entry.key] = text_of(entry.value);
  return value;
}

// Do policies of this one's name have another value of the key, or none?
bool tells_apart(const std::vector<PolicyValue>& values, const PolicyValue& one, const std::string& key) {
  return std::any_of(values.begin(), values.end(), [&](const PolicyValue& other) {
    const auto found = other.keys.find(key);
    return other.name == one.name && (found == other.keys.end() || found->second != one.keys.at(key));
  });
}

// Names of policies: a mapping is too long, so the policy's name stands for it, with the keys that
// distinguish equal names.
std::vector<std::string> policy_words(const std::vector<std::string>& texts) {
  std::vector<PolicyValue> values;
  for (const std::string& text : texts) values.push_back(policy_value(text));
  std::vector<std::string> words;
  for (const PolicyValue& value : values) {
    std::string& word = words.emplace_back(value.name);
    for (const auto& [key, text] : value.keys)
      if (tells_apart(values, value, key)) word += fmt::format(", {} {}", key, text);
  }
  return words;
}

// A name for each variant, where there are several files: the scenario's name, or the file where two share
// one.
std::vector<std::string> file_words(const GoodputComparison& comparison) {
  std::map<std::string, std::string> names;  // of files
  std::set<std::string> distinct;
  for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
    const std::optional<GoodputReport>& report = comparison.outcomes[i].report;
    std::string& name = names.try_emplace(comparison.variants[i].file).first->second;
    if (report && name.empty()) name = report->name;
  }
  if (names.size() < 2) return {};
  for (const auto& [file, name] : names) distinct.insert(name);
  std::vector<std::string> words;
  for (const Variant& variant : comparison.variants)
    words.push_back(distinct.size() == names.size() && !names.at(variant.file).empty()
                        ? names.at(variant.file)
                        : variant.file);
  return words;
}

struct Naming {
  std::string title;               // of a column
  std::vector<std::string> words;  // of each variant
};

// Varied properties, and the names of variants by them: files where there are several, then each path.
std::vector<Naming> namings_of(const GoodputComparison& comparison) {
  std::vector<Naming> namings = {{.title = "scenario", .words = file_words(comparison)}};
  for (std::size_t path = 0; path < comparison.paths.size(); ++path) {
    const std::string& name = comparison.paths[path];
    std::vector<std::string> values;
    for (const Variant& variant : comparison.variants) values.push_back(variant.values[path]);
    if (name == "failures.policy") values = policy_words(values);
    namings.push_back({.title = name.substr(name.rfind('.') + 1), .words = std::move(values)});
  }
  return namings;
}

// Of a variant, by all namings that name one.
std::string name_of(const std::vector<Naming>& namings, std::size_t variant) {
  std::vector<std::string> words;
  for (const Naming& naming : namings)
    if (!naming.words.empty()) words.push_back(naming.words[variant]);
  return join(words, ", ");
}

// The path whose values are all numbers, two at least; the first of several. What else varies names the
// lines.
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
  const std::string least = four_digits(ideals.least), most = four_digits(ideals.most);
  if (least == most) return "";
  std::string text =
      fmt::format("of ideal: of the row's own, {} to {} samples/s without failures", least, most);
  if (number_axis(comparison)) text += "; the chart takes the largest for all";
  return wrapped_text("", "  ", text);
}

// Policies whose lost nodes are replaced without end look better than those that have what is repaired.
std::string word_on_supplies(const GoodputComparison& comparison) {
  std::set<std::string> replacing, others;
  for (const GoodputOutcome& outcome : comparison.outcomes)
    if (outcome.report) (outcome.report->replaces ? replacing : others).insert(outcome.report->policy);
  for (const std::string& policy : replacing) others.erase(policy);
  if (replacing.empty() || others.empty()) return "";
  const auto listed = [](const std::set<std::string>& names) {
    return join(std::vector<std::string>(names.begin(), names.end()), ", ");
  };
  return wrapped_text(
      "", "  ",
      fmt::format("nodes: without end, a new one at once for each that is lost, under {}; only what is "
                  "repaired, beside spares, under {}. {{name: {}, lost: waited-for}} or lost: done-without "
                  "compares them on the same nodes",
                  listed(replacing), listed(others), *replacing.begin()));
}

// A row for each variant that ran, its line named by what varies beside the axis.
std::vector<GoodputRow> chart_rows(const GoodputComparison& comparison, std::size_t axis) {
  std::vector<Naming> namings = namings_of(comparison);
  namings[axis + 1].words.clear();
  std::vector<GoodputRow> rows;
  for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
    if (!comparison.outcomes[i].report) continue;
    const std::string name = name_of(namings, i);
    rows.push_back({.rate = parse_number(comparison.variants[i].values[axis]).value_or(0),
                    .policy = name.empty() ? comparison.outcomes[i].report->policy : name,
                    .samples_per_s = comparison.outcomes[i].report->samples_per_s.mean});
  }
  return rows;
}

GoodputChartOptions chart_options(const GoodputComparison& comparison, std::size_t axis) {
  GoodputChartOptions options;
  const std::string& path = comparison.paths[axis];
  options.rate_name = path.ends_with("rate_per_node_day") ? "failures per node-day" : path;
  options.ideal_samples_per_s = ideals_of(comparison).most;
  for (const GoodputOutcome& outcome : comparison.outcomes)
    if (outcome.report && options.title.empty()) options.title = printable(outcome.report->name);
  return options;
}

std::string table_of(const GoodputComparison& comparison) {
  std::vector<Naming> namings = namings_of(comparison);
  std::erase_if(namings, [](const Naming& naming) { return naming.words.empty(); });
  std::vector<Align> columns(namings.size(), Align::kLeft);
  columns.insert(columns.end(), 5, Align::kRight);
  TextTable table(columns);
  std::vector<std::string> head;
  for (const Naming& naming : namings) head.push_back(naming.title);
  head.insert(head.end(), {"samples/s", "95 %", "of ideal", "ETTR", "failures"});
  table.row(head);
  for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
    if (!comparison.outcomes[i].report) continue;
    const GoodputReport& report = *comparison.outcomes[i].report;
    std::vector<std::string> row;
    for (const Naming& naming : namings) row.push_back(naming.words[i]);
    const MeanInterval& rate = report.samples_per_s;
    row.insert(row.end(), {four_digits(rate.mean),
                           rate.ci95 ? fmt::format("± {:.2g}", (*rate.ci95)[1] - rate.mean) : "–",
                           percent(report.fraction_of_ideal.mean, 2), percent(report.ettr.mean, 2),
                           mean_count(report.failures)});
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
    out += fmt::format("{} falls behind {} at {:.3g} ({} samples/s){}\n", crossing.before, crossing.after,
                       crossing.rate, four_digits(crossing.samples_per_s),
                       crossing.leads ? ", which leads from there" : "");
  return out;
}

}  // namespace

std::vector<std::string> names_of(const GoodputComparison& comparison) {
  const std::vector<Naming> namings = namings_of(comparison);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < comparison.variants.size(); ++i) names.push_back(name_of(namings, i));
  return names;
}

std::string render_text(const GoodputComparison& comparison) {
  const std::string refusals = refusals_of(comparison);
  const auto ran = [](const GoodputOutcome& outcome) { return outcome.report.has_value(); };
  if (std::ranges::none_of(comparison.outcomes, ran)) return refusals;
  std::string out = table_of(comparison) + word_on_ideals(comparison) + word_on_supplies(comparison);
  if (const std::optional<std::size_t> axis = number_axis(comparison)) {
    const std::vector<GoodputRow> rows = chart_rows(comparison, *axis);
    out += "\n" + chart_text(rows, chart_options(comparison, *axis));
    const std::string crossings = crossings_text(rows);
    if (!crossings.empty()) out += "\n" + crossings;
  }
  return refusals.empty() ? out : out + "\n" + refusals;
}

std::string render_svg(const GoodputComparison& comparison) {
  const std::optional<std::size_t> axis = number_axis(comparison);
  return axis ? chart_svg(chart_rows(comparison, *axis), chart_options(comparison, *axis)) : "";
}

}  // namespace stagecraft
