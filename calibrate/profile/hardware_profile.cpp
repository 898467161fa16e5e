#include "calibrate/profile/hardware_profile.hpp"

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

}  // namespace stagecraft
