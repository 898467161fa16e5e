// Samples that are faster or slower than their device can be: their times are of something else, or in
// another unit.
#pragma once

#include "base/diagnostic.hpp"
#include "calibrate/fit/sample_set.hpp"
#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

// Kernels meet data sheets within a few percent: boost clocks are not theirs.
inline constexpr double kMostOfDataSheet = 1.2;

// A kernel is launched within some ten microseconds, and beyond that ours take at most 9 times what the data
// sheet gives their work in fp8. Milliseconds for seconds are a thousand times that.
inline constexpr double kLongestLaunchSeconds = 0.5e-3;
inline constexpr double kSlowest = 100;

// Reports at its place each GEMM and flash kernel beyond kMostOfDataSheet of the base device's highest rate
// in any type; and each of them, memory-bound or empty kernel that takes more than a long launch and kSlowest
// times what the data sheet gives its work. False if there was one.
[[nodiscard]] bool are_possible(const SampleSet& set, const HardwareProfile& base, Diagnostics& diagnostics);

}  // namespace stagecraft
