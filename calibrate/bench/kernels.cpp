// The family of memory-bound kernels: for each operator, operands, the launch, and the check of sampled rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "calibrate/bench/fused_kernels.hpp"
#include "calibrate/bench/kernels_bench.hpp"
#include "calibrate/bench/kernels_shapes.hpp"
#include "calibrate/bench/kernels_unfused.hpp"

namespace stagecraft {
namespace {

using reference::Bounded;
using reference::BoundedRow;
using reference::Precision;
using reference::Row;

constexpr double kBf16Unit = 0x1p-8;
constexpr double kFp32Unit = 0x1p-24;
// Partial sums of columns add up to this many terms one after the other (fused_rows.cu: rows over blocks,
// then blocks over 32 threads).
constexpr int kColumnRoundings = 256;

// One point on its way: shape by name, form, and what every operator needs.
struct Point {
  const Sample& sample;
  const KernelOp& op;
  Bench bench;

  [[nodiscard]] std::int64_t extent(const char* name) const { return sample.shape.at(name); }
  [[nodiscard]] bool fused() const { return sample.tags.at("variant") == "fused"; }
  [[nodiscard]] Rows rows() const { return {extent("tokens"), extent("hidden")}; }
  void need_scratch(std::int64_t elements) {
    if (!fused()) scratch_data = bench.room<std::uint8_t>(unfused::scratch_bytes(elements));
  }
  [[nodiscard]] Measured finish(double worst, const Enqueue& enqueue) {
    return bench.finish(sample.op, worst, enqueue, fused() ? 2 : op.unfused_launches);
  }
  // bf16 output: rounded once when fused, `roundings` times as a chain.
  [[nodiscard]] Precision bf16(int roundings) const {
    return {.unit = kBf16Unit, .roundings = fused() ? 1 : roundings};
  }

  void* scratch_data = nullptr;
};

Measured bias_gelu(Point& at, bool forward) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const Bf16 *x = b.random(rows.elements()), *bias = b.random(rows.hidden);
  const Bf16* dy = forward ? nullptr : b.random(rows.elements());
  Bf16* out = b.room<Bf16>(rows.elements());
  float* dbias = b.room<float>(rows.hidden);
  float* partials = b.room<float>(column_sum_partials(rows));
  at.need_scratch(rows.elements());
  const Enqueue op = [&](cudaStream_t s) {
    if (forward && at.fused()) return bias_gelu_forward(x, bias, out, rows, s);
    if (forward) return unfused::bias_gelu_forward(x, bias, out, rows, {at.scratch_data, s});
    if (at.fused()) return bias_gelu_backward({dy, x, bias, out}, rows, s);
    unfused::bias_gelu_backward({dy, x, bias, out}, {dbias, partials}, rows, {at.scratch_data, s});
  };
  b.run(op);
  const Row shift = b.row(bias, 0, rows.hidden);
  double worst = 0;
  for (const std::int64_t r : Bench::sampled(rows.tokens)) {
    const Row in = b.row(x, r, rows.hidden);
    const BoundedRow wanted = forward ? reference::bias_gelu_forward(in, shift)
                                      : reference::bias_gelu_backward(b.row(dy, r, rows.hidden), in, shift);
    worst = std::max(worst, reference::worst(b.row(out, r, rows.hidden), wanted, at.bf16(2)));
  }
  return at.finish(worst, op);
}

Measured swiglu(Point& at, bool forward) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const Bf16* x = b.random(2 * rows.elements());
  const Bf16* dy = forward ? nullptr : b.random(rows.elements());
  Bf16* out = b.room<Bf16>((forward ? 1 : 2) * rows.elements());
  Bf16* kept = at.fused() ? nullptr : b.room<Bf16>(rows.elements());
  at.need_scratch(rows.elements());
  if (kept != nullptr) unfused::swiglu_keep(x, kept, rows, b.harness().stream());
  const Enqueue op = [&](cudaStream_t s) {
    if (forward && at.fused()) return swiglu_forward(x, out, rows, s);
    if (forward) return unfused::swiglu_forward(x, out, rows, {at.scratch_data, s});
    if (at.fused()) return swiglu_backward(dy, x, out, rows, s);
    unfused::swiglu_backward({dy, x, kept, out}, rows, {at.scratch_data, s});
  };
  b.run(op);
  const std::int64_t width = (forward ? 1 : 2) * rows.hidden;
  double worst = 0;
  for (const std::int64_t r : Bench::sampled(rows.tokens)) {
    const Row in = b.row(x, r, 2 * rows.hidden);
    const BoundedRow wanted =
        forward ? reference::swiglu_forward(in) : reference::swiglu_backward(b.row(dy, r, rows.hidden), in);
    worst = std::max(worst, reference::worst(b.row(out, r, width), wanted, at.bf16(3)));
  }
  return at.finish(worst, op);
}

constexpr Dropout kDropout{.seed = 0x5DEECE66D, .threshold = 6554};  // p = 0.1

Measured bias_dropout_add(Point& at) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const Bf16 *x = b.random(rows.elements()), *bias = b.random(rows.hidden),
             *residual = b.random(rows.elements());
  const BiasDropoutAdd io{x, bias, residual, b.room<Bf16>(rows.elements()),
                          b.room<std::uint8_t>(rows.elements())};
  at.need_scratch(rows.elements());
  const Enqueue op = [&](cudaStream_t s) {
    if (at.fused()) return bias_dropout_add_forward(io, kDropout, rows, s);
    unfused::bias_dropout_add_forward(io, kDropout, rows, {at.scratch_data, s});
  };
  b.run(op);
  const Row shift = b.row(bias, 0, rows.hidden);
  double worst = 0;
  for (const std::int64_t r : Bench::sampled(rows.tokens)) {
    const Row mask =
        reference::dropout_mask(rows.hidden, {r * rows.hidden, kDropout.seed, kDropout.threshold});
    const BoundedRow wanted = reference::bias_dropout_add(
        b.row(x, r, rows.hidden), shift, b.row(residual, r, rows.hidden), mask, kDropout.scale());
    worst = std::max(worst, reference::worst(b.row(io.y, r, rows.hidden), wanted, at.bf16(3)));
  }
  return at.finish(worst, op);
}

Measured dropout_backward_point(Point& at) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const Bf16 *x = b.random(rows.elements()), *bias = b.random(rows.hidden);
  Bf16* dx = b.room<Bf16>(rows.elements());
  std::uint8_t* mask = b.room<std::uint8_t>(rows.elements());
  bias_dropout_add_forward({x, bias, x, dx, mask}, kDropout, rows, b.harness().stream());
  b.harness().poison(dx, rows.elements() * 2);
  const Enqueue op = [&](cudaStream_t s) { dropout_backward({x, mask, dx}, kDropout, rows, s); };
  b.run(op);
  double worst = 0;
  for (const std::int64_t r : Bench::sampled(rows.tokens)) {
    const Row kept =
        reference::dropout_mask(rows.hidden, {r * rows.hidden, kDropout.seed, kDropout.threshold});
    const BoundedRow wanted = reference::dropout_backward(b.row(x, r, rows.hidden), kept, kDropout.scale());
    worst = std::max(worst, reference::worst(b.row(dx, r, rows.hidden), wanted, at.bf16(1)));
  }
  return at.finish(worst, op);
}

Measured softmax_forward_point(Point& at) {
  const std::int64_t sequence = at.extent("sequence");
  const Rows rows{at.extent("heads") * sequence, sequence};
  constexpr float kScale = 0.125F;
  Bench& b = at.bench;
  const Bf16* x = b.random(rows.elements(), 4.0);
  Bf16* y = b.room<Bf16>(rows.elements());
  float* kept = at.fused() ? nullptr : b.room<float>(rows.elements());
  std::vector<std::uint8_t> hidden(at.fused() ? 0 : static_cast<std::size_t>(sequence * sequence));
  for (std::size_t i = 0; i < hidden.size(); ++i)
    hidden[i] = i % static_cast<std::size_t>(sequence) > i / static_cast<std::size_t>(sequence) ? 1 : 0;
  const std::uint8_t* mask = hidden.empty() ? nullptr : b.upload(hidden);
  at.need_scratch(rows.elements());
  const Enqueue op = [&](cudaStream_t s) {
    if (at.fused()) return causal_softmax_forward(x, y, kScale, rows, s);
    unfused::softmax_forward({x, mask, kept, y}, kScale, rows, {at.scratch_data, s});
  };
  b.run(op);
  double worst = 0;
  for (const std::int64_t r : Bench::sampled(rows.tokens)) {
    const BoundedRow wanted = reference::causal_softmax(b.row(x, r, sequence), r % sequence, kScale);
    worst = std::max(worst, reference::worst(b.row(y, r, sequence), wanted, at.bf16(3)));
  }
  return at.finish(worst, op);
}

Measured softmax_backward_point(Point& at) {
  const std::int64_t sequence = at.extent("sequence");
  const Rows rows{at.extent("heads") * sequence, sequence};
  constexpr float kScale = 0.125F;
  Bench& b = at.bench;
  const Bf16 *x = b.random(rows.elements(), 4.0), *dy = b.random(rows.elements());
  Bf16 *y = b.room<Bf16>(rows.elements()), *dx = b.room<Bf16>(rows.elements());
  causal_softmax_forward(x, y, kScale, rows, b.harness().stream());
  float* kept = at.fused() ? nullptr : b.room<float>(rows.elements());
  if (kept != nullptr) cast_to_float(y, kept, rows.elements(), b.harness().stream());
  at.need_scratch(rows.elements());
  const Enqueue op = [&](cudaStream_t s) {
    if (at.fused()) return causal_softmax_backward({dy, y, dx}, kScale, rows, s);
    unfused::softmax_backward(dy, kept, dx, kScale, rows, {at.scratch_data, s});
  };
  b.run(op);
  double worst = 0;
  for (const std::int64_t r : Bench::sampled(rows.tokens)) {
    const BoundedRow wanted =
        reference::causal_softmax_backward(b.row(dy, r, sequence), b.row(y, r, sequence), kScale);
    worst = std::max(worst, reference::worst(b.row(dx, r, sequence), wanted, at.bf16(2)));
  }
  return at.finish(worst, op);
}

Measured norm_forward_point(Point& at, bool centred) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const Bf16 *x = b.random(rows.elements()), *weight = b.random(rows.hidden), *bias = b.random(rows.hidden);
  Bf16* y = b.room<Bf16>(rows.elements());
  float *mean = b.room<float>(rows.tokens), *rstd = b.room<float>(rows.tokens);
  float* wide = at.fused() ? nullptr : b.room<float>(rows.elements());
  Bf16* normed = at.fused() ? nullptr : b.room<Bf16>(rows.elements());
  at.need_scratch(rows.elements());
  const NormForward io{x, weight, centred ? bias : nullptr, y, centred ? mean : nullptr, rstd};
  const Enqueue op = [&](cudaStream_t s) {
    if (at.fused()) return norm_forward(io, rows, s);
    unfused::rms_norm_forward({x, weight, wide, rstd, normed, y}, rows, {at.scratch_data, s});
  };
  b.run(op);
  const Row scale = b.row(weight, 0, rows.hidden), shift = centred ? b.row(bias, 0, rows.hidden) : Row{};
  double worst = 0;
  for (const std::int64_t r : Bench::sampled(rows.tokens)) {
    const BoundedRow wanted = reference::norm(b.row(x, r, rows.hidden), scale, shift);
    worst = std::max(worst, reference::worst(b.row(y, r, rows.hidden), wanted, at.bf16(2)));
  }
  return at.finish(worst, op);
}

struct NormOperands {
  const Bf16 *dy, *x, *weight, *branch;
  float *mean, *rstd, *dweight, *dbias;
  Bf16* dx;
  bool centred;
};

// dx on sampled rows, the gradients of weight and bias on sampled columns.
double norm_backward_error(const Point& at, const NormOperands& io) {
  const Rows rows = at.rows();
  const Bench& b = at.bench;
  const Row weight = b.row(io.weight, 0, rows.hidden);
  double worst = 0;
  for (const std::int64_t r : Bench::sampled(rows.tokens)) {
    const Row dy = b.row(io.dy, r, rows.hidden), x = b.row(io.x, r, rows.hidden);
    const Row branch = io.branch != nullptr ? b.row(io.branch, r, rows.hidden) : Row{};
    const BoundedRow wanted = reference::norm_backward({dy, x, weight, branch, io.centred});
    worst = std::max(worst, reference::worst(b.row(io.dx, r, rows.hidden), wanted, at.bf16(1)));
  }
  const Row rstd = b.row(io.rstd, 0, rows.tokens);
  const Row mean = io.centred ? b.row(io.mean, 0, rows.tokens) : Row(rstd.size(), 0.0);
  const Precision sums = at.fused() ? Precision{.unit = kFp32Unit, .roundings = kColumnRoundings}
                                    : Precision{.unit = kBf16Unit, .roundings = 1};
  for (const std::int64_t c : Bench::sampled(rows.hidden, 4)) {
    const Row dy = b.column(io.dy, c, rows.tokens, rows.hidden),
              x = b.column(io.x, c, rows.tokens, rows.hidden);
    Bounded scale, shift;
    for (std::size_t r = 0; r < dy.size(); ++r) {
      const double term = dy[r] * (x[r] - mean[r]) * rstd[r];
      scale.value += term, scale.magnitude += std::abs(term);
      shift.value += dy[r], shift.magnitude += std::abs(dy[r]);
    }
    const auto one = [&](const float* sum, const Bounded& wanted) {
      return reference::worst(b.row(sum, c, 1), std::span(&wanted, 1), sums);
    };
    worst = std::max(worst, one(io.dweight, scale));
    if (io.centred) worst = std::max(worst, one(io.dbias, shift));
  }
  return worst;
}

Measured norm_backward_point(Point& at, bool centred, bool residual) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const int sms = b.harness().device().sms;
  const NormOperands io{.dy = b.random(rows.elements()),
                        .x = b.random(rows.elements()),
                        .weight = b.random(rows.hidden),
                        .branch = residual ? b.random(rows.elements()) : nullptr,
                        .mean = b.room<float>(rows.tokens),
                        .rstd = b.room<float>(rows.tokens),
                        .dweight = b.room<float>(rows.hidden),
                        .dbias = b.room<float>(rows.hidden),
                        .dx = b.room<Bf16>(rows.elements()),
                        .centred = centred};
  const Bf16* bias = b.random(rows.hidden);
  float* partials = b.room<float>(std::max(norm_backward_partials(rows, sms), column_sum_partials(rows)));
  norm_forward({io.x, io.weight, centred ? bias : nullptr, io.dx, centred ? io.mean : nullptr, io.rstd}, rows,
               b.harness().stream());
  float* wide = at.fused() ? nullptr : b.room<float>(rows.elements());
  Bf16* normed = at.fused() ? nullptr : b.room<Bf16>(rows.elements());
  at.need_scratch(rows.elements());
  if (!at.fused())  // what the forward pass leaves
    unfused::rms_norm_forward({io.x, io.weight, wide, io.rstd, normed, io.dx}, rows,
                              {at.scratch_data, b.harness().stream()});
  b.harness().poison(io.dx, rows.elements() * 2);
  const Enqueue op = [&](cudaStream_t s) {
    if (!at.fused())
      return unfused::rms_norm_backward(
          {io.dy, io.weight, normed, wide, io.rstd, io.dx, io.dweight, partials}, rows, {at.scratch_data, s});
    norm_backward({io.dy, io.x, io.weight, io.branch, centred ? io.mean : nullptr, io.rstd, io.dx, io.dweight,
                   centred ? io.dbias : nullptr, partials},
                  rows, sms, s);
  };
  b.run(op);
  return at.finish(norm_backward_error(at, io), op);
}

Measured rope_point(Point& at, bool backward) {
  const RopeShape shape{at.extent("tokens"), at.extent("heads"), at.extent("head_size"), backward};
  const std::int64_t elements = shape.tokens * shape.heads * shape.head_size, half = shape.head_size / 2;
  Bench& b = at.bench;
  std::vector<float> cosine(static_cast<std::size_t>(shape.tokens * half)), sine(cosine.size());
  for (std::size_t i = 0; i < cosine.size(); ++i) {
    const auto token = static_cast<double>(static_cast<std::int64_t>(i) / half);
    const double frequency =
        std::pow(1e4, -static_cast<double>(static_cast<std::int64_t>(i) % half) / static_cast<double>(half));
    cosine[i] = static_cast<float>(std::cos(token * frequency));
    sine[i] = static_cast<float>(std::sin(token * frequency));
  }
  const Rope io{b.random(elements), b.upload(cosine), b.upload(sine), b.room<Bf16>(elements)};
  at.need_scratch(elements);
  const Enqueue op = [&](cudaStream_t s) {
    if (at.fused()) return rope(io, shape, s);
    unfused::rope(io, shape, {at.scratch_data, s});
  };
  b.run(op);
  double worst = 0;
  for (const std::int64_t r : Bench::sampled(shape.tokens * shape.heads, 16)) {
    const std::int64_t token = r / shape.heads;
    const BoundedRow wanted = reference::rope(b.row(io.x, r, shape.head_size), b.row(io.cosine, token, half),
                                              b.row(io.sine, token, half), backward);
    worst = std::max(worst, reference::worst(b.row(io.y, r, shape.head_size), wanted, at.bf16(2)));
  }
  return at.finish(worst, op);
}

std::vector<std::int32_t> random_integers(std::int64_t count, std::int32_t limit) {
  std::mt19937 generator(7);  // the same everywhere by its definition; distributions are not
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (auto& v : values) v = static_cast<std::int32_t>(generator() % static_cast<std::uint32_t>(limit));
  return values;
}

Measured cross_entropy_forward_point(Point& at) {
  const Rows rows{at.extent("tokens"), at.extent("vocabulary")};
  Bench& b = at.bench;
  const Bf16* logits = b.random(rows.elements(), 2.0);
  const auto targets = random_integers(rows.tokens, static_cast<std::int32_t>(rows.hidden));
  const std::int32_t* target = b.upload(targets);
  float *maximum = b.room<float>(rows.tokens), *sum = b.room<float>(rows.tokens),
        *hit = b.room<float>(rows.tokens);
  float* wide = at.fused() ? nullptr : b.room<float>(rows.elements());
  const Enqueue op = [&](cudaStream_t s) {
    if (at.fused()) return cross_entropy_forward({logits, target, maximum, sum, hit}, rows, s);
    unfused::cross_entropy_forward({logits, target, wide, maximum, sum}, rows, s);
  };
  b.run(op);
  // fp32 sums of rows/512 terms a thread, each with an exponential of a few ulp: 64 roundings.
  const Precision precision{.unit = kFp32Unit, .roundings = 512};
  double worst = 0;
  for (const std::int64_t r : Bench::sampled(rows.tokens)) {
    const reference::LogitSums w =
        reference::cross_entropy(b.row(logits, r, rows.hidden), targets[static_cast<std::size_t>(r)]);
    BoundedRow wanted = {{w.maximum, std::abs(w.maximum)}, {w.sum, w.sum}};
    Row got = {b.row(maximum, r, 1)[0], b.row(sum, r, 1)[0]};
    if (at.fused()) {
      wanted.push_back({w.target, std::abs(w.target)});
      got.push_back(b.row(hit, r, 1)[0]);
    }
    worst = std::max(worst, reference::worst(got, wanted, precision));
  }
  return at.finish(worst, op);
}

Measured cross_entropy_backward_point(Point& at) {
  const Rows rows{at.extent("tokens"), at.extent("vocabulary")};
  constexpr float kGradient = 0.25F;
  Bench& b = at.bench;
  Bf16* logits = b.random(rows.elements(), 2.0);
  const auto targets = random_integers(rows.tokens, static_cast<std::int32_t>(rows.hidden));
  const std::int32_t* target = b.upload(targets);
  float *maximum = b.room<float>(rows.tokens), *sum = b.room<float>(rows.tokens),
        *hit = b.room<float>(rows.tokens);
  cross_entropy_forward({logits, target, maximum, sum, hit}, rows, b.harness().stream());
  float* wide = at.fused() ? nullptr : b.room<float>(rows.elements());
  Bf16* narrow = at.fused() ? logits : b.room<Bf16>(rows.elements());
  at.need_scratch(at.fused() ? 0 : rows.elements());
  if (wide != nullptr)
    unfused::cross_entropy_forward({logits, target, wide, maximum, sum}, rows, b.harness().stream());
  std::vector<std::pair<std::int64_t, BoundedRow>> wanted;  // before the logits are overwritten
  for (const std::int64_t r : Bench::sampled(rows.tokens))
    wanted.emplace_back(r,
                        reference::cross_entropy_backward(b.row(logits, r, rows.hidden),
                                                          targets[static_cast<std::size_t>(r)], kGradient));
  const Enqueue op = [&](cudaStream_t s) {
    if (at.fused()) return cross_entropy_backward({logits, target, maximum, sum, kGradient}, rows, s);
    unfused::cross_entropy_backward({logits, target, wide, maximum, sum}, kGradient, narrow, rows,
                                    {at.scratch_data, s});
  };
  b.run(op);
  double worst = 0;
  for (const auto& [r, row] : wanted)
    worst = std::max(worst, reference::worst(b.row(narrow, r, rows.hidden), row, at.bf16(1)));
  return at.finish(worst, op);
}

// Tensors as a transformer has them: large and small, one after the other in one allocation.
std::vector<AdamChunk> adam_chunks(const AdamChunk& all) {
  std::vector<AdamChunk> chunks;
  for (std::int64_t first = 0; first < all.elements; first += kAdamChunk)
    chunks.push_back({all.gradient + first, all.weight + first, all.first + first, all.second + first,
                      all.copy + first, std::min(kAdamChunk, all.elements - first)});
  return chunks;
}

// States at the sampled elements, as the reference has them.
struct AdamRead {
  Row gradient, weight, first, second;
};
AdamRead read_adam(const Bench& b, const AdamChunk& all, const std::vector<std::int64_t>& at) {
  const Harness& h = b.harness();
  return {h.read(all.gradient, Dtype::kFp32, at), h.read(all.weight, Dtype::kFp32, at),
          h.read(all.first, Dtype::kFp32, at), h.read(all.second, Dtype::kFp32, at)};
}

double adam_error(const AdamRead& before, const AdamRead& after, const Row& copy, const AdamStep& step) {
  const reference::AdamNumbers numbers{step.rate,  step.beta1,       step.beta2,      step.epsilon,
                                       step.decay, step.correction1, step.correction2};
  double worst = 0;
  for (std::size_t i = 0; i < before.weight.size(); ++i) {
    const reference::AdamState wanted = reference::adam(
        before.gradient[i], {{before.weight[i], 0}, {before.first[i], 0}, {before.second[i], 0}}, numbers);
    const BoundedRow expected = {wanted.weight, wanted.first, wanted.second};
    const Row got = {after.weight[i], after.first[i], after.second[i]};
    worst = std::max(worst, reference::worst(got, expected, {.unit = kFp32Unit, .roundings = 16}));
    worst = std::max(worst, reference::worst(std::span(&copy[i], 1), std::span(&wanted.weight, 1),
                                             {.unit = kBf16Unit, .roundings = 1}));
  }
  return worst;
}

Measured adam_point(Point& at) {
  const std::int64_t n = at.extent("elements");
  Bench& b = at.bench;
  AdamChunk all{b.random<float>(n, 1e-3), b.random<float>(n, 0.02),
                b.random<float>(n, 1e-3), nullptr,
                b.room<Bf16>(n),          n};
  std::vector<float> positive(static_cast<std::size_t>(kAdamChunk));
  std::mt19937 generator(11);
  for (float& v : positive) v = 1e-6F * (1.0F + static_cast<float>(generator() % 1024) / 1024.0F);
  all.second = b.room<float>(n);
  const cudaStream_t stream = b.harness().stream();
  for (std::int64_t first = 0; first < n; first += kAdamChunk)
    CUDA_CHECK(cudaMemcpyAsync(all.second + first, positive.data(),
                               static_cast<std::size_t>(std::min(kAdamChunk, n - first)) * sizeof(float),
                               cudaMemcpyHostToDevice, stream));
  const std::vector<AdamChunk> chunks = adam_chunks(all);
  const AdamChunk* table = b.upload(chunks);
  const AdamStep step{.correction1 = 0.5F, .correction2 = 0.25F};
  at.need_scratch(n);
  const Enqueue op = [&](cudaStream_t s) {
    if (at.fused()) return adam(table, static_cast<int>(chunks.size()), step, s);
    unfused::adam(all, step, {at.scratch_data, s});
  };
  const std::vector<std::int64_t> sampled = Bench::sampled(n, 4096);
  const AdamRead before = read_adam(b, all, sampled);
  b.run(op);
  const Row copy = b.harness().read(all.copy, Dtype::kBf16, sampled);
  return at.finish(adam_error(before, read_adam(b, all, sampled), copy, step), op);
}

Measured gradient_norm_point(Point& at) {
  const std::int64_t n = at.extent("elements");
  Bench& b = at.bench;
  const float* gradient = b.random<float>(n, 1e-3);
  double* partials = b.room<double>(kNormPartials);
  float* norm = b.room<float>(1);
  const Enqueue op = [&](cudaStream_t s) { gradient_norm(gradient, n, partials, norm, s); };
  b.run(op);
  double squares = 0;
  constexpr std::int64_t kPart = std::int64_t{1} << 22;
  for (std::int64_t first = 0; first < n; first += kPart)
    for (const double g : b.harness().read_all(gradient + first, Dtype::kFp32, std::min(kPart, n - first)))
      squares += g * g;
  const Bounded wanted{std::sqrt(squares), std::sqrt(squares)};
  const Row got = b.row(norm, 0, 1);
  const double worst = reference::worst(got, std::span(&wanted, 1), {.unit = kFp32Unit, .roundings = 8});
  b.run(op);
  if (b.row(norm, 0, 1) != got) throw WrongResult("gradient_norm: two runs differ");
  return at.finish(worst, op);
}

Measured copy_point(Point& at) {  // weight_copy, gradient_copy, gradient_accumulation
  const std::int64_t n = at.extent("elements");
  Bench& b = at.bench;
  const bool narrow = at.sample.op == "weight_copy", add = at.sample.op == "gradient_accumulation";
  float* wide = narrow || add ? b.random<float>(n) : b.room<float>(n);
  Bf16* half = narrow ? b.room<Bf16>(n) : b.random(n);
  const Enqueue op = [&](cudaStream_t s) {
    if (narrow) return cast_to_bf16(wide, half, n, s);
    if (add) return accumulate_gradient(half, wide, n, s);
    cast_to_float(half, wide, n, s);
  };
  const auto sampled = Bench::sampled(n, 4096);
  const Harness& h = b.harness();
  const Row before = add || narrow ? h.read(wide, Dtype::kFp32, sampled) : Row(sampled.size(), 0.0);
  b.run(op);
  const Row small = h.read(half, Dtype::kBf16, sampled);
  const Row got = narrow ? small : h.read(wide, Dtype::kFp32, sampled);
  BoundedRow wanted;
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    const double value = before[i] + (narrow ? 0 : small[i]);
    wanted.push_back({value, std::abs(value)});
  }
  return at.finish(reference::worst(got, wanted, {.unit = narrow ? kBf16Unit : kFp32Unit, .roundings = 0}),
                   op);
}

Measured column_sum_point(Point& at) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const Bf16* dy = b.random(rows.elements());
  float *sums = b.room<float>(rows.hidden), *partials = b.room<float>(column_sum_partials(rows));
  const Enqueue op = [&](cudaStream_t s) { column_sum(dy, sums, partials, rows, s); };
  b.run(op);
  double worst = 0;
  for (const std::int64_t c : Bench::sampled(rows.hidden, 4)) {
    Bounded wanted;
    for (const double v : b.column(dy, c, rows.tokens, rows.hidden)) {
      wanted.value += v;
      wanted.magnitude += std::abs(v);
    }
    const Precision precision{.unit = kFp32Unit, .roundings = kColumnRoundings};
    worst = std::max(worst, reference::worst(b.row(sums, c, 1), std::span(&wanted, 1), precision));
  }
  return at.finish(worst, op);
}

// Moves copy bits: any difference is an error.
double moved(double got, double wanted) {
  return got == wanted ? 0 : std::numeric_limits<double>::infinity();
}

Measured transpose_point(Point& at, bool heads) {
  Bench& b = at.bench;
  const std::int64_t tokens = at.extent("tokens"), count = heads ? at.extent("heads") : at.extent("hidden");
  const std::int64_t size = heads ? at.extent("head_size") : 1, n = tokens * count * size;
  const Bf16* from = b.random(n);
  Bf16* to = b.room<Bf16>(n);
  const Enqueue op = [&](cudaStream_t s) {
    if (heads) return transpose_heads(from, to, {tokens, count, size}, s);
    transpose(from, to, {tokens, count}, s);
  };
  b.run(op);
  const auto sampled = Bench::sampled(n, 65536);
  std::vector<std::int64_t> source;
  for (const std::int64_t i : sampled)  // to[c][t][e] = from[t][c][e]
    source.push_back(((i / size % tokens) * count + i / size / tokens) * size + i % size);
  const Row got = b.harness().read(to, Dtype::kBf16, sampled),
            wanted = b.harness().read(from, Dtype::kBf16, source);
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, moved(got[i], wanted[i]));
  return at.finish(worst, op);
}

// A random permutation: where each of the tokens * k copies lies among the expert rows.
std::vector<std::int32_t> random_slots(std::int64_t copies) {
  std::vector<std::int32_t> slots(static_cast<std::size_t>(copies));
  std::iota(slots.begin(), slots.end(), 0);
  std::mt19937 generator(13);
  for (std::size_t i = slots.size(); i > 1; --i) std::swap(slots[i - 1], slots[generator() % i]);
  return slots;
}

// Copies of a token's rows, forward (permute_forward) or added up (the others that end in tokens).
Measured scatter_point(Point& at) {
  const Rows rows = at.rows();
  const auto k = static_cast<int>(at.extent("topk"));
  Bench& b = at.bench;
  const auto slots = random_slots(rows.tokens * k);
  const Routing routing{b.upload(slots), nullptr, k};
  const Bf16* tokens = b.random(rows.elements());
  Bf16* expert_rows = b.room<Bf16>(rows.elements() * k);
  const Enqueue op = [&](cudaStream_t s) { permute(tokens, expert_rows, routing, rows, s); };
  b.run(op);
  double worst = 0;
  for (const std::int64_t copy : Bench::sampled(rows.tokens * k, 16)) {
    const Row got = b.row(expert_rows, slots[static_cast<std::size_t>(copy)], rows.hidden);
    const Row wanted = b.row(tokens, copy / k, rows.hidden);
    for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, moved(got[i], wanted[i]));
  }
  return at.finish(worst, op);
}

Measured gather_point(Point& at, bool weighted) {
  const Rows rows = at.rows();
  const auto k = static_cast<int>(at.extent("topk"));
  Bench& b = at.bench;
  const auto slots = random_slots(rows.tokens * k);
  const float* shares = weighted ? b.random<float>(rows.tokens * k) : nullptr;
  const Routing routing{b.upload(slots), shares, k};
  const Bf16* expert_rows = b.random(rows.elements() * k);
  Bf16* tokens = b.room<Bf16>(rows.elements());
  at.need_scratch(rows.elements() * k);
  const Enqueue op = [&](cudaStream_t s) {
    if (at.fused()) return unpermute(expert_rows, tokens, routing, rows, s);
    unfused::unpermute(expert_rows, tokens, routing, rows, {at.scratch_data, s});
  };
  b.run(op);
  double worst = 0;
  for (const std::int64_t t : Bench::sampled(rows.tokens)) {
    std::vector<Row> copies;
    for (int j = 0; j < k; ++j)
      copies.push_back(b.row(expert_rows, slots[static_cast<std::size_t>(t * k + j)], rows.hidden));
    const Row share = weighted ? b.row(shares, t, k) : Row(static_cast<std::size_t>(k), 1.0);
    worst = std::max(worst, reference::worst(b.row(tokens, t, rows.hidden),
                                             reference::weighted_sum(copies, share), at.bf16(2)));
  }
  return at.finish(worst, op);
}

Measured unpermute_backward_point(Point& at) {
  const Rows rows = at.rows();
  const auto k = static_cast<int>(at.extent("topk"));
  Bench& b = at.bench;
  const auto slots = random_slots(rows.tokens * k);
  const float* shares = b.random<float>(rows.tokens * k);
  const Routing routing{b.upload(slots), shares, k};
  const UnpermuteBackward io{b.random(rows.elements()), b.random(rows.elements() * k),
                             b.room<Bf16>(rows.elements() * k), b.room<float>(rows.tokens * k)};
  const Enqueue op = [&](cudaStream_t s) { unpermute_backward(io, routing, rows, s); };
  b.run(op);
  double worst = 0;
  for (const std::int64_t copy : Bench::sampled(rows.tokens * k, 16)) {
    const std::int64_t slot = slots[static_cast<std::size_t>(copy)];
    const Row dy = b.row(io.dy, copy / k, rows.hidden), row = b.row(io.expert_rows, slot, rows.hidden);
    const BoundedRow wanted = reference::weighted_sum(std::span(&dy, 1), b.row(shares, copy, 1));
    worst = std::max(worst, reference::worst(b.row(io.dexpert_rows, slot, rows.hidden), wanted, at.bf16(1)));
    Bounded dot;
    for (std::size_t i = 0; i < dy.size(); ++i) {
      dot.value += dy[i] * row[i];
      dot.magnitude += std::abs(dy[i] * row[i]);
    }
    worst = std::max(worst, reference::worst(b.row(io.dprobability, copy, 1), std::span(&dot, 1),
                                             {.unit = kFp32Unit, .roundings = kColumnRoundings}));
  }
  return at.finish(worst, op);
}

constexpr std::int32_t kVocabulary = 128256;  // Llama 3

Measured embedding_forward_point(Point& at) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const auto ids = random_integers(rows.tokens, kVocabulary);
  const std::int32_t shard = kVocabulary / 4;
  const Bf16* table = b.random(rows.hidden * shard);
  std::vector<std::int32_t> local(ids);
  for (auto& id : local) id = id % 256 == 0 ? -1 : id % shard;  // few: zeros are cheaper than rows
  const Embedding embedding{b.upload(local), shard};
  Bf16* y = b.room<Bf16>(rows.elements());
  const Enqueue op = [&](cudaStream_t s) { embedding_forward(table, y, embedding, rows, s); };
  b.run(op);
  double worst = 0;
  for (const std::int64_t t : Bench::sampled(rows.tokens, 32)) {
    const std::int32_t id = local[static_cast<std::size_t>(t)];
    const Row got = b.row(y, t, rows.hidden);
    const Row wanted = id < 0 ? Row(got.size(), 0.0) : b.row(table, id, rows.hidden);
    for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, moved(got[i], wanted[i]));
  }
  return at.finish(worst, op);
}

// Tokens by id: the distinct ids ascending, and for each its tokens ascending.
struct SortedIds {
  std::vector<std::int32_t> ids, begin, order;
};
SortedIds sorted_ids(const std::vector<std::int32_t>& ids) {
  SortedIds sorted;
  sorted.order.resize(ids.size());
  std::iota(sorted.order.begin(), sorted.order.end(), 0);
  std::stable_sort(sorted.order.begin(), sorted.order.end(), [&ids](std::int32_t a, std::int32_t b) {
    return ids[static_cast<std::size_t>(a)] < ids[static_cast<std::size_t>(b)];
  });
  for (std::size_t i = 0; i < sorted.order.size(); ++i) {
    const std::int32_t id = ids[static_cast<std::size_t>(sorted.order[i])];
    if (!sorted.ids.empty() && sorted.ids.back() == id) continue;
    sorted.ids.push_back(id);
    sorted.begin.push_back(static_cast<std::int32_t>(i));
  }
  sorted.begin.push_back(static_cast<std::int32_t>(ids.size()));
  return sorted;
}

Measured embedding_backward_point(Point& at) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const std::int32_t shard = kVocabulary / 8;
  const SortedIds sorted = sorted_ids(random_integers(rows.tokens, shard));
  const Bf16* dy = b.random(rows.elements());
  float* gradient = b.random<float>(rows.hidden * shard);
  const EmbeddingBackward io{dy,
                             gradient,
                             b.upload(sorted.ids),
                             b.upload(sorted.begin),
                             b.upload(sorted.order),
                             static_cast<int>(sorted.ids.size())};
  const Enqueue op = [&](cudaStream_t s) { embedding_backward(io, rows, s); };
  std::vector<std::pair<std::int32_t, BoundedRow>> wanted;
  for (const std::int64_t i : Bench::sampled(io.distinct, 32)) {
    const auto at_id = static_cast<std::size_t>(i);
    std::vector<Row> terms = {b.row(gradient, sorted.ids[at_id], rows.hidden)};
    for (std::int32_t t = sorted.begin[at_id]; t < sorted.begin[at_id + 1]; ++t)
      terms.push_back(b.row(dy, sorted.order[static_cast<std::size_t>(t)], rows.hidden));
    wanted.emplace_back(sorted.ids[at_id], reference::weighted_sum(terms, Row(terms.size(), 1.0)));
  }
  b.run(op);
  double worst = 0;
  for (const auto& [id, row] : wanted)
    worst = std::max(
        worst, reference::worst(b.row(gradient, id, rows.hidden), row, {.unit = kFp32Unit, .roundings = 16}));
  Measured measured = at.finish(worst, op);
  measured.bytes =
      static_cast<double>(rows.hidden * (2 * rows.tokens + 8 * io.distinct));  // repeated ids share rows
  return measured;
}

struct Runner {
  std::string_view op;
  Measured (*run)(Point&);
};
constexpr Runner kRunners[] = {
    {"bias_gelu_forward", [](Point& at) { return bias_gelu(at, true); }},
    {"bias_gelu_backward", [](Point& at) { return bias_gelu(at, false); }},
    {"swiglu_forward", [](Point& at) { return swiglu(at, true); }},
    {"swiglu_backward", [](Point& at) { return swiglu(at, false); }},
    {"bias_dropout_add_forward", bias_dropout_add},
    {"dropout_backward", dropout_backward_point},
    {"softmax_forward", softmax_forward_point},
    {"softmax_backward", softmax_backward_point},
    {"layernorm_forward", [](Point& at) { return norm_forward_point(at, true); }},
    {"layernorm_backward", [](Point& at) { return norm_backward_point(at, true, false); }},
    {"layernorm_residual_backward", [](Point& at) { return norm_backward_point(at, true, true); }},
    {"rmsnorm_forward", [](Point& at) { return norm_forward_point(at, false); }},
    {"rmsnorm_backward", [](Point& at) { return norm_backward_point(at, false, false); }},
    {"rmsnorm_residual_backward", [](Point& at) { return norm_backward_point(at, false, true); }},
    {"rope_forward", [](Point& at) { return rope_point(at, false); }},
    {"rope_backward", [](Point& at) { return rope_point(at, true); }},
    {"cross_entropy_forward", cross_entropy_forward_point},
    {"cross_entropy_backward", cross_entropy_backward_point},
    {"bias_gradient", column_sum_point},
    {"adam", adam_point},
    {"gradient_norm", gradient_norm_point},
    {"weight_copy", copy_point},
    {"gradient_copy", copy_point},
    {"gradient_accumulation", copy_point},
    {"transpose", [](Point& at) { return transpose_point(at, false); }},
    {"head_transposition", [](Point& at) { return transpose_point(at, true); }},
    {"permute_forward", scatter_point},
    {"permute_backward", [](Point& at) { return gather_point(at, false); }},
    {"unpermute_forward", [](Point& at) { return gather_point(at, true); }},
    {"unpermute_backward", unpermute_backward_point},
    {"embedding_forward", embedding_forward_point},
    {"embedding_backward", embedding_backward_point},
};

WorkItem item_of(const Sample& sample, double value, const Device& device) {
  const double bandwidth = device.copy_bytes_per_s > 0 ? device.copy_bytes_per_s : 1e12;
  WorkItem item{.prototype = sample, .value = value};
  item.estimated_seconds =
      0.15 + 60 * sample.bytes / bandwidth;  // set-up, the check, and forty or so repeats
  item.run = [sample](Harness& harness) {
    const auto* runner = std::find_if(std::begin(kRunners), std::end(kRunners),
                                      [&](const Runner& r) { return r.op == sample.op; });
    if (runner == std::end(kRunners)) throw Unmeasurable("no kernel for " + sample.op);
    Point point{.sample = sample, .op = *find_kernel_op(sample.op), .bench = Bench(harness)};
    return runner->run(point);
  };
  return item;
}

}  // namespace

// Value: fused forms of the first shapes of a kind first; memory-bound kernels are a tenth to a third of a
// layer's time (op-inventory.md against the GEMMs), so none is worth more than 30.
std::vector<WorkItem> kernel_items(const Device& device) {
  std::vector<WorkItem> items;
  std::map<std::pair<std::string, std::string>, int> rank;
  for (const Sample& sample : kernel_points()) {
    const std::string& variant = sample.tags.at("variant");
    const int place = rank[{sample.op, variant}]++;
    items.push_back(item_of(sample, (variant == "fused" ? 30.0 : 12.0) / (1 + place), device));
  }
  return items;
}

std::optional<WorkItem> kernel_item_for(const Sample& wanted, const Device& device) {
  Sample sample = wanted;
  if (sample.family != "kernel" || !complete_kernel_point(sample).empty()) return std::nullopt;
  return item_of(sample, 100, device);
}

}  // namespace stagecraft
