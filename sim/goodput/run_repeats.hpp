// Runs many repeats of one job on different histories, on threads, and summarises them.
//
//   repeats    repeat i has history i of the seed, the same for every policy: policies are compared on the
//              same failures.
//   same bits  on any number of threads: repeats share nothing and are added up in their order.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/goodput/account.hpp"
#include "sim/goodput/incident.hpp"
#include "sim/goodput/job.hpp"
#include "sim/goodput/policy.hpp"
#include "sim/goodput/statistic.hpp"

namespace stagecraft {

// Means over the repeats.
struct CauseResult {
  std::string cause;
  double failures = 0;
  double lost_work_s = 0;
  double down_s = 0;

  friend bool operator==(const CauseResult&, const CauseResult&) = default;
};

struct GoodputResult {
  int repeats = 0;
  Duration horizon{};
  // The intervals of these three end at 0, and those of shares at 1. (A caller that knows X* ends that of the
  // samples there.)
  Statistic samples_per_s;
  Statistic fraction_of_ideal;                       // productive / horizon
  Statistic ettr;                                    // (productive + degraded) / horizon
  std::array<double, kBuckets> buckets_s{};          // means; they add up to the horizon
  double failures = 0, restarts = 0, went_back = 0;  // means of a repeat
  double mean_time_to_recover_s = 0;                 // over all restarts of all repeats; 0 without one
  std::vector<CauseResult> causes;                   // in order of first appearance
  std::vector<std::string> cause_names;              // names for `cause` in the timeline of the first repeat
  std::vector<TimelineRow> timeline;  // of the first repeat, when JobSpec::timeline asks for it

  friend bool operator==(const GoodputResult&, const GoodputResult&) = default;
};

struct RepeatOptions {
  int repeats = 1;                        // >= 1
  int threads = 1;                        // >= 1
  std::function<void()> after_each = {};  // called once a repeat is done, from any thread
};

// Called once a repeat, from any thread.
using HistoryFactory = std::function<History(int repeat)>;

//   throws  what a repeat throws; of several the first repeat's.
[[nodiscard]] GoodputResult run_repeats(const JobSpec& spec, const HistoryFactory& histories,
                                        const PolicyFactory& policies, const RepeatOptions& options);

// Repeats of any other function from a history to an account, such as a replay of a published evaluation.
using AccountOf = std::function<Account(const History& history, bool timeline)>;
[[nodiscard]] GoodputResult run_repeats(Duration horizon, const HistoryFactory& histories,
                                        const AccountOf& account_of, const RepeatOptions& options);

}  // namespace stagecraft
