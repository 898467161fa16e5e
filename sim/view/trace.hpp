// A timeline as a trace file for viewers of traces, written as it is made: a trace of 10 million slices is
// never in memory.
//
//   rows       of each simulated rank its lanes (sim/view/lanes.hpp), and a row of the critical path
//   slices     a task that takes time; one that takes none is an instant. Named as its label; the stage and
//              the micro-batch are its arguments. On one row they never overlap, and their times are those of
//              the timeline, to the nanosecond.
//   counters   bytes of activations that a rank holds
//
// Perfetto: protobuf, see write_perfetto(). Chrome: JSON, one event a line; `ts` and `dur` are microseconds
// with three decimals, so that nothing is rounded.
//   source     google/perfetto protos/perfetto/trace (field numbers); "Trace Event Format", Duerig et al.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

struct TraceInput {
  const Program& program;
  const Timeline& timeline;
  std::vector<std::string> ranks;  // a name for each simulated rank
};

// Takes the next bytes of a file, which are gone afterwards.
using ByteSink = std::function<void(std::string_view)>;
inline constexpr std::size_t kTracePiece = std::size_t{1} << 20;  // approximate bytes per piece

// Every packet belongs to one sequence. The first clears its state and interns all names; tracks follow, then
// events, row by row: a viewer sorts them by time.
void write_perfetto(const TraceInput& input, const ByteSink& sink);

void write_chrome_trace(const TraceInput& input, const ByteSink& sink);

}  // namespace stagecraft
