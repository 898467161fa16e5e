#include "sim/goodput/closed_forms.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "sim/goodput/log_gamma.hpp"

namespace stagecraft {
namespace {

void check_interval(double checkpoint, double mean_time_between_failures) {
  SC_CHECK(checkpoint >= 0 && mean_time_between_failures > 0,
           "a checkpoint takes no negative time, and the time between failures is positive");
}

// e^{−x} − 1 + x without cancellation, x >= 0.
double excess(double x) {
  if (x > 0.1) return std::expm1(-x) + x;
  double sum = 0, term = 1;
  for (int power = 1; power < 14; ++power) {
    term *= -x / power;
    if (power > 1) sum += term;
  }
  return sum;
}

double binomial(int n, double p, int k) {
  if (p <= 0) return k == 0 ? 1 : 0;
  if (p >= 1) return k == n ? 1 : 0;
  return std::exp(log_choose(n, k) + k * std::log(p) + (n - k) * std::log1p(-p));
}

}  // namespace

// Newton's method on f(x) = e^{−x} − (1 − x) e^{C/M}, x = W/M in (0, 1). f is convex and rises from its
// minimum on, and sqrt(2C/M) lies right of the root, so the iteration converges from one side.
double optimal_interval(double checkpoint, double mean_time_between_failures) {
  check_interval(checkpoint, mean_time_between_failures);
  const double cost = checkpoint / mean_time_between_failures;
  constexpr double kHopeless = 40;  // e^-40: the root is 1 to a double's last digit
  if (cost == 0) return 0;
  if (cost > kHopeless) return mean_time_between_failures;
  const double less = std::expm1(cost);
  double x = std::min(1.0, std::sqrt(2 * cost));
  for (int step = 0; step < 100; ++step) {
    const double f = excess(x) - (1 - x) * less;
    const double slope = -std::expm1(-x) + less;
    const double next = std::clamp(x - f / slope, x / 2, 1.0);
    if (std::abs(next - x) <= 1e-15 * x) break;
    x = next;
  }
  return mean_time_between_failures * x;
}

double young_interval(double checkpoint, double mean_time_between_failures) {
  check_interval(checkpoint, mean_time_between_failures);
  return std::sqrt(2 * checkpoint * mean_time_between_failures);
}

double daly_interval(double checkpoint, double mean_time_between_failures) {
  const double young = young_interval(checkpoint, mean_time_between_failures);
  if (checkpoint >= 2 * mean_time_between_failures) return mean_time_between_failures;
  const double half = checkpoint / (2 * mean_time_between_failures);
  return young * (1 + std::sqrt(half) / 3 + half / 9) - checkpoint;
}

// Group by group: with `left` of the lost nodes among `rest` nodes, a group of m has j of them by the
// hypergeometric law.
double recoverable_probability(int nodes, int group, int lost) {
  SC_CHECK(group >= 1 && nodes >= group && nodes % group == 0 && lost >= 0 && lost <= nodes,
           "groups divide the nodes, and no more nodes are lost than there are");
  std::vector<double> by_left(static_cast<std::size_t>(lost) + 1, 0.0);
  by_left.back() = 1;
  for (int rest = nodes; rest > 0; rest -= group) {
    std::vector<double> next(by_left.size(), 0.0);
    for (int left = 0; left <= std::min(lost, rest); ++left) {
      const double here = by_left[static_cast<std::size_t>(left)];
      if (here == 0) continue;
      for (int j = std::max(0, left - (rest - group)); j < group && j <= left; ++j)
        next[static_cast<std::size_t>(left - j)] +=
            here *
            std::exp(log_choose(group, j) + log_choose(rest - group, left - j) - log_choose(rest, left));
    }
    by_left = std::move(next);
  }
  return by_left.front();
}

int standby_pool(int nodes, double probability, Spare spare) {
  const bool like_any = spare == Spare::kLikeAnyNode;
  SC_CHECK(nodes >= 0 && probability >= 0 && probability <= 1, "a pool is sized by a probability");
  const int most = like_any ? 100'000 : nodes;
  const auto covers = [&](int spares) {
    double at_most = 0;
    for (int away = 0; away <= spares; ++away)
      at_most += binomial(like_any ? nodes + spares : nodes, probability, away);
    return at_most >= 0.99;
  };
  int too_few = -1, enough = 0;
  while (enough < most && !covers(enough)) too_few = std::exchange(enough, std::min(most, 2 * enough + 1));
  while (enough - too_few > 1) {
    const int middle = too_few + (enough - too_few) / 2;
    (covers(middle) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace stagecraft
