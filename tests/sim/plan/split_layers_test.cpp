#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/plan/parallel_plan.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;

TEST(SpreadLayers, GivesTheMiddleOneMore) {
  EXPECT_THAT(spread_layers(8, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(spread_layers(9, 4), ElementsAre(2, 3, 2, 2));
  EXPECT_THAT(spread_layers(105, 8), ElementsAre(13, 13, 13, 14, 13, 13, 13, 13));
  EXPECT_THAT(spread_layers(3, 4), ElementsAre(1, 1, 1, 0));
}

}  // namespace
}  // namespace stagecraft
