#include "base/ids.hpp"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

using TaskId = Id<struct TaskTag>;

TEST(Ids, CountFromZeroInTheOrderOfArrival) {
  IdVector<TaskId, char> tasks;
  EXPECT_EQ(tasks.push_back('a'), TaskId(0));
  EXPECT_EQ(tasks.push_back('b'), TaskId(1));
  EXPECT_EQ(tasks[TaskId(1)], 'b');
  EXPECT_EQ(tasks.size(), 2u);
}

TEST(Ids, AtRefusesAnIdOfAnotherVector) {
  const IdVector<TaskId, char> tasks{'a', 'b'};
  EXPECT_EQ(tasks.at(TaskId(0)), 'a');
  EXPECT_THROW((void)tasks.at(TaskId(2)), std::out_of_range);
}

TEST(Ids, OrderAsTheirNumbers) {
  EXPECT_LT(TaskId(1), TaskId(2));
}

TEST(Check, SaysWhatWasExpectedAndWhereAndWhy) {
  try {
    SC_CHECK(1 + 1 == 3, "sums are right");
    FAIL() << "a false check passed";
  } catch (const InternalError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("1 + 1 == 3"), std::string::npos) << what;
    EXPECT_NE(what.find("sums are right"), std::string::npos) << what;
    EXPECT_NE(what.find("ids_test.cpp:"), std::string::npos) << what;
  }
}

TEST(Check, IsSilentWhenTrue) {
  EXPECT_NO_THROW(SC_CHECK(1 + 1 == 2, "sums are right"));
}

}  // namespace
}  // namespace stagecraft
