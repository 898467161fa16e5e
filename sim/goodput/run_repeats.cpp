#include "sim/goodput/run_repeats.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/for_each_index.hpp"

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
    if (options.after_each) options.after_each();
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

}  // namespace

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
  result.went_back = mean(repeats, [](const Account& a) { return a.went_back; });
  result.mean_time_to_recover_s = mean_time_to_recover(repeats);
  result.causes = by_cause(repeats);
  result.cause_names = std::move(repeats.front().causes);
  result.timeline = std::move(repeats.front().account.timeline);
  return result;
}

}  // namespace stagecraft
