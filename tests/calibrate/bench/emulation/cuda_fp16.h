// See cuda_runtime.h.
#pragma once

#include "tests/calibrate/bench/emulation/cuda_runtime.h"
#include "tests/calibrate/bench/emulation/small_floats.hpp"

struct __half {
  __half() = default;
  __half(float value)
      : bits(static_cast<std::uint16_t>(stagecraft::emulation::encode(stagecraft::emulation::kHalf, value))) {
  }
  operator float() const {
    return static_cast<float>(stagecraft::emulation::decode(stagecraft::emulation::kHalf, bits));
  }
  std::uint16_t bits;
};
inline float __half2float(__half value) {
  return value;
}
