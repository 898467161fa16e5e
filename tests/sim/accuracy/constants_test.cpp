#include "sim/accuracy/constants.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <variant>

#include "sim/accuracy/compute_split.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

Scenario small_job() {
  return scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 4, hidden: 2048, heads: 16, vocab: 51200, max_sequence_length: 2048}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 2}\n"
      "parallelism: {tensor: 4, pipeline: 2}\n"
      "training: {global_batch_size: 8, micro_batch_size: 1, attention: unfused}\n");
}

TEST(ModelConstants, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const ModelConstant& constant : model_constants()) {
    EXPECT_TRUE(names.insert(constant.name).second) << constant.name;
    EXPECT_EQ(find_constant(constant.name), &constant);
    EXPECT_FALSE(constant.meaning.empty());
  }
  EXPECT_EQ(find_constant("gemm.scales"), nullptr);
}

// What is written reads back, but for switches and factors, whose neutral value always reads as itself, and
// for site terms, which a fabric without them does not get.
TEST(ModelConstants, ReadBackWhatWasWritten) {
  for (const std::string_view name :
       {"gemm.scale", "gemm.fp8_factor", "gemm.batched_efficiency", "memory_efficiency", "loss_traffic",
        "tensor_overlap", "host.launch", "host.per_iteration", "fabric.collective_efficiency",
        "gpu_variability", "piece_overhead", "exchange_overhead", "tensor_collective_overhead"}) {
    Scenario scenario = small_job();
    const ModelConstant& constant = *find_constant(name);
    constant.set(scenario, 0.25);
    EXPECT_DOUBLE_EQ(constant.get(scenario), 0.25) << name;
  }
}

TEST(ModelConstants, OfASiteLeaveOtherFabricsAlone) {
  Scenario scenario = small_job();
  find_constant("fabric.tensor_collective_factor")->set(scenario, 2);
  EXPECT_EQ(scenario.cluster->fabric.tensor_collective_factor, 1);
}

TEST(ModelConstants, OfProductsMoveThePrediction) {
  Scenario slow = small_job(), full = small_job();
  const Duration before = simulate(slow).iteration_time;
  find_constant("gemm.scale")->set(slow, 0.5);
  EXPECT_GT(simulate(slow).iteration_time, before);
  find_constant("gemm.quantisation")->set(full, 0);
  EXPECT_LT(simulate(full).iteration_time, before);
}

KernelShares shares_of(const Scenario& scenario) {
  Diagnostics diagnostics;
  return split_compute(scenario, prepare(scenario, diagnostics).value().plan);
}

// Layers that block recompute leaves alone run no forward twice; a prediction is a layer and a head more.
TEST(ComputeSplit, CountsWhatAStageRunsAsOftenAsItRunsIt) {
  Scenario none = small_job();
  none.training.recompute.granularity = Recompute::kNone;
  Scenario one = none;
  one.training.recompute.granularity = Recompute::kFull;
  one.training.recompute.method = RecomputeMethod::kBlock;
  Scenario all = one;
  all.training.recompute.layers = 2;
  EXPECT_LT(shares_of(none)[3], 1);
  EXPECT_GT(shares_of(none)[3], shares_of(one)[3]);  // of the loss, which is not repeated
  EXPECT_GT(shares_of(one)[3], shares_of(all)[3]);
  Scenario predicts = none;
  std::get<TransformerSpec>(predicts.model).mtp_layers = 1;
  EXPECT_GT(shares_of(predicts)[3], shares_of(none)[3]);
}

TEST(ComputeSplit, OfAJobAddsUpToOneAndIsMostlyProducts) {
  const KernelShares shares = shares_of(small_job());
  double sum = 0;
  for (const double share : shares) sum += share;
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_GT(shares[0], 0.4);
  EXPECT_GT(shares[3], 0);
}

}  // namespace
}  // namespace stagecraft
