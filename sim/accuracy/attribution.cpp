#include "sim/accuracy/attribution.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "calibrate/fit/least_squares.hpp"

namespace stagecraft {
namespace {

struct Posterior {
  Eigen::VectorXd delta;
  Eigen::MatrixXd covariance;
  Eigen::VectorXd left;
};

// The posterior of rows around the model with a variance, each row weighted.
Posterior solve(const Eigen::MatrixXd& shares, const Eigen::VectorXd& excess, const Eigen::VectorXd& weights,
                double variance) {
  const Eigen::MatrixXd weighted = weights.asDiagonal() * shares;
  const Eigen::MatrixXd prior =
      Eigen::MatrixXd::Identity(shares.cols(), shares.cols()) / (kPriorDelta * kPriorDelta);
  const Eigen::MatrixXd precision = weighted.transpose() * weighted / variance + prior;
  Posterior out;
  out.covariance = precision.inverse();
  out.delta = out.covariance * (weighted.transpose() * (weights.asDiagonal() * excess)) / variance;
  out.left = excess - shares * out.delta;
  return out;
}

}  // namespace

Attribution attribute_errors(const std::vector<AttributionRow>& rows) {
  constexpr std::size_t kFewest = 3;
  Attribution out;
  if (rows.size() < kFewest) return out;
  const auto count = static_cast<Eigen::Index>(rows.size());
  const auto families = static_cast<Eigen::Index>(rows.front().shares.size());
  Eigen::MatrixXd shares(count, families);
  Eigen::VectorXd excess(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const AttributionRow& row = rows[static_cast<std::size_t>(i)];
    shares.row(i) = Eigen::Map<const Eigen::RowVectorXd>(row.shares.data(), families);
    excess(i) = row.excess;
  }
  constexpr double kLeastVariance = 1e-6;  // 0.1 % of a run: below it a perfect fit divides by zero
  constexpr int kRounds = 30;
  double variance = std::max(excess.squaredNorm() / static_cast<double>(count), kLeastVariance);
  Eigen::VectorXd weights = Eigen::VectorXd::Ones(count);
  Posterior fit = solve(shares, excess, weights, variance);
  for (int round = 0; round < kRounds; ++round) {
    weights = huber_weights(fit.left, kOutlier);
    variance = std::max((weights.asDiagonal() * fit.left).squaredNorm() / static_cast<double>(count),
                        kLeastVariance);
    fit = solve(shares, excess, weights, variance);
  }
  for (Eigen::Index f = 0; f < families; ++f) {
    out.families.push_back({.mean_share = shares.col(f).mean(),
                            .delta = fit.delta(f),
                            .standard_error = std::sqrt(fit.covariance(f, f)),
                            .contribution = std::abs(fit.delta(f)) * shares.col(f).mean()});
  }
  const double before = excess.squaredNorm();
  out.explained = before > 0 ? 1 - fit.left.squaredNorm() / before : 0;
  out.left = std::sqrt(fit.left.squaredNorm() / static_cast<double>(count));
  return out;
}

}  // namespace stagecraft
