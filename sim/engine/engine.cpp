#include "sim/engine/engine.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/engine/concurrent.hpp"
#include "sim/engine/deadlock.hpp"
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

// All tasks have run.
Timeline timeline_of(const RunState& state) {
  Timeline timeline;
  const std::size_t tasks = state.program.task_count();
  timeline.start.resize(tasks);
  timeline.end.resize(tasks);
  for (std::uint32_t i = 0; i < tasks; ++i) {
    const TaskId task(i);
    timeline.start[task] = state.tasks[task].start;
    timeline.end[task] = timeline.start[task] + state.tasks[task].duration;
    timeline.makespan = std::max(timeline.makespan, timeline.end[task]);
  }
  timeline.memory_high_water = memory_high_water(state.program, timeline);
  timeline.links.resize(state.program.links.size());
  return timeline;
}

class Run {
 public:
  explicit Run(const Program& program) : state_(program), streams_(state_), concurrent_(state_) {
    kind_.reserve(program.resources.size());
    for (const Resource& resource : program.resources) kind_.push_back(resource.kind);
  }

  Timeline finish() && {
    seed();
    start_ready({});
    while (const std::optional<Duration> now = earlier(streams_.next_event(), concurrent_.next_event())) {
      streams_.advance(*now, instant_);
      concurrent_.advance(*now, instant_);
      end_tasks();
      start_ready(*now);
    }
    SC_CHECK(ended_ == state_.program.task_count(), describe_deadlock(state_.program, has_started()));
    return timeline_of(state_);
  }

 private:
  // Ready at time zero: the first task of a stream, any task of a concurrent resource.
  void seed() {
    const std::vector<std::uint32_t>& begin = state_.program.resource_begin;
    for (std::size_t r = 0; r < kind_.size(); ++r) {
      const bool exclusive = kind_[ResourceId(static_cast<std::uint32_t>(r))] == ResourceKind::kStream;
      const std::uint32_t last = exclusive ? std::min(begin[r] + 1, begin[r + 1]) : begin[r + 1];
      for (std::uint32_t i = begin[r]; i < last; ++i)
        if (state_.tasks[TaskId(i)].waiting == 0) instant_.ready.emplace_back(i);
    }
  }

  void end_tasks() {
    std::sort(instant_.ended.begin(), instant_.ended.end());
    for (const TaskId task : instant_.ended)
      for (const TaskId after : state_.successors_of(task)) {
        state_.prefetch(after);
        released_.push_back(after);
      }
    for (const TaskId after : released_)
      if (--state_.tasks[after].waiting == 0) instant_.ready.push_back(after);
    ended_ += instant_.ended.size();
    released_.clear();
    instant_.ended.clear();
  }

  void start_ready(Duration now) {
    std::sort(instant_.ready.begin(), instant_.ready.end());
    for (const TaskId task : instant_.ready) {
      if (kind_[state_.tasks[task].resource] == ResourceKind::kStream)
        streams_.admit(task, now);
      else
        concurrent_.admit(task, now);
    }
    instant_.ready.clear();
  }

  // When the loop is over, whoever has started has ended.
  [[nodiscard]] IdVector<TaskId, bool> has_started() const {
    IdVector<TaskId, bool> started(state_.program.task_count());
    for (std::uint32_t i = 0; i < started.size(); ++i) {
      const ResourceId resource = state_.tasks[TaskId(i)].resource;
      started[TaskId(i)] = kind_[resource] == ResourceKind::kStream ? TaskId(i) < streams_.head(resource)
                                                                    : state_.tasks[TaskId(i)].waiting == 0;
    }
    return started;
  }

  RunState state_;
  Streams streams_;
  ConcurrentTasks concurrent_;
  IdVector<ResourceId, ResourceKind> kind_;
  Instant instant_;
  std::vector<TaskId> released_;  // successors of what ended at this instant, once per edge
  std::size_t ended_ = 0;
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

Timeline run(const Program& program, const RunOptions&) {
  return Run(program).finish();
}

}  // namespace stagecraft
