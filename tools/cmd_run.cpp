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

// The largest part of a stage's memory and what makes it smaller.
struct LargestPart {
  std::string_view name;
  Bytes size;
  std::string_view remedy;
};

LargestPart largest_part(const StageMemory& stage) {
  constexpr std::string_view kShards = "more parallelism.tensor or parallelism.pipeline makes it smaller";
  const std::array<LargestPart, 6> parts = {
      {{"weights", stage.weights, kShards},
       {"gradients", stage.gradients, kShards},
       {"optimizer", stage.optimizer, "parallelism.zero_stage: 1 spreads it over the data ranks"},
       {"activations", stage.activations,
        "training.recompute: selective or full, or a smaller training.micro_batch_size"},
       {"buffers", stage.buffers, "a smaller training.micro_batch_size makes them smaller"},
       {"overhead", stage.overhead, "a GPU with more memory"}}};
  return *std::max_element(parts.begin(), parts.end(),
                           [](const auto& x, const auto& y) { return x.size < y.size; });
}

bool fits(const MemoryLedger& memory, Session& session) {
  if (memory.verdict() != Verdict::kOutOfMemory) return true;
  const StageMemory& stage = memory.heaviest();
  const LargestPart part = largest_part(stage);
  session.err << fmt::format("verdict: out-of-memory on stage {}: {} of {}, of which {} {}\n  hint: {}\n",
                             stage.stage, human(stage.peak()), human(memory.capacity), part.name,
                             human(part.size), part.remedy);
  return false;
}

Report ledger_report(const Scenario& scenario) {
  Report report;
  report.scenario = scenario.source;
  report.name = scenario.name;
  report.memory = memory_of(scenario);
  return report;
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

int memory_command(const Arguments& arguments, Session& session) {
  return for_each_scenario(arguments, session, [&](const Scenario& scenario) {
    const Report report = ledger_report(scenario);
    if (arguments.has("json")) {
      JsonWriter json;
      json.begin_object()
          .field("schema", "stagecraft.memory/1")
          .field("scenario", std::string_view(scenario.source));
      json.key("memory");
      write_memory(json, report.memory);
      json.end_object();
      session.out << json.str() << '\n';
    } else {
      session.out << render_memory_text(report);
    }
    return arguments.has("require-fit") && !fits(report.memory, session) ? kAnswerIsNo : kDone;
  });
}

}  // namespace stagecraft
