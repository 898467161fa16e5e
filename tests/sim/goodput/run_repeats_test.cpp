#include "sim/goodput/run_repeats.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft {
namespace {

using made::fault;
using made::history;
using made::job;

PolicyFactory restarted(std::int64_t restart) {
  return [=] {
    return std::make_unique<CheckpointRestart>(CheckpointRestartSpec{
        .nodes = 1, .restart = {{1, made::seconds(restart)}}, .shape = made::always(10, 1)});
  };
}

// Two repeats of 100 s: one without a failure, one with a fault at 55 that sends it back to the start, after
// 5 s.
TEST(RunRepeats, MeansOverTheRepeats) {
  const auto histories = [](int repeat) {
    History made = history(1, {});
    made.causes = {"other", "gpu"};
    if (repeat == 1) made.incidents = {fault(55)};
    if (repeat == 1) made.incidents[0].cause = 1;
    return made;
  };
  const GoodputResult result = run_repeats(job(100), histories, restarted(5), {.repeats = 2, .threads = 2});
  EXPECT_EQ(result.samples_per_s.mean, (10 + 4) / 200.0);
  EXPECT_EQ(result.fraction_of_ideal.mean, 0.7);
  EXPECT_EQ(result.failures, 0.5);
  EXPECT_EQ(result.restarts, 0.5);
  EXPECT_EQ(result.mean_time_to_recover_s, 5);
  double sum = 0;
  for (const double bucket : result.buckets_s) sum += bucket;
  EXPECT_NEAR(sum, 100, 1e-9);
  ASSERT_EQ(result.causes.size(), 2u);
  EXPECT_EQ(result.causes[0], (CauseResult{.cause = "other"}));
  EXPECT_EQ(result.causes[1],
            (CauseResult{.cause = "gpu", .failures = 0.5, .lost_work_s = 27.5, .down_s = 2.5}));
  EXPECT_EQ(result.timeline.size(), 1u);  // of the first repeat: it trains
  EXPECT_EQ(result.cause_names, (std::vector<std::string>{"other", "gpu"}));
}

// Two repeats of 100 s: one without a failure, one that detects a fault for 95 s. Student's t of one degree
// is 12.7, so that the interval of a mean of half is wider than everything.
TEST(RunRepeats, IntervalsStayWithinWhatIsPossible) {
  const auto histories = [](int repeat) {
    History made = history(1, {});
    made.causes = {"gpu"};
    if (repeat == 1) made.incidents = {fault(1, 0, 95)};
    return made;
  };
  const GoodputResult result = run_repeats(job(100), histories, restarted(5), {.repeats = 2, .threads = 1});
  EXPECT_EQ(result.fraction_of_ideal.ci95, (std::array<double, 2>{0, 1}));
  EXPECT_EQ(result.ettr.ci95, (std::array<double, 2>{0, 1}));
  ASSERT_TRUE(result.samples_per_s.ci95.has_value());
  EXPECT_EQ(result.samples_per_s.ci95->front(), 0);
  EXPECT_GT(result.samples_per_s.ci95->back(), result.samples_per_s.mean);
}

TEST(RunRepeats, ThrowsWhatTheFirstFailingRepeatThrows) {
  const auto histories = [](int repeat) -> History {
    if (repeat >= 2) throw std::runtime_error("repeat " + std::to_string(repeat));
    return history(1, {});
  };
  for (const int threads : {1, 4}) try {
      (void)run_repeats(job(100), histories, restarted(0), {.repeats = 8, .threads = threads});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "repeat 2");
    }
}

}  // namespace
}  // namespace stagecraft
