// Samples that are faster than their device can be: their times are of something else.
#pragma once

#include "base/diagnostic.hpp"
#include "calibrate/fit/sample_set.hpp"
#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

// Kernels meet data sheets within a few percent: boost clocks are not theirs.
inline constexpr double kMostOfDataSheet = 1.2;

// Reports each GEMM and flash kernel beyond kMostOfDataSheet of the base device's highest rate in any type,
// at its place. False if there was one.
[[nodiscard]] bool are_possible(const SampleSet& set, const HardwareProfile& base, Diagnostics& diagnostics);

}  // namespace stagecraft
