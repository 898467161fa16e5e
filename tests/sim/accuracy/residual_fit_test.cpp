#include "sim/accuracy/residual_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stagecraft {
namespace {

// Twenty rows of compute alone, errors evenly from -1 to 1 times `most`.
std::vector<ResidualRow> even_rows(double most, int source = 0) {
  std::vector<ResidualRow> rows;
  for (int i = 0; i < 20; ++i)
    rows.push_back(
        {.shares = {1, 0, 0, 0, 0, 0, 0}, .log_error = most * (2 * i - 19) / 19.0, .source = source});
  return rows;
}

// System: one row off by 0.2, an interval of +-0.1. Expectations: width 0.2, and 20 times the 0.1 outside.
TEST(IntervalScore, IsTheWidthAndTwentyTimesWhatLiesOutside) {
  ResidualModel model;
  model.run.value = 0.1 / kNormal90;
  const std::vector<ResidualRow> rows = {{.shares = {}, .log_error = 0.2, .source = 0}};
  EXPECT_NEAR(interval_score(rows, model), 0.2 + 20 * 0.1, 1e-12);
}

TEST(ResidualFit, OfNoRowsIsThePrior) {
  const ResidualModel prior = assumed_residuals();
  EXPECT_EQ(fit_residuals({}, prior).run.value, prior.run.value);
}

TEST(ResidualFit, GrowsWithTheErrorsOfItsRowsAndCoversNineTenths) {
  const std::vector<ResidualRow> near = even_rows(0.05), far = even_rows(0.3);
  const ResidualModel prior = assumed_residuals();
  const ResidualModel narrow = fit_residuals(near, prior), wide = fit_residuals(far, prior);
  EXPECT_LT(narrow.sigma(near[0].shares), wide.sigma(near[0].shares));
  EXPECT_GE(coverage(near, narrow).share, 0.85);
  EXPECT_GE(coverage(far, wide).share,
            0.8);  // the prior, which believes in less, counts as ten of thirty rows
}

TEST(ResidualFit, LeavesAloneWhatNoRowExercises) {
  const std::vector<ResidualRow> rows = even_rows(0.2);
  const ResidualModel prior = assumed_residuals(), fitted = fit_residuals(rows, prior);
  for (const OpFamily family : {OpFamily::kTensor, OpFamily::kContext, OpFamily::kExperts, OpFamily::kTail}) {
    const auto i = static_cast<std::size_t>(family);
    EXPECT_EQ(fitted.families[i].value, prior.families[i].value);
  }
  EXPECT_EQ(fitted.correlation.value, prior.correlation.value);
}

// System: a hundred errors of one size up to 0.3, a model that expects 0.03 (0.049 to either side). Expectations: nine
// tenths lie inside with what is fitted, a sixth without; none is needed where the model expects enough.
TEST(UnnamedFit, WidensUntilNineTenthsLieInside) {
  std::vector<ExpectedError> errors;
  for (int i = 1; i <= 100; ++i) errors.push_back({.log_error = 0.003 * i, .sigma = 0.03});
  EXPECT_NEAR(coverage(errors).share, 0.16, 1e-12);
  const double unnamed = fit_unnamed(errors, 0.07);
  for (ExpectedError& error : errors) error.sigma = std::hypot(error.sigma, unnamed);
  EXPECT_NEAR(coverage(errors).share, 0.9, 0.011);
  EXPECT_LT(fit_unnamed(errors, 0.07), 0.01);
  EXPECT_EQ(fit_unnamed({}, 0.07), 0.07);
}

TEST(UnnamedFit, LeavesRowsAsideThatAreMostlyTailOrRanOtherwise) {
  ResidualModel model;
  model.run.value = 0.02;
  model.unnamed[0].value = 0.05;
  const FamilyShares compute = {1, 0, 0, 0, 0, 0, 0}, tail = {0.7, 0, 0, 0, 0, 0, 0.3};
  const std::vector<ResidualRow> rows = {
      {.shares = compute, .log_error = 0.1, .ran = WhatRan::kUnnamedPipeline},
      {.shares = tail, .log_error = 0.2, .ran = WhatRan::kUnnamedPipeline},
      {.shares = compute, .log_error = 0.3, .ran = WhatRan::kUnnamed}};
  const std::vector<ExpectedError> errors = expected_errors(rows, WhatRan::kUnnamedPipeline, model);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].log_error, 0.1);
  EXPECT_EQ(errors[0].sigma, 0.02);
}

// Two sources, the second five times as wrong: residuals of the first alone do not cover it.
TEST(ResidualFit, OfTheOtherSourceCoversLess) {
  std::vector<ResidualRow> rows = even_rows(0.06, 0);
  const std::vector<ResidualRow> second = even_rows(0.3, 1);
  rows.insert(rows.end(), second.begin(), second.end());
  const ResidualModel prior = assumed_residuals();
  EXPECT_LT(coverage_left_out(rows, prior).share, coverage(rows, fit_residuals(rows, prior)).share);
}

}  // namespace
}  // namespace stagecraft
