#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "models/fujii_memory.hpp"
#include "sim/explain/memory_what_ifs.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/simulate.hpp"
#include "tools/command_line/document_origin.hpp"
#include "tools/command_line/require_fit.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"

namespace stagecraft {
namespace {

// The estimate for the scenario as it is placed; nullopt where the formulas do not describe the model.
std::optional<FujiiEstimate> estimate_of(const Scenario& scenario, const ParallelPlan& plan) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr) return std::nullopt;
  return fujii_estimate(*model, {.tensor = plan.tensor,
                                 .pipeline = plan.pipeline,
                                 .context = plan.context,
                                 .data = plan.data,
                                 .sequence = scenario.training.sequence_length,
                                 .micro_batch = scenario.training.micro_batch_size,
                                 .distributed_optimizer = scenario.parallelism.zero_stage >= 1});
}

struct Answer {
  Report report;
  std::optional<FujiiEstimate> estimate;
  bool estimate_applies = false;  // its formulas read all that moves memory here
  bool without_faults = false;    // with them the iteration does not finish
  std::vector<WhatIf> what_ifs;
};

std::string estimate_line(const FujiiEstimate& estimate, Bytes capacity) {
  return fmt::format("Fujii et al.: {} (states {}, activations {}): {}\n", human(estimate.total()),
                     human(estimate.state), human(estimate.activations),
                     name_of(verdict_of(estimate.total(), capacity)));
}

std::string what_if_table(const Answer& answer) {
  if (answer.what_ifs.empty()) return "";
  const double now = to_seconds(answer.report.iteration_time);
  const bool on_hosts =
      std::ranges::any_of(answer.what_ifs, [](const WhatIf& what_if) { return what_if.on_host > Bytes(0); });
  std::vector<Align> aligns = {Align::kLeft, Align::kRight, Align::kLeft, Align::kRight, Align::kRight};
  std::vector<std::string> head = {"what if", "peak", "verdict", "iteration", "change"};
  if (on_hosts) aligns.insert(aligns.begin() + 2, Align::kRight), head.insert(head.begin() + 2, "host");
  TextTable table(std::move(aligns));
  table.row(std::move(head));
  for (const WhatIf& what_if : answer.what_ifs) {
    const double change = now > 0 ? to_seconds(what_if.iteration_time) / now - 1 : 0;
    std::vector<std::string> row = {join(what_if.change, " "), human(what_if.peak),
                                    std::string(name_of(what_if.verdict)), human(what_if.iteration_time),
                                    fmt::format("{:+.1f} %", change * 100)};
    if (on_hosts) row.insert(row.begin() + 2, human(what_if.on_host));
    table.row(std::move(row));
  }
  return "\n" + table.str(2);
}

bool needs_another_plan(const Answer& answer) {
  const auto fits = [](const WhatIf& what_if) { return what_if.verdict != Verdict::kOutOfMemory; };
  return answer.report.memory.verdict() == Verdict::kOutOfMemory && !answer.what_ifs.empty() &&
         std::ranges::none_of(answer.what_ifs, fits);
}

void print_text(const Answer& answer, Session& session) {
  const MemoryLedger& memory = answer.report.memory;
  session.out << render_memory_text(answer.report);
  if (answer.estimate && answer.estimate_applies &&
      verdict_of(answer.estimate->total(), memory.capacity) != memory.verdict())
    session.out << "second opinion, " << estimate_line(*answer.estimate, memory.capacity);
  session.out << what_if_table(answer);
  if (needs_another_plan(answer))
    session.out << fmt::format("none of these changes fits; `stagecraft search {}` looks for plans that do\n",
                               answer.report.scenario);
}

void write_estimate(JsonWriter& json, const FujiiEstimate& estimate, Bytes capacity) {
  json.begin_object()
      .field("parameters", estimate.parameters)
      .field("state_bytes", estimate.state)
      .field("activations_bytes", estimate.activations)
      .field("total_bytes", estimate.total())
      .field("verdict", name_of(verdict_of(estimate.total(), capacity)))
      .end_object();
}

void print_json(const Answer& answer, const Scenario& scenario, Session& session) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.memory/1").field("scenario", answer.report.scenario);
  json.key("memory");
  write_memory(json, answer.report.memory);
  json.field("iteration_time_s", answer.report.iteration_time);
  if (answer.estimate) {
    json.key("fujii");
    write_estimate(json, *answer.estimate, answer.report.memory.capacity);
  }
  json.key("what_ifs").begin_array();
  for (const WhatIf& what_if : answer.what_ifs) {
    json.begin_object().field("set", what_if.change).field("peak_bytes", what_if.peak);
    if (what_if.on_host > Bytes(0)) json.field("host_bytes", what_if.on_host);
    json.field("verdict", name_of(what_if.verdict))
        .field("iteration_time_s", what_if.iteration_time)
        .end_object();
  }
  std::vector<std::string> warnings = answer.report.warnings;
  if (answer.without_faults)
    warnings.emplace_back("faults: the iteration does not finish; these times are without them");
  json.end_array().field("warnings", warnings).end_object();
  session.out << with_origin(json.str(), scenario) << '\n';
}

// Keys of this scenario that affect memory but that the formulas ignore. The formulas assume 16-bit weights
// with fp32 gradients and moments, flash attention, 1F1B, sequence parallelism, states over all replicas, no
// recompute and no offload.
std::vector<std::string> keys_not_read(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  const OffloadSpec& offload = scenario.offload;
  const std::int64_t replicas = replicas_of(scenario);
  std::vector<std::string> keys;
  for (const auto& [key, moves] :
       {std::pair{"training.recompute", training.recompute.granularity != Recompute::kNone},
        {"training.precision", training.precision == Precision::kFp32},
        {"training.autocast", training.autocast},
        {"training.gradient_dtype", training.gradient != Precision::kFp32},
        {"training.moment_dtype", training.moment != Precision::kFp32},
        {"training.master_weights", !training.master_weights},
        {"training.master_remainders", training.master_remainders && training.moment == Precision::kFp32},
        {"training.attention", training.attention == Attention::kUnfused},
        {"schedule", scenario.parallelism.pipeline > 1 && scenario.schedule.name != "1f1b"},
        {"parallelism.zero_stage beyond 1", scenario.parallelism.zero_stage > 1},
        {"parallelism.zero_group", scenario.parallelism.zero_stage > 0 && scenario.parallelism.zero_group &&
                                       *scenario.parallelism.zero_group < replicas},
        {"parallelism.sequence_parallel",
         scenario.parallelism.tensor > 1 && !scenario.parallelism.sequence_parallel},
        {"offload.optimizer", offload.optimizer > 0},
        {"offload.activations", offload.activations > 0},
        {"offload.weights", offload.weights > 0}})
    if (moves) keys.emplace_back(key);
  return keys;
}

// The formulas alone, with the 80 % rule that their authors found.
int print_fujii(const Scenario& scenario, const Arguments& arguments, Session& session) {
  const MemoryLedger ledger = memory_of(scenario);
  Diagnostics diagnostics;
  const std::optional<Prepared> prepared = prepare(scenario, diagnostics);
  const std::optional<FujiiEstimate> estimate = estimate_of(scenario, prepared->plan);
  if (!estimate) {
    diagnostics.error({.code = "not-described",
                       .where = place_of(scenario, "model"),
                       .path = "model",
                       .message = "the formulas of Fujii et al. are for dense models with SwiGLU",
                       .hint = "leave --model out: the ledger knows this model"});
    diagnostics.throw_if_errors();
  }
  const Verdict verdict = verdict_of(estimate->total(), ledger.capacity);
  const std::vector<std::string> not_read = keys_not_read(scenario);
  if (arguments.has("json")) {
    JsonWriter json;
    json.begin_object()
        .field("schema", "stagecraft.memory/1")
        .field("scenario", scenario.source)
        .field("model", "fujii")
        .key("fujii");
    write_estimate(json, *estimate, ledger.capacity);
    json.field("not_read", not_read).field("warnings", one_lines(scenario.warnings)).end_object();
    session.out << with_origin(json.str(), scenario) << '\n';
  } else {
    session.out << printable(scenario.name) << '\n' << estimate_line(*estimate, ledger.capacity);
    if (!not_read.empty()) session.out << "not read by these formulas: " << join(not_read, ", ") << '\n';
    print_warnings(scenario.warnings, arguments, session);
  }
  say_unchecked(ledger.capacity, arguments, session);
  return arguments.has("require-fit") && verdict == Verdict::kOutOfMemory ? kAnswerIsNo : kDone;
}

}  // namespace

int memory_command(const Arguments& arguments, Session& session) {
  return for_each_scenario(
      arguments, session, [&](const Scenario& scenario, const Reload& reload, Session& own) -> int {
        if (arguments.text("model") == "fujii") return print_fujii(scenario, arguments, own);
        Simulation simulation = simulate_in_full(scenario);
        const bool ends = simulation.report.finishes();
        const Scenario healthy = without_stop(scenario, simulation.report);
        if (!ends) simulation = simulate_in_full(healthy);
        Answer answer{.report = std::move(simulation.report),
                      .estimate = estimate_of(scenario, simulation.prepared.plan),
                      .estimate_applies = keys_not_read(scenario).empty(),
                      .without_faults = !ends,
                      .what_ifs = {}};
        const MemoryLedger& memory = answer.report.memory;
        answer.what_ifs = memory_what_ifs(healthy, answer.report, reload);
        if (arguments.has("json")) {
          print_json(answer, scenario, own);
        } else {
          print_text(answer, own);
          print_warnings(scenario.warnings, arguments, own);
        }
        if (!ends && !arguments.has("quiet"))
          own.err << "note: with `faults` the iteration does not finish; these times are without them\n";
        say_unchecked(memory.capacity, arguments, own);
        if (!arguments.has("require-fit") || memory.verdict() != Verdict::kOutOfMemory) return kDone;
        say_shortage(memory, answer.what_ifs, own);
        return kAnswerIsNo;
      });
}

}  // namespace stagecraft
