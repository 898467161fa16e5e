// Closed form where the collectives of passes and the data traffic beside them both leave the node, or both stay in
// it: they share the links of their rank (sim/lower/own_links.hpp).
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

// Tensor groups of 16 over two nodes, and what beside them is overlapped.
Scenario over_two_nodes(const std::string& overlap, int pipeline = 1) {
  return scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 8, hidden: 8192, heads: 64, vocab: 51200, max_sequence_length: 2048}\n"
      "cluster: {node: dgx-h100, nodes: 8}\n"
      "parallelism: {tensor: 16, pipeline: " +
      std::to_string(pipeline) +
      ", sequence_parallel: true, zero_stage: 1}\n"
      "overlap: {" +
      overlap +
      "}\n"
      "training: {global_batch_size: 8, sequence_length: 2048, precision: bf16}\n");
}

double seconds(Scenario scenario, NetworkMode mode) {
  scenario.network.mode = mode;
  return to_seconds(simulate(scenario).iteration_time);
}

// Tensor groups beside two replicas, those of a stage in one node whose NVLinks are slow. Without sequence
// parallelism messages between stages are scattered, and gathered in the node.
Scenario in_one_node(int zero_stage, int stages = 1) {
  return scenario_of(
      "stagecraft: 1\n"
      "model: llama-2-13b\n"
      "cluster: {node: hgx-h800, nodes: " +
      std::to_string(stages) +
      "}\n"
      "parallelism: {tensor: 4, data: 2, pipeline: " +
      std::to_string(stages) + ", sequence_parallel: " + (stages == 1 ? "true" : "false") +
      ", zero_stage: " + std::to_string(zero_stage) +
      "}\n"
      "training: {global_batch_size: 4, sequence_length: 4096, precision: bf16}\n");
}

// On a fabric where nobody else is, the links of the whole cluster have nothing to add.
TEST(OwnLinks, AreWhatSharedLinksWouldSay) {
  for (const int pipeline : {1, 2}) {
    const Scenario scenario = over_two_nodes("gradients: true, parameters: true", pipeline);
    const double shared = seconds(scenario, NetworkMode::kFlow);
    EXPECT_NEAR(seconds(scenario, NetworkMode::kClosedForm) / shared, 1, 0.03) << pipeline;
  }
  for (const Scenario& scenario : {in_one_node(1), in_one_node(2), in_one_node(3), in_one_node(1, 2)}) {
    const int zero_stage = scenario.parallelism.zero_stage;
    EXPECT_FALSE(simulate_in_full(scenario).program.links.empty()) << zero_stage;
    const double shared = seconds(scenario, NetworkMode::kFlow);
    EXPECT_NEAR(seconds(scenario, NetworkMode::kClosedForm) / shared, 1, 1e-3) << zero_stage;
  }
}

// Property: what is hidden behind the traffic of passes on the same NICs is not for free. Without sharing the
// reductions would hide behind all of the backward.
TEST(OwnLinks, CarryNoMoreThanTheyCan) {
  const Scenario scenario = over_two_nodes("gradients: true, parameters: false");
  const Simulation simulation = simulate_in_full(scenario);
  Duration alone{}, nics{};
  for (const PassPrice& bucket : simulation.prices.ranks.front().gradient_buckets.front())
    for (const NetworkUse& use : bucket.network()) nics += use.transfer;
  for (const Exchanges& exchanges : simulation.prices.stages.front().traffic.input_gradient) {
    nics += exchanges.transfer;
    alone += exchanges.transfer;
  }
  EXPECT_GT(alone, Duration::zero());
  EXPECT_GE(simulation.report.iteration_time, nics);
}

// Where nothing is beside the passes, or the one leaves the nodes and the other does not, closed form has no links.
TEST(OwnLinks, AreThereWhereTwoKindsOfTrafficMeet) {
  EXPECT_TRUE(simulate_in_full(over_two_nodes("gradients: false, parameters: false")).program.links.empty());
  Scenario in_a_node = over_two_nodes("gradients: true");
  in_a_node.parallelism.tensor = 8;
  EXPECT_TRUE(simulate_in_full(in_a_node).program.links.empty());
  const Simulation simulation = simulate_in_full(over_two_nodes("gradients: true", 2));
  EXPECT_EQ(simulation.program.links.size(), 4u);  // NICs and NVLinks of each rank of the pipeline
  EXPECT_TRUE(simulation.report.network.links.empty());
}

// Messages queue at their NICs and use no link of the rank; the gather behind a scattered one is a part of it.
TEST(OwnLinks, AreNotUsedByMessages) {
  const Simulation simulation = simulate_in_full(in_one_node(1, 2));
  EXPECT_FALSE(simulation.program.links.empty());
  EXPECT_TRUE(simulation.prices.edges.front().forward.network().empty());
  EXPECT_TRUE(simulation.prices.edges.front().backward.network().empty());
}

// Property: exchanges that a partner hides are hidden on links as well, however much longer they are than the compute of
// their own pass. So jobs whose reductions overlap, which alone have links, are no slower for it.
TEST(OwnLinks, LeaveExchangesHiddenBehindTheOtherPassOfAPair) {
  for (const std::string schedule : {"1f1b", "dualpipe"}) {
    Scenario scenario = scenario_of(
        "stagecraft: 1\nmodel: deepseek-v2\ncluster: {node: dgx-a100-80gb, nodes: 16}\n"
        "parallelism: {pipeline: 4, expert: 32, zero_stage: 1}\nschedule: " +
        schedule +
        "\ntraining: {global_batch_size: 512, micro_batch_size: 1, sequence_length: 4096, recompute: full}\n"
        "overlap: {expert: true}\n");
    const Simulation hidden = simulate_in_full(scenario);
    EXPECT_FALSE(hidden.program.links.empty());
    scenario.overlap.gradients = scenario.overlap.parameters = false;
    EXPECT_LE(hidden.report.iteration_time, simulate(scenario).iteration_time) << schedule;
  }
}

}  // namespace
}  // namespace stagecraft
