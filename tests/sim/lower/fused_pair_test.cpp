#include "sim/lower/fused_pair.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "sim/engine/engine.hpp"
#include "sim/lower/lower.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

PassPrice pass(Category compute, std::int64_t computes, std::int64_t tensor, std::int64_t expert) {
  PassPrice price;
  price.add(compute, Duration(computes), Provenance::kMeasured);
  price.add(Category::kTensorComm, Duration(tensor), Provenance::kMeasured);
  price.add(Category::kExpertComm, Duration(expert), Provenance::kMeasured);
  return price;
}

// Both passes on devices of one kind.
PairTimes times_on_one_kind(const PassPrice& first, const PassPrice& second, const FusedPairRule& rule) {
  return fused_pair_times(first, rule, second, rule);
}

Duration sum_of(const std::vector<TaskPart>& parts) {
  Duration sum{};
  for (const TaskPart& part : parts) sum += part.time;
  return sum;
}

// 100 + 50 beside 200 + 80, compute 1.25 times slower beside traffic: of the forward's 50 the backward's
// compute covers 40, of the backward's 80 the forward's covers 64.
TEST(FusedPair, HidesTrafficBehindTheOtherPass) {
  const PassPrice forward = pass(Category::kForward, 100, 20, 30),
                  backward = pass(Category::kBackward, 200, 0, 80);
  const PairTimes times = times_on_one_kind(forward, backward, {.slowdown = 1.25});
  EXPECT_EQ(times.first, Duration(110));
  EXPECT_EQ(times.second, Duration(216));
  const std::vector<TaskPart> parts = parts_in_pair(forward, times.first, {.slowdown = 1.25});
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].time, Duration(100));  // compute is not shorter
  EXPECT_EQ(parts[1].time, Duration(4));    // of 20
  EXPECT_EQ(parts[2].time, Duration(6));    // of 30
}

// 38 of 100 ns of tensor traffic hide, 80 of 100 ns of other traffic, and never more than beside the pair's
// slowdown.
TEST(FusedPair, HidesLessOfTensorTraffic) {
  const PassPrice forward = pass(Category::kForward, 1000, 100, 100),
                  backward = pass(Category::kBackward, 1000, 0, 0);
  const auto lasts = [&](double overlap) {
    return times_on_one_kind(forward, backward, {.slowdown = 1.25, .tensor_overlap = overlap}).first;
  };
  EXPECT_EQ(lasts(0.38), Duration(1200 - 38 - 80));
  EXPECT_EQ(lasts(0.9), Duration(1200 - 80 - 80));
}

// Of 50 ns of traffic of each the slower kind hides 25, the other 40.
TEST(FusedPair, HidesOfEachPassWhatItsDevicesHide) {
  const PassPrice forward = pass(Category::kForward, 100, 0, 50),
                  backward = pass(Category::kBackward, 100, 0, 50);
  const PairTimes times = fused_pair_times(forward, {.slowdown = 2}, backward, {.slowdown = 1.25});
  EXPECT_EQ(times.first, Duration(125));
  EXPECT_EQ(times.second, Duration(110));
}

// Exchanges that last as long as the compute are paid for by the slowdown alone: 20 of 132 multiprocessors
// (DeepSeek-V3, section 3.2.2) make 16 % of them.
TEST(FusedPair, OfEqualComputeAndTrafficTakesTheSlowdownOnly) {
  const PassPrice forward = pass(Category::kForward, 112'000, 0, 112'000);
  const PassPrice backward = pass(Category::kBackward, 112'000, 0, 112'000);
  const PairTimes times = times_on_one_kind(forward, backward, {.slowdown = 132.0 / 112.0});
  EXPECT_EQ(times.first + times.second, Duration(2 * (112'000 + 112'000 * 20 / 132 + 1)));
}

// Nothing but what the other pass computes can cover traffic.
TEST(FusedPair, HidesNoMoreThanThereIsCompute) {
  const PassPrice forward = pass(Category::kForward, 10, 0, 1000),
                  backward = pass(Category::kBackward, 30, 0, 5);
  const PairTimes times = times_on_one_kind(forward, backward, {.slowdown = 1});
  EXPECT_EQ(times.first, Duration(1010 - 30));
  EXPECT_EQ(times.second, Duration(30));
}

TEST(FusedPair, TakesAShareOfTheSumWhereOneIsGiven) {
  const PassPrice forward = pass(Category::kForward, 100, 20, 30),
                  backward = pass(Category::kBackward, 201, 0, 80);
  const FusedPairRule rule{.share = 0.5, .slowdown = 1.25};
  const PairTimes times = times_on_one_kind(forward, backward, rule);
  EXPECT_EQ(times.first + times.second, Duration(216));  // 215.5
  EXPECT_EQ(sum_of(parts_in_pair(backward, times.second, rule)), times.second);
}

TEST(FusedPair, LastsBetweenTheLongerPassAndTheSum) {
  std::mt19937 random(20261122);
  std::uniform_int_distribution<std::int64_t> any(0, 1000);
  std::uniform_real_distribution<double> slowdown(1, 2), overlap(0, 1);
  for (int i = 0; i < 20'000; ++i) {
    const PassPrice first = pass(Category::kForward, any(random), any(random), any(random));
    const PassPrice second = pass(Category::kBackward, any(random), any(random), any(random));
    const FusedPairRule rule{.slowdown = slowdown(random), .tensor_overlap = overlap(random)};
    const PairTimes times = times_on_one_kind(first, second, rule);
    ASSERT_LE(times.first + times.second, first.total() + second.total());
    ASSERT_GE(times.first + times.second, std::max(first.total(), second.total()));
    ASSERT_GE(times.first, least_in_pair(first, rule));
    ASSERT_GE(times.second, least_in_pair(second, rule));
    ASSERT_EQ(sum_of(parts_in_pair(first, times.first, rule)), times.first);
    ASSERT_EQ(sum_of(parts_in_pair(second, times.second, rule)), times.second);
  }
}

// Neighbours hide exchanges of experts alone; what is sent otherwise is no room either.
TEST(FusedPair, OfNeighboursHidesExchangesOfExperts) {
  PassPrice forward = pass(Category::kForward, 100, 30, 50), backward = pass(Category::kBackward, 40, 30, 50);
  const FusedPairRule rule{.neighbours = true, .slowdown = 1.25};
  const PairTimes times = times_on_one_kind(forward, backward, rule);
  EXPECT_EQ(times.first, forward.total() - Duration(40));  // 50 / 1.25, which 40 of compute hide
  EXPECT_EQ(times.second, backward.total() - Duration(40));
  const std::vector<TaskPart> parts = parts_in_pair(forward, times.first, rule);
  EXPECT_EQ(sum_of(parts), times.first);
  for (const TaskPart& part : parts) {
    const auto category = static_cast<Category>(part.category);
    EXPECT_EQ(part.time, category == Category::kExpertComm ? Duration(10) : forward.of(category));
  }
  EXPECT_LE(least_in_pair(forward, rule), times.first);
}

// It lasts as long as its copies or its host, whatever is hidden; its partner hides as much as before.
TEST(FusedPair, HidesNothingOfAPassThatWaits) {
  PassPrice forward = pass(Category::kForward, 100, 30, 50), backward = pass(Category::kBackward, 40, 30, 50);
  const Duration usual = times_on_one_kind(forward, backward, {.slowdown = 1.25}).second;
  forward.add(Category::kOther, Duration(7), Provenance::kAnalytic);
  forward.keep_at_least(forward.total());
  for (const bool neighbours : {false, true}) {
    const FusedPairRule rule{.neighbours = neighbours, .slowdown = 1.25};
    const PairTimes times = times_on_one_kind(forward, backward, rule);
    EXPECT_EQ(times.first, forward.total());
    EXPECT_EQ(sum_of(parts_in_pair(forward, times.first, rule)), times.first);
    EXPECT_LE(least_in_pair(forward, rule), times.first);
    if (!neighbours) {
      EXPECT_LE(times.second, usual);
    }
  }
}

// 40 of the traffic would hide; the host launches the pass in 170 of its 180.
TEST(FusedPair, IsNoShorterThanItsHost) {
  PassPrice forward = pass(Category::kForward, 100, 30, 50), backward = pass(Category::kBackward, 400, 0, 0);
  const FusedPairRule rule{.neighbours = true, .slowdown = 1.25};
  EXPECT_EQ(times_on_one_kind(forward, backward, rule).first, Duration(140));
  forward.keep_at_least(Duration(170));
  EXPECT_EQ(times_on_one_kind(forward, backward, rule).first, Duration(170));
  EXPECT_LE(least_in_pair(forward, rule), Duration(140)) << "a part of a pass alone does not wait";
  PassPrice both = forward;
  both.add(pass(Category::kForward, 100, 0, 40));
  EXPECT_EQ(both.least(), Duration(170));
  EXPECT_EQ(times_on_one_kind(both, backward, rule).first, both.total() - Duration(72));
}

// 64 of the exchanges of experts would hide; 30 are in a layer that waits for its host, then 30 more. The tensor
// traffic of another layer, which does not wait, frees none of them.
TEST(FusedPair, HidesNothingInLayersThatWait) {
  PassPrice forward = pass(Category::kForward, 100, 30, 50), backward = pass(Category::kBackward, 400, 0, 0);
  const FusedPairRule rule{.neighbours = true, .slowdown = 1.25};
  PassPrice waits = pass(Category::kForward, 100, 0, 30);
  waits.bind_exchanges(waits.exchanges(), waits.exchanges());
  forward.add(waits);
  EXPECT_EQ(forward.free_exchanges(), Duration(80));
  EXPECT_EQ(forward.free_exchanges_of_experts(), Duration(50));
  EXPECT_EQ(times_on_one_kind(forward, backward, rule).first, forward.total() - Duration(50));
  EXPECT_EQ(times_on_one_kind(forward, backward, {.slowdown = 1.25}).first, forward.total() - Duration(80));
  forward.bind_exchanges(Duration(30), Duration(30));
  EXPECT_EQ(times_on_one_kind(forward, backward, rule).first, forward.total() - Duration(20));
}

// Software that says how much of them hides: 0.4 of 50, and where it hides nothing, nothing.
TEST(FusedPair, OfNeighboursHidesWhatTheSoftwareDoes) {
  const PassPrice forward = pass(Category::kForward, 100, 30, 50),
                  backward = pass(Category::kBackward, 40, 30, 50);
  FusedPairRule rule{.neighbours = true, .expert_overlap = 0.4, .slowdown = 1.25};
  EXPECT_EQ(times_on_one_kind(forward, backward, rule).first, forward.total() - Duration(20));
  EXPECT_LE(least_in_pair(forward, rule), forward.total() - Duration(20));
  rule.expert_overlap = 0;
  EXPECT_EQ(times_on_one_kind(forward, backward, rule).first, forward.total());
}

// The whole of an order: what is on no pair's rank keeps its price.
TEST(FusedPair, ShortensDualPipeByWhatItHides) {
  const PipelineShape shape{.ranks = 4, .micro_batches = 8, .chunks = 2};
  const Schedule schedule = generate(*find_schedule("dualpipe-v"), shape);
  IterationPrices prices;
  prices.ranks.resize(4);
  prices.edges.resize(8);
  for (int stage = 0; stage < 8; ++stage)
    prices.stages.push_back({{.forward = pass(Category::kForward, 100, 0, 50),
                              .recompute = {},
                              .input_gradient = pass(Category::kBackward, 100, 0, 50),
                              .weight_gradient = pass(Category::kBackward, 100, 0, 0)}});
  const auto makespan = [&](const std::vector<FusedPairRule>& pairs) {
    return run(lower(schedule, prices, {.pairs = pairs})).makespan;
  };
  const auto on_all = [](const FusedPairRule& rule) { return std::vector<FusedPairRule>(8, rule); };
  const Duration apart = makespan({}), beside = makespan(on_all({.slowdown = 1.25}));
  EXPECT_EQ(makespan(on_all({.share = 1})), apart);
  int fewest = 1000;  // pairs of a rank, each of which hides 40 + 40
  for (const std::vector<Action>& order : schedule.ranks)
    fewest = std::min(fewest, static_cast<int>(std::ranges::count_if(order, &Action::fused)));
  EXPECT_GT(fewest, 0);
  EXPECT_LE(beside, apart - 80 * fewest * Duration(1) + Duration(4 * 150));
  EXPECT_GE(beside, apart - 80 * 16 * Duration(1));
}

}  // namespace
}  // namespace stagecraft
