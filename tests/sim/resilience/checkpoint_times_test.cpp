// When a job makes checkpoints, and what these cost it.
#include "sim/resilience/checkpoint_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "sim/goodput/closed_forms.hpp"
#include "sim/resilience/predict_goodput.hpp"
#include "tests/sim/resilience/failing_jobs.hpp"

namespace stagecraft {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

// No checkpoint pays where nothing fails; the interval that somebody gave stands.
TEST(PredictGoodput, HasNoIntervalWhereNothingFails) {
  FailureSpec spec = failing(0);
  GoodputCheckpoint checkpoint = predict_goodput(with(spec)).checkpoint;
  EXPECT_TRUE(checkpoint.never);
  EXPECT_EQ(checkpoint.interval, Duration::zero());
  EXPECT_EQ(checkpoint.steps, 0);
  spec.checkpoint.rule = IntervalRule::kTime;
  spec.checkpoint.interval = seconds(450);
  checkpoint = predict_goodput(with(spec)).checkpoint;
  EXPECT_FALSE(checkpoint.never);
  EXPECT_EQ(checkpoint.steps, 50);
  EXPECT_FALSE(predict_goodput(with(failing(2))).checkpoint.never);
}

TEST(PredictGoodput, AdvisesTheOptimumThatItUsesByDefault) {
  const GoodputReport report = predict_goodput(with(failing(2)));
  EXPECT_EQ(report.advice.interval, report.checkpoint.interval);
  const double exact = optimal_interval(10, 10'800);
  EXPECT_NEAR(to_seconds(report.checkpoint.interval), exact, 4.5);
  EXPECT_EQ(report.checkpoint.interval, report.checkpoint.steps * seconds(9));
}

// Over 40 days nodes of one failure a day at first have five. The interval is that of nodes that have as many
// from the beginning.
TEST(PredictGoodput, MakesCheckpointsForWhatLemonsBecome) {
  FailureSpec spec = failing(1);
  spec.horizon = hours(960);
  const auto first = static_cast<double>(predict_goodput(with(spec)).checkpoint.steps);
  spec.processes[0].law = ExponentialFailures{.rate_per_node_day = 1, .lemon_factor = 1.1};
  const GoodputReport lemons = predict_goodput(with(spec));
  spec.processes[0].law = ExponentialFailures{.rate_per_node_day = lemons.failures / 4 / 40};
  const auto later = static_cast<double>(predict_goodput(with(spec)).checkpoint.steps);
  ASSERT_LT(later, 0.7 * first);
  EXPECT_NEAR(static_cast<double>(lemons.checkpoint.steps), later, 0.15 * later);
}

// System: copies on two of four nodes, which fail twice a day each and come back after 60 s: memory is lost
//         when the second one of a pair goes within them, 8 (1 - e^(-2 · 60/86,400)) times a day.
TEST(PredictGoodput, KeepsInStorageWhatMemoryLoses) {
  FailureSpec spec = failing(2);
  spec.checkpoint.mode = CheckpointMode::kInMemory;
  const GoodputReport never = predict_goodput(with(spec));  // processes fail, and memory survives them
  EXPECT_EQ(never.advice.interval, std::nullopt);
  EXPECT_EQ(seconds_in(never, Bucket::kCheckpoint), 0);

  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  const GoodputReport report = predict_goodput(with(spec));
  const double again = -std::expm1(-8 * 60.0 / 86'400);
  const double second = again * 0.75 / (1 - again / 4), third = again * 0.5 / (1 - again / 2);
  const double between = 86'400 / (8 * second * ((1 - third) / 3 + third));
  ASSERT_NE(report.advice.interval, std::nullopt);
  EXPECT_NEAR(to_seconds(*report.advice.interval), optimal_interval(10, between), 9);
  EXPECT_EQ(report.checkpoint.interval, *report.advice.interval);
}

// System: the same with a pool of no spares, whose repairs take 12 h: the second of a pair goes within them
//         once in 1 / (1 - e^(-0.25 / 2)) failures, of which there is one a day of training.
TEST(PredictGoodput, KeepsInStorageWhatMemoryLosesWhileThePoolIsEmpty) {
  FailureSpec spec = failing(0.25);
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.repair = {.kind = RepairKind::kConstant, .time = hours(12)};
  spec.policy.kind = PolicyKind::kHotSpares;
  spec.policy.spares = 0;
  spec.checkpoint.mode = CheckpointMode::kInMemory;
  const GoodputReport report = predict_goodput(with(spec));
  const double best = optimal_interval(10, 86'400 / -std::expm1(-0.25 / 2));
  EXPECT_GT(to_seconds(report.checkpoint.interval), 0.7 * best);
  EXPECT_LT(to_seconds(report.checkpoint.interval), 1.4 * best);
}

// 4 s a step of the table: ten of them are 40 s. Oobleck's replay has no checkpoints.
TEST(PredictGoodput, SaysHowAReplayOfVarunaCheckpoints) {
  FailureSpec spec = losing_nodes(PolicyKind::kVaruna);
  spec.policy.throughput = {{2, 0.5}, {4, 1}};
  spec.policy.checkpoint_every = 10;
  spec.checkpoint.block = seconds(3);
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_EQ(report.checkpoint.mode, "sync");
  EXPECT_EQ(report.checkpoint.interval, seconds(40));
  EXPECT_EQ(report.checkpoint.steps, 10);
  EXPECT_EQ(report.checkpoint.block, seconds(3));
  EXPECT_GT(seconds_in(report, Bucket::kCheckpoint), 0);
  spec.policy.kind = PolicyKind::kOobleck;
  EXPECT_EQ(predict_goodput(with(spec)).checkpoint.mode, "none");
}

// System: steps of 9 s, written behind in 90 s at 2/3 of the speed: 5 steps of 13.5 s are done by then, and the
//         sixth ends after it. A checkpoint costs 10 s and a third of 90.
Checkpointing written_behind() {
  return {.mode = CheckpointMode::kAsync, .block = seconds(10), .persist = seconds(90), .slowdown = 1.5};
}

TEST(CheckpointTimes, ChargeWhatAPersistSlowsTrainingDownBy) {
  EXPECT_EQ(cost_of(written_behind()), seconds(40));
  EXPECT_EQ(steps_until_written(written_behind(), seconds(9)), 7);
  EXPECT_EQ(steps_until_written(Checkpointing{}, seconds(9)), 1);
  const std::optional<BestInterval> best = best_interval(written_behind(), seconds(9), 1 / 10'800.0);
  ASSERT_TRUE(best);
  EXPECT_NEAR(to_seconds(best->time), optimal_interval(40, 10'800), 4.5);
}

FailureSpec written_behind(double rate_per_node_day) {
  FailureSpec spec = failing(rate_per_node_day);
  spec.checkpoint.mode = CheckpointMode::kAsync;
  spec.checkpoint.persist = seconds(90);
  spec.checkpoint.slowdown = 1.5;
  return spec;
}

// There are as many blocks of 10 s as there are stretches of so many steps.
TEST(PredictGoodput, SaysTheStepsBetweenCheckpointsThatRun) {
  FailureSpec spec = written_behind(0);
  spec.repeats = 1;
  spec.checkpoint.rule = IntervalRule::kTime;
  spec.checkpoint.interval = seconds(450);
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_EQ(report.checkpoint.steps, 50);
  const double steps = report.samples_per_s.mean * 864'000 / 4,
               checkpoints = seconds_in(report, Bucket::kCheckpoint) / 10;
  EXPECT_NEAR(steps / checkpoints, 50, 0.1);
}

TEST(PredictGoodput, SaysWhereTheIntervalWaitsForThePersist) {
  FailureSpec spec = written_behind(0);
  spec.repeats = 1;
  spec.checkpoint.rule = IntervalRule::kSteps;
  spec.checkpoint.every_steps = 3;
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_EQ(report.checkpoint.steps, 7);
  EXPECT_THAT(report.notes, testing::Contains(testing::HasSubstr("every 7 steps, not every 3")));
  const double steps = report.samples_per_s.mean * 864'000 / 4,
               checkpoints = seconds_in(report, Bucket::kCheckpoint) / 10;
  EXPECT_NEAR(steps / checkpoints, 7, 0.01);
  spec.checkpoint.every_steps = 8;
  EXPECT_THAT(predict_goodput(with(spec)).notes,
              testing::Not(testing::Contains(testing::HasSubstr("not every"))));
}

// A step takes 9 s, and one of the table 4 s: 2^63 ns are 292 years.
TEST(PredictGoodput, RefusesStepsBetweenCheckpointsThatNobodyLivesToSee) {
  FailureSpec spec = failing(2);
  spec.checkpoint.rule = IntervalRule::kSteps;
  spec.checkpoint.every_steps = 1'000'000'000;
  const Diagnostic refusal = refusal_of(with(spec)).front();
  EXPECT_EQ(refusal.path, "failures.checkpoint.interval");
  EXPECT_THAT(refusal.message, testing::HasSubstr("more than 20 years"));
  spec.checkpoint.every_steps = 70'000'000;
  EXPECT_EQ(predict_goodput(with(spec)).checkpoint.interval, seconds(630'000'000));

  FailureSpec varuna = losing_nodes(PolicyKind::kVaruna);
  varuna.policy.checkpoint_every = 1'000'000'000;
  EXPECT_EQ(refusal_of(with(varuna)).front().path, "failures.policy.checkpoint_every");
  varuna.policy.throughput = {{2, 0.5}, {4, 1}};
  EXPECT_EQ(refusal_of(with(varuna)).front().path, "failures.policy.checkpoint_every");
}

TEST(PredictGoodput, RefusesMoreCopiesThanNodes) {
  FailureSpec spec = failing(2);
  spec.checkpoint.mode = CheckpointMode::kInMemory;
  spec.checkpoint.copies = 5;
  const Diagnostic refusal = refusal_of(with(spec)).front();
  EXPECT_EQ(refusal.path, "failures.checkpoint.copies");
  EXPECT_THAT(refusal.message, testing::HasSubstr("4 nodes"));
}

// Nobody tells the job: what a formula knows nothing of is counted, and checkpoints are made for it.
TEST(PredictGoodput, MakesCheckpointsForMaintenanceThatComesTooSuddenly) {
  FailureSpec spec = failing(0);
  spec.processes = {{.law = Maintenance{.period = hours(6), .notice = seconds(5), .duration = hours(1)},
                     .causes = {{.name = "maintenance", .severity = FailureSeverity::kNode}}}};
  const GoodputReport report = predict_goodput(with(spec));
  // 39 in 10 days; of 6 h each: sqrt(2 * 10 s * 6 h) = 657 s.
  EXPECT_NEAR(to_seconds(report.checkpoint.interval), 657, 25);
  EXPECT_GT(report.fraction_of_ideal.mean, 0.9);
}

// Peers have what is lost, until several fail at once: checkpoints are written as often as they are read.
TEST(PredictGoodput, MakesFewerCheckpointsWhereOthersTrainOn) {
  FailureSpec spec = failing(2);
  const Duration restarted = predict_goodput(with(spec)).checkpoint.interval;
  spec.policy = {.kind = PolicyKind::kElastic,
                 .restart = {{1, seconds(60)}},
                 .min_replicas = 1,
                 .stall = seconds(20),
                 .rejoin = seconds(30)};
  const GoodputReport optimal = predict_goodput(with(spec));
  EXPECT_GT(optimal.checkpoint.interval, 3 * restarted);
  spec.checkpoint.rule = IntervalRule::kTime;
  spec.checkpoint.interval = restarted;
  EXPECT_LT(predict_goodput(with(spec)).samples_per_s.mean, optimal.samples_per_s.mean);
}

TEST(PredictGoodput, KeepsItsIntervalsWithinWhatIsPossible) {
  FailureSpec spec = failing(0.05);
  spec.horizon = hours(12);
  spec.repeats = 3;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const GoodputReport report = predict_goodput(with(spec), {.seed = seed});
    ASSERT_TRUE(report.samples_per_s.ci95.has_value());
    EXPECT_LE(report.samples_per_s.ci95->back(), report.ideal_samples_per_s) << seed;
  }
}

// System: four nodes, two of which hold each state, and spares for all; 0.05 failures a day of a node. Both nodes
//         of a pair are lost in the same 7 s about once in 300 years of training.
// Expectations: the rate of lost pairs decides, whatever the horizon and the repeats are.
TEST(PredictGoodput, MakesTheSameCheckpointsForLostPeersWhateverTheHorizonIs) {
  FailureSpec spec = losing_nodes(PolicyKind::kHotSpares);
  spec.processes[0].law = ExponentialFailures{.rate_per_node_day = 0.05};
  spec.policy.state = StateSource::kPeer;
  spec.policy.spares = 4;
  spec.checkpoint.rule = IntervalRule::kOptimal;
  const GoodputReport report = predict_goodput(with(spec));
  ASSERT_NE(report.advice.interval, std::nullopt);
  const double p = -std::expm1(-0.2 * 7 / 86'400);
  EXPECT_NEAR(to_seconds(report.checkpoint.interval),
              optimal_interval(10, 86'400 / (0.2 * p * 0.75 / (1 - p / 4) / 3)), 500);
  spec.horizon *= 3;
  spec.repeats = 2;
  const GoodputReport longer = predict_goodput(with(spec));
  EXPECT_EQ(longer.checkpoint.interval, report.checkpoint.interval);
  EXPECT_EQ(longer.advice.interval, report.advice.interval);
}

// A pool of one: a second node that is lost within the two hours of a repair waits for it, and its partner has
// hours to go as well.
TEST(PredictGoodput, CountsLostPeersWhileThePoolIsEmpty) {
  FailureSpec spec = losing_nodes(PolicyKind::kHotSpares);
  spec.processes[0].law = ExponentialFailures{.rate_per_node_day = 0.05};
  spec.policy.state = StateSource::kPeer;
  spec.policy.spares = 4;
  const Duration many = predict_goodput(with(spec)).checkpoint.interval;
  spec.policy.spares = 1;
  EXPECT_LT(4 * predict_goodput(with(spec)).checkpoint.interval, 3 * many);
}

// Elastic replicas are never all lost here, and no formula says how often they would be.
TEST(PredictGoodput, AdvisesNoOptimumWhereNothingWasSeenToGoBack) {
  FailureSpec spec = losing_nodes(PolicyKind::kElastic);
  spec.processes[0].law = ExponentialFailures{.rate_per_node_day = 0.01};
  spec.repair = {.kind = RepairKind::kConstant, .time = seconds(1)};
  const auto says_so = [](const GoodputReport& report) {
    return testing::Matches(testing::Contains(testing::HasSubstr("no failure of the trial repeats")))(
        report.notes);
  };
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_GT(report.failures, 0);
  EXPECT_EQ(report.advice.interval, std::nullopt);
  EXPECT_TRUE(says_so(report));
  spec.policy.kind = PolicyKind::kCheckpointRestart;
  EXPECT_FALSE(says_so(predict_goodput(with(spec))));
}

}  // namespace
}  // namespace stagecraft
