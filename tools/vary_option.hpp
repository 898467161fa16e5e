// --vary of `compare` and `goodput`: paths of a scenario with values, and the files that are varied.
#pragma once

#include <vector>

#include "sim/study/compare.hpp"
#include "tools/command_line.hpp"

namespace stagecraft {

// throws UsageError for a text that is none, and for a path that is varied twice.
[[nodiscard]] std::vector<Vary> varied_by(const Arguments& arguments);

// Every variant reads its file: throws UsageError where one of the words is standard input.
void refuse_standard_input(const Arguments& arguments);

}  // namespace stagecraft
