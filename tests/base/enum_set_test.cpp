#include "base/enum_set.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace stagecraft {
namespace {

enum class Fruit : std::uint8_t { kApple, kPear, kPlum, kLast = 31 };
using Fruits = EnumSet<Fruit>;

TEST(EnumSet, HasWhatItWasMadeOf) {
  constexpr Fruits fruits = {Fruit::kApple, Fruit::kLast};
  static_assert(fruits.has(Fruit::kApple) && fruits.has(Fruit::kLast) && !fruits.has(Fruit::kPear));
  EXPECT_FALSE(fruits.empty());
  EXPECT_TRUE(Fruits().empty());
  EXPECT_EQ(fruits, (Fruits{Fruit::kLast, Fruit::kApple}));
}

TEST(EnumSet, IsJoinedAndTakenAway) {
  const Fruits two = {Fruit::kApple, Fruit::kPear}, other = {Fruit::kPear, Fruit::kPlum};
  EXPECT_EQ(two | other, (Fruits{Fruit::kApple, Fruit::kPear, Fruit::kPlum}));
  EXPECT_EQ(two - other, Fruits{Fruit::kApple});
  EXPECT_EQ(two - two, Fruits());
  EXPECT_EQ(two & other, Fruits{Fruit::kPear});
}

}  // namespace
}  // namespace stagecraft
