#include "models/compute_cost.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "calibrate/profile/tile_model.hpp"

namespace stagecraft {

namespace {

// Seconds of the work itself, without gaps, and where the figure comes from.
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

double gemm_flops(const GemmShape& shape) {
  return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k) *
         static_cast<double>(shape.batch);
}

bool aligned(const GemmShape& shape) {
  return shape.m % 8 == 0 && shape.n % 8 == 0 && shape.k % 8 == 0;
}

Work gemm_work(const HardwareProfile& profile, Precision precision, const Op& op) {
  const GemmEfficiency efficiency = gemm_efficiency(profile, precision, op.gemm);
  const double rate = profile.peak(precision).count() * profile.gemm.scale.value * efficiency.value;
  return {.seconds = std::max(gemm_flops(op.gemm) / rate, memory_seconds(profile, op.bytes)),
          .provenance = efficiency.provenance};
}

Work batched_gemm_work(const HardwareProfile& profile, Precision precision, const Op& op) {
  const GemmModel& model = profile.gemm;
  const double quantisation = tile_quantisation(model, profile.device.sms, size_of(op.gemm));
  const double penalty = aligned(op.gemm) ? 1 : model.misaligned_factor.value;
  const double rate =
      profile.peak(precision).count() * model.batched_efficiency.value * penalty * quantisation;
  return {.seconds = std::max(gemm_flops(op.gemm) / rate, memory_seconds(profile, op.bytes)),
          .provenance = model.batched_efficiency.provenance};
}

Work flash_work(const HardwareProfile& profile, Precision precision, const Op& op) {
  const Sourced<FlopRate>& rate =
      op.kind == OpKind::kFlashForward ? profile.attention.flash_forward : profile.attention.flash_backward;
  const double seconds = op.flops.count() / rate.value.count();
  if (precision != Precision::kFp32) return {.seconds = seconds, .provenance = rate.provenance};
  const FlopRate sixteen_bit = std::max(profile.device.peak_fp16, profile.device.peak_bf16);
  return {.seconds = seconds * (sixteen_bit / profile.peak(precision)), .provenance = Provenance::kAssumed};
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
    case OpKind::kGroupedGemm:
      return gemm_work(profile, precision, op);
    case OpKind::kBatchedGemm:
      return batched_gemm_work(profile, precision, op);
    case OpKind::kFlashForward:
    case OpKind::kFlashBackward:
      return flash_work(profile, precision, op);
    case OpKind::kMemory:
    case OpKind::kPermutation:
      return memory_work(profile, op);
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
      model.efficiency(shape.layout).value * tile_quantisation(model, profile.device.sms, size_of(shape));
  if (std::ranges::find(model.table_precisions, precision) == model.table_precisions.end()) {
    return {.value = formula, .provenance = Provenance::kAssumed};
  }
  if (shape.batch != 1) return {.value = formula, .provenance = Provenance::kAnalytic};
  const auto exact = std::ranges::find_if(model.rows, [&](const GemmRow& row) {
    return row.layout == shape.layout && row.m == shape.m && row.n == shape.n && row.k == shape.k;
  });
  if (exact != model.rows.end()) return {.value = exact->efficiency, .provenance = exact->provenance};
  const TableCorrection near = table_correction(model, shape.layout, size_of(shape));
  return {.value = formula * near.factor,
          .provenance =
              near.weight >= model.correction_prior ? Provenance::kInterpolated : Provenance::kAnalytic};
}

Cost compute_cost(const HardwareProfile& profile, Precision precision, const Op& op) {
  const Work work = work_of(profile, precision, op);
  return {.time = from_seconds(work.seconds) + op.kernels * profile.host.kernel_gap.value,
          .relative_spread = profile.spread(work.provenance),
          .provenance = work.provenance};
}

}  // namespace stagecraft
