#include "base/units.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace stagecraft {

Duration from_seconds(double seconds) {
  SC_CHECK(!std::isnan(seconds), "a time is NaN");
  SC_CHECK(seconds >= 0, "a time is negative");
  const double nanoseconds = std::round(seconds * 1e9);
  SC_CHECK(nanoseconds < kBeyondInt64, "a time is beyond 292 years");
  return Duration(static_cast<std::int64_t>(nanoseconds));
}

Duration scaled(Duration time, double factor) {
  SC_CHECK(factor >= 0, "a time is scaled by a number that is not negative");
  return Duration(std::llround(std::min(static_cast<double>(time.count()) * factor, 4e18)));
}

Duration operator/(Bytes bytes, Bandwidth rate) {
  SC_CHECK(rate.count() > 0, "a bandwidth is not positive");
  return from_seconds(static_cast<double>(bytes.count()) / rate.count());
}

Duration operator/(Flops work, FlopRate rate) {
  SC_CHECK(rate.count() > 0, "a FLOP rate is not positive");
  return from_seconds(work.count() / rate.count());
}

Bytes to_bytes(double bytes) {
  SC_CHECK(!std::isnan(bytes), "a number of bytes is NaN");
  SC_CHECK(bytes >= 0, "a number of bytes is negative");
  const double whole = std::round(bytes);
  SC_CHECK(whole < kBeyondInt64, "a number of bytes is beyond int64");
  return Bytes(static_cast<std::int64_t>(whole));
}

}  // namespace stagecraft
