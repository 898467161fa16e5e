// See cuda_runtime.h.
#pragma once

#include "tests/calibrate/bench/emulation/cuda_runtime.h"
#include "tests/calibrate/bench/emulation/small_floats.hpp"

struct __nv_fp8_e4m3 {
  __nv_fp8_e4m3() = default;
  explicit __nv_fp8_e4m3(float value)
      : bits(static_cast<std::uint8_t>(stagecraft::emulation::encode(stagecraft::emulation::kE4m3, value))) {}
  explicit operator float() const {
    return static_cast<float>(stagecraft::emulation::decode(stagecraft::emulation::kE4m3, bits));
  }
  std::uint8_t bits;
};
struct __nv_fp8_e5m2 {
  __nv_fp8_e5m2() = default;
  explicit __nv_fp8_e5m2(float value)
      : bits(static_cast<std::uint8_t>(stagecraft::emulation::encode(stagecraft::emulation::kE5m2, value))) {}
  explicit operator float() const {
    return static_cast<float>(stagecraft::emulation::decode(stagecraft::emulation::kE5m2, bits));
  }
  std::uint8_t bits;
};
