#include "sim/engine/deadlock.hpp"

#include <algorithm>
#include <optional>

namespace stagecraft {
namespace {

// Of a circle of any length: enough to find the place, short enough to read.
constexpr std::size_t kNamedTasks = 5;

using Reason = std::optional<TaskId>;

// Following reasons from any waiting task must run into a circle. Returns the circle, beginning with its
// smallest task.
std::vector<TaskId> find_circle(const IdVector<TaskId, Reason>& reason, TaskId from) {
  IdVector<TaskId, bool> seen(reason.size());
  TaskId task = from;
  while (!seen[task]) {
    seen[task] = true;
    SC_CHECK(reason[task].has_value(), "a task waits for nobody");
    task = *reason[task];
  }
  std::vector<TaskId> circle;
  const TaskId entry = task;
  do {
    circle.push_back(task);
    task = *reason[task];
  } while (task != entry);
  std::rotate(circle.begin(), std::min_element(circle.begin(), circle.end()), circle.end());
  return circle;
}

}  // namespace

IdVector<TaskId, Reason> waits_for(const Program& program, const IdVector<TaskId, bool>& has_ended) {
  IdVector<TaskId, Reason> reason(program.task_count());
  for (std::uint32_t i = 0; i < program.task_count(); ++i) {
    if (has_ended[TaskId(i)]) continue;
    for (const TaskId after : program.successors_of(TaskId(i)))
      if (!reason[after]) reason[after] = TaskId(i);
  }
  for (std::size_t r = 0; r < program.resources.size(); ++r) {
    if (program.resources[ResourceId(static_cast<std::uint32_t>(r))].kind != ResourceKind::kStream) continue;
    for (std::uint32_t i = program.resource_begin[r] + 1; i < program.resource_begin[r + 1]; ++i)
      if (!reason[TaskId(i)] && !has_ended[TaskId(i - 1)]) reason[TaskId(i)] = TaskId(i - 1);
  }
  return reason;
}

std::string describe_deadlock(const Program& program, const IdVector<TaskId, bool>& has_ended) {
  const auto first = std::find(has_ended.begin(), has_ended.end(), false);
  SC_CHECK(first != has_ended.end(), "every task has ended");
  const auto waiting = std::count(has_ended.begin(), has_ended.end(), false);
  const IdVector<TaskId, Reason> reason = waits_for(program, has_ended);
  const std::vector<TaskId> circle =
      find_circle(reason, TaskId(static_cast<std::uint32_t>(first - has_ended.begin())));

  std::string text =
      "deadlock, " + std::to_string(waiting) + " of " + std::to_string(program.task_count()) + " tasks wait";
  for (std::size_t i = 0; i < std::min(circle.size(), kNamedTasks); ++i)
    text += (i == 0 ? ": " : "; ") + program.describe(circle[i]) + " waits for " +
            program.describe(*reason[circle[i]]);
  if (circle.size() > kNamedTasks) text += "; and " + std::to_string(circle.size() - kNamedTasks) + " more";
  return text;
}

}  // namespace stagecraft
