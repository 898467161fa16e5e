// Errors of many predictions in a few numbers.
//
//   error     predicted / measured - 1, in time: a prediction that is too fast is negative.
//   source    Spearman's rank correlation with mean ranks for ties (Pearson's correlation of the ranks).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace stagecraft {

struct ErrorSummary {
  std::size_t rows = 0;
  double mean_absolute = 0;
  double bias = 0;  // the mean with its sign
  double median_absolute = 0;
  std::size_t worst = 0;  // index of the largest absolute error, the first of equals; 0 of no rows
};

// All zero for an empty list.
[[nodiscard]] ErrorSummary summarise(std::span<const double> errors);

// The rank correlation, in [-1, 1]; nullopt for fewer than three pairs, or where one side is constant.
//   requires  as many of `a` as of `b`.
[[nodiscard]] std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace stagecraft
