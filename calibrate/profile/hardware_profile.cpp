#include "calibrate/profile/hardware_profile.hpp"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

#include "base/check.hpp"

namespace stagecraft {

namespace {

FlopRate peak_or_zero(const DeviceFacts& device, Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return device.peak_fp32;
    case Precision::kFp16:
      return device.peak_fp16;
    case Precision::kBf16:
      return device.peak_bf16;
    case Precision::kFp8:
      return device.peak_fp8;
  }
  SC_CHECK(false, "unknown precision");
  return {};
}

}  // namespace

double bus_factor(CollectiveKind kind, int ranks) {
  SC_CHECK(ranks >= 1, "a group has a rank");
  const double n = ranks;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return (n - 1) / n;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendReceive:
      return 1;
  }
  SC_CHECK(false, "every kind of collective is listed");
  return 0;
}

std::string dated_name(const HardwareProfile& profile) {
  return profile.date.empty() ? profile.name : profile.name + " of " + profile.date;
}

bool speak_for_same_calls(const CollectiveFit& one, const CollectiveFit& other) {
  const bool same_group = one.kind == other.kind && one.ranks == other.ranks && one.nodes == other.nodes;
  return same_group &&
         (one.algorithm == other.algorithm || one.algorithm == "any" || other.algorithm == "any");
}

double formula_seconds(const CollectiveFit& fit, double bytes) {
  return to_seconds(fit.latency) + bytes * bus_factor(fit.kind, fit.ranks) / fit.bus_bandwidth.count() +
         fit.sqrt_seconds * std::sqrt(bytes);
}

double points_over_formula(const CollectiveFit& fit, double bytes) {
  if (fit.points.empty()) return 1;
  const auto formula = [&](const CollectivePoint& point) {
    return std::log(formula_seconds(fit, static_cast<double>(point.size.count())));
  };
  const auto ratio = [&](const CollectivePoint& point) {
    return std::log(to_seconds(point.time)) - formula(point);
  };
  const auto above = std::ranges::find_if(fit.points, [&](const CollectivePoint& point) {
    return static_cast<double>(point.size.count()) >= bytes;
  });
  if (above == fit.points.begin()) return std::exp(ratio(fit.points.front()));
  if (above == fit.points.end()) return std::exp(ratio(fit.points.back()));
  const CollectivePoint& below = *std::prev(above);
  const double share =
      (std::log(formula_seconds(fit, bytes)) - formula(below)) / (formula(*above) - formula(below));
  return std::exp(std::lerp(ratio(below), ratio(*above), share));
}

double GemmModel::prologue(Precision precision) const {
  return precision == Precision::kFp8 && fp8_prologue ? fp8_prologue->value : static_cast<double>(prologue_k);
}

const Sourced<double>& GemmModel::scale_of(Precision precision) const {
  return precision == Precision::kFp8 && fp8_scale ? *fp8_scale : scale;
}

const std::optional<Sourced<double>>* GemmModel::block_factor(Fp8Recipe recipe) const {
  switch (recipe) {
    case Fp8Recipe::kBlockwise:
      return &blockwise_factor;
    case Fp8Recipe::kMxfp8:
      return &mxfp8_factor;
    case Fp8Recipe::kNvfp4:
      return &nvfp4_factor;
    case Fp8Recipe::kDelayed:
    case Fp8Recipe::kCurrent:
    case Fp8Recipe::kTorchao:
      break;
  }
  return nullptr;
}

const Sourced<double>& GemmModel::efficiency(GemmLayout layout) const {
  switch (layout) {
    case GemmLayout::kTN:
      return efficiency_tn;
    case GemmLayout::kNN:
      return efficiency_nn;
    case GemmLayout::kNT:
      break;
  }
  return efficiency_nt;
}

double flash_occupancy(double half_blocks, double blocks) {
  return blocks / (blocks + half_blocks) * (kFlashBenchmarkBlocks + half_blocks) / kFlashBenchmarkBlocks;
}

double flash_head_share(double half_head_size, double head_size) {
  return head_size / (head_size + half_head_size) * (kFlashBenchmarkHeadSize + half_head_size) /
         kFlashBenchmarkHeadSize;
}

const FlashKernel& AttentionModel::kernel() const {
  SC_CHECK(in_use < kernels.size(), "a profile has a flash kernel; the loader has seen to it");
  return kernels[in_use];
}

const FlashKernel* AttentionModel::kernel_for(FlashOperands operands, bool two_sizes) const {
  if (operands == FlashOperands::kSixteenBit) return &kernel();
  const auto found = std::ranges::find_if(narrow, [&](const NarrowFlashKernel& one) {
    return one.operands == operands && one.two_sizes == two_sizes;
  });
  return found == narrow.end() ? nullptr : &found->kernel;
}

bool HardwareProfile::supports(Precision precision) const {
  return peak_or_zero(device, precision).count() > 0;
}

FlopRate HardwareProfile::peak(Precision precision) const {
  SC_CHECK(supports(precision),
           "the device has no such precision; whoever resolved the scenario should have said so");
  return peak_or_zero(device, precision);
}

double HardwareProfile::spread(Provenance provenance) const {
  return relative_spread.at(static_cast<std::size_t>(provenance));
}

double HardwareProfile::slowest_of(int gpus) const {
  SC_CHECK(gpus >= 1, "a job has a GPU");
  if (!gpu_variability) return 0;
  const double n = gpus;
  // The quantile of p is sqrt(2) times the inverse of erf at 2p - 1.
  return gpu_variability->value * std::numbers::sqrt2 * boost::math::erf_inv((n - 1) / (n + 0.25));
}

}  // namespace stagecraft
