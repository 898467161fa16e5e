#include "sim/accuracy/end_to_end_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stagecraft {
namespace {

// System: times are work / rate + traffic / link. Truth: rate 2, link 5; three sources of ten rows.
struct Rows {
  std::vector<double> work, traffic, measured;
  std::vector<int> sources;
};

Rows made(double off_of_last_source = 1) {
  Rows rows;
  for (int i = 0; i < 30; ++i) {
    rows.work.push_back(10 + i % 10);
    rows.traffic.push_back(i % 3);
    rows.sources.push_back(i / 10);
    const double time = rows.work.back() / 2 + rows.traffic.back() / 5;
    rows.measured.push_back(time * (i / 10 == 2 ? off_of_last_source : 1));
  }
  return rows;
}

EndToEndProblem problem_of(const Rows& rows, double high_rate = 4) {
  return {.constants = {{.name = "rate", .start = 1.5, .low = 1, .high = high_rate},
                        {.name = "link", .start = 4, .low = 2, .high = 8}},
          .sources = rows.sources,
          .log_errors = [&rows](const std::vector<double>& values, const std::vector<std::size_t>& asked) {
            std::vector<double> out;
            for (const std::size_t i : asked)
              out.push_back(
                  std::log((rows.work[i] / values[0] + rows.traffic[i] / values[1]) / rows.measured[i]));
            return out;
          }};
}

TEST(EndToEndFit, FindsTheConstantsThatTheRowsWereMadeWith) {
  const Rows rows = made();
  const EndToEndFit fit = fit_end_to_end(problem_of(rows), 6);
  EXPECT_NEAR(fit.values[0], 2, 0.02);
  ASSERT_EQ(fit.sources.size(), 3u);
  for (const SourceErrors& source : fit.sources) {
    EXPECT_LT(source.fitted, 0.01);
    EXPECT_LT(source.left_out, 0.02);
    EXPECT_GT(source.before, 0.2);
  }
}

TEST(EndToEndFit, KeepsAConstantOnTheBoundOfItsRange) {
  const Rows rows = made();
  const EndToEndFit fit = fit_end_to_end(problem_of(rows, 1.8), 6);
  EXPECT_NEAR(fit.values[0], 1.8, 1e-9);
  EXPECT_GE(fit.values[1], 2);
  EXPECT_LE(fit.values[1], 8);
}

// A source that runs 30 % slower for reasons of its own is predicted worse when it is left out.
TEST(EndToEndFit, OfASourceLeftOutDoesNotKnowWhatOnlyItKnows) {
  const Rows rows = made(1.3);
  const EndToEndFit fit = fit_end_to_end(problem_of(rows), 6);
  EXPECT_GT(fit.sources[2].left_out, fit.sources[2].fitted);
  EXPECT_NEAR(fit.sources[2].left_out, 1 - 1 / 1.3, 0.03);
}

// Rows of the source itself are simulated with the final constants alone, and change nothing about them.
TEST(FitWithoutEach, NeverAsksTheRowsThatItLeavesOutBeforeTheEnd) {
  const Rows rows = made(), other = made(1.3);
  EndToEndProblem problem = problem_of(rows);
  int asked_with_others = 0;
  problem.log_errors = [&, ask = problem.log_errors](const std::vector<double>& values,
                                                     const std::vector<std::size_t>& asked) {
    asked_with_others += asked.size() == 30;
    return ask(values, asked);
  };
  const std::vector<FitWithout> alike = fit_without_each(problem, 6),
                                odd = fit_without_each(problem_of(other), 6);
  EXPECT_EQ(asked_with_others, 0);
  ASSERT_EQ(alike.size(), 3u);
  EXPECT_EQ(alike[2].source, 2);
  EXPECT_LT(alike[2].error, 0.02);
  EXPECT_EQ(odd[2].values, alike[2].values);
  EXPECT_NEAR(odd[2].error, 1 - 1 / 1.3, 0.03);
}

}  // namespace
}  // namespace stagecraft
