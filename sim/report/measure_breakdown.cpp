#include <algorithm>
#include <optional>
#include <vector>

#include "sim/report/measure_parts.hpp"

namespace stagecraft {

void add_waited(const Breakdown& waited, Duration idle, Breakdown& sum) {
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    const Duration time = std::min(waited[c], idle);
    sum[c] += time;
    idle -= time;
  }
  sum[static_cast<std::size_t>(Category::kBubble)] += idle;
}

namespace {

// Adds the part of a task's time after `from`, by category.
void add_after(const Program& program, const Timeline& timeline, TaskId task, Duration from, Breakdown& sum) {
  Duration rest = timeline.end[task] - std::max(timeline.start[task], from);
  const std::vector<TaskPart> parts = parts_of(program, timeline, task);
  for (auto part = parts.rbegin(); part != parts.rend() && rest > Duration::zero(); ++part) {
    const Duration time = std::min(part->time, rest);
    sum[static_cast<std::size_t>(part->category)] += time;
    rest -= time;
  }
}

// Exposed communication before the last pass ends: on the chain to that pass, while the busiest rank idles.
void add_exposed(const Program& program, const Timeline& timeline, const std::vector<TaskId>& chain,
                 Duration idle, Breakdown& sum) {
  Breakdown waited{};
  for (const TaskId task : chain) {
    if (is_pass(program, task)) continue;
    for (const TaskPart& part : parts_of(program, timeline, task)) {
      waited[static_cast<std::size_t>(part.category)] += part.time;
    }
  }
  add_waited(waited, idle, sum);
}

}  // namespace

BreakdownSources breakdown_sources(const Program& program, const Timeline& timeline) {
  BreakdownSources sources;
  if (program.task_count() == 0) return sources;
  const IdVector<TaskId, std::optional<TaskId>> tight = tight_predecessors(program, timeline);
  const std::vector<RankPasses> ranks = passes_by_rank(program, timeline);
  sources.rank = busiest_rank(ranks);
  const RankPasses& passes = ranks[sources.rank];
  sources.passes = passes.by_category;
  const TaskId last_pass =
      last_to_end(program, timeline, [&](TaskId task) { return is_pass(program, task); });
  const Duration end = timeline.end[last_pass];
  sources.last_pass_end = end;
  add_exposed(program, timeline, chain_to(last_pass, timeline, tight), end - passes.work, sources.waited);
  const TaskId last = last_to_end(program, timeline, [](TaskId) { return true; });
  for (const TaskId task : chain_to(last, timeline, tight)) {
    if (timeline.end[task] > end) add_after(program, timeline, task, end, sources.after);
  }
  return sources;
}

Breakdown measure_breakdown(const Program& program, const Timeline& timeline) {
  const BreakdownSources sources = breakdown_sources(program, timeline);
  Breakdown breakdown{};
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    breakdown[c] = sources.passes[c] + sources.waited[c] + sources.after[c];
  return breakdown;
}

}  // namespace stagecraft
