#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "base/wrapped_text.hpp"
#include "sim/explain/memory_what_ifs.hpp"
#include "sim/explain/why.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/simulate.hpp"
#include "sim/study/reasons.hpp"
#include "tools/command_line/document_origin.hpp"
#include "tools/command_line/require_fit.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/view_files.hpp"

namespace stagecraft {
namespace {

// Of a job that a dead node stops, changes are tried without faults.
std::vector<WhatIf> what_makes_room(const Scenario& scenario, const Report& report, const Reload& reload) {
  if (report.finishes()) return memory_what_ifs(scenario, report, reload);
  const Scenario healthy = without_stop(scenario, report);
  return memory_what_ifs(healthy, simulate(healthy), reload);
}

// `reasons`: why the answer is no.
std::string json_of(const Report& report, const std::optional<Why>& why,
                    const std::vector<Diagnostic>& reasons, const Scenario& scenario) {
  std::string document = with_origin(render_json(report), scenario);
  if (!why && reasons.empty()) return document;
  JsonWriter json;
  json.begin_object();
  if (!reasons.empty()) write_reasons(json, reasons);
  if (why) write(json.key("why"), *why);
  return with_keys(std::move(document), json.end_object().str());
}

// The text, aligned with the heads of the report's lines.
std::string text_of(const Why& why) {
  const std::string indent(17, ' ');
  std::string out;
  for (const std::string& sentence : why.sentences)
    out += wrapped_text(out.empty() ? "why              " : indent, indent, sentence);
  return out;
}

// Adds a note about the commands that make the job fit, by one change or by another plan; --require-fit has a
// hint of its own.
void say_what_makes_it_fit(const Scenario& scenario, Report& report) {
  if (report.memory.verdict() != Verdict::kOutOfMemory) return;
  if (!std::holds_alternative<TransformerSpec>(scenario.model)) return;
  report.warnings.push_back(fmt::format(
      "memory: `stagecraft memory {0}` prices changes that make room, `stagecraft search {0}` looks "
      "for plans that fit",
      scenario.source));
}

}  // namespace

int run_command(const Arguments& arguments, Session& session) {
  if (arguments.has("why") && std::ranges::find(arguments.words(), "-") != arguments.words().end())
    throw UsageError("standard input can be read only once, and --why tries changes of the scenario",
                     "write the path of a file");
  const bool views = wants_views(arguments);
  return for_each_scenario(
      arguments, session, [&](const Scenario& scenario, const Reload& reload, Session& own) {
        Simulation simulation = simulate_in_full(scenario, {.unfold = arguments.has("unfold")});
        Report& report = simulation.report;
        if (views) {
          if (auto word = word_on_iterations(simulation)) report.warnings.push_back(*std::move(word));
          write_views(arguments, scenario, simulation);
        }
        const bool asks_why = arguments.has("why") && report.finishes();
        const std::optional<Why> why =
            asks_why ? std::optional(explain_why(scenario, simulation, reload)) : std::nullopt;
        const bool must_fit = arguments.has("require-fit");
        std::vector<Diagnostic> reasons = reasons_against(scenario, report, must_fit);
        const std::optional<Diagnostic> no_data =
            arguments.has("strict") ? shapes_without_data(scenario, report) : std::nullopt;
        if (no_data) reasons.push_back(*no_data);
        if (arguments.has("json")) {
          own.out << json_of(report, why, reasons, scenario) << '\n';
        } else {
          if (!must_fit) say_what_makes_it_fit(scenario, report);
          if (arguments.has("quiet")) report.warnings.clear();
          own.out << render_text(report, arguments.has("verbose"));
          if (why) own.out << text_of(*why);
        }
        for (const Diagnostic& missed : missed_assertions(scenario, report))
          own.err << render(missed) << '\n';
        if (no_data) own.err << render(*no_data) << '\n';
        say_unchecked(report.memory.capacity, arguments, own);
        if (must_fit && report.memory.verdict() == Verdict::kOutOfMemory)
          say_shortage(report.memory, what_makes_room(scenario, report, reload), own);
        return reasons.empty() ? kDone : kAnswerIsNo;
      });
}

}  // namespace stagecraft
