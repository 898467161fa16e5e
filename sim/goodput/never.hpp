// Times that may be too long to be counted: those of events that are so rare that no job lives to see one.
#pragma once

#include "base/units.hpp"

namespace stagecraft {

inline constexpr Duration kNever = Duration::max();

// Seconds as a Duration; values beyond its range become kNever. throws InternalError when negative or NaN.
[[nodiscard]] inline Duration from_seconds_or_never(double seconds) {
  constexpr double kLongest = 9.2e9;  // seconds, just under 2^63 ns
  return seconds >= kLongest ? kNever : from_seconds(seconds);
}

// Mean time between events of this rate; kNever where there are none.
[[nodiscard]] inline Duration mean_time_between(double per_second) {
  return per_second > 0 ? from_seconds_or_never(1 / per_second) : kNever;
}

}  // namespace stagecraft
