// Quantities with their unit in the type.
//
// A number that carries a unit is one of these, so that bytes never meet FLOPs in a sum and no comment has to
// say what a variable holds. Time is integer nanoseconds: ties are exact, tests compare with ==, and int64
// spans 292 years, which serves both an iteration and a month of failures. Bytes are int64; FLOPs and rates
// are double, because a training step of a trillion parameters overflows int64.
//
//   GB = 10^9 bytes, GiB = 2^30 bytes, Gb = 10^9 bits. Bandwidths are per direction.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace stagecraft {

using Duration = std::chrono::duration<std::int64_t, std::nano>;

// The only place where seconds become time: nearest nanosecond, halves away from zero.
// throws InternalError when `seconds` is negative, NaN, or beyond 292 years.
[[nodiscard]] Duration from_seconds(double seconds);

// Nearest double: a division rounds once, a product with 1e-9 twice.
[[nodiscard]] constexpr double to_seconds(Duration time) {
  return static_cast<double>(time.count()) / 1e9;
}

inline constexpr double kSecondsPerHour = 3600, kSecondsPerDay = 24 * kSecondsPerHour;
inline constexpr double kSecondsPerYear = 365.25 * kSecondsPerDay;

// `factor` >= 0 times as long: nearest nanosecond, halves away from zero; at most 127 years, which leaves room
// for sums.
[[nodiscard]] Duration scaled(Duration time, double factor);

// A strong number: adds to its own kind, scales by a bare number, and divides by its own kind to a bare
// ratio.
template <class Tag, class Rep>
class Quantity {
 public:
  using rep = Rep;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}

  [[nodiscard]] constexpr Rep count() const { return value_; }

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;

  constexpr Quantity& operator+=(Quantity other) { return value_ += other.value_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value_ -= other.value_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return Quantity(factor * a.value_); }
  friend constexpr Quantity operator/(Quantity a, Rep divisor) { return Quantity(a.value_ / divisor); }

  // The ratio of two quantities of one kind has no unit.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Rep value_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, double>;          // floating-point operations, multiply and add apart
using Bandwidth = Quantity<struct BandwidthTag, double>;  // bytes per second, one direction
using FlopRate = Quantity<struct FlopRateTag, double>;    // FLOP per second

// 2^63, the first double that no longer fits into int64. INT64_MAX itself is no double.
constexpr double kBeyondInt64 = 0x1p63;

// Time to move `bytes` at `rate`, rounded to the nanosecond. throws InternalError when rate <= 0.
[[nodiscard]] Duration operator/(Bytes bytes, Bandwidth rate);
// Time to compute `work` at `rate`, rounded to the nanosecond. throws InternalError when rate <= 0.
[[nodiscard]] Duration operator/(Flops work, FlopRate rate);

// Nearest whole number of bytes. throws InternalError when negative, NaN or beyond int64.
[[nodiscard]] Bytes to_bytes(double bytes);

// Inside a function or a test: `using namespace stagecraft::literals;`
namespace literals {
constexpr Bytes operator""_B(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n));
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 30);
}
constexpr Bytes operator""_GB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) * 1'000'000'000);
}
constexpr Bandwidth operator""_GBps(unsigned long long n) {
  return Bandwidth(static_cast<double>(n) * 1e9);
}
constexpr Bandwidth operator""_GBps(long double n) {
  return Bandwidth(static_cast<double>(n) * 1e9);
}
constexpr FlopRate operator""_TFLOPps(unsigned long long n) {
  return FlopRate(static_cast<double>(n) * 1e12);
}
constexpr FlopRate operator""_TFLOPps(long double n) {
  return FlopRate(static_cast<double>(n) * 1e12);
}
}  // namespace literals

}  // namespace stagecraft
