#include "calibrate/fit/curve_fits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/check.hpp"
#include "base/text.hpp"
#include "calibrate/fit/least_squares.hpp"

namespace stagecraft {

namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr int kRounds = 30;

// The terms of a curve at a size; the constants are their factors.
using Terms = std::function<VectorXd(double size)>;

// `least`: lower bound of each constant; empty for 0.
VectorXd fit_relative(const Terms& terms, const std::vector<CurvePoint>& points, VectorXd least = {}) {
  const auto rows = static_cast<Index>(points.size());
  Eigen::MatrixXd a(rows, terms(points.front().size).size());
  for (Index i = 0; i < rows; ++i) {
    const CurvePoint& point = points[static_cast<std::size_t>(i)];
    SC_CHECK(point.size > 0 && point.seconds > 0, "a point of a curve has a size and a time");
    a.row(i) = terms(point.size) / point.seconds;
  }
  if (least.size() == 0) least = VectorXd::Zero(a.cols());
  const VectorXd open = VectorXd::Ones(rows) - a * least;
  VectorXd weights = VectorXd::Ones(rows);
  VectorXd constants;
  for (int round = 0; round < kRounds; ++round) {
    constants = least + non_negative_least_squares(weights.asDiagonal() * a, weights.cwiseProduct(open));
    const VectorXd errors = a * constants - VectorXd::Ones(rows);
    weights = huber_weights(errors, kOutlier);
  }
  return constants;
}

struct Curve {
  VectorXd constants;
  FitErrors left_out;
};

Curve fit_curve(const Terms& terms, const std::vector<CurvePoint>& points,
                const std::function<std::string(double size)>& name) {
  Curve curve{.constants = fit_relative(terms, points), .left_out = {}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<CurvePoint> others = points;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const double predicted = fit_relative(terms, others).dot(terms(points[i].size));
    curve.left_out.add(name(points[i].size), predicted, points[i].seconds);
  }
  return curve;
}

std::string bytes_name(double bytes) {
  return human(to_bytes(bytes));
}

// The least seconds per byte from the shortest time to that of a larger size which shows the bus; 0 where
// none does.
double least_slope(const std::vector<CurvePoint>& points) {
  const auto shortest = std::ranges::min_element(points, {}, &CurvePoint::seconds);
  std::optional<double> least;
  for (const CurvePoint& point : points) {
    if (point.size <= shortest->size || point.seconds < kShowsBus * shortest->seconds) continue;
    const double slope = (point.seconds - shortest->seconds) / (point.size - shortest->size);
    least = std::min(least.value_or(slope), slope);
  }
  return least.value_or(0);
}

VectorXd fit_formula(const std::vector<CurvePoint>& points, double factor) {
  const Terms terms = [factor](double size) { return VectorXd{{1.0, size * factor, std::sqrt(size)}}; };
  VectorXd constants = fit_relative(terms, points);
  const double least = least_slope(points) / factor / kMostOverSeen;
  if (constants(1) < least) constants = fit_relative(terms, points, VectorXd{{0, least, 0}});
  // No size takes longer than another: the bus gets a bandwidth too high to show at the largest size.
  if (constants(1) == 0) {
    const auto largest = std::ranges::max_element(points, {}, &CurvePoint::size);
    constants(1) = 1e-3 * largest->seconds / (largest->size * factor);
  }
  return constants;
}

CollectiveFit fit_and_points(const CollectiveGroup& group, const std::vector<CurvePoint>& points) {
  const VectorXd constants = fit_formula(points, bus_factor(group.kind, group.ranks));
  return {.kind = group.kind,
          .ranks = group.ranks,
          .nodes = group.nodes,
          .algorithm = group.algorithm,
          .latency = from_seconds(constants(0)),
          .bus_bandwidth = Bandwidth(1 / constants(1)),
          .sqrt_seconds = constants(2),
          .points = group.nodes == 1 ? rising_points(points) : std::vector<CollectivePoint>{}};
}

// To the digits of a file, which are more of a slow network.
Bandwidth rounded_bus(Bandwidth bus) {
  const double step = bus.count() < 1e9 ? 1e4 : 1e7;
  return Bandwidth(std::round(bus.count() / step) * step);
}

// Neighbours whose times fall with the size, as one.
struct Pool {
  std::vector<double> times{};  // seconds, rising
  double seconds = 0;  // the t with the least sum of |t/t_i - 1|: their median, each t_i weighing 1/t_i
};

Pool pool_of(std::vector<double> times) {
  std::ranges::sort(times);
  double half = 0, seen = 0;
  for (const double time : times) half += 0.5 / time;
  for (const double time : times)
    if ((seen += 1 / time) >= half) return {.times = times, .seconds = time};
  return {.times = times, .seconds = times.back()};
}

// Time per FLOP is a line in 1/L.
VectorXd attention_terms(double length) {
  return VectorXd{{1.0, 1 / length}};
}
std::vector<CurvePoint> seconds_per_flop(const std::vector<AttentionPoint>& points) {
  SC_CHECK(points.size() >= 3, "too few lengths for the two constants of attention");
  std::vector<CurvePoint> per_flop;
  for (const AttentionPoint& point : points)
    per_flop.push_back({.size = point.length, .seconds = 1 / point.rate.count()});
  return per_flop;
}
std::optional<AttentionFit> curve_of(const VectorXd& constants) {
  if (constants(0) <= 0) return std::nullopt;
  return AttentionFit{
      .rate = FlopRate(1 / constants(0)), .half_length = constants(1) / constants(0), .left_out = {}};
}

}  // namespace

std::string group_name(const CollectiveGroup& group) {
  return fmt::format("{}, {} ranks, {}{}", kCollectiveNames[static_cast<std::size_t>(group.kind)],
                     group.ranks, counted(group.nodes, "node"),
                     group.algorithm == "any" ? "" : ", " + group.algorithm);
}

std::vector<CollectivePoint> rising_points(std::vector<CurvePoint> points) {
  std::erase_if(points, [](const CurvePoint& point) { return point.size < kPointsFrom; });
  std::ranges::sort(points, {}, &CurvePoint::size);
  std::vector<Pool> pools;
  for (const CurvePoint& point : points) {
    pools.push_back(pool_of({point.seconds}));
    while (pools.size() > 1 && pools[pools.size() - 2].seconds >= pools.back().seconds) {
      std::vector<double> times = std::move(pools.back().times);
      pools.pop_back();
      times.insert(times.end(), pools.back().times.begin(), pools.back().times.end());
      pools.back() = pool_of(std::move(times));
    }
  }
  std::vector<CollectivePoint> rising;
  double seconds = 0;
  for (const Pool& pool : pools)
    for (std::size_t i = 0; i < pool.times.size(); ++i) {
      seconds = std::max(pool.seconds, seconds * (1 + kLeastRise));
      rising.push_back({.size = to_bytes(points[rising.size()].size), .time = from_seconds(seconds)});
    }
  return rising;
}

bool shows_bus(const std::vector<CurvePoint>& points) {
  if (least_slope(points) > 0) return true;
  const CurvePoint &smallest = points.front(), &largest = points.back();
  const double growing = largest.size / (largest.size - smallest.size) * (largest.seconds - smallest.seconds);
  return points.size() > 1 && growing * kShowsBus >= largest.seconds;
}

FittedCollective fit_collective(const CollectiveGroup& group, const std::vector<CurvePoint>& points) {
  SC_CHECK(points.size() >= kMinCollectivePoints, "too few sizes for the three constants of a collective");
  FittedCollective fitted{.fit = fit_and_points(group, points), .left_out = {}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<CurvePoint> others = points;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    fitted.left_out.add(group_name(group) + ", " + bytes_name(points[i].size),
                        predict_seconds(fit_and_points(group, others), points[i].size), points[i].seconds);
  }
  fitted.fit.bus_bandwidth = rounded_bus(fitted.fit.bus_bandwidth);
  return fitted;
}

double predict_seconds(const CollectiveFit& fit, double bytes) {
  return formula_seconds(fit, bytes) * points_over_formula(fit, bytes);
}

std::optional<AttentionFit> attention_curve(const std::vector<AttentionPoint>& points) {
  return curve_of(fit_relative(attention_terms, seconds_per_flop(points)));
}

std::optional<AttentionFit> fit_attention(const std::string& name,
                                          const std::vector<AttentionPoint>& points) {
  Curve curve = fit_curve(attention_terms, seconds_per_flop(points),
                          [&](double length) { return fmt::format("{}, sequence {:.0f}", name, length); });
  std::optional<AttentionFit> fit = curve_of(curve.constants);
  if (fit) fit->left_out = std::move(curve.left_out);
  return fit;
}

std::optional<MemoryFit> fit_memory(const std::string& name, const std::vector<CurvePoint>& points) {
  SC_CHECK(points.size() >= 3, "too few sizes for the two constants of a memory-bound kernel");
  const Terms terms = [](double bytes) { return VectorXd{{1.0, bytes}}; };
  Curve curve =
      fit_curve(terms, points, [&](double bytes) { return fmt::format("{}, {}", name, bytes_name(bytes)); });
  if (curve.constants(1) <= 0) return std::nullopt;
  return MemoryFit{.t0_seconds = curve.constants(0),
                   .bandwidth = Bandwidth(1 / curve.constants(1)),
                   .left_out = std::move(curve.left_out)};
}

}  // namespace stagecraft
