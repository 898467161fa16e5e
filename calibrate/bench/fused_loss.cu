#include <stdexcept>
#include <string>

#include "calibrate/bench/fused_kernels.hpp"
#include "calibrate/bench/kernels_device.cuh"

namespace stagecraft {
namespace {

using device::each;
using device::kPack;
using device::kWarp;
using device::load;
using device::Pack;
using device::store;

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / kWarp;
constexpr float kLog2E = 1.4426950409F;

// Maximum and sum of exp(x - maximum) of what was seen so far; in base 2: x is scaled by log2(e) first.
struct Running {
  float largest = -INFINITY, sum = 0;
  __device__ __forceinline__ void add(const Pack& x) {
    const Pack scaled = each(x, [](float v) { return v * kLog2E; });
    const float now = fmaxf(largest, max_of(scaled));
    if (now == -INFINITY) return;
    sum = sum * exp2f(largest - now) + sum_of(each(scaled, [now](float v) { return exp2f(v - now); }));
    largest = now;
  }
  __device__ __forceinline__ void merge(float other_largest, float other_sum) {
    const float now = fmaxf(largest, other_largest);
    if (now == -INFINITY) return;
    sum = sum * exp2f(largest - now) + other_sum * exp2f(other_largest - now);
    largest = now;
  }
};

// A block a row. Four packs are in flight before the first is used.
__global__ void __launch_bounds__(kThreads)
    cross_entropy_forward_kernel(const CrossEntropyForward io, int packs) {
  __shared__ float largest[kWarps], sums[kWarps];
  const std::int64_t row = blockIdx.x;
  const Bf16* logits = io.logits + row * packs * kPack;
  Running running;
  int p = static_cast<int>(threadIdx.x);
  for (; p + 3 * kThreads < packs; p += 4 * kThreads) {
    Pack in[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) in[k] = load(logits, p + k * kThreads);
#pragma unroll
    for (int k = 0; k < 4; ++k) running.add(in[k]);
  }
  for (; p < packs; p += kThreads) running.add(load(logits, p));
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2)
    running.merge(__shfl_xor_sync(device::kFullWarp, running.largest, step),
                  __shfl_xor_sync(device::kFullWarp, running.sum, step));
  if (threadIdx.x % kWarp == 0) {
    largest[threadIdx.x / kWarp] = running.largest;
    sums[threadIdx.x / kWarp] = running.sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kWarps; ++w) running.merge(largest[w], sums[w]);
  const int target = io.target[row];
  const bool inside = target >= 0 && target < packs * kPack;
  io.maximum[row] = running.largest / kLog2E;
  io.sum[row] = running.sum;
  io.target_logit[row] = inside ? __bfloat162float(logits[target]) : 0.0F;
}

__global__ void __launch_bounds__(kThreads)
    cross_entropy_backward_kernel(const CrossEntropyBackward io, int packs) {
  const std::int64_t row = blockIdx.x;
  Bf16* logits = io.logits + row * packs * kPack;
  const float largest = io.maximum[row] * kLog2E, share = io.gradient / io.sum[row];
  const int target = io.target[row];
#pragma unroll 2
  for (int p = static_cast<int>(threadIdx.x); p < packs; p += 2 * kThreads) {
    const int q = p + kThreads;
    const bool both = q < packs;
    Pack a = load(logits, p), b = both ? load(logits, q) : Pack{};
    a = each(a, [&](float v) { return exp2f(v * kLog2E - largest) * share; });
    b = each(b, [&](float v) { return exp2f(v * kLog2E - largest) * share; });
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      if (p * kPack + e == target) a.v[e] -= io.gradient;
      if (q * kPack + e == target) b.v[e] -= io.gradient;
    }
    store(logits, p, a);
    if (both) store(logits, q, b);
  }
}

int packs_of(const Rows& rows) {
  if (rows.hidden <= 0 || rows.hidden % kPack != 0 || rows.hidden > (std::int64_t{1} << 28))
    throw std::invalid_argument("vocabulary shard of " + std::to_string(rows.hidden));
  return static_cast<int>(rows.hidden / kPack);
}

}  // namespace

void cross_entropy_forward(const CrossEntropyForward& io, Rows rows, cudaStream_t stream) {
  cross_entropy_forward_kernel<<<static_cast<unsigned>(rows.tokens), kThreads, 0, stream>>>(io,
                                                                                            packs_of(rows));
  device::check_launch();
}

void cross_entropy_backward(const CrossEntropyBackward& io, Rows rows, cudaStream_t stream) {
  cross_entropy_backward_kernel<<<static_cast<unsigned>(rows.tokens), kThreads, 0, stream>>>(io,
                                                                                             packs_of(rows));
  device::check_launch();
}

}  // namespace stagecraft
