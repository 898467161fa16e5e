#include "models/compute_cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "calibrate/profile/tile_model.hpp"
#include "models/attention_operators.hpp"
#include "models/op_builder.hpp"

namespace stagecraft {

namespace {

// Seconds of the work itself without gaps, and their provenance.
struct Work {
  double seconds = 0;
  Provenance provenance = Provenance::kAnalytic;
};

double memory_seconds(const HardwareProfile& profile, Bytes bytes) {
  const double rate = profile.device.memory_bandwidth.count() * profile.memory_efficiency.value;
  return static_cast<double>(bytes.count()) / rate;
}

GemmSize size_of(const GemmShape& shape) {
  return {.m = shape.m, .n = shape.n, .k = shape.k, .batch = shape.batch};
}

bool aligned(const GemmShape& shape) {
  return shape.m % 8 == 0 && shape.n % 8 == 0 && shape.k % 8 == 0;
}

double gemm_seconds(const HardwareProfile& profile, Precision precision, const Op& op, double efficiency) {
  const double rate = profile.peak(precision).count() * profile.gemm.scale_of(precision).value * efficiency *
                      recipe_rate(profile, precision, op).value();
  return gemm_flops(op.gemm).count() / rate;
}

Work gemm_work(const HardwareProfile& profile, Precision precision, const Op& op) {
  const GemmEfficiency efficiency = gemm_efficiency(profile, precision, op.gemm);
  return {.seconds = std::max(gemm_seconds(profile, precision, op, efficiency.value),
                              memory_seconds(profile, op.bytes)),
          .provenance = efficiency.provenance};
}

Work batched_gemm_work(const HardwareProfile& profile, Precision precision, const Op& op) {
  const GemmModel& model = profile.gemm;
  const double quantisation = tile_quantisation(model, profile.device.sms, size_of(op.gemm), precision);
  const double penalty = aligned(op.gemm) ? 1 : model.misaligned_factor.value;
  const double rate =
      profile.peak(precision).count() * model.batched_efficiency.value * penalty * quantisation;
  return {.seconds = std::max(gemm_flops(op.gemm).count() / rate, memory_seconds(profile, op.bytes)),
          .provenance = model.batched_efficiency.provenance};
}

// The GEMMs of all groups, their traffic and the overhead per group. Math and traffic of many small GEMMs
// overlap only in part: the root of the sum of their squares.
Work grouped_gemm_work(const HardwareProfile& profile, Precision precision, const Op& op) {
  const GemmEfficiency efficiency = gemm_efficiency(profile, precision, op.gemm);
  const ExpertKernels& experts = profile.experts;
  const double math = gemm_seconds(profile, precision, op, efficiency.value * experts.grouped_factor.value);
  const double groups =
      op.joined ? 0 : static_cast<double>(op.gemm.batch) * to_seconds(experts.group_gap.value);
  return {.seconds = groups + std::hypot(math, memory_seconds(profile, op.bytes)),
          .provenance = experts.grouped_factor.provenance};
}

// A backward kernel pads the values to the queries where they are of another size: the head that it works
// on, and the FLOPs that this adds. A rate that is of such heads has both in it.
struct FlashHead {
  double size = kFlashBenchmarkHeadSize, padding = 1;
};

FlashHead flash_head(OpKind kind, const AttentionShape& shape) {
  if (shape.operands != FlashOperands::kSixteenBit && shape.two_sizes()) return {};
  const double mean = static_cast<double>(shape.query_size + shape.value_size) / 2;
  if (kind == OpKind::kFlashForward) return {.size = mean};
  const auto larger = static_cast<double>(std::max(shape.query_size, shape.value_size));
  return {.size = larger, .padding = larger / mean};
}

// Scores that a kernel computes, as a share of its square, and the rows of keys and half length on which its rate
// depends.
struct FlashSpan {
  double share = 1, keys = 0, half_length = 0;
};

// A block of queries meets whole blocks of keys: those of its window, and one more on the diagonal, which counts half
// as it does without a window. The rate is that of a causal sample whose queries meet as many keys on average.
FlashSpan windowed_span(const AttentionShape& shape, double half_length, double edge) {
  const auto keys = static_cast<double>(shape.keys);
  const double blocks = std::ceil(static_cast<double>(shape.window - 1) / kFlashBlockKeys) + 0.5;
  const double share = windowed_share(std::min(blocks * kFlashBlockKeys, keys), keys);
  return {.share = share, .keys = 2 * share * keys, .half_length = half_length + 2 * edge};
}

// A window never takes longer than the whole sample.
FlashSpan flash_span(const AttentionShape& shape, const FlashPass& pass, const FlashCurve& curve) {
  const auto keys = static_cast<double>(shape.keys);
  if (!shape.causal) return {.share = 1, .keys = keys, .half_length = curve.half_length};
  const FlashSpan whole{.share = 0.5, .keys = keys, .half_length = curve.half_length};
  if (shape.window == 0) return whole;
  const FlashSpan span =
      windowed_span(shape, curve.half_length, pass.window_edge ? pass.window_edge->value : 0);
  return span.keys + span.half_length < whole.keys + whole.half_length ? span : whole;
}

Work flash_work(const HardwareProfile& profile, Precision precision, const Op& op) {
  const AttentionShape& shape = op.attention;
  SC_CHECK(
      shape.batch > 0 && shape.queries > 0 && shape.keys > 0 && shape.query_size > 0 && shape.value_size > 0,
      "an attention core has an empty extent");
  const AttentionModel& model = profile.attention;
  const FlashKernel* known = model.kernel_for(shape.operands, shape.two_sizes());
  SC_CHECK(known != nullptr, "a kernel without a rate; the loader of scenarios should have said so");
  const FlashKernel& kernel = *known;
  const FlashPass& pass = op.kind == OpKind::kFlashForward ? kernel.forward : kernel.backward;
  const FlashCurve& curve = shape.causal ? pass.causal : pass.dense;
  const FlashHead head = flash_head(op.kind, shape);
  const FlashSpan span = flash_span(shape, pass, curve);
  // A partial block takes as long as a full one: its fraction of the work runs at its fraction of the rate.
  const double blocks =
      static_cast<double>(shape.batch) * static_cast<double>(shape.queries) / kFlashBlockQueries;
  const double rate = curve.rate.count() * span.keys / (span.keys + span.half_length) *
                      flash_occupancy(pass.half_blocks.value * profile.device.sms, blocks) *
                      flash_head_share(kernel.half_head_size.value_or(model.half_head_size).value, head.size);
  const double done = op.flops.count() * head.padding * span.share;
  const double fixed = to_seconds(model.fixed.value);
  if (precision != Precision::kFp32) {
    return {.seconds = fixed + std::max(done / rate, memory_seconds(profile, op.bytes)),
            .provenance = shape.window > 0 ? Provenance::kAnalytic : curve.provenance};
  }
  const FlopRate sixteen_bit = std::max(profile.device.peak_fp16, profile.device.peak_bf16);
  const double slower = sixteen_bit / profile.peak(precision);
  return {.seconds = fixed + std::max(done / rate * slower, memory_seconds(profile, op.bytes)),
          .provenance = Provenance::kAssumed};
}

Work permutation_work(const HardwareProfile& profile, const Op& op) {
  const Sourced<double>& share = profile.experts.permutation_efficiency;
  const double rate = profile.device.memory_bandwidth.count() * share.value;
  return {.seconds = static_cast<double>(op.bytes.count()) / rate, .provenance = share.provenance};
}

Work memory_work(const HardwareProfile& profile, const Op& op) {
  return {.seconds = memory_seconds(profile, op.bytes), .provenance = profile.memory_efficiency.provenance};
}

Work loss_work(const HardwareProfile& profile, const Op& op) {
  const double unfused = memory_seconds(profile, op.bytes);
  return {.seconds = unfused * profile.loss_traffic.value, .provenance = profile.loss_traffic.provenance};
}

Work work_of(const HardwareProfile& profile, Precision precision, const Op& op) {
  switch (op.kind) {
    case OpKind::kGemm:
      return gemm_work(profile, precision, op);
    case OpKind::kGroupedGemm:
      return grouped_gemm_work(profile, precision, op);
    case OpKind::kBatchedGemm:
      return batched_gemm_work(profile, precision, op);
    case OpKind::kFlashForward:
    case OpKind::kFlashBackward:
      return flash_work(profile, precision, op);
    case OpKind::kMemory:
      return memory_work(profile, op);
    case OpKind::kPermutation:
      return permutation_work(profile, op);
    case OpKind::kLoss:
      return loss_work(profile, op);
    case OpKind::kCollective:
      break;
  }
  SC_CHECK(false, "a collective has no compute cost; topology/ prices it");
  return {};
}

}  // namespace

GemmEfficiency gemm_efficiency(const HardwareProfile& profile, Precision precision, const GemmShape& shape) {
  const GemmModel& model = profile.gemm;
  const double formula =
      formula_efficiency(model, profile.device.sms, shape.layout, size_of(shape), precision);
  const GemmTable* table = table_of(model, precision);
  if (table == nullptr) return {.value = formula, .provenance = Provenance::kAssumed};
  if (shape.batch != 1) return {.value = formula, .provenance = Provenance::kAnalytic};
  const auto exact = std::ranges::find_if(table->rows, [&](const GemmRow& row) {
    return row.layout == shape.layout && row.m == shape.m && row.n == shape.n && row.k == shape.k;
  });
  if (exact != table->rows.end()) return {.value = exact->efficiency, .provenance = exact->provenance};
  const TablePull near = table_pull(*table, shape.layout, size_of(shape));
  const double corrected = formula * near.factor(table->prior);
  return {
      .value = table->radius > 0 ? between_rows(*table, shape.layout, size_of(shape), corrected) : corrected,
      .provenance = near.weight >= table->prior ? Provenance::kInterpolated : Provenance::kAnalytic};
}

RecipeRate recipe_rate(const HardwareProfile& profile, Precision precision, const Op& op) {
  if (precision != Precision::kFp8) return {};
  const std::optional<Sourced<double>>* factor = profile.gemm.block_factor(op.fp8_recipe);
  if (factor == nullptr) return {};
  SC_CHECK(factor->has_value(), "the device has products of the recipe");
  const Sourced<double>& constant = **factor;
  if (op.fp8_recipe != Fp8Recipe::kNvfp4) return {.constant = &constant};
  const auto k = static_cast<double>(op.gemm.k);
  const double fill = profile.gemm.prologue(precision);
  return {.constant = &constant, .share = (k + fill) / (k + constant.value * fill)};
}

Cost compute_cost(const HardwareProfile& profile, Precision precision, const Op& op) {
  const Work work = work_of(profile, op.precision.value_or(precision), op);
  return {.time = from_seconds(work.seconds) + op.kernels * profile.host.kernel_gap.value,
          .relative_spread = profile.spread(work.provenance),
          .provenance = work.provenance};
}

}  // namespace stagecraft
