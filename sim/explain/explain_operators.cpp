#include "sim/explain/explain_operators.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "calibrate/profile/tile_model.hpp"
#include "models/compute_cost.hpp"
#include "sim/explain/inputs.hpp"
#include "sim/shaped_operators.hpp"

namespace stagecraft {
namespace {

Explanation bytes_at_memory_rate(const HardwareProfile& profile, const Op& op) {
  const DeviceFacts& device = profile.device;
  Explanation rate =
      formula("memory rate", Operation::kProduct,
              {leaf("profile.device.memory_bandwidth", device.memory_bandwidth,
                    profile_origin(profile, device.provenance, device.source)),
               profile_input(profile, "memory_efficiency", Amount::number(profile.memory_efficiency.value),
                             profile.memory_efficiency)});
  return formula("bytes at the memory rate", Operation::kQuotient,
                 {leaf("bytes", op.bytes, {.kind = OriginKind::kModel, .text = "that the kernels move"}),
                  std::move(rate)});
}

Explanation gaps(const HardwareProfile& profile, const Op& op) {
  return formula(
      "gaps", Operation::kProduct,
      {leaf("kernels", Amount::count(op.kernels), {.kind = OriginKind::kModel}),
       profile_input(profile, "host.kernel_gap", profile.host.kernel_gap.value, profile.host.kernel_gap)});
}

std::string efficiency_text(const HardwareProfile& profile, Precision precision,
                            const GemmEfficiency& efficiency, const GemmShape& shape) {
  if (efficiency.provenance == Provenance::kPublished || efficiency.provenance == Provenance::kMeasured)
    return fmt::format("table row {}: {}", shape_text(shape), table_of(profile.gemm, precision)->source);
  if (efficiency.provenance == Provenance::kInterpolated)
    return fmt::format("the layout's efficiency and tile quantisation, corrected by table rows near {}",
                       shape_text(shape));
  return fmt::format("the layout's efficiency and tile quantisation of {}", shape_text(shape));
}

Explanation gemm_at_its_rate(const HardwareProfile& profile, Precision precision, const Op& op) {
  const GemmEfficiency efficiency = gemm_efficiency(profile, precision, op.gemm);
  const DeviceFacts& device = profile.device;
  const Sourced<double>& scale = profile.gemm.scale_of(precision);
  const double flops = 2.0 * static_cast<double>(op.gemm.m) * static_cast<double>(op.gemm.n) *
                       static_cast<double>(op.gemm.k) * static_cast<double>(op.gemm.batch);
  std::vector<Explanation> factors = {
      leaf(fmt::format("profile.device.peak_{}", kPrecisionNames[static_cast<std::size_t>(precision)]),
           profile.peak(precision), profile_origin(profile, device.provenance, device.source)),
      profile_input(profile, &scale == &profile.gemm.scale ? "gemm.scale" : "gemm.fp8_scale",
                    Amount::number(scale.value), scale),
      leaf("efficiency", Amount::number(efficiency.value),
           profile_origin(profile, efficiency.provenance,
                          efficiency_text(profile, precision, efficiency, op.gemm)))};
  const RecipeRate recipe = recipe_rate(profile, precision, op);
  if (recipe.constant != nullptr)
    factors.push_back(profile_input(
        profile, fmt::format("gemm.{}_factor", kFp8RecipeNames[static_cast<std::size_t>(op.fp8_recipe)]),
        Amount::number(recipe.constant->value), *recipe.constant));
  if (recipe.share != 1)
    factors.push_back(leaf("share of it", Amount::number(recipe.share),
                           {.kind = OriginKind::kModel, .text = "tiles fill as slowly as in fp8"}));
  Explanation rate = formula("rate", Operation::kProduct, std::move(factors));
  return formula("FLOPs at their rate", Operation::kQuotient,
                 {leaf("2 m n k", Flops(flops), {.kind = OriginKind::kModel, .text = shape_text(op.gemm)}),
                  std::move(rate)});
}

std::string words_for(const HardwareProfile& profile, const Op& op) {
  switch (op.kind) {
    case OpKind::kFlashForward:
    case OpKind::kFlashBackward:
      return fmt::format(
          "{} attention, {} heads of {} queries and {} keys: max(FLOPs / rate, bytes / memory "
          "rate), the rate by the kernel's curve",
          profile.attention.kernel_for(op.attention.operands, op.attention.two_sizes())->name,
          op.attention.batch, op.attention.queries, op.attention.keys);
    case OpKind::kGroupedGemm:
      return fmt::format("{} products of {} in one kernel", op.gemm.batch, shape_text(op.gemm));
    case OpKind::kBatchedGemm:
      return fmt::format("{} products of {}", op.gemm.batch, shape_text(op.gemm));
    case OpKind::kLoss:
      return "bytes of the unfused loss, of which its kernels move profile.loss_traffic";
    default:
      return fmt::format("{} of scattered rows", human(op.bytes));
  }
}

}  // namespace

Explanation explain_operator(const HardwareProfile& profile, Precision precision, const Op& op) {
  const Cost cost = compute_cost(profile, precision, op);
  const std::string name(op.name);
  Explanation node;
  if (op.kind == OpKind::kGemm) {
    node = formula(name, Operation::kSum,
                   {formula("work", Operation::kMaximum,
                            {gemm_at_its_rate(profile, op.precision.value_or(precision), op),
                             bytes_at_memory_rate(profile, op)}),
                    gaps(profile, op)});
  } else if (op.kind == OpKind::kMemory) {
    node = formula(name, Operation::kSum, {bytes_at_memory_rate(profile, op), gaps(profile, op)});
  }
  if (node.operation != Operation::kNone && node.value == Amount(cost.time)) return node;
  return leaf(name, cost.time, profile_origin(profile, cost.provenance, words_for(profile, op)));
}

}  // namespace stagecraft
