#include "sim/study/reasons.hpp"

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/check.hpp"
#include "base/text.hpp"

namespace stagecraft {
namespace {

// What a metric of `assert:` is in a report: for comparing, in its base unit, and for reading.
struct Metric {
  double value = 0;
  std::string text;
};

Metric metric_of(const Report& report, const std::string& metric) {
  const auto plain = [](double value) { return Metric{value, fmt::format("{:.4g}", value)}; };
  const Bytes peak = report.memory.heaviest().peak();
  if (metric == "iteration_time") return {to_seconds(report.iteration_time), human(report.iteration_time)};
  if (metric == "peak_memory") return {static_cast<double>(peak.count()), human(peak)};
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

}  // namespace

std::vector<Diagnostic> missed_assertions(const Scenario& scenario, const Report& report) {
  std::vector<Diagnostic> missed;
  for (const Assertion& assertion : scenario.assertions) {
    const Metric metric = metric_of(report, assertion.metric);
    if (holds(metric.value, assertion)) continue;
    missed.push_back({.code = "assertion-missed",
                      .where = assertion.where,
                      .path = "assert." + assertion.metric,
                      .message = fmt::format("{} is not {}", metric.text, assertion.text)});
  }
  return missed;
}

std::vector<Diagnostic> reasons_against(const Scenario& scenario, const Report& report, bool must_fit) {
  std::vector<Diagnostic> reasons = missed_assertions(scenario, report);
  if (must_fit && report.memory.verdict() == Verdict::kOutOfMemory)
    reasons.insert(reasons.begin(),
                   {.code = "out-of-memory", .path = "memory", .message = report.memory.shortage()});
  if (!report.finishes()) {
    reasons.push_back(never_ends({}));
    reasons.back().hint.clear();  // said by `run` itself
  }
  return reasons;
}

Diagnostic never_ends(const std::string& file) {
  return {.code = "never-ends",
          .where = {.file = file},
          .path = "faults",
          .message = "the iteration does not finish: a node died in it",
          .hint = "`run` shows who waits for whom"};
}

void write_reasons(JsonWriter& json, std::span<const Diagnostic> reasons) {
  json.key("reasons").begin_array();
  for (const Diagnostic& reason : reasons) {
    if (reason.severity != Severity::kError) continue;
    json.begin_object()
        .field("code", std::string_view(reason.code))
        .field("path", std::string_view(reason.path));
    json.field("message", std::string_view(reason.message))
        .field("hint", std::string_view(reason.hint))
        .end_object();
  }
  json.end_array();
}

}  // namespace stagecraft
