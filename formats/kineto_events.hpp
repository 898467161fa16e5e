// Between the text of a Kineto trace and its meaning: slices as they stand in the file. Not for others.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "formats/kineto.hpp"

namespace stagecraft::detail {

// A kernel, copy or setting of memory.
struct DeviceSlice {
  KinetoKernel kernel;  // start: absolute; what links them is not yet known
  std::int64_t correlation = -1, external_id = -1;
};

// A call of the CUDA runtime or driver.
struct LaunchSlice {
  std::int64_t correlation = -1, external_id = -1, thread = 0;
  Duration start{};
};

struct OpSlice {
  std::int64_t external_id = -1, thread = 0;
  Duration start{}, length{};
  std::int32_t op = -1;  // index into ops
  std::int32_t collective = -1;
};

// `Optimizer.step`
struct SpanSlice {
  Duration start{}, length{};
};

struct KinetoEvents {
  KinetoTrace trace;  // all but kernels; steps are absolute
  std::vector<DeviceSlice> device_slices;
  std::vector<LaunchSlice> launches;
  std::vector<OpSlice> op_slices;
  std::vector<SpanSlice> optimizer_steps;
  std::set<std::int64_t> backward_threads;  // those of the autograd engine
  std::map<std::string, std::vector<int>> ranks_of_group;
  std::map<int, std::string> device_names;
  std::int64_t base_ns = 0;  // baseTimeNanoseconds: what the times of the file count from
  std::int64_t without_duration = 0;
};

// nullopt after reporting.
[[nodiscard]] std::optional<KinetoEvents> read_kineto_events(std::istream& in, const std::string& name,
                                                             Diagnostics& diagnostics);

// Nanoseconds of a decimal number of microseconds, exact to the nanosecond where it has no exponent; nullopt
// beyond 146 years.
[[nodiscard]] std::optional<Duration> microseconds(const std::string& decimal);

}  // namespace stagecraft::detail
