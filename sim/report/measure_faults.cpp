#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {
namespace {

// Of each task that has not ended, one that it waits for: a predecessor, else the one before it on its
// stream.
std::vector<std::optional<TaskId>> reasons(const Program& program, const Stall& stall) {
  std::vector<std::optional<TaskId>> reason(program.task_count());
  std::vector<bool> open(program.task_count());
  for (const auto* tasks : {&stall.stuck, &stall.waiting})
    for (const TaskId task : *tasks) {
      open[task.index()] = true;
      for (const TaskId after : program.successors_of(task))
        if (!reason[after.index()]) reason[after.index()] = task;
    }
  for (std::size_t r = 0; r < program.resources.size(); ++r) {
    if (program.resources[ResourceId(static_cast<std::uint32_t>(r))].kind != ResourceKind::kStream) continue;
    for (std::uint32_t i = program.resource_begin[r] + 1; i < program.resource_begin[r + 1]; ++i)
      if (!reason[i] && open[i - 1]) reason[i] = TaskId(i - 1);
  }
  return reason;
}

// "B7", "gradient reduction"
std::string task_name(const Program& program, TaskId task) {
  std::string name = program.labels[program.label[task]].name;
  if (program.micro_batch[task] >= 0) name += std::to_string(program.micro_batch[task]);
  return name;
}

// The task at the end of a chain of reasons: stuck itself.
TaskId root_of(const std::vector<std::optional<TaskId>>& reason, TaskId task) {
  for (std::size_t steps = 0; reason[task.index()]; ++steps) {
    SC_CHECK(steps < reason.size(), "who stalls waits for somebody stuck");
    task = *reason[task.index()];
  }
  return task;
}

}  // namespace

namespace {

// What a rank did last, and the first task of its streams that does not end.
struct RankEnd {
  Duration last{};
  std::optional<TaskId> task;
};

std::vector<RankEnd> ends_of(const Program& program, const Timeline& timeline, std::size_t ranks) {
  std::vector<bool> open(program.task_count());
  for (const auto* tasks : {&timeline.stall->stuck, &timeline.stall->waiting})
    for (const TaskId task : *tasks) open[task.index()] = true;
  std::vector<RankEnd> found(ranks);
  for (std::size_t r = 0; r < program.resources.size(); ++r) {
    const Resource& resource = program.resources[ResourceId(static_cast<std::uint32_t>(r))];
    if (resource.kind != ResourceKind::kStream) continue;
    RankEnd& end = found.at(static_cast<std::size_t>(resource.rank));
    for (std::uint32_t i = program.resource_begin[r]; i < program.resource_begin[r + 1]; ++i) {
      if (!open[i])
        end.last = std::max(end.last, timeline.end[TaskId(i)]);
      else if (!end.task)
        end.task = TaskId(i);
    }
  }
  return found;
}

}  // namespace

std::vector<StalledRank> measure_stall(const Program& program, const Timeline& timeline,
                                       std::span<const std::string> ranks) {
  SC_CHECK(timeline.stall.has_value(), "an iteration that finishes has no stall");
  const Stall& stall = *timeline.stall;
  const std::vector<std::optional<TaskId>> reason = reasons(program, stall);
  const std::vector<RankEnd> ends = ends_of(program, timeline, ranks.size());
  std::vector<StalledRank> stalled;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!ends[rank].task) continue;
    const TaskId task = *ends[rank].task;
    StalledRank entry{.rank = ranks[rank], .since = ends[rank].last, .task = task_name(program, task)};
    entry.stuck = std::binary_search(stall.stuck.begin(), stall.stuck.end(), task);
    if (entry.stuck) {
      entry.since = timeline.start[task];
    } else {
      const TaskId root = root_of(reason, task);
      entry.waits_for = task_name(program, root);
      entry.waits_for_rank =
          ranks[static_cast<std::size_t>(program.resources[program.resource_of(root)].rank)];
    }
    stalled.push_back(std::move(entry));
  }
  return stalled;
}

}  // namespace stagecraft
