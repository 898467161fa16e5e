#include <fmt/format.h>

#include <ostream>
#include <string>

#include "base/json.hpp"
#include "sim/simulate.hpp"
#include "tools/assertions.hpp"
#include "tools/commands.hpp"
#include "tools/require_fit.hpp"
#include "tools/scenarios.hpp"
#include "tools/view_files.hpp"

namespace stagecraft {

int run_command(const Arguments& arguments, Session& session) {
  const bool views = wants_views(arguments);
  return for_each_scenario(arguments, session, [&](const Scenario& scenario) {
    Simulation simulation = simulate_in_full(scenario, {.unfold = arguments.has("unfold")});
    if (views) write_views(arguments, scenario, simulation);
    Report& report = simulation.report;
    if (arguments.has("json")) {
      session.out << render_json(report) << '\n';
    } else {
      if (arguments.has("quiet")) report.warnings.clear();
      session.out << render_text(report, arguments.has("verbose"));
    }
    const bool yes = assertions_hold(scenario, report, session.err);
    const bool fit = !arguments.has("require-fit") || fits(scenario, report.memory, session);
    return yes && fit && report.finishes() ? kDone : kAnswerIsNo;
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
