// Closed form where the collectives of passes and the data traffic beside them leave the node: both are on the
// NICs of their rank (sim/lower/own_nics.hpp).
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

// On a fabric where nobody else is, the links of the whole cluster have nothing to add.
TEST(OwnNics, AreWhatSharedLinksWouldSay) {
  for (const int pipeline : {1, 2}) {
    const Scenario scenario = over_two_nodes("gradients: true, parameters: true", pipeline);
    const double shared = seconds(scenario, NetworkMode::kFlow);
    EXPECT_NEAR(seconds(scenario, NetworkMode::kClosedForm) / shared, 1, 0.03) << pipeline;
  }
}

// Property: what is hidden behind the traffic of passes on the same NICs is not for free. Without sharing the
// reductions would hide behind all of the backward.
TEST(OwnNics, CarryNoMoreThanTheyCan) {
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

// Where nothing is beside the passes, or all of it stays in the nodes, closed form has no links.
TEST(OwnNics, AreThereWhereTwoKindsOfTrafficMeet) {
  EXPECT_TRUE(simulate_in_full(over_two_nodes("gradients: false, parameters: false")).program.links.empty());
  Scenario in_a_node = over_two_nodes("gradients: true");
  in_a_node.parallelism.tensor = 8;
  EXPECT_TRUE(simulate_in_full(in_a_node).program.links.empty());
  const Simulation simulation = simulate_in_full(over_two_nodes("gradients: true", 2));
  EXPECT_EQ(simulation.program.links.size(), 2u);  // one for each rank of the pipeline
  EXPECT_TRUE(simulation.report.network.links.empty());
}

// Property: exchanges that a partner hides are hidden on links as well, however much longer they are than the compute of
// their own pass. So jobs whose reductions overlap, which alone have links, are no slower for it.
TEST(OwnNics, LeaveExchangesHiddenBehindTheOtherPassOfAPair) {
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
