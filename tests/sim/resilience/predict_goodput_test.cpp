// Failures on top of a simulated iteration.
//
// System: abstract stages of 1 s each, 2 replicas of 2 stages on 4 nodes; (m + 1) · 3 s an iteration for m
//         micro-batches each: 4 samples in 9 s. Failures are given by hand.
#include "sim/resilience/predict_goodput.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "sim/goodput/closed_forms.hpp"
#include "sim/resilience/checkpoint_times.hpp"
#include "sim/resilience/degraded_shapes.hpp"
#include "tests/sim/goodput/pencil.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

Scenario two_pipelines() {
  return scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 s, input_gradient: 1 s, weight_gradient: 1 s}\n"
      "parallelism: {pipeline: 2, data: 2}\n"
      "training: {global_batch_size: 4, micro_batch_size: 1}\n");
}

// Exponential failures of processes, found out at once.
FailureSpec failing(double rate_per_node_day) {
  FailureSpec spec;
  spec.processes = {{.law = ExponentialFailures{.rate_per_node_day = rate_per_node_day},
                     .causes = {{.name = "process", .severity = FailureSeverity::kProcess}}}};
  spec.policy = {.kind = PolicyKind::kCheckpointRestart, .restart = {{1, seconds(60)}}};
  spec.checkpoint = {.block = seconds(10), .load = seconds(30)};
  spec.horizon = hours(240);
  spec.repeats = 20;
  return spec;
}

Scenario with(FailureSpec spec) {
  Scenario scenario = two_pipelines();
  scenario.failures = std::move(spec);
  return scenario;
}

double sum_of(const std::array<double, 8>& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), 0.0);
}

TEST(PredictGoodput, RefusesAScenarioThatSaysNothingOfFailures) {
  try {
    (void)predict_goodput(two_pipelines());
    FAIL() << "was not refused";
  } catch (const ScenarioError& error) {
    EXPECT_EQ(error.diagnostics().front().path, "failures");
    EXPECT_FALSE(error.diagnostics().front().hint.empty());
  }
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

TEST(PredictGoodput, AdvisesTheOptimumThatItUsesByDefault) {
  const GoodputReport report = predict_goodput(with(failing(2)));
  EXPECT_EQ(report.advice.interval, report.checkpoint.interval);
  const double exact = optimal_interval(10, 10'800);
  EXPECT_NEAR(to_seconds(report.checkpoint.interval), exact, 4.5);
  EXPECT_EQ(report.checkpoint.interval, report.checkpoint.steps * seconds(9));
}

TEST(PredictGoodput, NamesTheInputsThatDominate) {
  const GoodputReport report = predict_goodput(with(failing(2)), {.inputs = true});
  ASSERT_FALSE(report.inputs.empty());
  EXPECT_EQ(report.inputs[0].name, "failures.process.rate_per_node_day");
  EXPECT_GT(report.inputs[0].half, 0);
  EXPECT_LT(report.inputs[0].twice, 0);
}

TEST(PredictGoodput, SaysWhereAnInputWasGiven) {
  const std::string rate = "failures.process.rate_per_node_day";
  const auto source = [&](const SourceLocation& where) {
    Scenario scenario = with(failing(2));
    scenario.origins[rate] = where;
    return predict_goodput(scenario, {.inputs = true}).inputs.at(0).source;
  };
  EXPECT_EQ(source({.file = "job.yaml", .line = 9, .column = 3}), "given, job.yaml:9");
  EXPECT_EQ(source({.file = "--set " + rate + "=2"}), "given, --set " + rate + "=2");
}

// Twice a repair of 150 years is more than a Duration holds.
TEST(PredictGoodput, DoublesATimeThatCannotBeDoubled) {
  FailureSpec spec = failing(0.1);
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.repair = {.kind = RepairKind::kConstant, .time = hours(24 * 54'750)};
  spec.policy.kind = PolicyKind::kHotSpares;
  spec.policy.spares = 2;
  const GoodputReport report = predict_goodput(with(spec), {.inputs = true});
  EXPECT_FALSE(report.inputs.empty());
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
  EXPECT_GT(report.buckets_s[6], 0) << "degraded";
  ASSERT_EQ(report.shapes.size(), 2u);
  EXPECT_EQ(report.shapes[1].samples, 2);
}

TEST(PredictGoodput, KeepsSparesBesideTheJob) {
  FailureSpec spec = failing(0.5);
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.repair = {.kind = RepairKind::kConstant, .time = hours(2)};
  spec.policy.kind = PolicyKind::kHotSpares;
  const auto of_spares = [&](int spares) {
    spec.policy.spares = spares;
    return predict_goodput(with(spec));
  };
  EXPECT_EQ(of_spares(1).nodes, 5);
  EXPECT_EQ(of_spares(1).spares, 1);
  EXPECT_GT(of_spares(1).fraction_of_ideal.mean, of_spares(0).fraction_of_ideal.mean);
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

TEST(PredictGoodput, KeepsAsManySparesAsAreAwayAtOnceUnlessItIsTold) {
  FailureSpec spec = failing(0.02);
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.policy.kind = PolicyKind::kHotSpares;
  const auto with_repair_of = [&](int time) {
    spec.repair = {.kind = RepairKind::kConstant, .time = hours(time)};
    return predict_goodput(with(spec));
  };
  const GoodputReport day = with_repair_of(24), week = with_repair_of(168);
  EXPECT_EQ(day.spares, 1);
  EXPECT_EQ(week.advice.spares, std::nullopt) << "it has them";
  EXPECT_GT(week.spares, 1);
}

// Ten failures a day of each node, away for 10 min each: 6.5 % of the time. Of six nodes more than two are
// away in 0.5 % of it, of five more than one in 3.7 %. The advice says the same. Failures that take no node
// need no spare.
TEST(PredictGoodput, KeepsSparesForNodesThatAreAwayAndNotForFailures) {
  FailureSpec spec = failing(10);
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.policy.kind = PolicyKind::kHotSpares;
  spec.repair = {.kind = RepairKind::kConstant, .time = std::chrono::minutes(10)};
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_EQ(report.spares, 2);
  EXPECT_EQ(report.advice.spares, std::nullopt);
  spec.processes[0].causes[0].severity = FailureSeverity::kProcess;
  EXPECT_EQ(predict_goodput(with(spec)).spares, 0);
}

// Nodes that are lost and come back, under the policy as its loader fills it in.
FailureSpec losing_nodes(PolicyKind kind) {
  FailureSpec spec = failing(0.5);
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.repair = {.kind = RepairKind::kConstant, .time = hours(2)};
  spec.policy.kind = kind;
  spec.policy.swap = seconds(7);
  spec.policy.global_rendezvous = seconds(30);
  spec.policy.local_rendezvous = seconds(20);
  spec.policy.takeover_slowdown = 1.5;
  spec.policy.rebalance_threshold = 0.05;
  spec.policy.transient_wait = seconds(60);
  spec.policy.stall = seconds(180);
  return spec;
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

// A pool that nobody gave is for what fails: twice the rate has one answer, whoever doubles it. As an input of
// its own it is cut in half beside the same failures.
TEST(PredictGoodput, VariesInputsAsIfTheyWereGiven) {
  FailureSpec spec = losing_nodes(PolicyKind::kHotSpares);
  spec.repeats = 4;
  spec.repair.time = hours(6);
  ASSERT_FALSE(spec.policy.spares.has_value());
  const GoodputReport own = predict_goodput(with(spec), {.inputs = true});
  ASSERT_GT(own.spares, 1);
  const auto change_to = [&](const FailureSpec& other) {
    return predict_goodput(with(other)).samples_per_s.mean / own.samples_per_s.mean - 1;
  };
  FailureSpec twice = spec, half = spec;
  std::get<ExponentialFailures>(twice.processes[0].law).rate_per_node_day *= 2;
  half.policy.spares = own.spares / 2;
  EXPECT_GT(predict_goodput(with(twice)).spares, own.spares);
  const auto row = [&](const std::string& name) {
    const auto found = std::ranges::find(own.inputs, "failures." + name, &GoodputInput::name);
    return found == own.inputs.end() ? GoodputInput{} : *found;
  };
  EXPECT_EQ(row("process.rate_per_node_day").twice, change_to(twice));
  EXPECT_EQ(row("policy.spares").value, std::to_string(own.spares));
  EXPECT_EQ(row("policy.spares").half, change_to(half));
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
  EXPECT_LT(report.buckets_s[1], 9.0) << "at most the step that the horizon cuts";
  EXPECT_EQ(report.buckets_s[3] + report.buckets_s[4] + report.buckets_s[5], 0);
}

INSTANTIATE_TEST_SUITE_P(Goodput, EachPolicy,
                         testing::Values(PolicyKind::kCheckpointRestart, PolicyKind::kHotSpares,
                                         PolicyKind::kOobleck, PolicyKind::kBamboo, PolicyKind::kVaruna,
                                         PolicyKind::kRecycle, PolicyKind::kElastic, PolicyKind::kNone));

TEST(PredictGoodput, RefusesPeersThatHaveNoState) {
  FailureSpec spec = failing(0.5);
  spec.policy.kind = PolicyKind::kHotSpares;
  spec.policy.state = StateSource::kPeer;
  Scenario scenario = with(spec);
  scenario.parallelism.zero_stage = 1;
  try {
    (void)predict_goodput(scenario);
    FAIL() << "was not refused";
  } catch (const ScenarioError& error) {
    EXPECT_EQ(error.diagnostics().front().path, "failures.policy.state");
  }
}

std::vector<Diagnostic> refusal_of(const Scenario& scenario) {
  try {
    (void)predict_goodput(scenario);
  } catch (const ScenarioError& error) {
    return error.diagnostics();
  }
  ADD_FAILURE() << "was not refused";
  return {Diagnostic{}};
}

// ZeRO shares the states out over the replicas: no other has those of one that is lost. Bamboo's shadows do.
TEST(PredictGoodput, SaysWhereWhoIsLeftLacksStates) {
  const auto says_so = [](const Scenario& scenario) {
    return testing::Matches(testing::Contains(
        testing::HasSubstr("zero_stage 1 shards each state over 2 ranks")))(predict_goodput(scenario).notes);
  };
  for (const PolicyKind kind : {PolicyKind::kElastic, PolicyKind::kRecycle}) {
    Scenario scenario = with(losing_nodes(kind));
    EXPECT_FALSE(says_so(scenario));
    scenario.parallelism.zero_stage = 1;
    EXPECT_TRUE(says_so(scenario));
    scenario.parallelism.zero_group = 1;
    EXPECT_FALSE(says_so(scenario)) << "each replica has its own";
  }
  Scenario bamboo = with(losing_nodes(PolicyKind::kBamboo));
  const GoodputReport whole = predict_goodput(bamboo);
  bamboo.parallelism.zero_stage = 1;
  const GoodputReport shared = predict_goodput(bamboo);
  EXPECT_GT(shared.fraction_of_ideal.mean, 0);
  EXPECT_LE(shared.fraction_of_ideal.mean, whole.fraction_of_ideal.mean);
}

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

// System: copies on two of four nodes, which fail twice a day each and come back after 60 s: memory is lost
//         when the second one of a pair goes within them, 8 (1 - e^(-2 · 60/86,400)) times a day.
TEST(PredictGoodput, KeepsInStorageWhatMemoryLoses) {
  FailureSpec spec = failing(2);
  spec.checkpoint.mode = CheckpointMode::kInMemory;
  const GoodputReport never = predict_goodput(with(spec));  // processes fail, and memory survives them
  EXPECT_EQ(never.advice.interval, std::nullopt);
  EXPECT_EQ(never.buckets_s[2], 0);

  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  const GoodputReport report = predict_goodput(with(spec));
  const double between = 86'400 / (8 * -std::expm1(-2 * 60.0 / 86'400));
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
    EXPECT_NEAR(report.buckets_s[7], 36'000, 1e-6) << policy;
  }
}

// System: a table by nodes, 4 samples a step: 1 sample/s on four nodes, 0.5 on two and three.
TEST(PredictGoodput, TakesItsStepsFromATableUnderEveryPolicy) {
  for (const PolicyKind kind : {PolicyKind::kCheckpointRestart, PolicyKind::kHotSpares, PolicyKind::kElastic,
                                PolicyKind::kRecycle, PolicyKind::kNone, PolicyKind::kOobleck}) {
    SCOPED_TRACE(kPolicyNames[static_cast<std::size_t>(kind)]);
    FailureSpec spec = losing_nodes(kind);
    spec.policy.lost = LostNode::kDoneWithout;
    spec.policy.throughput = {{2, 0.5}, {4, 1}};
    const GoodputReport report = predict_goodput(with(spec));
    EXPECT_EQ(report.ideal_samples_per_s, 1);
    EXPECT_GT(report.fraction_of_ideal.mean, kind == PolicyKind::kNone ? 0 : 0.3);
    EXPECT_LT(report.fraction_of_ideal.mean, 1);
    EXPECT_NEAR(sum_of(report.buckets_s), 864'000, 864'000 * 1e-9);
    EXPECT_THAT(report.notes, testing::Contains(testing::HasSubstr("failures.policy.throughput")));
  }
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
  EXPECT_GT(report.buckets_s[2], 0);
  spec.policy.kind = PolicyKind::kOobleck;
  EXPECT_EQ(predict_goodput(with(spec)).checkpoint.mode, "none");
}

TEST(PredictGoodput, RefusesATableThatSaysNothingOfTheWholeJob) {
  FailureSpec spec = losing_nodes(PolicyKind::kHotSpares);
  spec.policy.throughput = {{5, 1}};
  const Diagnostic refusal = refusal_of(with(spec)).front();
  EXPECT_EQ(refusal.path, "failures.policy.throughput");
  EXPECT_THAT(refusal.message, testing::HasSubstr("4 nodes"));
}

// The experts of Mixtral lie on the ranks of four replicas, and those of the second scenario on each rank.
// A pipeline of Oobleck shares them out over its two tensor ranks, and holds all of them on each.
TEST(PredictGoodput, GivesEachPipelineOfOobleckAllExperts) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"parallelism.expert=1"}})
    for (const bool simulated : {false, true}) {
      SCOPED_TRACE(testing::Message() << more.size() << ' ' << simulated);
      Scenario scenario = shipped("mixtral-8x7b-64xH100", more);
      FailureSpec spec = losing_nodes(PolicyKind::kOobleck);
      spec.policy.simulated_cost = simulated;
      spec.repeats = 2;
      scenario.failures = std::move(spec);
      const GoodputReport report = predict_goodput(scenario);
      EXPECT_GT(report.fraction_of_ideal.mean, 0.3);
      const auto says_so = testing::Contains(testing::HasSubstr("experts lie on 8 ranks"));
      EXPECT_EQ(testing::Matches(says_so)(report.notes), more.empty());
    }
}

TEST(PredictGoodput, SaysWhereFailuresAreAskedForThatCannotBeSurvived) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 s, input_gradient: 1 s, weight_gradient: 1 s}\n"
      "parallelism: {pipeline: 2, data: 2}\n"
      "training: {global_batch_size: 8, micro_batch_size: 1}\n"
      "failures:\n"
      "  policy: {name: oobleck, max_failures: 4}\n");
  const Diagnostic refusal = refusal_of(scenario).front();
  EXPECT_EQ(refusal.code, "too-many-failures");
  EXPECT_EQ(refusal.path, "failures.policy.max_failures");
  EXPECT_EQ(refusal.where.line, 6);
  EXPECT_FALSE(refusal.hint.empty());
}

// One failure is a default of the policy: what is refused was written where the policy is.
TEST(PredictGoodput, SaysWhereThePolicyIsWhoseDefaultIsRefused) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 s, input_gradient: 1 s, weight_gradient: 1 s}\n"
      "training: {global_batch_size: 8, micro_batch_size: 1}\n"
      "failures:\n"
      "  process: exponential\n"
      "  policy: oobleck\n");
  const Diagnostic refusal = refusal_of(scenario).front();
  EXPECT_EQ(refusal.path, "failures.policy.max_failures");
  EXPECT_EQ(refusal.where.line, 6);
}

// ZeRO 3 shares the model out over 8 nodes of 8 replicas each, and one does not hold it.
TEST(PredictGoodput, NamesTheFewestReplicasThatHoldAShardedModel) {
  const auto elastic = [](const std::string& policy) {
    return scenario_of(
        "stagecraft: 1\n"
        "model: llama-3-70b\n"
        "cluster: {node: dgx-a100-80gb, nodes: 8}\n"
        "parallelism: {tensor: 1, zero_stage: 3}\n"
        "training: {global_batch_size: 64, micro_batch_size: 1, sequence_length: 8192, recompute: full}\n"
        "failures: {repeats: 1, policy: " +
        policy + "}\n");
  };
  const Scenario scenario = elastic("elastic");
  DegradedShapes shapes(scenario, simulate_in_full(scenario));
  int nodes = 1;
  while (!shapes.replicas(nodes, BatchRule::kShrunk)) ++nodes;
  ASSERT_GT(nodes, 1);
  const std::string fewest = std::to_string(8 * nodes);
  const Diagnostic refusal = refusal_of(scenario).front();
  EXPECT_EQ(refusal.path, "failures.policy.min_replicas");
  EXPECT_EQ(refusal.message, "8 of the 64 replicas cannot train on their own");
  EXPECT_EQ(refusal.hint, "min_replicas: " + fewest + " is the least that can");
  EXPECT_GT(predict_goodput(elastic("{name: elastic, min_replicas: " + fewest + "}")).samples_per_s.mean, 0);
}

// Four replicas share a node, and are lost with it: five are on two nodes, 33 are more than there are.
TEST(PredictGoodput, CountsReplicasThatShareANodeOneByOne) {
  const auto at_least = [](int replicas) {
    return scenario_of(
        "stagecraft: 1\n"
        "model: gpt-7.5b\n"
        "cluster: {node: dgx-a100-80gb, nodes: 8}\n"
        "parallelism: {tensor: 2}\n"
        "training: {global_batch_size: 32, micro_batch_size: 1, sequence_length: 2048}\n"
        "failures: {repeats: 4, process: {rate_per_node_day: 1}, policy: {name: elastic, min_replicas: " +
        std::to_string(replicas) + "}}\n");
  };
  const auto rate = [&](int replicas) { return predict_goodput(at_least(replicas)).samples_per_s.mean; };
  EXPECT_EQ(rate(5), rate(8));
  EXPECT_GT(rate(28), rate(29));
  EXPECT_GT(rate(32), 0);
  EXPECT_EQ(refusal_of(at_least(33)).front().message, "33 is more than the job's 32 replicas");
}

// A node has one stage of two replicas, or in another order both stages of one.
TEST(PredictGoodput, LosesTheReplicasThatANodeHasRanksOf) {
  const auto rate = [](const std::string& order) {
    return predict_goodput(
               scenario_of(
                   "stagecraft: 1\n"
                   "model: gpt-7.5b\n"
                   "cluster: {node: dgx-a100-80gb, nodes: 4}\n"
                   "parallelism: {tensor: 4, pipeline: 2, data: 4, order: [tensor, context, expert, " +
                   order +
                   "]}\n"
                   "training: {global_batch_size: 64, micro_batch_size: 1, sequence_length: 2048}\n"
                   "failures: {repeats: 8, process: {rate_per_node_day: 0.2}, policy: elastic}\n"))
        .fraction_of_ideal.mean;
  };
  EXPECT_GT(rate("pipeline, data"), 1.05 * rate("data, pipeline"));
}

TEST(PredictGoodput, NamesTheFewestReplicasOfATable) {
  FailureSpec spec = losing_nodes(PolicyKind::kElastic);
  spec.policy.throughput = {{4, 1}};
  EXPECT_EQ(refusal_of(with(spec)).front().hint,
            "min_replicas: 2 is the least that the table of throughput names");
}

// Nodes with a stage each of two replicas: a pipeline of workers has two, where a replica has the GPUs of one.
TEST(PredictGoodput, CountsTheWorkersOfAPipelineForATable) {
  const auto recycle = [](const std::string& table) {
    return scenario_of(
        "stagecraft: 1\n"
        "model: gpt-7.5b\n"
        "cluster: {node: dgx-a100-80gb, nodes: 4}\n"
        "parallelism: {tensor: 4, pipeline: 2}\n"
        "training: {global_batch_size: 64, micro_batch_size: 1}\n"
        "failures: {repeats: 2, process: {rate_per_node_day: 3}, policy: {name: recycle, throughput: " +
        table + "}}\n");
  };
  EXPECT_GT(predict_goodput(recycle("{2: 100, 4: 200}")).samples_per_s.mean, 0);
  EXPECT_THAT(refusal_of(recycle("{3: 100, 4: 200}")).front().message, testing::HasSubstr("2 nodes"));
}

// 4 replicas of one node each.
TEST(PredictGoodput, RefusesATableThatStopsInBetween) {
  for (const PolicyKind kind : {PolicyKind::kRecycle, PolicyKind::kElastic}) {
    FailureSpec spec = losing_nodes(kind);
    spec.policy.throughput = {{1, 50}, {2, 60}, {3, 0}, {4, 200}};
    Scenario scenario = scenario_of(
        "stagecraft: 1\n"
        "model: {family: stages, forward: 1 s, input_gradient: 1 s, weight_gradient: 1 s}\n"
        "parallelism: {data: 4}\n"
        "training: {global_batch_size: 4, micro_batch_size: 1}\n");
    scenario.failures = spec;
    const Diagnostic refusal = refusal_of(scenario).front();
    EXPECT_EQ(refusal.path, "failures.policy.throughput");
    EXPECT_THAT(refusal.message, testing::HasSubstr("does not train on 3 nodes"));
    scenario.failures->policy.throughput[2].second = 100;
    EXPECT_GT(predict_goodput(scenario).samples_per_s.mean, 0);
  }
}

TEST(PredictGoodput, ElasticSparesStandBesideTheReplicas) {
  FailureSpec spec = losing_nodes(PolicyKind::kElastic);
  const double without = predict_goodput(with(spec)).fraction_of_ideal.mean;
  spec.policy.spares = 1;
  const GoodputReport report = predict_goodput(with(spec));
  EXPECT_EQ(report.nodes, 5);
  EXPECT_EQ(report.spares, 1);
  EXPECT_GT(report.fraction_of_ideal.mean, without);
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

// What is advised can be set: `spares` is a key of two policies, and news only where it is another number.
TEST(PredictGoodput, AdvisesSparesToPoliciesThatHaveThemAndAreShortOfThem) {
  const auto of_policy = [](PolicyKind kind, std::optional<int> spares) {
    FailureSpec spec = losing_nodes(kind);
    spec.policy.spares = spares;
    return predict_goodput(with(spec)).advice;
  };
  for (const PolicyKind kind : {PolicyKind::kHotSpares, PolicyKind::kElastic}) {
    const GoodputAdvice none = of_policy(kind, 0);
    ASSERT_TRUE(none.spares);
    EXPECT_THAT(none.spares_how, testing::StartsWith("keep "));
    EXPECT_EQ(of_policy(kind, none.spares).spares, std::nullopt);
    EXPECT_EQ(of_policy(kind, *none.spares + 1).spares, none.spares);
  }
  for (const PolicyKind kind : {PolicyKind::kCheckpointRestart, PolicyKind::kBamboo, PolicyKind::kOobleck,
                                PolicyKind::kVaruna, PolicyKind::kRecycle})
    EXPECT_THAT(of_policy(kind, std::nullopt).spares_how, testing::StartsWith("hot-spares or elastic with "));
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
  EXPECT_NEAR(report.buckets_s[6], 864'000 * (0.9 / 9.9), 20) << "degraded";
}

TEST(PredictGoodput, BackupsGivePeersTheStatesThatZeroShards) {
  FailureSpec spec = losing_nodes(PolicyKind::kHotSpares);
  spec.policy.state = StateSource::kPeer;
  spec.policy.backup = 0.009;
  Scenario scenario = with(spec);
  scenario.parallelism.zero_stage = 1;
  EXPECT_GT(predict_goodput(scenario).fraction_of_ideal.mean, 0.5);
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

// System: GPT 22B on 2 nodes of H100 and 4 of A100, each stage on nodes of one kind.
Scenario two_kinds(const std::string& policy) {
  return scenario_of(
      "stagecraft: 1\n"
      "model: gpt-22b\n"
      "cluster:\n"
      "  nodes: [{node: dgx-h100, nodes: 2}, {node: dgx-a100-80gb, nodes: 4}]\n"
      "parallelism: {tensor: 8, pipeline: 3, data: 2}\n"
      "schedule: 1f1b\n"
      "training: {global_batch_size: 96, micro_batch_size: 2}\n"
      "failures:\n"
      "  process: {kind: exponential, rate_per_node_day: 0.05}\n"
      "  policy: " +
      policy +
      "\n"
      "  repair: 24 h\n"
      "  repeats: 4\n");
}

// Two stages do not fit. Oobleck has pipelines of its own: one of two nodes is no plan.
TEST(PredictGoodput, OobleckNeedsNodesThatHoldTheModelWhateverTheScenariosOwn) {
  const GoodputReport report = predict_goodput(
      scenario_of("stagecraft: 1\n"
                  "model: gpt3-175b\n"
                  "cluster: {node: dgx-a100-80gb, nodes: 16}\n"
                  "parallelism: {tensor: 8, pipeline: 2}\n"
                  "training: {global_batch_size: 16, micro_batch_size: 1, sequence_length: 2048, "
                  "recompute: full}\n"
                  "failures: {process: {kind: exponential, rate_per_node_day: 0}, policy: oobleck, "
                  "horizon: 1 days, repeats: 1}\n"),
      {.plan = true});
  EXPECT_THAT(report.notes, testing::Contains(testing::HasSubstr("does not fit")));
  EXPECT_THAT(report.plan, testing::ContainsRegex("the model needs [3-8] nodes"));
}

TEST(PredictGoodput, OobleckPlansForEachKindOfNode) {
  const GoodputReport report = predict_goodput(two_kinds("{name: oobleck, max_failures: 1}"), {.plan = true});
  EXPECT_GT(report.fraction_of_ideal.mean, 0.5);
  EXPECT_NEAR(sum_of(report.buckets_s), 30 * 86'400, 1e-3);
  EXPECT_THAT(report.plan, testing::HasSubstr("dgx-h100"));
  EXPECT_THAT(report.plan, testing::HasSubstr("dgx-a100-80gb"));
}

// The equations know neither messages nor the optimizer; what they lack is in the tail of both.
TEST(PredictGoodput, OobleckSimulatesPipelinesOnEachKindOfNode) {
  const GoodputReport equations = predict_goodput(two_kinds("{name: oobleck, max_failures: 1}"));
  const GoodputReport simulated =
      predict_goodput(two_kinds("{name: oobleck, max_failures: 1, cost: simulated}"), {.plan = true});
  EXPECT_THAT(simulated.plan, testing::HasSubstr("times by simulation"));
  EXPECT_NEAR(simulated.fraction_of_ideal.mean, equations.fraction_of_ideal.mean, 0.02);
}

TEST(PredictGoodput, RefusesShapesThatOnlyCountNodesWhereNodesDiffer) {
  EXPECT_GT(predict_goodput(two_kinds("checkpoint-restart")).fraction_of_ideal.mean, 0.5);
  for (const char* policy : {"elastic", "varuna", "{name: checkpoint-restart, lost: done-without}"}) {
    const Diagnostic refusal = refusal_of(two_kinds(policy)).front();
    EXPECT_EQ(refusal.path, "cluster.nodes") << policy;
    EXPECT_EQ(refusal.code, "not-supported-yet") << policy;
    EXPECT_GT(refusal.where.line, 0) << policy;
  }
}

// System: GPT of 8 layers on 8 nodes, one stage a node. With seven failures at once to survive there are eight
//         pipelines of a node each: what `run` makes of data: 8.
Scenario on_eight_nodes(int pipeline, const std::string& policy) {
  return scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 51200, max_sequence_length: 1024}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 8}\n"
      "parallelism: {tensor: 8, pipeline: " +
      std::to_string(pipeline) + ", data: " + std::to_string(8 / pipeline) +
      "}\n"
      "schedule: 1f1b\n"
      "training: {global_batch_size: 64, micro_batch_size: 1, sequence_length: 1024}\n"
      "failures:\n"
      "  process: {kind: exponential, rate_per_node_day: 0}\n"
      "  horizon: 1 h\n"
      "  repeats: 1\n"
      "  policy: {name: oobleck, " +
      policy + "}\n");
}

TEST(PredictGoodput, OobleckDoesNotDependOnTheShapeThatTheScenarioHas) {
  for (const char* cost : {"cost: paper", "cost: simulated"}) {
    SCOPED_TRACE(cost);
    const double eight = predict_goodput(on_eight_nodes(8, cost)).samples_per_s.mean;
    for (const int pipeline : {4, 2, 1})
      EXPECT_EQ(predict_goodput(on_eight_nodes(pipeline, cost)).samples_per_s.mean, eight) << pipeline;
  }
}

TEST(PredictGoodput, OobleckOfAlikePipelinesIsTheIterationOfAllOfThem) {
  const Duration together = predict_goodput(on_eight_nodes(1, "max_failures: 7")).iteration_time;
  for (const char* cost : {"cost: paper", "cost: simulated"}) {
    const GoodputReport report = predict_goodput(on_eight_nodes(8, std::string("max_failures: 7, ") + cost));
    EXPECT_GT(report.iteration_time, together);
    EXPECT_NEAR(report.ideal_samples_per_s, 64 / to_seconds(together), 1e-6) << cost;
  }
}

// System: stages of 90, 3, 90, 3 ms. Four pipelines of one rank each do four micro-batches of 186 ms: nothing
//         is beyond the equations, which fall short of the pipeline of four stages.
TEST(PredictGoodput, OobleckChargesNoPipelineForAnother) {
  const GoodputReport report = predict_goodput(scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: [30 ms, 1 ms, 30 ms, 1 ms],"
      " input_gradient: [30 ms, 1 ms, 30 ms, 1 ms], weight_gradient: [30 ms, 1 ms, 30 ms, 1 ms]}\n"
      "parallelism: {pipeline: 4, data: 1}\n"
      "training: {global_batch_size: 16, micro_batch_size: 1}\n"
      "failures:\n"
      "  process: {kind: exponential, rate_per_node_day: 0}\n"
      "  policy: {name: oobleck, max_failures: 1}\n"
      "  horizon: 1 h\n"
      "  repeats: 1\n"));
  EXPECT_NEAR(report.ideal_samples_per_s, 16 / 0.744, 1e-6);
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
  const double steps = report.samples_per_s.mean * 864'000 / 4, checkpoints = report.buckets_s[2] / 10;
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
  const double steps = report.samples_per_s.mean * 864'000 / 4, checkpoints = report.buckets_s[2] / 10;
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

// One node of eight is away at a time, and no failure is expected.
TEST(PredictGoodput, KeepsASpareForMaintenance) {
  FailureSpec spec = failing(0);
  spec.processes[0].law = Maintenance{.period = hours(24), .duration = hours(4)};
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.policy.kind = PolicyKind::kHotSpares;
  EXPECT_EQ(predict_goodput(with(spec)).spares, 1);
  spec.policy.spares = 0;
  EXPECT_EQ(predict_goodput(with(spec)).advice.spares, 1);
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

TEST(PredictGoodput, CountsWhatStopsBamboo) {
  const GoodputReport report = predict_goodput(with(losing_nodes(PolicyKind::kBamboo)));
  ASSERT_FALSE(report.causes.empty());
  EXPECT_GT(report.failures, 0);
  EXPECT_GT(report.restarts, 0);
  // Rendezvous for nodes that come have no cause.
  EXPECT_GT(report.causes[0].stopped_s, 0);
  EXPECT_LE(report.causes[0].stopped_s,
            report.buckets_s[3] + report.buckets_s[4] + report.buckets_s[5] + report.buckets_s[7] + 1e-6);
}

TEST(PredictGoodput, ChargesBambooForDetection) {
  const auto detects_in = [](Duration time) {
    FailureSpec spec = losing_nodes(PolicyKind::kBamboo);
    spec.detect = time;
    return predict_goodput(with(spec));
  };
  const GoodputReport soon = detects_in(Duration(0)), late = detects_in(hours(1));
  EXPECT_EQ(soon.buckets_s[3], 0);
  EXPECT_GT(late.buckets_s[3], 0.5 * 3600 * late.failures);
  EXPECT_LT(late.samples_per_s.mean, soon.samples_per_s.mean);
}

TEST(PredictGoodput, VariesThePolicysOwnInputs) {
  const auto names = [](const FailureSpec& spec) {
    std::vector<std::string> found;
    for (const GoodputInput& input : predict_goodput(with(spec), {.inputs = true}).inputs)
      found.push_back(input.name);
    return found;
  };
  FailureSpec elastic = losing_nodes(PolicyKind::kElastic);
  elastic.policy.degraded = seconds(420);
  elastic.policy.rejoin = seconds(100);
  EXPECT_THAT(names(elastic), testing::IsSupersetOf({"failures.policy.stall", "failures.policy.rejoin"}));
  FailureSpec background = failing(0.5);
  background.checkpoint = {.mode = CheckpointMode::kAsync,
                           .bytes = Bytes(40'000'000'000),
                           .storage_write = Bandwidth(1e9),
                           .snapshot = Bandwidth(1e9),
                           .slowdown = 1.5};
  EXPECT_THAT(names(background),
              testing::IsSupersetOf({"failures.checkpoint.snapshot", "failures.checkpoint.slowdown"}));
  FailureSpec varuna = losing_nodes(PolicyKind::kVaruna);
  varuna.policy.checkpoint_every = 10;
  EXPECT_THAT(names(varuna),
              testing::IsSupersetOf({"failures.policy.checkpoint_every", "failures.policy.transient_wait"}));
  EXPECT_THAT(names(losing_nodes(PolicyKind::kBamboo)),
              testing::Contains("failures.policy.local_rendezvous"));
  EXPECT_THAT(names(losing_nodes(PolicyKind::kHotSpares)),
              testing::Not(testing::Contains("failures.policy.stall")));
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

}  // namespace
}  // namespace stagecraft
