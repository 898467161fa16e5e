#include "calibrate/bench/nccl_points.hpp"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

// Oracle: every rank's input written out, and the collective done on it step by step.
std::vector<std::vector<int>> done_by_hand(Collective collective, int ranks, std::int64_t count) {
  const auto at = [](int rank, std::int64_t i) { return start_value(i, rank); };
  std::vector<std::vector<int>> result(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    auto& mine = result[static_cast<std::size_t>(r)];
    const auto push_sum = [&](std::int64_t i) {
      int sum = 0;
      for (int p = 0; p < ranks; ++p) sum += at(p, i);
      mine.push_back(sum);
    };
    for (std::int64_t i = 0; i < count; ++i) {
      if (collective == Collective::kAllReduce) push_sum(i);
      if (collective == Collective::kReduceScatter) push_sum(r * count + i);
      if (collective == Collective::kBroadcast) mine.push_back(at(0, i));
      if (collective == Collective::kSendReceive) mine.push_back(at(r == 0 ? ranks - 1 : r - 1, i));
    }
    for (int p = 0; p < ranks; ++p)
      for (std::int64_t i = 0; i < count; ++i) {
        if (collective == Collective::kAllGather) mine.push_back(at(p, i));
        if (collective == Collective::kAllToAll) mine.push_back(at(p, r * count + i));
      }
  }
  return result;
}

TEST(ExpectedValue, IsWhatTheCollectiveDoesStepByStep) {
  for (const Collective collective : kCollectives)
    for (int ranks = 1; ranks <= 5; ++ranks)
      for (std::int64_t count = 1; count <= 6; ++count) {
        const auto by_hand = done_by_hand(collective, ranks, count);
        for (int r = 0; r < ranks; ++r) {
          SCOPED_TRACE(testing::Message()
                       << name_of(collective) << " ranks=" << ranks << " count=" << count << " rank=" << r);
          const auto& mine = by_hand[static_cast<std::size_t>(r)];
          ASSERT_EQ(result_count(collective, count, ranks), static_cast<std::int64_t>(mine.size()));
          for (std::size_t i = 0; i < mine.size(); ++i)
            EXPECT_EQ(expected_value(collective, {r, ranks, count, static_cast<std::int64_t>(i)}), mine[i]);
        }
      }
}

TEST(ExpectedValue, OfTheLargestExactSumFitsBf16) {
  EXPECT_LE(3 * kMostExactRanks, 256);
  EXPECT_GT(3 * (kMostExactRanks + 1), 256);
}

TEST(Count, IsThatOfNcclTests) {  // 1 MiB of bf16 on 8 ranks
  EXPECT_EQ(count_of(Collective::kAllReduce, 1 << 20, 8), 524288);
  EXPECT_EQ(count_of(Collective::kBroadcast, 1 << 20, 8), 524288);
  EXPECT_EQ(count_of(Collective::kSendReceive, 1 << 20, 8), 524288);
  EXPECT_EQ(count_of(Collective::kAllGather, 1 << 20, 8), 65536);
  EXPECT_EQ(count_of(Collective::kReduceScatter, 1 << 20, 8), 65536);
  EXPECT_EQ(count_of(Collective::kAllToAll, 1 << 20, 8), 65536);
}

TEST(Sizes, AreThePowersOfTwoFromOneKibToTwoGib) {
  const std::vector<std::int64_t> sizes = collective_sizes();
  EXPECT_EQ(sizes.size(), 22U);
  EXPECT_EQ(sizes.front(), 1024);
  EXPECT_EQ(sizes.back(), 2147483648);
}

TEST(Groups, AreTwoFourEightAndAll) {
  EXPECT_EQ(group_sizes(1), (std::vector<int>{}));
  EXPECT_EQ(group_sizes(2), (std::vector<int>{2}));
  EXPECT_EQ(group_sizes(6), (std::vector<int>{2, 4, 6}));
  EXPECT_EQ(group_sizes(8), (std::vector<int>{2, 4, 8}));
  EXPECT_EQ(group_sizes(16), (std::vector<int>{2, 4, 8, 16}));
}

TEST(TimingPlan, CallsSmallSizesMoreOftenButNeverFewerThanTwentyTimes) {
  for (const std::int64_t bytes : collective_sizes()) {
    SCOPED_TRACE(bytes);
    EXPECT_GE(timing_plan(bytes).repeats, 20);
    EXPECT_LE(timing_plan(2 * bytes).calls, timing_plan(bytes).calls);
  }
}

}  // namespace
}  // namespace stagecraft
