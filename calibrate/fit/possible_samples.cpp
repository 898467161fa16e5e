#include "calibrate/fit/possible_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/text.hpp"
#include "calibrate/fit/attention_samples.hpp"

namespace stagecraft {
namespace {

bool is_gemm(const Sample& sample) {
  return sample.family == "gemm" && sample.op == "gemm";
}

double extent(const Sample& sample, const char* name) {
  return static_cast<double>(extent_of(sample, name, 1));
}

// FLOPs of a GEMM or a flash kernel; 0 for other samples.
double counted_flops(const Sample& sample) {
  if (sample.family == "attention") return attention_flops(sample);
  if (!is_gemm(sample)) return 0;
  return 2 * extent(sample, "m") * extent(sample, "n") * extent(sample, "k") * extent(sample, "batch");
}

// Bytes that a sample says it moved, or the least that a GEMM can: a byte a value.
double least_bytes(const Sample& sample) {
  if (!is_gemm(sample)) return sample.bytes;
  const double m = extent(sample, "m"), n = extent(sample, "n"), k = extent(sample, "k");
  return std::max(sample.bytes, extent(sample, "batch") * (m * k + k * n + m * n));
}

// Does the time of such a sample end with its work? That of a collective depends on links that nobody knows
// here, a mix is of several kernels, and memory of the host is slow.
bool is_one_kernel(const Sample& sample) {
  return is_gemm(sample) || sample.family == "attention" || (sample.family == "kernel" && sample.bytes > 0) ||
         (sample.family == "system" && sample.op == "empty_kernel");
}

// The highest rate that the device's data sheet gives to any type.
double highest_peak(const HardwareProfile& base) {
  const DeviceFacts& device = base.device;
  return std::max({device.peak_fp32, device.peak_fp16, device.peak_bf16, device.peak_fp8}).count();
}

// Why the device cannot have taken this time; empty where it can.
std::string why_impossible(const Sample& sample, const HardwareProfile& base) {
  const double peak = highest_peak(base), flops = counted_flops(sample);
  const double rate = flops / sample.median_s;
  if (rate > kMostOfDataSheet * peak)
    return fmt::format("{} of {}, whose data sheet ends at {}", human(FlopRate(rate)), base.device.name,
                       human(FlopRate(peak)));
  const double at_best =
      (peak > 0 ? flops / peak : 0) + least_bytes(sample) / base.device.memory_bandwidth.count();
  if (!is_one_kernel(sample) || sample.median_s <= kLongestLaunchSeconds + kSlowest * at_best) return {};
  return fmt::format("{:.3g} s on {}, whose data sheet gives the work {:.3g} s", sample.median_s,
                     base.device.name, at_best);
}

}  // namespace

bool are_possible(const SampleSet& set, const HardwareProfile& base, Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  for (std::size_t i = 0; i < set.samples.size(); ++i) {
    const std::string why = why_impossible(set.samples[i], base);
    if (!why.empty())
      diagnostics.error({.code = "impossible-sample",
                         .where = i < set.places.size() ? set.places[i] : SourceLocation{},
                         .message = why,
                         .hint = "is \"median_s\" in seconds, and of one execution?"});
  }
  return watch.clean();
}

}  // namespace stagecraft
