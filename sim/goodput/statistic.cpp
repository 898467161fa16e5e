#include "sim/goodput/statistic.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.hpp"
#include "sim/goodput/log_gamma.hpp"

namespace stagecraft {
namespace {

// The regularized incomplete beta function by its continued fraction (modified Lentz), for x < (a + 1)/(a + b
// + 2).
//   source   DLMF 8.17.22.
double incomplete_beta(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const double front =
      std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x)) / a;
  double c = 1, d = 1 / std::max(1 - (a + b) * x / (a + 1), kTiny), fraction = d;
  for (int m = 1; m < 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    for (const double term : {even, odd}) {
      d = 1 / (1 + term * d);
      c = 1 + term / c;
      fraction *= c * d;
    }
    if (std::abs(c * d - 1) < 1e-15) break;
  }
  return front * fraction;
}

// P(T > t), t > 0, of Student's t: half of I_x(degrees/2, 1/2), x = degrees/(degrees + t²).
double student_t_tail(double t, int degrees) {
  const double a = degrees / 2.0, b = 0.5, x = degrees / (degrees + t * t);
  if (x < (a + 1) / (a + b + 2)) return 0.5 * incomplete_beta(a, b, x);
  return 0.5 * (1 - incomplete_beta(b, a, 1 - x));
}

}  // namespace

double student_t_975(int degrees) {
  SC_CHECK(degrees >= 1, "an interval needs two values");
  double low = 1.9, high = 12.8;  // quantiles for infinitely many degrees of freedom, and for one
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (student_t_tail(middle, degrees) > 0.025 ? low : high) = middle;
  }
  return (low + high) / 2;
}

Statistic statistic_of(const std::vector<double>& values) {
  SC_CHECK(!values.empty(), "a statistic is of at least one value");
  const double n = static_cast<double>(values.size());
  Statistic statistic;
  statistic.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - statistic.mean) * (value - statistic.mean);
  if (values.size() > 1) {
    statistic.standard_error = std::sqrt(squares / (n - 1) / n);
    const double half = student_t_975(static_cast<int>(values.size()) - 1) * statistic.standard_error;
    statistic.ci95 = std::array{statistic.mean - half, statistic.mean + half};
  }
  return statistic;
}

}  // namespace stagecraft
