#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "sim/report/rank_passes.hpp"
#include "sim/report/report.hpp"

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

namespace {

// The part of a task's time that lies in the window.
Duration within(const Timeline& timeline, TaskId task, Window window) {
  const Duration from = std::max(timeline.start[task], window.begin);
  const Duration to = std::min(timeline.end[task], window.end);
  return std::max(Duration::zero(), to - from);
}

// Adds a task's time inside the window by category: the parts of a task follow each other.
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

// A pass under which its GPU dies is no work: the time up to the stall is not spent on it.
bool never_ends(const Timeline& timeline, TaskId task) {
  return timeline.stall && std::ranges::binary_search(timeline.stall->stuck, task);
}

// [rank]: the passes of each simulated rank, clipped to the window.
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
      if (never_ends(timeline, task)) continue;
      passes.work += within(timeline, task, window);
      add_within(program, timeline, task, window, passes.by_category);
    }
  }
  return ranks;
}

}  // namespace

std::vector<RankPasses> passes_by_rank(const Program& program, const Timeline& timeline) {
  return passes_within(program, timeline, {.begin = {}, .end = Duration::max()});
}

std::size_t busiest_rank(const std::vector<RankPasses>& ranks) {
  const auto most = std::ranges::max_element(ranks, {}, &RankPasses::work);
  SC_CHECK(most != ranks.end(), "an iteration has a rank");
  return static_cast<std::size_t>(most - ranks.begin());
}

namespace {

const RankPasses& busiest(const std::vector<RankPasses>& ranks) {
  return ranks[busiest_rank(ranks)];
}

}  // namespace

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

IdVector<TaskId, std::optional<TaskId>> tight_predecessors(const Program& program, const Timeline& timeline) {
  IdVector<TaskId, std::optional<TaskId>> tight(program.task_count());
  const auto offer = [&](TaskId before, TaskId after) {
    if (timeline.end[before] != timeline.start[after]) return;
    if (!tight[after] || before < *tight[after]) tight[after] = before;
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

Bubble measure_bubble(const Program& program, const Timeline& timeline, std::span<const int> weights) {
  const std::vector<RankPasses> ranks = passes_by_rank(program, timeline);
  Bubble bubble;
  if (ranks.empty()) return bubble;
  for (const RankPasses& rank : ranks) {
    bubble.makespan = std::max(bubble.makespan, rank.last);
    if (rank.work > Duration::zero()) bubble.span = std::max(bubble.span, rank.last - rank.first);
  }
  bubble.ideal = busiest(ranks).work;
  if (bubble.ideal > Duration::zero()) {
    bubble.over_ideal = static_cast<double>((bubble.makespan - bubble.ideal).count()) /
                        static_cast<double>(bubble.ideal.count());
    bubble.fraction = idle_share(ranks, weights, bubble.makespan);
  }
  return bubble;
}

namespace {

// The chain of tasks that ends with `last`, each starting when the one before it ends.
std::vector<TaskId> chain_to(TaskId last, const Timeline& timeline,
                             const IdVector<TaskId, std::optional<TaskId>>& tight) {
  std::vector<TaskId> path = {last};
  while (timeline.start[path.back()] > Duration::zero()) {
    const std::optional<TaskId> before = tight[path.back()];
    SC_CHECK(before.has_value(), "a task starts at 0 or when another ends");
    path.push_back(*before);
  }
  std::ranges::reverse(path);
  return path;
}

template <class Wanted>
TaskId last_to_end(const Program& program, const Timeline& timeline, const Wanted& wanted) {
  std::optional<TaskId> last;
  for (std::uint32_t t = 0; t < program.task_count(); ++t) {
    if (wanted(TaskId(t)) && (!last || timeline.end[TaskId(t)] > timeline.end[*last])) last = TaskId(t);
  }
  SC_CHECK(last.has_value(), "an iteration has a pass");
  return *last;
}

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

// Splits idle time of a rank: first the exposed communication on the chain, the rest is bubble.
void add_waited(const Breakdown& waited, Duration idle, Breakdown& sum) {
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    const Duration time = std::min(waited[c], idle);
    sum[c] += time;
    idle -= time;
  }
  sum[static_cast<std::size_t>(Category::kBubble)] += idle;
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

std::vector<TaskId> critical_path(const Program& program, const Timeline& timeline) {
  if (program.task_count() == 0) return {};
  const TaskId last = last_to_end(program, timeline, [](TaskId) { return true; });
  return chain_to(last, timeline, tight_predecessors(program, timeline));
}

namespace {

// Shares by name, longest first. `time_in(task)`: the part of the task's time that counts. Joints take no
// time.
template <class TimeIn>
std::vector<PathShare> shares_of(const Program& program, const std::vector<TaskId>& path,
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

}  // namespace

std::vector<PathShare> measure_critical_path(const Program& program, const Timeline& timeline) {
  return shares_of(program, critical_path(program, timeline),
                   [&](TaskId task) { return time_of(timeline, task); });
}

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
  const RankPasses& passes = busiest(ranks);
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
                   [&](TaskId task) { return within(timeline, task, window); });
}

Breakdown measure_steady_breakdown(const Program& program, const Timeline& timeline, Window window) {
  const std::vector<RankPasses> ranks = passes_within(program, timeline, window);
  if (ranks.empty()) return {};
  const RankPasses& passes = busiest(ranks);
  Breakdown breakdown = waited_within(program, timeline, window, window.length() - passes.work);
  for (std::size_t c = 0; c < kCategoryCount; ++c) breakdown[c] += passes.by_category[c];
  return breakdown;
}

namespace {

// An abstract pipeline may cost nothing; then nothing is done in no time, and JSON knows no infinity.
double per_second(double amount, Duration time) {
  return time > Duration::zero() ? amount / to_seconds(time) : 0;
}

}  // namespace

double Report::samples_per_s() const {
  return finishes() ? per_second(static_cast<double>(samples), iteration_time) : 0;
}
double Report::tokens_per_s() const {
  return finishes() ? per_second(static_cast<double>(tokens), iteration_time) : 0;
}
double Report::model_flops_per_gpu_s() const {
  return finishes() ? per_second(model_flops.count(), iteration_time) / gpus : 0;
}
double Report::hardware_flops_per_gpu_s() const {
  return finishes() ? per_second(hardware_flops.count(), iteration_time) / gpus : 0;
}
double Report::mfu() const {
  return peak.count() > 0 ? model_flops_per_gpu_s() / peak.count() : 0;
}
double Report::hfu() const {
  return peak.count() > 0 ? hardware_flops_per_gpu_s() / peak.count() : 0;
}

}  // namespace stagecraft
