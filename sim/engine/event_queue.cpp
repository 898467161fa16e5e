#include "sim/engine/event_queue.hpp"

namespace stagecraft {

void EventQueue::pop_at(Duration now, std::vector<TaskId>& out) {
  if (occupied_ == 0 || earliest_[lowest()] > now) return;
  const std::size_t bucket = lowest();
  SC_CHECK(earliest_[bucket] == now, "an event was passed over");
  present_ = now;
  occupied_ &= occupied_ - 1;
  for (const Event& event : buckets_[bucket]) {
    if (event.time == now)
      out.push_back(event.task);
    else
      push(event.time, event.task);  // to a lower bucket: it now shares more bits with the present
  }
  buckets_[bucket].clear();
}

}  // namespace stagecraft
