// What is left of a job when nodes are gone.
//
// System: abstract stages of F = I = W = 1 ms under 1F1B, each rank a node. d replicas of p stages take
//         (m + p - 1) · 3 ms for m micro-batches each.
#include "sim/resilience/degraded_shapes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using std::chrono::milliseconds;

std::string pipelines(int data, int batch) {
  return "stagecraft: 1\n"
         "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}\n"
         "parallelism: {pipeline: 4, data: " +
         std::to_string(data) +
         "}\n"
         "schedule: 1f1b\n"
         "training: {global_batch_size: " +
         std::to_string(batch) + ", micro_batch_size: 1}\n";
}

DegradedShapes shapes_of(const Scenario& scenario) {
  return {scenario, simulate_in_full(scenario)};
}

TEST(DegradedShape, OfAllNodesIsTheScenarioItself) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_EQ(shapes.nodes(), 8);
  EXPECT_TRUE(shapes.fits());
  // m = 8: (8 + 3) · 3 ms.
  EXPECT_EQ(shapes.replicas(8, BatchRule::kKept),
            (ShapedStep{.duration = milliseconds(33), .samples = 16, .nodes = 8}));
  // Spares do not make a replica more.
  EXPECT_EQ(shapes.replicas(100, BatchRule::kKept), shapes.replicas(8, BatchRule::kKept));
}

TEST(DegradedShape, OfAllNodesIsNotSimulatedAgain) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  Simulation full = simulate_in_full(scenario);
  full.report.iteration_time = milliseconds(34);
  DegradedShapes shapes(scenario, full);
  EXPECT_EQ(shapes.replicas(8, BatchRule::kKept)->duration, milliseconds(34));
}

TEST(DegradedShape, KeepsItsBatchOnTheReplicasThatAreWhole) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  // One replica is left and does all 16: (16 + 3) · 3 ms.
  const ShapedStep half{.duration = milliseconds(57), .samples = 16, .nodes = 4};
  EXPECT_EQ(shapes.replicas(7, BatchRule::kKept), half);
  EXPECT_EQ(shapes.replicas(4, BatchRule::kKept), half);
  EXPECT_EQ(shapes.replicas(3, BatchRule::kKept), std::nullopt);
}

// Four pipelines of four ranks, of which one alone can train.
TEST(DegradedShape, IsOfOneReplicaAtLeastWhereEachHoldsTheModel) {
  const Scenario scenario = scenario_of(pipelines(4, 16));
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_EQ(shapes.fewest_replicas(BatchRule::kKept), 1);
  EXPECT_EQ(shapes.fewest_replicas(BatchRule::kShrunk), 1);
}

TEST(DegradedShape, ShrinksItsBatchWhenAskedTo) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_EQ(shapes.replicas(7, BatchRule::kShrunk),
            (ShapedStep{.duration = milliseconds(33), .samples = 8, .nodes = 4}));
}

TEST(DegradedShape, LastsAsLongAsItsFullestReplica) {
  const Scenario scenario = scenario_of(pipelines(3, 15));
  DegradedShapes shapes = shapes_of(scenario);
  // Three replicas: 5 each, (5 + 3) · 3 ms. Two: 8 and 7, (8 + 3) · 3 ms, and still 15 samples.
  EXPECT_EQ(shapes.replicas(12, BatchRule::kKept)->duration, milliseconds(24));
  EXPECT_EQ(shapes.replicas(11, BatchRule::kKept),
            (ShapedStep{.duration = milliseconds(33), .samples = 15, .nodes = 8}));
}

TEST(DegradedShape, IsListedOnceItWasAskedFor) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_TRUE(shapes.asked().empty());
  (void)shapes.replicas(5, BatchRule::kKept);
  (void)shapes.replicas(8, BatchRule::kKept);
  ASSERT_EQ(shapes.asked().size(), 2u);
  EXPECT_EQ(shapes.asked()[0].text, "dp 2 · pp 4");
  EXPECT_EQ(shapes.asked()[1].text, "dp 1 · pp 4");
  EXPECT_EQ(shapes.asked()[1].nodes, 4);
}

// 8 layers on 4 nodes of 8 GPUs.
const char* const kSmallModel =
    "stagecraft: 1\n"
    "model: {family: gpt, layers: 8, hidden: 1024, heads: 8, vocab: 51200, max_sequence_length: 1024}\n"
    "cluster: {node: dgx-a100-80gb, nodes: 4}\n"
    "parallelism: {tensor: 8, pipeline: 4}\n"
    "training: {global_batch_size: 32, micro_batch_size: 1, sequence_length: 1024}\n";

// Of the second the largest micro-batch that fits, 2, is slower at every depth than its own, 1.
TEST(MorphedShape, IsNeverSlowerThanTheScenariosOwn) {
  const std::string larger =
      "stagecraft: 1\n"
      "model: llama-2-13b\n"
      "cluster: {node: dgx-a100-80gb, nodes: 8}\n"
      "parallelism: {tensor: 4, pipeline: 8, data: 2}\n"
      "training: {global_batch_size: 64, micro_batch_size: 1, sequence_length: 4096}\n";
  for (const std::string& text : {std::string(kSmallModel), larger}) {
    const Scenario scenario = scenario_of(text);
    DegradedShapes shapes = shapes_of(scenario);
    for (int nodes = shapes.nodes(); nodes >= 4; --nodes) {
      const auto own = shapes.replicas(nodes, BatchRule::kKept), best = shapes.morph(nodes);
      if (!own) continue;
      ASSERT_TRUE(best) << nodes;
      EXPECT_LE(best->duration, own->duration) << nodes;
      EXPECT_EQ(best->samples, scenario.training.global_batch_size);
    }
  }
}

// Nine replicas of 4 stages do 15 micro-batches of one sample each, which no interleaved order takes, or 8 of
// two, which it does.
TEST(MorphedShape, HasAMicroBatchThatItsScheduleTakes) {
  const auto of = [](const std::string& nodes, const std::string& data, const std::string& training) {
    return scenario_of(
        "stagecraft: 1\n"
        "model: llama-2-13b\n"
        "cluster: {node: dgx-a100-80gb, nodes: " +
        nodes + "}\nparallelism: {tensor: 2, pipeline: 4, virtual_stages: 2, data: " + data +
        "}\nschedule: interleaved-1f1b\ntraining: {sequence_length: 2048, " + training + "}\n");
  };
  const Scenario whole = of("16", "16", "global_batch_size: 128, micro_batch_size: 1");
  const Scenario nine = of("9", "9", "global_batch_size: 144, micro_batch_size: 2");
  DegradedShapes shapes = shapes_of(whole);
  const auto morphed = shapes.morph(9);
  ASSERT_TRUE(morphed);
  EXPECT_LE(morphed->duration, simulate(nine).iteration_time);
}

// Six layers and both ends are eight, on four stages as well: with slow reductions one replica is best.
TEST(MorphedShape, SplitsTheEndsThatCountAsLayers) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 6, hidden: 4096, heads: 32, vocab: 51200, max_sequence_length: 1024}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 4, fabric: {kind: single-switch, nic_bandwidth: 1 GB/s}}\n"
      "parallelism: {tensor: 8, pipeline: 2, embedding_as_layer: true, loss_as_layer: true}\n"
      "overlap: {gradients: false}\n"
      "training: {global_batch_size: 8, micro_batch_size: 1, sequence_length: 1024}\n");
  DegradedShapes shapes = shapes_of(scenario);
  ASSERT_TRUE(shapes.morph(4));
  EXPECT_THAT(shapes.asked().front().text, testing::StartsWith("dp 1 · pp 4"));
}

// Under a pipeline FSDP2 keeps weights gathered and gradients whole, and without one it does not: whatever
// depth the scenario has, each depth is as a scenario of its own would have it.
TEST(MorphedShape, HasTheDefaultsOfItsOwnDepth) {
  const auto of_depth = [](const std::string& degrees) {
    return scenario_of(
        "stagecraft: 1\n"
        "model: llama-2-13b\n"
        "cluster: {node: dgx-h100, nodes: 4}\n"
        "schedule: 1f1b\n"
        "parallelism: {tensor: 1, zero_stage: 2, " +
        degrees +
        "}\n"
        "training: {global_batch_size: 256, micro_batch_size: 1, sequence_length: 4096, recompute: full}\n");
  };
  const Scenario deep = of_depth("pipeline: 4, data: 8"), flat = of_depth("pipeline: 1, data: 32");
  ASSERT_NE(keeps_gradients_whole(deep), keeps_gradients_whole(flat));
  DegradedShapes deep_shapes = shapes_of(deep), flat_shapes = shapes_of(flat);
  EXPECT_EQ(deep_shapes.morph(4), flat_shapes.morph(4));
  EXPECT_LE(deep_shapes.morph(4)->duration, simulate(flat).iteration_time);
}

// What abstract stages cost is of their micro-batch: a larger one would cost nothing.
TEST(MorphedShape, OfAbstractStagesKeepsTheirMicroBatch) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_EQ(shapes.morph(8), shapes.replicas(8, BatchRule::kKept));
  EXPECT_EQ(shapes.morph(4)->duration, milliseconds(57));
}

// Three replicas of 16 samples do 6 each, and groups of 4 take 8.
TEST(MorphedShape, MakesUpTheMicroBatchesThatItsScheduleTakes) {
  const auto of = [](int data, int batch) {
    std::string text = pipelines(data, batch);
    text.replace(text.find("1f1b"), 4, "interleaved-1f1b");
    return scenario_of(text);
  };
  const Scenario scenario = of(4, 16), three = of(3, 24);
  DegradedShapes shapes = shapes_of(scenario);
  const ShapedStep expected{.duration = simulate(three).iteration_time, .samples = 16, .nodes = 12};
  EXPECT_EQ(shapes.morph(12), expected);
  EXPECT_EQ(shapes.morph(3), std::nullopt);
  EXPECT_EQ(shapes.refused(),
            "no shape trains on 3 nodes, and the job idles: a replica of 4 stages takes 4 nodes");
}

TEST(MorphedShape, OfOneStageNeedsNoChunks) {
  const Scenario scenario = scenario_of(std::string(kSmallModel) + "schedule: interleaved-1f1b\n");
  EXPECT_TRUE(shapes_of(scenario).morph(1));
}

// 175e9 parameters in 16-way shards are too large for GPUs of 80 GB; 128-way shards fit.
TEST(MorphedShape, FitsIntoMemoryWhereAnyDoes) {
  const auto of = [](const char* nodes) {
    return scenario_of(
        "stagecraft: 1\nmodel: gpt3-175b\ncluster: {node: dgx-a100-80gb, nodes: " + std::string(nodes) +
        "}\nparallelism: {tensor: 8, pipeline: 2}\n"
        "training: {global_batch_size: 16, micro_batch_size: 1, sequence_length: 2048}\n");
  };
  const Scenario some = of("16"), none = of("2");
  DegradedShapes shapes = shapes_of(some), lacking = shapes_of(none);
  EXPECT_FALSE(shapes.fits() || lacking.fits());
  EXPECT_TRUE(shapes.some_fit());
  ASSERT_TRUE(shapes.morph(16));
  EXPECT_EQ(shapes.asked().front().text.find("pp 2"), std::string::npos);
  EXPECT_EQ(shapes.morph(2), std::nullopt);
  EXPECT_FALSE(lacking.some_fit());
  EXPECT_EQ(lacking.morph(2), lacking.replicas(2, BatchRule::kKept)) << "as if it did";
}

TEST(MorphedShape, TrainsOnNodesThatHoldNoReplicaOfTheScenariosOwn) {
  const Scenario scenario = scenario_of(kSmallModel);
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_EQ(shapes.replicas(3, BatchRule::kKept), std::nullopt);
  const auto three = shapes.morph(3), four = shapes.morph(4);
  ASSERT_TRUE(three && four);
  EXPECT_LE(three->nodes, 3);
  EXPECT_GE(three->duration, four->duration);
  EXPECT_EQ(shapes.morph(0), std::nullopt);
}

// ZeRO 3 over 64 GPUs leaves room for 16 sequences at once; over 8 the shards are eight times as large, and
// only smaller micro-batches fit.
TEST(MorphedShape, HasTheLargestMicroBatchThatFitsItsOwnNodes) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 37, hidden: 5120, heads: 40, vocab: 51200, max_sequence_length: 2048}\n"
      "cluster: {node: dgx-a100-40gb, nodes: 8}\n"
      "parallelism: {zero_stage: 3}\n"
      "training: {global_batch_size: 2048, micro_batch_size: 1, sequence_length: 2048, recompute: full}\n");
  DegradedShapes shapes = shapes_of(scenario), fresh = shapes_of(scenario);
  ASSERT_TRUE(shapes.fits());
  const auto eight = shapes.morph(8), one = shapes.morph(1);
  ASSERT_TRUE(eight && one) << "one node trains with a smaller micro-batch than eight";
  EXPECT_EQ(one->nodes, 1);
  EXPECT_GT(one->duration, eight->duration);
  EXPECT_EQ(one, fresh.morph(1)) << "whatever was asked before";
}

// On three nodes three replicas do 4 samples each at once. Four replicas have no power of two that divides
// their 3 samples, and four gradients to reduce: three stages on three of the four nodes are faster than
// that, and slower than the three replicas.
TEST(MorphedShape, IsTheBestOfTheNodesThatItUses) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 3, hidden: 1024, heads: 8, vocab: 51200, max_sequence_length: 1024}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 4, fabric: {kind: single-switch, nic_bandwidth: 5 GB/s}}\n"
      "parallelism: {tensor: 8, pipeline: 1}\n"
      "overlap: {gradients: false}\n"
      "training: {global_batch_size: 12, micro_batch_size: 1, sequence_length: 1024}\n");
  DegradedShapes shapes = shapes_of(scenario);
  const auto four = shapes.morph(4);
  ASSERT_TRUE(four.has_value());
  EXPECT_EQ(four->nodes, 3);
  EXPECT_EQ(four, shapes.morph(3));
}

TEST(MorphedShape, NeedNotFillItsLastNode) {
  // tensor 2 · pipeline 3 · data 4 on three nodes of 8; two nodes hold two replicas, 12 of 16 GPUs.
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 9, hidden: 1024, heads: 8, vocab: 51200, max_sequence_length: 1024}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 3}\n"
      "parallelism: {tensor: 2, pipeline: 3}\n"
      "training: {global_batch_size: 32, micro_batch_size: 1, sequence_length: 1024}\n");
  DegradedShapes shapes = shapes_of(scenario);
  const auto two = shapes.replicas(2, BatchRule::kKept);
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->nodes, 2);
  EXPECT_GT(two->duration, shapes.replicas(3, BatchRule::kKept)->duration);
}

// A slow link slows what goes over it, and nothing else; twice as slow at once is no worse than one after the
// other.
TEST(DegradedShapes, SlowTrafficCostsLessThanItsFactor) {
  const Scenario scenario = shipped("sc21-39.1b-512xA100");
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_EQ(shapes.slow_traffic(1), 1);
  double before = 1;
  for (const double factor : {1.1, 1.25, 2.0, 4.0, 16.0}) {
    const double pace = shapes.slow_traffic(factor);
    EXPECT_GT(pace, before);
    EXPECT_LT(pace, factor);
    before = pace;
  }
  EXPECT_NEAR(shapes.slow_traffic(1.1), 1 + 0.4 * (shapes.slow_traffic(1.25) - 1), 1e-12) << "linear between";
}

// Others take 7.5 GB/s of a NIC's 25, which a network 4.5 times as slow would not have.
TEST(DegradedShapes, SlowTrafficLeavesOthersTheirShareOfTheLinks) {
  const Scenario scenario = scenario_of(
      kSmallModel +
      std::string("network: {mode: flow, background: [{from: node 0, to: node 3, rate: 60 GB/s}]}\n"));
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_GT(shapes.slow_traffic(4), 1);
  EXPECT_LT(shapes.slow_traffic(4), 4);
}

// Messages of 2 MB at 100 MB/s take most of the time, whatever the NICs are.
TEST(DegradedShapes, SlowTrafficIsSlowOnTheLinksOfATorus) {
  std::string text = kSmallModel;
  const std::string nodes = "nodes: 4";
  text.replace(text.find(nodes), nodes.size(),
               "nodes: 4, fabric: {kind: torus, dims: [2, 2], link_bandwidth: 100 MB/s}");
  const Scenario scenario = scenario_of(text + "network: {mode: flow}\n");
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_GT(shapes.slow_traffic(2), 1.5);
}

TEST(DegradedShapes, AbstractStagesHaveNoNetworkToSlowDown) {
  const Scenario scenario = scenario_of(pipelines(2, 8));
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_EQ(shapes.slow_traffic(2), 2);
}

// Rank 0 is stage 0 of the first replica. Twice as slow it does F1 to F4 until 8 ms; B1 is back at 11 ms and
// done at 15, after which nothing waits any more: 4 · (2 + 4) ms and three B of 4 ms, 51 ms in place of 33.
TEST(SlowReplica, TakesAsLongAsASimulationSaysOfItsSlowStage) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  const std::vector<double> paces = shapes.slow_replicas(8, {{.place = 0, .compute = 2}});
  ASSERT_EQ(paces.size(), 1u);
  EXPECT_DOUBLE_EQ(paces[0], 51.0 / 33);
}

TEST(SlowReplica, IsOneOfThoseThatHaveASlowPlace) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  // Ranks 0 and 1 are stage 0 of the two replicas; ranks 0 and 2 stages of one.
  EXPECT_EQ(shapes.slow_replicas(8, {{.place = 0, .compute = 2}, {.place = 1, .compute = 1.5}}).size(), 2u);
  const std::vector<double> one = shapes.slow_replicas(8, {{.place = 0, .compute = 2}});
  const std::vector<double> both =
      shapes.slow_replicas(8, {{.place = 0, .compute = 2}, {.place = 2, .compute = 1.5}});
  ASSERT_EQ(both.size(), 1u);
  EXPECT_GT(both[0], one[0]);
  // All stages: the whole replica is twice as slow.
  EXPECT_DOUBLE_EQ(shapes.slow_replicas(8, {{.place = 0, .compute = 2},
                                            {.place = 2, .compute = 2},
                                            {.place = 4, .compute = 2},
                                            {.place = 6, .compute = 2}})[0],
                   2);
}

// Property: never faster than without, never slower than the slowest node alone would make everything, and
// never faster for a node that is slower.
TEST(SlowReplica, LiesBetweenOneAndItsSlowestNode) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  for (int place = 0; place < 8; ++place) {
    double before = 1;
    for (double factor = 1.05; factor < 5; factor *= 1.3) {
      const double pace = shapes.slow_replicas(8, {{.place = place, .compute = factor}}).at(0);
      EXPECT_GE(pace, before) << place << ' ' << factor;
      EXPECT_LE(pace, factor) << place << ' ' << factor;
      before = pace;
    }
  }
}

TEST(SlowReplica, WaitsForSlowTrafficAsGiven) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_EQ(shapes.slow_replicas(8, {{.place = 3, .traffic = 3}}), std::vector<double>{3});
  EXPECT_EQ(shapes.slow_replicas(8, {{.place = 3, .compute = 1.25, .traffic = 3}}), std::vector<double>{3});
}

TEST(SlowReplica, OfAShapeThatNobodyAskedForTakesItsSlowestNodesFactor) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_EQ(shapes.slow_replicas(4, {{.place = 0, .compute = 2}, {.place = 1, .compute = 3}}),
            std::vector<double>{3});
  // Once it is known, it is simulated: one replica of 16 micro-batches, 33 ms + 8 · 6 ms for 57.
  (void)shapes.replicas(4, BatchRule::kKept);
  EXPECT_DOUBLE_EQ(shapes.slow_replicas(4, {{.place = 0, .compute = 2}}).at(0), 99.0 / 57);
}

TEST(DegradedShape, KnowsWhichNodesHoldEachState) {
  const Scenario scenario = scenario_of(pipelines(2, 16));
  DegradedShapes shapes = shapes_of(scenario);
  EXPECT_EQ(shapes.holders(8), (Holders{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(shapes.holders(4), (Holders{{0}, {1}, {2}, {3}}));
}

}  // namespace
}  // namespace stagecraft
