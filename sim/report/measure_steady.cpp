#include <algorithm>
#include <vector>

#include "sim/report/measure_parts.hpp"

namespace stagecraft {

Window iteration_window(const Program& program, const Timeline& timeline) {
  std::vector<Duration> ends;  // of the iterations
  for (std::uint32_t t = 0; t < program.task_count(); ++t) {
    if (program.labels[program.label[TaskId(t)]].name == kEndOfIteration)
      ends.push_back(timeline.end[TaskId(t)]);
  }
  if (ends.empty()) return {.begin = {}, .end = timeline.makespan};
  std::ranges::sort(ends);
  if (ends.size() < 3) return {.begin = ends.front(), .end = ends.back()};
  return {.begin = ends[ends.size() - 3], .end = ends[ends.size() - 2]};
}

namespace {

// The chain to the end of the window's iteration.
std::vector<TaskId> chain_of(const Program& program, const Timeline& timeline, Window window) {
  const TaskId last = last_to_end(program, timeline, [&](TaskId task) {
    return program.labels[program.label[task]].name == kEndOfIteration && timeline.end[task] <= window.end;
  });
  return chain_to(last, timeline, tight_predecessors(program, timeline));
}

// What the busiest rank, which idles for `idle`, waits for in the window: tasks on the chain that are no
// passes, and the bubble.
Breakdown waited_within(const Program& program, const Timeline& timeline, Window window, Duration idle) {
  Breakdown exposed{}, waited{};
  for (const TaskId task : chain_of(program, timeline, window))
    if (!is_pass(program, task)) add_within(program, timeline, task, window, exposed);
  add_waited(exposed, idle, waited);
  return waited;
}

}  // namespace

Bubble measure_steady_bubble(const Program& program, const Timeline& timeline, Window window) {
  const std::vector<RankPasses> ranks = passes_within(program, timeline, window);
  Bubble bubble{.makespan = window.length(), .span = window.length()};
  if (ranks.empty()) return bubble;
  const RankPasses& passes = ranks[busiest_rank(ranks)];
  const Breakdown waited = waited_within(program, timeline, window, window.length() - passes.work);
  for (const Category step : {Category::kDataComm, Category::kOptimizer, Category::kOther})
    bubble.makespan -= waited[static_cast<std::size_t>(step)];
  bubble.span = bubble.makespan;
  bubble.ideal = passes.work;
  if (bubble.ideal == Duration::zero()) return bubble;
  bubble.over_ideal = to_seconds(bubble.makespan - bubble.ideal) / to_seconds(bubble.ideal);
  bubble.fraction = idle_share(ranks, {}, bubble.makespan);
  return bubble;
}

std::vector<PathShare> measure_steady_path(const Program& program, const Timeline& timeline, Window window) {
  return shares_of(program, chain_of(program, timeline, window),
                   [&](TaskId task) { return time_within(timeline, task, window); });
}

Breakdown measure_steady_breakdown(const Program& program, const Timeline& timeline, Window window) {
  const std::vector<RankPasses> ranks = passes_within(program, timeline, window);
  if (ranks.empty()) return {};
  const RankPasses& passes = ranks[busiest_rank(ranks)];
  Breakdown breakdown = waited_within(program, timeline, window, window.length() - passes.work);
  for (std::size_t c = 0; c < kCategoryCount; ++c) breakdown[c] += passes.by_category[c];
  return breakdown;
}

}  // namespace stagecraft
