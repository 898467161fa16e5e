// Files to look at, beside the answer on standard output: traces and pages.
#pragma once

#include <optional>
#include <string>

#include "sim/simulate.hpp"
#include "tools/command_line/command_line.hpp"

namespace stagecraft {

// Whether a file of --trace, --html or --chakra is asked for. throws UsageError where the name of the trace
// says no form, or where several scenarios would share a file.
[[nodiscard]] bool wants_views(const Arguments& arguments);

// A note where the files show several iterations, and the report is of one of them.
[[nodiscard]] std::optional<std::string> word_on_iterations(const Simulation& simulation);

// throws ScenarioError where a file cannot be written, or is there already and --force is not given.
void write_views(const Arguments& arguments, const Scenario& scenario, const Simulation& simulation);

}  // namespace stagecraft
