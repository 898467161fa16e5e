#include "calibrate/fit/possible_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/text.hpp"
#include "calibrate/fit/attention_samples.hpp"

namespace stagecraft {
namespace {

// FLOPs of a GEMM or a flash kernel; 0 for other samples.
double counted_flops(const Sample& sample) {
  if (sample.family == "attention") return attention_flops(sample);
  if (sample.family != "gemm") return 0;
  double flops = 2;
  for (const char* extent : {"m", "n", "k", "batch"})
    flops *= static_cast<double>(extent_of(sample, extent, 1));
  return flops;
}

// The highest rate that the device's data sheet gives to any type.
double highest_peak(const HardwareProfile& base) {
  const DeviceFacts& device = base.device;
  return std::max({device.peak_fp32, device.peak_fp16, device.peak_bf16, device.peak_fp8}).count();
}

}  // namespace

bool are_possible(const SampleSet& set, const HardwareProfile& base, Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  const double most = kMostOfDataSheet * highest_peak(base);
  for (std::size_t i = 0; i < set.samples.size(); ++i) {
    const double rate = counted_flops(set.samples[i]) / set.samples[i].median_s;
    if (rate <= most) continue;
    diagnostics.error({.code = "impossible-sample",
                       .where = i < set.places.size() ? set.places[i] : SourceLocation{},
                       .message = fmt::format("{} of {}, whose data sheet ends at {}", human(FlopRate(rate)),
                                              base.device.name, human(FlopRate(highest_peak(base)))),
                       .hint = "is \"median_s\" in seconds, and of one execution?"});
  }
  return watch.clean();
}

}  // namespace stagecraft
