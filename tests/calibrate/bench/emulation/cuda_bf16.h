// See cuda_runtime.h.
#pragma once

#include "tests/calibrate/bench/emulation/cuda_runtime.h"
#include "tests/calibrate/bench/emulation/small_floats.hpp"

struct __nv_bfloat16 {
  __nv_bfloat16() = default;
  __nv_bfloat16(float value)
      : bits(static_cast<std::uint16_t>(stagecraft::emulation::encode(stagecraft::emulation::kBf16, value))) {
  }
  operator float() const { return __uint_as_float(std::uint32_t{bits} << 16); }
  std::uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline float __bfloat162float(__nv_bfloat16 value) {
  return value;
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {x, y};
}
