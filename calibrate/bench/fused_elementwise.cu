#include <stdexcept>
#include <string>

#include "calibrate/bench/fused_kernels.hpp"
#include "calibrate/bench/kernels_device.cuh"
#include "calibrate/bench/kernels_rng.hpp"

namespace stagecraft {
namespace {

using device::each;
using device::kPack;
using device::load;
using device::Pack;
using device::store;

struct Two {
  Pack a, b;
};

struct BiasGelu {
  const Bf16 *x, *bias;
  Bf16* y;
  std::uint32_t row_packs;
  __device__ Two read(std::uint32_t i) const { return {load(x, i), load(bias, i % row_packs)}; }
  __device__ void write(std::uint32_t i, const Two& in) const {
    store(y, i, each(in.a, in.b, [](float v, float b) { return device::gelu(v + b); }));
  }
};

struct BiasGeluSlope {
  BiasGeluBackward io;
  std::uint32_t row_packs;
  struct In {
    Pack dy, x, bias;
  };
  __device__ In read(std::uint32_t i) const {
    return {load(io.dy, i), load(io.x, i), load(io.bias, i % row_packs)};
  }
  __device__ void write(std::uint32_t i, const In& in) const {
    Pack dx;
#pragma unroll
    for (int e = 0; e < kPack; ++e) dx.v[e] = in.dy.v[e] * device::gelu_slope(in.x.v[e] + in.bias.v[e]);
    store(io.dx, i, dx);
  }
};

struct Swiglu {
  const Bf16* x;
  Bf16* y;
  std::uint32_t row_packs;
  __device__ Two read(std::uint32_t i) const {
    const std::int64_t gate = std::int64_t{i} + std::int64_t{i / row_packs} * row_packs;
    return {load(x, gate), load(x, gate + row_packs)};
  }
  __device__ void write(std::uint32_t i, const Two& in) const {
    store(y, i, each(in.a, in.b, [](float gate, float up) { return device::silu(gate) * up; }));
  }
};

struct SwigluGradient {
  const Bf16 *dy, *x;
  Bf16* dx;
  std::uint32_t row_packs;
  struct In {
    Pack dy, gate, up;
  };
  __device__ std::int64_t gate_pack(std::uint32_t i) const {
    return std::int64_t{i} + std::int64_t{i / row_packs} * row_packs;
  }
  __device__ In read(std::uint32_t i) const {
    const std::int64_t gate = gate_pack(i);
    return {load(dy, i), load(x, gate), load(x, gate + row_packs)};
  }
  __device__ void write(std::uint32_t i, const In& in) const {
    Pack dgate, dup;
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      dgate.v[e] = in.dy.v[e] * in.up.v[e] * device::silu_slope(in.gate.v[e]);
      dup.v[e] = in.dy.v[e] * device::silu(in.gate.v[e]);
    }
    const std::int64_t gate = gate_pack(i);
    store(dx, gate, dgate);
    store(dx, gate + row_packs, dup);
  }
};

struct DropoutAdd {
  BiasDropoutAdd io;
  std::uint64_t seed;
  std::uint32_t threshold;
  float scale;
  std::uint32_t row_packs;
  struct In {
    Pack x, bias, residual;
  };
  __device__ In read(std::uint32_t i) const {
    return {load(io.x, i), load(io.bias, i % row_packs), load(io.residual, i)};
  }
  __device__ void write(std::uint32_t i, const In& in) const {
    const Random128 draws = dropout_draws(i, seed);
    Pack y;
    std::uint64_t mask = 0;
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      const bool keep = dropout_keeps(draws, e, threshold);
      y.v[e] = in.residual.v[e] + (keep ? (in.x.v[e] + in.bias.v[e]) * scale : 0.0F);
      mask |= static_cast<std::uint64_t>(keep) << (8 * e);
    }
    store(io.y, i, y);
    reinterpret_cast<std::uint64_t*>(io.mask)[i] = mask;
  }
};

struct DropoutGradient {
  DropoutBackward io;
  float scale;
  struct In {
    Pack dy;
    std::uint64_t mask;
  };
  __device__ In read(std::uint32_t i) const {
    return {load(io.dy, i), reinterpret_cast<const std::uint64_t*>(io.mask)[i]};
  }
  __device__ void write(std::uint32_t i, const In& in) const {
    Pack dx;
#pragma unroll
    for (int e = 0; e < kPack; ++e) dx.v[e] = ((in.mask >> (8 * e)) & 1U) != 0 ? in.dy.v[e] * scale : 0.0F;
    store(io.dx, i, dx);
  }
};

// Both halves of a head in one thread: pack `p` of the first half and the same of the second.
struct Turn {
  Rope io;
  std::uint32_t heads, half_packs;
  float direction;
  struct In {
    Pack first, second, cosine, sine;
  };
  __device__ std::int64_t first_pack(std::uint32_t i) const {
    return std::int64_t{i / half_packs} * (2 * half_packs) + i % half_packs;
  }
  __device__ In read(std::uint32_t i) const {
    const std::int64_t at = first_pack(i);
    const std::int64_t angle = std::int64_t{i / half_packs / heads} * half_packs + i % half_packs;
    return {load(io.x, at), load(io.x, at + half_packs), load(io.cosine, angle), load(io.sine, angle)};
  }
  __device__ void write(std::uint32_t i, const In& in) const {
    Pack first, second;
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      const float sine = in.sine.v[e] * direction;
      first.v[e] = in.first.v[e] * in.cosine.v[e] - in.second.v[e] * sine;
      second.v[e] = in.second.v[e] * in.cosine.v[e] + in.first.v[e] * sine;
    }
    const std::int64_t at = first_pack(i);
    store(io.y, at, first);
    store(io.y, at + half_packs, second);
  }
};

std::uint32_t packs_of(std::int64_t width) {
  if (width <= 0 || width % kPack != 0) throw std::invalid_argument("row of " + std::to_string(width));
  return static_cast<std::uint32_t>(width / kPack);
}

}  // namespace

void bias_gelu_forward(const Bf16* x, const Bf16* bias, Bf16* y, Rows rows, cudaStream_t stream) {
  device::each_pack(BiasGelu{x, bias, y, packs_of(rows.hidden)}, rows.elements(), stream);
}

void bias_gelu_backward(const BiasGeluBackward& io, Rows rows, cudaStream_t stream) {
  device::each_pack(BiasGeluSlope{io, packs_of(rows.hidden)}, rows.elements(), stream);
}

void swiglu_forward(const Bf16* x, Bf16* y, Rows rows, cudaStream_t stream) {
  device::each_pack(Swiglu{x, y, packs_of(rows.hidden)}, rows.elements(), stream);
}

void swiglu_backward(const Bf16* dy, const Bf16* x, Bf16* dx, Rows rows, cudaStream_t stream) {
  device::each_pack(SwigluGradient{dy, x, dx, packs_of(rows.hidden)}, rows.elements(), stream);
}

void bias_dropout_add_forward(const BiasDropoutAdd& io, const Dropout& dropout, Rows rows,
                              cudaStream_t stream) {
  device::each_pack(DropoutAdd{io, dropout.seed, dropout.threshold, dropout.scale(), packs_of(rows.hidden)},
                    rows.elements(), stream);
}

void dropout_backward(const DropoutBackward& io, const Dropout& dropout, Rows rows, cudaStream_t stream) {
  device::each_pack(DropoutGradient{io, dropout.scale()}, rows.elements(), stream);
}

void rope(const Rope& io, const RopeShape& shape, cudaStream_t stream) {
  const Turn turn{io, static_cast<std::uint32_t>(shape.heads), packs_of(shape.head_size / 2),
                  shape.backward ? -1.0F : 1.0F};
  device::each_pack(turn, shape.tokens * shape.heads * shape.head_size / 2, stream);
}

}  // namespace stagecraft
