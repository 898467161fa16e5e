// A scenario that cannot run is refused before it runs, with every reason at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/simulate_parts.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

// Each line is well-formed; together they ask for what the model and the device do not have.
const char* const kInfeasible =
    "stagecraft: 1\n"
    "model: {family: gpt, layers: 10, hidden: 1024, heads: 4, vocab: 32000, max_sequence_length: 1024}\n"
    "cluster: {node: dgx-a100-80gb, nodes: 4}\n"
    "parallelism: {tensor: 8, pipeline: 4, data: 1}\n"
    "training: {global_batch_size: 8, precision: fp8}\n";

std::vector<std::string> paths_of(const ScenarioError& error) {
  std::vector<std::string> paths;
  for (const Diagnostic& diagnostic : error.diagnostics()) paths.push_back(diagnostic.path);
  return paths;
}

template <class Action>
std::vector<std::string> refused(const Action& action) {
  try {
    action();
  } catch (const ScenarioError& error) {
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      EXPECT_FALSE(diagnostic.hint.empty()) << diagnostic.path;
      EXPECT_EQ(diagnostic.where.file, "s.yaml") << diagnostic.path;
      EXPECT_GT(diagnostic.where.line, 0) << diagnostic.path;
    }
    return paths_of(error);
  }
  ADD_FAILURE() << "was not refused";
  return {};
}

TEST(Infeasible, IsRefusedWithEveryReasonAtOnce) {
  const Scenario scenario = scenario_of(kInfeasible);
  const auto expected =
      testing::UnorderedElementsAre("training.precision", "parallelism.tensor", "parallelism.pipeline");
  EXPECT_THAT(refused([&] { (void)simulate(scenario); }), expected);
  EXPECT_THAT(refused([&] { (void)simulate_in_full(scenario); }), expected);
  EXPECT_THAT(refused([&] { (void)memory_of(scenario); }), expected);
}

TEST(Infeasible, IsRefusedByTheCheckAloneWithTheSameReasons) {
  Diagnostics diagnostics;
  EXPECT_FALSE(prepare(scenario_of(kInfeasible), diagnostics).has_value());
  EXPECT_EQ(diagnostics.error_count(), 3u);
}

TEST(Infeasible, IsWhatIsLeftOfACluster) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}\n"
      "cluster:\n"
      "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
      "  nodes: 2\n"
      "  fabric: {kind: single-switch}\n"
      "  links: [{name: \"*\", missing: true}]\n"
      "training: {global_batch_size: 3}\n");
  EXPECT_THAT(refused([&] { (void)simulate(scenario); }),
              testing::UnorderedElementsAre("cluster.links.0.missing", "training.global_batch_size"));
}

TEST(Infeasible, IsAPrecisionThatTheDeviceDoesNotHave) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-a100-80gb, nodes: 1}\n"
      "training: {global_batch_size: 8}\n");
  scenario.profile->device.peak_bf16 = FlopRate(0);
  Diagnostics diagnostics;
  EXPECT_FALSE(prepare(scenario, diagnostics));
  ASSERT_EQ(diagnostics.error_count(), 1U);
  EXPECT_EQ(diagnostics.items().front().hint, "fp32, fp16 are there, or name the profile of another device");
}

// Scales of blocks want products that take them: blocks of 128 on Hopper, of 32 on Blackwell.
TEST(Infeasible, IsARecipeOfFp8ThatTheDeviceDoesNotHave) {
  const auto of = [](const std::string& node, const std::string& recipe) {
    return scenario_of("stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: " + node +
                       ", nodes: 1}\noptions: {fp8_recipe: " + recipe +
                       "}\ntraining: {global_batch_size: 8, precision: fp8}\n");
  };
  const auto refusal = [&](const std::string& node, const std::string& recipe) {
    return refused([&] { (void)simulate(of(node, recipe)); });
  };
  EXPECT_THAT(refusal("dgx-b200", "blockwise"), testing::ElementsAre("options.fp8_recipe"));
  EXPECT_THAT(refusal("dgx-h100", "mxfp8"), testing::ElementsAre("options.fp8_recipe"));
  for (const char* recipe : {"delayed", "current", "blockwise"})
    EXPECT_NO_THROW((void)simulate(of("dgx-h100", recipe))) << recipe;
  EXPECT_THAT(refusal("dgx-h100", "nvfp4"), testing::ElementsAre("options.fp8_recipe"));
  for (const char* recipe : {"mxfp8", "nvfp4"})
    EXPECT_NO_THROW((void)simulate(of("dgx-b200", recipe))) << recipe;
}

// Rates are published of Blackwell; windows and sinks have no kernel that skips what they need not.
TEST(Infeasible, IsAttentionInFp8WithoutAKnownRate) {
  const auto of = [](const std::string& model, const std::string& node) {
    return scenario_of("stagecraft: 1\nmodel: " + model + "\ncluster: {node: " + node +
                       ", nodes: 1}\noptions: {fp8_attention: current}\n"
                       "training: {global_batch_size: 8, precision: fp8}\n");
  };
  const auto refusal = [&](const std::string& model, const std::string& node) {
    return refused([&] { (void)simulate(of(model, node)); });
  };
  EXPECT_THAT(refusal("llama-3-8b", "dgx-h100"), testing::ElementsAre("options.fp8_attention"));
  EXPECT_THAT(refusal("gpt-oss-20b", "dgx-b200"), testing::ElementsAre("options.fp8_attention"));
  for (const char* node : {"dgx-b200", "dgx-b300", "gb200-nvl72", "gb300-nvl72"})
    EXPECT_NO_THROW((void)simulate(of("llama-3-8b", node))) << node;
}

TEST(Infeasible, IsAScheduleThatTheMicroBatchesDoNotSuit) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}\n"
      "parallelism: {pipeline: 4, virtual_stages: 2}\n"
      "schedule: interleaved-1f1b\n"
      "training: {global_batch_size: 2}\n");
  EXPECT_THAT(refused([&] { (void)simulate(scenario); }), testing::ElementsAre("schedule"));
}

// The loader takes it: `topology check` answers what is cut off.
TEST(Infeasible, IsAClusterThatMissingLinksCutInTwo) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: gpt-22b\n"
      "cluster: {node: dgx-a100-80gb, nodes: 2,"
      " links: [{name: node 1 nic * -> *, missing: true}]}\n"
      "parallelism: {tensor: 8}\n"
      "training: {global_batch_size: 8}\n");
  EXPECT_THAT(refused([&] { (void)simulate(scenario); }), testing::ElementsAre("cluster.links.0.missing"));
}

// Background traffic from the node that is cut off has no way, but the links are what is wrong.
TEST(Infeasible, IsAClusterCutInTwoBesideBackgroundTraffic) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}\n"
      "cluster: {node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 100 Gb/s, pcie: 63 GB/s}, nodes: 3,"
      " fabric: {kind: single-switch}, links: [{name: node 0 gpu 0 -> *, missing: true}]}\n"
      "training: {global_batch_size: 3}\n"
      "network: {mode: flow, background: [{from: node 0, to: node 1, rate: 1 GB/s}]}\n");
  EXPECT_THAT(refused([&] { (void)simulate(scenario); }), testing::ElementsAre("cluster.links.0.missing"));
}

// 8 billion parameters; a bucket is a task, and somebody forgot the millions.
TEST(Infeasible, AreMoreBucketsThanCanBeSimulated) {
  const auto scenario = [](const char* buckets) {
    return scenario_of(
        std::string("stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-a100-80gb, nodes: 1}\n"
                    "parallelism: {data: 8}\ntraining: {global_batch_size: 8}\n"
                    "options: {bucket_parameters: ") +
        buckets + "}\n");
  };
  EXPECT_THAT(refused([&] { (void)simulate(scenario("5")); }),
              testing::ElementsAre("options.bucket_parameters"));
  EXPECT_GT(simulate(scenario("5000000")).iteration_time, Duration::zero());
}

// GPipe holds all of its micro-batches: 400 of 2e16 bytes, one of which could be counted.
TEST(Infeasible, AreMicroBatchesThatNobodyCanCount) {
  const auto scenario = [](const char* batch) {
    return scenario_of(
        std::string(
            "stagecraft: 1\n"
            "model: {family: gpt, layers: 96, hidden: 12288, heads: 96, vocab: 51200, position: rope}\n"
            "cluster: {node: dgx-h100, nodes: 1}\nparallelism: {data: 8}\nschedule: gpipe\n"
            "training: {micro_batch_size: 1, sequence_length: 800000, attention: unfused, "
            "global_batch_size: ") +
        batch + "}\n");
  };
  EXPECT_THAT(refused([&] { (void)memory_of(scenario("3200")); }),
              testing::ElementsAre("training.sequence_length"));  // 800,000 is more than 400
  EXPECT_EQ(memory_of(scenario("64")).verdict(), Verdict::kOutOfMemory);
}

// System: 16 layers of 12 * 2,000,000^2, 7.7e14 parameters and 19 million buckets of the usual size. Those of
// ZeRO 3 are its units.
TEST(Infeasible, AreMoreBucketsOfTheUsualSizeThanCanBeSimulated) {
  const auto scenario = [](const char* zero) {
    return scenario_of(
        std::string(
            "stagecraft: 1\nmodel: {family: gpt, layers: 16, hidden: 2000000, heads: 16, vocab: 51200, "
            "max_sequence_length: 1024}\n"
            "cluster: {node: dgx-a100-80gb, nodes: 1}\ntraining: {global_batch_size: 8}\n"
            "parallelism: {data: 8, zero_stage: ") +
        zero + "}\n");
  };
  Diagnostics few, many;
  EXPECT_TRUE(place(scenario("3"), few));
  EXPECT_FALSE(place(scenario("0"), many));
  ASSERT_EQ(many.items().size(), 1U);
  EXPECT_EQ(many.items().front().path, "model");
  EXPECT_THAT(many.items().front().message, testing::HasSubstr("buckets, and at most 1,000,000"));
}

// Nanoseconds end at 292 years: 8 micro-batches of 30,000 days in 4 stages are 2,600.
TEST(Infeasible, AreTimesThatNobodyCanCount) {
  for (const char* days : {"4000", "30000", "100000"}) {
    const Scenario scenario = shipped("pipeline-4x8", {std::string("model.forward=") + days + " days"});
    try {
      (void)simulate(scenario);
      ADD_FAILURE() << days;
    } catch (const ScenarioError& error) {
      EXPECT_EQ(error.diagnostics().front().code, "quantity-too-large");
    }
  }
  EXPECT_GT(simulate(shipped("pipeline-4x8", {"model.forward=30 days"})).iteration_time, Duration::zero());
}

// Three hours of passes on a GPU that takes a million times as long.
TEST(Infeasible, AreTimesThatNobodyCanCountOnASlowGpu) {
  const auto scenario = [](const std::string& factor) {
    return shipped("llama3-8b-64xA100", {"training.global_batch_size=640000",
                                         "faults=[{kind: slow-gpu, gpu: 0, factor: " + factor + "}]"});
  };
  EXPECT_GT(simulate(scenario("2")).iteration_time, Duration::zero());
  try {
    (void)simulate(scenario("1e6"));
    ADD_FAILURE();
  } catch (const ScenarioError& error) {
    EXPECT_EQ(error.diagnostics().front().code, "quantity-too-large");
  }
}

// 8 micro-batches in 4 stages of 300 days forward and as many backward are 20 years, ten in a row 200.
TEST(Infeasible, AreTimesThatNobodyCanCountOfSeveralIterations) {
  const auto scenario = [](const char* iterations) {
    return shipped("pipeline-4x8", {"model.forward=300 days",
                                    std::string("schedule={name: 1f1b, iterations: ") + iterations + "}"});
  };
  EXPECT_THROW((void)simulate(scenario("50")), ScenarioError);
  EXPECT_GT(simulate(scenario("3")).iteration_time, Duration::zero());
}

std::vector<std::string> refused_paths(const Scenario& scenario) {
  Diagnostics diagnostics;
  EXPECT_FALSE(prepare(scenario, diagnostics).has_value());
  std::vector<std::string> paths;
  for (const Diagnostic& diagnostic : diagnostics.items()) paths.push_back(diagnostic.path);
  return paths;
}

// A link that is slower in the first iteration has no meaning in those that follow beside other jobs.
TEST(Infeasible, AreFaultsInSeveralIterationsBesideOtherJobs) {
  Scenario scenario = shipped("llama3-8b-64xA100");
  scenario.network.mode = NetworkMode::kFlow;
  scenario.faults.push_back({.kind = FaultKind::kSlowGpu, .factor = 2, .ranks = {0}});
  scenario.network.iterations = 3;
  EXPECT_THAT(refused_paths(scenario), testing::ElementsAre("faults"));
}

// A million tokens without flash attention are counted, a thousand million are not.
TEST(Infeasible, AreActivationsThatNobodyCanCount) {
  const auto scenario = [](const char* length, const char* attention) {
    return shipped("llama3-8b-64xA100", {std::string("training.sequence_length=") + length,
                                         std::string("training.attention=") + attention});
  };
  EXPECT_THAT(refused_paths(scenario("1000000000", "unfused")),
              testing::ElementsAre("training.sequence_length"));
  EXPECT_GT(memory_of(scenario("1000000", "flash")).stages.front().of(MemoryClass::kActivations), Bytes(0));
}

TEST(Feasible, IsPreparedWithoutAWord) {
  Diagnostics diagnostics;
  const auto prepared = prepare(shipped("gpt3-175b-1024xA100"), diagnostics);
  ASSERT_TRUE(prepared.has_value());
  EXPECT_TRUE(diagnostics.items().empty());
  EXPECT_EQ(prepared->plan.gpus(), 1024);
  EXPECT_EQ(prepared->schedule.ranks.size(), 8u);
}

// Memory is a verdict and no refusal: the time of what does not fit is still predicted.
TEST(OutOfMemory, IsAnAnswer) {
  const Report report = simulate(
      shipped("gpt3-175b-1024xA100", {"parallelism.zero_stage=0", "parallelism.sequence_parallel=false"}));
  EXPECT_EQ(report.memory.verdict(), Verdict::kOutOfMemory);
  EXPECT_GT(report.iteration_time, Duration::zero());
}

}  // namespace
}  // namespace stagecraft
