// evaluate(): the lengths of orders that a person can draw, and of every published order that we have.
#include "sim/schedule/evaluate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "tests/sim/schedule/actions_of.hpp"
#include "tests/sim/schedule/order_files.hpp"

namespace stagecraft {
namespace {

// System: 2 ranks, 2 micro-batches, 1F1B, F = 1, B = 2.
//   rank 0: F0 F1 .. B0 .. .. B1 ..     rank 1 starts at 1: F0 B0 B0 F1 B1 B1
// Expectations: rank 1 ends at 1 + 6 = 7; rank 0's last backward takes 7..9; each rank works 6.
TEST(Evaluate, GivesTheLengthsOfOneFOneBDrawnByHand) {
  const Schedule schedule{.name = "",
                          .shape = {.ranks = 2, .micro_batches = 2},
                          .ranks = {actions_of("0F0 0F1 0B0 0B1"), actions_of("1F0 1B0 1F1 1B1")}};
  const Evaluation expected{.makespan = 9, .span = 9, .busy = {6, 6}, .peak_in_flight = {2, 1}};
  EXPECT_EQ(evaluate(schedule), expected);
}

// With a message of 10, F0 arrives at 11, its gradient leaves at 14 and arrives at 24, B0 ends at 26; F1 ran
// 14..15 on rank 1, its gradient leaves at 17 and arrives at 27, so B1 takes 27..29.
TEST(Evaluate, AddsTheMessageToWhatCrossesRanks) {
  const Schedule schedule{.name = "",
                          .shape = {.ranks = 2, .micro_batches = 2},
                          .ranks = {actions_of("0F0 0F1 0B0 0B1"), actions_of("1F0 1B0 1F1 1B1")}};
  const Evaluation result = evaluate(schedule, {.message = 10});
  EXPECT_EQ(result.makespan, 29);
  EXPECT_EQ(result.span, 29);
}

// The gradient leaves after I: rank 0's I takes 3..4 while rank 1 runs its W.
TEST(Evaluate, LetsTheGradientLeaveAfterTheInputGradient) {
  const Schedule schedule{.name = "",
                          .shape = {.ranks = 2, .micro_batches = 1},
                          .ranks = {actions_of("0F0 0I0 0W0"), actions_of("1F0 1I0 1W0")}};
  EXPECT_EQ(evaluate(schedule).makespan, 5);
  EXPECT_EQ(evaluate(schedule).span, 5);
  EXPECT_EQ(evaluate(schedule, {.stages = {{1, 1, 7}}}).makespan, 3 + 8);
  EXPECT_EQ(evaluate(schedule, {.stages = {{1, 1, 7}, {1, 1, 20}}}).makespan, 2 + 1 + 20);
  EXPECT_EQ(evaluate(schedule, {.stages = {{1, 1, 7}, {1, 1, 20}}}).span, 22) << "rank 1 starts at 1";
}

// On a V the last stage is on rank 0 and the turn on rank 1 costs no message.
TEST(Evaluate, SendsNoMessageWhereNeighbouringStagesShareARank) {
  const Schedule schedule{.name = "",
                          .shape = {.ranks = 2, .micro_batches = 1, .chunks = 2},
                          .placement = Placement::kV,
                          .ranks = {actions_of("0F0 3F0 3B0 0B0"), actions_of("1F0 2F0 2B0 1B0")}};
  EXPECT_EQ(evaluate(schedule).makespan, 4 + 8);
  EXPECT_EQ(evaluate(schedule, {.message = 5}).makespan, 4 + 8 + 4 * 5);
}

// A fused pair starts when both may start and lets both go at its end: 0F1 with 0B0 at 4, for 3/4 of 1 + 2.
TEST(Evaluate, RunsAFusedPairAsOne) {
  Schedule schedule{
      .name = "", .shape = {.ranks = 1, .micro_batches = 2}, .ranks = {actions_of("0F0 0F1 0B0 0B1")}};
  schedule.ranks[0][1].fused = true;
  const ScheduleCosts costs{.stages = {{4, 4, 4}}, .fused = 0.75};
  EXPECT_EQ(evaluate(schedule, costs).makespan, 4 + 9 + 8);
  EXPECT_EQ(evaluate(schedule, costs).busy, std::vector<std::int64_t>{21});
}

// What a pair takes may be said as a time: of whatever passes it is made, split ones or of no length as well.
TEST(Evaluate, RunsEveryFusedPairForTheTimeOfAPair) {
  Schedule schedule{
      .name = "", .shape = {.ranks = 1, .micro_batches = 2}, .ranks = {actions_of("0F0 0F1 0I0 0W0 0B1")}};
  schedule.ranks[0][1].fused = true;
  EXPECT_EQ(evaluate(schedule, {.stages = {{4, 4, 4}}, .pair = 5}).makespan, 4 + 5 + 4 + 8);
  EXPECT_EQ(evaluate(schedule, {.stages = {{0, 0, 0}}, .pair = 5}).makespan, 5);
  EXPECT_EQ(evaluate(schedule, {.stages = {{4, 4, 4}}, .pair = 0}).makespan, 4 + 0 + 4 + 8);
}

TEST(Evaluate, FindsADeadlock) {
  const Schedule schedule{.name = "",
                          .shape = {.ranks = 2, .micro_batches = 1},
                          .ranks = {actions_of("0B0 0F0"), actions_of("1F0 1B0")}};
  EXPECT_THROW((void)evaluate(schedule), InternalError);
}

// Golden: makespan, span, work and peak of every published order, as an independent checker computed them.
class PublishedLengths : public testing::TestWithParam<std::string> {};

TEST_P(PublishedLengths, AreThoseOfTheFile) {
  const OrderText file = read_order_text(GetParam());
  const Schedule schedule = schedule_of(file);
  ASSERT_EQ(check(schedule), std::vector<ScheduleProblem>{});
  const Evaluation result = evaluate(schedule, {.stages = {{1, 1, 1, 1}}});
  EXPECT_EQ(result.makespan, file.uniform("makespan"));
  EXPECT_EQ(result.span, file.uniform("span"));
  EXPECT_EQ(std::ranges::max(result.busy), file.uniform("ideal"));
  EXPECT_EQ(result.peak_in_flight, file.peaks());
}

INSTANTIATE_TEST_SUITE_P(Orders, PublishedLengths, testing::ValuesIn(all_order_files()),
                         [](const auto& file) { return name_of_test(file.param); });

}  // namespace
}  // namespace stagecraft
