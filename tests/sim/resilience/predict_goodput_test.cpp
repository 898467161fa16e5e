// Failures on top of a simulated iteration: of the jobs in failing_jobs.hpp where nothing else is said.
#include "sim/resilience/predict_goodput.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/goodput/pencil.hpp"
#include "tests/sim/resilience/failing_jobs.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(PredictGoodput, RefusesAScenarioThatSaysNothingOfFailures) {
  const Diagnostic refusal = refusal_of(two_pipelines()).front();
  EXPECT_EQ(refusal.path, "failures");
  EXPECT_FALSE(refusal.hint.empty());
}

TEST(PredictGoodput, WithoutFailuresIsTheSimulatedIterationOverAndOver) {
  FailureSpec spec = failing(0);
  spec.policy.kind = PolicyKind::kNone;
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_EQ(report.iteration_time, seconds(9));
  // 864,000 s are 96,000 steps of 9 s.
  EXPECT_DOUBLE_EQ(report.samples_per_s.mean, 4.0 / 9);
  EXPECT_EQ(report.ideal_samples_per_s, 4.0 / 9);
  EXPECT_DOUBLE_EQ(report.fraction_of_ideal.mean, 1);
  EXPECT_DOUBLE_EQ(report.ettr.mean, 1);
  EXPECT_EQ(report.failures, 0);
  EXPECT_EQ(report.checkpoint.mode, "none");
  EXPECT_EQ(report.advice.interval, std::nullopt);
}

TEST(PredictGoodput, HasBucketsThatAddUpToTheHorizon) {
  const GoodputReport report = predict_goodput(with(failing(2)));
  EXPECT_NEAR(sum_of(report.buckets_s), 864'000, 864'000 * 1e-9);
  EXPECT_GT(report.failures, 0);
}

TEST(PredictGoodput, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Scenario scenario = with(failing(2));
  EXPECT_EQ(predict_goodput(scenario, {.seed = 7, .threads = 1}),
            predict_goodput(scenario, {.seed = 7, .threads = 8}));
}

TEST(PredictGoodput, TellsHowManyRepeatsAreDone) {
  for (const bool inputs : {false, true}) {
    std::size_t calls = 0, last = 0, total = 0;
    (void)predict_goodput(
        with(failing(0.1)),
        {.threads = 4, .inputs = inputs, .progress = [&](std::size_t done, std::size_t all) {
           EXPECT_EQ(done, ++calls);
           last = done;
           total = all;
         }});
    EXPECT_EQ(last, total);
    EXPECT_GE(total, inputs ? 60u : 20u) << "20, and 16 of each change of an input";
  }
}

TEST(PredictGoodput, ChangesWithTheSeed) {
  const Scenario scenario = with(failing(2));
  EXPECT_NE(predict_goodput(scenario, {.seed = 7}).samples_per_s,
            predict_goodput(scenario, {.seed = 8}).samples_per_s);
}

TEST(PredictGoodput, AgreesWithTheClosedFormOfCheckpointRestart) {
  // 8 failures a day: M = 10,800 s. Work W and a checkpoint of 10 s, 60 s + 30 s until it goes on.
  FailureSpec spec = failing(2);
  spec.repeats = 200;
  const GoodputReport report = predict_goodput(with(spec));
  const double work = to_seconds(report.checkpoint.interval);
  const double expected = work / pencil::expected_segment_time({.work = work,
                                                                .checkpoint = 10,
                                                                .downtime = 0,
                                                                .restart = 90,
                                                                .mean_time_between_failures = 10'800});
  // In the closed form a failure strikes anywhere; here steps are whole, which 9 s of 460 hardly show.
  EXPECT_NEAR(report.fraction_of_ideal.mean, expected, 0.005);
}

TEST(PredictGoodput, TellsTheDiaryOfTheFirstRepeatWhenAsked) {
  const GoodputReport report = predict_goodput(with(failing(2)), {.timeline = true});
  ASSERT_FALSE(report.timeline.empty());
  EXPECT_EQ(report.timeline.front().time, Duration::zero());
  EXPECT_TRUE(predict_goodput(with(failing(2))).timeline.empty());
}

// The trace's third node is lost after an hour. Of a job that is drawn from more servers nobody knows the
// names.
TEST(PredictGoodput, NamesTheNodesOfATraceInTheDiary) {
  FailureSpec spec = failing(0);
  TraceReplay replay;
  replay.trace = {.form = TraceForm::kFaults,
                  .rows = {{.time = hours(1), .event = TraceEvent::kFaultStart, .node = 2, .fault = 0},
                           {.time = hours(2), .event = TraceEvent::kFaultEnd, .node = 2, .fault = 0}},
                  .nodes = {"alpha", "beta", "gamma", "delta"}};
  spec.processes[0].causes = {{.name = "fault", .severity = FailureSeverity::kNode, .detect = seconds(10)}};
  spec.processes[0].law = replay;
  const auto told = [](const FailureSpec& failures) {
    std::string all;
    for (const GoodputEvent& event : predict_goodput(with(failures), {.timeline = true}).timeline)
      all += event.what + "\n";
    return all;
  };
  EXPECT_THAT(told(spec), testing::HasSubstr("fault on node gamma: detect for 10.0 s"));
  replay.servers = 4;
  spec.processes[0].law = replay;
  EXPECT_THAT(told(spec), testing::ContainsRegex("fault on node [0-3]: detect for 10.0 s"));
}

TEST(PredictGoodput, FallsWithTheFailureRate) {
  double before = 1;
  for (const double rate : {0.1, 1.0, 10.0, 100.0}) {
    const double now = predict_goodput(with(failing(rate))).fraction_of_ideal.mean;
    EXPECT_LT(now, before) << rate;
    before = now;
  }
}

TEST(PredictGoodput, OfElasticDataParallelismShrinksTheBatch) {
  FailureSpec spec = failing(0.5);
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.repair = {.kind = RepairKind::kConstant, .time = hours(2)};
  spec.policy.kind = PolicyKind::kElastic;
  spec.policy.stall = seconds(60);
  spec.policy.degraded = seconds(420);
  spec.policy.rejoin = seconds(100);
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_NEAR(sum_of(report.buckets_s), 864'000, 864'000 * 1e-9);
  EXPECT_GT(seconds_in(report, Bucket::kDegraded), 0);
  ASSERT_EQ(report.shapes.size(), 2u);
  EXPECT_EQ(report.shapes[1].samples, 2);
}

class EachPolicy : public testing::TestWithParam<PolicyKind> {};

TEST_P(EachPolicy, AccountsForTheWholeHorizonAndBeatsNoIdeal) {
  const GoodputReport report = predict_goodput(with(losing_nodes(GetParam())));
  EXPECT_EQ(report.policy, kPolicyNames[static_cast<std::size_t>(GetParam())]);
  EXPECT_NEAR(sum_of(report.buckets_s), 864'000, 864'000 * 1e-9);
  EXPECT_GT(report.fraction_of_ideal.mean, 0);
  EXPECT_LT(report.fraction_of_ideal.mean, 1);
  EXPECT_NEAR(report.fraction_of_ideal.mean, report.samples_per_s.mean / report.ideal_samples_per_s, 1e-6);
}

// The scheduler replaces a lost node at once; the stall is one line of the diary all the same.
TEST(PredictGoodput, TellsAStallInOneLineWhoeverComesMeanwhile) {
  FailureSpec spec = losing_nodes(PolicyKind::kCheckpointRestart);
  spec.policy.lost = LostNode::kReplaced;
  spec.processes[0].causes[0].detect = seconds(10);
  const GoodputReport report = predict_goodput(with(spec), {.timeline = true});
  int detected = 0;
  for (std::size_t i = 0; i + 1 < report.timeline.size(); ++i) {
    const bool detects = report.timeline[i].what.find("detect for") != std::string::npos;
    detected += detects ? 1 : 0;
    EXPECT_FALSE(detects && report.timeline[i + 1].what.find("detect for") != std::string::npos) << i;
  }
  EXPECT_GT(detected, 0);
}

TEST_P(EachPolicy, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Scenario scenario = with(losing_nodes(GetParam()));
  EXPECT_EQ(predict_goodput(scenario, {.threads = 1}), predict_goodput(scenario, {.threads = 8}));
}

// Four nodes meet one in 68 millennia, which is more than a Duration holds.
TEST_P(EachPolicy, TakesFailuresThatNobodyLivesToSee) {
  FailureSpec spec = losing_nodes(GetParam());
  spec.processes[0].law = ExponentialFailures{.rate_per_node_day = 1e-8};
  spec.policy.slow.restart = GetParam() == PolicyKind::kHotSpares;
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_EQ(report.failures, 0);
  EXPECT_GT(report.fraction_of_ideal.mean, 0.7) << "redundant work apart, it is the ideal";
}

TEST_P(EachPolicy, LosesNothingToFailuresWithoutAny) {
  FailureSpec spec = losing_nodes(GetParam());
  spec.processes[0].law = ExponentialFailures{.rate_per_node_day = 0};
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_EQ(report.failures, 0);
  EXPECT_LT(seconds_in(report, Bucket::kLostWork), 9.0) << "at most the step that the horizon cuts";
  EXPECT_EQ(seconds_in(report, Bucket::kDetect) + seconds_in(report, Bucket::kReconfigure) +
                seconds_in(report, Bucket::kStateTransfer),
            0);
}

INSTANTIATE_TEST_SUITE_P(Goodput, EachPolicy,
                         testing::Values(PolicyKind::kCheckpointRestart, PolicyKind::kHotSpares,
                                         PolicyKind::kOobleck, PolicyKind::kBamboo, PolicyKind::kVaruna,
                                         PolicyKind::kRecycle, PolicyKind::kElastic, PolicyKind::kNone));

// Fabrics that hold so many nodes and no others: a torus, a full dragonfly, eight planes for nodes of eight
// NICs.
TEST(PredictGoodput, TakesFabricsThatHoldNoOtherNumberOfNodes) {
  for (const char* fabric :
       {"{kind: torus, dims: [2, 2], link_bandwidth: 400 Gb/s}",
        "{kind: dragonfly, groups: 2, routers_per_group: 2, nodes_per_router: 1, link_bandwidth: 400 Gb/s}",
        "{kind: fat-tree, planes: 8}"})
    for (const PolicyKind kind : {PolicyKind::kCheckpointRestart, PolicyKind::kElastic, PolicyKind::kVaruna,
                                  PolicyKind::kOobleck, PolicyKind::kBamboo}) {
      SCOPED_TRACE(testing::Message() << fabric << ' ' << kPolicyNames[static_cast<std::size_t>(kind)]);
      Scenario scenario = scenario_of(
          "stagecraft: 1\n"
          "model: {family: gpt, layers: 8, hidden: 1024, heads: 8, vocab: 51200, max_sequence_length: 1024}\n"
          "cluster: {node: dgx-a100-80gb, nodes: 4, fabric: " +
          std::string(fabric) +
          "}\n"
          "parallelism: {tensor: 4, pipeline: 2, data: 4}\n"
          "training: {global_batch_size: 32, micro_batch_size: 1, sequence_length: 1024}\n");
      FailureSpec spec = losing_nodes(kind);
      spec.repeats = 2;
      scenario.failures = std::move(spec);
      EXPECT_GT(predict_goodput(scenario).fraction_of_ideal.mean, 0);
    }
}

// Whoever replaces a lost node can fail as any other: how long the lost one is in repair changes nothing.
TEST(PredictGoodput, AReplacedNodeFailsAsAnyOther) {
  FailureSpec spec = failing(2);
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  const auto failures_with = [&](hours repair) {
    spec.repair = {.kind = RepairKind::kConstant, .time = repair};
    return predict_goodput(with(spec)).failures;
  };
  EXPECT_EQ(failures_with(hours(132)), failures_with(hours(0)));
}

// System: a spot market that has no node for the job.
TEST(PredictGoodput, TrainsNothingWhereNoNodeIsThere) {
  for (const char* policy : {"checkpoint-restart", "none"}) {
    const GoodputReport report = predict_goodput(
        scenario_of("stagecraft: 1\n"
                    "model: {family: stages, forward: 1 s, input_gradient: 1 s, weight_gradient: 1 s}\n"
                    "parallelism: {pipeline: 2, data: 2}\n"
                    "training: {global_batch_size: 4, micro_batch_size: 1}\n"
                    "failures:\n"
                    "  process: {kind: spot, removal: 0, addition: 0}\n"
                    "  horizon: 10 h\n"
                    "  repeats: 2\n"
                    "  policy: " +
                    std::string(policy) + "\n"));
    EXPECT_EQ(report.samples_per_s.mean, 0) << policy;
    EXPECT_NEAR(seconds_in(report, Bucket::kIdle), 36'000, 1e-6) << policy;
  }
}

// System: one of four nodes fails every 0.2 s in the mean, and a step takes 9 s.
TEST(PredictGoodput, AdvisesNothingWhereNothingIsTrained) {
  for (const PolicyKind kind : {PolicyKind::kCheckpointRestart, PolicyKind::kElastic}) {
    FailureSpec spec = losing_nodes(kind);
    spec.processes[0].law = ExponentialFailures{.rate_per_node_day = 1e5};
    spec.horizon = hours(1);
    spec.repeats = 1;
    const GoodputReport report = predict_goodput(with(spec));
    EXPECT_EQ(report.samples_per_s.mean, 0);
    EXPECT_EQ(report.advice, GoodputAdvice{});
  }
}

// Without failures: a quorum of 1 s makes a step of 9 s one of 10 s, a backup of a tenth one of 9.9 s.
TEST(PredictGoodput, WhatEveryStepPaysForResilienceIsDegraded) {
  FailureSpec elastic = losing_nodes(PolicyKind::kElastic);
  elastic.processes[0].law = ExponentialFailures{.rate_per_node_day = 0};
  elastic.policy.quorum = seconds(1);
  EXPECT_NEAR(predict_goodput(with(elastic)).fraction_of_ideal.mean, 0.9, 1e-4);
  FailureSpec spares = losing_nodes(PolicyKind::kHotSpares);
  spares.processes[0].law = ExponentialFailures{.rate_per_node_day = 0};
  spares.policy.state = StateSource::kPeer;
  spares.policy.backup = 0.1;
  const GoodputReport report = predict_goodput(with(spares));
  EXPECT_NEAR(report.samples_per_s.mean, 4 / 9.9, 1e-4);
  EXPECT_NEAR(seconds_in(report, Bucket::kDegraded), 864'000 * (0.9 / 9.9), 20);
}

// Without failures every step is that of the shape: with redundant forwards, or with a quorum.
TEST(PredictGoodput, ShowsTheStepsThatItsShapesReallyTake) {
  FailureSpec elastic = losing_nodes(PolicyKind::kElastic);
  elastic.policy.quorum = seconds(1);
  FailureSpec bamboo = losing_nodes(PolicyKind::kBamboo);
  for (FailureSpec* spec : {&elastic, &bamboo}) {
    spec->processes[0].law = ExponentialFailures{.rate_per_node_day = 0};
    const GoodputReport report = predict_goodput(with(*spec));
    ASSERT_FALSE(report.shapes.empty());
    EXPECT_EQ(report.shapes[0].nodes, 4);
    EXPECT_NEAR(report.samples_per_s.mean, report.shapes[0].samples_per_s(), 1e-4);
    EXPECT_LT(report.shapes[0].samples_per_s(), report.ideal_samples_per_s);
    EXPECT_EQ(report.ideal_lacks, spec == &bamboo ? "redundant forwards" : "quorums");
  }
}

// Nodes that are slow half of the time, three times as slow, and never fail.
FailureSpec slow_half_of_the_time() {
  FailureSpec spec = failing(0);
  spec.processes = {
      {.law =
           FailSlow{
               .share = 0.1, .low_factor = 3, .high_factor = 3, .shortest = hours(9), .longest = hours(10)},
       .causes = {{.name = "slow"}}}};
  spec.policy.kind = PolicyKind::kHotSpares;
  spec.policy.spares = 1;
  return spec;
}

TEST(PredictGoodput, EveryRungOfTheLadderGainsOnNodesThatAreSlow) {
  FailureSpec spec = slow_half_of_the_time();
  const auto gained = [&] { return predict_goodput(with(spec)).fraction_of_ideal.mean; };
  const double ignored = gained();
  spec.policy.slow.rebalance = true;
  const double rebalanced = gained();
  spec.policy.slow.exchange = true;
  const double exchanged = gained();
  spec.policy.slow.restart = true;
  const double without = gained();
  EXPECT_GT(rebalanced, ignored);
  EXPECT_GT(exchanged, rebalanced);
  EXPECT_GE(without, exchanged);
}

// Three times as slow, stage 0 takes 18 s in place of 9 and stage 1 takes 21. A table of steps knows no
// stages: the whole step takes 27.
TEST(PredictGoodput, ASlowNodeHoldsUpNoMoreThanItsStageDoes) {
  FailureSpec spec = slow_half_of_the_time();
  const double simulated = predict_goodput(with(spec)).fraction_of_ideal.mean;
  spec.policy.throughput = {{4, 4.0 / 9}};
  const double whole = predict_goodput(with(spec)).fraction_of_ideal.mean;
  EXPECT_GT(simulated, whole);
  // Slow from time to time, alone or with others: between what the faster and the slower of them leave.
  EXPECT_GT(1 / simulated - 1, (18.0 / 9 - 1) / (27.0 / 9 - 1) * (1 / whole - 1) * 0.9);
}

TEST(PredictGoodput, CountsWhatStopsBamboo) {
  const GoodputReport report = predict_goodput(with(losing_nodes(PolicyKind::kBamboo)));
  ASSERT_FALSE(report.causes.empty());
  EXPECT_GT(report.failures, 0);
  EXPECT_GT(report.restarts, 0);
  // Rendezvous for nodes that come have no cause.
  EXPECT_GT(report.causes[0].stopped_s, 0);
  EXPECT_LE(report.causes[0].stopped_s,
            seconds_in(report, Bucket::kDetect) + seconds_in(report, Bucket::kReconfigure) +
                seconds_in(report, Bucket::kStateTransfer) + seconds_in(report, Bucket::kIdle) + 1e-6);
}

TEST(PredictGoodput, ChargesBambooForDetection) {
  const auto detects_in = [](Duration time) {
    FailureSpec spec = losing_nodes(PolicyKind::kBamboo);
    spec.detect = time;
    return predict_goodput(with(spec));
  };
  const GoodputReport soon = detects_in(Duration(0)), late = detects_in(hours(1));
  EXPECT_EQ(seconds_in(soon, Bucket::kDetect), 0);
  EXPECT_GT(seconds_in(late, Bucket::kDetect), 0.5 * 3600 * late.failures);
  EXPECT_LT(late.samples_per_s.mean, soon.samples_per_s.mean);
}

TEST(PredictGoodput, SaysThatTheJobDoesNotFit) {
  const GoodputReport report = predict_goodput(
      scenario_of("stagecraft: 1\n"
                  "model: gpt3-175b\n"
                  "cluster: {node: dgx-a100-80gb, nodes: 2}\n"
                  "parallelism: {tensor: 8, pipeline: 2}\n"
                  "training: {global_batch_size: 8, micro_batch_size: 1, sequence_length: 2048}\n"
                  "failures: {policy: checkpoint-restart, horizon: 1 days, repeats: 1}\n"));
  EXPECT_THAT(
      report.notes,
      testing::Contains(testing::ContainsRegex("does not fit into memory: stage [01] needs .* of .*GiB")));
}

TEST(PredictGoodput, SaysWhereVarunaHasShapesThatFit) {
  const GoodputReport report = predict_goodput(
      scenario_of("stagecraft: 1\n"
                  "model: gpt3-175b\n"
                  "cluster: {node: dgx-a100-80gb, nodes: 16}\n"
                  "parallelism: {tensor: 8, pipeline: 2}\n"
                  "training: {global_batch_size: 8, micro_batch_size: 1, sequence_length: 2048}\n"
                  "failures: {process: {kind: exponential, rate_per_node_day: 0}, policy: varuna, "
                  "horizon: 1 days, repeats: 1}\n"));
  EXPECT_THAT(report.notes, testing::Contains(testing::HasSubstr("; varuna trains in other shapes")));
  ASSERT_FALSE(report.shapes.empty());
  EXPECT_EQ(report.ideal_samples_per_s, report.shapes.front().samples_per_s());
}

TEST(PredictGoodput, SaysWhyVarunaIdles) {
  FailureSpec spec = failing(0);
  TraceReplay trace;
  trace.trace = {.form = TraceForm::kCounts,
                 .counts = {{.time = {}, .available = 1}, {.time = hours(1), .available = 4}}};
  spec.processes[0].law = trace;
  spec.policy.kind = PolicyKind::kVaruna;
  EXPECT_THAT(predict_goodput(with(spec)).notes,
              testing::Contains("no shape trains on 1 node, and the job idles: a replica of 2 stages takes 2 "
                                "nodes"));
}

TEST(PredictGoodput, SaysWhyATraceTrainsNothing) {
  FailureSpec spec = failing(0);
  TraceReplay trace;
  trace.trace = {.form = TraceForm::kCounts,
                 .counts = {{.time = {}, .available = 1}, {.time = hours(1), .available = 3}}};
  spec.processes[0].law = trace;
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.policy.lost = LostNode::kWaitedFor;
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_EQ(report.samples_per_s.mean, 0);
  EXPECT_THAT(report.notes, testing::Contains(testing::HasSubstr("needs 4 nodes, and no more than 3")));
}

}  // namespace
}  // namespace stagecraft
