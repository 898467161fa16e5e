// Times that may be too long to be counted: those of events that are so rare that no job lives to see one.
#pragma once

#include "base/units.hpp"

namespace stagecraft {

// Seconds as a Duration; values beyond its range become "never". throws InternalError when negative or NaN.
[[nodiscard]] inline Duration from_seconds_or_never(double seconds) {
  constexpr double kLongest = 9.2e9;  // seconds, just under 2^63 ns
  return seconds >= kLongest ? Duration::max() : from_seconds(seconds);
}

}  // namespace stagecraft
