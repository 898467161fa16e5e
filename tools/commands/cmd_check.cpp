#include <fmt/format.h>

#include <optional>
#include <ostream>
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sim/simulate.hpp"
#include "tools/command_line/document_origin.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"

namespace stagecraft {
namespace {

std::string json_of(const Scenario& scenario, const ParallelPlan& plan) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.check/1").field("scenario", scenario.source);
  json.field("ok", true)
      .field("gpus", plan.gpus())
      .field("tensor", plan.tensor)
      .field("pipeline", plan.pipeline)
      .field("context", plan.context)
      .field("expert", plan.expert)
      .field("expert_tensor", plan.expert_tensor)
      .field("data", plan.data)
      .field("micro_batches", plan.micro_batches);
  json.field("warnings", one_lines(scenario.warnings)).end_object();
  return with_origin(json.str(), scenario);
}

std::string text_of(const Scenario& scenario, const ParallelPlan& plan) {
  const std::string context = plan.context > 1 ? fmt::format(" x context {}", plan.context) : "";
  const std::string expert = plan.expert > 1 ? fmt::format(", expert {}", plan.expert) : "";
  return fmt::format("{}: ok: {}, tensor {}{} x pipeline {} x data {}{}, {}, {}", scenario.source,
                     counted(plan.gpus(), "GPU"), plan.tensor, context, plan.pipeline, plan.data, expert,
                     counted(plan.micro_batches, "micro-batch"), scenario.schedule.name);
}

}  // namespace

int check_command(const Arguments& arguments, Session& session) {
  return for_each_scenario(arguments, session, [&](const Scenario& scenario, Session& own) {
    Diagnostics diagnostics;
    const std::optional<Prepared> prepared = prepare(scenario, diagnostics);
    diagnostics.throw_if_errors();
    const bool json = arguments.has("json");
    own.out << (json ? json_of(scenario, prepared->plan) : text_of(scenario, prepared->plan)) << '\n';
    if (!json) print_warnings(scenario.warnings, arguments, own);
    return kDone;
  });
}

}  // namespace stagecraft
