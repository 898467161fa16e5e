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

constexpr int kTile = 64;

// A tile of 64 x 64: rows in by 16-byte loads, columns out by 16-byte stores. A row of the tile has one word
// more than 32, so that the eight rows that make a pack of the output lie in different banks.
__global__ void __launch_bounds__(256) transpose_kernel(const Bf16* from, Bf16* to, int rows, int columns) {
  __shared__ std::uint32_t tile[kTile][kTile / 2 + 1];
  const std::int64_t row0 = std::int64_t{blockIdx.y} * kTile, column0 = std::int64_t{blockIdx.x} * kTile;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = static_cast<int>(threadIdx.x / 8) + 32 * half, pack = static_cast<int>(threadIdx.x % 8);
    const uint4 raw = reinterpret_cast<const uint4*>(from + (row0 + r) * columns + column0)[pack];
    tile[r][4 * pack] = raw.x;
    tile[r][4 * pack + 1] = raw.y;
    tile[r][4 * pack + 2] = raw.z;
    tile[r][4 * pack + 3] = raw.w;
  }
  __syncthreads();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int c = static_cast<int>(threadIdx.x / 8) + 32 * half, pack = static_cast<int>(threadIdx.x % 8);
    uint4 out;
    std::uint32_t* words = &out.x;
    const std::uint32_t selector = c % 2 == 0 ? 0x5410U : 0x7632U;  // lower or upper halves of two words
#pragma unroll
    for (int i = 0; i < 4; ++i)
      words[i] = __byte_perm(tile[8 * pack + 2 * i][c / 2], tile[8 * pack + 2 * i + 1][c / 2], selector);
    reinterpret_cast<uint4*>(to + (column0 + c) * rows + row0)[pack] = out;
  }
}

struct MoveHeads {
  const Bf16* from;
  Bf16* to;
  std::uint32_t tokens, heads, packs;  // packs of a head
  __device__ uint4 read(std::uint32_t i) const {
    const std::uint32_t p = i % packs, token = i / packs % tokens, head = i / packs / tokens;
    return device::load_raw(from, (std::int64_t{token} * heads + head) * packs + p);
  }
  __device__ void write(std::uint32_t i, const uint4& raw) const { reinterpret_cast<uint4*>(to)[i] = raw; }
};

// Each token is read once and written k times.
struct Scatter {
  const Bf16* tokens;
  Bf16* expert_rows;
  const std::int32_t* slot;
  int k;
  std::uint32_t packs;
  __device__ uint4 read(std::uint32_t i) const { return device::load_raw(tokens, i); }
  __device__ void write(std::uint32_t i, const uint4& raw) const {
    const std::uint32_t token = i / packs, p = i % packs;
    for (int j = 0; j < k; ++j)
      reinterpret_cast<uint4*>(expert_rows)[std::int64_t{slot[std::int64_t{token} * k + j]} * packs + p] =
          raw;
  }
};

struct Gather {
  const Bf16* expert_rows;
  Bf16* tokens;
  Routing routing;
  std::uint32_t packs;
  __device__ Pack read(std::uint32_t i) const {
    const std::int64_t first = std::int64_t{i / packs} * routing.k;
    const std::uint32_t p = i % packs;
    Pack sum{};
#pragma unroll 4
    for (int j = 0; j < routing.k; ++j) {
      const Pack row = load(expert_rows, std::int64_t{routing.slot[first + j]} * packs + p);
      const float share = routing.probability != nullptr ? routing.probability[first + j] : 1.0F;
      sum = each(sum, row, [share](float s, float v) { return s + share * v; });
    }
    return sum;
  }
  __device__ void write(std::uint32_t i, const Pack& sum) const {
    store(tokens, i, sum);
  }
};

// A warp for each copy of a token: dy comes from the cache for all copies but the first.
__global__ void __launch_bounds__(256)
    unpermute_backward_kernel(const UnpermuteBackward io, const Routing routing, std::int64_t copies,
                              int packs) {
  const std::int64_t copy = std::int64_t{blockIdx.x} * 8 + threadIdx.x / kWarp;
  if (copy >= copies) return;
  const std::int64_t from = copy / routing.k * packs, to = std::int64_t{routing.slot[copy]} * packs;
  const float share = routing.probability != nullptr ? routing.probability[copy] : 1.0F;
  float dot = 0;
#pragma unroll 4
  for (int p = static_cast<int>(threadIdx.x % kWarp); p < packs; p += kWarp) {
    const Pack dy = load(io.dy, from + p), row = load(io.expert_rows, to + p);
    dot += sum_of(each(dy, row, [](float a, float b) { return a * b; }));
    store(io.dexpert_rows, to + p, each(dy, [share](float v) { return share * v; }));
  }
  dot = device::reduce_warp(dot, device::Add{});
  if (threadIdx.x % kWarp == 0) io.dprobability[copy] = dot;
}

struct Lookup {
  const Bf16* table;
  Bf16* y;
  Embedding embedding;
  std::uint32_t packs;
  __device__ uint4 read(std::uint32_t i) const {
    const std::int32_t id = embedding.ids[i / packs];
    if (id < 0 || id >= embedding.vocabulary) return uint4{0, 0, 0, 0};
    return device::load_raw(table, std::int64_t{id} * packs + i % packs);
  }
  __device__ void write(std::uint32_t i, const uint4& raw) const { reinterpret_cast<uint4*>(y)[i] = raw; }
};

__global__ void __launch_bounds__(256) embedding_backward_kernel(const EmbeddingBackward io, int packs) {
  const std::int64_t row = std::int64_t{io.ids[blockIdx.x]} * packs;
  const int begin = io.begin[blockIdx.x], end = io.begin[blockIdx.x + 1];
#pragma unroll 2
  for (int p = static_cast<int>(threadIdx.x); p < packs; p += 256) {
    Pack sum = load(io.table_gradient, row + p);
    for (int i = begin; i < end; ++i)
      sum = each(sum, load(io.dy, std::int64_t{io.order[i]} * packs + p), device::Add{});
    store(io.table_gradient, row + p, sum);
  }
}

std::uint32_t packs_of(std::int64_t width) {
  if (width <= 0 || width % kPack != 0) throw std::invalid_argument("row of " + std::to_string(width));
  return static_cast<std::uint32_t>(width / kPack);
}

}  // namespace

void transpose(const Bf16* from, Bf16* to, Rows rows, cudaStream_t stream) {
  if (rows.tokens % kTile != 0 || rows.hidden % kTile != 0)
    throw std::invalid_argument("transpose: not a multiple of 64");
  const dim3 grid(static_cast<unsigned>(rows.hidden / kTile), static_cast<unsigned>(rows.tokens / kTile));
  transpose_kernel<<<grid, 256, 0, stream>>>(from, to, static_cast<int>(rows.tokens),
                                             static_cast<int>(rows.hidden));
  device::check_launch();
}

void transpose_heads(const Bf16* from, Bf16* to, const RopeShape& shape, cudaStream_t stream) {
  const MoveHeads move{from, to, static_cast<std::uint32_t>(shape.tokens),
                       static_cast<std::uint32_t>(shape.heads), packs_of(shape.head_size)};
  device::each_pack(move, shape.tokens * shape.heads * shape.head_size, stream);
}

void permute(const Bf16* tokens, Bf16* expert_rows, const Routing& routing, Rows rows, cudaStream_t stream) {
  device::each_pack(Scatter{tokens, expert_rows, routing.slot, routing.k, packs_of(rows.hidden)},
                    rows.elements(), stream);
}

void unpermute(const Bf16* expert_rows, Bf16* tokens, const Routing& routing, Rows rows,
               cudaStream_t stream) {
  device::each_pack(Gather{expert_rows, tokens, routing, packs_of(rows.hidden)}, rows.elements(), stream);
}

void unpermute_backward(const UnpermuteBackward& io, const Routing& routing, Rows rows, cudaStream_t stream) {
  const std::int64_t copies = rows.tokens * routing.k;
  unpermute_backward_kernel<<<static_cast<unsigned>((copies + 7) / 8), 256, 0, stream>>>(
      io, routing, copies, static_cast<int>(packs_of(rows.hidden)));
  device::check_launch();
}

void embedding_forward(const Bf16* table, Bf16* y, const Embedding& embedding, Rows rows,
                       cudaStream_t stream) {
  device::each_pack(Lookup{table, y, embedding, packs_of(rows.hidden)}, rows.elements(), stream);
}

void embedding_backward(const EmbeddingBackward& io, Rows rows, cudaStream_t stream) {
  embedding_backward_kernel<<<static_cast<unsigned>(io.distinct), 256, 0, stream>>>(
      io, static_cast<int>(packs_of(rows.hidden)));
  device::check_launch();
}

}  // namespace stagecraft
