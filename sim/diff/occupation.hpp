// What a GPU does at each instant of an iteration: computes, waits for communication, or idles.
//
// One rule holds for timelines that were simulated and for those that were measured: an instant belongs to
// compute while any compute runs; else it is exposed communication of the first kind, in the order below,
// that runs; else it is idle. So compute, exposed communication and idle time add up to the window.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

// Compute, or communication over the ranks of a group; kOtherGroup: ranks that are no group of the plan, or
// that nobody named.
enum class Activity : std::uint8_t { kCompute, kTensor, kContext, kExpert, kPipeline, kData, kOtherGroup };
inline constexpr std::array<std::string_view, 7> kActivityNames = {
    "compute", "tensor", "context", "expert", "pipeline", "data", "other group"};

struct Busy {
  Activity activity = Activity::kCompute;
  Duration begin{}, end{};
};

struct Occupation {
  Duration window{};
  Duration compute{};
  std::array<Duration, kActivityNames.size()> exposed{};  // of kCompute: none
  std::array<Duration, kActivityNames.size()> busy{};     // of each kind alone, also beside others
  Duration idle{};

  [[nodiscard]] Duration exposed_communication() const;
  // Exposed messages of the pipeline and idle time. A receive that waits for its sender is a running kernel
  // in a trace and idle time in a simulation: their sum is alike.
  [[nodiscard]] Duration pipeline_or_idle() const;
  friend bool operator==(const Occupation&, const Occupation&) = default;
};

// The occupation of the window [begin, end); what lies outside does not count.
[[nodiscard]] Occupation occupation(std::span<const Busy> busy, Duration begin, Duration end);

// The mean of several windows, to the nearest nanosecond. requires one at least.
[[nodiscard]] Occupation mean(std::span<const Occupation> windows);

}  // namespace stagecraft
