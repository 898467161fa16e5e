#include "sim/engine/engine.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/engine/deadlock.hpp"
#include "sim/engine/fixed.hpp"
#include "sim/engine/fluid.hpp"
#include "sim/engine/loops.hpp"
#include "sim/engine/memory_high_water.hpp"
#include "sim/engine/run_state.hpp"
#include "sim/engine/stream.hpp"

namespace stagecraft {
namespace {

std::optional<Duration> earlier(const std::optional<Duration>& a, const std::optional<Duration>& b) {
  if (a && b) return std::min(*a, *b);
  if (a) return *a;
  if (b) return *b;
  return std::nullopt;
}

class Run {
 public:
  Run(const Program& program, const RunOptions& options)
      : state_(program), streams_(state_), loops_(state_, streams_), fixed_(state_) {
    if (FluidTasks::are_in(program)) fluid_.emplace(state_, options);
    has_ended_.resize(may_end_early() ? program.task_count() : 0);
  }

  Timeline finish() && {
    seed();
    loops_.start({}, instant_);
    start_ready({});
    Duration now{};
    while (ended_ < loops_.others()) {
      const std::optional<Duration> next = next_event(now);
      if (!next) break;
      now = *next;
      fixed_.advance(now, instant_);
      if (fluid_) fluid_->advance(now, instant_);
      end_tasks(now);
      if (!loops_.none()) loops_.start(now, instant_);
      start_ready(now);
    }
    if (ended_ < loops_.others())
      SC_CHECK(fluid_ && fluid_->stand_still(), describe_deadlock(state_.program, has_started()));
    Timeline timeline = timeline_of(ended_ < loops_.others() ? rest() : now);
    if (fluid_) std::move(*fluid_).report(timeline, now);
    std::move(loops_).report(timeline);
    return timeline;
  }

 private:
  // Ready at time zero: the first task of a stream, any task of a concurrent resource.
  void seed() {
    const std::vector<std::uint32_t>& begin = state_.program.resource_begin;
    for (std::uint32_t r = 0; r + 1 < begin.size(); ++r) {
      const std::uint32_t last =
          streams_.is_exclusive(ResourceId(r)) ? std::min(begin[r] + 1, begin[r + 1]) : begin[r + 1];
      if (begin[r] < last && loops_.has(TaskId(begin[r]))) continue;
      for (std::uint32_t i = begin[r]; i < last; ++i)
        if (state_.tasks[TaskId(i)].waiting == 0) instant_.ready.emplace_back(i);
    }
  }

  // Speeds are found once per instant: when nothing more starts or ends at `now`.
  std::optional<Duration> next_event(Duration now) {
    const std::optional<Duration> fixed = earlier(fixed_.next_event(), loops_.next_start());
    if (!fluid_) return fixed;
    if (!fixed || *fixed > now) fluid_->settle(now);
    return earlier(fixed, fluid_->next_event());
  }

  void end_tasks(Duration now) {
    for (const TaskId task : instant_.ended) state_.prefetch(task);
    for (const TaskId task : instant_.ended) {
      state_.prefetch_successors(task);
      streams_.release(task, instant_);
      if (fluid_) fluid_->ended(task);
    }
    std::sort(instant_.ended.begin(), instant_.ended.end());
    for (const TaskId task : instant_.ended)
      for (const TaskId after : state_.successors_of(task)) {
        state_.prefetch(after);
        released_.push_back(after);
      }
    for (const TaskId after : released_)
      if (--state_.tasks[after].waiting == 0) instant_.ready.push_back(after);
    if (has_ended_.empty()) {
      ended_ += instant_.ended.size();
    } else {
      for (const TaskId task : instant_.ended) {
        has_ended_[task] = true;
        if (!loops_.ended(task)) ++ended_;
      }
      if (!instant_.ended.empty()) last_end_ = now;
    }
    released_.clear();
    instant_.ended.clear();
  }

  void start_ready(Duration now) {
    std::sort(instant_.ready.begin(), instant_.ready.end());
    if (fluid_)
      for (const TaskId task : instant_.ready) fluid_->prefetch(task);
    for (const TaskId task : instant_.ready)
      if (streams_.admit(task) && !(fluid_ && fluid_->begin(task, now))) fixed_.begin(task, now);
    instant_.ready.clear();
  }

  // Then it has to be noted who has ended.
  [[nodiscard]] bool may_end_early() const { return !loops_.none() || !state_.program.speed_changes.empty(); }

  // Time after which a stalled program makes no progress.
  [[nodiscard]] Duration rest() const {
    Duration time = last_end_;
    for (const SpeedChange& change : state_.program.speed_changes)
      if (change.speed == 0) time = std::max(time, change.time);
    return time;
  }

  [[nodiscard]] Timeline timeline_of(Duration now) const {
    Timeline timeline;
    const std::size_t tasks = state_.program.task_count();
    timeline.start.resize(tasks);
    timeline.end.resize(tasks);
    const bool stalls = ended_ < loops_.others();
    if (stalls) timeline.stall.emplace();
    for (std::uint32_t i = 0; i < tasks; ++i) {
      const TaskId task(i);
      timeline.start[task] = state_.tasks[task].start;
      timeline.end[task] = timeline.start[task] + state_.tasks[task].duration;
      if (!has_ended_.empty() && !has_ended_[task]) cut_off(timeline, task, now);
      if (loops_.none() || !loops_.has(task))
        timeline.makespan = std::max(timeline.makespan, timeline.end[task]);
    }
    if (stalls) timeline.stall->time = now;
    timeline.memory_high_water = memory_high_water(state_.program, timeline);
    timeline.links.resize(state_.program.links.size());
    return timeline;
  }

  // Cuts off a task that has not ended when all is over.
  void cut_off(Timeline& timeline, TaskId task, Duration now) const {
    const bool began = state_.tasks[task].waiting == 0 && has_begun(task);
    if (!began) timeline.start[task] = now;
    timeline.end[task] = now;
    if (timeline.stall) (began ? timeline.stall->stuck : timeline.stall->waiting).push_back(task);
  }

  [[nodiscard]] bool has_begun(TaskId task) const {
    const ResourceId resource = state_.tasks[task].resource;
    return streams_.is_exclusive(resource) ? task < streams_.head(resource) : state_.tasks[task].waiting == 0;
  }

  // After the loop, every task that has started has also ended.
  [[nodiscard]] IdVector<TaskId, bool> has_started() const {
    IdVector<TaskId, bool> started(state_.program.task_count());
    for (std::uint32_t i = 0; i < started.size(); ++i) started[TaskId(i)] = has_begun(TaskId(i));
    return started;
  }

  RunState state_;
  Streams streams_;
  Loops loops_;
  FixedTasks fixed_;
  std::optional<FluidTasks> fluid_;
  Instant instant_;
  std::vector<TaskId> released_;      // successors of the tasks that ended at this instant, once per edge
  std::size_t ended_ = 0;             // outside of loops
  Duration last_end_{};               // latest end noted so far
  IdVector<TaskId, bool> has_ended_;  // empty where every task ends in any case
};

}  // namespace

RunState::RunState(const Program& p) : program(p), tasks(p.task_count()) {
  for (std::size_t r = 0; r < p.resources.size(); ++r)
    for (std::uint32_t i = p.resource_begin[r]; i < p.resource_begin[r + 1]; ++i) {
      TaskState& task = tasks[TaskId(i)];
      task.duration = p.duration[TaskId(i)];
      task.resource = ResourceId(static_cast<std::uint32_t>(r));
      task.successor_begin = p.successor_begin[i];
      task.successor_count = p.successor_begin[i + 1] - p.successor_begin[i];
    }
  for (const TaskId after : p.successors) ++tasks[after].waiting;
}

Timeline run(const Program& program, const RunOptions& options) {
  return Run(program, options).finish();
}

}  // namespace stagecraft
