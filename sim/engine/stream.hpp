// Streams: each runs one task at a time, in program order, like a CUDA stream.
//
// A resource policy answers two questions, when is your next event and what happens at that time, and is told
// which tasks became ready. The loop knows dates and predecessors, the policy knows sharing.
#pragma once

#include <optional>

#include "sim/engine/event_queue.hpp"
#include "sim/engine/run_state.hpp"

namespace stagecraft {

class Streams {
 public:
  explicit Streams(RunState& state);

  // A task of a stream has no unfinished predecessors. It starts now if it is its turn and the stream is
  // idle.
  void admit(TaskId task, Duration now) {
    Stream& stream = streams_[state_->tasks[task].resource];
    if (stream.busy || stream.head != task) return;  // advance() will find it when its turn comes
    stream.busy = true;
    stream.head = TaskId(task.value() + 1);
    ends_.push(state_->begin(task, now), task);
  }
  [[nodiscard]] std::optional<Duration> next_event() const { return ends_.next(); }
  // Ends the tasks that end at `now`, which is not after next_event(); heads that only waited for their
  // stream become ready.
  void advance(Duration now, Instant& instant);

  // Tasks of this stream before the head have started.
  [[nodiscard]] TaskId head(ResourceId stream) const { return streams_[stream].head; }

 private:
  struct Stream {
    TaskId head;  // the first task that has not started
    TaskId end;
    bool busy = false;
  };

  RunState* state_;
  IdVector<ResourceId, Stream> streams_;  // indexed by every resource; concurrent ones take no part
  EventQueue ends_;
};

}  // namespace stagecraft
