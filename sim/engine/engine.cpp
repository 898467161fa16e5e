#include "sim/engine/engine.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/engine/deadlock.hpp"
#include "sim/engine/link.hpp"
#include "sim/engine/memory_high_water.hpp"
#include "sim/engine/run_state.hpp"
#include "sim/engine/stream.hpp"

namespace stagecraft {
namespace {

std::optional<Duration> earlier(std::optional<Duration> a, std::optional<Duration> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

class Run {
 public:
  explicit Run(const Program& program) : state_(program), streams_(state_), links_(state_) {
    kind_.reserve(program.resources.size());
    for (const Resource& resource : program.resources) kind_.push_back(resource.kind);
  }

  Timeline finish() && {
    seed();
    start_ready({});
    while (const std::optional<Duration> now = earlier(streams_.next_event(), links_.next_event())) {
      streams_.advance(*now, instant_);
      links_.advance(*now, instant_);
      end_tasks();
      start_ready(*now);
      state_.timeline.makespan = *now;
    }
    SC_CHECK(ended_ == state_.program.task_count(), describe_deadlock(state_.program, has_started()));
    state_.timeline.memory_high_water = memory_high_water(state_.program, state_.timeline);
    return std::move(state_.timeline);
  }

 private:
  // Ready at time zero: the first task of a stream, any task of a link.
  void seed() {
    const std::vector<std::uint32_t>& begin = state_.program.resource_begin;
    for (std::size_t r = 0; r < kind_.size(); ++r) {
      const bool exclusive = kind_[ResourceId(static_cast<std::uint32_t>(r))] == ResourceKind::kStream;
      const std::uint32_t last = exclusive ? std::min(begin[r] + 1, begin[r + 1]) : begin[r + 1];
      for (std::uint32_t i = begin[r]; i < last; ++i)
        if (state_.waiting[TaskId(i)] == 0) instant_.ready.push_back(TaskId(i));
    }
  }

  void end_tasks() {
    std::sort(instant_.ended.begin(), instant_.ended.end());
    for (const TaskId task : instant_.ended)
      for (const TaskId after : state_.program.successors_of(task))
        if (--state_.waiting[after] == 0) instant_.ready.push_back(after);
    ended_ += instant_.ended.size();
    instant_.ended.clear();
  }

  void start_ready(Duration now) {
    std::sort(instant_.ready.begin(), instant_.ready.end());
    for (const TaskId task : instant_.ready) {
      if (kind_[state_.resource[task]] == ResourceKind::kStream)
        streams_.admit(task, now);
      else
        links_.admit(task, now);
    }
    instant_.ready.clear();
  }

  // When the loop is over, whoever has started has ended.
  [[nodiscard]] IdVector<TaskId, bool> has_started() const {
    IdVector<TaskId, bool> started(state_.program.task_count());
    for (std::uint32_t i = 0; i < started.size(); ++i) {
      const ResourceId resource = state_.resource[TaskId(i)];
      started[TaskId(i)] = kind_[resource] == ResourceKind::kStream ? TaskId(i) < streams_.head(resource)
                                                                    : state_.waiting[TaskId(i)] == 0;
    }
    return started;
  }

  RunState state_;
  Streams streams_;
  Links links_;
  IdVector<ResourceId, ResourceKind> kind_;
  Instant instant_;
  std::size_t ended_ = 0;
};

}  // namespace

RunState::RunState(const Program& p) : program(p), waiting(p.task_count()), resource(p.task_count()) {
  timeline.start.resize(p.task_count());
  timeline.end.resize(p.task_count());
  for (const TaskId after : p.successors) ++waiting[after];
  for (std::size_t r = 0; r < p.resources.size(); ++r)
    std::fill(resource.begin() + p.resource_begin[r], resource.begin() + p.resource_begin[r + 1],
              ResourceId(static_cast<std::uint32_t>(r)));
}

Timeline run(const Program& program) {
  return Run(program).finish();
}

}  // namespace stagecraft
