#include "sim/engine/stream.hpp"

namespace stagecraft {

Streams::Streams(RunState& state) : state_(&state) {
  const std::vector<std::uint32_t>& begin = state.program.resource_begin;
  streams_.reserve(state.program.resources.size());
  for (std::size_t r = 0; r < state.program.resources.size(); ++r)
    streams_.push_back({.head = TaskId(begin[r]), .end = TaskId(begin[r + 1])});
}

void Streams::admit(TaskId task, Duration now) {
  Stream& stream = streams_[state_->resource[task]];
  if (stream.busy || stream.head != task) return;  // advance() will find it when its turn comes
  stream.busy = true;
  stream.head = TaskId(task.value() + 1);
  ends_.push(state_->begin(task, now), task);
}

void Streams::advance(Duration now, Instant& instant) {
  const std::size_t first = instant.ended.size();
  ends_.pop_at(now, instant.ended);
  for (std::size_t i = first; i < instant.ended.size(); ++i) {
    Stream& stream = streams_[state_->resource[instant.ended[i]]];
    stream.busy = false;
    if (stream.head != stream.end && state_->waiting[stream.head] == 0) instant.ready.push_back(stream.head);
  }
}

}  // namespace stagecraft
