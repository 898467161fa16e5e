#include "base/ceil_div.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace stagecraft {
namespace {

TEST(CeilDiv, IsTheFewestGroupsThatHoldAll) {
  for (int count = 0; count <= 30; ++count)
    for (int size = 1; size <= 10; ++size) {
      SCOPED_TRACE(testing::Message() << count << " in groups of " << size);
      const int groups = ceil_div(count, size);
      EXPECT_GE(groups * size, count);
      EXPECT_LT((groups - 1) * size, count == 0 ? 1 : count);
    }
}

TEST(CeilDiv, CountsInTheWiderOfTwoTypes) {
  EXPECT_EQ(ceil_div(std::int64_t{1} << 40, 3), 366'503'875'926);
}

}  // namespace
}  // namespace stagecraft
