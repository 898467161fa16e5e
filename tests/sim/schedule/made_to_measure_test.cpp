// Schedules that look at what passes last: never an invalid order, never more memory than allowed, and the
// figures of their papers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/schedule/evaluate.hpp"
#include "sim/schedule/notation.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/v_schedules.hpp"
#include "sim/schedule/zb_auto.hpp"
#include "sim/schedule/zb_v_auto.hpp"
#include "tests/sampling.hpp"
#include "tests/sim/schedule/order_files.hpp"
#include "tests/sim/schedule/random_pick.hpp"

namespace stagecraft {
namespace {

// Costs alike for all stages or one each, a message now and then, a limit from what one micro-batch needs
// upwards.
ScheduleCosts random_costs(Random& random, const PipelineShape& shape) {
  ScheduleCosts costs{.message = pick(random, 0, pick(random, 0, 10)),
                      .memory_limit = pick(random, shape.chunks, 2 * shape.ranks + 2)};
  const int stages = pick(random, 0, 1) == 0 ? 1 : shape.ranks * shape.chunks;
  const int longest = pick(random, 1, 20);
  for (int stage = 0; stage < stages; ++stage) {
    costs.stages.push_back({pick(random, 1, longest), pick(random, 1, longest), pick(random, 1, longest)});
  }
  return costs;
}

ScheduleCosts times(ScheduleCosts costs, int factor) {
  for (StageCosts& stage : costs.stages) {
    stage.forward *= factor;
    stage.input_gradient *= factor;
    stage.weight_gradient *= factor;
  }
  costs.message *= factor;
  return costs;
}

int peak_of(const Schedule& schedule) {
  return std::ranges::max(peak_in_flight(schedule));
}

// Property: 10,000 random sizes, costs and limits.
TEST(ZeroBubbleRules, GiveAValidOrderWithinTheLimitForAnyCosts) {
  Random random(1);
  for (int i = 0; i < sampled_count(10'000); ++i) {
    const PipelineShape shape{.ranks = pick(random, 1, 6), .micro_batches = pick(random, 1, 12)};
    const ScheduleCosts costs = random_costs(random, shape);
    const Schedule schedule = zb_2p(shape, costs);
    ASSERT_EQ(check(schedule), std::vector<ScheduleProblem>{}) << "case " << i;
    ASSERT_LE(peak_of(schedule), costs.memory_limit) << "case " << i;
    if (i % 20 != 0) continue;
    ASSERT_EQ(zb_2p(shape, times(costs, 7)).ranks, schedule.ranks) << "case " << i;
  }
}

TEST(ZeroBubbleVRules, GiveAValidOrderWithinTheLimitForAnyCosts) {
  Random random(2);
  for (int i = 0; i < sampled_count(10'000); ++i) {
    const PipelineShape shape{.ranks = pick(random, 1, 4), .micro_batches = pick(random, 1, 7), .chunks = 2};
    const ScheduleCosts costs = random_costs(random, shape);
    const auto schedule = zb_v_auto(SplitPipeline::of(shape, Placement::kV, costs, 2 * shape.ranks));
    ASSERT_TRUE(schedule.has_value()) << "case " << i;
    ASSERT_EQ(check(*schedule), std::vector<ScheduleProblem>{}) << "case " << i;
    ASSERT_LE(peak_of(*schedule), costs.memory_limit) << "case " << i;
    if (i % 20 != 0) continue;
    const auto scaled = zb_v_auto(SplitPipeline::of(shape, Placement::kV, times(costs, 7), 2 * shape.ranks));
    ASSERT_TRUE(scaled.has_value());
    ASSERT_EQ(scaled->ranks, schedule->ranks) << "case " << i;
  }
}

// Left to itself zb-h2 holds 2p-1 chunks at most, and at equal times zb-2p 2p.
TEST(ZeroBubbleRules, HoldWhatTheirNamesSay) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 3 * p + 2; ++m) {
      const PipelineShape shape{.ranks = p, .micro_batches = m};
      SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m);
      EXPECT_LE(peak_of(zb_h2(shape, {.stages = {{3, 2, 1}}})), 2 * p - 1);
      EXPECT_LE(peak_of(zb_2p(shape, {})), 2 * p);
      if (m < 2 * p - 1) continue;
      EXPECT_EQ(evaluate(zb_h2(shape, {})).span, 3 * m) << "no bubble in the span";
      EXPECT_EQ(evaluate(zb_2p(shape, {})).span, 3 * m);
      EXPECT_EQ(evaluate(zb_2p(shape, {})).makespan, 3 * m + p - 1);
    }
  }
}

TEST(ZeroBubbleRules, RefuseWhatTheyCannotOrder) {
  for (const std::string name : {"zb-h2", "zb-2p"}) {
    const ScheduleKind& kind = *find_schedule(name);
    EXPECT_EQ(kind.constraint({.ranks = 4, .micro_batches = 1}), std::nullopt);
    const auto chunks = kind.constraint({.ranks = 4, .micro_batches = 8, .chunks = 2});
    ASSERT_TRUE(chunks.has_value());
    EXPECT_EQ(chunks->message, "2 chunks a rank: " + name + " runs 1");
    EXPECT_TRUE(kind.constraint({.ranks = 4, .micro_batches = 0}).has_value());
  }
}

double bubble_rate(const Schedule& schedule, const ScheduleCosts& costs) {
  const Evaluation result = evaluate(schedule, costs);
  return static_cast<double>(result.span - std::ranges::max(result.busy)) / static_cast<double>(result.span);
}

// Paper: Qi et al., ICLR'24, table 5 from the profiled times of table 9. rate = (span - work)/span, and with
// the memory of 1F1B the searched order, ZB-1p, has the printed rate of ZB-H1.
TEST(ZeroBubbleRules, ReachThePrintedBubbleRatesOfZb1pWithTheMemoryOfOneFOneB) {
  struct Row {
    int stages, micro_batches;
    StageCosts costs;  // microseconds
    std::int64_t message;
    double printed;
  };
  const std::vector<Row> rows{
      {8, 24, {18522, 18086, 9337}, 601, 0.1585},  {8, 32, {18513, 18086, 9331}, 626, 0.1242},
      {8, 64, {18546, 18097, 9321}, 762, 0.0674},  {16, 48, {11347, 11248, 8132}, 377, 0.1397},
      {16, 64, {11307, 11254, 8101}, 379, 0.1088}, {16, 128, {11325, 11308, 8109}, 378, 0.0576}};
  for (const Row& row : rows) {
    const PipelineShape shape{.ranks = row.stages, .micro_batches = row.micro_batches};
    const ScheduleCosts costs{.stages = {row.costs}, .message = row.message, .memory_limit = row.stages};
    EXPECT_NEAR(bubble_rate(zb_2p(shape, costs), costs), row.printed, 0.00005)
        << "p=" << row.stages << " m=" << row.micro_batches;
  }
}

// What the published program gives at these costs: 9.2, 11.3, 11.6 % with the limit p, and 0.20, 0.25, 0.26 %
// with 2p where half of an activation is counted as freed by I. Table 5 prints 0.0433 for ZB-2P with 8 stages
// and 24 micro-batches. Kept until its W, 2p chunks cannot do so well: the search proves it
// (search_test.cpp).
TEST(ZeroBubbleRules, MatchThePublishedProgramAtMeasuredCosts) {
  struct Row {
    int stages, micro_batches;
    double limit_p, limit_2p;
  };
  for (const Row& row :
       {Row{4, 16, 0.092, 0.0020}, Row{16, 64, 0.113, 0.0025}, Row{32, 128, 0.116, 0.0026}}) {
    const PipelineShape shape{.ranks = row.stages, .micro_batches = row.micro_batches};
    ScheduleCosts costs{.stages = {{29850, 29767, 18868}}, .message = 466};
    EXPECT_NEAR(bubble_rate(zb_2p(shape, costs), costs), row.limit_2p, 0.00005);
    costs.memory_limit = row.stages;
    EXPECT_NEAR(bubble_rate(zb_2p(shape, costs), costs), row.limit_p, 0.0005);
  }
}

// Property: every size up to 16 ranks; the peaks and bubbles of the header.
TEST(VSchedules, HoldWhatTheyPromise) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m <= 2 * p + 4; ++m) {
      const PipelineShape shape{.ranks = p, .micro_batches = m, .chunks = 2};
      SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m);
      const Schedule half = v_half(shape, {});
      const Schedule least = v_min(shape, {});
      const Schedule whole = one_f_one_b_v(shape, {});
      ASSERT_EQ(check(half), std::vector<ScheduleProblem>{});
      ASSERT_EQ(check(least), std::vector<ScheduleProblem>{});
      ASSERT_EQ(check(whole), std::vector<ScheduleProblem>{});
      ASSERT_LE(peak_of(half), 2 * ((p + 2) / 2));
      ASSERT_LE(peak_of(least), 2 * ((p + 4) / 3));
      ASSERT_LE(peak_of(whole), 2 * (2 * p / 3 + 1));
      const auto half_bubble = v_half_bubble(shape, {});
      const auto least_bubble = v_min_bubble(shape, {});
      ASSERT_EQ(evaluate(half).makespan - 6 * m, half_bubble.value_or(evaluate(half).makespan - 6 * m));
      ASSERT_EQ(evaluate(least).makespan - 6 * m, least_bubble.value_or(evaluate(least).makespan - 6 * m));
    }
  }
}

TEST(VSchedules, RefuseWhatIsNoV) {
  for (const std::string name : {"v-half", "v-min", "1f1b-v", "zb-v"}) {
    const ScheduleKind& kind = *find_schedule(name);
    EXPECT_EQ(kind.constraint({.ranks = 3, .micro_batches = 1, .chunks = 2}), std::nullopt);
    const auto problem = kind.constraint({.ranks = 3, .micro_batches = 6, .chunks = 3});
    ASSERT_TRUE(problem.has_value());
    EXPECT_NE(problem->message.find("3 chunks a rank"), std::string::npos) << problem->message;
    EXPECT_NE(problem->hint.find("2"), std::string::npos) << problem->hint;
  }
}

// The kind takes the shorter of the hand-crafted order and the one made to measure.
TEST(ZbV, IsNeverLongerThanTheHandCraftedOrder) {
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    const PipelineShape shape{.ranks = pick(random, 1, 6), .micro_batches = pick(random, 1, 14), .chunks = 2};
    ScheduleCosts costs = random_costs(random, shape);
    costs.memory_limit = 0;
    const Schedule schedule = generate(*find_schedule("zb-v"), shape, costs);
    ASSERT_EQ(check(schedule), std::vector<ScheduleProblem>{});
    ASSERT_LE(peak_of(schedule), 2 * shape.ranks);
    const Schedule crafted = generate(*find_schedule("zb-v"), shape, {});
    ASSERT_LE(evaluate(schedule, costs).span, evaluate(crafted, costs).span) << "case " << i;
  }
}

// Golden: at equal times the rules give the order of the published program, pass for pass.
class PublishedOrder : public testing::TestWithParam<std::string> {};

TEST_P(PublishedOrder, IsWhatOurRulesGive) {
  const OrderText file = read_order_text(GetParam());
  const std::string& name = file.head.at("schedule");
  const Schedule theirs = schedule_of(file);
  Schedule ours;
  if (name == "zb1p_auto") ours = zb_2p(theirs.shape, {.memory_limit = theirs.shape.ranks});
  if (name == "zb_h2_auto") ours = zb_h2(theirs.shape, {});
  if (name == "zb2p_auto") ours = zb_2p(theirs.shape, {});
  if (name == "zbv_auto") {
    ours = zb_v_auto(SplitPipeline::of(theirs.shape, Placement::kV, {}, 2 * theirs.shape.ranks)).value();
  }
  if (name == "v_half") ours = v_half(theirs.shape, {});
  if (name == "v_min") ours = v_min(theirs.shape, {});
  if (name == "1f1b_v") ours = one_f_one_b_v(theirs.shape, {});
  ASSERT_EQ(ours.ranks.size(), theirs.ranks.size()) << name;
  for (std::size_t rank = 0; rank < ours.ranks.size(); ++rank) {
    EXPECT_EQ(print_actions(ours.ranks[rank]), print_actions(theirs.ranks[rank])) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, PublishedOrder, testing::ValuesIn(all_order_files("made_to_measure")),
                         [](const auto& file) { return name_of_test(file.param); });

// Greedy rules that know the costs may be misled by them: 239 where the order for equal passes takes 231.
TEST(Hanayo, IsNoLongerThanItsOrderForPassesThatLastAlike) {
  Random random(7);
  const ScheduleKind& kind = *find_schedule("hanayo");
  for (int i = 0; i < sampled_count(200); ++i) {
    const PipelineShape shape{
        .ranks = pick(random, 1, 8), .micro_batches = pick(random, 1, 10), .chunks = 2 * pick(random, 1, 2)};
    ScheduleCosts costs = random_costs(random, shape);
    costs.memory_limit = 0;
    SCOPED_TRACE(testing::Message() << "case " << i << ": p=" << shape.ranks << " m=" << shape.micro_batches);
    EXPECT_LE(evaluate(generate(kind, shape, costs), costs).makespan,
              evaluate(generate(kind, shape, {}), costs).makespan);
  }
  const PipelineShape reported{.ranks = 8, .micro_batches = 8, .chunks = 2};
  const ScheduleCosts costs{.stages = {{30, 20, 40}}, .message = 1};
  EXPECT_LE(evaluate(generate(kind, reported, costs), costs).makespan, 2314);
}

}  // namespace
}  // namespace stagecraft
