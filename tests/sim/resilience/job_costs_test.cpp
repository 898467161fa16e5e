// What policies have to know of a job: its layers, its states.
#include "sim/resilience/job_costs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/model_spec.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;
using std::chrono::milliseconds;

JobCosts costs_of(const Scenario& scenario) {
  return job_costs(scenario, simulate_in_full(scenario));
}

TEST(JobCosts, OfAbstractStagesAreTheirOwnNumbers) {
  // bf16 with fp32 gradients: 4 B of gradient, 2 + 12 B of state a parameter.
  const JobCosts costs = costs_of(
      scenario_of("stagecraft: 1\n"
                  "model: {family: stages, forward: 1 ms, input_gradient: 2 ms, weight_gradient: 3 ms,"
                  " activation: 16 MiB, gradient: [4 GiB, 8 GiB]}\n"
                  "parallelism: {pipeline: 2}\n"
                  "training: {global_batch_size: 8}\n"));
  ASSERT_EQ(costs.layers.size(), 2u);
  EXPECT_EQ(costs.layers[0].forward, milliseconds(1));
  EXPECT_EQ(costs.layers[0].backward, milliseconds(5));
  EXPECT_EQ(costs.layers[0].state, 14_GiB);
  EXPECT_EQ(costs.layers[1].state, 28_GiB);
  EXPECT_EQ(costs.state, 42_GiB);
  EXPECT_EQ(costs.state_of_gpu, 28_GiB);
  EXPECT_EQ(costs.replica_gpus, 2);
}

TEST(JobCosts, OfATransformerAreItsEndsAndItsLayers) {
  const Scenario scenario = shipped("sc21-7.5b-128xA100");
  const auto& model = std::get<TransformerSpec>(scenario.model);
  const Simulation simulation = simulate_in_full(scenario);
  const JobCosts costs = job_costs(scenario, simulation);
  ASSERT_EQ(costs.layers.size(), static_cast<std::size_t>(model.layers) + 2);
  for (std::size_t i = 2; i + 1 < costs.layers.size(); ++i) EXPECT_EQ(costs.layers[i], costs.layers[1]);
  // 14 B a parameter; a tied embedding is held at both ends and saved once, norms and positions are on every
  // tensor rank.
  Bytes held{};
  for (const JobLayer& layer : costs.layers) held += layer.state;
  const auto words = static_cast<double>(model.vocab * model.hidden);
  const auto parameters = static_cast<double>(parameter_count(model));
  EXPECT_NEAR(static_cast<double>(costs.state.count()), 14 * parameters, 5e-3 * 14 * parameters);
  EXPECT_NEAR(static_cast<double>((held - costs.state).count()), 14 * words, 1e-2 * 14 * words);
}

// The work of the layers, and of the stages that hold them.
std::pair<Duration, Duration> work_of(const Scenario& scenario) {
  const JobCosts costs = job_costs(scenario, simulate_in_full(scenario));
  Duration layers{}, stages{};
  for (const JobLayer& layer : costs.layers) layers += layer.forward + layer.backward;
  for (std::size_t s = 0; s < costs.stage_forward.size(); ++s)
    stages += costs.stage_forward[s] + costs.stage_backward[s];
  return {layers, stages};
}

TEST(JobCosts, OfLayersAddUpToThoseOfTheStages) {
  Scenario scenario = shipped("gpt3-175b-1024xA100-1f1b");
  scenario.profile->gpu_variability.reset();
  const auto [layers, stages] = work_of(scenario);
  EXPECT_EQ(layers, stages);
}

// The slowest GPU is that of the job, whatever pipeline of layers prices them; it stretches each pass, to a
// rounding of its own.
TEST(JobCosts, OfLayersWaitForTheSlowestGpuOfTheJob) {
  Scenario scenario = shipped("gpt3-175b-1024xA100-1f1b");
  scenario.profile->gpu_variability.reset();
  const Duration alike = work_of(scenario).first;
  scenario.profile->gpu_variability = Sourced<double>{.value = 0.01};
  const auto [layers, stages] = work_of(scenario);
  EXPECT_GT(layers, alike);
  const auto passes = 2 * static_cast<double>(job_costs(scenario, simulate_in_full(scenario)).layers.size());
  EXPECT_NEAR(static_cast<double>(layers.count()), static_cast<double>(stages.count()), passes);
}

// Whoever has one stage may count a pipeline of one wherever he likes.
TEST(JobCosts, OfOneStageDoNotDependOnThePlaceOfThePipelineAmongTheAxes) {
  const auto layers = [](const std::string& model, const std::string& parallelism) {
    return costs_of(scenario_of("stagecraft: 1\n"
                                "cluster: {node: dgx-h100, nodes: 4}\n"
                                "training: {global_batch_size: 32, sequence_length: 4096, recompute: full}\n"
                                "model: " +
                                model + "\nparallelism: {sequence_parallel: true, " + parallelism + "}\n"))
        .layers;
  };
  const std::string second = ", order: [tensor, pipeline, context, expert, data]";
  for (const auto& [model, degrees] :
       {std::pair("mixtral-8x7b", "tensor: 4, expert: 8"), std::pair("deepseek-v2", "tensor: 2, expert: 1")})
    EXPECT_EQ(layers(model, degrees + second), layers(model, degrees)) << model;
}

// Whatever of it lies in the host's memory is state as well; copies that fp8 casts of the weights are none.
TEST(JobCosts, CountAStateWhereverItLies) {
  const Scenario plain = shipped("gpt3-175b-1024xA100-1f1b");
  const MemoryLedger ledger = simulate_in_full(plain).report.memory;
  Bytes most{};
  for (const StageMemory& stage : ledger.stages)
    most = std::max(most, stage.of(MemoryClass::kWeights) + stage.of(MemoryClass::kOptimizer));
  const Bytes state = costs_of(plain).state_of_gpu;
  EXPECT_EQ(state, most);
  for (const char* part : {"offload.optimizer=1.0", "offload.weights=0.5"})
    EXPECT_EQ(costs_of(shipped("gpt3-175b-1024xA100-1f1b", {part})).state_of_gpu, state) << part;
}

TEST(JobCosts, CountNoCopiesOfAState) {
  const auto in_precision = [](const std::string& precision) {
    return costs_of(
        scenario_of("stagecraft: 1\n"
                    "model: llama-3-70b\n"
                    "cluster: {node: dgx-h100, nodes: 16}\n"
                    "parallelism: {tensor: 8, pipeline: 4, data: 4, sequence_parallel: true}\n"
                    "training: {global_batch_size: 128, sequence_length: 4096, precision: " +
                    precision + "}\n"));
  };
  EXPECT_EQ(in_precision("fp8").state_of_gpu, in_precision("bf16").state_of_gpu);
}

// A model without experts or tied embeddings, on eight GPUs that each have all of it or an eighth.
JobCosts replicated(const std::string& precision, const std::string& sharding, const std::string& options) {
  return costs_of(
      scenario_of("stagecraft: 1\n"
                  "model: llama-3-8b\n"
                  "cluster: {node: dgx-h100, nodes: 1}\n"
                  "parallelism: {data: 8" +
                  sharding +
                  "}\n"
                  "training: {global_batch_size: 8, sequence_length: 4096, precision: " +
                  precision +
                  "}\n"
                  "options: {" +
                  options + "}\n"));
}

Bytes state_of(const std::vector<JobLayer>& layers) {
  Bytes sum{};
  for (const JobLayer& layer : layers) sum += layer.state;
  return sum;
}

std::int64_t parameters_of(const std::string& model) {
  return parameter_count(
      std::get<TransformerSpec>(scenario_of("stagecraft: 1\n"
                                            "model: " +
                                            model +
                                            "\n"
                                            "cluster: {node: dgx-h100, nodes: 1}\n"
                                            "training: {global_batch_size: 1, sequence_length: 4096}\n")
                                    .model));
}

// FSDP's shards are the fp32 weights that the optimizer steps: 4 + 8 B a parameter, and no 16-bit weights.
TEST(JobCosts, OfFullyShardedWeightsHaveNoOthersBesideTheMasters) {
  const std::string all = ", zero_stage: 3";
  const std::int64_t parameters = parameters_of("llama-3-8b");
  for (const char* precision : {"bf16", "fp8"}) {
    SCOPED_TRACE(precision);
    const JobCosts costs = replicated(precision, all, "software: fsdp2");
    EXPECT_EQ(costs.state, Bytes(12 * parameters));
    EXPECT_EQ(costs.state_of_gpu * 8, costs.state);
  }
  EXPECT_EQ(replicated("bf16", all, "software: megatron-core").state, Bytes(14 * parameters));
}

// They are cast to fp8 for the GPU, and back to 16 bit for the checkpoint.
TEST(JobCosts, OfWeightsInFp8AreWrittenIn16Bit) {
  const JobCosts wide = replicated("fp8", "", "fp8_parameters: false"),
                 narrow = replicated("fp8", "", "fp8_parameters: true");
  EXPECT_EQ(narrow.state, wide.state);
  EXPECT_EQ(wide.state, Bytes(14 * parameters_of("llama-3-8b")));
  for (const JobCosts& costs : {wide, narrow}) EXPECT_EQ(state_of(costs.layers), costs.state_of_gpu);
  // All weights but those of the two ends and of the norms have a byte less.
  const std::int64_t layer = 4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 14336;
  EXPECT_EQ(wide.layers[1].state - narrow.layers[1].state, Bytes(layer));
  EXPECT_EQ(wide.layers.front(), narrow.layers.front());
  EXPECT_EQ(wide.layers.back().state, narrow.layers.back().state);
}

TEST(JobCosts, KeepAShareOfTheStateOnEachGpuUnderZero) {
  const Scenario whole = shipped("gpt3-175b-1024xA100-1f1b", {"parallelism.zero_stage=0"});
  const Scenario sharded = shipped("gpt3-175b-1024xA100-1f1b", {"parallelism.zero_stage=1"});
  EXPECT_EQ(costs_of(whole).state, costs_of(sharded).state);
  EXPECT_GT(costs_of(whole).state_of_gpu, 3 * costs_of(sharded).state_of_gpu);
}

}  // namespace
}  // namespace stagecraft
