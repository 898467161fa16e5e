#include "sim/accuracy/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.hpp"
#include "calibrate/samples/statistics.hpp"

namespace stagecraft {
namespace {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Figures that are printed alike differ in their last bits once they are times of equal tokens.
bool alike(double low, double high) {
  constexpr double kRounding = 1e-9;
  return high - low <= kRounding * std::abs(high);
}

// Place of each value in ascending order, counted from 0; equal ones have their mean place.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> out(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && alike(values[order[first]], values[order[end]])) ++end;
    const double place = (static_cast<double>(first) + static_cast<double>(end) - 1) / 2;
    for (; first < end; ++first) out[order[first]] = place;
  }
  return out;
}

}  // namespace

ErrorSummary summarise(std::span<const double> errors) {
  ErrorSummary summary;
  if (errors.empty()) return summary;
  std::vector<double> absolute;
  for (const double error : errors) absolute.push_back(std::abs(error));
  summary.rows = errors.size();
  summary.mean_absolute = mean(absolute);
  summary.bias = mean(errors);
  summary.worst = static_cast<std::size_t>(std::ranges::max_element(absolute) - absolute.begin());
  summary.median_absolute = median(absolute);
  return summary;
}

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
  SC_CHECK(a.size() == b.size(), "ranks are compared pair by pair");
  constexpr std::size_t kFewest = 3;
  if (a.size() < kFewest) return std::nullopt;
  const std::vector<double> first = ranks(a), second = ranks(b);
  const double middle = static_cast<double>(a.size() - 1) / 2;
  double both = 0, of_first = 0, of_second = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    both += (first[i] - middle) * (second[i] - middle);
    of_first += (first[i] - middle) * (first[i] - middle);
    of_second += (second[i] - middle) * (second[i] - middle);
  }
  if (of_first == 0 || of_second == 0) return std::nullopt;
  return both / std::sqrt(of_first * of_second);
}

}  // namespace stagecraft
