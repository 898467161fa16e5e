// Numbers as the device stores them: conversions, and random numbers made by counting.
//
// Element i of a seed is a hash of (seed, i): no state, so any block of threads fills any part of an array
// and the same numbers come out on every device.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "calibrate/bench/harness.hpp"

namespace stagecraft {

// The finaliser of SplitMix64 over a Weyl sequence, twice, so that neighbouring seeds share nothing.
//
//   source   Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA'14, section 4.
__host__ __device__ inline std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}
__host__ __device__ inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;
  return mixed(mixed(seed * kGolden + 1) + (index + 1) * kGolden);
}

// Normal(0, 1) by Box and Muller: one output of each hash, at most 5.8 in size since the radius comes from 24
// bits.
__device__ inline float normal_number(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t bits = random_bits(seed, index);
  const float radius_from = (static_cast<float>(bits >> 40) + 1.0F) * 0x1p-24F;  // (0, 1]
  const float turn = static_cast<float>((bits >> 8) & 0xFFFFFF) * 0x1p-23F;      // [0, 2) half turns
  return sqrtf(-2.0F * logf(radius_from)) * cospif(turn);
}

template <class T>
__device__ inline T from_float(float value) {
  return static_cast<T>(value);
}
template <>
__device__ inline std::int32_t from_float<std::int32_t>(float value) {
  return static_cast<std::int32_t>(lrintf(value));
}

__device__ inline double to_double(float value) {
  return static_cast<double>(value);
}
__device__ inline double to_double(std::int32_t value) {
  return static_cast<double>(value);
}
__device__ inline double to_double(__nv_bfloat16 value) {
  return static_cast<double>(__bfloat162float(value));
}
__device__ inline double to_double(__half value) {
  return static_cast<double>(__half2float(value));
}
__device__ inline double to_double(__nv_fp8_e4m3 value) {
  return static_cast<double>(static_cast<float>(value));
}
__device__ inline double to_double(__nv_fp8_e5m2 value) {
  return static_cast<double>(static_cast<float>(value));
}

// Calls visit(static_cast<T*>(nullptr)) with the type that stores dtype.
template <class Visit>
void with_type(Dtype dtype, const Visit& visit) {
  switch (dtype) {
    case Dtype::kBf16:
      return visit(static_cast<__nv_bfloat16*>(nullptr));
    case Dtype::kFp16:
      return visit(static_cast<__half*>(nullptr));
    case Dtype::kFp32:
      return visit(static_cast<float*>(nullptr));
    case Dtype::kE4m3:
      return visit(static_cast<__nv_fp8_e4m3*>(nullptr));
    case Dtype::kE5m2:
      return visit(static_cast<__nv_fp8_e5m2*>(nullptr));
    case Dtype::kInt32:
      return visit(static_cast<std::int32_t*>(nullptr));
  }
}

}  // namespace stagecraft
