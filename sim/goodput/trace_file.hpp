// Traces of availability and failures, read from CSV.
//
// Lines that begin with # come before the header, which says what the file is:
//
//   time_s,event,node                          add, remove
//   time_s,available                           a number of nodes that holds until the next row
//   time_s,event,node,level,class,description  fault_start, fault_end
//
// Times are seconds from the start of the trace and never go back. A fault_end ends the earliest open fault
// of the same node, level, class and description. No quotes: a description may hold commas.
//
//   source  scenarios/traces/README.md says where each trace of ours comes from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/units.hpp"
#include "sim/goodput/trace.hpp"

namespace stagecraft {

inline constexpr std::size_t kMaxTraceRows = 1'000'000;

// Every mistake is reported at its line of `name`, the first hundred at least; then nullopt. A node that is
// added twice or removed without being there, a fault that ends without a start, a trace without rows are
// mistakes.
[[nodiscard]] std::optional<Trace> parse_trace(std::string_view text, const std::string& name,
                                               Diagnostics& diagnostics);

// Durations of the faults of a trace, sorted; open-ended ones are left out. throws InternalError on another
// form.
[[nodiscard]] std::vector<Duration> fault_durations(const Trace& trace);

}  // namespace stagecraft
