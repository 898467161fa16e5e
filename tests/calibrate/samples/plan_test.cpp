#include "calibrate/samples/plan.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace stagecraft {
namespace {

// System: four points; values 1, 9, 5, 9; costs 10, 60, 30, 20 s.
const std::vector<Candidate> kPoints = {{.key = "a", .value = 1, .seconds = 10},
                                        {.key = "b", .value = 9, .seconds = 60},
                                        {.key = "c", .value = 5, .seconds = 30},
                                        {.key = "d", .value = 9, .seconds = 20}};

// "b planned", "d measured", ... in the order of the plan.
std::vector<std::string> told(const std::vector<Candidate>& points, const KnownWork& known,
                              std::optional<double> budget) {
  const char* const names[] = {"planned", "measured", "failed", "over budget"};
  std::vector<std::string> lines;
  for (const PlannedWork& work : plan_work(points, known, budget))
    lines.push_back(points[work.candidate].key + " " + names[static_cast<int>(work.fate)]);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Plan, TakesTheMostValuableFirstAndTiesAsListed) {
  EXPECT_EQ(told(kPoints, {}, {}), (Lines{"b planned", "d planned", "c planned", "a planned"}));
}

TEST(Plan, PassesOverWhatDoesNotFitAndFillsTheRest) {
  // 60 + 20 = 80; 30 more would be 110; 10 more is 90.
  EXPECT_EQ(told(kPoints, {}, 95), (Lines{"b planned", "d planned", "c over budget", "a planned"}));
}

TEST(Plan, SkipsWhatIsMeasuredOrTookTheProcessDown) {
  EXPECT_EQ(told(kPoints, {.measured = {"b"}, .failed = {"d"}}, 40),
            (Lines{"b measured", "d failed", "c planned", "a planned"}));
}

TEST(Plan, PlansAPointOnceHoweverOftenItIsListed) {
  std::vector<Candidate> twice = kPoints;
  twice.push_back({.key = "b", .value = 3, .seconds = 1});
  EXPECT_EQ(told(twice, {}, {}), told(kPoints, {}, {}));
}

// Property: never over the budget, and what was interrupted and resumed ends with the same points as one long
// run.
TEST(Plan, KeepsInsideTheBudgetAndFinishesWhenResumed) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Candidate> points;
    for (int i = 0; i < 20; ++i)
      points.push_back({.key = std::to_string(random() % 25),
                        .value = static_cast<double>(random() % 5),
                        .seconds = static_cast<double>(1 + random() % 10)});
    KnownWork known;
    for (int run = 0; run < 20; ++run) {
      double spent = 0;
      for (const PlannedWork& work : plan_work(points, known, 12.0))
        if (work.fate == Fate::kPlanned) {
          spent += points[work.candidate].seconds;
          known.measured.insert(points[work.candidate].key);
        }
      EXPECT_LE(spent, 12.0);
    }
    for (const Candidate& point : points) EXPECT_TRUE(known.measured.contains(point.key));
  }
}

TEST(Budget, IsADurationInHoursMinutesAndSeconds) {
  EXPECT_EQ(parse_budget("8m"), 480);
  EXPECT_EQ(parse_budget("90s"), 90);
  EXPECT_EQ(parse_budget("1h30m"), 5400);
  EXPECT_EQ(parse_budget("0.5m"), 30);
  EXPECT_EQ(parse_budget("45"), 45);
  EXPECT_EQ(parse_budget("1m30"), 90);
}

TEST(Budget, IsNothingElse) {
  for (const char* text : {"", "m", "8x", "8m8m", "8s8m", "-8m", "0", "0s", "8 m", "nan", "inf", "1e3"})
    EXPECT_EQ(parse_budget(text), std::nullopt) << text;
}

}  // namespace
}  // namespace stagecraft
