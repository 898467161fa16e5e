#include <algorithm>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "sim/report/measure_parts.hpp"

namespace stagecraft {

IdVector<TaskId, std::optional<TaskId>> tight_predecessors(const Program& program, const Timeline& timeline) {
  IdVector<TaskId, std::optional<TaskId>> tight(program.task_count());
  const auto offer = [&](TaskId before, TaskId after) {
    if (timeline.end[before] != timeline.start[after]) return;
    if (!tight[after] || before < *tight[after]) tight[after] = before;
  };
  for (std::uint32_t t = 0; t < program.task_count(); ++t) {
    for (const TaskId next : program.successors_of(TaskId(t))) offer(TaskId(t), next);
  }
  for (std::size_t r = 0; r < program.resources.size(); ++r) {
    if (program.resources[ResourceId(static_cast<std::uint32_t>(r))].kind != ResourceKind::kStream) continue;
    for (std::uint32_t t = program.resource_begin[r] + 1; t < program.resource_begin[r + 1]; ++t) {
      offer(TaskId(t - 1), TaskId(t));
    }
  }
  return tight;
}

std::vector<TaskId> chain_to(TaskId last, const Timeline& timeline,
                             const IdVector<TaskId, std::optional<TaskId>>& tight) {
  std::vector<TaskId> path = {last};
  while (timeline.start[path.back()] > Duration::zero()) {
    const std::optional<TaskId> before = tight[path.back()];
    SC_CHECK(before.has_value(), "a task starts at 0 or when another ends");
    path.push_back(*before);
  }
  std::ranges::reverse(path);
  return path;
}

std::vector<TaskId> critical_path(const Program& program, const Timeline& timeline) {
  if (program.task_count() == 0) return {};
  const TaskId last = last_to_end(program, timeline, [](TaskId) { return true; });
  return chain_to(last, timeline, tight_predecessors(program, timeline));
}

std::vector<PathShare> measure_critical_path(const Program& program, const Timeline& timeline) {
  return shares_of(program, critical_path(program, timeline),
                   [&](TaskId task) { return time_of(timeline, task); });
}

}  // namespace stagecraft
