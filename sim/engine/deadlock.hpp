// Who waits for whom when a program cannot go on: the text of an InternalError, and of an iteration that
// never ends.
#pragma once

#include <optional>
#include <string>

#include "sim/program/program.hpp"

namespace stagecraft {

// For each task a task that it waits for, of those that have not ended: its first explicit predecessor, or
// else the one before it on its stream.
[[nodiscard]] IdVector<TaskId, std::optional<TaskId>> waits_for(const Program& program,
                                                                const IdVector<TaskId, bool>& has_ended);

// Names up to 5 tasks of a circle of waiting and what each waits for.
//
//   has_ended  per task; every task that has not ended waits for one that has not, explicitly or by the order
//              of its stream.
//   throws     InternalError when there is no circle to be found.
[[nodiscard]] std::string describe_deadlock(const Program& program, const IdVector<TaskId, bool>& has_ended);

}  // namespace stagecraft
