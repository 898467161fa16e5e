#include "calibrate/fit/fit_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "calibrate/samples/statistics.hpp"

namespace stagecraft {

void FitErrors::add(std::string row, double predicted, double measured) {
  SC_CHECK(measured > 0 && std::isfinite(predicted), "an error needs a measured time and a prediction");
  rows_.push_back({.row = std::move(row), .error = predicted / measured - 1});
}

double RowError::factor() const {
  return 1 + error > 0 ? std::abs(std::log1p(error)) : std::numeric_limits<double>::infinity();
}

double FitErrors::quantile(double share) const {
  if (rows_.empty()) return 0;
  std::vector<double> sizes;
  sizes.reserve(rows_.size());
  for (const RowError& row : rows_) sizes.push_back(std::abs(row.error));
  return stagecraft::quantile(sizes, share);
}

std::vector<RowError> FitErrors::worst(std::size_t count) const {
  std::vector<RowError> sorted = rows_;
  std::ranges::stable_sort(sorted, std::greater{}, &RowError::factor);
  sorted.resize(std::min(count, sorted.size()));
  return sorted;
}

std::string FitErrors::summary() const {
  if (rows_.empty()) return "no rows to judge by";
  const RowError most = worst(1).front();
  return fmt::format("median {}, 95th percentile {}, worst {:+.1f} % ({}), {} rows", percent(median()),
                     percent(p95()), 100 * most.error, most.row, rows_.size());
}

}  // namespace stagecraft
