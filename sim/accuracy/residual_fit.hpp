// The residual constants of a profile (calibrate/profile/residuals.hpp), from rows whose measurement is
// known.
//
//   score   of a 90 % interval, on the logarithm of time: its width, and 2/0.1 times what a measurement lies
//           outside; a proper score (Gneiting and Raftery, JASA 2007, section 6.2): it is least where a
//           tenth of the rows lies outside, and the intervals are as narrow as that allows.
//   prior   the constants stay near those of `prior`, which count as much as kPriorRows rows: a profile with
//           few rows has the residuals of its kin until it has rows of its own.
//   unnamed the names of what ran are taken from all rows, whose errors then hold what other software adds; its
//           two values serve all profiles, because what ran is not known by the GPU.
//   few     compute, tensor, pipeline, data and run are fitted; what no row exercises keeps its prior.
//   tail    of a row whose tail takes more than kMostTail the error is mostly the tail's, which is not fitted:
//           small jobs that wait for their hosts say nothing of how well passes and traffic are known.
#pragma once

#include <span>
#include <vector>

#include "calibrate/profile/residuals.hpp"

namespace stagecraft {

struct ResidualRow {
  FamilyShares shares{};
  double log_error = 0;  // ln(measured / predicted)
  int source = 0;        // rows of one source are left out together
  WhatRan ran = WhatRan::kNamed;
};

inline constexpr double kPriorRows = 10;
inline constexpr double kMostTail = 0.2;

// Prior before any row: judged from the errors of single kernels, curves and repeats.
[[nodiscard]] ResidualModel assumed_residuals();

// Values alone; the stories are the prior's. Rows that are mostly tail are left aside.
[[nodiscard]] ResidualModel fit_residuals(std::span<const ResidualRow> rows, const ResidualModel& prior);

// An error, and its standard deviation as a model has it.
struct ExpectedError {
  double log_error = 0, sigma = 0;
};
// The errors of the rows of which this is known, as a model that knew what ran would expect them. Rows that are
// mostly tail are left aside.
[[nodiscard]] std::vector<ExpectedError> expected_errors(std::span<const ResidualRow> rows, WhatRan ran,
                                                         const ResidualModel& model);
// The standard deviation more with which they score best; that of `assumed` for no errors.
[[nodiscard]] double fit_unnamed(std::span<const ExpectedError> errors, double assumed);

// Mean interval score; 0 of no rows.
[[nodiscard]] double interval_score(std::span<const ResidualRow> rows, const ResidualModel& model);
[[nodiscard]] double interval_score(std::span<const ExpectedError> errors);

struct Coverage {
  double share = 0;         // share of rows inside their interval
  double median_width = 0;  // median width of the interval, relative to the prediction
};
[[nodiscard]] Coverage coverage(std::span<const ExpectedError> errors);
[[nodiscard]] Coverage coverage(std::span<const ResidualRow> rows, const ResidualModel& model);
// Each source by a fit on the others.
[[nodiscard]] Coverage coverage_left_out(std::span<const ResidualRow> rows, const ResidualModel& prior);

}  // namespace stagecraft
