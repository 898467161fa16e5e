#include "sim/view/idle.hpp"

#include <algorithm>

#include "sim/report/measure.hpp"

namespace stagecraft {

std::vector<bool> compute_resources(const Program& program) {
  std::vector<bool> compute(program.resources.size());
  for (std::size_t r = 0; r < compute.size(); ++r)
    compute[r] = program.resources[ResourceId(static_cast<std::uint32_t>(r))].name == "compute";
  return compute;
}

Waits::Waits(const Program& program, const Timeline& timeline)
    : program_(program),
      timeline_(timeline),
      cause_(tight_predecessors(program, timeline)),
      compute_resource_(compute_resources(program)) {}

bool Waits::computes(TaskId task) const {
  return compute_resource_[program_.resource_of(task).index()];
}

Gap Waits::gap_before(Duration begin, TaskId task) const {
  const Duration end = timeline_.start[task];
  Gap gap{.begin = begin, .end = end, .exposed_from = end, .waits_for = cause_[task]};
  for (std::optional<TaskId> cause = gap.waits_for; cause && timeline_.end[*cause] > begin;
       cause = cause_[*cause]) {
    const bool takes_time = timeline_.end[*cause] > timeline_.start[*cause];
    if (takes_time && computes(*cause)) break;
    if (takes_time && gap.exposed_from == end) gap.waits_for = cause;
    gap.exposed_from = std::max(begin, timeline_.start[*cause]);
  }
  return gap;
}

std::vector<Gap> Waits::gaps_of(const Lane& lane) const {
  std::vector<Gap> gaps;
  Duration at{};
  for (const TaskId task : lane.tasks) {
    if (timeline_.end[task] == timeline_.start[task]) continue;
    if (timeline_.start[task] > at) gaps.push_back(gap_before(at, task));
    at = timeline_.end[task];
  }
  if (at < timeline_.makespan)
    gaps.push_back(
        {.begin = at, .end = timeline_.makespan, .exposed_from = timeline_.makespan, .waits_for = {}});
  return gaps;
}

}  // namespace stagecraft
