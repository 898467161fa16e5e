// Runs a Program: when does each task start and end?
//
// One event loop: pop the earliest event, advance the clock, finish the task, release its successors, start
// what is ready. Events order by (time, phase, TaskId), never by insertion. The engine is pure: no I/O, no
// clock, no log, no state outside `run`; the same bits on any thread and in any build type.
#pragma once

#include <cstdint>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

// The outcome, as columns. Nothing in it is derived beyond what the loop knows.
struct Timeline {
  IdVector<TaskId, Duration> start;
  IdVector<TaskId, Duration> end;
  Duration makespan{};                            // latest end
  IdVector<ResourceId, Bytes> memory_high_water;  // over the resource's own memory deltas

  friend bool operator==(const Timeline&, const Timeline&) = default;
};

// throws InternalError naming the waiting tasks when some never become ready (a cycle: the builder's bug).
[[nodiscard]] Timeline run(const Program& program);

// The same answer by one topological sweep over the graph, without events: an oracle for tests.
// Valid while no two tasks share a link's capacity.
[[nodiscard]] Timeline longest_path(const Program& program);

// StableHash over start and end of all tasks: part of golden tests.
[[nodiscard]] std::uint64_t hash(const Timeline& timeline);

}  // namespace stagecraft
