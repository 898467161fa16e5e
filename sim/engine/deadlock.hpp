// Explains a deadlock: which task waits for which. The text of an InternalError, and of an iteration that
// never ends.
#pragma once

#include <optional>
#include <string>

#include "sim/program/program.hpp"

namespace stagecraft {

// For each unfinished task one unfinished task that it waits for: its first explicit predecessor, otherwise
// the task before it on its stream.
[[nodiscard]] IdVector<TaskId, std::optional<TaskId>> waits_for(const Program& program,
                                                                const IdVector<TaskId, bool>& has_ended);

// Names up to 5 tasks of a cycle of waits, and the task that each waits for.
//
//   has_ended  per task; every task that has not ended waits for one that has not, explicitly or by the order
//              of its stream.
//   throws     InternalError when there is no circle to be found.
[[nodiscard]] std::string describe_deadlock(const Program& program, const IdVector<TaskId, bool>& has_ended);

}  // namespace stagecraft
