#include "sim/shared_fabric.hpp"

#include <algorithm>
#include <utility>

#include "sim/engine/engine.hpp"
#include "sim/lower/fold_links.hpp"
#include "sim/program/side_by_side.hpp"
#include "sim/report/measure.hpp"

namespace stagecraft {
namespace {

// A program on folded links: those that matter to any job in it.
struct Folded {
  Program program;
  std::vector<int> alike;
};

Folded folded(Program program) {
  Folded result{.program = std::move(program), .alike = {}};
  for (const FoldedLink& link : fold_links(result.program)) result.alike.push_back(link.alike);
  return result;
}

// Each of them again and again, from its start on.
void add_loops(Program& all, std::span<const FabricJob> others) {
  for (const FabricJob& job : others) {
    Loop loop = put_beside(all, job.program, job.name);
    loop.start = job.start;
    all.loops.push_back(loop);
  }
}

Folded beside(const Program& own, std::span<const FabricJob> others) {
  Program all = own;
  add_loops(all, others);
  return folded(std::move(all));
}

Duration time_of(const Folded& job) {
  return run(job.program).makespan;
}

// Makespan when no transfer waits for another.
Duration idle_time(const Folded& job) {
  return run(job.program, {.idle_network = true}).makespan;
}

// A program with one task of this duration, over the links of `own`.
Program beside_clock(const Program& own, Duration duration) {
  ProgramBuilder builder;
  builder.add_task(builder.add_resource({}), duration,
                   builder.add_label({.name = "clock", .parts = {{0, duration}}}));
  Program clock = std::move(builder).build();
  clock.links = own.links;
  return clock;
}

// The job alone, on links that change as those of `own` do.
Program alone_on(const Program& own, const FabricJob& job) {
  Program alone = job.program;
  alone.link_changes = own.link_changes;
  for (LinkChange& change : alone.link_changes) change.time = std::max(change.time - job.start, Duration());
  return alone;
}

// All jobs as loops beside a clock, which runs until `iterations` of ours have ended.
RepeatedReport repeated(const Program& own, std::span<const FabricJob> others, int iterations,
                        Duration first) {
  if (first == Duration::zero())
    return {.iterations = iterations};  // then all later ones take no time either
  std::vector<Duration> ends;
  for (Duration clock = iterations * first; std::ssize(ends) < iterations; clock += iterations * first) {
    Program all = beside_clock(own, clock);
    all.loops.push_back(put_beside(all, own, "ours"));
    add_loops(all, others);
    ends = run(folded(std::move(all)).program).rounds.front();
  }
  ends.resize(static_cast<std::size_t>(iterations));
  RepeatedReport report{.iterations = iterations, .mean = ends.back() / iterations, .least = ends.front()};
  Duration before{};
  for (const Duration end : ends) {
    report.least = std::min(report.least, end - before);
    report.most = std::max(report.most, end - before);
    before = end;
  }
  return report;
}

// The columns of the tasks and resources of `own`, which come first.
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

SharedRun run_alone(Program& own) {
  Folded alone = folded(std::move(own));
  SharedRun result;
  result.timeline = run(alone.program);
  result.network = measure_network(alone.program, result.timeline, alone.alike, idle_time(alone));
  own = std::move(alone.program);
  return result;
}

}  // namespace

SharedRun run_together(Program& own, std::span<const FabricJob> others, int iterations) {
  if (others.empty()) return run_alone(own);
  Folded alone = folded(own);
  const Folded all = beside(own, others);
  const Timeline timeline = run(all.program);
  SharedRun result{.timeline = part_of(timeline, own),
                   .network = measure_network(all.program, timeline, all.alike, idle_time(alone))};
  result.network.alone_time = time_of(alone);
  for (std::size_t i = 0; i < others.size(); ++i) {
    const FabricJob& job = others[i];
    const std::vector<Duration>& rounds = timeline.rounds[i];
    const auto count = static_cast<std::int64_t>(rounds.size());
    result.network.jobs.push_back(
        {.name = job.name,
         .nodes = job.nodes,
         .alone_time = time_of(folded(alone_on(own, job))),
         .shared_time = count > 0 ? (rounds.back() - job.start) / count : Duration::zero(),
         .iterations = count,
         .cost = time_of(beside(own, others.subspan(i, 1))) - *result.network.alone_time});
  }
  if (iterations > 1) result.network.repeated = repeated(own, others, iterations, timeline.makespan);
  own = std::move(alone.program);
  return result;
}

}  // namespace stagecraft
