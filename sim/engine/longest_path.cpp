#include <algorithm>
#include <vector>

#include "sim/engine/deadlock.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/memory_high_water.hpp"

namespace stagecraft {
namespace {

// One topological sweep; stream order is an edge from each task to the next.
class Sweep {
 public:
  explicit Sweep(const Program& program)
      : program_(program), has_next_(program.task_count()), missing_(program.task_count()) {
    timeline_.start.resize(program.task_count());
    timeline_.end.resize(program.task_count());
    chain_streams();
    for (const TaskId after : program.successors) ++missing_[after];
  }

  Timeline run() && {
    for (std::uint32_t i = 0; i < program_.task_count(); ++i)
      if (missing_[TaskId(i)] == 0) open_.push_back(TaskId(i));
    IdVector<TaskId, bool> settled(program_.task_count());
    std::size_t count = 0;
    for (; !open_.empty(); ++count) {
      const TaskId task = open_.back();
      open_.pop_back();
      settle(task);
      settled[task] = true;
    }
    SC_CHECK(count == program_.task_count(), describe_deadlock(program_, settled));
    timeline_.memory_high_water = memory_high_water(program_, timeline_);
    return std::move(timeline_);
  }

 private:
  void chain_streams() {
    for (std::size_t r = 0; r < program_.resources.size(); ++r) {
      if (program_.resources[ResourceId(static_cast<std::uint32_t>(r))].kind != ResourceKind::kStream)
        continue;
      for (std::uint32_t i = program_.resource_begin[r] + 1; i < program_.resource_begin[r + 1]; ++i) {
        has_next_[TaskId(i - 1)] = true;
        ++missing_[TaskId(i)];
      }
    }
  }

  void settle(TaskId task) {
    const Duration end = timeline_.start[task] + program_.duration[task];
    timeline_.end[task] = end;
    timeline_.makespan = std::max(timeline_.makespan, end);
    for (const TaskId after : program_.successors_of(task)) relax(after, end);
    if (has_next_[task]) relax(TaskId(task.value() + 1), end);
  }

  void relax(TaskId after, Duration end) {
    timeline_.start[after] = std::max(timeline_.start[after], end);
    if (--missing_[after] == 0) open_.push_back(after);
  }

  const Program& program_;
  IdVector<TaskId, bool> has_next_;          // has a successor on its stream
  IdVector<TaskId, std::uint32_t> missing_;  // predecessors that are not settled
  std::vector<TaskId> open_;
  Timeline timeline_;
};

}  // namespace

Timeline longest_path(const Program& program) {
  return Sweep(program).run();
}

}  // namespace stagecraft
