#include "tools/command_line/scenarios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "base/text_file.hpp"
#include "sim/scenario/library.hpp"
#include "sim/search/check_section.hpp"
#include "tools/command_line/ordered_answers.hpp"

namespace stagecraft {
namespace {

// The line that a message is about; empty when it cannot be had.
std::string source_line(const SourceLocation& where) {
  if (where.line <= 0) return {};
  std::ifstream file(where.file);
  std::string line;
  for (int i = 0; i < where.line; ++i) {
    if (!std::getline(file, line)) return {};
  }
  constexpr std::size_t kLongest = 200;  // a caret under a longer line helps nobody
  return line.size() <= kLongest ? line : std::string();
}

std::vector<Diagnostic> each_warning_once(const std::vector<Diagnostic>& diagnostics) {
  std::set<std::string> said;
  std::vector<Diagnostic> kept;
  for (const Diagnostic& diagnostic : diagnostics)
    if (diagnostic.severity == Severity::kError || said.insert(render(diagnostic)).second)
      kept.push_back(diagnostic);
  return kept;
}

// Beside --set, a hint to leave a key of the file out says how that is done without an edit.
Diagnostic with_set_null(Diagnostic diagnostic, const Arguments& arguments) {
  if (arguments.all("set").empty() || diagnostic.where.file.starts_with("--")) return diagnostic;
  const std::string key = diagnostic.path.substr(diagnostic.path.rfind('.') + 1);
  for (const std::string& said : {std::string("it"), key, "`" + key + "`"})
    if (!key.empty() && diagnostic.hint.find("leave " + said + " out") != std::string::npos) {
      diagnostic.hint += fmt::format(" (--set {}=null)", diagnostic.path);
      break;
    }
  return diagnostic;
}

struct Question {
  std::string file;
  std::string if_refused;  // ends the errors
  LoadOptions options;
};

std::optional<ScenarioTree> load(const Question& question, const Arguments& arguments, Library& library,
                                 Diagnostics& diagnostics) {
  std::optional<ScenarioTree> tree = load_tree(question.file, library, diagnostics);
  if (!tree) return std::nullopt;
  apply_overrides(*tree, arguments.all("set"), library, diagnostics);
  tree->needs_profile = question.options.needs_profile;
  return tree;
}

// Says them now, so that the answer does not say them again.
void say_warnings(const Diagnostics& loading, Scenario& scenario, const Arguments& arguments,
                  Session& session) {
  print_warnings(loading.sorted(), arguments, session);
  std::erase_if(scenario.warnings, [&](const Diagnostic& warning) {
    return std::ranges::find(loading.items(), warning) != loading.items().end();
  });
}

int answer_one(const Question& question, const Arguments& arguments, Session& session, Library& library,
               const AnswerWithChanges& answer) {
  Diagnostics diagnostics;
  try {
    std::optional<ScenarioTree> tree = load(question, arguments, library, diagnostics);
    std::optional<Scenario> scenario = tree ? read_scenario(*tree, library, diagnostics) : std::nullopt;
    if (tree) check_search_section(*tree, library, diagnostics);
    if (!scenario || diagnostics.has_errors()) {
      print_diagnostics(diagnostics.sorted(), arguments, session, question.if_refused, question.file);
      return kWrongInput;
    }
    if (!arguments.has("json") || question.options.warnings == LoadWarnings::kOnStandardError)
      say_warnings(diagnostics, *scenario, arguments, session);
    return answer(*scenario, reload_of(*std::move(tree), library), session);
  } catch (const ScenarioError& error) {
    print_diagnostics(error.diagnostics(), arguments, session, question.if_refused, question.file);
    return kWrongInput;
  }
}

int answer_each(const std::vector<std::string>& files, const Arguments& arguments, Session& session,
                const AnswerWithChanges& answer, LoadOptions options) {
  check_scenario_names(files, "stagecraft doctor lists those that are installed");
  const OrderedAnswers answers{
      .count = files.size(), .make_ask = [&]() -> OrderedAnswers::Ask {
        return [&, library = std::make_shared<Library>(session.data)](std::size_t i, Session& own) {
          return answer_one(
              {.file = files[i], .if_refused = not_simulated(files[i], files), .options = options}, arguments,
              own, *library, answer);
        };
      }};
  return answers.print(arguments, session);
}

}  // namespace

void check_scenario_names(const std::vector<std::string>& files, const std::string& hint_of_none) {
  if (files.empty()) throw UsageError("no scenario is named", hint_of_none);
  if (std::ranges::count(files, "") > 0)
    throw UsageError("the name of a scenario is empty", "write the path of a file, or - for standard input");
  if (std::ranges::count(files, "-") > 1)
    throw UsageError("standard input can be read only once", "give - once");
}

void require_cluster(const Scenario& scenario, Diagnostics& diagnostics) {
  if (scenario.cluster) return;
  diagnostics.error({.code = "no-cluster",
                     .where = {scenario.source, 0, 0},
                     .path = "cluster",
                     .message = "the scenario has no cluster",
                     .hint = "stages of given costs need none; name a node and a fabric"});
}

std::string not_simulated(const std::string& file, const std::vector<std::string>& files) {
  return files.size() == 1 ? std::string(kNothingSimulated) : place_name(file) + " was not simulated";
}

void print_diagnostics(const std::vector<Diagnostic>& all, const Arguments& arguments, Session& session,
                       std::string_view outcome, std::string_view scenario) {
  if (all.empty()) return;
  std::vector<Diagnostic> diagnostics = each_warning_once(all);
  for (Diagnostic& diagnostic : diagnostics) diagnostic = with_set_null(std::move(diagnostic), arguments);
  const auto errors = std::count_if(diagnostics.begin(), diagnostics.end(),
                                    [](const Diagnostic& d) { return d.severity == Severity::kError; });
  if (arguments.has("json") && errors > 0) {
    session.out << render_json(diagnostics, scenario) << '\n';
    return;
  }
  const bool quiet = arguments.has("quiet");
  const bool excerpts = session.err_is_terminal || arguments.has("verbose");
  for (const Diagnostic& diagnostic : diagnostics) {
    if (quiet && diagnostic.severity == Severity::kWarning) continue;
    if (diagnostic.where.file.empty()) session.err << "stagecraft: ";  // who says it, where no file is wrong
    session.err << render(diagnostic, excerpts ? source_line(diagnostic.where) : std::string()) << '\n';
  }
  if (errors > 0) {
    session.err << fmt::format("{}{}{}\n", counted(errors, "error"), outcome.empty() ? "" : ", ", outcome);
  }
}

void print_warnings(const std::vector<Diagnostic>& diagnostics, const Arguments& arguments,
                    Session& session) {
  std::vector<Diagnostic> warnings;
  std::ranges::copy_if(diagnostics, std::back_inserter(warnings),
                       [](const Diagnostic& d) { return d.severity == Severity::kWarning; });
  print_diagnostics(warnings, arguments, session);
}

int for_each_scenario(const Arguments& arguments, Session& session, const AnswerScenario& answer) {
  return for_each_scenario(arguments.words(), arguments, session, answer);
}

int for_each_scenario(const Arguments& arguments, Session& session, const AnswerWithChanges& answer) {
  return answer_each(arguments.words(), arguments, session, answer, {});
}

int for_each_scenario(const std::vector<std::string>& files, const Arguments& arguments, Session& session,
                      const AnswerScenario& answer, LoadOptions options) {
  const auto plain = [&](const Scenario& scenario, const Reload&, Session& own) {
    return answer(scenario, own);
  };
  return answer_each(files, arguments, session, plain, options);
}

}  // namespace stagecraft
