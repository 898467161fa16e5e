// Any bytes as a trace: mistakes in words or a trace, never a crash; and what was read makes a history that
// can happen.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "sim/goodput/history.hpp"
#include "sim/goodput/machines.hpp"
#include "sim/goodput/trace_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stagecraft;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Diagnostics diagnostics;
  auto trace = parse_trace(text, "fuzz", diagnostics);
  SC_CHECK(trace.has_value() != diagnostics.has_errors(), "a trace or a reason");
  if (!trace) return 0;
  TraceReplay replay{.trace = *std::move(trace)};
  replay.offset = std::chrono::seconds(size % 7);
  replay.scale = 0.5 + static_cast<double>(size % 3);
  FailureSpec spec;
  spec.horizon = std::chrono::hours(24 * 400);
  spec.processes = {{.law = std::move(replay), .causes = {{.name = "trace"}}}};
  const History history = history_of(spec, 1 + static_cast<int>(size % 40), 1, 0);
  Machines machines(history.nodes, history.all_up_at_start);
  Duration before{};
  for (const Incident& incident : history.incidents) {
    SC_CHECK(incident.time >= before && incident.time < spec.horizon, "time goes on");
    machines.apply(incident);
    before = incident.time;
  }
  return 0;
}
