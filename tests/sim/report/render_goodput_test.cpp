// The answer of `goodput`, as JSON and for people.
//
// System: ten days of a job on 4 nodes and a spare, with round numbers in every bucket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/utf8.hpp"
#include "sim/report/goodput_report.hpp"

namespace stagecraft {
namespace {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

// A report of 864,000 s: 80 % productive, 5 % lost, 4 % checkpoints, 1 % detecting, 2 % each restarting and
// loading, 5 % degraded, 1 % idle.
GoodputReport ten_days() {
  GoodputReport report;
  report.scenario = "job.yaml";
  report.name = "a job";
  report.headline = "tp 8 · pp 4 · dp 1 · 1f1b";
  report.policy = "hot-spares";
  report.rules = "corrected";
  report.gpus = 32;
  report.nodes = 5;
  report.spares = 1;
  report.horizon = hours(240);
  report.repeats = 100;
  report.seed = 7;
  report.ideal_samples_per_s = 10;
  report.samples_per_s = {.mean = 8, .ci95 = std::array{7.9, 8.1}};
  report.fraction_of_ideal = {.mean = 0.80, .ci95 = std::array{0.79, 0.81}};
  report.ettr = {.mean = 0.85, .ci95 = std::array{0.84, 0.86}};
  report.failures = 20;
  report.restarts = 18;
  report.mean_time_to_recover_s = 2592;
  report.mean_time_between_failures_s = 43'200;
  report.buckets_s = {691'200, 43'200, 34'560, 8'640, 17'280, 17'280, 43'200, 8'640};
  report.causes = {{.cause = "gpu", .failures = 15, .stopped_s = 36'000, .undone_s = 30'000},
                   {.cause = "network", .failures = 5, .stopped_s = 15'840, .undone_s = 13'200}};
  report.iteration_time = seconds(10);
  report.shapes = {{.nodes = 4, .text = "dp 1 · pp 4", .iteration = seconds(10), .samples = 100}};
  report.checkpoint = {.mode = "sync",
                       .interval = minutes(30),
                       .steps = 180,
                       .block = seconds(60),
                       .persist = {},
                       .load = seconds(90),
                       .bytes = Bytes(1'000'000'000'000)};
  report.advice = {.interval = minutes(35),
                   .interval_steps = 210,
                   .spares = 2,
                   .interval_why = "the optimum",
                   .spares_how = "keep 2 spares",
                   .spares_why = "enough"};
  report.inputs = {{.name = "failures.process.rate_per_node_day",
                    .value = "0.5",
                    .source = "given, job.yaml:9",
                    .half = 0.08,
                    .twice = -0.15}};
  return report;
}

TEST(GoodputJson, HasTheKeysOfTheContract) {
  const json document = json::parse(render_json(ten_days()));
  EXPECT_EQ(document["schema"], "stagecraft.goodput/1");
  EXPECT_EQ(document["policy"], "hot-spares");
  EXPECT_EQ(document["samples_per_s"], 8.0);
  EXPECT_EQ(document["fraction_of_ideal"], 0.8);
  EXPECT_EQ(document["ettr"], 0.85);
  EXPECT_EQ(document["ci95"], json({7.9, 8.1}));
  EXPECT_EQ(document["failures"], 20);
  EXPECT_EQ(document["restarts"], 18);
  const json& buckets = document["buckets_s"];
  EXPECT_EQ(buckets.size(), 8u);
  for (const auto name : kBucketNames) EXPECT_TRUE(buckets.contains(name)) << name;
  EXPECT_EQ(buckets["lost_work"], 43'200);
}

TEST(GoodputJson, HasBucketsThatAddUpToTheHorizon) {
  const json document = json::parse(render_json(ten_days()));
  double sum = 0;
  for (const json& bucket : document["buckets_s"]) sum += bucket.get<double>();
  EXPECT_EQ(sum, document["horizon_s"].get<double>());
}

TEST(GoodputJson, SaysWhatVariesOnlyWhereSomethingDoes) {
  GoodputReport report = ten_days();
  EXPECT_FALSE(json::parse(render_json(report)).contains("vary"));
  report.varied = {{"failures.policy", "oobleck"}};
  EXPECT_EQ(json::parse(render_json(report))["vary"]["failures.policy"], "oobleck");
}

TEST(GoodputReport, WritesBothEndsOfAnIntervalToTheSameDecimal) {
  GoodputReport report = ten_days();
  report.samples_per_s.ci95 = {148.7, 149.0};
  EXPECT_NE(render_text(report, {}).find("(95 %: 148.7 – 149.0)"), std::string::npos);
}

// Nothing is known of the spread of one repeat.
TEST(GoodputReport, HasNoIntervalOfOneRepeat) {
  GoodputReport report = ten_days();
  EXPECT_NE(render_text(report, {}).find("8 samples/s   (95 %: 7.9 – 8.1)   10 without"), std::string::npos);
  for (MeanInterval* interval : {&report.samples_per_s, &report.fraction_of_ideal, &report.ettr})
    interval->ci95.reset();
  const json document = json::parse(render_json(report));
  EXPECT_EQ(document["ci95"], json({8.0, 8.0}));
  EXPECT_EQ(document["ettr_ci95"], json({0.85, 0.85}));
  const std::string text = render_text(report, {});
  EXPECT_EQ(text.find("95 %:"), std::string::npos) << text;
  EXPECT_NE(text.find("8 samples/s   10 without failures"), std::string::npos) << text;
}

TEST(GoodputText, SaysWhatTheIdealLacksBesidesFailures) {
  GoodputReport report = ten_days();
  report.ideal_lacks = "redundant forwards";
  EXPECT_NE(render_text(report, {})
                .find("8 samples/s   (95 %: 7.9 – 8.1)\n"
                      "                 10 without failures and redundant forwards\n"),
            std::string::npos);
}

TEST(GoodputText, FitsATerminal) {
  GoodputReport report = ten_days();
  std::string text = render_text(report, {.verbose = true});
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    EXPECT_LE(utf8_count(text.substr(0, end)), 80u) << text.substr(0, end);
    text.erase(0, end + 1);
  }
}

// A persist of 310 s in each 31 min, and one of 10 s.
TEST(GoodputText, SaysHowOftenStorageIsBeingWritten) {
  GoodputReport report = ten_days();
  report.checkpoint.persist = seconds(310);
  EXPECT_THAT(render_text(report), HasSubstr("in the background 5.17 min (17 % of the time),"));
  report.checkpoint.persist = seconds(10);
  EXPECT_THAT(render_text(report), HasSubstr("in the background 10.0 s, loads"));
}

TEST(GoodputText, SaysWhereTheTimeGoes) {
  const std::string text = render_text(ten_days());
  EXPECT_THAT(text, HasSubstr("32 GPUs on 4 nodes and 1 spare: tp 8 · pp 4 · dp 1 · 1f1b"));
  EXPECT_THAT(text, HasSubstr("8 samples/s"));
  EXPECT_THAT(text, HasSubstr("productive      80.00 %"));
  EXPECT_THAT(text, HasSubstr("idle             1.00 %"));
  EXPECT_THAT(text, HasSubstr("all            100.00 %"));
  EXPECT_THAT(text, HasSubstr("20 in 10 days, one every 12 h"));
  EXPECT_THAT(text, HasSubstr("every 30 min (180 steps)"));
  EXPECT_THAT(text, HasSubstr("checkpoint every 35 min (210 steps): the optimum"));
  EXPECT_THAT(text, HasSubstr("keep 2 spares: enough"));
  EXPECT_THAT(text, HasSubstr("half of it +8.00 %, twice -15.00 %"));
  EXPECT_THAT(text, HasSubstr("given, job.yaml:9"));
}

TEST(GoodputText, CountsManyFailuresInFull) {
  GoodputReport report = ten_days();
  report.failures = 1'083'209.6;
  report.restarts = 1'234;
  report.causes = {{.cause = "gpu", .failures = 1'083'209.6, .stopped_s = 36'000, .undone_s = 30'000}};
  const std::string text = render_text(report);
  EXPECT_THAT(text, HasSubstr("failures         1,083,210 in 10 days"));
  EXPECT_THAT(text, HasSubstr("restarts         1,234, "));
  EXPECT_THAT(text, HasSubstr("gpu    1,083,210"));
  EXPECT_THAT(text, Not(HasSubstr("e+0")));
}

TEST(GoodputText, IsSilentAboutWhatIsNotThere) {
  GoodputReport report = ten_days();
  report.failures = report.restarts = 0;
  report.buckets_s = {864'000, 0, 0, 0, 0, 0, 0, 0};
  report.causes.clear();
  report.inputs.clear();
  report.checkpoint = {.mode = "none"};
  report.advice = {};
  const std::string text = render_text(report);
  EXPECT_THAT(text, HasSubstr("none that stopped the job in 10 days"));
  EXPECT_THAT(text, HasSubstr("checkpoint       none"));
  for (const char* const absent : {"lost work", "advice", "cause", "restarts"})
    EXPECT_THAT(text, Not(HasSubstr(absent)));
}

TEST(GoodputText, NamesNoIntervalThatIsLongerThanTheHorizon) {
  GoodputReport report = ten_days();
  report.checkpoint.interval = hours(241);
  EXPECT_THAT(render_text(report), HasSubstr("sync of 931 GiB, none within 10 days\n"));
}

TEST(GoodputText, NamesNoIntervalWhereNothingFails) {
  GoodputReport report = ten_days();
  report.checkpoint.interval = {};
  report.checkpoint.steps = 0;
  report.checkpoint.never = true;
  EXPECT_THAT(render_text(report), HasSubstr("sync of 931 GiB, none within 10 days\n"));
  const json checkpoint = json::parse(render_json(report))["checkpoint"];
  EXPECT_TRUE(checkpoint["interval_s"].is_null());
  EXPECT_TRUE(checkpoint["steps"].is_null());
  EXPECT_EQ(checkpoint["block_s"], 60);
}

TEST(GoodputText, ShowsTheDiaryByDayAndTime) {
  GoodputReport report = ten_days();
  report.timeline = {{.time = hours(27) + minutes(4) + seconds(5), .what = "detect for 10 s"}};
  EXPECT_THAT(render_text(report), HasSubstr("   1 d 03:04:05  detect for 10 s"));
}

}  // namespace
}  // namespace stagecraft
