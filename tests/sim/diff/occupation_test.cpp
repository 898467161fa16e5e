#include "sim/diff/occupation.hpp"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

using std::chrono::nanoseconds;

nanoseconds exposed(const Occupation& occupation, Activity activity) {
  return occupation.exposed[static_cast<std::size_t>(activity)];
}
nanoseconds busy(const Occupation& occupation, Activity activity) {
  return occupation.busy[static_cast<std::size_t>(activity)];
}

// System: compute in [0, 10), a tensor collective in [5, 15), data traffic in [12, 20); the window is [0,
// 30). Expectations: compute 10; tensor exposed in [10, 15), data in [15, 20); idle from 20 on.
TEST(Occupation, AnInstantBelongsToComputeThenToTheFirstKindOfCommunication) {
  const Busy all[] = {{Activity::kCompute, nanoseconds(0), nanoseconds(10)},
                      {Activity::kData, nanoseconds(12), nanoseconds(20)},
                      {Activity::kTensor, nanoseconds(5), nanoseconds(15)}};
  const Occupation here = occupation(all, nanoseconds(0), nanoseconds(30));
  EXPECT_EQ(here.compute, nanoseconds(10));
  EXPECT_EQ(exposed(here, Activity::kTensor), nanoseconds(5));
  EXPECT_EQ(exposed(here, Activity::kData), nanoseconds(5));
  EXPECT_EQ(here.idle, nanoseconds(10));
  EXPECT_EQ(busy(here, Activity::kTensor), nanoseconds(10));
  EXPECT_EQ(busy(here, Activity::kData), nanoseconds(8));
}

TEST(Occupation, TwoKernelsAtOnceAreBusyOnce) {
  const Busy all[] = {{Activity::kCompute, nanoseconds(0), nanoseconds(10)},
                      {Activity::kCompute, nanoseconds(4), nanoseconds(12)}};
  const Occupation here = occupation(all, nanoseconds(0), nanoseconds(12));
  EXPECT_EQ(here.compute, nanoseconds(12));
  EXPECT_EQ(here.idle, nanoseconds(0));
}

TEST(Occupation, WhatLiesOutsideTheWindowDoesNotCount) {
  const Busy all[] = {{Activity::kCompute, nanoseconds(0), nanoseconds(10)},
                      {Activity::kData, nanoseconds(18), nanoseconds(40)}};
  const Occupation here = occupation(all, nanoseconds(8), nanoseconds(20));
  EXPECT_EQ(here.window, nanoseconds(12));
  EXPECT_EQ(here.compute, nanoseconds(2));
  EXPECT_EQ(here.exposed_communication(), nanoseconds(2));
  EXPECT_EQ(here.idle, nanoseconds(8));
}

TEST(Occupation, TheMeanOfWindowsAddsUpToItsLength) {
  const Busy all[] = {{Activity::kCompute, nanoseconds(0), nanoseconds(3)},
                      {Activity::kTensor, nanoseconds(3), nanoseconds(8)}};
  const Occupation windows[] = {occupation(all, nanoseconds(0), nanoseconds(10)),
                                occupation(all, nanoseconds(2), nanoseconds(7))};
  const Occupation both = mean(windows);
  EXPECT_EQ(both.window, nanoseconds(8));  // of 10 and 5, rounded up
  EXPECT_EQ(both.compute, nanoseconds(2));
  EXPECT_EQ(exposed(both, Activity::kTensor), nanoseconds(5));  // of 5 and 4, rounded up
  EXPECT_EQ(both.compute + both.exposed_communication() + both.idle, both.window);
}

}  // namespace
}  // namespace stagecraft
