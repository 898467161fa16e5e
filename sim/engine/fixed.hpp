// Tasks whose time nothing can change: the end is known at the start and stays.
//
// A policy for running tasks answers two questions (when is the next event, and what happens then) and learns
// which tasks start. The loop knows times and predecessors; the policy knows which tasks slow each other.
// Here none do; in sim/engine/fluid.hpp tasks that share a link or a device do.
#pragma once

#include <optional>

#include "sim/engine/event_queue.hpp"
#include "sim/engine/run_state.hpp"

namespace stagecraft {

class FixedTasks {
 public:
  explicit FixedTasks(RunState& state) : state_(&state) {}

  void begin(TaskId task, Duration now) {
    state_->tasks[task].start = now;
    ends_.push(now + state_->tasks[task].duration, task);
  }
  [[nodiscard]] std::optional<Duration> next_event() const { return ends_.next(); }
  // Ends the tasks that end at `now`, which is not after next_event().
  void advance(Duration now, Instant& instant) { ends_.pop_at(now, instant.ended); }

 private:
  RunState* state_;
  EventQueue ends_;
};

}  // namespace stagecraft
