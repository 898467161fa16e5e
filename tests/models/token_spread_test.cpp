// How many nodes a token goes to: against every choice that it could make, and against figures by hand.
#include "models/token_spread.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/check.hpp"

namespace stagecraft {
namespace {

int holder_of(int expert, std::int64_t count, std::int64_t holders) {
  for (std::int64_t i = 0; i < holders; ++i)
    if (expert < (i + 1) * count / holders) return static_cast<int>(i);
  return -1;
}

// The mean over all choices of groups and all choices of experts in them.
double enumerated(const TokenChoice& choice, std::int64_t holders) {
  std::int64_t choices = 0, visited = 0;
  for (unsigned groups = 0; groups < (1U << choice.groups); ++groups) {
    if (std::popcount(groups) != choice.top_groups) continue;
    for (unsigned experts = 0; experts < (1U << choice.count); ++experts) {
      if (std::popcount(experts) != choice.top_k) continue;
      bool legal = true;
      unsigned visits = 0;
      for (int i = 0; i < choice.count; ++i) {
        if ((experts >> i & 1U) == 0) continue;
        const auto group = static_cast<unsigned>(i / (choice.count / choice.groups));
        legal = legal && (groups >> group & 1U) != 0;
        visits |= 1U << holder_of(i, choice.count, holders);
      }
      if (!legal) continue;
      ++choices;
      visited += std::popcount(visits);
    }
  }
  return static_cast<double>(visited) / static_cast<double>(choices);
}

// Property: the closed forms are the mean over all that a token can choose, also where holders and groups do
// not divide each other.
TEST(TokenSpread, IsTheMeanOverAllChoices) {
  for (const std::int64_t groups : {1, 2, 3, 4, 6})
    for (std::int64_t top = 1; top <= groups; ++top)
      for (const std::int64_t top_k : {1, 2, 4}) {
        const TokenChoice choice{.count = 12, .top_k = top_k, .groups = groups, .top_groups = top};
        if (top_k > 12 / groups * top) continue;
        for (std::int64_t holders = 1; holders <= 12; ++holders) {
          SCOPED_TRACE(testing::Message()
                       << "G=" << groups << " g=" << top << " K=" << top_k << " holders=" << holders);
          EXPECT_NEAR(expected_holders(choice, holders), enumerated(choice, holders), 1e-12);
        }
      }
}

// 8 nodes of 32 experts, 8 of 256: 8 (1 - C(224, 8) / C(256, 8)). With 4 of 8 groups, which are the nodes:
// 4 (1 - C(96, 8) / C(128, 8)). Of 64 ranks of 4 experts: 32 (1 - C(124, 8) / C(128, 8)).
TEST(TokenSpread, OfDeepSeekV3) {
  const TokenChoice limited{.count = 256, .top_k = 8, .groups = 8, .top_groups = 4};
  const TokenChoice free{.count = 256, .top_k = 8};
  EXPECT_NEAR(expected_holders(free, 8), 5.29465, 5e-6);
  EXPECT_NEAR(expected_holders(limited, 8), 3.62901, 5e-6);
  EXPECT_NEAR(expected_holders(limited, 64), 7.35937, 5e-6);
}

// Property: groups that are all chosen, or none at all, limit nothing; fewer groups never mean more nodes.
TEST(TokenSpread, GrowsWithTheGroupsToTheUnlimited) {
  for (const std::int64_t holders : {1, 2, 4, 5, 8, 16, 32, 64}) {
    const double free = expected_holders({.count = 64, .top_k = 4}, holders);
    double before = 0;
    for (std::int64_t top = 1; top <= 8; ++top) {
      const double here =
          expected_holders({.count = 64, .top_k = 4, .groups = 8, .top_groups = top}, holders);
      EXPECT_GE(here, before - 1e-12) << holders << " holders, " << top << " groups";
      before = here;
    }
    EXPECT_EQ(before, free) << holders;
  }
}

// Property: never more than there are of holders and of experts that are chosen; of every expert's own rank
// exactly these.
TEST(TokenSpread, IsAtMostWhatIsChosen) {
  for (const std::int64_t top_k : {1, 2, 8}) {
    const TokenChoice choice{.count = 64, .top_k = top_k, .groups = 8, .top_groups = 3};
    EXPECT_DOUBLE_EQ(expected_holders(choice, 1), 1);
    EXPECT_NEAR(expected_holders(choice, 64), static_cast<double>(top_k), 1e-12);
    for (const std::int64_t holders : {2, 4, 8, 16, 32})
      EXPECT_LE(expected_holders(choice, holders), static_cast<double>(std::min(holders, top_k)));
  }
}

TEST(TokenSpread, RefusesMoreHoldersThanExperts) {
  EXPECT_THROW((void)expected_holders({.count = 8, .top_k = 2}, 16), InternalError);
}

TEST(NodeCopies, AreAsManyAsTheNodesOfAToken) {
  const NodeCopies copies{.choice = {.count = 4, .top_k = 1}, .each = Bytes(1000)};
  EXPECT_EQ(copies.over(1), Bytes(1000));
  EXPECT_EQ(copies.over(4), Bytes(1000));  // one expert, one node
  const NodeCopies two{.choice = {.count = 4, .top_k = 2}, .each = Bytes(1200)};
  EXPECT_EQ(two.over(2), Bytes(2000));  // of 6 pairs 2 lie in one node: 5/3
}

}  // namespace
}  // namespace stagecraft
