#include "sim/report/rank_passes.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "sim/report/measure_parts.hpp"

namespace stagecraft {

namespace {

// `time` stretched by actual/nominal, rounded down.
Duration scaled(Duration time, Duration actual, Duration nominal) {
  const double factor = to_seconds(actual) / to_seconds(nominal);
  return Duration(static_cast<std::int64_t>(static_cast<double>(time.count()) * factor));
}

}  // namespace

bool is_pass(const Program& program, TaskId task) {
  return program.labels[program.label[task]].stage >= 0;
}

Duration time_of(const Timeline& timeline, TaskId task) {
  return timeline.end[task] - timeline.start[task];
}

std::vector<TaskPart> parts_of(const Program& program, const Timeline& timeline, TaskId task) {
  std::vector<TaskPart> parts = program.labels[program.label[task]].parts;
  const Duration actual = time_of(timeline, task), nominal = program.duration[task];
  if (actual == nominal || parts.empty()) return parts;
  Duration rest = actual;
  for (TaskPart& part : parts) {
    part.time = &part == &parts.back() ? rest : std::min(rest, scaled(part.time, actual, nominal));
    rest -= part.time;
  }
  return parts;
}

Duration time_within(const Timeline& timeline, TaskId task, Window window) {
  const Duration from = std::max(timeline.start[task], window.begin);
  const Duration to = std::min(timeline.end[task], window.end);
  return std::max(Duration::zero(), to - from);
}

void add_within(const Program& program, const Timeline& timeline, TaskId task, Window window,
                Breakdown& sum) {
  Duration at = timeline.start[task];
  for (const TaskPart& part : parts_of(program, timeline, task)) {
    const Duration from = std::max(at, window.begin);
    const Duration to = std::min(at + part.time, window.end);
    if (to > from) sum[static_cast<std::size_t>(part.category)] += to - from;
    at += part.time;
  }
}

std::vector<RankPasses> passes_within(const Program& program, const Timeline& timeline, Window window) {
  std::vector<RankPasses> ranks;
  for (std::uint32_t r = 0; r < program.resources.size(); ++r) {
    const Resource& resource = program.resources[ResourceId(r)];
    if (resource.kind != ResourceKind::kStream) continue;
    const auto rank = static_cast<std::size_t>(resource.rank);
    if (ranks.size() <= rank) ranks.resize(rank + 1);
    for (std::uint32_t t = program.resource_begin[r]; t < program.resource_begin[r + 1]; ++t) {
      const TaskId task(t);
      if (!is_pass(program, task)) continue;
      RankPasses& passes = ranks[rank];
      passes.first = std::min(passes.first, timeline.start[task]);
      passes.last = std::max(passes.last, timeline.end[task]);
      // A pass under which its GPU dies is no work: the time up to the stall is not spent on it.
      if (timeline.is_stuck(task)) continue;
      passes.work += time_within(timeline, task, window);
      add_within(program, timeline, task, window, passes.by_category);
    }
  }
  return ranks;
}

std::vector<RankPasses> passes_by_rank(const Program& program, const Timeline& timeline) {
  return passes_within(program, timeline, {.begin = {}, .end = Duration::max()});
}

std::size_t busiest_rank(const std::vector<RankPasses>& ranks) {
  const auto most = std::ranges::max_element(ranks, {}, &RankPasses::work);
  SC_CHECK(most != ranks.end(), "an iteration has a rank");
  return static_cast<std::size_t>(most - ranks.begin());
}

// 1 - work / (makespan * ranks), with the fraction reduced first, so that any number of equal replicas gives
// the same bits; of work beyond 292 years it is rounded.
double idle_share(std::span<const RankPasses> ranks, std::span<const int> weights, Duration makespan) {
  const std::size_t of_copy = weights.empty() ? ranks.size() : ranks.size() / weights.size();
  const auto weight_of = [&](std::size_t rank) { return weights.empty() ? 1 : weights[rank / of_copy]; };
  double about = 0;
  std::int64_t all = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    about += weight_of(rank) * static_cast<double>(ranks[rank].work.count());
    all += weight_of(rank);
  }
  const double time = static_cast<double>(makespan.count());
  constexpr double kMostCounted = 9e18;  // nanoseconds, of 2^63
  if (about > kMostCounted) return 1 - about / static_cast<double>(all) / time;
  std::int64_t work = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) work += weight_of(rank) * ranks[rank].work.count();
  const std::int64_t common = std::gcd(work, all);
  return 1 - static_cast<double>(work / common) / (time * static_cast<double>(all / common));
}

}  // namespace stagecraft
