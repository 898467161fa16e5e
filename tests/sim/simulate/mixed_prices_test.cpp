// A cluster of several devices.
//
// System: GPT 22B, three stages on two nodes each; nodes of H100 and of A100 behind one fabric.
#include "sim/mixed_prices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

Scenario on(const std::string& nodes, const std::string& more = "") {
  return scenario_of(
      "stagecraft: 1\n"
      "model: gpt-22b\n"
      "cluster: {nodes: [" +
      nodes +
      "], fabric: hdr-fat-tree}\n"
      "parallelism: {tensor: 8, pipeline: 3, data: 2}\n"
      "schedule: 1f1b\n"
      "options: {software: megatron-core}\n"
      "training: {global_batch_size: 96, micro_batch_size: 2}\n" +
      more);
}
const std::string kH100 = "{node: dgx-h100, nodes: 6}", kA100 = "{node: dgx-a100-80gb, nodes: 6}";
const std::string kTwoAndFour = "{node: dgx-h100, nodes: 2}, {node: dgx-a100-80gb, nodes: 4}";
const std::string kThreeAndThree = "{node: dgx-h100, nodes: 3}, {node: dgx-a100-80gb, nodes: 3}";

Duration forward_of(const Simulation& simulation, std::size_t stage) {
  return simulation.prices.stages[stage].forward.total();
}

TEST(MixedPrices, AreThoseOfTheOnlyDeviceWhereAllAreAlike) {
  Scenario scenario = on(kH100);
  const Report plain = simulate(scenario);
  scenario.group_profiles = {*scenario.profile};
  const Report mixed = simulate(scenario);
  EXPECT_EQ(mixed.iteration_time, plain.iteration_time);
  EXPECT_EQ(mixed.peak, plain.peak);
}

TEST(MixedPrices, AStageIsPricedByTheDevicesThatItRunsOn) {
  const Simulation mixed = simulate_in_full(on(kTwoAndFour));
  EXPECT_EQ(forward_of(mixed, 0), forward_of(simulate_in_full(on(kH100)), 0));
  EXPECT_EQ(forward_of(mixed, 1), forward_of(simulate_in_full(on(kA100)), 1));
  EXPECT_EQ(forward_of(mixed, 2), forward_of(simulate_in_full(on(kA100)), 2));
}

// The card with the least memory is the one whose layouts of fp8 weights count.
TEST(MixedPrices, MemoryDoesNotDependOnTheOrderOfTheNodes) {
  const auto in_fp8 = [](const std::string& nodes) {
    Scenario scenario = on(nodes);
    scenario.training.precision = Precision::kFp8;
    return simulate(scenario).peak;
  };
  const std::string h100 = "{node: dgx-h100, nodes: 3}", b200 = "{node: dgx-b200, nodes: 3}";
  EXPECT_EQ(in_fp8(h100 + ", " + b200), in_fp8(b200 + ", " + h100));
}

// Two ranks hold the tied word embedding: it is no work of the others.
TEST(MixedPrices, TheTiedEmbeddingIsOfTheFirstRank) {
  const IterationPrices prices = simulate_in_full(on(kH100)).prices;
  EXPECT_GT(prices.ranks[0].tied_embedding.total(), Duration::zero());
  for (const std::size_t rank : {1, 2})
    EXPECT_EQ(prices.ranks[rank].tied_embedding.total(), Duration::zero());
}

// Node 2 is the last H100, and the other replica of its stage is on node 3, the first A100.
TEST(MixedPrices, AStageOnTwoKindsIsAsSlowAsTheSlowerOne) {
  const Simulation mixed = simulate_in_full(on(kThreeAndThree));
  EXPECT_EQ(forward_of(mixed, 0), forward_of(simulate_in_full(on(kH100)), 0));
  EXPECT_EQ(forward_of(mixed, 1), forward_of(simulate_in_full(on(kA100)), 1));
}

TEST(MixedPrices, AMixedClusterIsNoFasterThanItsBestNodesAndNoSlowerThanItsWorst) {
  const Duration best = simulate(on(kH100)).iteration_time, worst = simulate(on(kA100)).iteration_time;
  for (const std::string& nodes : {kTwoAndFour, kThreeAndThree}) {
    const Report mixed = simulate(on(nodes));
    EXPECT_GT(mixed.iteration_time, best);
    EXPECT_LE(mixed.iteration_time, worst);
    EXPECT_EQ(mixed.profile.find("h100") != std::string::npos, true);
    EXPECT_EQ(mixed.profile.find("a100") != std::string::npos, true);
  }
}

// Of equal memories the one with the larger CUDA context is closer to full, whichever group is first.
TEST(MixedPrices, TheSmallestDeviceHasTheLeastRoomBesideItsContext) {
  Scenario scenario = on(kThreeAndThree);
  std::vector<HardwareProfile>& profiles = scenario.group_profiles;
  ASSERT_EQ(profiles.size(), 2u);
  profiles[0].device.memory = profiles[1].device.memory = Bytes(80'000'000'000);
  profiles[0].memory.context.value = Bytes(1'000'000'000);
  profiles[1].memory.context.value = Bytes(2'000'000'000);
  const Bytes peak = memory_of(scenario).heaviest().peak();
  EXPECT_EQ(&smallest_device(scenario), &profiles[1]);
  std::swap(profiles[0], profiles[1]);
  EXPECT_EQ(memory_of(scenario).heaviest().peak(), peak);
}

// Swapping the groups swaps the stages that run on them, whose tensor ranks then meet over other NVLinks: no
// more than that moves, whichever device comes first.
TEST(MixedPrices, WhatIsOnTheHostIsPricedByAllDevices) {
  const auto offload = [](const std::string& nodes) {
    return simulate_in_full(on(nodes, "offload: {activations: 1, optimizer: 0.5}\n")).prices.offload;
  };
  const OffloadPrice price = offload("{node: dgx-h100, nodes: 3}, {node: dgx-a100-80gb, nodes: 3}");
  const OffloadPrice swapped = offload("{node: dgx-a100-80gb, nodes: 3}, {node: dgx-h100, nodes: 3}");
  EXPECT_EQ(price.available, offload(kA100).available);
  EXPECT_EQ(price.optimizer_step, swapped.optimizer_step);
  EXPECT_NEAR(price.required_activations / swapped.required_activations, 1, 0.03);
  EXPECT_NEAR(to_seconds(price.stall) / to_seconds(swapped.stall), 1, 0.03);
}

TEST(MixedPrices, ThePeakIsThatOfTheMeanGpu) {
  const double h100 = simulate(on(kH100)).peak.count(), a100 = simulate(on(kA100)).peak.count();
  EXPECT_DOUBLE_EQ(simulate(on(kTwoAndFour)).peak.count(), (2 * h100 + 4 * a100) / 6);
}

// System: Llama 2 13B under FSDP2, each shard on both kinds. A job takes the time of the slower kind alone, also
// where traffic lasts longer than compute and slows the faster kind more.
TEST(MixedPrices, EachKindIsSlowedByTrafficAsItsOwnProfileSays) {
  const auto sharded = [](const std::string& nodes, const std::string& more) {
    return simulate(scenario_of("stagecraft: 1\n"
                                "model: llama-2-13b\n"
                                "cluster: {nodes: [" +
                                nodes +
                                "], fabric: ndr-fat-tree}\n"
                                "parallelism: {tensor: 4, data: 8, sequence_parallel: true, zero_stage: 3}\n"
                                "options: {software: fsdp2}\n" +
                                more))
        .iteration_time;
  };
  const std::string h200 = "{node: dgx-h200, nodes: ", a100 = "{node: dgx-a100-80gb, nodes: ";
  const std::string batch = "training: {global_batch_size: 128, micro_batch_size: 1, precision: bf16";
  for (const std::string& more :
       {batch + "}\n", batch + ", sequence_length: 512}\n",
        batch + ", sequence_length: 512}\noverlap: {gradients: false, parameters: false}\n"}) {
    SCOPED_TRACE(more);
    const Duration mixed = sharded(h200 + "2}, " + a100 + "2}", more);
    EXPECT_NEAR(to_seconds(mixed) / to_seconds(sharded(a100 + "4}", more)), 1, 0.02);
    EXPECT_GT(mixed, sharded(h200 + "4}", more));
    EXPECT_EQ(mixed, sharded(a100 + "2}, " + h200 + "2}", more));
  }
}

TEST(MixedPrices, WhatOneDeviceCannotDoIsRefused) {
  const auto refusal = [](const Scenario& scenario) {
    Diagnostics diagnostics;
    EXPECT_FALSE(prepare(scenario, diagnostics));
    return diagnostics.items().empty() ? std::string() : diagnostics.items().front().message;
  };
  Scenario fp8 = on(kTwoAndFour);
  fp8.training.precision = Precision::kFp8;
  EXPECT_THAT(refusal(fp8), testing::HasSubstr("A100"));
  EXPECT_THAT(refusal(on(kTwoAndFour, "network: flow\n")), testing::HasSubstr("several devices"));
}

}  // namespace
}  // namespace stagecraft
