#include "calibrate/fit/least_squares.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/check.hpp"

namespace stagecraft {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

TEST(NonNegativeLeastSquares, FindsTheLineThroughPointsOnIt) {
  // y = 2 + 3 x at x = 0, 1, 2.
  const MatrixXd a{{1, 0}, {1, 1}, {1, 2}};
  const VectorXd x = non_negative_least_squares(a, VectorXd{{2, 5, 8}});
  EXPECT_NEAR(x(0), 2, 1e-12);
  EXPECT_NEAR(x(1), 3, 1e-12);
}

TEST(NonNegativeLeastSquares, HoldsAFallingLineAtItsMean) {
  // y = 3, 2, 1: the best slope is negative, so it is 0 and the mean remains.
  const MatrixXd a{{1, 0}, {1, 1}, {1, 2}};
  const VectorXd x = non_negative_least_squares(a, VectorXd{{3, 2, 1}});
  EXPECT_NEAR(x(0), 2, 1e-12);
  EXPECT_EQ(x(1), 0);
}

TEST(NonNegativeLeastSquares, DropsALineThroughZeroWithoutOffset) {
  // y = -1 + 2 x at x = 1, 2: the offset would be negative; slope = (1*1 + 2*3) / (1 + 4).
  const MatrixXd a{{1, 1}, {1, 2}};
  const VectorXd x = non_negative_least_squares(a, VectorXd{{1, 3}});
  EXPECT_EQ(x(0), 0);
  EXPECT_NEAR(x(1), 1.4, 1e-12);
}

TEST(NonNegativeLeastSquares, BearsColumnsFourteenOrdersApart) {
  // 10 us + S / 100 GB/s at 1 kB and 1 GB.
  const MatrixXd a{{1, 1e3}, {1, 1e9}};
  const VectorXd x = non_negative_least_squares(a, VectorXd{{10.01e-6, 0.01001}});
  EXPECT_NEAR(x(0), 1e-5, 1e-12);
  EXPECT_NEAR(x(1), 1e-11, 1e-18);
}

TEST(NonNegativeLeastSquares, RefusesNumbersThatAreNone) {
  EXPECT_THROW((void)non_negative_least_squares(MatrixXd{{std::nan("")}}, VectorXd{{1}}), InternalError);
}

TEST(DampedLeastSquares, FindsTheExponentOfPointsOnACurve) {
  // y = exp(-k x), k = 0.7.
  const auto residuals = [](const VectorXd& k) {
    VectorXd r(3);
    for (int i = 0; i < 3; ++i) r(i) = std::exp(-k(0) * i) - std::exp(-0.7 * i);
    return r;
  };
  EXPECT_NEAR(damped_least_squares(residuals, VectorXd{{3.0}})(0), 0.7, 1e-6);
}

TEST(DampedLeastSquares, LetsOneOddRowPullByItsAmountOnly) {
  // The mean of 0, 0, 0, 0, 10 is 2; with Huber's loss at 0.1 the four outvote the one: 4 x = 0.1.
  const auto residuals = [](const VectorXd& x) { return VectorXd{{x(0), x(0), x(0), x(0), x(0) - 10}}; };
  EXPECT_NEAR(damped_least_squares(residuals, VectorXd{{5.0}})(0), 0.025, 1e-3);
}

TEST(HuberLoss, IsASquareWithinAndALineBeyond) {
  EXPECT_DOUBLE_EQ(huber_loss(VectorXd{{0.1}}, 0.2), 0.01);
  EXPECT_DOUBLE_EQ(huber_loss(VectorXd{{-1.0}}, 0.2), 0.2 * (2 - 0.2));
}

}  // namespace
}  // namespace stagecraft
