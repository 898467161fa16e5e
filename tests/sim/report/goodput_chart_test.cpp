// Crossing points of policies, and the pictures they are marked in.
//
// System: two or three policies whose throughput is a straight line over the logarithm of the failure rate.
#include "sim/report/goodput_chart.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace stagecraft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 90 at a rate of 0.001 and 70 at 0.1; 80 at both: equal half way in the logarithm, at 0.01.
std::vector<GoodputRow> one_crossing() {
  return {{.rate = 0.001, .policy = "fragile", .samples_per_s = 90},
          {.rate = 0.1, .policy = "fragile", .samples_per_s = 70},
          {.rate = 0.001, .policy = "sturdy", .samples_per_s = 80},
          {.rate = 0.1, .policy = "sturdy", .samples_per_s = 80}};
}

TEST(GoodputCrossing, IsWhereTheLinesMeetOverTheLogarithmOfTheRate) {
  const auto crossings = crossings_of(one_crossing());
  ASSERT_EQ(crossings.size(), 1u);
  EXPECT_NEAR(crossings[0].rate, 0.01, 1e-12);
  EXPECT_NEAR(crossings[0].samples_per_s, 80, 1e-9);
  EXPECT_EQ(crossings[0].before, "fragile");
  EXPECT_EQ(crossings[0].after, "sturdy");
  EXPECT_TRUE(crossings[0].leads);
}

TEST(GoodputCrossing, DoesNotDependOnTheOrderOfTheRows) {
  std::vector<GoodputRow> rows = one_crossing();
  const auto crossings = crossings_of(rows);
  std::swap(rows[0], rows[3]);
  EXPECT_EQ(crossings_of(rows), crossings);
}

TEST(GoodputCrossing, IsOverTheRateItselfWhereARateIsZero) {
  // 100 - 20 r against 90: equal at r = 0.5.
  const auto crossings =
      crossings_of(std::vector<GoodputRow>{{0, "a", 100}, {1, "a", 80}, {0, "b", 90}, {1, "b", 90}});
  ASSERT_EQ(crossings.size(), 1u);
  EXPECT_NEAR(crossings[0].rate, 0.5, 1e-12);
}

TEST(GoodputCrossing, IsTheGivenRateWherePoliciesAreEqualThere) {
  const auto crossings = crossings_of(std::vector<GoodputRow>{
      {1, "a", 100}, {2, "a", 90}, {4, "a", 70}, {1, "b", 95}, {2, "b", 90}, {4, "b", 80}});
  ASSERT_EQ(crossings.size(), 1u);
  EXPECT_EQ(crossings[0].rate, 2);
  EXPECT_EQ(crossings[0].samples_per_s, 90);
}

TEST(GoodputCrossing, IsNotWherePoliciesOnlyTouch) {
  EXPECT_TRUE(
      crossings_of(std::vector<GoodputRow>{
                       {1, "a", 100}, {2, "a", 90}, {4, "a", 80}, {1, "b", 95}, {2, "b", 90}, {4, "b", 70}})
          .empty());
}

TEST(GoodputCrossing, DoesNotLeadBelowAThirdPolicy) {
  std::vector<GoodputRow> rows = one_crossing();
  rows.push_back({.rate = 0.001, .policy = "best", .samples_per_s = 95});
  rows.push_back({.rate = 0.1, .policy = "best", .samples_per_s = 95});
  const auto crossings = crossings_of(rows);
  ASSERT_EQ(crossings.size(), 1u);
  EXPECT_FALSE(crossings[0].leads);
}

TEST(GoodputCrossing, NeedsRatesThatBothHave) {
  EXPECT_TRUE(crossings_of(std::vector<GoodputRow>{{1, "a", 100}, {2, "b", 90}}).empty());
  EXPECT_TRUE(crossings_of({}).empty());
}

TEST(GoodputChart, NamesPoliciesRatesAndTheCrossingThatLeads) {
  const std::string chart = chart_text(one_crossing(), {.title = "two", .ideal_samples_per_s = 100});
  EXPECT_THAT(chart, HasSubstr("two\n"));
  EXPECT_THAT(chart, HasSubstr("A fragile"));
  EXPECT_THAT(chart, HasSubstr("B sturdy"));
  EXPECT_THAT(chart, HasSubstr("fragile behind sturdy from 0.01 on"));
  EXPECT_THAT(chart, HasSubstr("0.001"));
}

TEST(GoodputChart, ShowsWhoIsAheadInItsCorners) {
  // The axis is from 60 % (a fifth below 70 %) to 100 %; five rows: 100, 90, 80, 70, 60 %.
  const std::string chart =
      chart_text(one_crossing(), {.title = "", .ideal_samples_per_s = 100, .width = 3, .height = 5});
  EXPECT_EQ(chart,
            "share of the throughput without failures\n"
            "  100 % |\n"
            "        |A\n"
            "        |BBB\n"
            "        |  A\n"
            "   60 % |\n"
            "        +---\n"
            "         0.001   failures per node-day\n"
            "         A fragile              B sturdy\n"
            "         fragile behind sturdy from 0.01 on\n");
}

TEST(GoodputChart, IsEmptyWithoutRows) {
  EXPECT_EQ(chart_text({}, {}), "");
  EXPECT_EQ(chart_svg({}, {}), "");
}

TEST(GoodputChart, WritesEveryPolicyIntoThePicture) {
  const std::string picture = chart_svg(one_crossing(), {.title = "a < b", .ideal_samples_per_s = 100});
  EXPECT_THAT(picture, HasSubstr("<svg"));
  EXPECT_THAT(picture, HasSubstr(">fragile</text>"));
  EXPECT_THAT(picture, HasSubstr(">sturdy</text>"));
  EXPECT_THAT(picture, HasSubstr("a &lt; b"));
  EXPECT_THAT(picture, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace stagecraft
