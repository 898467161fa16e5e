#include "calibrate/profile/residuals.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace stagecraft {
namespace {

ResidualModel model_of(double compute, double tensor, double run, double correlation) {
  ResidualModel model;
  model.families[0].value = compute;
  model.families[1].value = tensor;
  model.run.value = run;
  model.correlation.value = correlation;
  return model;
}

// System: half of the time compute, off by 0.06; half tensor, off by 0.08. Expectations: 0.03 and 0.04 add as
// 3, 4, 5 where they are independent, and to 0.07 where they go the same way.
TEST(ResidualModel, AddsFamiliesByTheirCorrelation) {
  const FamilyShares shares = {0.5, 0.5, 0, 0, 0, 0, 0};
  EXPECT_NEAR(model_of(0.06, 0.08, 0, 0).sigma(shares), 0.05, 1e-12);
  EXPECT_NEAR(model_of(0.06, 0.08, 0, 1).sigma(shares), 0.07, 1e-12);
  EXPECT_NEAR(model_of(0.06, 0.08, 0, 0.5).sigma(shares), std::sqrt((0.0025 + 0.0049) / 2), 1e-12);
}

// 3, 4, 5: what software that is not named may add is independent of all else.
TEST(ResidualModel, IsWiderForAJobThatNamesNoSoftware) {
  ResidualModel model = model_of(0, 0, 0.03, 0);
  model.unnamed[0].value = 0.04;
  model.unnamed[1].value = 0.4;
  EXPECT_NEAR(model.sigma({}), 0.03, 1e-12);
  EXPECT_NEAR(model.sigma({}, WhatRan::kUnnamedPipeline), 0.05, 1e-12);
  EXPECT_NEAR(model.sigma({}, WhatRan::kUnnamed), std::hypot(0.03, 0.4), 1e-12);
}

TEST(ResidualModel, HasTheRunLeftWhereNothingTakesTime) {
  EXPECT_DOUBLE_EQ(model_of(0.06, 0.08, 0.02, 0.5).sigma({}), 0.02);
}

TEST(Interval90, IsTheSameFactorUpAndDown) {
  const auto interval = interval_90(from_seconds(10), 0.1);
  EXPECT_NEAR(to_seconds(interval[1]) / 10, std::exp(0.16448536), 1e-8);
  EXPECT_NEAR(to_seconds(interval[0]) * to_seconds(interval[1]), 100, 1e-6);
  EXPECT_EQ(interval_90(from_seconds(10), 0)[0], from_seconds(10));
}

}  // namespace
}  // namespace stagecraft
