#include "sim/study/reasons.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"

namespace stagecraft {
namespace {

constexpr const char* kNeverEnds = "never-ends";
constexpr const char* kNodeDied = "the iteration does not finish: a node died in it";

std::optional<double> read_seconds(std::string_view text) {
  const std::optional<Duration> time = parse_duration(text);
  return time ? std::optional(to_seconds(*time)) : std::nullopt;
}

std::optional<double> read_bytes(std::string_view text) {
  const std::optional<Bytes> bytes = parse_bytes(text);
  return bytes ? std::optional(static_cast<double>(bytes->count())) : std::nullopt;
}

// A metric of `assert:` in a report: its value in the base unit, its text, and the parser of such a text.
struct Metric {
  double value = 0;
  std::string text;
  std::optional<double> (*read)(std::string_view) = parse_number;
};

Metric metric_of(const Report& report, const std::string& metric) {
  const auto plain = [](double value) {
    return Metric{value, value < 1e4 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value)};
  };
  const Bytes peak = report.memory.heaviest().peak();
  if (metric == "iteration_time")
    return {to_seconds(report.iteration_time), human(report.iteration_time), read_seconds};
  if (metric == "peak_memory") return {static_cast<double>(peak.count()), human(peak), read_bytes};
  const std::map<std::string, double> values = {{"samples_per_s", report.samples_per_s()},
                                                {"tokens_per_s", report.tokens_per_s()},
                                                {"tokens_per_s_per_gpu", report.tokens_per_s() / report.gpus},
                                                {"mfu", report.mfu()},
                                                {"hfu", report.hfu()},
                                                {"bubble_over_ideal", report.bubble.over_ideal},
                                                {"bubble_fraction", report.bubble.fraction}};
  const auto known = values.find(metric);
  SC_CHECK(known != values.end(), "the loader accepts only metrics that exist");
  return plain(known->second);
}

bool holds(double value, const Assertion& assertion) {
  if (assertion.relation == "<") return value < assertion.limit;
  if (assertion.relation == "<=") return value <= assertion.limit;
  if (assertion.relation == ">") return value > assertion.limit;
  if (assertion.relation == ">=") return value >= assertion.limit;
  return value == assertion.limit;
}

// "17.004 s" has 3 decimals and the unit " s".
struct WrittenNumber {
  int decimals = 0;
  std::string unit;
};

WrittenNumber written(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t end = std::min(text.find_first_not_of("0123456789.eE+-_"), text.size());
  const std::string_view number = text.substr(0, end);
  const std::size_t dot = std::min(number.find('.'), number.size());
  const std::size_t behind = std::min(dot + 1, number.size());
  const std::size_t stop = std::min(number.find_first_not_of(kDigits, behind), number.size());
  const std::size_t first = std::min(text.find_first_not_of(' ', end), text.size());
  std::string unit(text.substr(first));
  if (!unit.empty()) unit.insert(0, " ");
  return {.decimals = static_cast<int>(stop - behind), .unit = std::move(unit)};
}

WrittenNumber limit_of(const Assertion& assertion) {
  const std::string_view rest = std::string_view(assertion.text).substr(assertion.relation.size());
  return written(rest.substr(std::min(rest.find_first_not_of(' '), rest.size())));
}

// Text of a missed metric with enough digits to show that it misses, and at least those of the limit; in the
// limit's unit unless another fits the value far better.
std::string told_against(const Metric& metric, const Assertion& assertion) {
  const auto misses = [&](const std::string& text) {
    const std::optional<double> said = metric.read(text);
    return said && !holds(*said, assertion);
  };
  const WrittenNumber limit = limit_of(assertion), usual = written(metric.text);
  const double unit = metric.read("1" + limit.unit).value_or(1);  // a limit of 0 needs none
  const double value = metric.value / unit;
  const bool far = value < 0.1 || value >= 1e4;
  const bool alike = usual.unit == limit.unit && usual.decimals >= limit.decimals;
  if ((far || alike) && misses(metric.text)) return metric.text;
  constexpr int kMostDecimals = 17;  // as many as a double has
  const int usual_decimals = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
  for (int decimals = std::max(limit.decimals, usual_decimals); decimals <= kMostDecimals; ++decimals) {
    std::string text = fmt::format("{:.{}f}{}", value, decimals, limit.unit);
    if (misses(text)) return text;
  }
  return metric.text;
}

}  // namespace

std::vector<Diagnostic> missed_assertions(const Scenario& scenario, const Report& report) {
  std::vector<Diagnostic> missed;
  for (const Assertion& assertion : scenario.assertions) {
    const Metric metric = metric_of(report, assertion.metric);
    if (holds(metric.value, assertion)) continue;
    missed.push_back(
        {.code = "assertion-missed",
         .where = assertion.where,
         .path = "assert." + assertion.metric,
         .message = fmt::format("{} is not {}", told_against(metric, assertion), assertion.text)});
  }
  return missed;
}

double missed_by(const Scenario& scenario, const Report& report) {
  for (const Assertion& assertion : scenario.assertions) {
    const double value = metric_of(report, assertion.metric).value;
    if (holds(value, assertion)) continue;
    const double distance = std::abs(value - assertion.limit);
    return assertion.limit == 0 ? distance : distance / std::abs(assertion.limit);
  }
  return 0;
}

std::vector<Diagnostic> reasons_against(const Scenario& scenario, const Report& report, bool must_fit) {
  std::vector<Diagnostic> reasons = missed_assertions(scenario, report);
  if (must_fit && report.memory.verdict() == Verdict::kOutOfMemory)
    reasons.insert(reasons.begin(),
                   {.code = "out-of-memory", .path = "memory", .message = report.memory.shortage()});
  if (!report.finishes()) reasons.push_back({.code = kNeverEnds, .path = "faults", .message = kNodeDied});
  return reasons;
}

std::optional<Diagnostic> shapes_without_data(const Scenario& scenario, const Report& report) {
  std::size_t without = 0;
  double share = 0;
  for (const ShapeReport& shape : report.shapes) {
    if (shape.provenance != Provenance::kAnalytic && shape.provenance != Provenance::kAssumed) continue;
    ++without;
    share += shape.share;
  }
  if (without == 0) return std::nullopt;
  return Diagnostic{
      .code = "no-data",
      .where = place_of(scenario, "profile"),
      .path = "profile",
      .message = fmt::format("no rows near {} of {} shapes of GEMMs and attention, {} of their time", without,
                             report.shapes.size(), percent(share)),
      .hint = "--verbose lists them, `stagecraft calibrate plan` what to measure"};
}

Diagnostic never_ends(const Scenario& scenario) {
  return {.code = kNeverEnds,
          .where = place_of(scenario, "faults"),
          .path = "faults",
          .message = kNodeDied,
          .hint = "`run` shows who waits for whom"};
}

void write_reasons(JsonWriter& json, std::span<const Diagnostic> reasons) {
  json.key("reasons").begin_array();
  for (const Diagnostic& reason : reasons) {
    if (reason.severity != Severity::kError) continue;
    json.begin_object().field("code", reason.code).field("path", reason.path);
    json.field("message", reason.message).field("hint", reason.hint).end_object();
  }
  json.end_array();
}

}  // namespace stagecraft
