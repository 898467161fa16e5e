// Concurrent resources: each runs any number of tasks at once, every one for its own duration.
//
// The same questions as in sim/engine/stream.hpp. Nobody shares, so the time of an end is known at the start
// and stays.
#pragma once

#include <optional>

#include "sim/engine/event_queue.hpp"
#include "sim/engine/run_state.hpp"

namespace stagecraft {

class ConcurrentTasks {
 public:
  explicit ConcurrentTasks(RunState& state) : state_(&state) {}

  // A task has no unfinished predecessors: it starts now.
  void admit(TaskId task, Duration now);
  [[nodiscard]] std::optional<Duration> next_event() const { return ends_.next(); }
  // Ends the tasks that end at `now`, which is not after next_event().
  void advance(Duration now, Instant& instant);

 private:
  RunState* state_;
  EventQueue ends_;
};

}  // namespace stagecraft
