// See cuda_runtime.h.
#pragma once

#include "tests/calibrate/bench/emulation/cuda_runtime.h"
#include "tests/calibrate/bench/emulation/small_floats.hpp"

namespace stagecraft::emulation {

template <const SmallFormat& kFormat>
struct Fp8 {
  Fp8() = default;
  explicit Fp8(float value) : bits(static_cast<std::uint8_t>(encode(kFormat, value))) {}
  explicit operator float() const { return static_cast<float>(decode(kFormat, bits)); }
  std::uint8_t bits;
};

}  // namespace stagecraft::emulation

using __nv_fp8_e4m3 = stagecraft::emulation::Fp8<stagecraft::emulation::kE4m3>;
using __nv_fp8_e5m2 = stagecraft::emulation::Fp8<stagecraft::emulation::kE5m2>;
