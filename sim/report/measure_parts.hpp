// What the measures of a single iteration and of one in steady state share: the passes in a window, and
// chains of tasks that each start when the one before it ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/report/measure.hpp"
#include "sim/report/rank_passes.hpp"

namespace stagecraft {

// The part of a task's time that lies in the window.
[[nodiscard]] Duration time_within(const Timeline& timeline, TaskId task, Window window);
// Adds a task's time inside the window by category: the parts of a task follow each other.
void add_within(const Program& program, const Timeline& timeline, TaskId task, Window window, Breakdown& sum);
// [rank]: the passes of each simulated rank, clipped to the window.
[[nodiscard]] std::vector<RankPasses> passes_within(const Program& program, const Timeline& timeline,
                                                    Window window);
// Splits idle time of a rank: first the exposed communication on the chain, the rest is bubble.
void add_waited(const Breakdown& waited, Duration idle, Breakdown& sum);

// The chain of tasks that ends with `last`, each starting when the one before it ends.
[[nodiscard]] std::vector<TaskId> chain_to(TaskId last, const Timeline& timeline,
                                           const IdVector<TaskId, std::optional<TaskId>>& tight);

// The last task to end of those that are wanted.
template <class Wanted>
[[nodiscard]] TaskId last_to_end(const Program& program, const Timeline& timeline, const Wanted& wanted) {
  std::optional<TaskId> last;
  for (std::uint32_t t = 0; t < program.task_count(); ++t) {
    if (wanted(TaskId(t)) && (!last || timeline.end[TaskId(t)] > timeline.end[*last])) last = TaskId(t);
  }
  SC_CHECK(last.has_value(), "an iteration has a pass");
  return *last;
}

// Shares by name, longest first. `time_in(task)`: the part of the task's time that counts. Joints take no
// time.
template <class TimeIn>
[[nodiscard]] std::vector<PathShare> shares_of(const Program& program, const std::vector<TaskId>& path,
                                               const TimeIn& time_in) {
  std::vector<PathShare> shares;
  for (const TaskId task : path) {
    const Duration time = time_in(task);
    if (time == Duration::zero()) continue;
    const std::string& name = program.labels[program.label[task]].name;
    auto share = std::ranges::find(shares, name, &PathShare::name);
    if (share == shares.end()) share = shares.insert(shares.end(), {.name = name});
    ++share->tasks;
    share->time += time;
  }
  std::ranges::stable_sort(shares, std::ranges::greater(), &PathShare::time);
  return shares;
}

}  // namespace stagecraft
