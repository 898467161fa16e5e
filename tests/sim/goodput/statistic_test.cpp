#include "sim/goodput/statistic.hpp"

#include <gtest/gtest.h>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// Points of the t distribution as printed in tables (NIST/SEMATECH e-Handbook, section 1.3.6.7.2, column
// 0.975).
TEST(Statistics, StudentsTableOf975) {
  EXPECT_NEAR(student_t_975(1), 12.706, 5e-4);
  EXPECT_NEAR(student_t_975(2), 4.303, 5e-4);
  EXPECT_NEAR(student_t_975(9), 2.262, 5e-4);
  EXPECT_NEAR(student_t_975(30), 2.042, 5e-4);
  EXPECT_NEAR(student_t_975(99), 1.984, 5e-4);
  EXPECT_NEAR(student_t_975(100'000), 1.960, 5e-4);
  EXPECT_THROW((void)student_t_975(0), InternalError);
}

TEST(Statistics, OfFiveValues) {
  // Mean 3, deviations 2, 1, 0, 1, 2: variance 10/4, standard error sqrt(2.5/5).
  const Statistic statistic = statistic_of({5, 1, 4, 2, 3});
  EXPECT_EQ(statistic.mean, 3);
  EXPECT_NEAR(statistic.standard_error, 0.70710678, 1e-8);
  ASSERT_TRUE(statistic.ci95.has_value());
  const auto [low, high] = *statistic.ci95;
  EXPECT_NEAR(high, 3 + 2.7764451 * 0.70710678, 1e-6);
  EXPECT_NEAR(low + high, 6, 1e-12);
}

TEST(Statistics, OneValueHasNoInterval) {
  const Statistic statistic = statistic_of({7});
  EXPECT_EQ(statistic.mean, 7);
  EXPECT_EQ(statistic.ci95, std::nullopt);
  EXPECT_EQ(statistic.standard_error, 0);
}

}  // namespace
}  // namespace stagecraft
