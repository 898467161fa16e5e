#include "sim/accuracy/statistics.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stagecraft {
namespace {

TEST(ErrorSummary, OfNoRowsIsZero) {
  EXPECT_EQ(summarise({}).rows, 0u);
  EXPECT_EQ(summarise({}).mean_absolute, 0);
}

TEST(ErrorSummary, KeepsTheSignInTheBiasOnly) {
  const std::vector<double> errors = {-0.3, 0.1, 0.2, 0.0};
  const ErrorSummary summary = summarise(errors);
  EXPECT_DOUBLE_EQ(summary.mean_absolute, 0.15);
  EXPECT_NEAR(summary.bias, 0.0, 1e-15);
  EXPECT_DOUBLE_EQ(summary.median_absolute, 0.15);  // between 0.1 and 0.2
  EXPECT_EQ(summary.worst, 0u);
}

TEST(RankCorrelation, DependsOnTheOrderAlone) {
  const std::vector<double> a = {1, 2, 3, 4}, squares = {1, 4, 9, 16}, down = {9, 8, 7, -1};
  EXPECT_DOUBLE_EQ(rank_correlation(a, squares).value(), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(a, down).value(), -1);
}

// Ranks 0 1 2 and 0.5 0.5 2: covariance 1.5, variances 2 and 1.5.
TEST(RankCorrelation, GivesEqualValuesTheirMeanRank) {
  const std::vector<double> a = {1, 2, 3}, tied = {5, 5, 8};
  EXPECT_NEAR(rank_correlation(a, tied).value(), 0.8660254, 1e-7);
}

// 0.3 and 0.1 + 0.2 are one printed figure.
TEST(RankCorrelation, GivesValuesThatDifferByRoundingTheirMeanRank) {
  const std::vector<double> a = {1, 2, 3}, up = {0.3, 0.1 + 0.2, 8}, down = {0.1 + 0.2, 0.3, 8};
  EXPECT_NEAR(rank_correlation(a, up).value(), 0.8660254, 1e-7);
  EXPECT_NEAR(rank_correlation(a, down).value(), 0.8660254, 1e-7);
}

TEST(RankCorrelation, OfTwoPairsOrAConstantIsUnknown) {
  const std::vector<double> two = {1, 2}, three = {1, 2, 3}, same = {7, 7, 7};
  EXPECT_FALSE(rank_correlation(two, two).has_value());
  EXPECT_FALSE(rank_correlation(three, same).has_value());
}

}  // namespace
}  // namespace stagecraft
