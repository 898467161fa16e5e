// What run, check and memory have in common: each scenario on the command line is loaded, answered or
// refused, and the worst exit code wins.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "tools/command_line.hpp"

namespace stagecraft {

// Calls `answer` for every scenario that loads; it returns kDone or kAnswerIsNo, and may throw ScenarioError.
// throws UsageError when there is no scenario on the command line.
int for_each_scenario(const Arguments& arguments, Session& session,
                      const std::function<int(const Scenario&)>& answer);
// The same where only some of the words are scenarios.
int for_each_scenario(const std::vector<std::string>& files, const Arguments& arguments, Session& session,
                      const std::function<int(const Scenario&)>& answer);

// Errors as the session wants them: located text with source lines on standard error, or one JSON line on
// standard output.
void print_diagnostics(const std::vector<Diagnostic>& diagnostics, const Arguments& arguments,
                       Session& session);

}  // namespace stagecraft
