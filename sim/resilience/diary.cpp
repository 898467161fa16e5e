#include "sim/resilience/diary.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "sim/goodput/account.hpp"

namespace stagecraft {
namespace {

// Joins a stall into one row, however many nodes arrive and leave during it.
std::vector<TimelineRow> with_whole_stalls(const std::vector<TimelineRow>& rows) {
  std::vector<TimelineRow> whole;
  for (const TimelineRow& row : rows) {
    const bool goes_on = !whole.empty() && row.phase != Phase::kTraining && whole.back().phase == row.phase &&
                         whole.back().cause == row.cause && whole.back().node == row.node;
    if (goes_on)
      whole.back().end = row.end;
    else
      whole.push_back(row);
  }
  return whole;
}

// Names of the nodes in a trace whose nodes are neither drawn from more servers nor more than the job has.
// Empty: nodes have numbers.
std::vector<std::string> traced_names(const FailureSpec& spec, int nodes) {
  for (const FailureProcess& process : spec.processes) {
    const auto* replay = std::get_if<TraceReplay>(&process.law);
    if (replay == nullptr || replay->servers) continue;
    const Trace& trace = replay->trace;
    if (trace.form == TraceForm::kFaults || std::ssize(trace.nodes) <= nodes) return trace.nodes;
  }
  return {};
}

}  // namespace

// Stalls row by row; training from stall to stall, checkpoints among it.
std::vector<GoodputEvent> diary_of(const GoodputResult& result, const FailureSpec& spec, int nodes) {
  const std::vector<std::string> names = traced_names(spec, nodes);
  const auto name_of = [&](std::int32_t node) {
    return node < std::ssize(names) ? names[static_cast<std::size_t>(node)] : std::to_string(node);
  };
  std::vector<GoodputEvent> events;
  int trained_on = -1;
  for (const TimelineRow& row : with_whole_stalls(result.timeline)) {
    if (row.phase == Phase::kCheckpoint) continue;
    if (row.phase == Phase::kTraining) {
      if (row.nodes == trained_on) continue;
      trained_on = row.nodes;
      events.push_back({.time = row.start, .what = "training on " + counted(row.nodes, "node")});
      continue;
    }
    trained_on = -1;
    std::string what = words_of(bucket_of(row.phase)) + " for " + human(row.end - row.start);
    if (row.phase == Phase::kDetect && row.cause >= 0) {
      const auto cause = static_cast<std::size_t>(row.cause);
      what = fmt::format("{}{}: {}; {} samples so far", result.cause_names.at(cause),
                         row.node >= 0 ? " on node " + name_of(row.node) : "", what,
                         with_thousands(row.samples));
    }
    events.push_back({.time = row.start, .what = std::move(what)});
  }
  return events;
}

}  // namespace stagecraft
