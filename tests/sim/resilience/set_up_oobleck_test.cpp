// Jobs under Oobleck, whose pipelines are its own; and nodes of several kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/resilience/predict_goodput.hpp"
#include "tests/sim/resilience/failing_jobs.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

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

}  // namespace
}  // namespace stagecraft
