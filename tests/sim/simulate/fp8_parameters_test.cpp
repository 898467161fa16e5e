// What weights in fp8 move and take: `options.fp8_parameters`.
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/simulate/prices_of.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

// A layer has 12 h^2 weights in products, and 13 h beside; words, positions and the last norm come once.
constexpr std::int64_t kHidden = 8192, kProducts = 4 * 12 * kHidden * kHidden, kRest = 4 * 13 * kHidden,
                       kEnds = (51200 + 2048 + 2) * kHidden;

Scenario sharded(int zero_stage, const char* software, bool fp8_parameters) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 4, hidden: 8192, heads: 64, vocab: 51200, max_sequence_length: 2048}\n"
      "cluster: {node: dgx-h100, nodes: 2}\n"
      "parallelism: {data: 16, zero_stage: " +
      std::to_string(zero_stage) +
      "}\n"
      "training: {global_batch_size: 32, precision: fp8}\n"
      "options: {software: " +
      software + "}\n");
  scenario.options.fp8_parameters = fp8_parameters;
  return scenario;
}

Duration gathered_in(const IterationPrices& prices) {
  Duration sum{};
  for (const auto& chunk : prices.ranks.front().parameter_buckets)
    for (const PassPrice& bucket : chunk) sum += bucket.total();
  for (const UnitPrice& unit : prices.stages.front().units) sum += unit.gather.total();
  return sum;
}

TEST(Fp8Parameters, AreGatheredAtOneByteForEachWeightOfAProduct) {
  for (const int zero_stage : {1, 3}) {
    SCOPED_TRACE(zero_stage);
    const auto gathered = [&](bool fp8_parameters) {
      Scenario scenario = sharded(zero_stage, "megatron-core", fp8_parameters);
      scenario.overlap.gradients = scenario.overlap.parameters = false;  // one bucket
      return to_seconds(gathered_in(prices_of(scenario)));
    };
    const double ratio = gathered(true) / gathered(false);
    const double bytes = static_cast<double>(kProducts + 2 * (kRest + kEnds)) /
                         static_cast<double>(2 * (kProducts + kRest + kEnds));
    EXPECT_GE(ratio, bytes);  // the latency stays
    EXPECT_LT(ratio, 1.15 * bytes);
  }
}

// Gradients have the width that they had.
TEST(Fp8Parameters, LeaveReductionsAsTheyAre) {
  const auto reduced = [](int zero_stage, bool fp8_parameters) {
    const IterationPrices prices = prices_of(sharded(zero_stage, "megatron-core", fp8_parameters));
    Duration sum{};
    for (const auto& chunk : prices.ranks.front().gradient_buckets)
      for (const PassPrice& bucket : chunk) sum += bucket.total();
    for (const UnitPrice& unit : prices.stages.front().units) sum += unit.reduce.total();
    return sum;
  };
  for (const int zero_stage : {1, 3}) {
    EXPECT_EQ(reduced(zero_stage, true), reduced(zero_stage, false)) << zero_stage;
    EXPECT_GT(reduced(zero_stage, true), Duration::zero());
  }
}

// Transformer Engine casts once a step, beside the optimizer: two bytes read and two written for a weight; of
// fp8 ones a transposed copy, one and one. torchao casts in every pass, and of fp8 ones transposes alone.
TEST(Fp8Parameters, AreCastLess) {
  const IterationPrices none = prices_of([] {
    Scenario bf16 = sharded(1, "megatron-core", false);
    bf16.training.precision = Precision::kBf16;
    return bf16;
  }());
  const auto cast = [&](bool fp8_parameters) {
    const IterationPrices prices = prices_of(sharded(1, "megatron-core", fp8_parameters));
    return to_seconds(prices.ranks.front().optimizer.total() - none.ranks.front().optimizer.total());
  };
  const HardwareProfile profile = *sharded(1, "megatron-core", true).profile;
  const double rate = profile.memory_efficiency.value * profile.device.memory_bandwidth.count();
  EXPECT_NEAR(cast(false), 4.0 * kProducts / rate, 0.1 * 4.0 * kProducts / rate);
  EXPECT_NEAR(cast(true), 2.0 * kProducts / rate, 0.1 * 2.0 * kProducts / rate);
  const auto pass = [&](bool fp8_parameters) {
    return prices_of(sharded(3, "fsdp2", fp8_parameters)).stages.front().forward.total();
  };
  EXPECT_LT(pass(true), pass(false));
}

// Without sharding nothing is gathered, and what is left is a cast and the memory of 16-bit weights.
TEST(Fp8Parameters, TakeLessMemoryAndNeverMoreTime) {
  for (const int zero_stage : {0, 1, 2, 3}) {
    for (const char* software : {"megatron-core", "fsdp2"}) {
      SCOPED_TRACE(std::string(software) + " " + std::to_string(zero_stage));
      const Report fp8 = simulate(sharded(zero_stage, software, true)),
                   bf16 = simulate(sharded(zero_stage, software, false));
      EXPECT_LE(fp8.iteration_time, bf16.iteration_time);
      EXPECT_LT(fp8.memory.stages.front().of(MemoryClass::kWeights),
                bf16.memory.stages.front().of(MemoryClass::kWeights));
    }
  }
}

}  // namespace
}  // namespace stagecraft
