#include "sim/engine/link.hpp"

namespace stagecraft {

void Links::admit(TaskId task, Duration now) {
  ends_.push(state_->begin(task, now), task);
}

void Links::advance(Duration now, Instant& instant) {
  ends_.pop_at(now, instant.ended);
}

}  // namespace stagecraft
