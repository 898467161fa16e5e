// Parts of a program that run again and again while the rest runs (Loop in sim/program/program.hpp).
//
// The tasks of a loop are contiguous. When the last of them has ended, all are reset, and those without
// predecessors are ready at that same instant. A round that took no time is the last one: otherwise it would
// repeat forever.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/run_state.hpp"
#include "sim/engine/stream.hpp"

namespace stagecraft {

class Loops {
 public:
  Loops(RunState& state, Streams& streams);

  [[nodiscard]] bool none() const { return loops_.empty(); }
  // Tasks outside of loops.
  [[nodiscard]] std::size_t others() const { return others_; }
  [[nodiscard]] bool has(TaskId task) const { return find(task) != nullptr; }

  // A task of any kind has ended; says whether it is in a loop.
  bool ended(TaskId task);
  // The next time at which a first round starts.
  [[nodiscard]] std::optional<Duration> next_start() const;
  // Starts loops whose time has come, and the next round of those that are done.
  void start(Duration now, Instant& instant);

  // Reports completed first rounds to the timeline.
  void report(Timeline& timeline) &&;

 private:
  struct Round {
    ResourceId first, end;  // resources
    TaskId begin_task, end_task;
    Duration start{};  // start of this round
    bool has_started = false;
    std::size_t left = 0;                // tasks that have not ended
    std::vector<std::uint32_t> waiting;  // predecessors of each task
    std::vector<TaskState> first_round;
    std::vector<Duration> ends;
  };

  [[nodiscard]] const Round* find(TaskId task) const;
  void make_ready(const Round& loop, Instant& instant) const;
  void rewind(Round& loop);

  RunState* state_;
  Streams* streams_;
  std::vector<Round> loops_;
  std::size_t others_ = 0;
};

}  // namespace stagecraft
