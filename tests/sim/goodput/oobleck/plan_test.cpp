// A plan as people see it.
#include "sim/goodput/oobleck/plan.hpp"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

using namespace literals;

// Eight layers of 10 ns, one GPU a node, nodes 0..; n0 = 2, f = 1, eight micro-batches; a layer has 1 GB, a
// node gets and sends 1 GB/s.
OobleckSpec small(int nodes) {
  StageOption option;
  for (int layer = 0; layer < 8; ++layer)
    option.layers.push_back({.forward = Duration{3}, .backward = Duration{7}});
  return {.groups = {{.nodes = nodes, .options = {option}}},
          .min_nodes = 2,
          .max_failures = 1,
          .micro_batches = 8,
          .layer_state = std::vector<Bytes>(8, 1_GB),
          .links = {.in = 1_GBps, .out = 1_GBps}};
}

TEST(CheckOobleck, RefusesFailuresThatCannotBeSurvived) {
  OobleckSpec spec = small(7);
  spec.min_nodes = 3;
  spec.max_failures = 2;
  const auto found = check_oobleck(spec);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].code, "too-many-failures");
  EXPECT_EQ(
      found[0].message,
      "2 failures at once cannot be survived: 3 pipelines of at least 3 nodes each need 9 nodes, and there "
      "are 7");
  EXPECT_EQ(found[0].hint, "use max_failures: 1, or at least 9 nodes");
}

TEST(CheckOobleck, SaysWhatTheModelAloneNeeds) {
  OobleckSpec spec = small(2);
  spec.min_nodes = 3;
  const auto found = check_oobleck(spec);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].hint, "the model alone needs 3 nodes; use at least 6 nodes");
}

TEST(CheckOobleck, RefusesMoreStagesThanLayersAndTooFewMicroBatches) {
  OobleckSpec spec = small(40);
  spec.min_nodes = 9;
  spec.micro_batches = 1;
  const auto found = check_oobleck(spec);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].code, "too-few-layers");
  EXPECT_EQ(found[0].hint, "use nodes of more memory, so that 8 hold the model");
  EXPECT_EQ(found[1].code, "too-few-micro-batches");
}

// Eight layers, and a node of 16 GPUs has 16 stages of one GPU.
TEST(CheckOobleck, RefusesNodesOfMoreStagesThanLayers) {
  OobleckSpec spec = small(4);
  spec.min_nodes = 1;
  spec.gpus_per_node = 16;
  const auto found = check_oobleck(spec);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(
      found[0].message,
      "a pipeline of 1 node, the least that hold the model, has more stages than the model has layers, 8");
  EXPECT_EQ(found[0].hint, "use nodes of at most 8 GPUs, whose stages each have a layer");
}

// n0 = 5: 14 nodes have templates up to 9, but eight layers; 16 nodes and f = 2 up to 6, and 15 and 16 are
// sums of those.
TEST(CheckOobleck, WarnsWhereCountsAreNotCovered) {
  OobleckSpec spec = small(14);
  spec.min_nodes = 5;  // n_max = 9, but eight layers: 8; 2 * 5 - 1 = 9
  const auto found = check_oobleck(spec);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_EQ(found[0].code, "counts-not-covered");
  EXPECT_EQ(found[1].code, "templates-end-early");
  spec = small(16);
  spec.min_nodes = 5;
  spec.max_failures = 2;
  ASSERT_EQ(check_oobleck(spec).size(), 1u);
  EXPECT_EQ(check_oobleck(spec)[0].message,
            "templates of 5 to 6 nodes do not cover every count of nodes (that takes up to 9): all counts "
            "can still "
            "be used whole");
}

// Four nodes, [0 1] [2 3], templates of two nodes only. Node 1 fails: nobody can lend, [0 2 3] is one
// pipeline, of which the last node stands by and the guarantee is lost. Node 0 keeps layers 0-3; node 2 had
// them too and gets 4-7 from node 3. A node's four layers take 40 ns: (4 + 1) * 40 before, (8 + 1) * 40
// after.
TEST(OobleckPlan, SaysWhatAMergeMoves) {
  OobleckPlanner planner(small(4));
  const OobleckPlan plan = plan_oobleck(planner, {.time = std::chrono::seconds(2)});
  EXPECT_EQ(plan.step, Duration{200});
  EXPECT_EQ(plan.warnings.size(), 1u);
  ASSERT_EQ(plan.pipelines.size(), 2u);
  EXPECT_EQ(plan.pipelines[1].nodes, (std::vector{2, 3}));
  EXPECT_EQ(plan.pipelines[1].micro_batches, 4);
  ASSERT_EQ(plan.failures.size(), 4u);
  const PlannedFailure& row = plan.failures[1];
  EXPECT_EQ(row.pipeline, 0);
  EXPECT_EQ(row.events.back(), (PipelineEvent{.pipeline = 1, .change = PipelineChange::kMerge, .other = 0}));
  EXPECT_EQ(row.sizes, std::vector{2});
  EXPECT_FALSE(row.guarantee_kept);
  EXPECT_FALSE(row.from_checkpoint);
  EXPECT_EQ(row.reconfigure, std::chrono::seconds(2));
  EXPECT_EQ(row.copy, std::chrono::seconds(4));
  EXPECT_EQ(row.moved, 4_GB);
  EXPECT_EQ(row.receivers, 1);
  EXPECT_EQ(row.step, Duration{360});
  EXPECT_TRUE(plan.counts.empty());  // four nodes are the fewest that keep the guarantee
}

TEST(OobleckPlan, TakesTheCopyIntoAReconfigurationThatIsGivenWhole) {
  OobleckPlanner planner(small(4));
  const OobleckPlan plan = plan_oobleck(planner, {.time = std::chrono::seconds(2), .copy_included = true});
  EXPECT_EQ(plan.failures[1].copy, Duration{});
  EXPECT_EQ(plan.failures[1].moved, 4_GB);
}

// Five nodes with n0 = 2 and f = 1: [0 1] [2 3 4]; node 4's loss is simple, node 0's a loan of node 4.
TEST(OobleckPlan, ListsEveryTemplateFailureAndCount) {
  OobleckPlanner planner(small(5));
  const OobleckPlan plan = plan_oobleck(planner, {});
  ASSERT_EQ(plan.templates.size(), 2u);
  EXPECT_EQ(plan.templates[1].made.nodes(), 3);
  EXPECT_EQ(plan.failures[4].events,
            std::vector{(PipelineEvent{.pipeline = 1, .change = PipelineChange::kSimple})});
  EXPECT_EQ(plan.failures[0].events.front(),
            (PipelineEvent{.pipeline = 0, .change = PipelineChange::kBorrow, .node = 4, .other = 1}));
  ASSERT_EQ(plan.counts.size(), 1u);
  EXPECT_EQ(plan.counts[0].nodes, 4);
  EXPECT_EQ(plan.counts[0].step, Duration{200});
}

// Node 0 is lost: [1 4] [2 3]. Node 1 gets 0-3, node 4 layers 4 and 5, node 2 layer 3, node 3 layers 6 and 7;
// and node 1 sends 4 to 7 and passes layer 3 on, 5 GB in 5 s.
TEST(OobleckPlan, IsTextForPeople) {
  OobleckPlanner planner(small(5));
  const std::string text = render_plan(plan_oobleck(planner, {.time = std::chrono::seconds(2)}));
  EXPECT_EQ(text,
            R"(Oobleck: 5 nodes of 1 GPU, 8 layers, 8 micro-batches a step
  the model needs 2 nodes; 1 failure at once is survived: templates of 2 to 3 nodes
  times by the paper's equations, corrected

Templates, each at its share of the micro-batches
  nodes    stages  GPUs/stage  micro-batches    time  layers of the stages
      2         2           1              3  160 ns  4 4
      3         3           1              5  190 ns  3 3 2

Pipelines at the start: a step takes 190 ns (100.0 % of the fastest)
  pipelines  nodes  micro-batches    time  on nodes
          1      2              3  160 ns  0-1
          1      3              5  190 ns  2-4

What each failure would do (stall: after detection; the step in flight is lost)
  pipeline of  what happens              pipelines x nodes after   stall     moved  to nodes    step  when this node fails
            2  borrows 1 node            2 x 2                    7.00 s  8.38 GiB         4  200 ns  0
            2  borrows 1 node            2 x 2                    4.00 s  4.66 GiB         3  200 ns  1
            3  takes a smaller template  2 x 2                    5.00 s  4.66 GiB         2  200 ns  2
            3  takes a smaller template  2 x 2                    4.00 s  2.79 GiB         2  200 ns  3-4

The best pipelines of fewer nodes (throughput: of the start)
  nodes    step  throughput  idle  pipelines x nodes
      4  200 ns      95.0 %     0  2 x 2
)");
}

}  // namespace
}  // namespace stagecraft
