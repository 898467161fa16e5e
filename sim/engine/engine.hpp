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

// What one link did.
struct LinkUsage {
  double bytes = 0;      // carried
  Duration busy{};       // at least one flow crossed it
  Duration saturated{};  // it was full
  Duration delay{};      // summed over tasks: time that they lost because this link was their bottleneck
  friend bool operator==(const LinkUsage&, const LinkUsage&) = default;
};

// How long flows of these labels crossed the link at the same time while it was full, however many they were.
// Labels of one name are one, told by the first of them. Two flows of one label meet, too, unless they do the
// same on copies of a resource.
struct Meeting {
  LinkId link;
  LabelId first, second;  // first <= second
  Duration time{};        // at most what the link was full
  friend bool operator==(const Meeting&, const Meeting&) = default;
};

// Why a program comes to rest before its end: resources whose speed is 0 for good.
struct Stall {
  Duration time{};              // nothing ends, and no resource stops, after it
  std::vector<TaskId> stuck;    // began and never end; ascending
  std::vector<TaskId> waiting;  // never begin; ascending
  friend bool operator==(const Stall&, const Stall&) = default;
};

// The outcome, as columns. Nothing in it is derived beyond what the loop knows. Where a program stalls, `end`
// of what is stuck, and both times of what waits, are the time of the stall; where it has loops, the columns
// have their first rounds, and what these had not done by the end of the rest ended, or began, then.
struct Timeline {
  IdVector<TaskId, Duration> start;
  IdVector<TaskId, Duration> end;
  Duration makespan{};                            // latest end of a task outside of loops
  IdVector<ResourceId, Bytes> memory_high_water;  // over the resource's own memory deltas
  IdVector<LinkId, LinkUsage> links;
  std::vector<Meeting> meetings;              // ascending by link, first, second
  std::vector<std::vector<Duration>> rounds;  // by loop: when each complete round ended
  std::optional<Stall> stall;

  friend bool operator==(const Timeline&, const Timeline&) = default;
};

struct RunOptions {
  bool idle_network = false;  // links never slow anybody: what the program would take on an idle network
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
