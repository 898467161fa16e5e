// Recorded availability and failures of nodes, as plain values (file formats: scenarios/traces/README.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

enum class TraceForm : std::uint8_t {
  kEvents,  // time_s,event,node: add and remove
  kCounts,  // time_s,available: how many nodes, until the next row
  kFaults,  // time_s,event,node,level,class,description: fault_start and fault_end; a server is down while
            // any is open
};

enum class TraceEvent : std::uint8_t { kAdd = 1, kRemove = 2, kFaultStart, kFaultEnd };

struct TraceRow {
  Duration time{};
  TraceEvent event = TraceEvent::kAdd;
  std::int32_t node = 0;    // index in Trace::nodes
  std::int32_t cause = -1;  // index in Trace::causes (the class of a fault); -1: none said
  std::int32_t fault = -1;  // a fault_start and its fault_end share this number; -1: no fault

  friend bool operator==(const TraceRow&, const TraceRow&) = default;
};

struct TraceCount {
  Duration time{};
  int available = 0;

  friend bool operator==(const TraceCount&, const TraceCount&) = default;
};

struct Trace {
  TraceForm form = TraceForm::kEvents;
  std::vector<TraceRow> rows = {};      // kEvents, kFaults: by time, equal times in the order of the file
  std::vector<TraceCount> counts = {};  // kCounts: by time, of equal times the last one counts
  std::vector<std::string> nodes = {};  // names in order of first appearance
  std::vector<std::string> causes = {};
  std::string hash = {};  // of the text that it was read from

  friend bool operator==(const Trace&, const Trace&) = default;
};

}  // namespace stagecraft
