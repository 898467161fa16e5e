#include "tools/validation/ablation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft {
namespace {

using testing::HasSubstr;

// 10 rows at 2 % and 30 at 4 % are 3.5 %; without the effect 5 and 4.2 % are 4.4.
TEST(AblationPage, WeighsSetsByTheirRowsAndNamesThoseThatLose) {
  const AblationRow row{.effect = "clock",
                        .note = {},
                        .sets = {{.set = "a", .rows = 10, .with = 0.02, .without = 0.05},
                                 {.set = "b", .rows = 30, .with = 0.04, .without = 0.042}}};
  EXPECT_THAT(ablation_page({row}, ScoreData{}),
              HasSubstr("| clock | 40 | 3.5 | 4.4 | 1 of 2 | a 2.0 to 5.0 |"));
}

TEST(AblationPage, NamesNoneWhereNoneLoses) {
  const AblationRow row{
      .effect = "clock", .note = "1 of 2", .sets = {{.set = "a", .rows = 10, .with = 0.02, .without = 0.01}}};
  EXPECT_THAT(ablation_page({row}, ScoreData{}),
              HasSubstr("| clock (1 of 2) | 10 | 2.0 | 1.0 | 0 of 1 | – |"));
}

}  // namespace
}  // namespace stagecraft
