// Medians, spreads and when to stop sampling.
//
// Running times have a hard floor and a long tail, so everything is by rank: the median is the result, the
// 16th and 84th percentiles its spread (one standard deviation where the noise happens to be normal), and the
// confidence interval of the median comes from order statistics, which assume nothing about the distribution.
#pragma once

#include <cstdint>
#include <span>

namespace stagecraft {

// Linear between the closest ranks; share in [0, 1]. Throws std::invalid_argument on no values, a NaN or a
// share outside.
[[nodiscard]] double quantile(std::span<const double> values, double share);
[[nodiscard]] double median(std::span<const double> values);
// (p84 - p16) / (2 * median); 0 for a single value. The median must be positive.
[[nodiscard]] double relative_spread(std::span<const double> values);

// Half the width of the 95 % confidence interval of the median, relative to the median: the ranks n/2 -+ 0.98
// sqrt(n). Infinite below 6 values, where no pair of ranks covers the median with that confidence.
//
//   source   David & Nagaraja, Order Statistics, section 7.1 (binomial, normal approximation).
[[nodiscard]] double median_half_width(std::span<const double> values);

// Keep sampling until the median is known to `target`, or until the limits are reached.
struct StopRule {
  double target = 0.005;  // relative half-width of the median's confidence interval
  int min_repeats = 10;
  int max_repeats = 400;
  double max_seconds = 0.25;  // device time spent on repeats
};
[[nodiscard]] bool enough(std::span<const double> values, double seconds_spent, const StopRule& rule);

// Largest |value - reference| / bound; infinite where any of the three is NaN, or a bound is not positive
// while the value differs. All three have one length, or std::invalid_argument is thrown.
[[nodiscard]] double worst_error(std::span<const double> values, std::span<const double> references,
                                 std::span<const double> bounds);

// What was read of the clocks while a batch ran. Zero MHz or no reasons: not read.
struct ClockReading {
  int sm_mhz = 0;
  std::uint64_t reasons = 0;  // bits as in nvmlClocksEventReasons
};

// True if the batch ran slower than the device would when left alone: the clock was more than `tolerance`
// under the reference (that of a light load on the same device), or the driver names a thermal reason or a
// brake. The driver's power cap counts only where no clock was read: the bit stays on for a while after the
// clock has recovered. Idle and clocks set by the user are no throttling.
[[nodiscard]] bool throttled(const ClockReading& reading, int reference_mhz, double tolerance = 0.04);

}  // namespace stagecraft
