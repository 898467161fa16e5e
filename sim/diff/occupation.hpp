// Activity of a GPU at each instant of an iteration: compute, exposed communication, or idle.
//
// One rule holds for simulated and measured timelines. An instant is compute while any compute runs.
// Otherwise it is exposed communication of the first running kind, in the order below. Otherwise it is idle.
// So compute, exposed communication and idle time add up to the window.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

// Compute, or communication over the ranks of a group. kOtherGroup: ranks that form no group of the plan, or
// without a name.
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
  std::array<Duration, kActivityNames.size()> exposed{};  // exposed time by kind; none for kCompute
  std::array<Duration, kActivityNames.size()> busy{};     // busy time of each kind, also while others run
  Duration idle{};

  [[nodiscard]] Duration exposed_communication() const;
  // Exposed messages of the pipeline, and idle time. A receive that waits for its sender is a running kernel
  // in a trace and idle time in a simulation, so only their sum is comparable.
  [[nodiscard]] Duration pipeline_or_idle() const;
  friend bool operator==(const Occupation&, const Occupation&) = default;
};

// The occupation of the window [begin, end); parts outside do not count.
[[nodiscard]] Occupation occupation(std::span<const Busy> busy, Duration begin, Duration end);

// The mean of several windows, to the nearest nanosecond. requires one at least.
[[nodiscard]] Occupation mean(std::span<const Occupation> windows);

}  // namespace stagecraft
