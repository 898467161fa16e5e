// Rows of a timeline: tasks of one resource that do not overlap.
//
// A stream is one row. A concurrent resource (messages in flight) has as many rows as it has tasks at once:
// each task, by start, goes to the lowest free row. Tasks that never began have none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

struct Lane {
  ResourceId resource;
  int index = 0;              // index among the resource's rows
  std::int32_t rank = 0;      // simulated
  std::string name;           // "compute", "send", "send 2"
  std::vector<TaskId> tasks;  // by time; tasks do not overlap
};

// The lanes that have tasks, by rank, then by resource, then by index. requires `timeline` of `program`.
[[nodiscard]] std::vector<Lane> lanes_of(const Program& program, const Timeline& timeline);

// The name of each simulated rank, in their order: "rank 3", or "replica 1 · rank 3" where a pipeline of
// `pipeline` ranks is simulated several times.
[[nodiscard]] std::vector<std::string> rank_names(const Program& program, int pipeline);

}  // namespace stagecraft
