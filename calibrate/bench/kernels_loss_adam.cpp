// Memory-bound kernels at the ends of an iteration: the loss, the optimizer with its norm, copies of weights
// and gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
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

Measured cross_entropy_forward_point(KernelPoint& at) {
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
  // A thread sums up to 501 terms in fp32 (128256 over 256), each an exponential of a few ulp.
  const Precision precision{.unit = kFp32Unit, .roundings = 512};
  const double worst = worst_of(Bench::sampled(rows.tokens), [&](std::int64_t r) {
    const reference::LogitSums w =
        reference::cross_entropy(b.row(logits, r, rows.hidden), targets[static_cast<std::size_t>(r)]);
    BoundedRow wanted = {{w.maximum, std::abs(w.maximum)}, {w.sum, w.sum}};
    Row got = {b.row(maximum, r, 1)[0], b.row(sum, r, 1)[0]};
    if (at.fused()) {
      wanted.push_back({w.target, std::abs(w.target)});
      got.push_back(b.row(hit, r, 1)[0]);
    }
    return reference::worst(got, wanted, precision);
  });
  return at.finish(worst, op);
}

Measured cross_entropy_backward_point(KernelPoint& at) {
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
  const double worst = worst_of(wanted, [&](const auto& row) {
    return reference::worst(b.row(narrow, row.first, rows.hidden), row.second, at.bf16(1));
  });
  return at.finish(worst, op);
}

// One tensor, cut for the kernel.
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

Measured adam_point(KernelPoint& at) {
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

Measured gradient_norm_point(KernelPoint& at) {
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

Measured copy_point(KernelPoint& at) {  // weight_copy, gradient_copy, gradient_accumulation
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

}  // namespace

std::span<const KernelRunner> loss_and_adam_runners() {
  static constexpr KernelRunner kRunners[] = {
      {"cross_entropy_forward", cross_entropy_forward_point},
      {"cross_entropy_backward", cross_entropy_backward_point},
      {"adam", adam_point},
      {"gradient_norm", gradient_norm_point},
      {"weight_copy", copy_point},
      {"gradient_copy", copy_point},
      {"gradient_accumulation", copy_point},
  };
  return kRunners;
}

}  // namespace stagecraft
