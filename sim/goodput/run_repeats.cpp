#include "sim/goodput/run_repeats.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/for_each_index.hpp"
#include "sim/goodput/log_gamma.hpp"

namespace stagecraft {
namespace {

struct Repeat {
  Account account;
  std::vector<std::string> causes;
};

std::vector<Repeat> all_repeats(const HistoryFactory& histories, const AccountOf& account_of,
                                const RepeatOptions& options) {
  std::vector<Repeat> repeats(static_cast<std::size_t>(options.repeats));
  for_each_index({.count = repeats.size(), .threads = options.threads}, [&](std::size_t, std::size_t i) {
    History history = histories(static_cast<int>(i));
    Account account = account_of(history, i == 0);  // the first repeat has the timeline
    repeats[i] = {.account = std::move(account), .causes = std::move(history.causes)};
  });
  return repeats;
}

// The statistic of a value in [0, most]: its interval does not leave that range.
template <class Value>
Statistic over(const std::vector<Repeat>& repeats, double most, Value value) {
  std::vector<double> values;
  for (const Repeat& repeat : repeats) values.push_back(value(repeat.account));
  Statistic statistic = statistic_of(values);
  if (!statistic.ci95) return statistic;
  for (double& end : *statistic.ci95) end = std::clamp(end, 0.0, most);
  return statistic;
}

template <class Value>
double mean(const std::vector<Repeat>& repeats, Value value) {
  double sum = 0;
  for (const Repeat& repeat : repeats) sum += static_cast<double>(value(repeat.account));
  return sum / static_cast<double>(repeats.size());
}

std::vector<CauseResult> by_cause(const std::vector<Repeat>& repeats) {
  std::vector<CauseResult> results;
  const double share = 1 / static_cast<double>(repeats.size());
  for (const Repeat& repeat : repeats)
    for (std::size_t cause = 0; cause < repeat.causes.size(); ++cause) {
      const auto same = [&](const CauseResult& result) { return result.cause == repeat.causes[cause]; };
      auto found = std::find_if(results.begin(), results.end(), same);
      if (found == results.end()) found = results.insert(found, {.cause = repeat.causes[cause]});
      const CauseAccount& account = repeat.account.causes[cause];
      found->failures += share * static_cast<double>(account.failures);
      found->lost_work_s += share * to_seconds(account.lost_work);
      found->down_s += share * to_seconds(account.down);
    }
  return results;
}

double mean_time_to_recover(const std::vector<Repeat>& repeats) {
  double seconds = 0, restarts = 0;
  for (const Repeat& repeat : repeats) {
    seconds += to_seconds(repeat.account.recovering);
    restarts += static_cast<double>(repeat.account.restarts);
  }
  return restarts > 0 ? seconds / restarts : 0;
}

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
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t quarter = 0; quarter <= 4; ++quarter) {
    const double place = static_cast<double>(quarter) / 4 * (n - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto above = std::min(below + 1, sorted.size() - 1);
    const double part = place - static_cast<double>(below);
    statistic.quantiles[quarter] = sorted[below] + part * (sorted[above] - sorted[below]);
  }
  return statistic;
}

GoodputResult run_repeats(const JobSpec& spec, const HistoryFactory& histories, const PolicyFactory& policies,
                          const RepeatOptions& options) {
  const auto account_of = [&](const History& history, bool timeline) {
    JobSpec own = spec;
    own.timeline = spec.timeline && timeline;
    return run_job(own, history, *policies());
  };
  return run_repeats(spec.horizon, histories, account_of, options);
}

GoodputResult run_repeats(Duration horizon, const HistoryFactory& histories, const AccountOf& account_of,
                          const RepeatOptions& options) {
  SC_CHECK(options.repeats >= 1 && options.threads >= 1, "a job is repeated at least once, on a thread");
  SC_CHECK(horizon > Duration::zero(), "rates need a horizon");
  std::vector<Repeat> repeats = all_repeats(histories, account_of, options);
  const double seconds = to_seconds(horizon);
  GoodputResult result;
  result.repeats = options.repeats;
  result.horizon = horizon;
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  result.samples_per_s =
      over(repeats, kNoLimit, [&](const Account& a) { return static_cast<double>(a.samples) / seconds; });
  result.fraction_of_ideal =
      over(repeats, 1, [&](const Account& a) { return to_seconds(a[Bucket::kProductive]) / seconds; });
  result.ettr = over(repeats, 1, [&](const Account& a) {
    return to_seconds(a[Bucket::kProductive] + a[Bucket::kDegraded]) / seconds;
  });
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket)
    result.buckets_s[bucket] = mean(repeats, [&](const Account& a) { return to_seconds(a.buckets[bucket]); });
  result.failures = mean(repeats, [](const Account& a) { return a.failures; });
  result.restarts = mean(repeats, [](const Account& a) { return a.restarts; });
  result.changes = mean(repeats, [](const Account& a) { return a.changes; });
  result.went_back = mean(repeats, [](const Account& a) { return a.went_back; });
  result.checkpoints = mean(repeats, [](const Account& a) { return a.checkpoints; });
  result.mean_time_to_recover_s = mean_time_to_recover(repeats);
  result.idle_nodes = mean(repeats, [&](const Account& a) { return a.idle_node_seconds / seconds; });
  result.down_nodes = mean(repeats, [&](const Account& a) { return a.down_node_seconds / seconds; });
  result.causes = by_cause(repeats);
  result.cause_names = std::move(repeats.front().causes);
  result.timeline = std::move(repeats.front().account.timeline);
  return result;
}

}  // namespace stagecraft
