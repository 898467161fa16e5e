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

}  // namespace
}  // namespace stagecraft
