// Layers in NVFP4, and layers that stay in 16 bit where the others run in fp8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/simulate/prices_of.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

// Llama 3 8B over two stages of one DGX B200.
Scenario job(const std::string& training, const std::string& more = "") {
  return scenario_of(
      "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-b200, nodes: 1}\n"
      "parallelism: {tensor: 2, pipeline: 2, sequence_parallel: true, zero_stage: 1}\n"
      "training: {global_batch_size: 16, sequence_length: 4096, " +
      training + "}\n" + more);
}

// Options of a job that waits for no host.
std::string graphs(const std::string& recipe) {
  return "options: {software: megatron-core, cuda_graphs: iteration, fp8_recipe: " + recipe + "}\n";
}

// System: all layers of a job in fp8 stay in 16 bit.
// Expectations: times and memory are those of the job in bf16.
TEST(SixteenBitLayers, ThatAreAllOfThemMakeAJobIn16Bit) {
  const std::string software = "options: {software: megatron-core}\n";
  const Report sixteen = simulate(job("precision: bf16", software));
  for (const char* layers : {"{first: 32}", "{last: 32}", "{first: 7, last: 25}"}) {
    SCOPED_TRACE(layers);
    const Report report =
        simulate(job("precision: fp8, sixteen_bit_layers: " + std::string(layers), software));
    EXPECT_EQ(report.iteration_time, sixteen.iteration_time);
    EXPECT_EQ(report.breakdown, sixteen.breakdown);
    for (std::size_t stage = 0; stage < 2; ++stage)
      EXPECT_EQ(report.memory.stages[stage].peak(), sixteen.memory.stages[stage].peak()) << stage;
  }
}

// Property: the stage that has them is slower by as much a layer as bf16 is, and no other changes.
TEST(SixteenBitLayers, SlowTheStageThatHasThem) {
  const std::string recipe = "options: {software: megatron-core, fp8_recipe: nvfp4}\n";
  const auto forward = [&](const std::string& training, std::size_t stage) {
    return to_seconds(prices_of(job(training, recipe)).stages[stage].forward.total());
  };
  const double four = forward("precision: fp8", 1), sixteen = forward("precision: bf16", 1);
  const double mixed = forward("precision: fp8, sixteen_bit_layers: {last: 4}", 1);
  EXPECT_NEAR(mixed - four, (sixteen - four) * 4 / 16, 1e-6);
  EXPECT_EQ(forward("precision: fp8, sixteen_bit_layers: {last: 4}", 0), forward("precision: fp8", 0));
}

// Transformer Engine gathers weights in bf16, unless they are kept in NVFP4, and has no user buffers for it.
TEST(Nvfp4, KeepsItsWeightsInBf16UnlessToldOtherwise) {
  const auto weights = [](const std::string& more) {
    const Report report = simulate(
        job("precision: fp8", "options: {software: megatron-core, fp8_recipe: nvfp4" + more + "}\n"));
    return report.memory.stages.front().of(MemoryClass::kWeights);
  };
  EXPECT_EQ(weights(""), weights(", fp8_parameters: false"));
  EXPECT_LT(weights(", fp8_parameters: true"), weights(""));
}

TEST(Nvfp4, OverlapsNoTensorCollectives) {
  const auto of = [](const std::string& recipe, const std::string& overlap) {
    return simulate(job("precision: fp8", "overlap: {tensor: " + overlap + "}\n" + graphs(recipe)));
  };
  EXPECT_EQ(of("nvfp4", "true").iteration_time, of("nvfp4", "false").iteration_time);
  EXPECT_LT(of("mxfp8", "true").iteration_time, of("mxfp8", "false").iteration_time);
}

// Products that are twice as fast make up for casts that read twice; activations are half as wide.
TEST(Nvfp4, TakesLessTimeAndMemoryThanMxfp8) {
  const Report eight = simulate(job("precision: fp8", graphs("mxfp8, fp8_parameters: false")));
  const Report four = simulate(job("precision: fp8", graphs("nvfp4")));
  EXPECT_LT(four.iteration_time, eight.iteration_time);
  for (const MemoryClass kind : {MemoryClass::kWeights, MemoryClass::kActivations})
    EXPECT_LT(four.memory.stages.front().of(kind), eight.memory.stages.front().of(kind));
}

}  // namespace
}  // namespace stagecraft
