// Policies as they are set up for a job: their spares, their peers, their tables of steps, and what is refused.
#include "sim/resilience/policy_setup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/resilience/degraded_shapes.hpp"
#include "sim/resilience/predict_goodput.hpp"
#include "tests/sim/resilience/failing_jobs.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using std::chrono::hours;

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

TEST(PredictGoodput, RefusesPeersThatHaveNoState) {
  FailureSpec spec = failing(0.5);
  spec.policy.kind = PolicyKind::kHotSpares;
  spec.policy.state = StateSource::kPeer;
  Scenario scenario = with(spec);
  scenario.parallelism.zero_stage = 1;
  EXPECT_EQ(refusal_of(scenario).front().path, "failures.policy.state");
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

TEST(PredictGoodput, RefusesATableThatSaysNothingOfTheWholeJob) {
  FailureSpec spec = losing_nodes(PolicyKind::kHotSpares);
  spec.policy.throughput = {{5, 1}};
  const Diagnostic refusal = refusal_of(with(spec)).front();
  EXPECT_EQ(refusal.path, "failures.policy.throughput");
  EXPECT_THAT(refusal.message, testing::HasSubstr("4 nodes"));
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

TEST(PredictGoodput, BackupsGivePeersTheStatesThatZeroShards) {
  FailureSpec spec = losing_nodes(PolicyKind::kHotSpares);
  spec.policy.state = StateSource::kPeer;
  spec.policy.backup = 0.009;
  Scenario scenario = with(spec);
  scenario.parallelism.zero_stage = 1;
  EXPECT_GT(predict_goodput(scenario).fraction_of_ideal.mean, 0.5);
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

}  // namespace
}  // namespace stagecraft
