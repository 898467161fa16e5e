// What calibrate/bench uses of CUDA, for a C++ compiler and no GPU: found instead of the toolkit's header.
//
// Only what is used, and as CUDA 13 has it: what went with that version (clock rates in cudaDeviceProp) does
// not compile here either. Arithmetic is the host's: the fast functions are exact, and nothing is fused.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/calibrate/bench/emulation/device.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define CUDART_VERSION 13000

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

using dim3 = stagecraft::emulation::Extent;
inline dim3 gridDim, blockDim, blockIdx, threadIdx;

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  stagecraft::emulation::wait_for_block({file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int step, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  namespace emulation = stagecraft::emulation;
  emulation::exchange_in_warp(mask, &value, sizeof value, emulation::lane() ^ static_cast<unsigned>(step),
                              {file, line});
  return value;
}

inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline float __expf(float x) {
  return expf(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float rsqrtf(float x) {
  return 1.0F / sqrtf(x);
}
inline float cospif(float x) {
  return static_cast<float>(std::cos(3.14159265358979323846 * static_cast<double>(x)));
}
// Four of the eight bytes of (high, low), each by its nibble; no sign replication.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(high) << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(bytes >> (8 * (selector >> (4 * i) & 7U)) & 0xFFU) << (8 * i);
  return result;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
inline long long clock64() {
  return static_cast<long long>(stagecraft::emulation::global_timer() * 3 / 2);  // 1500 MHz
}

#include "tests/calibrate/bench/emulation/runtime_calls.hpp"
