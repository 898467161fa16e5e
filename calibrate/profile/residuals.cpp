#include "calibrate/profile/residuals.hpp"

#include <cmath>

namespace stagecraft {

double ResidualModel::sigma(const FamilyShares& shares, WhatRan ran) const {
  double squares = 0, sum = 0;
  for (std::size_t i = 0; i < kOpFamilyCount; ++i) {
    const double spread = families[i].value * shares[i];
    squares += spread * spread;
    sum += spread;
  }
  const double together = correlation.value;
  const double more = ran == WhatRan::kNamed ? 0 : unnamed[static_cast<std::size_t>(ran) - 1].value;
  return std::sqrt((1 - together) * squares + together * sum * sum + run.value * run.value + more * more);
}

std::array<Duration, 2> interval_90(Duration predicted, double sigma) {
  const double factor = std::exp(kNormal90 * sigma), seconds = to_seconds(predicted);
  return {from_seconds(seconds / factor), from_seconds(seconds * factor)};
}

}  // namespace stagecraft
