// Memory-bound kernels that take a tensor row by row: activations, dropout, softmax, norms, rotary positions,
// sums of columns.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/bench/fused_kernels.hpp"
#include "calibrate/bench/kernels_point.hpp"
#include "calibrate/bench/kernels_unfused.hpp"

namespace stagecraft {
namespace {

using reference::Bounded;
using reference::BoundedRow;
using reference::Precision;
using reference::Row;

Measured bias_gelu(KernelPoint& at, bool forward) {
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
  const double worst = at.worst_row(out, rows, at.bf16(2), [&](std::int64_t r) {
    const Row in = b.row(x, r, rows.hidden);
    return forward ? reference::bias_gelu_forward(in, shift)
                   : reference::bias_gelu_backward(b.row(dy, r, rows.hidden), in, shift);
  });
  return at.finish(worst, op);
}

Measured swiglu(KernelPoint& at, bool forward) {
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
  const Rows made{rows.tokens, (forward ? 1 : 2) * rows.hidden};
  const double worst = at.worst_row(out, made, at.bf16(3), [&](std::int64_t r) {
    const Row in = b.row(x, r, 2 * rows.hidden);
    return forward ? reference::swiglu_forward(in)
                   : reference::swiglu_backward(b.row(dy, r, rows.hidden), in);
  });
  return at.finish(worst, op);
}

constexpr Dropout kDropout{.seed = 0x5DEECE66D, .threshold = 6554};  // p = 0.1

Measured bias_dropout_add(KernelPoint& at) {
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
  const double worst = at.worst_row(io.y, rows, at.bf16(3), [&](std::int64_t r) {
    const Row mask =
        reference::dropout_mask(rows.hidden, {r * rows.hidden, kDropout.seed, kDropout.threshold});
    return reference::bias_dropout_add(b.row(x, r, rows.hidden), shift, b.row(residual, r, rows.hidden), mask,
                                       kDropout.scale());
  });
  return at.finish(worst, op);
}

Measured dropout_backward_point(KernelPoint& at) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const Bf16 *x = b.random(rows.elements()), *bias = b.random(rows.hidden);
  Bf16* dx = b.room<Bf16>(rows.elements());
  std::uint8_t* mask = b.room<std::uint8_t>(rows.elements());
  bias_dropout_add_forward({x, bias, x, dx, mask}, kDropout, rows, b.harness().stream());
  b.harness().poison(dx, rows.elements() * 2);
  const Enqueue op = [&](cudaStream_t s) { dropout_backward({x, mask, dx}, kDropout, rows, s); };
  b.run(op);
  const double worst = at.worst_row(dx, rows, at.bf16(1), [&](std::int64_t r) {
    const Row kept =
        reference::dropout_mask(rows.hidden, {r * rows.hidden, kDropout.seed, kDropout.threshold});
    return reference::dropout_backward(b.row(x, r, rows.hidden), kept, kDropout.scale());
  });
  return at.finish(worst, op);
}

Measured softmax_forward_point(KernelPoint& at) {
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
  const double worst = at.worst_row(y, rows, at.bf16(3), [&](std::int64_t r) {
    return reference::causal_softmax(b.row(x, r, sequence), r % sequence, kScale);
  });
  return at.finish(worst, op);
}

Measured softmax_backward_point(KernelPoint& at) {
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
  const double worst = at.worst_row(dx, rows, at.bf16(2), [&](std::int64_t r) {
    return reference::causal_softmax_backward(b.row(dy, r, sequence), b.row(y, r, sequence), kScale);
  });
  return at.finish(worst, op);
}

Measured norm_forward_point(KernelPoint& at, bool centred) {
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
  const double worst = at.worst_row(y, rows, at.bf16(2), [&](std::int64_t r) {
    return reference::norm(b.row(x, r, rows.hidden), scale, shift);
  });
  return at.finish(worst, op);
}

struct NormOperands {
  const Bf16 *dy, *x, *weight, *branch;
  float *mean, *rstd, *dweight, *dbias;
  Bf16* dx;
  bool centred;
};

// dx on sampled rows, the gradients of weight and bias on sampled columns.
double norm_backward_error(const KernelPoint& at, const NormOperands& io) {
  const Rows rows = at.rows();
  const Bench& b = at.bench;
  const Row weight = b.row(io.weight, 0, rows.hidden);
  const double of_rows = at.worst_row(io.dx, rows, at.bf16(1), [&](std::int64_t r) {
    const Row dy = b.row(io.dy, r, rows.hidden), x = b.row(io.x, r, rows.hidden);
    const Row branch = io.branch != nullptr ? b.row(io.branch, r, rows.hidden) : Row{};
    return reference::norm_backward({dy, x, weight, branch, io.centred});
  });
  const Row rstd = b.row(io.rstd, 0, rows.tokens);
  const Row mean = io.centred ? b.row(io.mean, 0, rows.tokens) : Row(rstd.size(), 0.0);
  const Precision sums = at.fused() ? Precision{.unit = kFp32Unit, .roundings = kColumnRoundings}
                                    : Precision{.unit = kBf16Unit, .roundings = 1};
  const double of_columns = worst_of(Bench::sampled(rows.hidden, 4), [&](std::int64_t c) {
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
    const double of_weight = one(io.dweight, scale);
    return io.centred ? std::max(of_weight, one(io.dbias, shift)) : of_weight;
  });
  return std::max(of_rows, of_columns);
}

Measured norm_backward_point(KernelPoint& at, bool centred, bool residual) {
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

Measured rope_point(KernelPoint& at, bool backward) {
  const RopeShape shape{at.extent("tokens"), at.extent("heads"), at.extent("head_size"), backward};
  const std::int64_t elements = shape.tokens * shape.heads * shape.head_size, half = shape.head_size / 2;
  Bench& b = at.bench;
  std::vector<float> cosine(static_cast<std::size_t>(shape.tokens * half)), sine(cosine.size());
  for (std::size_t i = 0; i < cosine.size(); ++i) {
    const std::int64_t place = static_cast<std::int64_t>(i) / half;
    const auto token = static_cast<double>(place);
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
  const double worst = worst_of(Bench::sampled(shape.tokens * shape.heads, 16), [&](std::int64_t r) {
    const std::int64_t token = r / shape.heads;
    const BoundedRow wanted = reference::rope(b.row(io.x, r, shape.head_size), b.row(io.cosine, token, half),
                                              b.row(io.sine, token, half), backward);
    return reference::worst(b.row(io.y, r, shape.head_size), wanted, at.bf16(2));
  });
  return at.finish(worst, op);
}

Measured column_sum_point(KernelPoint& at) {
  const Rows rows = at.rows();
  Bench& b = at.bench;
  const Bf16* dy = b.random(rows.elements());
  float *sums = b.room<float>(rows.hidden), *partials = b.room<float>(column_sum_partials(rows));
  const Enqueue op = [&](cudaStream_t s) { column_sum(dy, sums, partials, rows, s); };
  b.run(op);
  const double worst = worst_of(Bench::sampled(rows.hidden, 4), [&](std::int64_t c) {
    Bounded wanted;
    for (const double v : b.column(dy, c, rows.tokens, rows.hidden)) {
      wanted.value += v;
      wanted.magnitude += std::abs(v);
    }
    const Precision precision{.unit = kFp32Unit, .roundings = kColumnRoundings};
    return reference::worst(b.row(sums, c, 1), std::span(&wanted, 1), precision);
  });
  return at.finish(worst, op);
}

}  // namespace

std::span<const KernelRunner> row_runners() {
  static constexpr KernelRunner kRunners[] = {
      {"bias_gelu_forward", [](KernelPoint& at) { return bias_gelu(at, true); }},
      {"bias_gelu_backward", [](KernelPoint& at) { return bias_gelu(at, false); }},
      {"swiglu_forward", [](KernelPoint& at) { return swiglu(at, true); }},
      {"swiglu_backward", [](KernelPoint& at) { return swiglu(at, false); }},
      {"bias_dropout_add_forward", bias_dropout_add},
      {"dropout_backward", dropout_backward_point},
      {"softmax_forward", softmax_forward_point},
      {"softmax_backward", softmax_backward_point},
      {"layernorm_forward", [](KernelPoint& at) { return norm_forward_point(at, true); }},
      {"layernorm_backward", [](KernelPoint& at) { return norm_backward_point(at, true, false); }},
      {"layernorm_residual_backward", [](KernelPoint& at) { return norm_backward_point(at, true, true); }},
      {"rmsnorm_forward", [](KernelPoint& at) { return norm_forward_point(at, false); }},
      {"rmsnorm_backward", [](KernelPoint& at) { return norm_backward_point(at, false, false); }},
      {"rmsnorm_residual_backward", [](KernelPoint& at) { return norm_backward_point(at, false, true); }},
      {"rope_forward", [](KernelPoint& at) { return rope_point(at, false); }},
      {"rope_backward", [](KernelPoint& at) { return rope_point(at, true); }},
      {"bias_gradient", column_sum_point},
  };
  return kRunners;
}

}  // namespace stagecraft
