#include "sim/accuracy/end_to_end_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/check.hpp"
#include "calibrate/fit/least_squares.hpp"

namespace stagecraft {
namespace {

using Values = std::vector<double>;
using Rows = std::vector<std::size_t>;

// Constants in half ranges from their start: one unit is as plausible for each.
class Scale {
 public:
  explicit Scale(const std::vector<FreeConstant>& constants) : constants_(constants) {}

  [[nodiscard]] double half(std::size_t i) const { return (constants_[i].high - constants_[i].low) / 2; }
  [[nodiscard]] double low(std::size_t i) const {
    return (constants_[i].low - constants_[i].start) / half(i);
  }
  [[nodiscard]] double high(std::size_t i) const {
    return (constants_[i].high - constants_[i].start) / half(i);
  }
  [[nodiscard]] Values values(const Eigen::VectorXd& at) const {
    Values out;
    for (std::size_t i = 0; i < constants_.size(); ++i)
      out.push_back(constants_[i].start + at(static_cast<Eigen::Index>(i)) * half(i));
    return out;
  }

 private:
  const std::vector<FreeConstant>& constants_;
};

// Linearised loss around a point: residuals, their slopes, a weight per row.
struct Linear {
  Eigen::VectorXd at, residuals, weights;
  Eigen::MatrixXd slopes;
};

Eigen::VectorXd as_vector(const Values& values) {
  return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

// Every source counts as kSourceRows rows, or as many as it has; rows of `left_out` not at all.
Eigen::VectorXd source_weights(const std::vector<int>& sources, int left_out) {
  std::map<int, double> rows;
  for (const int source : sources) rows[source] += 1;
  Eigen::VectorXd weights(static_cast<Eigen::Index>(sources.size()));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const double of_source = rows[sources[i]];
    weights(static_cast<Eigen::Index>(i)) =
        sources[i] == left_out ? 0 : std::sqrt(std::min(of_source, kSourceRows) / of_source) / kRowNoise;
  }
  return weights;
}

// Least point of the linear model with its prior; a constant that would leave its range is put on its bound,
// the farthest first, and the others are solved for again.
Eigen::VectorXd least_of(const Linear& linear, const Eigen::VectorXd& weights, const Scale& scale) {
  const Eigen::Index n = linear.at.size();
  const Eigen::VectorXd w = weights.cwiseProduct(linear.weights);
  const Eigen::MatrixXd a = w.asDiagonal() * linear.slopes;
  const Eigen::VectorXd b = w.asDiagonal() * (linear.slopes * linear.at - linear.residuals);
  const Eigen::MatrixXd normal = a.transpose() * a + Eigen::MatrixXd::Identity(n, n);
  const Eigen::VectorXd right = a.transpose() * b;
  Eigen::VectorXd x = Eigen::VectorXd::Zero(n);
  std::vector<bool> fixed(static_cast<std::size_t>(n), false);
  for (Eigen::Index round = 0; round <= n; ++round) {
    Eigen::MatrixXd m = normal;
    Eigen::VectorXd r = right;
    for (Eigen::Index i = 0; i < n; ++i) {
      if (!fixed[static_cast<std::size_t>(i)]) continue;
      m.row(i).setZero();
      m(i, i) = 1;
      r(i) = x(i);
    }
    x = m.partialPivLu().solve(r);
    Eigen::Index farthest = -1;
    double most = 1e-12;
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      const double beyond = std::max(scale.low(k) - x(i), x(i) - scale.high(k));
      if (fixed[k] || beyond <= most) continue;
      most = beyond;
      farthest = i;
    }
    if (farthest < 0) break;
    const auto k = static_cast<std::size_t>(farthest);
    x(farthest) = std::clamp(x(farthest), scale.low(k), scale.high(k));
    fixed[k] = true;
  }
  return x;
}

double mean_absolute_error(const Values& log_errors) {
  double sum = 0;
  for (const double error : log_errors) sum += std::abs(std::expm1(error));
  return log_errors.empty() ? 0 : sum / static_cast<double>(log_errors.size());
}

class Fitter {
 public:
  explicit Fitter(const EndToEndProblem& problem) : problem_(problem), scale_(problem.constants) {
    rows_.resize(problem.sources.size());
    std::iota(rows_.begin(), rows_.end(), std::size_t{0});
  }

  EndToEndFit run(int steps) {
    Eigen::VectorXd at = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(problem_.constants.size()));
    const Eigen::VectorXd all = source_weights(problem_.sources, kNobody);
    Linear linear = linearise(at, rows_);
    for (int step = 0; step < steps; ++step) {
      at = least_of(linear, all, scale_);
      linear = linearise(at, rows_);
    }
    EndToEndFit fit;
    fit.values = scale_.values(at);
    fit.standard_errors = standard_errors(linear, all);
    const std::set<int> sources(problem_.sources.begin(), problem_.sources.end());
    for (const int source : sources) fit.sources.push_back(leave_out(linear, source));
    fit.runs = runs_;
    return fit;
  }

  FitWithout run_without(int source, int steps) {
    Rows own, others;
    std::vector<int> sources;
    for (const std::size_t row : rows_) {
      const bool left_out = problem_.sources[row] == source;
      (left_out ? own : others).push_back(row);
      if (!left_out) sources.push_back(problem_.sources[row]);
    }
    const Eigen::VectorXd weights = source_weights(sources, kNobody);
    Eigen::VectorXd at = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(problem_.constants.size()));
    for (int step = 0; step < steps; ++step) at = least_of(linearise(at, others), weights, scale_);
    return {.source = source, .error = mean_absolute_error(errors_at(at, own)), .values = scale_.values(at)};
  }

 private:
  static constexpr int kNobody = -1;

  Values errors_at(const Eigen::VectorXd& at, const Rows& rows) {
    runs_ += static_cast<int>(rows.size());
    return problem_.log_errors(scale_.values(at), rows);
  }

  Linear linearise(const Eigen::VectorXd& at, const Rows& rows) {
    // Step as a fraction of half a range: far above the rounding of times, small enough for a linear model.
    constexpr double kStep = 0.05;
    Linear out{.at = at, .residuals = as_vector(errors_at(at, rows)), .weights = {}, .slopes = {}};
    out.weights = huber_weights(out.residuals, kOutlier);
    out.slopes.resize(out.residuals.size(), at.size());
    for (Eigen::Index i = 0; i < at.size(); ++i) {
      const bool up = at(i) + kStep <= scale_.high(static_cast<std::size_t>(i));
      Eigen::VectorXd moved = at;
      moved(i) += up ? kStep : -kStep;
      out.slopes.col(i) = (as_vector(errors_at(moved, rows)) - out.residuals) / (up ? kStep : -kStep);
    }
    return out;
  }

  [[nodiscard]] std::vector<double> standard_errors(const Linear& linear,
                                                    const Eigen::VectorXd& weights) const {
    const Eigen::MatrixXd a = weights.cwiseProduct(linear.weights).asDiagonal() * linear.slopes;
    const Eigen::MatrixXd covariance =
        (a.transpose() * a + Eigen::MatrixXd::Identity(a.cols(), a.cols())).inverse();
    std::vector<double> out;
    for (Eigen::Index i = 0; i < a.cols(); ++i)
      out.push_back(std::sqrt(covariance(i, i)) * scale_.half(static_cast<std::size_t>(i)));
    return out;
  }

  SourceErrors leave_out(const Linear& linear, int source) {
    Rows own;
    for (const std::size_t row : rows_)
      if (problem_.sources[row] == source) own.push_back(row);
    const Eigen::VectorXd others = least_of(linear, source_weights(problem_.sources, source), scale_);
    const Eigen::VectorXd start = Eigen::VectorXd::Zero(linear.at.size());
    return {.source = source,
            .before = mean_absolute_error(errors_at(start, own)),
            .fitted = mean_absolute_error(errors_at(linear.at, own)),
            .left_out = mean_absolute_error(errors_at(others, own)),
            .values = scale_.values(others)};
  }

  const EndToEndProblem& problem_;
  Scale scale_;
  Rows rows_;
  int runs_ = 0;
};

}  // namespace

EndToEndFit fit_end_to_end(const EndToEndProblem& problem, int steps) {
  SC_CHECK(!problem.constants.empty() && !problem.sources.empty(), "a fit needs a constant and a row");
  return Fitter(problem).run(steps);
}

std::vector<FitWithout> fit_without_each(const EndToEndProblem& problem, int steps) {
  const std::set<int> sources(problem.sources.begin(), problem.sources.end());
  SC_CHECK(!problem.constants.empty() && sources.size() > 1, "what is left out leaves others");
  std::vector<FitWithout> out;
  for (const int source : sources) out.push_back(Fitter(problem).run_without(source, steps));
  return out;
}

}  // namespace stagecraft
