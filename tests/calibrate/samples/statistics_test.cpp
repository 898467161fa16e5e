#include "calibrate/samples/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace stagecraft {
namespace {

using Values = std::vector<double>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Quantile, LiesBetweenTheClosestRanks) {
  const Values values = {40, 10, 30, 20};  // sorted 10 20 30 40, ranks 0 to 3
  EXPECT_EQ(quantile(values, 0), 10);
  EXPECT_EQ(quantile(values, 1), 40);
  EXPECT_EQ(median(values), 25);            // rank 1.5
  EXPECT_EQ(quantile(values, 0.25), 17.5);  // rank 0.75
  EXPECT_EQ(median(Values{7}), 7);
}

TEST(Quantile, RefusesWhatHasNone) {
  EXPECT_THROW((void)median(Values{}), std::invalid_argument);
  EXPECT_THROW((void)median(Values{1, kNan}), std::invalid_argument);
  EXPECT_THROW((void)quantile(Values{1}, 1.5), std::invalid_argument);
}

TEST(Spread, IsHalfTheCentralRangeOverTheMedian) {
  Values values;
  for (int i = 0; i <= 100; ++i) values.push_back(100 + i);  // median 150, p16 116, p84 184
  EXPECT_DOUBLE_EQ(relative_spread(values), (184.0 - 116.0) / 300.0);
  EXPECT_EQ(relative_spread(Values{5, 5, 5}), 0);
}

TEST(Spread, DoesNotSeeASingleOutlierAmongMany) {
  Values values(20, 1.0);
  values.push_back(1000);
  EXPECT_EQ(relative_spread(values), 0);
  EXPECT_EQ(median(values), 1);
}

TEST(MedianHalfWidth, ComesFromTheRanksAroundTheMiddle) {
  Values values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);  // n/2 -+ 9.8: the 41st and the 60th value
  EXPECT_DOUBLE_EQ(median_half_width(values), (60.0 - 41.0) / (2 * 50.5));
  EXPECT_EQ(median_half_width(Values{1, 1, 1, 1, 1}), kInfinity);
  EXPECT_EQ(median_half_width(Values(6, 1.0)), 0);
}

// Property: the interval of the median holds the true median in about 95 of 100 series, whatever the
// distribution.
TEST(MedianHalfWidth, IsWideEnoughForATailedDistribution) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> tail(1.0);
  const double truth = 1 + std::log(2.0);
  int covered = 0;
  for (int series = 0; series < 1000; ++series) {
    Values values;
    for (int i = 0; i < 40; ++i) values.push_back(1 + tail(random));
    if (std::fabs(median(values) - truth) <= 1.5 * median_half_width(values) * median(values)) ++covered;
  }
  EXPECT_GE(covered, 930);
}

TEST(StopRule, GoesOnUntilTheMedianIsKnown) {
  const StopRule rule = {.target = 0.01, .min_repeats = 10, .max_repeats = 100, .max_seconds = 1};
  EXPECT_FALSE(enough(Values(9, 1.0), 0, rule)) << "too few, however quiet";
  EXPECT_TRUE(enough(Values(10, 1.0), 0, rule)) << "quiet";
  Values noisy;
  for (int i = 0; i < 50; ++i) noisy.push_back(i % 2 == 0 ? 1.0 : 2.0);
  EXPECT_FALSE(enough(noisy, 0, rule));
  EXPECT_TRUE(enough(noisy, 1, rule)) << "out of time";
  noisy.insert(noisy.end(), noisy.begin(), noisy.end());
  EXPECT_TRUE(enough(noisy, 0, rule)) << "out of repeats";
}

TEST(WorstError, IsRelativeToEachBound) {
  EXPECT_EQ(worst_error(Values{1, 2}, Values{1, 4}, Values{0.1, 4}), 0.5);
  EXPECT_EQ(worst_error(Values{3}, Values{3}, Values{0}), 0) << "exact needs no bound";
  EXPECT_EQ(worst_error(Values{}, Values{}, Values{}), 0);
}

TEST(WorstError, IsInfiniteForWhatWasNeverWritten) {
  EXPECT_EQ(worst_error(Values{1, kNan}, Values{1, 1}, Values{1, 1}), kInfinity);
  EXPECT_EQ(worst_error(Values{1}, Values{kNan}, Values{1}), kInfinity);
  EXPECT_EQ(worst_error(Values{1}, Values{2}, Values{kNan}), kInfinity);
  EXPECT_EQ(worst_error(Values{1}, Values{2}, Values{0}), kInfinity);
  EXPECT_EQ(worst_error(Values{kInfinity}, Values{2}, Values{1}), kInfinity);
  EXPECT_THROW((void)worst_error(Values{1}, Values{1, 2}, Values{1}), std::invalid_argument);
}

TEST(Throttled, IsAClockBelowTheReferenceOrAReasonOfTheDriver) {
  EXPECT_FALSE(throttled({.sm_mhz = 1980, .reasons = 0}, 1980));
  EXPECT_FALSE(throttled({.sm_mhz = 1905, .reasons = 0}, 1980)) << "3.8 % under";
  EXPECT_TRUE(throttled({.sm_mhz = 1890, .reasons = 0}, 1980)) << "4.5 % under";
  EXPECT_FALSE(throttled({.sm_mhz = 1890, .reasons = 0}, 1980, 0.15)) << "within a wider tolerance";
  EXPECT_TRUE(throttled({.sm_mhz = 1980, .reasons = 0x20}, 1980)) << "too hot";
  EXPECT_FALSE(throttled({.sm_mhz = 1980, .reasons = 0x4}, 1980)) << "power cap, but the clock is there";
  EXPECT_TRUE(throttled({.sm_mhz = 0, .reasons = 0x4}, 1980)) << "power cap, and no clock to judge by";
  EXPECT_FALSE(throttled({.sm_mhz = 1980, .reasons = 0x1 | 0x2}, 1980)) << "idle, and clocks set by the user";
  EXPECT_FALSE(throttled({}, 1980)) << "nothing was read";
}

}  // namespace
}  // namespace stagecraft
