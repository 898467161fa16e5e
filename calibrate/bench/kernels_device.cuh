// What our memory-bound kernels are made of: 16-byte accesses, reductions, loops over a tensor.
//
// A pack is eight consecutive elements: 16 bytes of bf16, 32 bytes (two accesses) of fp32. Arithmetic is
// fp32. Rows are a multiple of eight elements long; the launchers' callers see to it.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "calibrate/bench/cuda_raii.hpp"

namespace stagecraft::device {

constexpr int kPack = 8;
constexpr int kWarp = 32;
constexpr unsigned kFullWarp = 0xFFFFFFFFU;

struct Pack {
  float v[kPack];
};

__device__ __forceinline__ uint4 load_raw(const __nv_bfloat16* base, std::int64_t pack) {
  return reinterpret_cast<const uint4*>(base)[pack];
}

__device__ __forceinline__ Pack unpack(const uint4& raw) {
  Pack p;
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {  // bf16 is the upper half of fp32
    p.v[2 * i] = __uint_as_float(words[i] << 16);
    p.v[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
  }
  return p;
}

__device__ __forceinline__ Pack load(const __nv_bfloat16* base, std::int64_t pack) {
  return unpack(load_raw(base, pack));
}

__device__ __forceinline__ Pack load(const float* base, std::int64_t pack) {
  const float4 a = reinterpret_cast<const float4*>(base)[2 * pack];
  const float4 b = reinterpret_cast<const float4*>(base)[2 * pack + 1];
  return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

__device__ __forceinline__ void store(__nv_bfloat16* base, std::int64_t pack, const Pack& p) {
  uint4 raw;
  std::uint32_t* words = &raw.x;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(p.v[2 * i], p.v[2 * i + 1]);
    words[i] = *reinterpret_cast<const std::uint32_t*>(&pair);
  }
  reinterpret_cast<uint4*>(base)[pack] = raw;
}

__device__ __forceinline__ void store(float* base, std::int64_t pack, const Pack& p) {
  reinterpret_cast<float4*>(base)[2 * pack] = make_float4(p.v[0], p.v[1], p.v[2], p.v[3]);
  reinterpret_cast<float4*>(base)[2 * pack + 1] = make_float4(p.v[4], p.v[5], p.v[6], p.v[7]);
}

// Half a pack, for what is written in fp32: threads side by side then write without gaps, as half-written
// sectors cost a third of the rate.
struct HalfPack {
  float v[kPack / 2];
};

__device__ __forceinline__ HalfPack load_half(const __nv_bfloat16* base, std::int64_t half) {
  const uint2 raw = reinterpret_cast<const uint2*>(base)[half];
  return {{__uint_as_float(raw.x << 16), __uint_as_float(raw.x & 0xFFFF0000U), __uint_as_float(raw.y << 16),
           __uint_as_float(raw.y & 0xFFFF0000U)}};
}

__device__ __forceinline__ HalfPack load_half(const float* base, std::int64_t half) {
  const float4 a = reinterpret_cast<const float4*>(base)[half];
  return {{a.x, a.y, a.z, a.w}};
}

__device__ __forceinline__ void store_half(float* base, std::int64_t half, const HalfPack& p) {
  reinterpret_cast<float4*>(base)[half] = make_float4(p.v[0], p.v[1], p.v[2], p.v[3]);
}

// Brings a line into L2 that is wanted soon; takes no register.
__device__ __forceinline__ void prefetch(const void* at) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
#else
  (void)at;
#endif
}

template <class F>
__device__ __forceinline__ Pack each(const Pack& a, F f) {
  Pack out;
#pragma unroll
  for (int i = 0; i < kPack; ++i) out.v[i] = f(a.v[i]);
  return out;
}

template <class F>
__device__ __forceinline__ Pack each(const Pack& a, const Pack& b, F f) {
  Pack out;
#pragma unroll
  for (int i = 0; i < kPack; ++i) out.v[i] = f(a.v[i], b.v[i]);
  return out;
}

__device__ __forceinline__ float sum_of(const Pack& p) {
  return ((p.v[0] + p.v[1]) + (p.v[2] + p.v[3])) + ((p.v[4] + p.v[5]) + (p.v[6] + p.v[7]));
}

__device__ __forceinline__ float max_of(const Pack& p) {
  return fmaxf(fmaxf(fmaxf(p.v[0], p.v[1]), fmaxf(p.v[2], p.v[3])),
               fmaxf(fmaxf(p.v[4], p.v[5]), fmaxf(p.v[6], p.v[7])));
}

struct Add {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <class Combine>
__device__ __forceinline__ float reduce_warp(float value, Combine combine) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2)
    value = combine(value, __shfl_xor_sync(kFullWarp, value, step));
  return value;
}

// Over the `Warps` warps that share a row; every thread gets the result. A block with one warp a row needs no
// barrier. The slots hold one number of each warp; a barrier on entry lets them be used again at once.
template <int Warps, class Combine>
__device__ __forceinline__ float reduce_row(float value, Combine combine, float* slots) {
  value = reduce_warp(value, combine);
  if constexpr (Warps > 1) {
    __syncthreads();
    if (threadIdx.x % kWarp == 0) slots[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = slots[0];
#pragma unroll
    for (int w = 1; w < Warps; ++w) value = combine(value, slots[w]);
  }
  return value;
}

// Calls f.write(i, f.read(i)) for every pack (or half), two in flight: both are read before either is written.
template <class F>
__global__ void __launch_bounds__(256) each_pack_kernel(const F f, std::uint32_t count) {
  const std::uint32_t stride = gridDim.x * blockDim.x;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += 2 * stride) {
    const std::uint32_t j = i + stride;
    const auto first = f.read(i);
    if (j < count) {
      const auto second = f.read(j);
      f.write(i, first);
      f.write(j, second);
    } else {
      f.write(i, first);
    }
  }
}

inline void check_launch() {
  CUDA_CHECK(cudaGetLastError());
}

// `at_a_time` elements by each read: a pack, or half of one. Enough blocks that each thread has its two, and
// never more than the grid-stride loop can count in 32 bits.
template <class F>
void each_pack(const F& f, std::int64_t elements, cudaStream_t stream, int at_a_time = kPack) {
  constexpr std::int64_t kThreads = 256, kMostBlocks = 132 * 64;
  const std::int64_t count = elements / at_a_time;
  if (elements % kPack != 0 || count <= 0 || count >= (std::int64_t{1} << 30))
    throw std::invalid_argument("each_pack: " + std::to_string(elements) + " elements");
  const std::int64_t wanted = (count + 2 * kThreads - 1) / (2 * kThreads);
  const auto blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
  each_pack_kernel<<<blocks, static_cast<unsigned>(kThreads), 0, stream>>>(f,
                                                                           static_cast<std::uint32_t>(count));
  check_launch();
}

// tanh form of GELU, as Megatron-LM and GPT-2 have it: x * (1 + tanh(c (x + 0.044715 x^3))) / 2, c =
// sqrt(2/pi), which is x * sigmoid(2c (x + 0.044715 x^3)).
__device__ __forceinline__ float sigmoid(float x) {
  return __fdividef(1.0F, 1.0F + __expf(-x));
}
__device__ __forceinline__ float gelu(float x) {
  return x * sigmoid(1.5957691216F * x * (1.0F + 0.044715F * x * x));
}
__device__ __forceinline__ float gelu_slope(float x) {
  const float s = sigmoid(1.5957691216F * x * (1.0F + 0.044715F * x * x));
  return s + x * s * (1.0F - s) * 1.5957691216F * (1.0F + 3.0F * 0.044715F * x * x);
}
__device__ __forceinline__ float silu(float x) {
  return x * sigmoid(x);
}
__device__ __forceinline__ float silu_slope(float x) {
  const float s = sigmoid(x);
  return s * (1.0F + x * (1.0F - s));
}

}  // namespace stagecraft::device
