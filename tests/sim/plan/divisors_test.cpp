#include "sim/plan/divisors.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace stagecraft {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(Divisors, AreAscending) {
  EXPECT_EQ(divisors_of(1), (Numbers{1}));
  EXPECT_EQ(divisors_of(36), (Numbers{1, 2, 3, 4, 6, 9, 12, 18, 36}));
  EXPECT_EQ(divisors_of(641), (Numbers{1, 641}));
}

TEST(Divisors, NearestLegalLooksBelowAndAbove) {
  const auto divides_96 = [](std::int64_t n) { return 96 % n == 0; };
  EXPECT_EQ(nearest_legal(7, 96, divides_96), (Numbers{6, 8}));
  EXPECT_EQ(nearest_legal(1, 96, divides_96), (Numbers{2}));
  EXPECT_EQ(nearest_legal(200, 96, divides_96), (Numbers{96}));
  EXPECT_EQ(nearest_legal(7, 96, [](std::int64_t) { return false; }), Numbers{});
}

TEST(Divisors, ListsReadAsASentence) {
  EXPECT_EQ(any_of(Numbers{}), "");
  EXPECT_EQ(any_of(Numbers{1}), "1");
  EXPECT_EQ(any_of(Numbers{6, 8}), "6 or 8");
  EXPECT_EQ(any_of(Numbers{1, 2, 4}), "1, 2 or 4");
}

TEST(Divisors, ProductsStopAtTheLargestNumber) {
  EXPECT_EQ(saturating_product({8, 7, 16}), 896);
  EXPECT_EQ(saturating_product({1'000'000'000'000, 1'000'000'000'000}),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(saturating_product({1'000'000'000'000, 1'000'000'000'000, 0}), 0);
}

}  // namespace
}  // namespace stagecraft
