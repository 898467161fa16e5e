#include "sim/engine/loops.hpp"

#include <algorithm>
#include <utility>

namespace stagecraft {

Loops::Loops(RunState& state, Streams& streams)
    : state_(&state), streams_(&streams), others_(state.program.task_count()) {
  const Program& program = state.program;
  for (const Loop& given : program.loops) {
    Round loop{.first = given.first,
               .end = given.end,
               .begin_task = TaskId(program.resource_begin[given.first.index()]),
               .end_task = TaskId(program.resource_begin[given.end.index()]),
               .start = given.start,
               .waiting = {},
               .first_round = {},
               .ends = {}};
    loop.left = loop.end_task.value() - loop.begin_task.value();
    SC_CHECK(loop.left > 0 && (loops_.empty() || loops_.back().end_task <= loop.begin_task),
             "a loop has tasks, and no other has them");
    for (TaskId task = loop.begin_task; task < loop.end_task; task = TaskId(task.value() + 1))
      loop.waiting.push_back(state.tasks[task].waiting);
    others_ -= loop.left;
    loops_.push_back(std::move(loop));
  }
}

const Loops::Round* Loops::find(TaskId task) const {
  for (const Round& loop : loops_)
    if (loop.begin_task <= task && task < loop.end_task) return &loop;
  return nullptr;
}

bool Loops::ended(TaskId task) {
  for (Round& loop : loops_) {
    if (task < loop.begin_task || loop.end_task <= task) continue;
    --loop.left;
    return true;
  }
  return false;
}

std::optional<Duration> Loops::next_start() const {
  std::optional<Duration> next;
  for (const Round& loop : loops_)
    if (!loop.has_started) next = next ? std::min(*next, loop.start) : loop.start;
  return next;
}

void Loops::start(Duration now, Instant& instant) {
  for (Round& loop : loops_) {
    if (!loop.has_started) {
      if (loop.start > now) continue;
      loop.has_started = true;
      make_ready(loop, instant);
    } else if (loop.left == 0) {
      if (loop.ends.empty() || loop.ends.back() < now) loop.ends.push_back(now);
      if (loop.start == now) continue;
      rewind(loop);
      loop.start = now;
      make_ready(loop, instant);
    }
  }
}

void Loops::make_ready(const Round& loop, Instant& instant) const {
  const std::vector<std::uint32_t>& begin = state_->program.resource_begin;
  for (std::size_t r = loop.first.index(); r < loop.end.index(); ++r) {
    const bool exclusive = streams_->is_exclusive(ResourceId(static_cast<std::uint32_t>(r)));
    const std::uint32_t last = exclusive ? std::min(begin[r] + 1, begin[r + 1]) : begin[r + 1];
    for (std::uint32_t i = begin[r]; i < last; ++i)
      if (state_->tasks[TaskId(i)].waiting == 0) instant.ready.emplace_back(i);
  }
}

void Loops::rewind(Round& loop) {
  const bool is_first = loop.first_round.empty();
  for (TaskId task = loop.begin_task; task < loop.end_task; task = TaskId(task.value() + 1)) {
    TaskState& state = state_->tasks[task];
    if (is_first) loop.first_round.push_back(state);
    state.duration = state_->program.duration[task];
    state.waiting = loop.waiting[task.index() - loop.begin_task.index()];
  }
  for (ResourceId r = loop.first; r < loop.end; r = ResourceId(r.value() + 1)) streams_->restart(r);
  loop.left = loop.waiting.size();
}

void Loops::report(Timeline& timeline) && {
  for (Round& loop : loops_) {
    for (std::size_t i = 0; i < loop.first_round.size(); ++i) {
      const TaskId task(loop.begin_task.value() + static_cast<std::uint32_t>(i));
      timeline.start[task] = loop.first_round[i].start;
      timeline.end[task] = loop.first_round[i].start + loop.first_round[i].duration;
    }
    timeline.rounds.push_back(std::move(loop.ends));
  }
}

}  // namespace stagecraft
