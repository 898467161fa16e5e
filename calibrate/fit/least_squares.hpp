// The two solvers that all fits share.
//
//   source  non-negative: Lawson and Hanson, "Solving Least Squares Problems" (1974), chapter 23. Damped:
//           Levenberg and Marquardt, with a Jacobian of central differences.
#pragma once

#include <Eigen/Dense>
#include <functional>

namespace stagecraft {

// The x >= 0 of the least |A x - b|^2. Columns are scaled inside, so seconds and bytes may stand side by
// side.
//
//   requires  at least one row and one column, finite numbers.
[[nodiscard]] Eigen::VectorXd non_negative_least_squares(const Eigen::MatrixXd& a, const Eigen::VectorXd& b);

// Residuals of a model at given parameters; as many for every x.
using Residuals = std::function<Eigen::VectorXd(const Eigen::VectorXd& parameters)>;

// Beyond this relative error a row counts by its amount and no longer by its square: one odd row must not
// bend a fit (Huber's loss, by reweighting).
inline constexpr double kOutlier = 0.1;

struct DampedOptions {
  int max_steps = 60;
  double relative_gain = 1e-9;  // stop when a step gains less of the loss than this
  double outlier = kOutlier;
};

// Parameters near `start` that minimise the loss; never worse than `start`.
[[nodiscard]] Eigen::VectorXd damped_least_squares(const Residuals& residuals, Eigen::VectorXd start,
                                                   const DampedOptions& options = {});

// Huber's loss of residuals: r^2 within `outlier`, 2 * outlier * |r| - outlier^2 beyond.
[[nodiscard]] double huber_loss(const Eigen::VectorXd& residuals, double outlier);

// Factors on rows whose plain least squares has the slope of Huber's loss: 1 within `outlier`, sqrt(outlier /
// |r|) beyond.
[[nodiscard]] Eigen::VectorXd huber_weights(const Eigen::VectorXd& residuals, double outlier);

}  // namespace stagecraft
