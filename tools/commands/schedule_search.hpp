// `stagecraft schedule search`: an order of our own for given costs, and how far from the best it can be.
#pragma once

#include <string>
#include <vector>

#include "tools/command_line/command_line.hpp"

namespace stagecraft {

// `words` are those behind `search`: none. throws UsageError when the command line is wrong.
int schedule_search(const std::vector<std::string>& words, const Arguments& arguments, Session& session);

}  // namespace stagecraft
