// Runs a Program: when does each task start and end?
//
// One event loop: pop the earliest event, advance the clock, finish the task, release its successors, start
// what is ready. Events order by (time, phase, TaskId), never by insertion. The engine is pure: no I/O, no
// clock, no log, no state outside `run`; the same bits on any thread and in any build type.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

// Usage of one link.
struct LinkUsage {
  double bytes = 0;      // carried
  Duration busy{};       // at least one flow crossed it
  Duration saturated{};  // it was full
  Duration delay{};      // summed over unit flows: time that they lost because this link was their bottleneck
  friend bool operator==(const LinkUsage&, const LinkUsage&) = default;
};

// Time for which flows of these two labels crossed the link together while it was full, whatever their
// number. Labels of one name count as one, identified by the first. Two flows of one label meet as well,
// unless they are the same flow on copies of a resource.
struct Meeting {
  LinkId link;
  LabelId first, second;  // first <= second
  Duration time{};        // at most the time for which the link was full
  friend bool operator==(const Meeting&, const Meeting&) = default;
};

// A program that stops before its end: resources whose speed stays 0.
struct Stall {
  Duration time{};              // no task ends, and no resource stops, after this time
  std::vector<TaskId> stuck;    // began and never end; ascending
  std::vector<TaskId> waiting;  // never begin; ascending
  friend bool operator==(const Stall&, const Stall&) = default;
};

// The result, as columns; it holds only what the loop itself knows. In a stalled program, `end` of stuck
// tasks and both times of waiting tasks are the time of the stall. For loops the columns hold the first
// rounds; parts of them that the rest of the program outlived begin or end with it.
struct Timeline {
  IdVector<TaskId, Duration> start;
  IdVector<TaskId, Duration> end;
  Duration makespan{};                            // latest end of a task outside of loops
  IdVector<ResourceId, Bytes> memory_high_water;  // over the resource's own memory deltas
  IdVector<LinkId, LinkUsage> links;
  std::vector<Meeting> meetings;              // ascending by link, first, second
  std::vector<std::vector<Duration>> rounds;  // by loop: end of each complete round
  std::optional<Stall> stall;

  // Of a stalled program: did the task begin and never end, or not even begin?
  [[nodiscard]] bool is_stuck(TaskId task) const;
  [[nodiscard]] bool never_begins(TaskId task) const;

  friend bool operator==(const Timeline&, const Timeline&) = default;
};

struct RunOptions {
  bool idle_network = false;  // links slow no task: the time of the program on an idle network
};

// throws InternalError naming the waiting tasks when some never become ready (a cycle: the builder's bug).
[[nodiscard]] Timeline run(const Program& program, const RunOptions& options = {});

// Finds the timeline of run() by one topological sweep over the graph, without events: an oracle for tests.
// Valid for programs without loads, changes and loops, and where no link slows anybody; says nothing about
// links.
[[nodiscard]] Timeline longest_path(const Program& program);

// StableHash over start and end of all tasks: part of golden tests.
[[nodiscard]] std::uint64_t hash(const Timeline& timeline);

}  // namespace stagecraft
