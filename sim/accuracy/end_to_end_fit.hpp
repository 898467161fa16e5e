// Fits a few named constants on whole iterations, where no kernel measures them.
//
//   loss    sum of w_i ln(predicted / measured)^2 / kRowNoise^2 + sum of ((x - start) / half range)^2, with
//           Huber's reweighting of far rows. Every source has the same total weight: kSourceRows rows.
//   method  Gauss and Newton with forward differences: every step runs each row once a constant. Constants
//           keep to their plausible range; one that ends on its bound is named, not let go.
//   left out  each source by constants that its rows had no part in, from the linear model around the fit of
//           all; its rows are then simulated with them. Where a fit starts from constants that have seen
//           those rows, so does their prior, and the figure is kind: fit_without_each() starts from none.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stagecraft {

struct FreeConstant {
  std::string name;
  double start = 0, low = 0, high = 0;
};

struct EndToEndProblem {
  std::vector<FreeConstant> constants;
  std::vector<int> sources;  // source of each row
  // ln(predicted / measured) of the requested rows, at these values of the constants.
  std::function<std::vector<double>(const std::vector<double>& values, const std::vector<std::size_t>& rows)>
      log_errors;
};

inline constexpr double kRowNoise = 0.05;
inline constexpr double kSourceRows = 5;

struct SourceErrors {
  int source = 0;
  double before = 0;           // mean absolute error with the constants as they were
  double fitted = 0;           // error with the constants fitted on all rows
  double left_out = 0;         // error with the constants fitted on the other sources
  std::vector<double> values;  // values of the latter constants
};

struct EndToEndFit {
  std::vector<double> values;
  std::vector<double> standard_errors;  // standard errors from the loss around the fit, prior included
  std::vector<SourceErrors> sources;    // ascending
  int runs = 0;                         // rows simulated
};

//   requires  at least one constant and one row.
[[nodiscard]] EndToEndFit fit_end_to_end(const EndToEndProblem& problem, int steps = 3);

// Constants fitted on the rows of the other sources only, from the start in `problem`, and the source's error
// with them. Its rows are simulated once, at the end.
struct FitWithout {
  int source = 0;
  double error = 0;  // mean absolute, of its rows
  std::vector<double> values;
};

//   requires  two sources, one constant.
[[nodiscard]] std::vector<FitWithout> fit_without_each(const EndToEndProblem& problem, int steps = 2);

}  // namespace stagecraft
