#include "sim/engine/stream.hpp"

namespace stagecraft {

Streams::Streams(RunState& state) : state_(&state) {
  const std::vector<std::uint32_t>& begin = state.program.resource_begin;
  streams_.reserve(state.program.resources.size());
  for (std::size_t r = 0; r < state.program.resources.size(); ++r)
    streams_.push_back({.head = TaskId(begin[r]), .end = TaskId(begin[r + 1])});
}

void Streams::advance(Duration now, Instant& instant) {
  const std::size_t first = instant.ended.size();
  ends_.pop_at(now, instant.ended);
  for (std::size_t i = first; i < instant.ended.size(); ++i) state_->prefetch(instant.ended[i]);
  for (std::size_t i = first; i < instant.ended.size(); ++i) {
    const TaskId task = instant.ended[i];
    Stream& stream = streams_[state_->tasks[task].resource];
    state_->prefetch_successors(task);
    stream.busy = false;
    if (stream.head != stream.end && state_->tasks[stream.head].waiting == 0)
      instant.ready.push_back(stream.head);
  }
}

}  // namespace stagecraft
