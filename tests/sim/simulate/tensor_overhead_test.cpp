// What a tensor collective costs beside its traffic.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/sim/simulate/prices_of.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

constexpr Duration kOverhead = std::chrono::microseconds(40);

Scenario dense(int layers, int tensor, bool sequence_parallel) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 4, hidden: 2048, heads: 16, vocab: 51200, max_sequence_length: 2048}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 1}\n"
      "parallelism: {tensor: 1, data: 8}\n"
      "training: {global_batch_size: 8}\n");
  std::get<TransformerSpec>(scenario.model).layers = layers;
  scenario.parallelism.tensor = tensor;
  scenario.parallelism.data = 8 / tensor;
  scenario.parallelism.sequence_parallel = sequence_parallel;
  return scenario;
}

// Time of a forward pass in tensor collectives.
Duration forward_time(Scenario scenario, Duration overhead) {
  scenario.options.rules.tensor_collective_overhead.value = overhead;
  return prices_of(scenario).stages.front().forward.of(Category::kTensorComm);
}

Duration added(const Scenario& scenario) {
  return forward_time(scenario, kOverhead) - forward_time(scenario, Duration::zero());
}

// Four layers more are eight all-reduces more, or sixteen halves of one.
TEST(TensorCollectiveOverhead, IsPaidTwiceALayer) {
  for (const bool sequence_parallel : {false, true})
    EXPECT_EQ(added(dense(8, 4, sequence_parallel)) - added(dense(4, 4, sequence_parallel)), 8 * kOverhead)
        << sequence_parallel;
}

TEST(TensorCollectiveOverhead, IsTheSameAtEveryDegreeAndNothingWithoutOne) {
  EXPECT_EQ(added(dense(4, 2, false)), added(dense(4, 8, false)));
  EXPECT_GT(added(dense(4, 2, false)), Duration::zero());
  EXPECT_EQ(added(dense(4, 1, false)), Duration::zero());
}

TEST(TensorCollectiveOverhead, MakesTheIterationLonger) {
  Scenario without = dense(4, 4, false), with = dense(4, 4, false);
  without.options.rules.tensor_collective_overhead.value = Duration::zero();
  with.options.rules.tensor_collective_overhead.value = kOverhead;
  EXPECT_GE(simulate(with).iteration_time - simulate(without).iteration_time, 4 * 2 * kOverhead);
}

}  // namespace
}  // namespace stagecraft
