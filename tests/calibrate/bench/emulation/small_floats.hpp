// Floating point in 16 and 8 bits, as cuda_bf16.h, cuda_fp16.h and cuda_fp8.h store it: nearest, ties to
// even.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace stagecraft::emulation {

struct SmallFormat {
  int exponent_bits, mantissa_bits;
  bool has_infinity;  // without it all ones are the only NaN, and the numbers go on to there
  bool saturates;     // what is too large becomes the largest number
  [[nodiscard]] constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  [[nodiscard]] constexpr unsigned ones() const { return (1U << (exponent_bits + mantissa_bits)) - 1; }
  [[nodiscard]] constexpr unsigned infinity() const { return ((1U << exponent_bits) - 1) << mantissa_bits; }
  [[nodiscard]] constexpr unsigned largest() const { return has_infinity ? infinity() - 1 : ones() - 1; }
};
inline constexpr SmallFormat kBf16{8, 7, true, false}, kHalf{5, 10, true, false}, kE4m3{4, 3, false, true},
    kE5m2{5, 2, true, true};

// The positive numbers of a format are in the order of their bits.
inline double decode(const SmallFormat& f, unsigned bits) {
  const unsigned magnitude = bits & f.ones(), mantissa = magnitude & ((1U << f.mantissa_bits) - 1);
  const double sign = bits > f.ones() ? -1 : 1;
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  if (f.has_infinity ? magnitude > f.infinity() : magnitude == f.ones()) return sign * NAN;
  if (f.has_infinity && magnitude == f.infinity()) return sign * INFINITY;
  const unsigned whole = exponent == 0 ? mantissa : mantissa | 1U << f.mantissa_bits;
  return sign * std::ldexp(whole, (exponent == 0 ? 1 : exponent) - f.bias() - f.mantissa_bits);
}

inline unsigned encode(const SmallFormat& f, float value) {
  const unsigned sign = std::signbit(value) ? f.ones() + 1 : 0;
  const double size = std::fabs(static_cast<double>(value));
  if (std::isnan(value)) return f.ones();
  const unsigned beyond = f.saturates ? f.largest() : f.infinity();
  if (std::isinf(value)) return sign | beyond;
  if (size == 0) return sign;
  const int exponent = std::max(std::ilogb(size), 1 - f.bias());
  // In units of the last place; one more than all ones carries into the exponent by itself.
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(size, f.mantissa_bits - exponent)));
  const unsigned bits = units + (static_cast<unsigned>(exponent + f.bias() - 1) << f.mantissa_bits);
  return sign | (bits > f.largest() ? beyond : bits);
}

}  // namespace stagecraft::emulation
