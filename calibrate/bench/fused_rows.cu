// Kernels that reduce a row and use it again: the row stays in registers, so that it is read once.
//
// A row belongs to one warp (up to 1024 elements) or to one block; each thread holds kRowPacks packs of it.
// Thread u of the row's threads owns packs u, u + threads, ..., so that a warp's accesses are contiguous.
#include <stdexcept>
#include <string>

#include "calibrate/bench/fused_kernels.hpp"
#include "calibrate/bench/kernels_device.cuh"

namespace stagecraft {
namespace {

using device::Add;
using device::each;
using device::kPack;
using device::kWarp;
using device::load;
using device::Max;
using device::Pack;
using device::reduce_row;
using device::store;

constexpr int kRowPacks = 4;
constexpr float kEpsilon = 1e-5F;

template <int Warps>
constexpr int kBlock = Warps == 1 ? 4 * kWarp : Warps* kWarp;  // four rows a block where a warp holds a row

// Where this thread stands: which row first, how far to the next, which packs.
template <int Warps>
struct Place {
  std::int64_t row, rows_step;
  int pack;
  static constexpr int kStep = Warps * kWarp;
  __device__ __forceinline__ Place() {
    if constexpr (Warps == 1) {
      row = std::int64_t{blockIdx.x} * 4 + threadIdx.x / kWarp;
      rows_step = std::int64_t{gridDim.x} * 4;
      pack = static_cast<int>(threadIdx.x % kWarp);
    } else {
      row = blockIdx.x;
      rows_step = gridDim.x;
      pack = static_cast<int>(threadIdx.x);
    }
  }
};

template <int Warps>
__global__ void __launch_bounds__(kBlock<Warps>)
    softmax_forward_kernel(const Bf16* x, Bf16* y, float scale, std::int64_t rows, int packs) {
  __shared__ float slots[Warps];
  const float to_base2 = scale * 1.4426950409F;
  for (Place<Warps> at; at.row < rows; at.row += at.rows_step) {
    const int query = static_cast<int>(at.row % (std::int64_t{packs} * kPack));
    Pack held[kRowPacks];
    float largest = -INFINITY;
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      const int p = at.pack + k * at.kStep;
      if (p < packs) held[k] = load(x, at.row * packs + p);
    }
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      const int p = at.pack + k * at.kStep;
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        const bool seen = p < packs && p * kPack + e <= query;
        held[k].v[e] = seen ? held[k].v[e] * to_base2 : -INFINITY;
        largest = fmaxf(largest, held[k].v[e]);
      }
    }
    largest = reduce_row<Warps>(largest, Max{}, slots);  // finite: key 0 is seen by every query
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      held[k] = each(held[k], [&](float v) { return exp2f(v - largest); });
      sum += sum_of(held[k]);
    }
    const float share = 1.0F / reduce_row<Warps>(sum, Add{}, slots);
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      const int p = at.pack + k * at.kStep;
      if (p < packs) store(y, at.row * packs + p, each(held[k], [&](float v) { return v * share; }));
    }
  }
}

template <int Warps>
__global__ void __launch_bounds__(kBlock<Warps>)
    softmax_backward_kernel(const SoftmaxBackward io, float scale, std::int64_t rows, int packs) {
  __shared__ float slots[Warps];
  for (Place<Warps> at; at.row < rows; at.row += at.rows_step) {
    Pack dy[kRowPacks], y[kRowPacks];
    float dot = 0;
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      const int p = at.pack + k * at.kStep;
      if (p < packs) {
        dy[k] = load(io.dy, at.row * packs + p);
        y[k] = load(io.y, at.row * packs + p);
      }
    }
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k)
      if (at.pack + k * at.kStep < packs)
        dot += sum_of(each(dy[k], y[k], [](float a, float b) { return a * b; }));
    dot = reduce_row<Warps>(dot, Add{}, slots);
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      const int p = at.pack + k * at.kStep;
      if (p < packs)
        store(io.dx, at.row * packs + p,
              each(dy[k], y[k], [&](float a, float b) { return scale * b * (a - dot); }));
    }
  }
}

template <int Warps>
__global__ void __launch_bounds__(kBlock<Warps>)
    norm_forward_kernel(const NormForward io, std::int64_t rows, int packs) {
  __shared__ float slots[Warps];
  const float width = static_cast<float>(packs * kPack);
  const bool centred = io.mean != nullptr;
  for (Place<Warps> at; at.row < rows; at.row += at.rows_step) {
    Pack held[kRowPacks];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      const int p = at.pack + k * at.kStep;
      held[k] = p < packs ? load(io.x, at.row * packs + p) : Pack{};
      sum += sum_of(held[k]);
    }
    const float mean = centred ? reduce_row<Warps>(sum, Add{}, slots) / width : 0.0F;
    float squares = 0;  // about the mean, in a second pass over registers: no cancellation
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k)
      if (at.pack + k * at.kStep < packs)
        squares += sum_of(each(held[k], [&](float v) { return (v - mean) * (v - mean); }));
    const float rstd = rsqrtf(reduce_row<Warps>(squares, Add{}, slots) / width + kEpsilon);
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      const int p = at.pack + k * at.kStep;
      if (p >= packs) continue;
      const Pack weight = load(io.weight, p);
      const Pack bias = centred ? load(io.bias, p) : Pack{};
      Pack y;
#pragma unroll
      for (int e = 0; e < kPack; ++e) y.v[e] = (held[k].v[e] - mean) * rstd * weight.v[e] + bias.v[e];
      store(io.y, at.row * packs + p, y);
    }
    if (at.pack == 0) {
      if (centred) io.mean[at.row] = mean;
      io.rstd[at.row] = rstd;
    }
  }
}

// The two sums of a row in one exchange.
template <int Warps>
__device__ __forceinline__ float2 reduce_two(float a, float b, float* slots) {
  a = device::reduce_warp(a, Add{});
  b = device::reduce_warp(b, Add{});
  if constexpr (Warps > 1) {
    __syncthreads();
    if (threadIdx.x % kWarp == 0) {
      slots[2 * (threadIdx.x / kWarp)] = a;
      slots[2 * (threadIdx.x / kWarp) + 1] = b;
    }
    __syncthreads();
    a = slots[0], b = slots[1];
#pragma unroll
    for (int w = 1; w < Warps; ++w) a += slots[2 * w], b += slots[2 * w + 1];
  }
  return {a, b};
}

// One pack of the gradient before the mean is taken off, and of the normed input.
struct NormTerms {
  Pack dy, normed;
};
__device__ __forceinline__ NormTerms norm_terms(const uint4& dy, const uint4& x, float mean, float rstd) {
  return {device::unpack(dy), each(device::unpack(x), [&](float v) { return (v - mean) * rstd; })};
}

// A thread meets the same columns in every row that it works on, so the gradients of weight and bias gather
// in its registers; one row of partial sums a row group at the end. The row itself waits as bf16: unpacked it
// would not fit beside them. For the same reason the next row waits in L2; on H200 that gave RMSNorm 6 % and took
// 6 from LayerNorm, which does without.
template <int Warps, bool Centred>
__global__ void __launch_bounds__(kBlock<Warps>, 16 * kWarp / kBlock<Warps>)
    norm_backward_kernel(const NormBackward io, std::int64_t rows, int packs) {
  __shared__ float slots[2 * Warps];
  const float share = 1.0F / static_cast<float>(packs * kPack);
  Pack dweight[kRowPacks] = {}, dbias[Centred ? kRowPacks : 1] = {};
  Place<Warps> at;
  const std::int64_t group = at.row;
  for (; at.row < rows; at.row += at.rows_step) {
    uint4 dy[kRowPacks] = {}, x[kRowPacks] = {};
    const float mean = Centred ? io.mean[at.row] : 0.0F, rstd = io.rstd[at.row];
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      const int p = at.pack + k * at.kStep;
      if (p >= packs) continue;
      dy[k] = device::load_raw(io.dy, at.row * packs + p);
      x[k] = device::load_raw(io.x, at.row * packs + p);
      if (io.residual_gradient != nullptr)
        device::prefetch(io.residual_gradient + (at.row * packs + p) * kPack);
      if (!Centred && at.row + at.rows_step < rows) {
        device::prefetch(io.dy + ((at.row + at.rows_step) * packs + p) * kPack);
        device::prefetch(io.x + ((at.row + at.rows_step) * packs + p) * kPack);
      }
    }
    float sum = 0, dot = 0;
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      const int p = at.pack + k * at.kStep;
      if (p >= packs) continue;
      const Pack weight = load(io.weight, p);
      const NormTerms t = norm_terms(dy[k], x[k], mean, rstd);
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        dweight[k].v[e] += t.dy.v[e] * t.normed.v[e];
        if constexpr (Centred) dbias[k].v[e] += t.dy.v[e];
        sum += t.dy.v[e] * weight.v[e];
        dot += t.dy.v[e] * weight.v[e] * t.normed.v[e];
      }
    }
    const float2 both = reduce_two<Warps>(sum, dot, slots);
    const float mean_dy = Centred ? both.x * share : 0.0F, mean_dot = both.y * share;
#pragma unroll
    for (int k = 0; k < kRowPacks; ++k) {
      const int p = at.pack + k * at.kStep;
      if (p >= packs) continue;
      const NormTerms t = norm_terms(dy[k], x[k], mean, rstd);
      const Pack scaled = each(t.dy, load(io.weight, p), [](float a, float b) { return a * b; });
      Pack dx = each(scaled, t.normed, [&](float d, float n) { return rstd * (d - mean_dy - n * mean_dot); });
      if (io.residual_gradient != nullptr)
        dx = each(dx, load(io.residual_gradient, at.row * packs + p), Add{});
      store(io.dx, at.row * packs + p, dx);
    }
  }
#pragma unroll
  for (int k = 0; k < kRowPacks; ++k) {
    const int p = at.pack + k * at.kStep;
    if (p >= packs) continue;
    store(io.partials, group * packs + p, dweight[k]);
    if constexpr (Centred) store(io.partials, (at.rows_step + group) * packs + p, dbias[k]);
  }
}

// sums[c] = the sum of column c over `rows` rows of fp32, each thread a column, always in the same order.
__global__ void __launch_bounds__(1024)
    sum_partials_kernel(const float* partials, float* sums, int rows, std::int64_t width) {
  __shared__ float tile[32][33];
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x;
  float sum = 0;
  if (column < width)
    for (int r = static_cast<int>(threadIdx.y); r < rows; r += 32) sum += partials[r * width + column];
  tile[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = device::reduce_warp(tile[threadIdx.x][threadIdx.y], Add{});
  const std::int64_t mine = std::int64_t{blockIdx.x} * 32 + threadIdx.y;
  if (threadIdx.x == 0 && mine < width) sums[mine] = sum;
}

void sum_partials(const float* partials, float* sums, int rows, std::int64_t width, cudaStream_t stream) {
  sum_partials_kernel<<<static_cast<unsigned>((width + 31) / 32), dim3(32, 32), 0, stream>>>(partials, sums,
                                                                                             rows, width);
  device::check_launch();
}

// What is summed down a column: dy, or dy * times.
struct Columns {
  const Bf16 *dy, *times;
  __device__ __forceinline__ Pack get(std::int64_t pack) const {
    const Pack a = load(dy, pack);
    return times == nullptr ? a : each(a, load(times, pack), [](float v, float w) { return v * w; });
  }
};

// Block (x, y): columns [256 x, 256 x + 256), rows y, y + gridDim.y * 8, ...: a warp a row, a lane a pack.
__global__ void __launch_bounds__(256)
    column_sum_kernel(const Columns in, float* partials, std::int64_t rows, int packs) {
  __shared__ Pack tile[8][kWarp];
  const int lane = static_cast<int>(threadIdx.x % kWarp), warp = static_cast<int>(threadIdx.x / kWarp);
  const int p = static_cast<int>(blockIdx.x) * kWarp + lane;
  Pack sum{};
  if (p < packs)
#pragma unroll 4
    for (std::int64_t r = std::int64_t{blockIdx.y} * 8 + warp; r < rows; r += std::int64_t{gridDim.y} * 8)
      sum = each(sum, in.get(r * packs + p), Add{});
  tile[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || p >= packs) return;
  for (int w = 1; w < 8; ++w) sum = each(sum, tile[w][lane], Add{});
  store(partials, std::int64_t{blockIdx.y} * packs + p, sum);
}

constexpr int kColumnChunks = 64;

// Calls `run` with the number of warps that hold a row of this width, as a constant.
template <class Run>
void with_warps(std::int64_t width, Run run) {
  if (width <= 0 || width % kPack != 0 || width > kWidestRow)
    throw std::invalid_argument("no row kernel for a width of " + std::to_string(width));
  if (width <= 1024) return run(std::integral_constant<int, 1>{});
  if (width <= 4096) return run(std::integral_constant<int, 4>{});
  if (width <= 8192) return run(std::integral_constant<int, 8>{});
  return run(std::integral_constant<int, 16>{});
}

template <int Warps>
unsigned blocks_of(std::int64_t rows) {
  const std::int64_t blocks = Warps == 1 ? (rows + 3) / 4 : rows;
  return static_cast<unsigned>(blocks < (std::int64_t{1} << 30) ? blocks : std::int64_t{1} << 30);
}

// Blocks of the norm's backward: what is resident at once, so that every block gathers many rows.
template <int Warps>
int backward_blocks(std::int64_t rows, int sms) {
  constexpr int kPerSm = Warps == 1 ? 4 : Warps == 4 ? 4 : Warps == 8 ? 2 : 1;
  const auto needed = static_cast<std::int64_t>(blocks_of<Warps>(rows));
  const std::int64_t resident = std::int64_t{sms} * kPerSm;
  return static_cast<int>(needed < resident ? needed : resident);
}

template <int Warps>
constexpr int kGroups = Warps == 1 ? 4 : 1;  // rows that a block works on at a time

}  // namespace

void causal_softmax_forward(const Bf16* x, Bf16* y, float scale, Rows rows, cudaStream_t stream) {
  with_warps(rows.hidden, [&](auto warps) {
    softmax_forward_kernel<warps><<<blocks_of<warps>(rows.tokens), kBlock<warps>, 0, stream>>>(
        x, y, scale, rows.tokens, static_cast<int>(rows.hidden / kPack));
  });
  device::check_launch();
}

void causal_softmax_backward(const SoftmaxBackward& io, float scale, Rows rows, cudaStream_t stream) {
  with_warps(rows.hidden, [&](auto warps) {
    softmax_backward_kernel<warps><<<blocks_of<warps>(rows.tokens), kBlock<warps>, 0, stream>>>(
        io, scale, rows.tokens, static_cast<int>(rows.hidden / kPack));
  });
  device::check_launch();
}

void norm_forward(const NormForward& io, Rows rows, cudaStream_t stream) {
  with_warps(rows.hidden, [&](auto warps) {
    norm_forward_kernel<warps><<<blocks_of<warps>(rows.tokens), kBlock<warps>, 0, stream>>>(
        io, rows.tokens, static_cast<int>(rows.hidden / kPack));
  });
  device::check_launch();
}

std::int64_t norm_backward_partials(Rows rows, int sms) {
  std::int64_t groups = 0;
  with_warps(rows.hidden, [&](auto warps) {
    groups = std::int64_t{backward_blocks<warps>(rows.tokens, sms)} * kGroups<warps>;
  });
  return 2 * groups * rows.hidden;
}

void norm_backward(const NormBackward& io, Rows rows, int sms, cudaStream_t stream) {
  int groups = 0;
  with_warps(rows.hidden, [&](auto warps) {
    const int blocks = backward_blocks<warps>(rows.tokens, sms);
    groups = blocks * kGroups<warps>;
    const int packs = static_cast<int>(rows.hidden / kPack);
    if (io.dbias != nullptr)
      norm_backward_kernel<warps, true><<<blocks, kBlock<warps>, 0, stream>>>(io, rows.tokens, packs);
    else
      norm_backward_kernel<warps, false><<<blocks, kBlock<warps>, 0, stream>>>(io, rows.tokens, packs);
  });
  device::check_launch();
  sum_partials(io.partials, io.dweight, groups, rows.hidden, stream);
  if (io.dbias != nullptr)
    sum_partials(io.partials + std::int64_t{groups} * rows.hidden, io.dbias, groups, rows.hidden, stream);
}

std::int64_t column_sum_partials(Rows rows) {
  return kColumnChunks * rows.hidden;
}

void column_sum(const Bf16* dy, float* sums, float* partials, Rows rows, cudaStream_t stream) {
  column_dot({dy, nullptr}, sums, partials, rows, stream);
}

void column_dot(const ColumnDot& io, float* sums, float* partials, Rows rows, cudaStream_t stream) {
  const int packs = static_cast<int>(rows.hidden / kPack);
  const dim3 grid(static_cast<unsigned>((packs + kWarp - 1) / kWarp), kColumnChunks);
  column_sum_kernel<<<grid, 256, 0, stream>>>(Columns{io.dy, io.times}, partials, rows.tokens, packs);
  device::check_launch();
  sum_partials(partials, sums, kColumnChunks, rows.hidden, stream);
}

}  // namespace stagecraft
