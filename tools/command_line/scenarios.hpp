// What commands that answer for scenarios share: each scenario on the command line is loaded, answered or refused,
// and the worst exit code counts. Several are answered on as many threads as --jobs sets, and printed in their
// order. And how diagnostics are printed.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "tools/command_line/command_line.hpp"

namespace stagecraft {

// Prints on the outputs that it is given, keeps nothing between calls, and returns kDone or kAnswerIsNo; may
// throw ScenarioError. Called on several threads.
using AnswerScenario = std::function<int(const Scenario&, Session&)>;
// Of commands that try changes of the scenario.
using AnswerWithChanges = std::function<int(const Scenario&, const Reload&, Session&)>;

// Where the warnings of loading go with --json. Without it they go to standard error.
enum class LoadWarnings { kInDocument, kOnStandardError };
struct LoadOptions {
  LoadWarnings warnings = LoadWarnings::kInDocument;
  bool needs_profile = true;  // (ScenarioTree)
};

// throws UsageError where there is none, one is empty, or standard input is to be read twice.
void check_scenario_names(const std::vector<std::string>& files, const std::string& hint_of_none);

// Calls `answer` for every scenario that loads, which has the warnings that `answer` has to say. Checks their
// names.
int for_each_scenario(const Arguments& arguments, Session& session, const AnswerScenario& answer);
int for_each_scenario(const Arguments& arguments, Session& session, const AnswerWithChanges& answer);
// Answers for `files` alone, where only some of the words are scenarios.
int for_each_scenario(const std::vector<std::string>& files, const Arguments& arguments, Session& session,
                      const AnswerScenario& answer, LoadOptions options = {});

// Reports that there is none, for commands that need one.
void require_cluster(const Scenario& scenario, Diagnostics& diagnostics);

inline constexpr std::string_view kNothingSimulated = "nothing was simulated";
// The same of one refused scenario of `files`: it says nothing of the others.
[[nodiscard]] std::string not_simulated(const std::string& file, const std::vector<std::string>& files);

// What was said of all variants, in their order.
template <typename Outcome>
[[nodiscard]] std::vector<Diagnostic> diagnostics_of(const std::vector<Outcome>& outcomes) {
  std::vector<Diagnostic> all;
  for (const Outcome& outcome : outcomes)
    all.insert(all.end(), outcome.diagnostics.begin(), outcome.diagnostics.end());
  return all;
}

// Errors as the session wants them: located text with source lines on standard error, or one JSON line on
// standard output. Text ends with the number of errors and, where it is given, their outcome. A warning that
// several loads report is printed once, with --quiet never. The JSON names the `scenario`, where it is given.
void print_diagnostics(const std::vector<Diagnostic>& diagnostics, const Arguments& arguments,
                       Session& session, std::string_view outcome = {}, std::string_view scenario = {});
// The warnings among them.
void print_warnings(const std::vector<Diagnostic>& diagnostics, const Arguments& arguments, Session& session);

// Prints the mistakes of all variants, each once, where one of them is every variant's: then none has an answer, and a
// table of them would repeat it. False where none is.
template <typename Outcome>
[[nodiscard]] bool told_shared_mistakes(const std::vector<Outcome>& outcomes, const Arguments& arguments,
                                        Session& session) {
  const auto is_everybodys = [&](const Diagnostic& said) {
    return said.severity == Severity::kError && std::ranges::all_of(outcomes, [&](const Outcome& outcome) {
             return std::ranges::find(outcome.diagnostics, said) != outcome.diagnostics.end();
           });
  };
  std::vector<Diagnostic> mistakes;
  if (outcomes.empty() || std::ranges::none_of(outcomes.front().diagnostics, is_everybodys)) return false;
  for (const Diagnostic& said : diagnostics_of(outcomes))
    if (said.severity == Severity::kError && std::ranges::find(mistakes, said) == mistakes.end())
      mistakes.push_back(said);
  print_diagnostics(mistakes, arguments, session, kNothingSimulated);
  return true;
}

}  // namespace stagecraft
