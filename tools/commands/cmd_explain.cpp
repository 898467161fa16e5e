#include <fmt/format.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/wrapped_text.hpp"
#include "sim/explain/codes.hpp"
#include "sim/explain/explain.hpp"
#include "sim/explain/sensitivities.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/study/reasons.hpp"
#include "tools/command_line/document_origin.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"

namespace stagecraft {
namespace {

constexpr int kMostLevels = 20;
constexpr std::size_t kMostTrees = 8;  // of a part of the document, with sensitivities

int explain_code(const CodeMeaning& code, const Arguments& arguments, Session& session) {
  if (arguments.has("json")) {
    JsonWriter json;
    json.begin_object().field("schema", "stagecraft.explain/1").field("code", code.code);
    session.out << json.field("meaning", code.meaning).end_object().str() << '\n';
  } else {
    session.out << wrapped_text("", "  ", fmt::format("{}: {}", code.code, code.meaning));
  }
  return kDone;
}

std::vector<std::string> paths_of(const std::vector<Figure>& figures) {
  std::vector<std::string> paths;
  for (const Figure& figure : figures) paths.push_back(figure.path);
  return paths;
}

// "breakdown_s" and "memory.stages.0" of "memory.stages.0.peak_bytes": people ask for parts as well.
std::vector<std::string> names_to_suggest(const std::vector<Figure>& figures) {
  std::vector<std::string> names = paths_of(figures);
  for (const Figure& figure : figures)
    for (std::size_t dot = figure.path.find('.'); dot != std::string::npos;
         dot = figure.path.find('.', dot + 1))
      names.push_back(figure.path.substr(0, dot));
  return names;
}

int list_figures(const Scenario& scenario, const std::vector<Figure>& figures, const Arguments& arguments,
                 Session& session) {
  if (arguments.has("json")) {
    JsonWriter json;
    json.begin_object().field("schema", "stagecraft.explain/1");
    json.field("scenario", scenario.source).key("paths").begin_array();
    for (const Figure& figure : figures) json.value(figure.path);
    session.out << with_origin(json.end_array().end_object().str(), scenario) << '\n';
    return kDone;
  }
  TextTable table({Align::kLeft, Align::kLeft});
  for (const Figure& figure : figures) table.row({figure.path, human(figure.value)});
  session.out << table.str();
  return kDone;
}

// Is this a figure, or a part, that only a finished iteration has?
bool needs_an_end(std::string_view path) {
  const std::string_view part = path.substr(0, path.find('.'));
  return part == "iteration_time_s" || part == "interval_90_s" || part == "critical_path";
}

void refuse_unknown(const std::string& path, const std::vector<Figure>& figures) {
  if (!figures_at(figures, path).empty()) return;
  const std::string nearest = suggest(path, names_to_suggest(figures), 0);
  throw UsageError(fmt::format("the result has no figure '{}'", path),
                   nearest + (nearest.empty() ? "" : " ") + "`stagecraft explain SCENARIO` lists all");
}

// Of an iteration that a dead node stops no figure is explained: rates and times of nothing are 0.
int refuse_stopped(const Scenario& scenario, const std::vector<std::string>& paths,
                   const std::vector<Figure>& figures, const Arguments& arguments, Session& session) {
  for (const std::string& path : paths)
    if (!needs_an_end(path)) refuse_unknown(path, figures);
  print_diagnostics({never_ends(scenario)}, arguments, session, "nothing was explained");
  return kAnswerIsNo;
}

std::string sensitivity_table(const std::vector<Sensitivity>& results) {
  if (results.empty()) return "";
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kLeft});
  table.row({"what more of an input gives", "", "figure", ""});
  for (const Sensitivity& result : results) {
    const std::string difference =
        result.difference ? fmt::format("{:+.2f} %", *result.difference * 100) : result.problem;
    table.row({result.input, result.change, result.value ? human(*result.value) : "cannot run", difference});
  }
  return "\n" + table.str(2);
}

void write_sensitivities(JsonWriter& json, const std::vector<Sensitivity>& results) {
  json.key("sensitivities").begin_array();
  for (const Sensitivity& result : results) {
    json.begin_object().field("input", result.input);
    json.field("change", result.change).key("value");
    result.value ? write(json, *result.value) : static_cast<void>(json.null());
    json.field("difference", result.difference).key("problem");
    result.problem.empty() ? json.null() : json.value(result.problem);
    json.end_object();
  }
  json.end_array();
}

struct Asked {
  const Scenario& scenario;
  int depth = 2;
  bool sensitive = true;
};

void print_tree(const Asked& asked, const Explanation& tree, const Arguments& arguments, Session& session) {
  std::vector<Sensitivity> results;
  if (asked.sensitive) results = sensitivities(asked.scenario, tree.name, tree.value);
  if (!arguments.has("json")) {
    session.out << render_text(tree, asked.depth) << sensitivity_table(results);
    return;
  }
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.explain/1");
  json.field("scenario", asked.scenario.source);
  write(json, tree, asked.depth);
  write_sensitivities(json, results);
  session.out << with_origin(json.end_object().str(), asked.scenario) << '\n';
}

int explain_scenario(const Scenario& scenario, const std::vector<std::string>& paths,
                     const Arguments& arguments, Session& session) {
  const Simulation simulation = simulate_in_full(scenario);
  const std::vector<Figure> figures = figures_of(simulation.report);
  if (!simulation.report.finishes()) return refuse_stopped(scenario, paths, figures, arguments, session);
  if (paths.empty()) return list_figures(scenario, figures, arguments, session);
  Explainer explainer(scenario, simulation);
  bool first = true;
  for (const std::string& path : paths) {
    refuse_unknown(path, figures);
    const std::vector<Figure> found = figures_at(figures, path);
    const Asked asked{.scenario = scenario,
                      .depth = arguments.integer("depth", 2, 0, kMostLevels),
                      .sensitive = !arguments.has("no-sensitivities") && found.size() <= kMostTrees};
    for (const Figure& figure : found) {
      if (!first && !arguments.has("json")) session.out << '\n';
      first = false;
      print_tree(asked, explainer.of(figure), arguments, session);
    }
  }
  return kDone;
}

// Does the word name a file or an installed scenario?
bool is_scenario(const std::string& word, const Session& session) {
  Library library(session.data);
  Diagnostics ignored;
  const auto file = find_scenario(word, library, ignored);
  std::error_code error;
  return file && std::filesystem::exists(*file, error);
}

}  // namespace

int explain_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string>& words = arguments.words();
  if (words.size() == 1 && words[0] != "-" && !is_scenario(words[0], session)) {
    if (const std::optional<CodeMeaning> code = meaning_of(words[0]))
      return explain_code(*code, arguments, session);
    std::vector<std::string> codes;
    for (const CodeMeaning& code : code_meanings()) codes.emplace_back(code.code);
    throw UsageError(in_quotes(words[0]) + " is neither a file nor the code of a diagnostic",
                     suggest(words[0], codes, 0));
  }
  if (words.empty()) throw UsageError("no scenario and no code is named", "stagecraft explain SCENARIO PATH");
  const std::vector<std::string> paths(words.begin() + 1, words.end());
  return for_each_scenario({words[0]}, arguments, session,
                           [&](const Scenario& scenario, Session& own) {
                             return explain_scenario(scenario, paths, arguments, own);
                           },
                           {.warnings = LoadWarnings::kOnStandardError});
}

}  // namespace stagecraft
