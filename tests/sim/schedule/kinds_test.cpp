// The table of schedules, what each refuses, and small orders written out.
#include <gtest/gtest.h>

#include <climits>
#include <set>
#include <tuple>

#include "base/check.hpp"
#include "sim/schedule/gpipe.hpp"
#include "sim/schedule/interleaved.hpp"
#include "sim/schedule/interleaved_group.hpp"
#include "sim/schedule/notation.hpp"
#include "sim/schedule/one_f_one_b.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

std::vector<std::string> orders_of(std::string_view name, const PipelineShape& shape) {
  std::vector<std::string> orders;
  for (const auto& order : generate(*find_schedule(name), shape).ranks)
    orders.push_back(print_actions(order));
  return orders;
}

ScheduleProblem refusal_of(std::string_view name, const PipelineShape& shape) {
  const auto problem = find_schedule(name)->constraint(shape);
  if (!problem) ADD_FAILURE() << name << " accepts it";
  return problem.value_or(ScheduleProblem{});
}

TEST(ScheduleKinds, HoldsEveryNameOnce) {
  std::set<std::string_view> names;
  for (const ScheduleKind& kind : schedule_kinds()) EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
  const std::set<std::string_view> expected{"gpipe",
                                            "1f1b",
                                            "interleaved-1f1b",
                                            "interleaved-pytorch",
                                            "interleaved-group",
                                            "looped-bfs",
                                            "zb-h1",
                                            "interleaved-zb",
                                            "zb-h2",
                                            "zb-2p",
                                            "zb-v",
                                            "v-half",
                                            "v-min",
                                            "1f1b-v",
                                            "dualpipe",
                                            "dualpipe-v",
                                            "chimera",
                                            "hanayo",
                                            "varuna",
                                            "pipedream-2bw",
                                            "pipemare"};
  EXPECT_EQ(names, expected);
}

TEST(ScheduleKinds, SaysWhatEachIsAndWhereItComesFrom) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    SCOPED_TRACE(kind.name);
    EXPECT_FALSE(kind.summary.empty());
    EXPECT_NE(kind.citation.find("arXiv"), std::string_view::npos);
  }
}

TEST(ScheduleKinds, FindsBuiltSchedulesByTheirNameOnly) {
  for (const ScheduleKind& kind : schedule_kinds()) EXPECT_EQ(find_schedule(kind.name), &kind);
  EXPECT_EQ(find_schedule("1F1B"), nullptr);
  EXPECT_EQ(find_schedule(""), nullptr);
}

TEST(ScheduleKinds, GenerateNothingForAShapeThatTheirConstraintRefuses) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    EXPECT_THROW(std::ignore = generate(kind, {.ranks = 0}), InternalError) << kind.name;
  }
}

TEST(ScheduleKinds, GiveNoOrderForARankThatIsNotThere) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 4};
  const PipelineShape chunked{.ranks = 2, .micro_batches = 4, .chunks = 2};
  for (const int rank : {-1, 2}) {
    EXPECT_THROW(std::ignore = gpipe(shape, rank), InternalError);
    EXPECT_THROW(std::ignore = one_f_one_b(shape, rank), InternalError);
    EXPECT_THROW(std::ignore = interleaved(chunked, rank), InternalError);
    EXPECT_THROW(std::ignore = interleaved_group(chunked, rank), InternalError);
  }
}

TEST(ScheduleKinds, RefuseNumbersBelowOneAndOrdersTooLongToHold) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    SCOPED_TRACE(kind.name);
    const int v = kind.chunked ? 2 : 1;
    EXPECT_EQ(refusal_of(kind.name, {.ranks = 0, .micro_batches = 4, .chunks = v}).message,
              "0 ranks: at least 1 is needed");
    EXPECT_EQ(refusal_of(kind.name, {.ranks = 2, .micro_batches = -3, .chunks = v}).message,
              "-3 micro-batches: at least 1 is needed");
    EXPECT_EQ(refusal_of(kind.name, {.ranks = 2, .micro_batches = 4, .chunks = 0}).message,
              "0 chunks a rank: at least 1 is needed");
    EXPECT_EQ(refusal_of(kind.name, {.ranks = 2, .micro_batches = 4, .chunks = v, .group = -1}).message,
              "-1 micro-batches a group: at least 0 is needed");
    EXPECT_EQ(refusal_of(kind.name, {.ranks = 4, .micro_batches = 1 << 24, .chunks = v}).message,
              std::to_string(4 * v) +
                  " stages times 16777216 micro-batches is more than the 16777216 that an order may hold");
    EXPECT_EQ(refusal_of(kind.name, {.ranks = INT_MAX, .micro_batches = INT_MAX, .chunks = INT_MAX}).hint,
              "give fewer micro-batches, ranks or chunks");
  }
}

TEST(GPipe, RunsAllForwardsThenAllBackwards) {
  EXPECT_EQ(orders_of("gpipe", {.ranks = 2, .micro_batches = 3}),
            (std::vector<std::string>{"0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"}));
}

TEST(OneFOneB, AlternatesAfterAWarmUpOfTheRanksBehind) {
  EXPECT_EQ(orders_of("1f1b", {.ranks = 3, .micro_batches = 4}),
            (std::vector<std::string>{"0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3", "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3",
                                      "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3"}));
}

TEST(OneFOneB, RunsWithFewerMicroBatchesThanRanks) {
  EXPECT_EQ(orders_of("1f1b", {.ranks = 3, .micro_batches = 1}),
            (std::vector<std::string>{"0F0 0B0", "1F0 1B0", "2F0 2B0"}));
}

TEST(OneFOneB, RefusesChunksAndGroupsInsteadOfIgnoringThem) {
  EXPECT_EQ(refusal_of("1f1b", {.ranks = 2, .micro_batches = 4, .chunks = 2}),
            (ScheduleProblem{.message = "2 chunks a rank: 1f1b runs 1",
                             .hint = "use 1 chunk a rank, or interleaved-1f1b"}));
  EXPECT_EQ(refusal_of("chimera", {.ranks = 4, .micro_batches = 4, .chunks = 2}).hint,
            "use 1 chunk a rank, or dualpipe-v");
  EXPECT_EQ(
      refusal_of("gpipe", {.ranks = 2, .micro_batches = 4, .group = 2}),
      (ScheduleProblem{.message = "a micro-batch group of 2: gpipe has no groups to choose",
                       .hint = "leave the group out, or use interleaved-1f1b with 2 or more chunks a rank"}));
}

TEST(ChunkTable, VisitsEachChunkWithAGroupBeforeTheNextGroup) {
  const std::vector<ChunkStep> expected{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {1, 2}};
  EXPECT_EQ(chunk_table(3, 2, 2), expected);
}

// Two ranks, two chunks: rank 0 has stages 0 and 2, rank 1 stages 1 and 3. Warm-up 2(2-1-r) + (2-1)*2: 4 and
// 2 forwards.
TEST(Interleaved, TakesItsGroupThroughBothChunksAndBack) {
  const std::vector<std::string> expected{"0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1",
                                          "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"};
  EXPECT_EQ(orders_of("interleaved-1f1b", {.ranks = 2, .micro_batches = 2, .chunks = 2}), expected);
}

TEST(Interleaved, TakesTheRanksAsItsDefaultGroup) {
  EXPECT_EQ(orders_of("interleaved-1f1b", {.ranks = 4, .micro_batches = 8, .chunks = 2}),
            orders_of("interleaved-1f1b", {.ranks = 4, .micro_batches = 8, .chunks = 2, .group = 4}));
}

TEST(Interleaved, SendsOneChunkARankTo1F1B) {
  EXPECT_EQ(refusal_of("interleaved-1f1b", {.ranks = 4, .micro_batches = 8}),
            (ScheduleProblem{.message = "1 chunk a rank: interleaved-1f1b needs at least 2",
                             .hint = "use 1f1b, or 2 or more chunks a rank"}));
}

TEST(Interleaved, RefusesFewerMicroBatchesThanRanks) {
  EXPECT_EQ(refusal_of("interleaved-1f1b", {.ranks = 4, .micro_batches = 3, .chunks = 2}),
            (ScheduleProblem{
                .message = "3 micro-batches are fewer than the 4 ranks",
                .hint = "4 micro-batches in groups of 4 would be legal; or use 1f1b with 1 chunk a rank"}));
}

TEST(Interleaved, RefusesAGroupBelowTheRanksOrAboveTheMicroBatches) {
  EXPECT_EQ(refusal_of("interleaved-1f1b", {.ranks = 4, .micro_batches = 10, .chunks = 2, .group = 3}),
            (ScheduleProblem{.message = "micro-batch group 3 is smaller than the 4 ranks",
                             .hint = "micro-batch group 5 would be legal"}));
  EXPECT_EQ(refusal_of("interleaved-1f1b", {.ranks = 4, .micro_batches = 10, .chunks = 2, .group = 12}),
            (ScheduleProblem{.message = "micro-batch group 12 is larger than the 10 micro-batches",
                             .hint = "micro-batch group 10 would be legal"}));
}

// 10 = 4 + 4 + 2 leaves 2 for 4 ranks; 5 + 5 and 6 + 4 are whole enough, as are 4 + 4 and 4 + 4 + 4.
TEST(Interleaved, RefusesALastGroupShorterThanThePipeline) {
  EXPECT_EQ(refusal_of("interleaved-1f1b", {.ranks = 4, .micro_batches = 10, .chunks = 2}),
            (ScheduleProblem{
                .message = "10 micro-batches in groups of 4 leave a last group of 2, fewer than the 4 ranks: "
                           "that adds bubble or deadlocks",
                .hint = "micro-batch group 5 would be legal, or 8 or 12 micro-batches"}));
  EXPECT_EQ(refusal_of("interleaved-1f1b", {.ranks = 4, .micro_batches = 10, .chunks = 2, .group = 8}).hint,
            "micro-batch group 6 or 10 would be legal, or 8 or 12 micro-batches");
}

// Group 1 of two ranks: w = (2-1-r) + (2-1)*1, so 2 and 1 forwards, then F, I, W in turn.
TEST(InterleavedGroup, RunsWRightAfterI) {
  const std::vector<std::string> expected{"0F0 2F0 0F1 2I0 2W0 2F1 0I0 0W0 2I1 2W1 0I1 0W1",
                                          "1F0 3F0 3I0 3W0 1F1 1I0 1W0 3F1 3I1 3W1 1I1 1W1"};
  EXPECT_EQ(orders_of("interleaved-group", {.ranks = 2, .micro_batches = 2, .chunks = 2, .group = 1}),
            expected);
}

TEST(InterleavedGroup, RefusesGroupsOutsideHalfTheRanksToAll) {
  EXPECT_EQ(
      refusal_of("interleaved-group", {.ranks = 5, .micro_batches = 10, .chunks = 2, .group = 2}),
      (ScheduleProblem{.message = "micro-batch group 2 lies outside 3 to 5, half the 5 ranks to all of them",
                       .hint = "give 3 to 5"}));
  EXPECT_EQ(refusal_of("interleaved-group", {.ranks = 5, .micro_batches = 10, .chunks = 2, .group = 6}).hint,
            "give 3 to 5, or use interleaved-1f1b for larger groups");
  EXPECT_EQ(refusal_of("interleaved-group", {.ranks = 5, .micro_batches = 10}).message,
            "1 chunk a rank: interleaved-group needs at least 2");
}

}  // namespace
}  // namespace stagecraft
