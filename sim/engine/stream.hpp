// Streams: each runs one task at a time, in program order, like a CUDA stream.
//
// Streams decide the order of tasks; sim/engine/fixed.hpp and sim/engine/fluid.hpp decide their durations.
#pragma once

#include "sim/engine/run_state.hpp"

namespace stagecraft {

class Streams {
 public:
  explicit Streams(RunState& state);

  // A task has no unfinished predecessors. Returns whether it starts now: it is first in its idle stream, or
  // its resource is concurrent. Otherwise release() starts it in its turn.
  [[nodiscard]] bool admit(TaskId task) {
    Stream& stream = streams_[state_->tasks[task].resource];
    if (!stream.exclusive) return true;
    if (stream.busy || stream.head != task) return false;
    stream.busy = true;
    stream.head = TaskId(task.value() + 1);
    return true;
  }
  // A task has ended. The head of its stream becomes ready if it waited only for its turn.
  void release(TaskId task, Instant& instant) {
    Stream& stream = streams_[state_->tasks[task].resource];
    if (!stream.exclusive) return;
    stream.busy = false;
    if (stream.head != stream.end && state_->tasks[stream.head].waiting == 0)
      instant.ready.push_back(stream.head);
  }

  // All of the resource's tasks have ended and are to run again.
  void restart(ResourceId resource);

  [[nodiscard]] bool is_exclusive(ResourceId resource) const { return streams_[resource].exclusive; }
  // Tasks of this stream before the head have started.
  [[nodiscard]] TaskId head(ResourceId stream) const { return streams_[stream].head; }

 private:
  struct Stream {
    TaskId head;  // the first task that has not started
    TaskId end;
    bool exclusive = true;
    bool busy = false;
  };

  RunState* state_;
  IdVector<ResourceId, Stream> streams_;  // indexed by every resource
};

}  // namespace stagecraft
