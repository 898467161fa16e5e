#include "base/hash.hpp"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

// The offset basis of FNV-1a, 64 bits. Source: Fowler, Noll, Vo, Eastlake, draft-eastlake-fnv, section 5.
TEST(StableHash, OfNothingIsTheOffsetBasis) {
  EXPECT_EQ(StableHash().hex(), "cbf29ce484222325");
}

// One zero byte leaves the xor alone: eight of them multiply the basis by prime^8.
TEST(StableHash, OfZeroIsTheBasisTimesThePrimeToTheEighth) {
  std::uint64_t expected = 0xcbf29ce484222325ULL;
  for (int i = 0; i < 8; ++i) expected *= 0x100000001b3ULL;
  EXPECT_EQ(StableHash().add(0).value(), expected);
}

TEST(StableHash, DoesNotDependOnTheWidthOfANumber) {
  EXPECT_EQ(StableHash().add(std::int8_t{-1}).value(), StableHash().add(std::int64_t{-1}).value());
}

TEST(StableHash, SeesWhereATextEnds) {
  EXPECT_NE(StableHash().add("ab").add("c").value(), StableHash().add("a").add("bc").value());
}

TEST(StableHash, SeesTheOrder) {
  EXPECT_NE(StableHash().add(1).add(2).value(), StableHash().add(2).add(1).value());
}

TEST(StableHash, IsPrintedWithItsLeadingZeros) {
  EXPECT_EQ(StableHash().add(7).hex().size(), 16u);
}

}  // namespace
}  // namespace stagecraft
