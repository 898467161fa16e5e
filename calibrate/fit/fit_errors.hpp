// Errors of a fit on rows that it has not seen.
//
// Errors are shares of the measured time, predicted / measured - 1, with the row that was left out of the fit
// named: a mean hides the one shape that a cluster spends its day on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stagecraft {

struct RowError {
  std::string row;   // "4096 x 1024, k 4096, NN"
  double error = 0;  // predicted / measured - 1
  // |ln(predicted / measured)|: a time ten times too long is as far off as one ten times too short, where
  // shares of it are -90 and +900 %.
  [[nodiscard]] double factor() const;
};

class FitErrors {
 public:
  void add(std::string row, double predicted, double measured);

  [[nodiscard]] std::size_t count() const { return rows_.size(); }
  [[nodiscard]] double median() const { return quantile(0.5); }
  [[nodiscard]] double p95() const { return quantile(0.95); }
  // The quantile of the absolute errors, linear between two rows; 0 without rows.
  [[nodiscard]] double quantile(double share) const;
  // The `count` largest errors by their factor, largest first; equal ones in the order in which they came.
  [[nodiscard]] std::vector<RowError> worst(std::size_t count) const;
  [[nodiscard]] const std::vector<RowError>& rows() const { return rows_; }

  // "median 1.4 %, 95th percentile 9.0 %, worst +31.0 % (4096 x 1024, k 4096, NN), 183 rows"
  [[nodiscard]] std::string summary() const;

 private:
  std::vector<RowError> rows_;
};

}  // namespace stagecraft
