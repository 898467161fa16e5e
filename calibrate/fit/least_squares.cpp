#include "calibrate/fit/least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace stagecraft {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd solve_on(const MatrixXd& a, const VectorXd& b, const std::vector<bool>& free) {
  std::vector<Index> columns;
  for (Index i = 0; i < a.cols(); ++i)
    if (free[static_cast<std::size_t>(i)]) columns.push_back(i);
  const VectorXd part = a(Eigen::all, columns).colPivHouseholderQr().solve(b);
  VectorXd x = VectorXd::Zero(a.cols());
  for (std::size_t i = 0; i < columns.size(); ++i) x(columns[i]) = part(static_cast<Index>(i));
  return x;
}

// Walks from the feasible x towards `wanted` until the first free variable reaches zero, and fixes it there.
// Returns whether it got all the way.
bool step_towards(const VectorXd& wanted, VectorXd& x, std::vector<bool>& free) {
  double share = 1;
  for (Index i = 0; i < x.size(); ++i) {
    if (free[static_cast<std::size_t>(i)] && wanted(i) <= 0)
      share = std::min(share, x(i) / (x(i) - wanted(i)));
  }
  x += share * (wanted - x);
  if (share == 1) return true;
  for (Index i = 0; i < x.size(); ++i) {
    if (free[static_cast<std::size_t>(i)] && wanted(i) <= 0 && x(i) <= 1e-15) {
      x(i) = 0;
      free[static_cast<std::size_t>(i)] = false;
    }
  }
  return false;
}

MatrixXd central_differences(const Residuals& residuals, const VectorXd& at, Index rows) {
  constexpr double kStep = 1e-4;
  MatrixXd jacobian(rows, at.size());
  for (Index i = 0; i < at.size(); ++i) {
    const double step = kStep * std::max(1.0, std::abs(at(i)));
    VectorXd up = at;
    VectorXd down = at;
    up(i) += step;
    down(i) -= step;
    jacobian.col(i) = (residuals(up) - residuals(down)) / (2 * step);
  }
  return jacobian;
}

}  // namespace

VectorXd non_negative_least_squares(const MatrixXd& a, const VectorXd& b) {
  SC_CHECK(a.rows() > 0 && a.cols() > 0 && a.rows() == b.size(), "least squares of nothing");
  SC_CHECK(a.allFinite() && b.allFinite(), "least squares of numbers that are none");
  VectorXd norms = a.colwise().norm();
  for (Index i = 0; i < norms.size(); ++i)
    if (norms(i) == 0) norms(i) = 1;
  const MatrixXd scaled = a * norms.cwiseInverse().asDiagonal();
  VectorXd x = VectorXd::Zero(a.cols());
  std::vector<bool> free(static_cast<std::size_t>(a.cols()), false);
  constexpr double kTolerance = 1e-12;
  for (Index round = 0; round < 10 * a.cols(); ++round) {
    const VectorXd gradient = scaled.transpose() * (b - scaled * x);
    Index best = -1;
    for (Index i = 0; i < x.size(); ++i) {
      if (!free[static_cast<std::size_t>(i)] && gradient(i) > kTolerance * b.norm() &&
          (best < 0 || gradient(i) > gradient(best)))
        best = i;
    }
    if (best < 0) break;
    free[static_cast<std::size_t>(best)] = true;
    for (Index inner = 0; inner <= a.cols(); ++inner)
      if (step_towards(solve_on(scaled, b, free), x, free)) break;
  }
  return x.cwiseQuotient(norms);
}

double huber_loss(const VectorXd& residuals, double outlier) {
  double loss = 0;
  for (const double r : residuals) {
    const double size = std::abs(r);
    loss += size <= outlier ? size * size : outlier * (2 * size - outlier);
  }
  return loss;
}

VectorXd huber_weights(const VectorXd& residuals, double outlier) {
  return residuals.unaryExpr([outlier](double r) {
    const double size = std::abs(r);
    return size <= outlier ? 1.0 : std::sqrt(outlier / size);
  });
}

VectorXd damped_least_squares(const Residuals& residuals, VectorXd start, const DampedOptions& options) {
  VectorXd x = std::move(start);
  VectorXd r = residuals(x);
  double loss = huber_loss(r, options.outlier);
  double damping = 1e-3;
  for (int step = 0; step < options.max_steps && damping < 1e10; ++step) {
    const VectorXd weights = huber_weights(r, options.outlier);
    const MatrixXd jacobian = weights.asDiagonal() * central_differences(residuals, x, r.size());
    const MatrixXd normal = jacobian.transpose() * jacobian;
    const VectorXd slope = jacobian.transpose() * weights.cwiseProduct(r);
    const double before = loss;
    for (; damping < 1e10; damping *= 10) {
      MatrixXd damped = normal;
      damped.diagonal() += damping * (normal.diagonal().array() + 1e-12).matrix();
      const VectorXd tried = x - damped.ldlt().solve(slope);
      const VectorXd tried_r = residuals(tried);
      const double tried_loss = tried_r.allFinite() ? huber_loss(tried_r, options.outlier)
                                                    : std::numeric_limits<double>::infinity();
      if (tried_loss < loss) {
        x = tried;
        r = tried_r;
        loss = tried_loss;
        damping = std::max(damping / 10, 1e-9);
        break;
      }
    }
    if (before - loss <= options.relative_gain * before) break;
  }
  return x;
}

}  // namespace stagecraft
