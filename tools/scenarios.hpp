// Common part of run, check and memory: each scenario on the command line is loaded, answered or refused, and
// the worst exit code counts. Several are answered on as many threads as --jobs sets, and printed in their
// order.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "tools/command_line.hpp"

namespace stagecraft {

// Prints on the outputs that it is given, keeps nothing between calls, and returns kDone or kAnswerIsNo; may
// throw ScenarioError. Called on several threads.
using AnswerScenario = std::function<int(const Scenario&, Session&)>;

// Calls `answer` for every scenario that loads. throws UsageError when there is no scenario on the command
// line.
int for_each_scenario(const Arguments& arguments, Session& session, const AnswerScenario& answer);
// Answers for `files` alone, where only some of the words are scenarios.
int for_each_scenario(const std::vector<std::string>& files, const Arguments& arguments, Session& session,
                      const AnswerScenario& answer);

// Errors as the session wants them: located text with source lines on standard error, or one JSON line on
// standard output.
void print_diagnostics(const std::vector<Diagnostic>& diagnostics, const Arguments& arguments,
                       Session& session);

}  // namespace stagecraft
