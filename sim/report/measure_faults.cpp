#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "sim/engine/deadlock.hpp"
#include "sim/report/measure.hpp"

namespace stagecraft {
namespace {

IdVector<TaskId, bool> ended_tasks(const Program& program, const Stall& stall) {
  IdVector<TaskId, bool> ended(program.task_count(), true);
  for (const auto* tasks : {&stall.stuck, &stall.waiting})
    for (const TaskId task : *tasks) ended[task] = false;
  return ended;
}

// "B7", "gradient reduction"
std::string task_name(const Program& program, TaskId task) {
  std::string name = program.labels[program.label[task]].name;
  if (program.micro_batch[task] >= 0) name += std::to_string(program.micro_batch[task]);
  return name;
}

// The task at the end of a chain of reasons: stuck itself.
TaskId root_of(const IdVector<TaskId, std::optional<TaskId>>& reason, TaskId task) {
  for (std::size_t steps = 0; reason[task]; ++steps) {
    SC_CHECK(steps < reason.size(), "who stalls waits for somebody stuck");
    task = *reason[task];
  }
  return task;
}

// [resource]: time from which it stands still for good.
IdVector<ResourceId, std::optional<Duration>> stops_of(const Program& program) {
  IdVector<ResourceId, std::optional<Duration>> stops(program.resources.size());
  for (const SpeedChange& change : program.speed_changes) {
    std::optional<Duration>& stop = stops[change.resource];
    if (change.speed > 0)
      stop.reset();
    else if (!stop)
      stop = change.time;
  }
  return stops;
}

// The last finished task of a rank, and the first task of its streams that does not end. Of a dead rank all
// streams stop; those that live share collectives with it, which stop as well.
struct RankEnd {
  Duration last{};
  std::optional<TaskId> task;
  std::optional<Duration> death = Duration::zero();
};

std::vector<RankEnd> ends_of(const Program& program, const Timeline& timeline,
                             const IdVector<TaskId, bool>& ended, std::size_t ranks) {
  std::vector<RankEnd> found(ranks);
  const IdVector<ResourceId, std::optional<Duration>> stops = stops_of(program);
  for (std::size_t r = 0; r < program.resources.size(); ++r) {
    const Resource& resource = program.resources[ResourceId(static_cast<std::uint32_t>(r))];
    if (resource.kind != ResourceKind::kStream) continue;
    RankEnd& end = found.at(static_cast<std::size_t>(resource.rank));
    const std::optional<Duration> stop = stops[ResourceId(static_cast<std::uint32_t>(r))];
    end.death = end.death && stop ? std::optional(std::max(*end.death, *stop)) : std::nullopt;
    for (std::uint32_t i = program.resource_begin[r]; i < program.resource_begin[r + 1]; ++i) {
      if (ended[TaskId(i)])
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
  const IdVector<TaskId, bool> ended = ended_tasks(program, stall);
  const IdVector<TaskId, std::optional<TaskId>> reason = waits_for(program, ended);
  const std::vector<RankEnd> ends = ends_of(program, timeline, ended, ranks.size());
  std::vector<StalledRank> stalled;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!ends[rank].task) continue;
    const TaskId task = *ends[rank].task;
    StalledRank entry{.rank = ranks[rank], .since = ends[rank].last, .task = task_name(program, task)};
    const std::optional<Duration> death = ends[rank].death;
    const bool may_run = timeline.is_stuck(task);
    entry.stuck = may_run || death;
    if (entry.stuck) {
      entry.begun = may_run && (!death || timeline.start[task] < *death);
      entry.since = entry.begun ? timeline.start[task] : *death;
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
