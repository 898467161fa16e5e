// What one run knows: made by run(), gone with it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/engine.hpp"

namespace stagecraft {

struct RunState {
  explicit RunState(const Program& p);

  // The task starts at `now` and, its duration being fixed, will end at the returned time.
  Duration begin(TaskId task, Duration now) {
    timeline.start[task] = now;
    return timeline.end[task] = now + program.duration[task];
  }

  const Program& program;
  IdVector<TaskId, std::uint32_t> waiting;  // explicit predecessors that have not ended
  IdVector<TaskId, ResourceId> resource;    // Program::resource_of as a table
  Timeline timeline;
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
