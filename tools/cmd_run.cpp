#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <ostream>
#include <string>

#include "base/check.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "sim/simulate.hpp"
#include "tools/commands.hpp"
#include "tools/require_fit.hpp"
#include "tools/scenarios.hpp"

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

bool assertions_hold(const Scenario& scenario, const Report& report, Session& session) {
  bool all = true;
  for (const Assertion& assertion : scenario.assertions) {
    const Metric metric = metric_of(report, assertion.metric);
    if (holds(metric.value, assertion)) continue;
    all = false;
    session.err << render({.code = "assertion-missed",
                           .where = assertion.where,
                           .path = "assert." + assertion.metric,
                           .message = fmt::format("{} is not {}", metric.text, assertion.text)})
                << '\n';
  }
  return all;
}

}  // namespace

int run_command(const Arguments& arguments, Session& session) {
  return for_each_scenario(arguments, session, [&](const Scenario& scenario) {
    Report report = simulate(scenario, {.unfold = arguments.has("unfold")});
    if (arguments.has("json")) {
      session.out << render_json(report) << '\n';
    } else {
      if (arguments.has("quiet")) report.warnings.clear();
      session.out << render_text(report, arguments.has("verbose"));
    }
    const bool yes = assertions_hold(scenario, report, session);
    const bool fit = !arguments.has("require-fit") || fits(report.memory, session);
    return yes && fit ? kDone : kAnswerIsNo;
  });
}

int check_command(const Arguments& arguments, Session& session) {
  return for_each_scenario(arguments, session, [&](const Scenario& scenario) {
    Diagnostics diagnostics;
    const std::optional<Prepared> prepared = prepare(scenario, diagnostics);
    diagnostics.throw_if_errors();
    const ParallelPlan& plan = prepared->plan;
    if (arguments.has("json")) {
      JsonWriter json;
      json.begin_object()
          .field("schema", "stagecraft.check/1")
          .field("scenario", std::string_view(scenario.source));
      json.field("ok", true)
          .field("gpus", plan.gpus())
          .field("tensor", plan.tensor)
          .field("pipeline", plan.pipeline)
          .field("context", plan.context)
          .field("expert", plan.expert)
          .field("expert_tensor", plan.expert_tensor);
      json.field("data", plan.data).field("micro_batches", plan.micro_batches).end_object();
      session.out << json.str() << '\n';
    } else {
      const std::string context = plan.context > 1 ? fmt::format(" x context {}", plan.context) : "";
      const std::string expert = plan.expert > 1 ? fmt::format(", expert {}", plan.expert) : "";
      session.out << fmt::format(
          "{}: ok: {} GPUs, tensor {}{} x pipeline {} x data {}{}, {} micro-batches, {}\n", scenario.source,
          plan.gpus(), plan.tensor, context, plan.pipeline, plan.data, expert, plan.micro_batches,
          scenario.schedule.name);
    }
    return kDone;
  });
}

}  // namespace stagecraft
