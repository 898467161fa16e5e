#include "sim/goodput/closed_forms.hpp"

#include <gtest/gtest.h>

#include "base/check.hpp"
#include "tests/sim/goodput/analytic_oracles.hpp"
#include "tests/sim/goodput/pencil.hpp"

namespace stagecraft {
namespace {

using oracles::expect_number;
using oracles::integer;
using oracles::number;
using namespace pencil;

TEST(ClosedForms, SegmentTimesOfTheOracleFile) {
  for (const YamlNode& row : oracles::rows("expected_segment_time")) {
    const double time = expected_segment_time({.work = number(row, "W"),
                                               .checkpoint = number(row, "C"),
                                               .downtime = number(row, "D"),
                                               .restart = number(row, "R"),
                                               .mean_time_between_failures = number(row, "M")});
    expect_number(row, "E", time);
    expect_number(row, "goodput", number(row, "W") / time);
  }
}

TEST(ClosedForms, IntervalsOfTheOracleFile) {
  for (const YamlNode& row : oracles::rows("optimal_interval")) {
    const double checkpoint = number(row, "C"), mean = number(row, "M");
    expect_number(row, "exact", optimal_interval(checkpoint, mean));
    expect_number(row, "young", young_interval(checkpoint, mean));
    expect_number(row, "daly_higher_order", daly_interval(checkpoint, mean));
  }
}

// 500 hours of work, restarts of 10 min, checkpoints of 5 min. Daly 2006, captions of its figures.
TEST(ClosedForms, DalysFigures) {
  for (const YamlNode& row : oracles::rows("daly_published")) {
    const double mean = 60 * number(row, "M_min");
    const double interval = daly_interval(300, mean);
    expect_number(row, "daly_higher_order_min", interval / 60);
    expect_number(row, "exact_min", optimal_interval(300, mean) / 60);
    EXPECT_NEAR(interval / 60, number(row, "tau_opt_min_published"), 0.5);
    const double time = expected_segment_time(
        {.work = interval, .checkpoint = 300, .restart = 600, .mean_time_between_failures = mean});
    expect_number(row, "total_hours_at_daly", 500 * time / interval);
  }
}

TEST(ClosedForms, RecoverableFromPeersOfTheOracleFile) {
  for (const YamlNode& row : oracles::rows("recoverable_from_peer_memory"))
    expect_number(row, "P", recoverable_probability(integer(row, "N"), integer(row, "m"), integer(row, "k")));
}

TEST(ClosedForms, StandbyPoolsOfTheOracleFile) {
  for (const YamlNode& row : oracles::rows("standby_pool_p99"))
    EXPECT_EQ(standby_pool(integer(row, "N"), number(row, "p")), integer(row, "s"));
}

// One node that is there half of the time, and s spares alike: all 1 + s are away 0.5^(1 + s) of it.
TEST(ClosedForms, SparesThatCanBeAwayAreMore) {
  EXPECT_EQ(standby_pool(1, 0.5), 1);
  EXPECT_EQ(standby_pool(1, 0.5, Spare::kLikeAnyNode), 6);  // 0.5^7 = 0.0078
  EXPECT_EQ(standby_pool(1'000, 0, Spare::kLikeAnyNode), 0);
  EXPECT_EQ(standby_pool(4, 1), 4);
  EXPECT_EQ(standby_pool(4, 1, Spare::kLikeAnyNode), 100'000);  // none suffices
  for (const int nodes : {2, 20, 200})
    EXPECT_GE(standby_pool(nodes, 0.3, Spare::kLikeAnyNode), standby_pool(nodes, 0.3));
}

// Property: no other interval has a better expected share of work.
// W approaches M as C grows, and does not pass it.
TEST(ClosedForms, TheOptimalIntervalOfADearCheckpointIsTheTimeBetweenFailures) {
  EXPECT_NEAR(optimal_interval(30, 1), 1, 1e-12);
  for (const double checkpoint : {39.9, 40.0, 40.1, 800.0, 1e9})
    EXPECT_NEAR(optimal_interval(checkpoint, 1), 1, 1e-15) << checkpoint;
}

TEST(ClosedForms, TheOptimalIntervalIsOptimal) {
  for (const double checkpoint : {0.01, 1.0, 60.0, 3600.0})
    for (const double mean : {100.0, 1e4, 1e7}) {
      const auto overhead = [&](double work) {
        return expected_segment_time(
                   {.work = work, .checkpoint = checkpoint, .mean_time_between_failures = mean}) /
               work;
      };
      const double best = optimal_interval(checkpoint, mean);
      EXPECT_LT(overhead(best), overhead(best * 1.01)) << checkpoint << " " << mean;
      EXPECT_LT(overhead(best), overhead(best / 1.01)) << checkpoint << " " << mean;
    }
}

TEST(ClosedForms, WithoutFailuresASegmentTakesWorkAndCheckpoint) {
  EXPECT_NEAR(expected_segment_time({.work = 100, .checkpoint = 10, .mean_time_between_failures = 1e15}), 110,
              1e-9);
}

TEST(ClosedForms, NothingIsRecoverableWhenAllAreLostAndAllWhenNoneIs) {
  EXPECT_EQ(recoverable_probability(8, 2, 8), 0);
  EXPECT_EQ(recoverable_probability(8, 2, 0), 1);
  EXPECT_EQ(recoverable_probability(8, 2, 5), 0);  // five of four pairs
}

TEST(ClosedForms, OutsideTheirDomainTheyRefuse) {
  EXPECT_THROW((void)optimal_interval(1, 0), InternalError);
  EXPECT_THROW((void)optimal_interval(-1, 1), InternalError);
  EXPECT_THROW((void)recoverable_probability(7, 2, 1), InternalError);
}

}  // namespace
}  // namespace stagecraft
