// What a scenario says of keys that had no effect, or less of one than they seem to have.
#include "sim/scenario/no_effect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/scenario/read_scenario.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Scenario, SaysWhichWrittenKeysHadNoEffect) {
  const Result result = read(
      "stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, gpus: 1}\n"
      "parallelism: {sequence_parallel: true, zero_stage: 1}\n"
      "training: {global_batch_size: 8, recompute: selective}\n"
      "overlap: {gradients: true, parameters: true, pipeline: true, tensor: false, context: true, expert: "
      "false}\n"
      "options: {scatter_gather: true, fused_kernels: true}\n");
  ASSERT_TRUE(result.scenario) << result.messages;
  std::vector<std::string> paths;
  for (const Diagnostic& warning : result.scenario->warnings) {
    paths.push_back(warning.path);
    EXPECT_THAT(warning.message, testing::StartsWith("had no effect: "));
    EXPECT_EQ(warning.severity, Severity::kWarning);
  }
  EXPECT_THAT(paths,
              ElementsAre("parallelism.sequence_parallel", "parallelism.zero_stage", "training.recompute",
                          "overlap.gradients", "overlap.parameters", "overlap.pipeline", "overlap.tensor",
                          "overlap.context", "overlap.expert", "options.scatter_gather"));
}

TEST(Scenario, SaysWhereASlidingWindowCutsNothingOff) {
  const auto said = [](const std::string& training) {
    const Result result = read(
        "stagecraft: 1\nmodel: mistral-7b\ncluster: {node: dgx-h100, nodes: 1}\n"
        "training: {global_batch_size: 8, " +
        training + "}\n");
    EXPECT_TRUE(result.scenario) << result.messages;
    return result.scenario ? result.scenario->warnings : std::vector<Diagnostic>();
  };
  EXPECT_THAT(said("sequence_length: 8192"), ElementsAre());
  const auto short_samples = said("sequence_length: 4096");
  ASSERT_EQ(short_samples.size(), 1u);
  EXPECT_EQ(short_samples[0].path, "model.sliding_window");
  EXPECT_EQ(short_samples[0].message, "had no effect: training.sequence_length is no longer than the window");
  const auto unfused = said("sequence_length: 8192, attention: unfused");
  ASSERT_EQ(unfused.size(), 1u);
  EXPECT_EQ(unfused[0].message,
            "had no effect: unfused attention computes all scores and masks those before the window");
}

TEST(Scenario, SaysThatAnOrderWithoutRecomputePassesMakesNothingAgain) {
  for (const auto& [order, idle] : {std::pair("1f1b", true), std::pair("varuna", false)}) {
    const Result result = read(
        "stagecraft: 1\nmodel: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms, "
        "recompute: 1 ms}\nparallelism: {pipeline: 4}\ntraining: {global_batch_size: 8}\nschedule: " +
        std::string(order) + "\n");
    ASSERT_TRUE(result.scenario) << result.messages;
    EXPECT_EQ(result.scenario->warnings.size(), idle ? 1u : 0u) << order;
    if (!idle) continue;
    EXPECT_EQ(result.scenario->warnings.front().path, "model.recompute");
  }
}

// Their degrees make GPUs, whose gradients nobody reduces.
TEST(Scenario, SaysWhatStagesWithoutAClusterLeaveOut) {
  const auto warnings = [](const std::string& parallelism) {
    const Result result = read(
        "stagecraft: 1\nmodel: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms, "
        "gradient: 1 GiB}\ntraining: {global_batch_size: 8}\nparallelism: " +
        parallelism + "\n");
    EXPECT_TRUE(result.scenario) << result.messages;
    return result.scenario ? result.scenario->warnings : std::vector<Diagnostic>();
  };
  EXPECT_THAT(warnings("{pipeline: 2, tensor: 2}"), testing::IsEmpty());
  const std::vector<Diagnostic> replicas = warnings("{pipeline: 2, context: 2, data: 2}");
  ASSERT_EQ(replicas.size(), 1u);
  EXPECT_EQ(replicas[0].path, "model.gradient");
  EXPECT_THAT(replicas[0].message, HasSubstr("without a cluster no gradients are reduced"));
}

// The effect of a key depends on others: each pair below says when a key does nothing, and when it does
// something.
std::vector<std::string> idle_keys(const std::string& rest) {
  const Result result =
      read("stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, nodes: 2}\n" + rest);
  EXPECT_TRUE(result.scenario) << result.messages;
  std::vector<std::string> paths;
  if (result.scenario)
    for (const Diagnostic& warning : result.scenario->warnings) paths.push_back(warning.path);
  return paths;
}

TEST(Scenario, SaysWhenContextAndExpertKeysHadNoEffect) {
  const std::string keys =
      "training: {global_batch_size: 16}\noverlap: {context: true, expert: true}\n"
      "options: {expert_dispatcher: all-gather, fp8_dispatch: true}\n";
  EXPECT_THAT(idle_keys(keys + "parallelism: {context_exchange: p2p}\n"),
              ElementsAre("parallelism.context_exchange", "overlap.context", "overlap.expert",
                          "options.expert_dispatcher", "options.fp8_dispatch"));
  EXPECT_THAT(idle_keys(keys + "parallelism: {context: 2, context_exchange: p2p}\n"),
              ElementsAre("overlap.expert", "options.expert_dispatcher", "options.fp8_dispatch"));
  EXPECT_THAT(
      idle_keys(keys + "parallelism: {context: 2, context_exchange: all-gather}\n"),
      ElementsAre("overlap.context", "overlap.expert", "options.expert_dispatcher", "options.fp8_dispatch"));
}

TEST(Scenario, SaysWhenKernelsOfFp8HadNoEffect) {
  const std::string keys = "options: {fp8_attention: mxfp8, fused_experts: true}\n";
  EXPECT_THAT(idle_keys(keys + "training: {global_batch_size: 16}\n"),
              ElementsAre("options.fused_experts", "options.fp8_attention"));
}

TEST(Scenario, SaysWhenShardingKeysHadNoEffect) {
  const std::string keys = "options: {reshard_after_forward: false, bucket_parameters: 1000}\n";
  EXPECT_THAT(idle_keys(keys + "training: {global_batch_size: 16}\nparallelism: {zero_group: 8}\n"),
              ElementsAre("parallelism.zero_group", "options.reshard_after_forward"));
  EXPECT_THAT(
      idle_keys(keys + "training: {global_batch_size: 16}\nparallelism: {zero_stage: 3, zero_group: 8}\n"),
      ElementsAre("options.bucket_parameters"));
  EXPECT_THAT(idle_keys(keys + "training: {global_batch_size: 16}\n"
                               "parallelism: {tensor: 8, context: 2, zero_stage: 3}\n"),
              ElementsAre("options.bucket_parameters"));  // context ranks are replicas of the weights
  EXPECT_THAT(
      idle_keys(keys + "training: {global_batch_size: 16}\n"
                       "parallelism: {tensor: 8, pipeline: 2, zero_stage: 3}\n"),
      ElementsAre("parallelism.zero_stage", "options.bucket_parameters", "options.reshard_after_forward"));
}

// FSDP shards fp32 weights, which are the masters where there are any.
TEST(Scenario, SaysWhenOffloadedWeightsAreTheOptimizers) {
  const auto idle = [](const std::string& parallel, const std::string& training) {
    const std::vector<std::string> keys =
        idle_keys("parallelism: {zero_stage: 3" + parallel + "}\ntraining: {global_batch_size: 16" +
                  training + "}\noptions: {software: fsdp2}\noffload: {weights: 1}\n");
    return std::ranges::find(keys, "offload.weights") != keys.end();
  };
  EXPECT_TRUE(idle("", ""));
  EXPECT_TRUE(idle(", zero_group: 8", ""));
  EXPECT_FALSE(idle(", zero_group: 1", ""));
  EXPECT_FALSE(idle("", ", precision: fp32"));
  EXPECT_FALSE(idle("", ", master_weights: false"));
}

TEST(Scenario, SaysWhenOneTensorRankHasAllAnyway) {
  const std::string keys = "training: {global_batch_size: 16}\noptions: {memory: {gathered_logits: true}}\n";
  EXPECT_THAT(
      idle_keys(keys + "parallelism: {tensor: 1, replicated_embedding: true}\n"),
      testing::UnorderedElementsAre("parallelism.replicated_embedding", "options.memory.gathered_logits"));
  EXPECT_THAT(idle_keys(keys + "parallelism: {tensor: 2, replicated_embedding: true}\n"), ElementsAre());
}

TEST(Scenario, SaysWhenTensorOverlapAndEndsHadNoEffect) {
  const std::string keys = "training: {global_batch_size: 16}\noverlap: {tensor: true}\n";
  EXPECT_THAT(idle_keys(keys + "parallelism: {tensor: 2, embedding_as_layer: false}\n"),
              ElementsAre("parallelism.embedding_as_layer", "overlap.tensor"));
  EXPECT_THAT(idle_keys(keys + "parallelism: {tensor: 2, pipeline: 2, sequence_parallel: true, "
                               "loss_as_layer: false}\n"),
              ElementsAre());
}

// The notes of a job of four nodes on this fabric.
std::string notes_on_fabric(const std::string& fabric, const std::string& rest) {
  const Result result = read(
      "stagecraft: 1\nmodel: gpt-22b\ntraining: {global_batch_size: 32}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 4, fabric: {" +
      fabric + "}}\n" + rest);
  EXPECT_TRUE(result.scenario) << result.messages;
  std::string notes;
  if (result.scenario)
    for (const Diagnostic& warning : result.scenario->warnings)
      if (warning.path.starts_with("cluster.fabric")) notes += warning.path + ": " + warning.message + "\n";
  return notes;
}

TEST(Scenario, SaysWhereUplinksCarryNothing) {
  const std::string tree = "kind: fat-tree, oversubscription: 2, nodes_per_leaf: ";
  const std::string rails = "kind: rail-optimized, oversubscription: 2, nodes_per_leaf: 4";
  const std::string pipeline = "parallelism: {tensor: 8, pipeline: 4}\n", flow = "network: flow\n";
  const std::string idle = "cluster.fabric.oversubscription: had no effect: ";
  const std::string one_leaf = idle + "a leaf has room for 4 nodes, and all of them are on one\n";
  EXPECT_EQ(notes_on_fabric("kind: single-switch, oversubscription: 2", pipeline),
            idle + "a single switch has no uplinks\n");
  EXPECT_EQ(notes_on_fabric("kind: single-switch, oversubscription: 1", pipeline), "");
  EXPECT_EQ(notes_on_fabric(tree + "4", pipeline), one_leaf);
  EXPECT_EQ(notes_on_fabric(tree + "4", pipeline + flow), one_leaf);
  EXPECT_EQ(notes_on_fabric(rails, pipeline), one_leaf);
  EXPECT_EQ(notes_on_fabric(rails, pipeline + flow), "");  // what changes its rail goes up
  EXPECT_EQ(notes_on_fabric(tree + "2", pipeline), "");
  EXPECT_EQ(notes_on_fabric(tree + "2", "parallelism: {context: 2, context_exchange: all-to-all}\n"), "");
  for (const std::string& network : {std::string(), flow})
    EXPECT_EQ(notes_on_fabric(tree + "2", "parallelism: {tensor: 8}\n" + network), "");
}

TEST(Scenario, SaysWhereSwitchesAddUpNextToNothing) {
  const std::string switches = "kind: fat-tree, nodes_per_leaf: 4, sharp: true";
  const std::string little = "cluster.fabric.sharp: speeds up the norm of the gradients alone";
  EXPECT_EQ(notes_on_fabric(switches, "parallelism: {tensor: 8}\n"), "");
  for (const char* const zero : {"1", "3"})
    EXPECT_THAT(
        notes_on_fabric(switches, "parallelism: {tensor: 8, zero_stage: " + std::string(zero) + "}\n"),
        HasSubstr(little));
  EXPECT_EQ(notes_on_fabric(switches, "parallelism: {tensor: 8, zero_stage: 1, zero_group: 2}\n"), "");
  EXPECT_EQ(notes_on_fabric(switches, "parallelism: {tensor: 16, zero_stage: 1}\n"), "");  // over two nodes
  EXPECT_EQ(notes_on_fabric("kind: fat-tree, sharp: false", "parallelism: {tensor: 8, zero_stage: 1}\n"), "");
}

TEST(Scenario, SaysWhichSharesStayOnTheGpu) {
  EXPECT_THAT(idle_keys("training: {global_batch_size: 16}\n"
                        "offload: {optimizer: 0, activations: 0.5, weights: 0.0}\n"),
              ElementsAre("offload.optimizer", "offload.weights"));
}

TEST(Scenario, SaysWhichRecomputedModulesTheModelLacks) {
  const Result result = read(
      "stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, nodes: 1}\n"
      "training: {global_batch_size: 8, recompute: {granularity: selective, modules: [core_attn, layernorm, "
      "mlp, "
      "moe, moe_act, shared_experts, mla_up_proj]}}\n");
  ASSERT_TRUE(result.scenario) << result.messages;
  ASSERT_EQ(result.scenario->warnings.size(), 1u);
  EXPECT_EQ(result.scenario->warnings.front().path, "training.recompute.modules");
  EXPECT_EQ(
      result.scenario->warnings.front().message,
      "had no effect: core_attn: flash attention keeps no scores; moe: the model has no experts; moe_act: "
      "the model has no experts; shared_experts: the model has no shared experts; mla_up_proj: the model has "
      "no latent attention");
}

TEST(Scenario, SaysWhereNoProductReadsANorm) {
  const auto warnings = [](const std::string& model) {
    const Result result = read("stagecraft: 1\nmodel: " + model +
                               "\ncluster: {node: dgx-h100, nodes: 1}\n"
                               "training: {global_batch_size: 8, sequence_length: 4096, recompute: "
                               "{granularity: selective, modules: "
                               "layernorm}}\n");
    EXPECT_TRUE(result.scenario) << result.messages;
    return text_of(result.scenario->warnings);
  };
  EXPECT_THAT(
      warnings("olmo-2-7b"),
      HasSubstr(
          "training.recompute.modules: had no effect: layernorm: no product reads the output of a norm"));
  EXPECT_EQ(warnings("olmoe-1b-7b"), "");
}

// Legacy Megatron-LM leaves flash attention out of its checkpoint, Megatron-Core does not.
TEST(Scenario, SaysWhatSelectiveRecomputeOfFlashAttentionBrings) {
  const auto warning = [](const std::string& node, const std::string& attention) {
    const Result result =
        read("stagecraft: 1\nmodel: gpt-22b\ncluster: {node: " + node +
             ", nodes: 1}\ntraining: {global_batch_size: 8, recompute: selective, attention: " + attention +
             "}\n");
    EXPECT_TRUE(result.scenario) << result.messages;
    return text_of(result.scenario->warnings);
  };
  EXPECT_THAT(warning("dgx-a100-80gb", "flash"), HasSubstr("training.recompute: had no effect: "));
  EXPECT_THAT(warning("dgx-h100", "flash"),
              HasSubstr("training.recompute: megatron-core runs the kernel of flash attention again"));
  EXPECT_EQ(warning("dgx-a100-80gb", "unfused") + warning("dgx-h100", "unfused"), "");
}

// Prices know the latencies of a fabric alone, and those of its switches in messages between stages only.
TEST(Scenario, SaysWhichLatenciesNobodyReads) {
  const auto paths = [](const std::string& network, const std::string& pipeline) {
    const Result result = read(
        "stagecraft: 1\n"
        "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms, activation: 1 "
        "MB}\n"
        "cluster: {node: {device: X, gpus: 1, nics: 1, nic_bandwidth: 100 Gb/s, pcie: 63 GB/s}, nodes: 4,"
        " fabric: {kind: single-switch, switch_latency: 1 us},"
        " links: [{name: node 0 nic 0 -> *, latency: 3 us}, {name: node 1 nic 0 -> *, share: 0.5}]}\n"
        "parallelism: {pipeline: " +
        pipeline + "}\ntraining: {global_batch_size: 4}\nnetwork: " + network + "\n");
    std::vector<std::string> found;
    if (result.scenario)
      for (const Diagnostic& warning : result.scenario->warnings) found.push_back(warning.path);
    return found;
  };
  EXPECT_THAT(paths("flow", "1"),
              testing::UnorderedElementsAre("cluster.fabric.switch_latency", "cluster.links.0.latency"));
  EXPECT_THAT(paths("flow", "4"), testing::ElementsAre("cluster.links.0.latency"));
  EXPECT_THAT(paths("closed-form", "4"), testing::ElementsAre("cluster.links"));
}

// System: 16 experts on 2 ranks, 4 a token. Expectation: no rank gets more than all copies, twice its share.
TEST(Scenario, SaysWhatAnImpossibleImbalanceCountsAs) {
  const auto warnings = [](const std::string& imbalance) {
    const Result result = read(
        "stagecraft: 1\nmodel: {family: llama, layers: 4, hidden: 1024, heads: 8, kv_heads: 8, ffn_hidden: "
        "4096, vocab: 8192, experts: {count: 16, top_k: 4, ffn_hidden: 1024, imbalance: " +
        imbalance +
        "}}\ncluster: {node: dgx-h100, nodes: 1}\nparallelism: {expert: 2}\n"
        "training: {global_batch_size: 8, sequence_length: 1024}\n");
    return result.scenario ? text_of(result.scenario->warnings) : result.messages;
  };
  EXPECT_EQ(warnings("2"), "");
  EXPECT_THAT(
      warnings("3"),
      testing::HasSubstr("model.experts.imbalance: counts as 2, the most that one of 2 ranks can get"));
  EXPECT_THAT(
      warnings("1.5, capacity_factor: 1.25"),
      testing::HasSubstr("model.experts.imbalance: counts as 1.25: capacity_factor drops the tokens above"));
  EXPECT_EQ(warnings("1.25, capacity_factor: 1.5"), "");
}

// A fabric's name brings its latency along.
TEST(Scenario, IsSilentOfLatenciesThatNobodyWrote) {
  const auto said = [](const std::vector<std::string>& overrides) {
    const Result result = read(
        "stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, nodes: 1}\ntraining: "
        "{global_batch_size: "
        "8}\n",
        overrides);
    std::vector<std::string> paths;
    for (const Diagnostic& warning : result.scenario.value().warnings)
      if (warning.code == "no-effect") paths.push_back(warning.path);
    return paths;
  };
  EXPECT_THAT(said({"cluster.fabric=ndr-fat-tree"}), ElementsAre());
  EXPECT_THAT(said({"cluster.fabric.switch_latency=9 us"}), ElementsAre("cluster.fabric.switch_latency"));
}

}  // namespace
}  // namespace stagecraft
