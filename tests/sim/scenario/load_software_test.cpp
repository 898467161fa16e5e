// What a scenario takes from the software that it runs, named or not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/sim/scenario/read_scenario.hpp"

namespace stagecraft {
namespace {

// What the scenario names is unfused beside what its software leaves so.
TEST(Scenario, AddsToWhatItsSoftwareDoesNotFuse) {
  const auto unfused = [](const std::string& software) {
    const Result result = read(
        "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\n"
        "training: {global_batch_size: 8}\noptions: {unfused: gelu, software: " +
        software + "}\n");
    EXPECT_TRUE(result.scenario) << result.messages;
    return result.scenario->options.unfused | result.scenario->options.rules.unfused;
  };
  EXPECT_EQ(unfused("megatron-lm-2021"),
            (LateFusions{LateFusion::kRmsNorm, LateFusion::kSwiglu, LateFusion::kRope, LateFusion::kGelu}));
  EXPECT_EQ(unfused("megatron-core"), LateFusions{LateFusion::kGelu});
}

// What it names as fused is, whatever else is not; as both it is a mistake.
TEST(Scenario, NamesWhatRunsFusedAllTheSame) {
  const std::string head =
      "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\n"
      "training: {global_batch_size: 8, sequence_length: 1024}\n";
  const Result norm = read(head + "options: {fused: rmsnorm, fused_kernels: false, software: fsdp2}\n");
  ASSERT_TRUE(norm.scenario) << norm.messages;
  EXPECT_EQ(norm.scenario->options.fused, LateFusions{LateFusion::kRmsNorm});
  const Result again = read(to_yaml(*norm.scenario));
  ASSERT_TRUE(again.scenario) << again.messages;
  EXPECT_EQ(again.scenario->options.fused, LateFusions{LateFusion::kRmsNorm});
  const Result both = read(head + "options: {unfused: [rope, rmsnorm], fused: [rmsnorm]}\n");
  EXPECT_FALSE(both.scenario);
  EXPECT_THAT(
      both.messages,
      testing::HasSubstr("options.fused: rmsnorm is in options.unfused as well\n  hint: name it once"));
  const Result unknown = read(head + "options: {fused: [attention]}\n");
  EXPECT_THAT(unknown.messages, testing::HasSubstr("is no operation that is fused by itself"));
}

TEST(Scenario, TakesTheFlashKernelThatTheOptionsName) {
  const std::string head =
      "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\n"
      "training: {global_batch_size: 8, sequence_length: 1024}\n";
  const auto kernel = [](const Result& result) { return result.scenario->profile->attention.kernel().name; };
  const Result ours = read(head), named = read(head + "options: {attention_kernel: fa2}\n");
  ASSERT_TRUE(ours.scenario && named.scenario) << ours.messages << named.messages;
  EXPECT_EQ(kernel(ours), "cudnn");
  EXPECT_EQ(kernel(named), "fa2");
  const Result again = read(to_yaml(*named.scenario));
  ASSERT_TRUE(again.scenario) << again.messages;
  EXPECT_EQ(kernel(again), "fa2");
  const Result wrong = read(head + "options: {attention_kernel: fa9}\n");
  EXPECT_FALSE(wrong.scenario);
  EXPECT_NE(wrong.messages.find("options.attention_kernel: profile h100-sxm5-80gb has no kernel 'fa9'"),
            std::string::npos)
      << wrong.messages;
}

// Fully sharded over `pipeline` stages; `more` goes on with its options.
Scenario under_fsdp2(const std::string& pipeline, const std::string& more) {
  const Result result = read(
      "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\n"
      "training: {global_batch_size: 8, sequence_length: 1024}\n"
      "parallelism: {zero_stage: 3, pipeline: " +
      pipeline + "}\noptions: {software: fsdp2" + more + "}\n");
  EXPECT_TRUE(result.scenario) << result.messages;
  return *result.scenario;
}

// PyTorch's pipeline turns off resharding and reduction between the micro-batches of a stage.
TEST(Scenario, KeepsFsdp2WholeUnderAPipelineUnlessItIsTold) {
  const auto memory_of = [](const std::string& pipeline, const std::string& more) {
    const Scenario scenario = under_fsdp2(pipeline, more);
    return std::pair(reshards_after_forward(scenario), keeps_gradients_whole(scenario));
  };
  EXPECT_EQ(memory_of("1", ""), std::pair(true, false));
  EXPECT_EQ(memory_of("2", ""), std::pair(false, true));
  EXPECT_EQ(memory_of("2", ", reshard_after_forward: true, memory: {whole_gradients: false}"),
            std::pair(true, false));
}

// Either way, and never what the scenario sets.
TEST(Scenario, ChangesFsdp2WithThePipeline) {
  for (const char* more : {"", ", reshard_after_forward: true", ", memory: {whole_gradients: true}"})
    for (const auto& [from, to] : {std::pair("1", "2"), std::pair("2", "1")}) {
      Scenario changed = under_fsdp2(from, more);
      const Scenario loaded = under_fsdp2(to, more);
      changed.parallelism.pipeline = loaded.parallelism.pipeline;
      EXPECT_EQ(options_in_effect(changed), options_in_effect(loaded)) << from << more;
    }
}

TEST(Scenario, RunsTheSoftwareOfItsProfileUnlessItNamesOne) {
  const std::string head =
      "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\n"
      "training: {global_batch_size: 8, sequence_length: 1024}\n";
  const auto options = [](const Result& result) { return result.scenario->options; };
  const std::string gpt = "stagecraft: 1\nmodel: gpt-3.6b\ncluster: {node: dgx-a100-80gb, nodes: 1}\n";
  const std::string eight = "training: {global_batch_size: 8, sequence_length: 1024";
  const Result gated = read(head + "parallelism: {zero_stage: 3}\n"),
               fp16 = read(gpt + "parallelism: {zero_stage: 3}\n" + eight + ", precision: fp16}\n"),
               fp16_ranks =
                   read(gpt + "parallelism: {tensor: 2, zero_stage: 3}\n" + eight + ", precision: fp16}\n"),
               gpts = read(gpt + "parallelism: {zero_stage: 3}\n" + eight + "}\n"),
               llamas = read("stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-a100-80gb, nodes: 1}\n" +
                             eight + "}\n");
  for (const Result* result : {&gated, &fp16, &fp16_ranks, &gpts, &llamas})
    ASSERT_TRUE(result->scenario) << result->messages;
  EXPECT_EQ(options(gated).software, "fsdp2");
  EXPECT_EQ(options(gpts).software, "fsdp-2023");
  EXPECT_EQ(options(fp16).software, "megatron-deepspeed-2021");
  EXPECT_EQ(options(fp16_ranks).software, "fsdp2");  // of those that shard, it has tensor ranks
  EXPECT_EQ(options(llamas).rules.unfused,
            (LateFusions{LateFusion::kRmsNorm, LateFusion::kSwiglu, LateFusion::kRope}));
  EXPECT_EQ(options(gated).rules.unfused, LateFusions());
  const Result whole = read(head),
               sharded = read(head + "parallelism: {zero_stage: 3}\noptions: {software: fsdp-2023}\n"),
               alone = read(head + "parallelism: {tensor: 8, zero_stage: 3}\n"),
               stages = read(head + "parallelism: {pipeline: 2, zero_stage: 3}\n"),
               ranks = read(head + "parallelism: {tensor: 2, zero_stage: 3}\n"),
               stages_named =
                   read(head + "parallelism: {pipeline: 2, zero_stage: 3}\noptions: {software: fsdp-2023}\n"),
               named = read(head + "parallelism: {zero_stage: 3}\noptions: {software: fsdp2}\n"),
               fused = read(head + "parallelism: {zero_stage: 3}\noptions: {fused_kernels: true}\n"),
               scaled = read(head + "options: {software: fsdp2, fp8_recipe: delayed}\n"),
               hooks = read(head +
                            "parallelism: {zero_stage: 3}\noptions: {software: megatron-deepspeed-2021}\n");
  for (const Result* result :
       {&whole, &sharded, &alone, &stages, &ranks, &stages_named, &named, &fused, &scaled, &hooks})
    ASSERT_TRUE(result->scenario) << result->messages;
  EXPECT_EQ(options(whole).software, "megatron-core");
  EXPECT_EQ(options(alone).software, "megatron-core");  // one replica shards nothing
  EXPECT_EQ(options(stages).software, "fsdp2");
  EXPECT_EQ(options(ranks).software, "fsdp2");
  EXPECT_EQ(options(stages_named).software, "fsdp-2023");
  EXPECT_EQ(options(sharded).software, "fsdp-2023");
  EXPECT_FALSE(options(sharded).fused_kernels);
  EXPECT_EQ(options(sharded).attention_kernel, "triton-2023");
  EXPECT_TRUE(options(sharded).rules.recompute_stops_early);
  EXPECT_FALSE(options(sharded).rules.recompute_gathers_again);
  EXPECT_TRUE(options(hooks).rules.recompute_gathers_again);
  EXPECT_EQ(options(hooks).rules.memory.live_parameters, 1'000'000'000);
  EXPECT_EQ(options(named).rules.memory.live_parameters, 0);
  EXPECT_TRUE(options(hooks).rules.gathers_matrices && !options(named).rules.gathers_matrices);
  EXPECT_GT(options(hooks).rules.piece_overhead, Duration::zero());
  EXPECT_EQ(options(named).rules.piece_overhead, Duration::zero());
  EXPECT_TRUE(options(fused).fused_kernels);  // what is given wins
  EXPECT_EQ(options(named).attention_kernel, "fa2");
  EXPECT_EQ(options(named).fp8_recipe, Fp8Recipe::kTorchao);
  EXPECT_EQ(options(scaled).fp8_recipe, Fp8Recipe::kDelayed);
  EXPECT_TRUE(options(named).rules.reduces_behind_backward &&
              !options(sharded).rules.reduces_behind_backward);
  EXPECT_TRUE(options(named).rules.memory.fully_shard && options(named).rules.memory.step_messages);
  EXPECT_FALSE(options(named).rules.memory.user_buffers);
  EXPECT_FALSE(options(named).memory.keep_outputs);  // PyTorch's of mid 2025 on keeps none
  EXPECT_FALSE(options(named).gradient_accumulation_fusion);
  EXPECT_TRUE(options(sharded).gradient_accumulation_fusion);
  EXPECT_FALSE(options(sharded).rules.memory.fully_shard || options(sharded).rules.memory.step_messages);
  EXPECT_TRUE(options(sharded).rules.memory.user_buffers);
  EXPECT_TRUE(options(whole).rules.memory.eager_loss && !options(named).rules.memory.eager_loss);
  EXPECT_EQ(options(whole).rules.schedules, (std::vector<std::string>{"1f1b", "interleaved-1f1b"}));
  EXPECT_EQ(options(sharded).rules.schedules, std::vector<std::string>());  // it has no pipeline
  const Result again = read(to_yaml(*sharded.scenario));
  ASSERT_TRUE(again.scenario) << again.messages;
  EXPECT_EQ(options(again), options_in_effect(*sharded.scenario));
  const Result wrong = read(head + "options: {software: fsdp-3}\n");
  EXPECT_NE(wrong.messages.find("options.software: 'fsdp-3' is not a known software"), std::string::npos)
      << wrong.messages;
}

// The word selective names what the software recomputes; of latent attention and norms behind the blocks, whose
// every second product is not modelled, the modules nearest to it, of unfused attention its core.
TEST(Scenario, RecomputesWhatItsSoftwareCallsSelective) {
  const auto modules = [](const std::string& model, int zero_stage, const std::string& recompute) {
    const Result result = read(
        "stagecraft: 1\nmodel: " + model +
        "\ncluster: {node: dgx-h100, nodes: 1}\nparallelism: {zero_stage: " + std::to_string(zero_stage) +
        "}\ntraining: {global_batch_size: 8, sequence_length: 1024, recompute: " + recompute + "}\n");
    EXPECT_TRUE(result.scenario) << result.messages;
    return result.scenario->training.recompute.modules;
  };
  const RecomputeModules second = RecomputeModules{RecomputeModule::kEverySecondProduct};
  EXPECT_EQ(modules("llama-3-8b", 3, "selective"), second);
  EXPECT_EQ(modules("llama-3-8b", 3, "{granularity: selective}"), second);
  EXPECT_EQ(modules("llama-3-8b", 3, "{granularity: selective, modules: mlp}"),
            RecomputeModules{RecomputeModule::kMlp});
  EXPECT_EQ(modules("llama-3-8b", 3, "full"), kCoreAttentionOnly);
  EXPECT_EQ(modules("llama-3-8b", 1, "selective"), kCoreAttentionOnly);
  EXPECT_EQ(modules("mixtral-8x7b", 3, "selective"), second);
  using enum RecomputeModule;
  EXPECT_EQ(modules("deepseek-v3", 3, "selective"), (RecomputeModules{kLayerNorm, kLatentUp, kMlp, kMoe}));
  EXPECT_EQ(modules("gemma-2-9b", 3, "selective"), (RecomputeModules{kLayerNorm, kMlp}));
  EXPECT_EQ(modules("olmo-2-7b", 3, "selective"), RecomputeModules{kMlp});
  EXPECT_EQ(modules("olmoe-1b-7b", 3, "selective"), second);
  EXPECT_EQ(modules("llama-3-8b", 3, "selective, attention: unfused"), kCoreAttentionOnly);
}

// PyTorch's loss casts its logits, which a compiler does away with; Megatron-LM's reads 16 bit. What is given wins.
TEST(Scenario, CastsLogitsWhereItsSoftwareDoes) {
  const auto casts = [](int zero_stage, const std::string& options) {
    const Result result = read(
        "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\n"
        "training: {global_batch_size: 8, sequence_length: 1024}\nparallelism: {zero_stage: " +
        std::to_string(zero_stage) + "}\noptions: {" + options + "}\n");
    EXPECT_TRUE(result.scenario) << result.messages;
    return result.scenario->options.memory.fp32_logits;
  };
  EXPECT_FALSE(casts(3, ""));
  EXPECT_TRUE(casts(3, "fused_kernels: false"));
  EXPECT_FALSE(casts(3, "fused_kernels: false, memory: {fp32_logits: false}"));
  EXPECT_TRUE(casts(3, "software: deepspeed"));
  EXPECT_FALSE(casts(1, "fused_kernels: false"));
}

// Megatron-Core keeps weights in fp8 beside sharded optimizer states, FSDP2 does not; what is given wins.
TEST(Scenario, KeepsWeightsInFp8WhereItsSoftwareDoes) {
  const auto in_fp8 = [](int zero_stage, const std::string& options) {
    const Result result = read(
        "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\n"
        "training: {global_batch_size: 8, sequence_length: 1024, precision: fp8}\n"
        "parallelism: {zero_stage: " +
        std::to_string(zero_stage) + "}\noptions: {" + options + "}\n");
    EXPECT_TRUE(result.scenario) << result.messages;
    return result.scenario->options.holds_fp8(zero_stage);
  };
  EXPECT_FALSE(in_fp8(0, ""));
  EXPECT_TRUE(in_fp8(1, ""));
  EXPECT_FALSE(in_fp8(1, "fp8_parameters: false"));
  EXPECT_TRUE(in_fp8(0, "fp8_parameters: true"));
  EXPECT_FALSE(in_fp8(3, ""));
}

// The first of its flash kernels that the devices have, where `sdpa` is what PyTorch runs there.
TEST(Scenario, RunsTheFlashKernelOfItsDevices) {
  const auto kernel = [](const std::string& node, const std::string& software) {
    const Result result = read("stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: " + node +
                               ", nodes: 1}\nparallelism: {zero_stage: 3}\n"
                               "training: {global_batch_size: 8, sequence_length: 1024}\n"
                               "options: {software: " +
                               software + "}\n");
    return result.scenario ? result.scenario->options.attention_kernel : result.messages;
  };
  EXPECT_EQ(kernel("dgx-b200", "fsdp2"), "cudnn");
  EXPECT_EQ(kernel("dgx-b200", "deepspeed"), "fa2");
  EXPECT_EQ(kernel("dgx-h100", "fsdp2"), "fa2");
  EXPECT_EQ(kernel("dgx-h100", "megatron-core"), "");  // the profile's
}

// One software runs on all devices, and their profiles name different ones: that of the first is taken. Where
// they agree, or the scenario names one, there is nothing to say.
TEST(Scenario, SaysWhoseSoftwareItTakesOfSeveralDevices) {
  const auto warnings = [](const std::string& nodes, const std::string& more = "") {
    const Result result = read("stagecraft: 1\nmodel: llama-3-8b\ncluster: {nodes: [" + nodes +
                               "], fabric: hdr-fat-tree}\n"
                               "training: {global_batch_size: 32, sequence_length: 1024}\n" +
                               more);
    if (!result.scenario) return result.messages;
    std::vector<Diagnostic> of_software = result.scenario->warnings;
    std::erase_if(of_software, [](const Diagnostic& one) { return one.path != "options.software"; });
    return text_of(of_software);
  };
  const std::string h100 = "{node: dgx-h100, nodes: 1}", a100 = "{node: dgx-a100-80gb, nodes: 1}",
                    h200 = "{node: dgx-h200, nodes: 1}";
  EXPECT_THAT(warnings(h100 + ", " + a100),
              testing::HasSubstr("options.software: is not given: all devices run megatron-core, as profile "
                                 "h100-sxm5-80gb has it; a100-sxm4-80gb has megatron-lm-2021"));
  EXPECT_EQ(warnings(h200 + ", " + h100, "parallelism: {zero_stage: 3}\n"), "");  // FSDP2 on both
  EXPECT_EQ(warnings(h100 + ", " + h200, "parallelism: {zero_stage: 3, tensor: 2}\n"), "");
  EXPECT_EQ(warnings(h200 + ", " + h100), "");
  EXPECT_EQ(warnings(h100 + ", " + a100, "options: {software: megatron-core}\n"), "");
}

}  // namespace
}  // namespace stagecraft
