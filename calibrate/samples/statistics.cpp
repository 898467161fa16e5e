#include "calibrate/samples/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace stagecraft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> sorted(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("no values");
  if (std::ranges::any_of(values, [](double value) { return std::isnan(value); }))
    throw std::invalid_argument("a value is not a number");
  std::vector<double> ordered(values.begin(), values.end());
  std::ranges::sort(ordered);
  return ordered;
}

double quantile_of_sorted(const std::vector<double>& ordered, double share) {
  const double rank = share * static_cast<double>(ordered.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, ordered.size() - 1);
  return ordered[below] + (rank - static_cast<double>(below)) * (ordered[above] - ordered[below]);
}

}  // namespace

double quantile(std::span<const double> values, double share) {
  if (!(share >= 0 && share <= 1)) throw std::invalid_argument("a share lies between 0 and 1");
  return quantile_of_sorted(sorted(values), share);
}

double median(std::span<const double> values) {
  return quantile(values, 0.5);
}

double relative_spread(std::span<const double> values) {
  const std::vector<double> ordered = sorted(values);
  const double middle = quantile_of_sorted(ordered, 0.5);
  if (!(middle > 0)) throw std::invalid_argument("the median must be positive");
  return (quantile_of_sorted(ordered, 0.84) - quantile_of_sorted(ordered, 0.16)) / (2 * middle);
}

double median_half_width(std::span<const double> values) {
  const std::vector<double> ordered = sorted(values);
  if (ordered.size() < 6) return kInfinity;
  const auto n = static_cast<double>(ordered.size());
  const double margin = 0.98 * std::sqrt(n);  // 1.96 standard deviations of a binomial with p = 1/2
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - margin)));
  const std::size_t high = ordered.size() - 1 - low;
  const double middle = quantile_of_sorted(ordered, 0.5);
  return middle > 0 ? (ordered[high] - ordered[low]) / (2 * middle) : kInfinity;
}

bool enough(std::span<const double> values, double seconds_spent, const StopRule& rule) {
  const auto count = static_cast<int>(values.size());
  if (count < rule.min_repeats) return false;
  if (count >= rule.max_repeats || seconds_spent >= rule.max_seconds) return true;
  return median_half_width(values) <= rule.target;
}

double worst_error(std::span<const double> values, std::span<const double> references,
                   std::span<const double> bounds) {
  if (values.size() != references.size() || values.size() != bounds.size())
    throw std::invalid_argument("values, references and bounds differ in number");
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = std::fabs(values[i] - references[i]);
    if (difference == 0) continue;  // exact, whatever the bound
    const double ratio = difference / bounds[i];
    if (!(bounds[i] > 0) || std::isnan(ratio)) return kInfinity;
    worst = std::max(worst, ratio);
  }
  return worst;
}

bool throttled(const ClockReading& reading, int reference_mhz, double tolerance) {
  // source   nvml.h, nvmlClocksEventReason*: hardware slowdown, software thermal, hardware thermal, power
  // brake.
  constexpr std::uint64_t kSlower = 0x8 | 0x20 | 0x40 | 0x80;
  constexpr std::uint64_t kPowerCap = 0x4;
  if ((reading.reasons & kSlower) != 0) return true;
  if (reading.sm_mhz == 0) return (reading.reasons & kPowerCap) != 0;
  return reading.sm_mhz < (1 - tolerance) * reference_mhz;
}

}  // namespace stagecraft
