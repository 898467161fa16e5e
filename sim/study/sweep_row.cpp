#include "sim/study/sweep_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/yaml_json.hpp"
#include "sim/make_report.hpp"
#include "sim/resilience/predict_goodput.hpp"
#include "sim/scenario/load_software.hpp"
#include "sim/simulate.hpp"
#include "sim/study/reasons.hpp"
#include "sim/study/sweep_mistakes.hpp"

namespace stagecraft {
namespace {

void add(StableHash& hash, const YamlNode& node) {
  hash.add(static_cast<int>(node.kind)).add(static_cast<int>(node.quoted)).add(std::string_view(node.text));
  hash.add(node.items.size());
  for (const YamlNode& item : node.items) add(hash, item);
  hash.add(node.entries.size());
  for (const YamlEntry& entry : node.entries) {
    hash.add(std::string_view(entry.key));
    add(hash, entry.value);
  }
}

// Adds the files that the points read: those of points that together resolve with every varied value, and all
// presets of software, which follow from several values at once where none is named.
void add_files(StableHash& hash, const SweepSpec& spec, const SweepPoints& points, Library& library) {
  std::set<std::uint64_t> resolved;  // values
  for (std::size_t point = 0; point < points.size(); ++point) {
    const std::vector<Assignment> assignments = points.assignments(point);
    std::set<std::uint64_t> values;
    for (const Assignment& assignment : assignments) {
      StableHash value;
      add(value.add(std::string_view(assignment.path)), assignment.value);
      if (!resolved.contains(value.value())) values.insert(value.value());
    }
    if (values.empty()) continue;
    Diagnostics mistakes;  // the row says them
    library.forget_asked();
    if (load_scenario(spec.base, assignments, library, mistakes)) resolved.merge(values);
    hash.add(std::string_view(library.contents()));
  }
  const std::string folder(kSoftwarePreset.folder);
  library.forget_asked();
  Diagnostics mistakes;
  for (const std::string& name : library.data().names(folder))
    (void)library.tree(library.data().root / folder / (name + ".yaml"), mistakes);
  hash.add(std::string_view(library.contents()));
}

// The hash of all rows: together with a row's number it identifies the row.
std::string hash_of_rows(const SweepSpec& spec, const SweepPoints& points, const RowOptions& options,
                         Library& library) {
  StableHash hash;
  hash.add(options.seed).add(static_cast<int>(options.detail));
  add(hash, spec.base.root);
  for (const std::string& path : spec.paths()) hash.add(std::string_view(path));
  for (std::size_t point = 0; point < points.size(); ++point)
    for (const Assignment& assignment : points.assignments(point)) add(hash, assignment.value);
  add_files(hash, spec, points, library);
  return hash.hex();
}

// Keys of an object that others end or open: `{"a":1}` without its brackets.
std::string inside(const JsonWriter& json) {
  const std::string& text = json.str();
  return text.substr(1, text.size() - 2);
}

// Those at what varies first, whatever the files are called; of one file they stay in their order.
std::vector<Diagnostic> by_file_of(const SweepSpec& spec, std::vector<Diagnostic> reasons) {
  std::ranges::stable_sort(reasons, {}, [&](const Diagnostic& reason) {
    return reason.where.file == spec.source ? 0 : reason.where.file == spec.base.source ? 1 : 2;
  });
  return reasons;
}

std::string refusal(const std::vector<Diagnostic>& reasons) {
  JsonWriter json;
  json.begin_object().field("feasible", false);
  write_reasons(json, reasons);
  json.end_object();
  return inside(json);
}

std::string failure(const char* code, const char* what) {
  return refusal({{.code = code, .message = what, .hint = "this is a bug of ours: please report it"}});
}

}  // namespace

std::optional<Sweep> prepare_sweep(const std::filesystem::path& file, std::span<const std::string> overrides,
                                   const RowOptions& options, Library& library, Diagnostics& diagnostics) {
  std::optional<SweepSpec> spec = load_sweep(file, overrides, library, diagnostics, options.seed);
  if (!spec) return std::nullopt;
  report_shared_mistakes(*spec, library, diagnostics);
  std::optional<SweepPoints> points = SweepPoints::of(*spec, library, diagnostics);
  if (!points) return std::nullopt;
  std::string hash = hash_of_rows(*spec, *points, options, library);
  return Sweep{
      .spec = *std::move(spec), .points = *std::move(points), .options = options, .hash = std::move(hash)};
}

std::string row_head(const Sweep& sweep, std::size_t point) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.sweep/1").field("sweep", sweep.hash);
  json.field("point", point).field("points", sweep.points.size()).key("vary").begin_object();
  for (const Assignment& assignment : sweep.points.assignments(point))
    write_json(json.key(assignment.path), assignment.value);
  json.end_object().end_object();
  return "{" + inside(json);
}

std::optional<Scenario> PointRunner::load(std::size_t point, Diagnostics& diagnostics) {
  library_.forget_asked();
  return load_scenario(sweep_.spec.base, sweep_.points.assignments(point), library_, diagnostics);
}

std::string PointRunner::hash_of(const Scenario& loaded) const {
  StableHash hash;
  hash.add(std::string_view(to_yaml(loaded))).add(std::string_view(library_.contents()));
  for (const Diagnostic& warning : loaded.warnings)  // they are in the result, and depend on what was written
    hash.add(std::string_view(warning.path)).add(std::string_view(warning.message));
  return hash.hex();
}

std::optional<std::string> PointRunner::hash(std::size_t point) {
  Diagnostics diagnostics;
  const std::optional<Scenario> scenario = load(point, diagnostics);
  return scenario ? std::optional(hash_of(*scenario)) : std::nullopt;
}

// All points have the seed of the sweep: policies are compared on the same failures, and a row is what
// `goodput` says of its point.
GoodputReport PointRunner::goodput(const Scenario& scenario) const {
  return predict_goodput(scenario, {.seed = sweep_.options.seed});
}

std::string PointRunner::payload(const Scenario& scenario) const {
  try {
    Report report = simulate(scenario);
    std::erase(report.warnings, kFailuresLeftOut);  // the row has their goodput
    JsonWriter json;
    const std::vector<Diagnostic> reasons = reasons_against(scenario, report, true);
    json.begin_object().field("feasible", reasons.empty());
    write_reasons(json, reasons);
    write_result(json, report, sweep_.options.detail);
    json.end_object();
    std::string keys = inside(json);
    if (scenario.failures) keys += ",\"goodput\":" + render_json(goodput(scenario), {.inputs = false});
    return keys;
  } catch (const ScenarioError& error) {
    return refusal(by_file_of(sweep_.spec, error.diagnostics()));
  } catch (const std::exception& error) {
    return failure("internal", error.what());
  }
}

std::string PointRunner::row(std::size_t point) {
  const std::string head = row_head(sweep_, point);
  try {
    Diagnostics diagnostics;
    const std::optional<Scenario> scenario = load(point, diagnostics);
    if (!scenario)
      return fmt::format("{},\"hash\":null,{}}}", head,
                         refusal(by_file_of(sweep_.spec, diagnostics.sorted())));
    if (warnings_ != nullptr) warnings_->add(diagnostics);
    const std::string own = hash_of(*scenario);
    const std::string result = cache_.get(own, [&] { return payload(*scenario); });
    return fmt::format("{},\"hash\":\"{}\",{}}}", head, own, result);
  } catch (const std::exception& error) {
    return fmt::format("{},\"hash\":null,{}}}", head, failure("internal", error.what()));
  }
}

}  // namespace stagecraft
