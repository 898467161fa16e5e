#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "formats/megatron.hpp"
#include "tests/formats/megatron_jobs.hpp"

namespace stagecraft {
namespace {

using namespace testing_megatron;
using testing::Contains;
using testing::HasSubstr;

TEST(MegatronImport, PadsTheVocabularyOnlyWhereItMust) {
  const Import qwen = import_sample("modelopt_Qwen3-235B-A22B.args.txt", {.gpus = 64, .vocab = 151'936});
  EXPECT_EQ(qwen.at("model.vocab"), "151936");  // 128 * 1187
  EXPECT_EQ(qwen.at("model.head_size"), "128");
  EXPECT_EQ(qwen.at("model.kv_heads"), "4");
  EXPECT_EQ(qwen.at("model.qk_norm"), "true");
  EXPECT_EQ(qwen.at("model.experts.count"), "128");
  EXPECT_EQ(qwen.at("model.experts.ffn_hidden"), "1536");
  EXPECT_EQ(qwen.at("training.recompute.modules"), "core_attn moe");
  EXPECT_EQ(qwen.at("training.global_batch_size"), "64");  // one micro-batch for each of 64 data ranks
  EXPECT_EQ(parameters(qwen), 235'093'634'560);
}

// 671.0 B without the extra layer, as DeepSeek-V3's own count; its router has no bias here.
TEST(MegatronImport, ReadsBothDeepSeekFiles) {
  const Import modelopt = import_sample("modelopt_DeepSeek-R1.args.txt", {.gpus = 64, .vocab = 129'280});
  const Import fsdp = import_sample("sbatch_mfsdp_deepseek_v3.args.txt", {.gpus = 512, .vocab = 129'280});
  for (const Import& import : {modelopt, fsdp}) {
    EXPECT_EQ(import.at("model.layers"), "61");
    EXPECT_EQ(import.at("model.experts.first_dense_layers"), "3");
    EXPECT_EQ(import.at("model.experts.count"), "256");
    EXPECT_EQ(import.at("model.experts.top_k"), "8");
    EXPECT_EQ(import.at("model.experts.groups"), "8");
    EXPECT_EQ(import.at("model.experts.top_groups"), "4");
    EXPECT_EQ(import.at("model.experts.shared_ffn_hidden"), "2048");
    EXPECT_EQ(import.at("model.latent_attention.query_rank"), "1536");
    EXPECT_EQ(import.at("model.latent_attention.kv_rank"), "512");
    EXPECT_EQ(import.at("model.latent_attention.nope_head_size"), "128");
    EXPECT_EQ(import.at("model.latent_attention.rope_head_size"), "64");
    EXPECT_EQ(import.at("model.latent_attention.value_head_size"), "128");
  }
  // --make-vocab-size-divisible-by 1280 and 3232 leave 129,280 as it is.
  EXPECT_EQ(parameters(modelopt), 671'026'404'352);
  EXPECT_EQ(fsdp.at("model.mtp_layers"), "1");
  EXPECT_EQ(fsdp.at("parallelism.expert"), "8");
  EXPECT_EQ(fsdp.at("parallelism.zero_stage"), "3");
  EXPECT_EQ(fsdp.at("training.gradient_dtype"), "bf16");
  EXPECT_EQ(fsdp.at("training.recompute.modules"), "mlp moe mla_up_proj layernorm");
  EXPECT_EQ(fsdp.at("options.expert_dispatcher"), "node-aware");  // flex, hybridep
  EXPECT_EQ(fsdp.at("options.gradient_accumulation_fusion"), "false");
}

// Megatron-DeepSpeed's example of 1.3 billion parameters and 128 experts, published as 52 billion: experts in
// every second layer, one of them a token.
//   source  deepspeedai/Megatron-DeepSpeed, examples_deepspeed/MoE
TEST(MegatronImport, ReadsExpertsOfMegatronDeepSpeed) {
  const std::string moe =
      "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 "
      "--max-position-embeddings 2048 "
      "--micro-batch-size 4 --global-batch-size 512 --fp16 --num-experts 128 --moe-min-capacity 4 "
      "--deepspeed ";
  const ImportRequest request{.gpus = 128, .vocab = 50'257};
  const Import import =
      import_text(moe + "--moe-expert-parallel-size 64 --moe-train-capacity-factor 1.25", request);
  // A layer of experts: 128 blocks of 2 x 2048 x 8192 and their biases, and the router.
  const std::int64_t block = 2 * 2048 * 8192 + 8192 + 2048;
  EXPECT_EQ(parameters(import), 24 * (4LL * 2048 * 2048 + 4 * 2048 + 4 * 2048) + 12 * block +
                                    12 * (128 * block + 2048 * 128) + (50'304 + 2048) * 2048LL + 2 * 2048);
  EXPECT_EQ(import.at("model.experts.top_k"), "1");
  EXPECT_EQ(import.at("model.experts.dense_layers"), "0 2 4 6 8 10 12 14 16 18 20 22");
  EXPECT_EQ(import.at("model.experts.capacity_factor"), "1.25");
  EXPECT_EQ(import.at("parallelism.expert"), "64");
  EXPECT_EQ(import.at("options.expert_dispatcher"), "all-to-all");
  const Import other =
      import_text(moe + "--topk 2 --expert-interval 1 --disable-moe-token-dropping", request);
  EXPECT_EQ(other.at("model.experts.top_k"), "2");
  EXPECT_EQ(other.at("model.experts.dense_layers"), "absent");
  EXPECT_EQ(other.at("model.experts.capacity_factor"), "absent");
  EXPECT_EQ(other.at("parallelism.expert"), "128");
  for (const char* wrong : {"--mlp-type residual", "--moe-router-topk 2", "--moe-expert-parallel-size 3"})
    EXPECT_FALSE(import_text(moe + wrong, request).fragment.has_value()) << wrong;
  // One expert is none there, and its names say nothing without --deepspeed.
  EXPECT_EQ(import_text(job("--deepspeed --num-experts 1 --expert-interval 2")).at("model.experts"),
            "absent");
  EXPECT_FALSE(import_text(job("--num-experts 8 --expert-interval 2")).fragment.has_value());
}

TEST(MegatronImport, ReadsNamesOfForks) {
  EXPECT_EQ(import_text(job("--num-key-value-heads 2")).at("model.kv_heads"), "2");
  EXPECT_EQ(import_text(job("--num_attention_heads_kv 2")).at("model.kv_heads"), "2");
  EXPECT_EQ(import_text(job("--normalization rmsnorm")).at("model.normalization"), "rmsnorm");
  EXPECT_EQ(import_text(job("--normalization layernorm")).at("model.normalization"), "layernorm");
  EXPECT_EQ(import_text(job("--pad-vocab-size-to 1280")).at("model.vocab"), "1280");
}

TEST(MegatronImport, ShardsTheOptimizerInGroups) {
  const std::string sharded = "--use-distributed-optimizer --num-distributed-optimizer-instances ";
  EXPECT_EQ(import_text(job(sharded + "4")).at("parallelism.zero_group"), "4");  // 16 ranks / 4
  EXPECT_EQ(import_text(job(sharded + "1")).at("parallelism.zero_group"), "absent");
  EXPECT_THAT(import_text(job(sharded + "3")).messages,
              Contains(HasSubstr("3 copies do not divide data × context = 16")));
}

TEST(MegatronImport, ReadsCudaGraphsByWhatTheyHold) {
  const auto graphs = [](const std::string& flags) {
    return import_text(job(flags)).at("options.cuda_graphs");
  };
  EXPECT_EQ(graphs(""), "none") << "the profile of GB200 would have them";
  EXPECT_EQ(graphs("--cuda-graph-impl none"), "none");
  EXPECT_EQ(graphs("--external-cuda-graph"), "layers");
  EXPECT_EQ(
      graphs("--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router moe_preprocess"),
      "layers");
  EXPECT_EQ(graphs("--enable-cuda-graph --cuda-graph-scope full_iteration"), "iteration");
  EXPECT_EQ(graphs("--cuda-graph-impl full_iteration"), "iteration");
  const std::string router = "--cuda-graph-impl transformer_engine --cuda-graph-modules moe_router";
  EXPECT_EQ(graphs(router), "none");
  EXPECT_THAT(import_text(job(router)).messages, Contains(HasSubstr("graphs of a part of the layers")));
}

TEST(MegatronImport, ReadsTheMixtralAndLlamaScripts) {
  const Import mixtral =
      import_text(sample("train_mixtral_8x7b_distributed.args.txt"), {.gpus = 32, .vocab = 32'000});
  EXPECT_EQ(mixtral.at("model.experts.ffn_hidden"), "14336");
  EXPECT_EQ(mixtral.at("parallelism.expert"), "8");
  EXPECT_EQ(mixtral.at("options.expert_dispatcher"), "all-to-all");
  EXPECT_EQ(parameters(mixtral), 46'702'792'704);
  const Import llama = import_sample("train_llama3_8b_h100_fp8.args.txt");
  EXPECT_EQ(llama.at("training.precision"), "fp8");
  EXPECT_EQ(llama.at("training.gradient_dtype"), "bf16");
  EXPECT_EQ(llama.at("cluster.node"), "dgx-h100");  // fp8 needs one
  EXPECT_EQ(llama.at("options.fp8_parameters"), "true");
  EXPECT_EQ(parameters(llama), 8'030'261'248);
}

// With the launcher's own numbers the experts do not fit: that is for `check` to refuse, and said already.
TEST(MegatronImport, WarnsOfExpertsThatDoNotFit) {
  const Import mixtral = import_sample("train_mixtral_8x7b_distributed.args.txt", {.vocab = 32'000});
  EXPECT_TRUE(mixtral.fragment.has_value());
  EXPECT_THAT(mixtral.messages, Contains(HasSubstr("2 GPUs of a pipeline rank are no multiple of expert × "
                                                   "expert_tensor = 8")));
}

TEST(MegatronImport, PutsDenseLayersInTheMiddleOneByOne) {
  const Import import = import_text(job("--num-experts 4 --moe-layer-freq [1]*2+[0]*2+[1]*4"));
  EXPECT_EQ(import.at("model.experts.dense_layers"), "2 3");
  EXPECT_EQ(import.at("model.experts.ffn_hidden"), "256");
}

TEST(MegatronImport, TakesDeepEpAsNodeAware) {
  const std::string experts = "--num-experts 8 --expert-model-parallel-size 8 --moe-token-dispatcher-type ";
  const Import deep = import_text(job(experts + "flex --moe-enable-deepep"));
  EXPECT_EQ(deep.at("options.expert_dispatcher"), "node-aware");
  EXPECT_THAT(deep.messages, testing::Not(Contains(HasSubstr("deepep"))));
  EXPECT_EQ(import_text(job(experts + "alltoall")).at("options.expert_dispatcher"), "all-to-all");
}

TEST(MegatronImport, TakesGroupsOfExpertsOnlyWhereTheyLimitTheChoice) {
  const Import whole = import_text(job("--num-experts 4 --moe-router-num-groups 2"));
  EXPECT_EQ(whole.at("model.experts.count"), "4");
  EXPECT_EQ(whole.at("model.experts.groups"), "absent");
  const Import lone = import_text(job("--num-experts 4 --moe-router-group-topk 1"));
  EXPECT_THAT(lone.messages, Contains(HasSubstr("--moe-router-group-topk: chooses among groups, and their "
                                                "number is not given")));
}

}  // namespace
}  // namespace stagecraft
