#include "sim/shared_fabric.hpp"

#include <utility>

#include "sim/engine/engine.hpp"
#include "sim/lower/fold_links.hpp"
#include "sim/program/side_by_side.hpp"

namespace stagecraft {
namespace {

// Folded: links that matter to whoever is in the program.
struct Folded {
  Program program;
  std::vector<int> alike;
};

Folded folded(Program program) {
  Folded result{.program = std::move(program), .alike = {}};
  for (const FoldedLink& link : fold_links(result.program)) result.alike.push_back(link.alike);
  return result;
}

Folded beside(const Program& own, std::span<const FabricJob> others) {
  Program all = own;
  for (const FabricJob& job : others) {
    Loop loop = put_beside(all, job.program, job.name);
    loop.start = job.start;
    all.loops.push_back(loop);
  }
  return folded(std::move(all));
}

Duration time_of(const Folded& job) {
  return run(job.program).makespan;
}

// The columns of the tasks and resources that `own` has: they come first.
Timeline part_of(const Timeline& all, const Program& own) {
  Timeline part;
  part.makespan = all.makespan;
  for (std::uint32_t i = 0; i < own.task_count(); ++i) {
    part.start.push_back(all.start[TaskId(i)]);
    part.end.push_back(all.end[TaskId(i)]);
  }
  for (std::uint32_t i = 0; i < own.resources.size(); ++i)
    part.memory_high_water.push_back(all.memory_high_water[ResourceId(i)]);
  return part;
}

}  // namespace

SharedRun run_together(Program& own, std::span<const FabricJob> others) {
  Folded alone = folded(own);
  const Folded all = others.empty() ? alone : beside(own, others);
  const Timeline timeline = run(all.program);
  const Duration idle = run(alone.program, {.idle_network = true}).makespan;
  SharedRun result{.timeline = part_of(timeline, own),
                   .network = measure_network(all.program, timeline, all.alike, idle)};
  if (others.empty()) {
    result.timeline = timeline;
    own = std::move(alone.program);
    return result;
  }
  result.network.alone_time = time_of(alone);
  for (std::size_t i = 0; i < others.size(); ++i) {
    const FabricJob& job = others[i];
    const std::vector<Duration>& rounds = timeline.rounds[i];
    const auto count = static_cast<std::int64_t>(rounds.size());
    result.network.jobs.push_back(
        {.name = job.name,
         .nodes = job.nodes,
         .alone_time = time_of(folded(job.program)),
         .shared_time = count > 0 ? (rounds.back() - job.start) / count : Duration::zero(),
         .iterations = count,
         .cost = time_of(beside(own, others.subspan(i, 1))) - *result.network.alone_time});
  }
  own = std::move(alone.program);
  return result;
}

}  // namespace stagecraft
