#include "sim/goodput/policies/slow_ladder.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.hpp"
#include "sim/goodput/job.hpp"
#include "sim/goodput/policies/hot_spares.hpp"
#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft {
namespace {

using made::history;
using made::seconds;

TEST(SlowLadder, MicroBatchesMoveToFastReplicas) {
  // 4 replicas of 4 micro-batches, one twice as slow: 5 + 5 + 5 fast ones, and 2 of length 2, hold 16
  // within 5.
  EXPECT_EQ(rebalanced_pace({2}, 4, 4), 5.0 / 4);
  EXPECT_EQ(rebalanced_pace({}, 4, 4), 1);
  EXPECT_EQ(rebalanced_pace({2, 2, 2, 2}, 4, 4), 2);
  EXPECT_EQ(rebalanced_pace({3}, 1, 8), 3);
  EXPECT_EQ(rebalanced_pace({1.25}, 2, 1), 1.25);  // nothing to move
  EXPECT_THROW((void)rebalanced_pace({2, 2}, 1, 4), InternalError);
}

// Property: no other split of the micro-batches is faster.
TEST(SlowLadder, NoOtherSplitIsFaster) {
  for (int a = 4; a <= 12; ++a)
    for (int b = 4; b <= 12; ++b)
      for (int micro_batches = 1; micro_batches <= 6; ++micro_batches) {
        const double first = a / 4.0, second = b / 4.0;
        double least = 1e9;
        for (int moved = 0; moved <= 2 * micro_batches; ++moved)
          least = std::min(least, std::max(first * moved, second * (2 * micro_batches - moved)));
        EXPECT_NEAR(rebalanced_pace({first, second}, 2, micro_batches), least / micro_batches, 1e-12);
      }
}

Incident slowness(std::int64_t at, int node, double factor) {
  return {.time = seconds(at),
          .kind = factor > 1 ? IncidentKind::kSlow : IncidentKind::kNormal,
          .id = node,
          .node = node,
          .factor = factor};
}

// Four nodes, each a replica of four micro-batches; steps of 10 s; a swap takes 10 s.
HotSparesSpec climbing(std::int64_t remaining) {
  return {.nodes = 4,
          .step = seconds(10),
          .samples = 4,
          .swap = seconds(10),
          .restart = {{1, seconds(99)}},
          .slow = SlowLadder{.remaining = seconds(remaining), .replica_nodes = 1, .micro_batches = 4}};
}
Account run(HotSparesSpec spec, int nodes, std::vector<Incident> incidents, std::int64_t horizon) {
  HotSpares policy(std::move(spec));
  JobSpec job = made::job(horizon, 10, Checkpointing{});
  job.ideal.samples = 4;
  return run_job(job, history(nodes, std::move(incidents)), policy);
}

TEST(SlowLadder, IgnoredASlowNodeSetsThePace) {
  HotSparesSpec spec = climbing(0);
  spec.slow.reset();
  EXPECT_EQ(run(std::move(spec), 4, {slowness(20, 1, 2)}, 80).samples, 4 * (2 + 3));
}

TEST(SlowLadder, RebalancingIsFree) {
  // From 20 on steps of 12.5 s: 32.5, 45, …, 70; the node is well again at 70.
  const Account account = run(climbing(0), 4, {slowness(20, 1, 2), slowness(70, 1, 1)}, 90);
  EXPECT_EQ(account.samples, 4 * (2 + 4 + 2));
  EXPECT_EQ(account[Bucket::kDegraded], seconds(10));
  EXPECT_EQ(account.changes, 0);
}

TEST(SlowLadder, ASpareTakesThePlaceOfASlowNodeWhenThatPays) {
  // 20 % of the time is to be gained for 10 s: it pays beyond 50 s. The step in flight ends, 12.5 s long.
  EXPECT_EQ(run(climbing(49), 5, {slowness(21, 1, 2)}, 100).changes, 0);
  const Account account = run(climbing(51), 5, {slowness(20, 1, 2)}, std::int64_t{103});
  EXPECT_EQ(account.changes, 1);
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(10));
  EXPECT_EQ(account.undone_steps, 0);
  EXPECT_EQ(account.samples, 4 * (2 + 1 + 6));  // 32.5; from 42.5
}

TEST(SlowLadder, WithoutASpareItStaysOnTheLowerRung) {
  EXPECT_EQ(run(climbing(10'000), 4, {slowness(20, 1, 2)}, 100).changes, 0);
}

TEST(SlowLadder, ASlowSpareIsNoHelp) {
  EXPECT_EQ(run(climbing(10'000), 5, {slowness(5, 4, 3), slowness(20, 1, 2)}, 100).changes, 0);
}

TEST(SlowLadder, WhatIsNotNoticedIsNotActedOn) {
  const Account account = run(climbing(10'000), 5, {slowness(20, 1, 1.0625)}, 105);
  EXPECT_EQ(account.changes, 0);
  EXPECT_EQ(account.samples, 4 * (2 + 8));  // 10.625 s each
}

// System: without a slow node three of four do the batch in 12 s in place of 10; a restart takes 10 s.
HotSparesSpec going_on_without(std::int64_t remaining, std::int64_t undisturbed) {
  HotSparesSpec spec = climbing(remaining);
  spec.restart = {{1, seconds(10)}};
  spec.slow->undisturbed = seconds(undisturbed);
  spec.slow->restart = true;
  spec.slow->replica_nodes = 0;
  spec.smaller = [](int nodes) -> std::optional<ShapedStep> {
    if (nodes < 3) return std::nullopt;
    return ShapedStep{.duration = seconds(12), .samples = 4, .nodes = 3};
  };
  return spec;
}

TEST(SlowLadder, WithoutASpareTheJobGoesOnWithoutTheSlowNodeWhenThatPays) {
  // Two times 10 s against 12 s: 40 % of the time is to be gained for 10 s, beyond 25 s.
  EXPECT_EQ(run(going_on_without(24, 1), 4, {slowness(21, 1, 2)}, 140).changes, 0);
  // The step in flight ends at 39, twice as slow; the restart at 49; then 61, 73, ..., 133.
  const Account account = run(going_on_without(26, 1), 4, {slowness(21, 1, 2)}, 140);
  EXPECT_EQ(account.changes, 1);
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(10));
  EXPECT_EQ(account.undone_steps, 0);
  EXPECT_EQ(account.samples, 4 * (3 + 7));
}

TEST(SlowLadder, TheJobGrowsAgainWhenTheNodeIsWellAndThatPays) {
  // A sixth of the time for 10 s: beyond 60 s. The node is well at 99; 109 ends the step in flight, 119 the
  // restart, then 129 and 139.
  const std::vector<Incident> incidents = {slowness(21, 1, 2), slowness(99, 1, 1)};
  EXPECT_EQ(run(going_on_without(26, 59), 4, incidents, 140).changes, 1);
  const Account account = run(going_on_without(26, 61), 4, incidents, 140);
  EXPECT_EQ(account.changes, 2);
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(20));
  EXPECT_EQ(account.samples, 4 * (3 + 5 + 2));
}

TEST(SlowLadder, ASpareIsTakenBeforeTheJobShrinks) {
  const Account account = run(going_on_without(60, 1), 5, {slowness(21, 1, 2)}, 140);
  EXPECT_EQ(account.changes, 1);
  EXPECT_EQ(account.samples, 4 * (3 + 9));  // 39, 49, then 59 ... 139: the full pace
}

// A restart for another reason takes the fast spare first, and the pace is that of who trains then.
TEST(SlowLadder, ARestartSeatsFastNodesFirst) {
  const Account account = run(climbing(0), 6, {slowness(5, 4, 3), made::removal(20, 0)}, 90);
  EXPECT_EQ(account[Bucket::kDegraded], Duration::zero());
  EXPECT_EQ(account.samples, 4 * 6);  // 20 is cut, nothing is checkpointed: from 30 again
}

}  // namespace
}  // namespace stagecraft
