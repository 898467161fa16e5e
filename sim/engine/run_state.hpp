// State of one run: made by run(), destroyed with it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/engine.hpp"

namespace stagecraft {

// Every field of a task that the loop reads and writes, in half a cache line. A large program visits its
// tasks in an unpredictable order, and memory latency is most of its time. So duration and successors are
// copied here from the program's columns.
struct TaskState {
  Duration start{};
  Duration duration{};        // as it should be at first, as it was when the task has ended
  std::uint32_t waiting = 0;  // explicit predecessors that have not ended
  ResourceId resource;
  std::uint32_t successor_begin = 0;
  std::uint32_t successor_count = 0;
};

struct RunState {
  explicit RunState(const Program& p);

  [[nodiscard]] std::span<const TaskId> successors_of(TaskId task) const {
    return {program.successors.data() + tasks[task].successor_begin, tasks[task].successor_count};
  }

  // The loop will soon read what these name.
  void prefetch(TaskId task) const { __builtin_prefetch(&tasks[task]); }
  void prefetch_successors(TaskId task) const { __builtin_prefetch(successors_of(task).data()); }

  const Program& program;
  IdVector<TaskId, TaskState> tasks;
};

// The events of one instant, in two phases.
//   ended   first: whoever ends at an instant frees its resource and its successors for that same instant.
//   ready   then: these may start, because all that ends at this instant has ended.
// Both are worked off in the order of TaskId.
struct Instant {
  std::vector<TaskId> ended;
  std::vector<TaskId> ready;
};

}  // namespace stagecraft
