#include <stdexcept>

#include "calibrate/bench/kernels_device.cuh"
#include "calibrate/bench/kernels_rng.hpp"
#include "calibrate/bench/kernels_unfused.hpp"

namespace stagecraft::unfused {
namespace {

using device::each;
using device::kPack;
using device::kWarp;
using device::load;
using device::Pack;
using device::store;

// An operand of an elementwise step: rows `stride` packs apart; 0: one row for all (a bias).
template <class T>
struct View {
  T* base;
  std::uint32_t stride;
  __device__ Pack get(std::uint32_t row, std::uint32_t pack) const {
    return load(base, std::int64_t{row} * stride + pack);
  }
  __device__ void put(std::uint32_t row, std::uint32_t pack, const Pack& p) const {
    store(base, std::int64_t{row} * stride + pack, p);
  }
};

// One number a row.
struct RowValue {
  const float* base;
  __device__ Pack get(std::uint32_t row, std::uint32_t) const {
    const float v = base[row];
    return {{v, v, v, v, v, v, v, v}};
  }
};

// Angles [tokens, size/2] seen from rows of one head each.
struct AngleView {
  const float* base;
  std::uint32_t heads, half_packs;
  __device__ Pack get(std::uint32_t row, std::uint32_t pack) const {
    return load(base, std::int64_t{row / heads} * half_packs + pack % half_packs);
  }
};

template <class F, class A, class Out>
struct Map1 {
  F f;
  A a;
  Out out;
  std::uint32_t row_packs;
  __device__ Pack read(std::uint32_t i) const { return a.get(i / row_packs, i % row_packs); }
  __device__ void write(std::uint32_t i, const Pack& p) const {
    out.put(i / row_packs, i % row_packs, each(p, f));
  }
};

template <class F, class A, class B, class Out>
struct Map2 {
  F f;
  A a;
  B b;
  Out out;
  std::uint32_t row_packs;
  struct In {
    Pack a, b;
  };
  __device__ In read(std::uint32_t i) const {
    return {a.get(i / row_packs, i % row_packs), b.get(i / row_packs, i % row_packs)};
  }
  __device__ void write(std::uint32_t i, const In& in) const {
    out.put(i / row_packs, i % row_packs, each(in.a, in.b, f));
  }
};

struct Copy {
  __device__ float operator()(float a) const { return a; }
};
struct Negate {
  __device__ float operator()(float a) const { return -a; }
};
struct Gelu {
  __device__ float operator()(float a) const { return device::gelu(a); }
};
struct Silu {
  __device__ float operator()(float a) const { return device::silu(a); }
};
struct Square {
  __device__ float operator()(float a) const { return a * a; }
};
struct Exp {
  __device__ float operator()(float a) const { return __expf(a); }
};
struct Affine {  // factor * a + shift
  float factor, shift;
  __device__ float operator()(float a) const { return factor * a + shift; }
};
struct RootAffine {
  float factor;
  __device__ float operator()(float a) const { return sqrtf(factor * a); }
};
struct Times {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Divide {
  __device__ float operator()(float a, float b) const { return a / b; }
};
struct Weighted {  // a + factor * b
  float factor;
  __device__ float operator()(float a, float b) const { return a + factor * b; }
};
struct GeluSlope {
  __device__ float operator()(float dy, float x) const { return dy * device::gelu_slope(x); }
};
struct SiluSlope {
  __device__ float operator()(float dy, float x) const { return dy * device::silu_slope(x); }
};

// Elementwise steps over [rows, width].
struct Grid {
  Rows rows;
  cudaStream_t stream;
  [[nodiscard]] std::uint32_t packs() const { return static_cast<std::uint32_t>(rows.hidden / kPack); }
  template <class T>
  [[nodiscard]] View<T> dense(T* base) const {
    return {base, packs()};
  }
  template <class F, class A, class Out>
  void map(F f, A a, Out out) const {
    device::each_pack(Map1<F, A, Out>{f, a, out, packs()}, rows.elements(), stream);
  }
  template <class F, class A, class B, class Out>
  void map(F f, A a, B b, Out out) const {
    device::each_pack(Map2<F, A, B, Out>{f, a, b, out, packs()}, rows.elements(), stream);
  }
};

struct DropoutStep {
  const Bf16* x;
  Bf16* y;
  std::uint8_t* mask;
  std::uint64_t seed;
  std::uint32_t threshold;
  float scale;
  __device__ Pack read(std::uint32_t i) const { return load(x, i); }
  __device__ void write(std::uint32_t i, const Pack& in) const {
    const Random128 draws = dropout_draws(i, seed);
    Pack out;
    std::uint64_t bytes = 0;
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      const bool keep = dropout_keeps(draws, e, threshold);
      out.v[e] = keep ? in.v[e] * scale : 0.0F;
      bytes |= static_cast<std::uint64_t>(keep) << (8 * e);
    }
    store(y, i, out);
    reinterpret_cast<std::uint64_t*>(mask)[i] = bytes;
  }
};

struct MaskStep {
  const Bf16* x;
  const std::uint8_t* hidden_keys;  // [queries, keys], the same for all heads
  Bf16* y;
  std::uint32_t square_packs;
  struct In {
    Pack x;
    std::uint64_t hidden;
  };
  __device__ In read(std::uint32_t i) const {
    return {load(x, i), reinterpret_cast<const std::uint64_t*>(hidden_keys)[i % square_packs]};
  }
  __device__ void write(std::uint32_t i, const In& in) const {
    Pack out;
#pragma unroll
    for (int e = 0; e < kPack; ++e) out.v[e] = ((in.hidden >> (8 * e)) & 1U) != 0 ? -INFINITY : in.x.v[e];
    store(y, i, out);
  }
};

constexpr int kThreads = 256;

struct KeepSum {
  __device__ float operator()(float sum, float) const { return sum; }
};
struct MeanRoot {  // 1 / sqrt(mean + 1e-5)
  __device__ float operator()(float sum, float width) const { return rsqrtf(sum / width + 1e-5F); }
};
struct Mean {
  __device__ float operator()(float sum, float width) const { return sum / width; }
};

// out[row] = finish(combination of the row, width); a block a row.
template <class Combine, class Finish>
__global__ void __launch_bounds__(kThreads)
    reduce_rows_kernel(const float* x, float* out, int packs, Combine combine, Finish finish) {
  __shared__ float slots[kThreads / kWarp];
  const float* row = x + std::int64_t{blockIdx.x} * packs * kPack;
  const int first = static_cast<int>(threadIdx.x) < packs ? static_cast<int>(threadIdx.x) : 0;
  float value = row[first * kPack];  // any element: counted again below only by a maximum
  if constexpr (std::is_same_v<Combine, device::Add>) value = 0;
#pragma unroll 4
  for (int p = static_cast<int>(threadIdx.x); p < packs; p += kThreads) {
    const Pack in = load(row, p);
#pragma unroll
    for (int e = 0; e < kPack; ++e) value = combine(value, in.v[e]);
  }
  value = device::reduce_row<kThreads / kWarp>(value, combine, slots);
  if (threadIdx.x == 0) out[blockIdx.x] = finish(value, static_cast<float>(packs * kPack));
}

template <class Combine, class Finish>
void reduce_rows(const float* x, float* out, Grid grid, Combine combine, Finish finish) {
  reduce_rows_kernel<<<static_cast<unsigned>(grid.rows.tokens), kThreads, 0, grid.stream>>>(
      x, out, static_cast<int>(grid.packs()), combine, finish);
  device::check_launch();
}

constexpr int kSharedRow = 8192;  // elements of a row that the softmax step keeps in 32 KiB of shared memory

__global__ void __launch_bounds__(kThreads) softmax_step_kernel(const float* x, float* y, int packs) {
  __shared__ float slots[kThreads / kWarp];
  __shared__ float held[kSharedRow];
  const std::int64_t row = std::int64_t{blockIdx.x} * packs;
  float largest = -INFINITY;
#pragma unroll 4
  for (int p = static_cast<int>(threadIdx.x); p < packs; p += kThreads) {
    const Pack in = load(x, row + p);
    store(held, p, in);
    largest = fmaxf(largest, max_of(in));
  }
  largest = device::reduce_row<kThreads / kWarp>(largest, device::Max{}, slots);
  float sum = 0;
  for (int p = static_cast<int>(threadIdx.x); p < packs; p += kThreads) {
    const Pack raised = each(load(held, p), [largest](float v) { return __expf(v - largest); });
    store(held, p, raised);
    sum += sum_of(raised);
  }
  const float share = 1.0F / device::reduce_row<kThreads / kWarp>(sum, device::Add{}, slots);
  for (int p = static_cast<int>(threadIdx.x); p < packs; p += kThreads)
    store(y, row + p, each(load(held, p), [share](float v) { return v * share; }));
}

// dx = y * (dy - sum(dy * y)); the second read comes from the cache.
__global__ void __launch_bounds__(kThreads)
    softmax_step_backward_kernel(const float* dy, const float* y, float* dx, int packs) {
  __shared__ float slots[kThreads / kWarp];
  const std::int64_t row = std::int64_t{blockIdx.x} * packs;
  float dot = 0;
#pragma unroll 4
  for (int p = static_cast<int>(threadIdx.x); p < packs; p += kThreads)
    dot += sum_of(each(load(dy, row + p), load(y, row + p), Times{}));
  dot = device::reduce_row<kThreads / kWarp>(dot, device::Add{}, slots);
  for (int p = static_cast<int>(threadIdx.x); p < packs; p += kThreads)
    store(dx, row + p,
          each(load(dy, row + p), load(y, row + p), [dot](float d, float v) { return v * (d - dot); }));
}

__global__ void subtract_targets_kernel(float* probabilities, const std::int32_t* target, std::int64_t rows,
                                        std::int64_t width) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < rows && target[row] >= 0 && target[row] < width) probabilities[row * width + target[row]] -= 1.0F;
}

// The part that the bf16 operands of a chain take of its scratch, by number.
Bf16* bf16_slot(const Scratch& scratch, std::int64_t elements, int slot) {
  return static_cast<Bf16*>(scratch.data) + elements * slot;
}
float* float_slot(const Scratch& scratch, std::int64_t elements, int slot) {
  return static_cast<float*>(scratch.data) + elements * slot;
}

}  // namespace

void bias_gelu_forward(const Bf16* x, const Bf16* bias, Bf16* y, Rows rows, Scratch scratch) {
  const Grid grid{rows, scratch.stream};
  Bf16* sum = bf16_slot(scratch, rows.elements(), 0);
  grid.map(device::Add{}, grid.dense(x), View<const Bf16>{bias, 0}, grid.dense(sum));
  grid.map(Gelu{}, grid.dense<const Bf16>(sum), grid.dense(y));
}

void bias_gelu_backward(const BiasGeluBackward& io, const BiasGeluSums& sums, Rows rows, Scratch scratch) {
  const Grid grid{rows, scratch.stream};
  Bf16* sum = bf16_slot(scratch, rows.elements(), 0);
  grid.map(device::Add{}, grid.dense(io.x), View<const Bf16>{io.bias, 0}, grid.dense(sum));
  grid.map(GeluSlope{}, grid.dense(io.dy), grid.dense<const Bf16>(sum), grid.dense(io.dx));
  column_sum(io.dx, sums.dbias, sums.partials, rows, scratch.stream);
}

void swiglu_keep(const Bf16* x, Bf16* silu_of_gate, Rows rows, cudaStream_t stream) {
  const Grid grid{rows, stream};
  grid.map(Silu{}, View<const Bf16>{x, 2 * grid.packs()}, grid.dense(silu_of_gate));
}

void swiglu_forward(const Bf16* x, Bf16* y, Rows rows, Scratch scratch) {
  const Grid grid{rows, scratch.stream};
  Bf16* silu = bf16_slot(scratch, rows.elements(), 0);
  swiglu_keep(x, silu, rows, scratch.stream);
  grid.map(Times{}, grid.dense<const Bf16>(silu), View<const Bf16>{x + rows.hidden, 2 * grid.packs()},
           grid.dense(y));
}

void swiglu_backward(const SwigluBackward& io, Rows rows, Scratch scratch) {
  const Grid grid{rows, scratch.stream};
  const std::uint32_t wide = 2 * grid.packs();
  Bf16 *dup = bf16_slot(scratch, rows.elements(), 0), *dsilu = bf16_slot(scratch, rows.elements(), 1),
       *dgate = bf16_slot(scratch, rows.elements(), 2);
  grid.map(Times{}, grid.dense(io.dy), grid.dense(io.silu_of_gate), grid.dense(dup));
  grid.map(Times{}, grid.dense(io.dy), View<const Bf16>{io.x + rows.hidden, wide}, grid.dense(dsilu));
  grid.map(SiluSlope{}, grid.dense<const Bf16>(dsilu), View<const Bf16>{io.x, wide}, grid.dense(dgate));
  grid.map(Copy{}, grid.dense<const Bf16>(dgate), View<Bf16>{io.dx, wide});
  grid.map(Copy{}, grid.dense<const Bf16>(dup), View<Bf16>{io.dx + rows.hidden, wide});
}

void bias_dropout_add_forward(const BiasDropoutAdd& io, const Dropout& dropout, Rows rows, Scratch scratch) {
  const Grid grid{rows, scratch.stream};
  Bf16 *sum = bf16_slot(scratch, rows.elements(), 0), *kept = bf16_slot(scratch, rows.elements(), 1);
  grid.map(device::Add{}, grid.dense(io.x), View<const Bf16>{io.bias, 0}, grid.dense(sum));
  device::each_pack(DropoutStep{sum, kept, io.mask, dropout.seed, dropout.threshold, dropout.scale()},
                    rows.elements(), scratch.stream);
  grid.map(device::Add{}, grid.dense<const Bf16>(kept), grid.dense(io.residual), grid.dense(io.y));
}

void softmax_forward(const SoftmaxForward& io, float scale, Rows rows, Scratch scratch) {
  if (rows.hidden > kSharedRow) throw std::invalid_argument("softmax step: row longer than 8192");
  const Grid grid{rows, scratch.stream};
  Bf16 *scaled = bf16_slot(scratch, rows.elements(), 0), *masked = bf16_slot(scratch, rows.elements(), 1);
  float* wide = float_slot(scratch, rows.elements(), 1);
  grid.map(Affine{scale, 0}, grid.dense(io.x), grid.dense(scaled));
  const auto square = static_cast<std::uint32_t>(rows.hidden * rows.hidden / kPack);
  device::each_pack(MaskStep{scaled, io.hidden_keys, masked, square}, rows.elements(), scratch.stream);
  grid.map(Copy{}, grid.dense<const Bf16>(masked), grid.dense(wide));
  softmax_step_kernel<<<static_cast<unsigned>(rows.tokens), kThreads, 0, scratch.stream>>>(
      wide, io.probabilities, static_cast<int>(grid.packs()));
  device::check_launch();
  grid.map(Copy{}, grid.dense<const float>(io.probabilities), grid.dense(io.y));
}

void softmax_backward(const Bf16* dy, const float* probabilities, Bf16* dx, float scale, Rows rows,
                      Scratch scratch) {
  const Grid grid{rows, scratch.stream};
  float *wide = float_slot(scratch, rows.elements(), 0), *slope = float_slot(scratch, rows.elements(), 1);
  Bf16* narrow = bf16_slot(scratch, rows.elements(), 0);  // where dy in fp32 was: it is no longer needed
  grid.map(Copy{}, grid.dense(dy), grid.dense(wide));
  softmax_step_backward_kernel<<<static_cast<unsigned>(rows.tokens), kThreads, 0, scratch.stream>>>(
      wide, probabilities, slope, static_cast<int>(grid.packs()));
  device::check_launch();
  grid.map(Copy{}, grid.dense<const float>(slope), grid.dense(narrow));
  grid.map(Affine{scale, 0}, grid.dense<const Bf16>(narrow), grid.dense(dx));
}

void rms_norm_forward(const RmsNormForward& io, Rows rows, Scratch scratch) {
  const Grid grid{rows, scratch.stream};
  float* wide = float_slot(scratch, rows.elements(), 0);
  grid.map(Copy{}, grid.dense(io.x), grid.dense(io.x_fp32));
  grid.map(Square{}, grid.dense<const float>(io.x_fp32), grid.dense(wide));
  reduce_rows(wide, io.rstd, grid, device::Add{}, MeanRoot{});
  grid.map(Times{}, grid.dense<const float>(io.x_fp32), RowValue{io.rstd}, grid.dense(wide));
  grid.map(Copy{}, grid.dense<const float>(wide), grid.dense(io.normed));
  grid.map(Times{}, grid.dense<const Bf16>(io.normed), View<const Bf16>{io.weight, 0}, grid.dense(io.y));
}

void rms_norm_backward(const RmsNormBackward& io, Rows rows, Scratch scratch) {
  const Grid grid{rows, scratch.stream};
  float *slope = float_slot(scratch, rows.elements(), 0), *product = float_slot(scratch, rows.elements(), 1),
        *other = float_slot(scratch, rows.elements(), 2), *mean = float_slot(scratch, rows.elements(), 3);
  column_dot({io.dy, io.normed}, io.dweight, io.partials, rows, scratch.stream);
  grid.map(Times{}, grid.dense(io.dy), View<const Bf16>{io.weight, 0}, grid.dense(slope));
  // dx = rstd * slope - x * rstd^3 * mean(slope * x): with p = slope * rstd, x * (rstd * mean(..)) * rstd^2.
  grid.map(Times{}, grid.dense<const float>(slope), grid.dense(io.x_fp32), grid.dense(product));
  reduce_rows(product, mean, grid, device::Add{}, Mean{});
  const Grid column{{1, rows.tokens}, scratch.stream};  // a number a row: nothing beside the rest
  for (int power = 0; power < 3; ++power)
    column.map(Times{}, column.dense<const float>(mean), column.dense(io.rstd), column.dense(mean));
  grid.map(Times{}, grid.dense<const float>(slope), RowValue{io.rstd}, grid.dense(product));
  grid.map(Times{}, grid.dense(io.x_fp32), RowValue{mean}, grid.dense(other));
  grid.map(Weighted{-1.0F}, grid.dense<const float>(product), grid.dense<const float>(other),
           grid.dense(slope));
  grid.map(Copy{}, grid.dense<const float>(slope), grid.dense(io.dx));
}

void rope(const Rope& io, const RopeShape& shape, Scratch scratch) {
  const Grid grid{{shape.tokens * shape.heads, shape.head_size}, scratch.stream};
  const Grid half{{shape.tokens * shape.heads, shape.head_size / 2}, scratch.stream};
  const std::int64_t elements = grid.rows.elements();
  Bf16 *straight = bf16_slot(scratch, elements, 0), *turned = bf16_slot(scratch, elements, 1),
       *rotated = bf16_slot(scratch, elements, 2), *crossed = bf16_slot(scratch, elements, 3);
  const auto heads = static_cast<std::uint32_t>(shape.heads);
  const std::uint32_t packs = grid.packs();
  grid.map(Times{}, grid.dense(io.x), AngleView{io.cosine, heads, half.packs()}, grid.dense(straight));
  half.map(Negate{}, View<const Bf16>{io.x + (shape.backward ? 0 : shape.head_size / 2), packs},
           half.dense(turned));
  Bf16* negated_to = rotated + (shape.backward ? shape.head_size / 2 : 0);
  Bf16* kept_to = rotated + (shape.backward ? 0 : shape.head_size / 2);
  half.map(Copy{}, half.dense<const Bf16>(turned), View<Bf16>{negated_to, packs});
  half.map(Copy{}, View<const Bf16>{io.x + (shape.backward ? shape.head_size / 2 : 0), packs},
           View<Bf16>{kept_to, packs});
  grid.map(Times{}, grid.dense<const Bf16>(rotated), AngleView{io.sine, heads, half.packs()},
           grid.dense(crossed));
  grid.map(device::Add{}, grid.dense<const Bf16>(straight), grid.dense<const Bf16>(crossed),
           grid.dense(io.y));
}

void cross_entropy_forward(const CrossEntropy& io, Rows rows, cudaStream_t stream) {
  const Grid grid{rows, stream};
  const auto wide = grid.dense(io.probabilities);
  const auto in = grid.dense<const float>(io.probabilities);
  grid.map(Copy{}, grid.dense(io.logits), wide);
  reduce_rows(io.probabilities, io.maximum, grid, device::Max{}, KeepSum{});
  grid.map(Weighted{-1.0F}, in, RowValue{io.maximum}, wide);
  grid.map(Exp{}, in, wide);
  reduce_rows(io.probabilities, io.sum, grid, device::Add{}, KeepSum{});
  grid.map(Divide{}, in, RowValue{io.sum}, wide);
}

void cross_entropy_backward(const CrossEntropy& io, float gradient, Bf16* dlogits, Rows rows,
                            Scratch scratch) {
  const Grid grid{rows, scratch.stream};
  float* scaled = float_slot(scratch, rows.elements(), 0);
  subtract_targets_kernel<<<static_cast<unsigned>((rows.tokens + 255) / 256), 256, 0, scratch.stream>>>(
      io.probabilities, io.target, rows.tokens, rows.hidden);
  device::check_launch();
  grid.map(Affine{gradient, 0}, grid.dense<const float>(io.probabilities), grid.dense(scaled));
  grid.map(Copy{}, grid.dense<const float>(scaled), grid.dense(dlogits));
}

void adam(const AdamChunk& tensor, const AdamStep& step, Scratch scratch) {
  const Grid grid{{1, tensor.elements}, scratch.stream};
  const auto g = grid.dense(tensor.gradient);
  const auto update = [&](float* x) { return grid.dense(x); };
  const auto value = [&](const float* x) { return grid.dense(x); };
  float* square = float_slot(scratch, tensor.elements, 0);
  float* root = float_slot(scratch, tensor.elements, 1);
  grid.map(Affine{step.beta1, 0}, value(tensor.first), update(tensor.first));
  grid.map(Weighted{1.0F - step.beta1}, value(tensor.first), g, update(tensor.first));
  grid.map(Affine{step.beta2, 0}, value(tensor.second), update(tensor.second));
  grid.map(Square{}, g, update(square));
  grid.map(Weighted{1.0F - step.beta2}, value(tensor.second), value(square), update(tensor.second));
  grid.map(RootAffine{1.0F / step.correction2}, value(tensor.second), update(root));
  grid.map(Affine{1.0F, step.epsilon}, value(root), update(root));
  grid.map(Divide{}, value(tensor.first), value(root), update(square));
  grid.map(Affine{1.0F - step.rate * step.decay, 0}, value(tensor.weight), update(tensor.weight));
  grid.map(Weighted{-step.rate / step.correction1}, value(tensor.weight), value(square),
           update(tensor.weight));
  grid.map(Copy{}, value(tensor.weight), grid.dense(tensor.copy));
}

namespace {

struct GatherRows {
  const Bf16* from;
  Bf16* to;
  const std::int32_t* slot;
  std::uint32_t packs;
  __device__ uint4 read(std::uint32_t i) const {
    return device::load_raw(from, std::int64_t{slot[i / packs]} * packs + i % packs);
  }
  __device__ void write(std::uint32_t i, const uint4& raw) const { reinterpret_cast<uint4*>(to)[i] = raw; }
};

struct SumCopies {
  const Bf16* from;
  Bf16* to;
  int k;
  std::uint32_t packs;
  __device__ Pack read(std::uint32_t i) const {
    Pack sum{};
#pragma unroll 4
    for (int j = 0; j < k; ++j)
      sum = each(sum, load(from, (std::int64_t{i / packs} * k + j) * packs + i % packs), device::Add{});
    return sum;
  }
  __device__ void write(std::uint32_t i, const Pack& sum) const {
    store(to, i, sum);
  }
};

}  // namespace

void unpermute(const Bf16* expert_rows, Bf16* tokens, const Routing& routing, Rows rows, Scratch scratch) {
  const Grid copies{{rows.tokens * routing.k, rows.hidden}, scratch.stream};
  const std::int64_t elements = copies.rows.elements();
  Bf16 *gathered = bf16_slot(scratch, elements, 0), *weighted = bf16_slot(scratch, elements, 1);
  device::each_pack(GatherRows{expert_rows, gathered, routing.slot, copies.packs()}, elements,
                    scratch.stream);
  copies.map(Times{}, copies.dense<const Bf16>(gathered), RowValue{routing.probability},
             copies.dense(weighted));
  device::each_pack(SumCopies{weighted, tokens, routing.k, copies.packs()}, rows.elements(), scratch.stream);
}

}  // namespace stagecraft::unfused
