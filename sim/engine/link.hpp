// Links: each carries any number of tasks at once, every one for its own duration (the closed-form network).
//
// The same questions as in sim/engine/stream.hpp. Nobody shares, so the time of an end is known at the start
// and stays.
#pragma once

#include <optional>

#include "sim/engine/event_queue.hpp"
#include "sim/engine/run_state.hpp"

namespace stagecraft {

class Links {
 public:
  explicit Links(RunState& state) : state_(&state) {}

  // A task of a link has no unfinished predecessors: it starts now.
  void admit(TaskId task, Duration now);
  [[nodiscard]] std::optional<Duration> next_event() const { return ends_.next(); }
  // Ends the tasks that end at `now`, which is not after next_event().
  void advance(Duration now, Instant& instant);

 private:
  RunState* state_;
  EventQueue ends_;
};

}  // namespace stagecraft
