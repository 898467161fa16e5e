// check() on orders that a person can follow: two ranks, one chunk each, two micro-batches.
//
//   rank 0: 0F0 0F1 0B0 0B1
//   rank 1: 1F0 1B0 1F1 1B1
#include <gtest/gtest.h>

#include <utility>

#include "sim/schedule/schedule.hpp"
#include "tests/sim/schedule/actions_of.hpp"

namespace stagecraft {
namespace {

Schedule written(PipelineShape shape, const std::vector<std::string>& orders) {
  Schedule schedule{.name = "written", .shape = shape, .placement = Placement::kLoop, .ranks = {}};
  for (const std::string& order : orders) schedule.ranks.push_back(actions_of(order));
  return schedule;
}

std::vector<ScheduleProblem> problems_of(PipelineShape shape, const std::vector<std::string>& orders) {
  return check(written(shape, orders));
}

constexpr PipelineShape kTwoByTwo{.ranks = 2, .micro_batches = 2};

TEST(ScheduleCheck, FindsNothingWrongWithAValidOrder) {
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), std::vector<ScheduleProblem>{});
}

TEST(ScheduleCheck, AcceptsASplitBackwardNextToAWholeOne) {
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 0F1 0B0 0I1 0W1", "1F0 1I0 1F1 1B1 1W0"}),
            std::vector<ScheduleProblem>{});
}

TEST(ScheduleCheck, AcceptsARecomputeBetweenForwardAndBackward) {
  EXPECT_EQ(problems_of({.ranks = 1, .micro_batches = 1}, {"0F0 0R0 0B0"}), std::vector<ScheduleProblem>{});
}

TEST(ScheduleCheck, FindsAMissingBackward) {
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 0F1 0B0", "1F0 1B0 1F1 1B1"}),
            (std::vector<ScheduleProblem>{
                {.message = "micro-batch 1 on stage 0 has no backward", .hint = "add 0B1, or 0I1 and 0W1"}}));
}

TEST(ScheduleCheck, FindsAMissingForward) {
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 0F1 0B0 0B1", "1F0 1B0 1B1"}),
            (std::vector<ScheduleProblem>{
                {.message = "micro-batch 1 on stage 1 has no forward", .hint = "add 1F1"}}));
}

TEST(ScheduleCheck, FindsHalfABackward) {
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 0F1 0I0 0B1", "1F0 1B0 1F1 1W1"}),
            (std::vector<ScheduleProblem>{
                {.message = "micro-batch 0 on stage 0 has 0I0 without 0W0", .hint = "add 0W0"},
                {.message = "micro-batch 1 on stage 1 has 1W1 without 1I1", .hint = "add 1I1"}}));
}

TEST(ScheduleCheck, FindsABackwardThatIsBothWholeAndSplit) {
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 0F1 0B0 0W0 0B1", "1F0 1B0 1F1 1B1"}),
            (std::vector<ScheduleProblem>{{.message = "micro-batch 0 on stage 0 has a whole backward and 0W0",
                                           .hint = "keep 0B0, or 0I0 and 0W0"}}));
}

TEST(ScheduleCheck, FindsADoubledPass) {
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 0F1 0B0 0F0 0B1", "1F0 1B0 1F1 1B1"}),
            (std::vector<ScheduleProblem>{{.message = "0F0 runs twice: op 1 of rank 0 and op 4 of rank 0",
                                           .hint = "drop one of them"}}));
}

TEST(ScheduleCheck, FindsAStageOnTheWrongRank) {
  EXPECT_EQ(
      problems_of(kTwoByTwo, {"0F0 0F1 0B0 0B1 1B1", "1F0 1B0 1F1"}),
      (std::vector<ScheduleProblem>{{.message = "1B1, op 5 of rank 0: stage 1 lives on rank 1, not on rank 0",
                                     .hint = "stage s lives on rank s mod 2"}}));
}

TEST(ScheduleCheck, FindsPassesOutsideTheShape) {
  EXPECT_EQ(
      problems_of(kTwoByTwo, {"0F0 0F1 0B0 0B1 0F2", "1F0 1B0 1F1 1B1 3F0"}),
      (std::vector<ScheduleProblem>{
          {.message = "0F2, op 5 of rank 0: no micro-batch 2 among 2", .hint = "micro-batches count from 0"},
          {.message = "3F0, op 5 of rank 1: no stage 3 among 2",
           .hint = "stages count from 0; there are ranks times chunks of them"}}));
}

// Rank 0 wants the gradient of micro-batch 0 before it sends micro-batch 1; rank 1 wants micro-batch 1 first.
TEST(ScheduleCheck, NamesTheRingOfADeadlock) {
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"}),
            (std::vector<ScheduleProblem>{{.message = "deadlock: 1F1 waits for 0F1, which comes after 0B0 on "
                                                      "rank 0, which waits for 1B0, which comes "
                                                      "after 1F1 on rank 1",
                                           .hint = "run 0F1 before 0B0 on rank 0 to break this ring"}}));
}

TEST(ScheduleCheck, NamesTheRingOfARankThatBlocksItself) {
  EXPECT_EQ(problems_of({.ranks = 1, .micro_batches = 1}, {"0B0 0F0"}),
            (std::vector<ScheduleProblem>{
                {.message = "deadlock: 0B0 waits for 0F0, which comes after 0B0 on rank 0",
                 .hint = "run 0F0 before 0B0 on rank 0 to break this ring"}}));
}

// Rank 0 waits at 0B0 for 1B0, but stands in no ring: ranks 1 and 2 do.
TEST(ScheduleCheck, LeavesARankThatOnlyWaitsForARingOutOfIt) {
  EXPECT_EQ(
      problems_of({.ranks = 3, .micro_batches = 2},
                  {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1", "2F0 2F1 2B0 2B1"}),
      (std::vector<ScheduleProblem>{
          {.message =
               "deadlock: 2F1 waits for 1F1, which comes after 1B0 on rank 1, which waits for 2B0, which "
               "comes after 2F1 on rank 2",
           .hint = "run 1F1 before 1B0 on rank 1 to break this ring"}}));
}

// Two chunks a rank: rank 0 wants the gradient of its first chunk before it gives that of its second.
TEST(ScheduleCheck, NamesAPassThatBothRanksWaitAtOnlyOnce) {
  EXPECT_EQ(
      problems_of({.ranks = 2, .micro_batches = 1, .chunks = 2}, {"0F0 2F0 0B0 2B0", "1F0 3F0 3B0 1B0"}),
      (std::vector<ScheduleProblem>{
          {.message = "deadlock: 0B0 waits for 1B0, which waits for 2B0, which comes after 0B0 on rank 0",
           .hint = "run 2B0 before 0B0 on rank 0 to break this ring"}}));
}

TEST(ScheduleCheck, LetsTheGradientLeaveWithTheInputHalfOfASplitBackward) {
  // 0B0 needs 1I0 only: 1W0 stands behind 1F1, which needs 0F1, which stands behind 0B0.
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 0B0 0F1 0B1", "1F0 1I0 1F1 1W0 1B1"}),
            std::vector<ScheduleProblem>{});
}

TEST(ScheduleCheck, AcceptsAFusedPairOfWhichNeitherNeedsTheOther) {
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 0F1 0B0 0B1", "1F0 (1F1;1B0) 1B1"}), std::vector<ScheduleProblem>{});
}

TEST(ScheduleCheck, FindsPairsThatAreNoPairs) {
  EXPECT_EQ(problems_of({.ranks = 1, .micro_batches = 1}, {"(0F0;0B0)"}),
            (std::vector<ScheduleProblem>{
                {.message = "0F0, op 1 of rank 0: fused with 0B0, but one of the two needs the other",
                 .hint = "write the two passes one after the other"}}));
  Schedule lonely = written({.ranks = 1, .micro_batches = 1}, {"0F0 0B0"});
  lonely.ranks[0][1].fused = true;
  EXPECT_EQ(
      check(lonely),
      (std::vector<ScheduleProblem>{{.message = "0B0, op 2 of rank 0: fused with a pass that is not there",
                                     .hint = "write the pair, or the pass alone"}}));
  Schedule three = written({.ranks = 1, .micro_batches = 2}, {"0F0 (0F1;0B0) 0B1"});
  three.ranks[0][0].fused = true;
  ASSERT_FALSE(check(three).empty());
  EXPECT_EQ(check(three)[0].message, "0F0, op 1 of rank 0: fused with 0F1, which is fused with a third pass");
}

// Rank 0 sends micro-batch 1 in the pair that waits for the gradient of 0; rank 1 wants micro-batch 1 before
// it gives it.
TEST(ScheduleCheck, NamesAPairThatAnotherRankWaitsFor) {
  EXPECT_EQ(problems_of(kTwoByTwo, {"0F0 (0F1;0B0) 0B1", "1F0 1F1 1B0 1B1"}),
            (std::vector<ScheduleProblem>{{.message =
                                               "deadlock: 1F1 waits for 0F1, which is fused with 0B0 on rank "
                                               "0, which waits for 1B0, which comes after 1F1 on rank 1",
                                           .hint = "run 0F1 before 0B0 on rank 0 to break this ring"}}));
}

TEST(ScheduleCheck, KnowsWhereStagesLiveOnAVAndInBothDirections) {
  Schedule v = written({.ranks = 2, .micro_batches = 1, .chunks = 2}, {"0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0"});
  EXPECT_FALSE(check(v).empty());
  v.placement = Placement::kV;
  EXPECT_EQ(check(v), std::vector<ScheduleProblem>{});
  Schedule both = written(kTwoByTwo, {"0F0 1F1 1B1 0B0", "0F1 1F0 1B0 0B1"});
  both.placement = Placement::kBidirectional;
  EXPECT_EQ(check(both), std::vector<ScheduleProblem>{});
  std::swap(both.ranks[0], both.ranks[1]);
  EXPECT_EQ(check(both)[0].hint, "micro-batches below 1 have stage s on rank s, the others on rank 1 - s");
}

TEST(ScheduleCheck, LetsAForwardBehindItsBackwardBelongToTheNextIteration) {
  Schedule steady = written(kTwoByTwo, {"0F1 0B0 0F0 0B1", "1F0 1B0 1F1 1B1"});
  EXPECT_FALSE(check(steady).empty());
  steady.flush = false;
  EXPECT_EQ(check(steady), std::vector<ScheduleProblem>{});
}

TEST(ScheduleCheck, SaysWhereAProblemStands) {
  const auto placed = check_placed(written(kTwoByTwo, {"0F0 0F1 0B0", "1F0 1B0 1F1 1B1"}));
  ASSERT_EQ(placed.size(), 1u);
  EXPECT_EQ(placed[0].place, (SchedulePlace{.rank = 0, .position = 1}));
}

TEST(ScheduleCheck, WantsOneOrderPerRank) {
  EXPECT_EQ(
      problems_of(kTwoByTwo, {"0F0 0F1 0B0 0B1"}),
      (std::vector<ScheduleProblem>{{.message = "1 orders for 2 ranks", .hint = "give one order a rank"}}));
}

TEST(ScheduleCheck, RefusesAnEmptyShape) {
  EXPECT_EQ(
      problems_of({.ranks = 0}, {}),
      (std::vector<ScheduleProblem>{{.message = "0 ranks: at least 1 is needed", .hint = "give 1 or more"}}));
}

TEST(ScheduleCheck, StopsAfterTwentyProblems) {
  const auto problems = problems_of({.ranks = 1, .micro_batches = 1 << 24}, {""});
  ASSERT_EQ(problems.size(), 21u);
  EXPECT_EQ(problems.back().message, "and more problems like these");
}

TEST(PeakInFlight, CountsForwardsUntilTheirBackwardOrWeightGradient) {
  // Rank 0 holds 0, then 0 and 1, then 1. Rank 1 frees micro-batch 0 at W, not at I, so it holds two as well.
  const Schedule schedule = written(kTwoByTwo, {"0F0 0F1 0B0 0B1", "1F0 1I0 1F1 1W0 1B1"});
  EXPECT_EQ(peak_in_flight(schedule), (std::vector<int>{2, 2}));
  EXPECT_EQ(peak_in_flight(written(kTwoByTwo, {"0F0 0B0 0F1 0B1", ""})), (std::vector<int>{1, 0}));
}

TEST(PeakInFlight, CountsARecomputedChunkOnce) {
  EXPECT_EQ(peak_in_flight(written({.ranks = 1, .micro_batches = 1}, {"0F0 0R0 0B0"})), std::vector<int>{1});
}

}  // namespace
}  // namespace stagecraft
