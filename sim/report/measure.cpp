#include <algorithm>
#include <limits>
#include <vector>

#include "base/check.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {
namespace {

// A pass is a task with a stage: what the pipeline exists for.
bool is_pass(const Program& program, TaskId task) {
  return program.labels[program.label[task]].stage >= 0;
}

struct RankPasses {
  Duration work{}, first{Duration::max()}, last{};
  std::array<Duration, kCategoryCount> by_category{};
};

// Passes of each simulated rank, in the order of ranks.
std::vector<RankPasses> passes_by_rank(const Program& program, const Timeline& timeline) {
  std::vector<RankPasses> ranks;
  for (std::size_t r = 0; r < program.resources.size(); ++r) {
    const Resource& resource = program.resources[ResourceId(static_cast<std::uint32_t>(r))];
    if (resource.kind != ResourceKind::kStream) continue;
    const auto rank = static_cast<std::size_t>(resource.rank);
    if (ranks.size() <= rank) ranks.resize(rank + 1);
    for (std::uint32_t t = program.resource_begin[r]; t < program.resource_begin[r + 1]; ++t) {
      const TaskId task(t);
      if (!is_pass(program, task)) continue;
      RankPasses& passes = ranks[rank];
      passes.work += program.duration[task];
      passes.first = std::min(passes.first, timeline.start[task]);
      passes.last = std::max(passes.last, timeline.end[task]);
      for (const TaskPart& part : program.labels[program.label[task]].parts) {
        passes.by_category[static_cast<std::size_t>(part.category)] += part.time;
      }
    }
  }
  return ranks;
}

const RankPasses& busiest(const std::vector<RankPasses>& ranks) {
  return *std::max_element(ranks.begin(), ranks.end(),
                           [](const RankPasses& a, const RankPasses& b) { return a.work < b.work; });
}

// For each task the first predecessor (lowest id; the one before it on its stream counts) that ended when it
// started.
std::vector<std::uint32_t> tight_predecessors(const Program& program, const Timeline& timeline) {
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> tight(program.task_count(), kNone);
  const auto offer = [&](TaskId before, TaskId after) {
    if (timeline.end[before] == timeline.start[after]) {
      tight[after.index()] = std::min(tight[after.index()], before.value());
    }
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

}  // namespace

Bubble measure_bubble(const Program& program, const Timeline& timeline) {
  const std::vector<RankPasses> ranks = passes_by_rank(program, timeline);
  Bubble bubble;
  if (ranks.empty()) return bubble;
  Duration work{};
  for (const RankPasses& rank : ranks) {
    bubble.makespan = std::max(bubble.makespan, rank.last);
    if (rank.work > Duration::zero()) bubble.span = std::max(bubble.span, rank.last - rank.first);
    work += rank.work;
  }
  bubble.ideal = busiest(ranks).work;
  if (bubble.ideal > Duration::zero()) {
    bubble.over_ideal = to_seconds(bubble.makespan - bubble.ideal) / to_seconds(bubble.ideal);
    bubble.fraction =
        1 - to_seconds(work) / (to_seconds(bubble.makespan) * static_cast<double>(ranks.size()));
  }
  return bubble;
}

std::vector<TaskId> critical_path(const Program& program, const Timeline& timeline) {
  std::vector<TaskId> path;
  if (program.task_count() == 0) return path;
  const std::vector<std::uint32_t> tight = tight_predecessors(program, timeline);
  std::uint32_t at = 0;
  while (timeline.end[TaskId(at)] != timeline.makespan) ++at;
  while (true) {
    path.push_back(TaskId(at));
    if (timeline.start[TaskId(at)] == Duration::zero()) break;
    SC_CHECK(tight[at] < program.task_count(), "a task starts at 0 or when another ends");
    SC_CHECK(path.size() <= program.task_count(), "the critical path has no cycle");
    at = tight[at];
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::array<Duration, kCategoryCount> measure_breakdown(const Program& program, const Timeline& timeline) {
  std::array<Duration, kCategoryCount> breakdown{};
  if (program.task_count() == 0) return breakdown;
  Duration on_path{};
  for (const TaskId task : critical_path(program, timeline)) {
    if (is_pass(program, task)) continue;
    for (const TaskPart& part : program.labels[program.label[task]].parts) {
      breakdown[static_cast<std::size_t>(part.category)] += part.time;
      on_path += part.time;
    }
  }
  const RankPasses passes = busiest(passes_by_rank(program, timeline));
  // Passes as the busiest rank has them. Where the path waits for other ranks' passes, that rank idles: the
  // bubble. If messages on the path ran beside the busiest rank's own work, they were not exposed by so much.
  Duration rest = timeline.makespan - passes.work - on_path;
  for (const Category hidden :
       {Category::kPipelineComm, Category::kDataComm, Category::kOptimizer, Category::kOther}) {
    if (rest >= Duration::zero()) break;
    Duration& time = breakdown[static_cast<std::size_t>(hidden)];
    const Duration taken = std::min(time, -rest);
    time -= taken;
    rest += taken;
  }
  SC_CHECK(rest >= Duration::zero(), "the busiest rank works no longer than the iteration lasts");
  for (std::size_t c = 0; c < kCategoryCount; ++c) breakdown[c] += passes.by_category[c];
  breakdown[static_cast<std::size_t>(Category::kBubble)] += rest;
  return breakdown;
}

double Report::samples_per_s() const {
  return static_cast<double>(samples) / to_seconds(iteration_time);
}
double Report::tokens_per_s() const {
  return static_cast<double>(tokens) / to_seconds(iteration_time);
}
double Report::model_flops_per_gpu_s() const {
  return model_flops.count() / to_seconds(iteration_time) / gpus;
}
double Report::hardware_flops_per_gpu_s() const {
  return hardware_flops.count() / to_seconds(iteration_time) / gpus;
}
double Report::mfu() const {
  return peak.count() > 0 ? model_flops_per_gpu_s() / peak.count() : 0;
}
double Report::hfu() const {
  return peak.count() > 0 ? hardware_flops_per_gpu_s() / peak.count() : 0;
}

}  // namespace stagecraft
