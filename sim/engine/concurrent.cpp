#include "sim/engine/concurrent.hpp"

namespace stagecraft {

void ConcurrentTasks::admit(TaskId task, Duration now) {
  ends_.push(state_->begin(task, now), task);
}

void ConcurrentTasks::advance(Duration now, Instant& instant) {
  ends_.pop_at(now, instant.ended);
}

}  // namespace stagecraft
