#include <stdexcept>

#include "calibrate/bench/fused_kernels.hpp"
#include "calibrate/bench/kernels_device.cuh"

namespace stagecraft {
namespace {

using device::each;
using device::HalfPack;
using device::kPack;
using device::kWarp;
using device::load;
using device::load_half;
using device::Pack;
using device::store;
using device::store_half;

constexpr int kAdamThreads = 256;
constexpr int kHalf = kPack / 2;

// A block a chunk: eight 16-byte loads in flight a thread.
__global__ void __launch_bounds__(kAdamThreads) adam_kernel(const AdamChunk* chunks, const AdamStep step) {
  const AdamChunk chunk = chunks[blockIdx.x];
  const auto packs = static_cast<int>(chunk.elements / kPack);
  const float keep = 1.0F - step.rate * step.decay;
  for (int p = static_cast<int>(threadIdx.x); p < packs; p += kAdamThreads) {
    const Pack g = load(chunk.gradient, p);
    Pack w = load(chunk.weight, p), m = load(chunk.first, p), v = load(chunk.second, p);
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      m.v[e] = step.beta1 * m.v[e] + (1.0F - step.beta1) * g.v[e];
      v.v[e] = step.beta2 * v.v[e] + (1.0F - step.beta2) * g.v[e] * g.v[e];
      const float move = (m.v[e] / step.correction1) / (sqrtf(v.v[e] / step.correction2) + step.epsilon);
      w.v[e] = keep * w.v[e] - step.rate * move;
    }
    store(chunk.weight, p, w);
    store(chunk.first, p, m);
    store(chunk.second, p, v);
    if (chunk.copy != nullptr) store(chunk.copy, p, w);
  }
}

__device__ double reduce_block(double value) {
  __shared__ double slots[kWarp];
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(device::kFullWarp, value, step);
  if (threadIdx.x % kWarp == 0) slots[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  for (unsigned w = 0; w < blockDim.x / kWarp; ++w) sum += slots[w];
  return sum;
}

// The grid is fixed, so each thread always adds the same elements in the same order: fp32 inside a pack,
// double beyond.
__global__ void __launch_bounds__(512)
    square_sum_kernel(const float* gradient, std::int64_t packs, double* partials) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  double sum = 0;
  const auto square = [](float v) { return v * v; };
  for (std::int64_t p = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < packs; p += 2 * stride) {
    const Pack a = load(gradient, p), b = p + stride < packs ? load(gradient, p + stride) : Pack{};
    sum += static_cast<double>(sum_of(each(a, square)) + sum_of(each(b, square)));
  }
  sum = reduce_block(sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kNormPartials) square_root_kernel(const double* partials, float* norm) {
  const double sum = reduce_block(partials[threadIdx.x]);
  if (threadIdx.x == 0) *norm = static_cast<float>(sqrt(sum));
}

struct ToBf16 {
  const float* from;
  Bf16* to;
  __device__ Pack read(std::uint32_t i) const { return load(from, i); }
  __device__ void write(std::uint32_t i, const Pack& p) const { store(to, i, p); }
};

struct ToFloat {
  const Bf16* from;
  float* to;
  __device__ HalfPack read(std::uint32_t i) const { return load_half(from, i); }
  __device__ void write(std::uint32_t i, const HalfPack& p) const { store_half(to, i, p); }
};

struct Accumulate {
  const Bf16* gradient;
  float* main;
  __device__ HalfPack read(std::uint32_t i) const {
    HalfPack sum = load_half(main, i);
    const HalfPack more = load_half(gradient, i);
#pragma unroll
    for (int e = 0; e < kHalf; ++e) sum.v[e] += more.v[e];
    return sum;
  }
  __device__ void write(std::uint32_t i, const HalfPack& sum) const {
    store_half(main, i, sum);
  }
};

}  // namespace

void adam(const AdamChunk* chunks_on_device, int chunks, const AdamStep& step, cudaStream_t stream) {
  adam_kernel<<<static_cast<unsigned>(chunks), kAdamThreads, 0, stream>>>(chunks_on_device, step);
  device::check_launch();
}

void gradient_norm(const float* gradient, std::int64_t elements, double* partials, float* norm,
                   cudaStream_t stream) {
  if (elements <= 0 || elements % kPack != 0) throw std::invalid_argument("gradient_norm: elements");
  square_sum_kernel<<<kNormPartials, 512, 0, stream>>>(gradient, elements / kPack, partials);
  device::check_launch();
  square_root_kernel<<<1, kNormPartials, 0, stream>>>(partials, norm);
  device::check_launch();
}

void cast_to_bf16(const float* from, Bf16* to, std::int64_t elements, cudaStream_t stream) {
  device::each_pack(ToBf16{from, to}, elements, stream);
}

void cast_to_float(const Bf16* from, float* to, std::int64_t elements, cudaStream_t stream) {
  device::each_pack(ToFloat{from, to}, elements, stream, kHalf);
}

void accumulate_gradient(const Bf16* gradient, float* main, std::int64_t elements, cudaStream_t stream) {
  device::each_pack(Accumulate{gradient, main}, elements, stream, kHalf);
}

}  // namespace stagecraft
