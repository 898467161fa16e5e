// What one run knows: made by run(), gone with it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/engine.hpp"

namespace stagecraft {

// Side by side, because a large program meets its tasks in no order that a cache could guess.
struct TaskState {
  Duration start{};
  std::uint32_t waiting = 0;  // explicit predecessors that have not ended
  ResourceId resource;        // Program::resource_of, looked up once
};

struct RunState {
  explicit RunState(const Program& p);

  // The task starts at `now` and, its duration being fixed, will end at the returned time.
  Duration begin(TaskId task, Duration now) {
    tasks[task].start = now;
    return now + program.duration[task];
  }

  // Ask for what the loop will soon read of a task. On a large program most of its time is waiting for memory.
  void prefetch(TaskId task) const {
    __builtin_prefetch(&tasks[task]);
    __builtin_prefetch(&program.duration[task]);
  }
  void prefetch_successors(TaskId task) const {
    __builtin_prefetch(&program.successor_begin[task.index()]);
  }

  const Program& program;
  IdVector<TaskId, TaskState> tasks;
};

// What happens at one moment, in two phases.
//   ended   first: whoever ends at an instant frees its resource and its successors for that same instant.
//   ready   then: these may start, because all that ends at this instant has ended.
// Both are worked off in the order of TaskId.
struct Instant {
  std::vector<TaskId> ended;
  std::vector<TaskId> ready;
};

}  // namespace stagecraft
