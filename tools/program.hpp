// The command line as a whole: finds the command, runs it, and turns errors into messages and an exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/command_line/command_line.hpp"

namespace stagecraft {

using RunCommand =
    std::function<int(const CommandSpec& command, const Arguments& arguments, Session& session)>;

// `words` without the program's name, which is `invoked`. Never throws.
[[nodiscard]] int run_program(const std::vector<std::string>& words, const char* invoked,
                              const RunCommand& run);

}  // namespace stagecraft
