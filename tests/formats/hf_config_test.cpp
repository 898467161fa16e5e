// Hugging Face configurations: the models that they mean, what is written, and every message.
//
// STAGECRAFT_BLESS=1 writes hf_golden/*.yaml and hf_bad/*.expected anew; the difference is then read before
// it is committed.
#include "formats/hf_config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "formats/hf_tables.hpp"
#include "models/load_model.hpp"
#include "tests/file_content.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = STAGECRAFT_SOURCE_DIR;
const fs::path kSamples = kRoot / "tests/data/hf_config";
const fs::path kGolden = kRoot / "tests/formats/hf_golden";
const fs::path kBad = kRoot / "tests/formats/hf_bad";

std::string messages(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) text += render(diagnostic) + "\n";
  return text;
}

struct Read {
  std::optional<HfConfig> config;
  std::string messages;
};

Read read(const std::string& text) {
  Diagnostics diagnostics;
  Read result{.config = read_hf_config(text, "config.json", diagnostics), .messages = {}};
  result.messages = messages(diagnostics);
  EXPECT_NE(result.config.has_value(), diagnostics.has_errors()) << result.messages;
  return result;
}

std::string sample(const std::string& name) {
  return content_of(kSamples / (name + ".config.json"));
}

TransformerSpec model_of(const std::string& text) {
  const Read result = read(text);
  EXPECT_TRUE(result.config.has_value()) << result.messages;
  return result.config ? result.config->model : TransformerSpec{};
}

// The text with one piece changed.
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// source  parameter counts of the files, derived by hand: attention h a d + 2 h k d + a d h, three matrices
//         h f a block, E of them and a router h E with experts, norms, embedding and head.
struct Count {
  const char* file;
  std::int64_t total;
  std::int64_t active;
};

constexpr Count kCounts[] = {
    {"gpt2", 124'439'808, 124'439'808},
    {"llama-3-8b", 8'030'261'248, 8'030'261'248},
    {"made-v5-keys-llama-3-8b", 8'030'261'248, 8'030'261'248},
    {"made-nested-text-config", 8'030'261'248, 8'030'261'248},
    {"llama-3-70b", 70'553'706'496, 70'553'706'496},
    {"qwen2-7b", 7'615'616'512, 7'615'616'512},
    {"mislabelled-qwen2-72b", 72'287'920'128, 72'287'920'128},
    {"qwen3-0.6b", 596'049'920, 596'049'920},
    {"qwen3-30b", 30'532'122'624, 3'353'032'704},
    {"qwen3-235b", 235'093'634'560, 22'190'763'520},
    {"mixtral-8x7b", 46'702'792'704, 12'879'925'248},
    {"mistral-7b", 7'241'732'096, 7'241'732'096},
    {"made-window-qwen2-7b", 7'615'616'512, 7'615'616'512},
    {"gpt-oss-20b", 20'914'757'184, 4'187'440'704},
    {"gpt-oss-120b", 116'829'156'672, 5'711'982'912},
    {"deepseek-r1", 671'026'404'352, 37'552'282'624},
    {"altered-deepseek-v3", 671'026'404'352, 37'552'282'624},
};

TEST(HfConfig, MeansAModelOfTheKnownNumberOfParameters) {
  for (const Count& count : kCounts) {
    SCOPED_TRACE(count.file);
    TransformerSpec model = model_of(sample(count.file));
    model.mtp_layers = 0;
    EXPECT_EQ(parameter_count(model), count.total);
    EXPECT_EQ(active_parameter_count(model), count.active);
  }
}

// One layer of experts 11,507,286,016, a projection [h, 2h] and three norms: 11,610,067,968.
TEST(HfConfig, ReadsMultiTokenPrediction) {
  const TransformerSpec model = model_of(sample("deepseek-r1"));
  EXPECT_EQ(model.mtp_layers, 1);
  EXPECT_EQ(parameter_count(model), 671'026'404'352 + 11'610'067'968);
}

TEST(HfConfig, IsTheSameModelUnderOtherNames) {
  const TransformerSpec llama = model_of(sample("llama-3-8b"));
  EXPECT_EQ(model_of(sample("made-v5-keys-llama-3-8b")), llama);
  EXPECT_EQ(model_of(sample("made-nested-text-config")), llama);
  EXPECT_EQ(model_of(sample("altered-deepseek-v3")), model_of(sample("deepseek-r1")));
}

TEST(HfConfig, TakesBiasesAndHeadSizesFromTheType) {
  const TransformerSpec qwen2 = model_of(sample("qwen2-7b"));
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.biases);
  const TransformerSpec qwen3 = model_of(sample("qwen3-0.6b"));
  EXPECT_EQ(qwen3.qk_norm, QkNorm::kHead);
  EXPECT_FALSE(qwen3.qkv_bias);
  EXPECT_TRUE(qwen3.tied_embeddings);
  EXPECT_EQ(qwen3.head_size, 128);  // and not 1024 / 16
  EXPECT_TRUE(model_of(sample("gpt2")).tied_embeddings);
}

TEST(HfConfig, ReadsWhichLayersHaveExperts) {
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(model_of(sample("deepseek-r1")).experts->dense_layers, (Layers{0, 1, 2}));
  EXPECT_EQ(model_of(sample("qwen3-30b")).experts->dense_layers, Layers{});
  const std::string four_layers =
      changed(sample("qwen3-30b"), "\"num_hidden_layers\": 48", "\"num_hidden_layers\": 4");
  EXPECT_EQ(model_of(changed(four_layers, "\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2"))
                .experts->dense_layers,
            (Layers{0, 2}));
  EXPECT_EQ(model_of(changed(four_layers, "\"mlp_only_layers\": []", "\"mlp_only_layers\": [3, 0]"))
                .experts->dense_layers,
            (Layers{0, 3}));
  const std::string six_layers =
      changed(sample("deepseek-r1"), "\"num_hidden_layers\": 61", "\"num_hidden_layers\": 6");
  EXPECT_EQ(
      model_of(changed(six_layers, "\"moe_layer_freq\": 1", "\"moe_layer_freq\": 2")).experts->dense_layers,
      (Layers{0, 1, 2, 3, 5}));
}

TEST(HfConfig, ProjectsQueriesInOneStepWithoutTheirRank) {
  const TransformerSpec model =
      model_of(changed(sample("deepseek-r1"), "\"q_lora_rank\": 1536", "\"q_lora_rank\": null"));
  ASSERT_TRUE(model.latent_attention.has_value());
  EXPECT_EQ(model.latent_attention->query_rank, 0);
  EXPECT_EQ(model.latent_attention->kv_rank, 512);
}

// A token chooses 4 of 8 groups of experts; a greedy choice knows no groups.
TEST(HfConfig, ReadsTheGroupsOfDeepSeek) {
  const ExpertsSpec limited = *model_of(sample("deepseek-r1")).experts;
  EXPECT_EQ(limited.groups, 8);
  EXPECT_EQ(limited.top_groups, 4);
  EXPECT_EQ(model_of(changed(sample("deepseek-r1"), "\"noaux_tc\"", "\"greedy\"")).experts->groups, 1);
  EXPECT_EQ(model_of(changed(sample("deepseek-r1"), "\"n_group\": 8", "\"n_group\": 1")).experts->groups, 1);
}

TEST(HfConfig, RefusesHalfOfTheGroupsOfDeepSeek) {
  EXPECT_THAT(read(changed(sample("deepseek-r1"), "\"topk_group\": 4,", "")).messages,
              testing::HasSubstr("error: topk_group: is required beside n_group"));
  const std::string chosen = changed(sample("deepseek-r1"), "\"n_group\": 8,", "");
  EXPECT_THAT(read(chosen).messages, testing::HasSubstr("error: n_group: is required beside topk_group"));
  EXPECT_EQ(model_of(changed(chosen, "\"noaux_tc\"", "\"greedy\"")).experts->groups, 1);
}

// Qwen2-57B-A14B: 8 shared experts' worth in one, behind a gate.
TEST(HfConfig, ReadsTheSharedExpertOfQwen2) {
  const TransformerSpec model = model_of(
      R"({"model_type": "qwen2_moe", "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944,
          "moe_intermediate_size": 2560, "shared_expert_intermediate_size": 20480, "num_attention_heads": 28,
          "num_hidden_layers": 28, "num_key_value_heads": 4, "num_experts": 64, "num_experts_per_tok": 8,
          "vocab_size": 151936, "tie_word_embeddings": false})");
  ASSERT_TRUE(model.experts.has_value());
  EXPECT_EQ(model.experts->shared, 1);
  EXPECT_EQ(model.experts->shared_ffn_hidden, 20480);
  EXPECT_TRUE(model.experts->shared_gate);
  EXPECT_TRUE(model.qkv_bias);
}

// GPT-NeoX-20B: 12 h^2 + 13 h a layer (biases and two norms with two vectors), untied ends, a final norm.
TEST(HfConfig, ReadsGptNeoX) {
  const std::int64_t h = 6144, layers = 44, vocab = 50432;
  const Read result = read(
      R"({"model_type": "gpt_neox", "hidden_act": "gelu_fast", "hidden_size": 6144, "intermediate_size": 24576,
          "num_attention_heads": 64, "num_hidden_layers": 44, "vocab_size": 50432, "max_position_embeddings": 2048,
          "rotary_pct": 0.25, "rotary_emb_base": 10000, "layer_norm_eps": 1e-05, "use_parallel_residual": true,
          "tie_word_embeddings": false})");
  ASSERT_TRUE(result.config.has_value()) << result.messages;
  EXPECT_EQ(result.messages, "");
  EXPECT_EQ(parameter_count(result.config->model), layers * (12 * h * h + 13 * h) + 2 * vocab * h + 2 * h);
  EXPECT_NE(to_yaml(result.config->fragment).find("parallel residual"), std::string::npos);
}

// source  published counts: GLM-4-9B 9,399,951,360; Seed-OSS-36B 36,151,104,512; DeepSeek-MoE-16B
//         16,375,728,128; StarCoder 15,517,456,384; StarCoder2-7B 7,173,923,840; GLM-4.5-Air 106,852,245,504;
//         Qwen3-8B and Qwen3-235B as language models.
TEST(HfConfig, MeansTheKnownNumberOfParametersOfMoreTypes) {
  struct Known {
    const char* text;
    std::int64_t total;
  };
  const Known known[] = {
      {R"({"model_type": "glm", "attention_bias": true, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
           "intermediate_size": 13696, "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 2,
           "tie_word_embeddings": false, "vocab_size": 151552})",
       9'399'951'360},
      {R"({"model_type": "seed_oss", "attention_bias": true, "attention_out_bias": false, "head_dim": 128,
           "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 27648, "mlp_bias": false,
           "num_attention_heads": 80, "num_hidden_layers": 64, "num_key_value_heads": 8, "tie_word_embeddings": false,
           "vocab_size": 155136})",
       36'151'104'512},
      {R"({"model_type": "deepseek", "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 2048,
           "intermediate_size": 10944, "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_routed_experts": 64,
           "n_shared_experts": 2, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 28,
           "num_key_value_heads": 16, "tie_word_embeddings": false, "vocab_size": 102400})",
       16'375'728'128},
      {R"({"model_type": "gpt_bigcode", "activation_function": "gelu_pytorch_tanh", "multi_query": true,
           "n_embd": 6144, "n_head": 48, "n_inner": 24576, "n_layer": 40, "n_positions": 8192, "vocab_size": 49152})",
       15'517'456'384},
      {R"({"model_type": "starcoder2", "activation_function": "gelu", "hidden_act": "gelu_pytorch_tanh",
           "hidden_size": 4608, "intermediate_size": 18432, "num_attention_heads": 36, "num_hidden_layers": 32,
           "num_key_value_heads": 4, "sliding_window": null, "use_bias": true, "vocab_size": 49152})",
       7'173'923'840},
      {R"({"model_type": "glm4_moe", "attention_bias": true, "first_k_dense_replace": 1, "head_dim": 128,
           "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408,
           "n_group": 1, "topk_group": 1, "n_routed_experts": 128, "n_shared_experts": 1, "num_attention_heads": 96,
           "num_experts_per_tok": 8, "num_hidden_layers": 46, "num_key_value_heads": 8, "use_qk_norm": false,
           "tie_word_embeddings": false, "vocab_size": 151552})",
       106'852'245'504},
      {R"({"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", "head_dim": 128,
           "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288, "num_attention_heads": 32,
           "num_hidden_layers": 36, "num_key_value_heads": 8, "tie_word_embeddings": false, "vocab_size": 151936}})",
       8'190'735'360},
      {R"({"model_type": "qwen3_vl_moe", "text_config": {"model_type": "qwen3_vl_moe_text", "head_dim": 128,
           "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288, "moe_intermediate_size": 1536,
           "num_attention_heads": 64, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 94,
           "num_key_value_heads": 4, "tie_word_embeddings": false, "vocab_size": 151936}})",
       235'093'634'560},
      {R"({"model_type": "qwen2_vl", "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944,
           "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "tie_word_embeddings": false,
           "vocab_size": 152064})",
       7'615'616'512},
      {R"({"model_type": "glm4_moe_lite", "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 10240,
           "moe_intermediate_size": 1536, "num_hidden_layers": 47, "num_attention_heads": 20, "n_routed_experts": 64,
           "n_shared_experts": 1, "num_experts_per_tok": 4, "q_lora_rank": 768, "kv_lora_rank": 512,
           "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "n_group": 1, "topk_group": 1,
           "tie_word_embeddings": false, "vocab_size": 154880})",
       29'943'390'976},  // by hand: 21,759,232 of attention, 62,914,560 dense, 613,548,032 with experts, ends
  };
  for (const Known& each : known) {
    SCOPED_TRACE(each.text);
    EXPECT_EQ(parameter_count(model_of(each.text)), each.total);
  }
}

// A classifier's head of 4096 x 2 is not the 4096 x 128256 that is priced.
TEST(HfConfig, WarnsOfAHeadThatIsNotThatOfALanguageModel) {
  for (const char* name : {"LlamaForSequenceClassification", "LlamaForTokenClassification", "LlamaModel"}) {
    const Read result = read(changed(changed(sample("llama-3-8b"), "LlamaForCausalLM", name),
                                     "\"vocab_size\"", "\"num_labels\": 2, \"vocab_size\""));
    ASSERT_TRUE(result.config.has_value());
    EXPECT_THAT(result.messages, testing::HasSubstr("does not end in the head of a language model"));
    EXPECT_THAT(to_yaml(result.config->fragment), testing::Not(testing::HasSubstr("num_labels")));
  }
}

TEST(HfConfig, TiesTheEndsOfAnUnknownTypeThatDoesNotSay) {
  const std::string known =
      changed(sample("llama-3-8b"), "\"tie_word_embeddings\": false", "\"mlp_bias\": false");
  const std::string minicpm = changed(changed(known, "LlamaForCausalLM", "MiniCPMForCausalLM"),
                                      "\"model_type\": \"llama\"", "\"model_type\": \"minicpm\"");
  const Read result = read(minicpm);
  ASSERT_TRUE(result.config.has_value()) << result.messages;
  EXPECT_TRUE(result.config->model.tied_embeddings);
  EXPECT_THAT(result.messages, testing::HasSubstr("warning: tie_word_embeddings: is not given"));
  EXPECT_FALSE(model_of(known).tied_embeddings);
}

// Llama-3-8B by another name, with a key more.
std::string unknown_with(const std::string& key) {
  const std::string text = changed(changed(sample("llama-3-8b"), "LlamaForCausalLM", "NewForCausalLM"),
                                   "\"model_type\": \"llama\"", "\"model_type\": \"new\"");
  return changed(text, "\"vocab_size\"", key + ", \"vocab_size\"");
}

TEST(HfConfig, RefusesKeysOfAnUnknownTypeThatChangeItsLayers) {
  for (const char* key : {"\"moe_top_k\": 3", "\"total_ut_steps\": 4", "\"use_cla\": true",
                          "\"num_key_value_heads_per_layer\": [4, 2]", "\"n_shared_head\": 8",
                          "\"loop_count\": 2", "\"bias\": true", "\"pruned_heads\": {\"0\": [1]}"})
    EXPECT_FALSE(read(unknown_with(key)).config.has_value()) << key;
  for (const char* key :
       {"\"moe_top_k\": null", "\"total_ut_steps\": 1", "\"use_cla\": false, \"cla_share_factor\": 2",
        "\"bias\": false", "\"pruned_heads\": {}"})
    EXPECT_TRUE(read(unknown_with(key)).config.has_value()) << key;
}

TEST(HfConfig, HonoursNormsAndBiasesOfAnUnknownType) {
  EXPECT_EQ(model_of(unknown_with("\"use_qk_norm\": true")).qk_norm, QkNorm::kHead);
  EXPECT_EQ(model_of(unknown_with("\"qk_norm\": true")).qk_norm, QkNorm::kHead);
  EXPECT_EQ(model_of(unknown_with("\"qk_norm\": false")).qk_norm, QkNorm::kNone);
  const TransformerSpec qkv = model_of(unknown_with("\"qkv_bias\": true"));
  EXPECT_TRUE(qkv.qkv_bias);
  EXPECT_FALSE(qkv.biases);
  const std::string without = changed(unknown_with("\"use_bias\": true"), "\"attention_bias\": false,", "");
  EXPECT_TRUE(model_of(without).biases);
}

// Null is not absent: mistral's class has 8 heads of keys where nothing is said, and as many as heads where
// null is.
TEST(HfConfig, TakesNullHeadsOfKeysForAsManyAsHeads) {
  const std::string null =
      changed(sample("llama-3-8b"), "\"num_key_value_heads\": 8", "\"num_key_value_heads\": null");
  EXPECT_EQ(model_of(changed(null, "\"model_type\": \"llama\"",
                             "\"model_type\": \"mistral\", \"sliding_window\": null"))
                .kv_heads,
            32);
}

TEST(HfConfig, ReadsDeepSeekWithoutLatentAttention) {
  std::string text = changed(sample("deepseek-r1"), "\"deepseek_v3\"", "\"deepseek_v2\"");
  text = changed(text, "\"vocab_size\"", "\"use_mla\": false, \"vocab_size\"");
  const TransformerSpec model = model_of(text);
  EXPECT_FALSE(model.latent_attention.has_value());
  EXPECT_EQ(model.kv_heads, 128);
  EXPECT_EQ(model.head_size, 7168 / 128);
}

TEST(HfConfig, ReadsTheKindOfEachLayerOfGlm) {
  const char* text =
      R"({"model_type": "glm4_moe_lite", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128,
          "moe_intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "n_routed_experts": 4,
          "n_shared_experts": 1, "num_experts_per_tok": 2, "q_lora_rank": 8, "kv_lora_rank": 8,
          "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "tie_word_embeddings": false,
          "mlp_layer_types": ["sparse", "dense", "sparse"], "vocab_size": 128})";
  EXPECT_EQ(model_of(text).experts->dense_layers, std::vector<std::int64_t>{1});
  EXPECT_FALSE(read(changed(text, "\"dense\"", "\"soft\"")).config.has_value());
  EXPECT_FALSE(read(changed(text, "\"sparse\", ", "")).config.has_value());
}

TEST(HfConfig, WarnsOfAContextUnlikeTheLearnedPositions) {
  const Read result = read(changed(sample("gpt2"), "\"n_ctx\": 1024", "\"n_ctx\": 512"));
  ASSERT_TRUE(result.config.has_value()) << result.messages;
  EXPECT_EQ(result.config->model.max_sequence_length, 1024);
  EXPECT_THAT(result.messages, testing::HasSubstr("n_ctx: 512, and n_positions says 1024, which counts"));
}

// Qwen2.5 with YaRN: 4 times 32,768. DeepSeek's file has the product already.
TEST(HfConfig, TakesTheLengthThatTheRotationIsScaledFor) {
  const std::string yarn =
      changed(sample("qwen2-7b"), "\"max_position_embeddings\"",
              R"("rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
         "max_position_embeddings")");
  EXPECT_EQ(model_of(yarn).max_sequence_length, 131'072);
  EXPECT_EQ(model_of(sample("deepseek-r1")).max_sequence_length, 163'840);
}

// Llama 3.2: 32 times 8,192 is not its length, which the file has.
TEST(HfConfig, TakesTheLengthOfTheFileWhereTheFactorStretchesWaves) {
  for (const char* type : {"llama3", "longrope", "su"}) {
    const std::string scaling = fmt::format(
        R"("rope_scaling": {{"factor": 32.0, "original_max_position_embeddings": 8192, "rope_type": "{}"}})",
        type);
    const std::string text =
        changed(changed(sample("llama-3-8b"), R"("rope_scaling": null)", scaling),
                R"("max_position_embeddings": 8192)", R"("max_position_embeddings": 131072)");
    EXPECT_EQ(model_of(text).max_sequence_length, 131'072) << type;
  }
}

TEST(HfConfig, LetsAWindowPassThatCutsNothingOff) {
  const std::string mistral = changed(sample("llama-3-8b"), "\"model_type\": \"llama\"",
                                      "\"model_type\": \"mistral\", \"sliding_window\": 8192");
  EXPECT_FALSE(model_of(mistral).sliding_window.has_value());
  EXPECT_FALSE(model_of(changed(mistral, "\"sliding_window\": 8192", "\"sliding_window\": null"))
                   .sliding_window.has_value());
  EXPECT_EQ(model_of(changed(mistral, "\"sliding_window\": 8192", "\"sliding_window\": 8191")).sliding_window,
            (SlidingWindowSpec{.tokens = 8191}));
}

// 32,768 positions, and four times as many behind the scaled rotation.
TEST(HfConfig, ComparesAWindowWithTheLengthThatTheRotationIsScaledFor) {
  const std::string window =
      changed(sample("made-window-qwen2-7b"), "\"sliding_window\": 4096", "\"sliding_window\": 32768");
  EXPECT_FALSE(model_of(window).sliding_window.has_value());
  const std::string yarn =
      changed(window, "\"max_position_embeddings\"",
              R"("rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
         "max_position_embeddings")");
  EXPECT_EQ(model_of(yarn).sliding_window->tokens, 32768);
}

// A Llama of six layers by another type.
std::string windowed(const std::string& type, const std::string& keys) {
  return fmt::format(
      R"({{"model_type": "{}", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128, "head_dim": 16,
          "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 128,
          "rms_norm_eps": 1e-6, "max_position_embeddings": 4096, "tie_word_embeddings": false, {}}})",
      type, keys);
}

const std::string kExpertsOfQwen =
    R"("moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "num_experts": 4,
       "num_experts_per_tok": 2)";

TEST(HfConfig, HasAWindowInEveryLayer) {
  const SlidingWindowSpec every{.tokens = 128};
  EXPECT_EQ(model_of(windowed("mistral", R"("sliding_window": 128)")).sliding_window, every);
  EXPECT_EQ(model_of(windowed("phi3", R"("sliding_window": 128)")).sliding_window, every);
  EXPECT_EQ(model_of(windowed("mixtral",
                              R"("sliding_window": 128, "num_local_experts": 4, "num_experts_per_tok": 2)"))
                .sliding_window,
            every);
  const std::string starcoder = changed(windowed("starcoder2", R"("sliding_window": 128)"), "silu", "gelu");
  EXPECT_EQ(model_of(starcoder).sliding_window, every);
  EXPECT_EQ(model_of(windowed("qwen3_moe",
                              R"("use_sliding_window": true, "sliding_window": 128, )" + kExpertsOfQwen))
                .sliding_window,
            every);
}

TEST(HfConfig, HasTheWindowOfTheTypeWhereItIsNotGiven) {
  const std::string mistral = changed(sample("mistral-7b"), "\"sliding_window\": 4096,", "");
  EXPECT_EQ(model_of(mistral), model_of(sample("mistral-7b")));
  EXPECT_THAT(to_yaml(read(mistral).config->fragment),
              testing::HasSubstr("tokens: 4096  # sliding_window is absent: 4096 of mistral"));
  const std::string qwen = changed(sample("made-window-qwen2-7b"), "\"sliding_window\": 4096,", "");
  EXPECT_EQ(model_of(qwen), model_of(sample("made-window-qwen2-7b")));
  EXPECT_EQ(model_of(changed(sample("gpt-oss-20b"), "\"sliding_window\": 128,", "")),
            model_of(sample("gpt-oss-20b")));
}

TEST(HfConfig, HasTheWindowOfQwenInLayersFromALimitOn) {
  using Layers = std::vector<std::int64_t>;
  const std::string window = R"("use_sliding_window": true, "sliding_window": 128, "max_window_layers": )";
  for (const char* type : {"qwen2", "qwen3", "mimo"}) {
    EXPECT_EQ(model_of(windowed(type, window + "4")).sliding_window->full_layers, (Layers{0, 1, 2, 3}))
        << type;
    EXPECT_EQ(model_of(windowed(type, window + "0")).sliding_window->full_layers, Layers{}) << type;
    EXPECT_FALSE(model_of(windowed(type, window + "6")).sliding_window.has_value()) << type;
    EXPECT_FALSE(model_of(windowed(type, R"("sliding_window": 128, "max_window_layers": 4)"))
                     .sliding_window.has_value())
        << type;
  }
  const std::string absent =
      changed(sample("made-window-qwen2-7b"), "\"max_window_layers\": 20,", "\"max_window_layers\": null,");
  EXPECT_FALSE(model_of(absent).sliding_window.has_value()) << "28 of 28 layers attend to all tokens";
  EXPECT_EQ(model_of(windowed("qwen2_moe", window + "4, " + kExpertsOfQwen)).sliding_window->full_layers,
            (Layers{1, 3, 4, 5}));
}

std::string of_layers(const std::string& kinds) {
  std::string list;
  for (const char kind : kinds)
    list += fmt::format("{}\"{}_attention\"", list.empty() ? "" : ", ", kind == 'f' ? "full" : "sliding");
  return windowed("llama", fmt::format(R"("sliding_window": 128, "layer_types": [{}])", list));
}

TEST(HfConfig, ReadsWhichLayersHaveTheWindow) {
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(model_of(of_layers("sfsfsf")).sliding_window->full_layers, (Layers{1, 3, 5}));
  EXPECT_EQ(model_of(of_layers("fsfsfs")).sliding_window->full_layers, (Layers{0, 2, 4}));
  EXPECT_EQ(model_of(of_layers("ssssss")).sliding_window->full_layers, Layers{});
  EXPECT_FALSE(model_of(of_layers("ffffff")).sliding_window.has_value());
}

// Each N-th layer is said so, and other layers one by one.
TEST(HfConfig, WritesWhichLayersAttendToAllTokens) {
  const auto written = [](const std::string& kinds) {
    return to_yaml(read(of_layers(kinds)).config->fragment);
  };
  EXPECT_THAT(written("sfsfsf"), testing::HasSubstr("    full_every: 2  # layer_types\n"));
  EXPECT_THAT(written("ssfssf"), testing::HasSubstr("    full_every: 3  # layer_types\n"));
  EXPECT_THAT(written("sssfss"), testing::HasSubstr("    full_every: 4  # layer_types\n"));
  EXPECT_THAT(written("ssfsss"), testing::HasSubstr("    full_layers: [2]  # layer_types\n"));
  EXPECT_THAT(written("fsfsfs"), testing::HasSubstr("    full_layers: [0, 2, 4]  # layer_types\n"));
  EXPECT_THAT(written("ssssss"), testing::Not(testing::HasSubstr("full_")));
}

// The list counts, whatever rule stands beside it.
TEST(HfConfig, TakesTheKindsOfLayersBeforeARule) {
  const std::string pattern =
      changed(of_layers("ssfssf"), "\"sliding_window\"",
              "\"_sliding_window_pattern\": 3, \"max_window_layers\": 6, \"sliding_window\"");
  EXPECT_EQ(model_of(pattern), model_of(of_layers("ssfssf")));
  EXPECT_THAT(to_yaml(read(pattern).config->fragment),
              testing::AllOf(testing::HasSubstr("_sliding_window_pattern: layer_types says it"),
                             testing::HasSubstr("max_window_layers: layer_types says it")));
  const std::string unknown = changed(of_layers("ssfssf"), "\"llama\"", "\"olmo9\"");
  EXPECT_EQ(model_of(unknown).sliding_window, model_of(of_layers("ssfssf")).sliding_window);
}

TEST(HfConfig, ReadsGptOss) {
  const TransformerSpec model = model_of(sample("gpt-oss-20b"));
  EXPECT_TRUE(model.biases);
  EXPECT_TRUE(model.qkv_bias);
  EXPECT_TRUE(model.attention_sinks);
  EXPECT_TRUE(model.experts->router_bias);
  EXPECT_EQ(model.activation, Activation::kSwiglu);
  EXPECT_EQ(model.sliding_window->tokens, 128);
  EXPECT_EQ(std::ssize(model.sliding_window->full_layers), 12);
  EXPECT_EQ(read(sample("gpt-oss-20b")).messages, "");
  const std::string full =
      changed(sample("gpt-oss-20b"), "\"layer_types\"", "\"layer_types\": null, \"x_token_id\"");
  EXPECT_EQ(model_of(full), model) << "even layers have the window where nothing is said";
  EXPECT_FALSE(model_of(changed(full, "\"sliding_window\": 128", "\"sliding_window\": null"))
                   .sliding_window.has_value());
}

// The names of OpenAI's own program, and what its class says of absent keys.
TEST(HfConfig, ReadsGptOssUnderOtherNames) {
  const TransformerSpec model = model_of(
      R"({"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "num_hidden_layers": 24,
          "num_experts": 32, "experts_per_token": 4, "vocab_size": 201088, "hidden_size": 2880,
          "intermediate_size": 2880, "head_dim": 64, "num_attention_heads": 64, "num_key_value_heads": 8,
          "sliding_window": 128, "initial_context_length": 4096, "rope_theta": 150000, "rope_scaling_factor": 32.0,
          "rope_ntk_alpha": 1, "rope_ntk_beta": 32, "swiglu_limit": 7.0})");
  TransformerSpec released = model_of(sample("gpt-oss-20b"));
  released.max_sequence_length = 0;
  EXPECT_EQ(model, released);
}

// The shipped models are the released configurations.
TEST(HfConfig, MeansTheModelsOfTheZoo) {
  for (const char* name : {"gpt-oss-20b", "gpt-oss-120b", "mistral-7b"}) {
    Diagnostics diagnostics;
    const auto root =
        parse_yaml(content_of(kRoot / "scenarios/models" / (std::string(name) + ".yaml")), name, diagnostics);
    ASSERT_TRUE(root.has_value());
    YamlMap map(&*root, "model", {}, diagnostics);
    auto model = std::get<TransformerSpec>(load_model(map));
    const TransformerSpec read = model_of(sample(name));
    model.name = read.name;
    EXPECT_EQ(model, read) << name;
  }
}

// What transformers' configuration classes say of an absent key.
TEST(HfConfig, FillsInWhatTheTypeSaysOfAbsentKeys) {
  const std::string without = changed(sample("llama-3-8b"), "\"num_key_value_heads\": 8,", "");
  const std::string llama = "\"model_type\": \"llama\"";
  EXPECT_EQ(model_of(without).kv_heads, 32);
  const std::string mistral = "\"model_type\": \"mistral\", \"sliding_window\": null";
  EXPECT_EQ(model_of(changed(without, llama, mistral)).kv_heads, 8);
  EXPECT_EQ(model_of(changed(sample("qwen3-30b"), "\"num_key_value_heads\": 4,", "")).kv_heads, 4);
}

TEST(HfConfig, ReadsAnUnknownTypeWithTheKeysOfLlamaAndWarns) {
  const Read result =
      read(changed(sample("llama-3-8b"), "\"model_type\": \"llama\"", "\"model_type\": \"yi\""));
  // Its class is that of llama, and says so; without it, its keys do.
  EXPECT_EQ(result.messages,
            "config.json:14:17: warning: model_type: 'yi' is not known here; read as llama, the class in "
            "architectures\n"
            "  hint: compare the parameter count with the published one\n");
  const Read by_keys = read(changed(changed(sample("llama-3-8b"), "LlamaForCausalLM", "YiForCausalLM"),
                                    "\"model_type\": \"llama\"", "\"model_type\": \"yi\""));
  EXPECT_EQ(by_keys.messages,
            "config.json:14:17: warning: model_type: 'yi' is not known here; its keys are those of llama, "
            "and it is "
            "read as one\n  hint: compare the parameter count with the published one\n");
  ASSERT_TRUE(by_keys.config.has_value());
  EXPECT_EQ(parameter_count(by_keys.config->model), 8'030'261'248);
}

// Gemma: keys of Llama, and another activation.
TEST(HfConfig, NamesWhatMakesAnUnknownTypeUnlikeLlama) {
  const std::string gemma =
      changed(changed(changed(sample("llama-3-8b"), "LlamaForCausalLM", "GemmaForCausalLM"),
                      R"("model_type": "llama")", R"("model_type": "gemma")"),
              R"("hidden_act": "silu")", R"("hidden_act": "gelu")");
  EXPECT_THAT(read(gemma).messages, testing::HasSubstr("llama: hidden_act is 'gelu' and not 'silu'"));
  const std::string window =
      changed(gemma, R"("hidden_act": "gelu")", R"("hidden_act": "gelu", "sliding_window": 4096)");
  EXPECT_THAT(read(window).messages,
              testing::AllOf(testing::HasSubstr("hidden_act is 'gelu'"),
                             testing::HasSubstr("sliding_window: attention within 4096 tokens")));
}

// Keys of a decoder of 12 layers, and `more` of its own.
std::string decoder(const std::string& more) {
  return R"({"num_hidden_layers": 12, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 2048, )"
         R"("vocab_size": 1000, )" +
         more + "}";
}

// The ends are one matrix; four norms a layer; heads of 256, 4 of them of keys and values.
TEST(HfConfig, ReadsGemma2) {
  const Read result = read(decoder(R"("model_type": "gemma2", "hidden_activation": "gelu_pytorch_tanh",
      "hidden_act": "gelu_pytorch_tanh", "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0,
      "final_logit_softcapping": 30.0, "sliding_window": 512)"));
  EXPECT_EQ(result.messages,
            "config.json:2:98: warning: attn_logit_softcapping: the soft cap of the scores is not counted: "
            "attention "
            "that has one runs kernels of its own\n"
            "config.json:3:34: warning: final_logit_softcapping: the time of the tanh over the logits is not "
            "counted\n");
  ASSERT_TRUE(result.config.has_value());
  const TransformerSpec& model = result.config->model;
  EXPECT_EQ(model.activation, Activation::kGeglu);
  EXPECT_EQ(model.norms, Norms::kBoth);
  EXPECT_EQ(model.qk_norm, QkNorm::kNone);
  EXPECT_EQ(model.sliding_window, (SlidingWindowSpec{.tokens = 512, .full_layers = {1, 3, 5, 7, 9, 11}}));
  EXPECT_EQ(parameter_count(model),
            12 * (2 * 1024 * 256 * (16 + 4) + 3 * 1024 * 2048 + 4 * 1024) + 1000 * 1024 + 1024);
}

// The language model of a file of 2025 says little of itself.
TEST(HfConfig, ReadsGemma3WithWhatItLeavesOut) {
  const TransformerSpec model = model_of(
      R"({"model_type": "gemma3", "vision_config": {"hidden_size": 1152}, "text_config": {"model_type": "gemma3_text",
          "hidden_size": 3840, "intermediate_size": 15360, "num_attention_heads": 16, "num_hidden_layers": 48,
          "num_key_value_heads": 8, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}})");
  EXPECT_EQ(parameter_count(model), 11'766'034'176);
  EXPECT_EQ(model.qk_norm, QkNorm::kHead);
  EXPECT_EQ(model.sliding_window,
            (SlidingWindowSpec{.tokens = 1024, .full_layers = {5, 11, 17, 23, 29, 35, 41, 47}}));
}

TEST(HfConfig, ReadsOlmo2And3) {
  const TransformerSpec two = model_of(decoder(R"("model_type": "olmo2", "hidden_act": "silu")"));
  EXPECT_EQ(two.norms, Norms::kAfter);
  EXPECT_EQ(two.qk_norm, QkNorm::kWidth);
  EXPECT_EQ(two.activation, Activation::kSwiglu);
  EXPECT_FALSE(two.tied_embeddings);
  EXPECT_FALSE(two.sliding_window.has_value());
  TransformerSpec three = model_of(decoder(R"("model_type": "olmo3", "hidden_act": "silu")"));
  EXPECT_EQ(three.sliding_window, (SlidingWindowSpec{.tokens = 4096, .full_layers = {3, 7, 11}}));
  three.sliding_window.reset();
  three.name = two.name;
  EXPECT_EQ(three, two);
}

TEST(HfConfig, ReadsOlmoe) {
  const Read result = read(decoder(R"("model_type": "olmoe", "hidden_act": "silu", "num_experts": 8,
      "num_experts_per_tok": 2, "clip_qkv": 8.0, "norm_topk_prob": false)"));
  EXPECT_EQ(result.messages,
            "config.json:2:45: warning: clip_qkv: the time of clipping Q, K and V is not counted\n");
  ASSERT_TRUE(result.config.has_value());
  EXPECT_EQ(result.config->model.experts, (ExpertsSpec{.count = 8, .top_k = 2, .ffn_hidden = 2048}));
  EXPECT_EQ(result.config->model.norms, Norms::kBefore);
  EXPECT_EQ(result.config->model.qk_norm, QkNorm::kWidth);
}

TEST(HfConfig, ReadsWhichLayersHaveNoWindow) {
  const auto window = [](const std::string& keys) {
    return model_of(decoder(R"("model_type": "gemma3_text", "sliding_window": 64, )" + keys)).sliding_window;
  };
  const auto full = [&](const std::string& keys) { return window(keys)->full_layers; };
  using Layers = std::vector<std::int64_t>;
  const std::string cut = R"("sliding_attention")", all = R"("full_attention")";
  const auto types = [&](int layer) {  // one full layer
    std::string list;
    for (int i = 0; i < 12; ++i) list += (i > 0 ? ", " : "") + (i == layer ? all : cut);
    return R"("layer_types": [)" + list + "]";
  };
  EXPECT_EQ(full(R"("head_dim": 64)"), (Layers{5, 11}));
  EXPECT_EQ(full(R"("sliding_window_pattern": 4)"), (Layers{3, 7, 11}));
  EXPECT_EQ(full(R"("_sliding_window_pattern": 4)"), (Layers{3, 7, 11}));
  EXPECT_EQ(full(types(2)), (Layers{2}));
  EXPECT_EQ(full(types(99)), Layers{});
  EXPECT_FALSE(window(R"("sliding_window_pattern": 1)").has_value());
  EXPECT_FALSE(
      model_of(decoder(R"("model_type": "olmo3", "sliding_window": null)")).sliding_window.has_value());
  EXPECT_THAT(read(decoder(R"("model_type": "olmo3", "layer_types": ["full_attention"])")).messages,
              testing::HasSubstr("layer_types: names 1 layers, and the model has 12"));
  EXPECT_THAT(read(decoder(R"("model_type": "gemma2", "use_bidirectional_attention": true)")).messages,
              testing::HasSubstr("use_bidirectional_attention: attention to later tokens: not modelled"));
}

TEST(HfConfig, WarnsOfKeysThatItDoesNotKnow) {
  const Read result = read(changed(sample("llama-3-8b"), "\"initializer_range\"", "\"initialiser_range\""));
  EXPECT_THAT(result.messages,
              testing::HasSubstr("warning: initialiser_range: is not known here, and was not read\n"
                                 "  hint: did you mean 'initializer_range'?\n"));
}

// Where the default in place of a misspelt key would be another model.
TEST(HfConfig, RefusesKeysThatAreNearlyThoseOfTheShape) {
  for (const auto& [key, misspelt] : {std::pair("attention_bias", "atention_bias"),
                                      std::pair("num_key_value_heads", "num_key_values_heads"),
                                      std::pair("tie_word_embeddings", "tie_word_embedding")}) {
    const std::string quoted = "\"" + std::string(key) + "\"", other = "\"" + std::string(misspelt) + "\"";
    EXPECT_THAT(read(changed(sample("llama-3-8b"), quoted, other)).messages,
                testing::HasSubstr(std::string("error: ") + misspelt +
                                   ": is not known here, and a key of nearly this name shapes the layers\n"
                                   "  hint: did you mean '" +
                                   key + "'?\n"));
  }
}

TEST(HfConfig, ReadsOtherNamesOfTheHeadsOfKeysAndValues) {
  for (const char* alias : {"\"num_kv_heads\"", "\"n_kv_heads\""}) {
    const Read result = read(changed(sample("llama-3-8b"), "\"num_key_value_heads\"", alias));
    ASSERT_TRUE(result.config.has_value()) << result.messages;
    EXPECT_EQ(result.config->model.kv_heads, 8);
    EXPECT_THAT(result.messages, testing::HasSubstr("read as 'num_key_value_heads' (8 heads)"));
  }
  EXPECT_THAT(read(changed(sample("llama-3-8b"), "\"num_key_value_heads\"",
                           "\"num_kv_heads\": 4, \"num_key_value_heads\""))
                  .messages,
              testing::HasSubstr("num_kv_heads: 4, and num_key_value_heads says 8"));
}

// Granite has 0.1 inside attention. Behind the blocks there is as much traffic again, and none of it.
TEST(HfConfig, DropoutInsideAttentionAloneIsNotThatBehindTheBlocks) {
  const std::string attention = "\"attention_dropout\": 0.0";
  const Read inside = read(changed(sample("llama-3-8b"), attention, "\"attention_dropout\": 0.1"));
  ASSERT_TRUE(inside.config.has_value());
  EXPECT_FALSE(inside.config->model.dropout);
  EXPECT_THAT(
      inside.messages,
      testing::HasSubstr("warning: attention_dropout: dropout inside attention alone is not modelled"));
  const Read behind = read(changed(sample("llama-3-8b"), attention, attention + ", \"resid_pdrop\": 0.1"));
  EXPECT_TRUE(behind.config->model.dropout);
  EXPECT_EQ(behind.messages, "");
  const Read gpt2 = read(changed(sample("gpt2"), "\"resid_pdrop\": 0.1", "\"resid_pdrop\": 0.0"));
  EXPECT_FALSE(gpt2.config->model.dropout);
  EXPECT_THAT(gpt2.messages, testing::HasSubstr("warning: attn_pdrop: dropout inside attention alone"));
}

// What only the whole model shows is said in the words of the file.
TEST(HfConfig, MistakesOfTheWholeModelNameTheKeysOfTheFile) {
  EXPECT_THAT(
      read(changed(sample("llama-3-8b"), "\"num_attention_heads\": 32", "\"num_attention_heads\": 30"))
          .messages,
      testing::HasSubstr("error: hidden_size: 4096 is not divisible by num_attention_heads = 30\n"
                         "  hint: give head_dim, or change hidden_size or num_attention_heads\n"));
  EXPECT_THAT(read(changed(sample("deepseek-r1"), "\"topk_group\": 4", "\"topk_group\": 9")).messages,
              testing::HasSubstr("error: topk_group: 9 is more than n_group = 8\n  hint: use 1 to 8\n"));
  EXPECT_THAT(read(changed(sample("gpt2"), "\"n_head\": 12", "\"n_head\": 11")).messages,
              testing::HasSubstr("error: n_embd: 768 is not divisible by n_head = 11\n  hint: "));
}

TEST(HfConfig, WarnsOfAlteredKeysBesideTheParameterCount) {
  EXPECT_EQ(
      read(sample("altered-deepseek-v3")).messages,
      "config.json:27:3: warning: num_routed_experts: not a key of deepseek_v3, read as 'n_routed_experts' "
      "(256 experts)\n  hint: the file was altered; compare the parameter count, 671.0 B\n"
      "config.json:28:3: warning: num_shared_experts: not a key of deepseek_v3, read as 'n_shared_experts' "
      "(1 shared)\n  hint: the file was altered; compare the parameter count, 671.0 B\n");
}

TEST(HfConfig, RefusesHybridLayersByName) {
  const Read result = read(sample("hybrid-qwen3-next-80b-a3b"));
  EXPECT_FALSE(result.config.has_value());
  EXPECT_THAT(
      result.messages,
      testing::AllOf(testing::HasSubstr("full_attention_interval: linear attention in 36 of 48 layers "
                                        "(full_attention_interval: 4) is not modelled\n  hint: full "
                                        "attention in every layer is\n"),
                     testing::HasSubstr("'qwen3_next' is not known here, and it is not read as llama: it has "
                                        "num_experts\n")));
}

TEST(HfConfig, SaysWhereEachValueOfTheModelStands) {
  Diagnostics diagnostics;
  Origins origins;
  ASSERT_TRUE(read_hf_config(sample("llama-3-8b"), "config.json", diagnostics, &origins).has_value());
  EXPECT_EQ(origins.at("model.layers"), (SourceLocation{"config.json", 16, 24}));
}

// What is written means what was read: the fragment's model is read again by the loader of models.
TEST(HfConfig, WritesAFragmentThatMeansTheSameModel) {
  for (const Count& count : kCounts) {
    SCOPED_TRACE(count.file);
    const Read result = read(sample(count.file));
    ASSERT_TRUE(result.config.has_value());
    Diagnostics diagnostics;
    const auto root = parse_yaml(to_yaml(result.config->fragment), "fragment.yaml", diagnostics);
    ASSERT_TRUE(root.has_value()) << messages(diagnostics);
    YamlMap map(root->find("model"), "model", {}, diagnostics);
    EXPECT_EQ(std::get<TransformerSpec>(load_model(map)), result.config->model);
    EXPECT_EQ(messages(diagnostics), "");
  }
}

TEST(HfTables, FindEveryArchitectureByTypeAndByClass) {
  for (const HfArchitecture& architecture : hf_architectures()) {
    EXPECT_EQ(hf_architecture(architecture.model_type), &architecture);
    EXPECT_EQ(hf_architecture_of_class(architecture.class_name), &architecture);
  }
  EXPECT_EQ(hf_architecture("jamba"), nullptr);
}

class HfGolden : public testing::TestWithParam<const char*> {};

TEST_P(HfGolden, WritesExactlyTheExpectedFragment) {
  const Read result = read(sample(GetParam()));
  ASSERT_TRUE(result.config.has_value()) << result.messages;
  const std::string written = to_yaml(result.config->fragment);
  const fs::path expected = kGolden / (std::string(GetParam()) + ".yaml");
  if (std::getenv("STAGECRAFT_BLESS") != nullptr) std::ofstream(expected) << written;
  EXPECT_EQ(written, content_of(expected));
}

class HfMistake : public testing::TestWithParam<const char*> {};

TEST_P(HfMistake, GivesExactlyTheExpectedMessages) {
  const Read result = read(content_of(kBad / (std::string(GetParam()) + ".json")));
  EXPECT_FALSE(result.config.has_value());
  const fs::path expected = kBad / (std::string(GetParam()) + ".expected");
  if (std::getenv("STAGECRAFT_BLESS") != nullptr) std::ofstream(expected) << result.messages;
  EXPECT_EQ(result.messages, content_of(expected));
}

std::string test_name(const testing::TestParamInfo<const char*>& tested) {
  std::string name = tested.param;
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Samples, HfGolden,
                         testing::Values("altered-deepseek-v3", "deepseek-r1", "gpt-oss-120b", "gpt-oss-20b",
                                         "gpt2", "llama-3-70b", "llama-3-8b", "made-nested-text-config",
                                         "made-v5-keys-llama-3-8b", "made-window-qwen2-7b",
                                         "mislabelled-qwen2-72b", "mistral-7b", "mixtral-8x7b", "qwen2-7b",
                                         "qwen3-0.6b", "qwen3-235b", "qwen3-30b"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(
    Files, HfMistake,
    testing::Values("biases", "biases-of-the-block", "does-not-divide", "duplicate", "empty", "encoder",
                    "experts-behind-the-last-layer", "experts-contradict", "experts-in-a-dense-type",
                    "experts-missing", "experts-nowhere", "gpt-oss", "head-size", "layer-types",
                    "layer-types-of-too-few-layers", "neox-without-biases", "no-type", "not-an-object",
                    "number-of-the-wrong-size", "python", "several", "state-space", "syntax",
                    "two-names-for-layers", "unknown-moe", "unknown-type", "window-by-a-pattern",
                    "window-misspelt", "window-not-switched-on", "window-of-chunks", "window-of-unknown-type",
                    "window-of-latent-attention", "window-of-llama", "window-of-other-values",
                    "window-switched-off", "window-without-tokens"),
    test_name);

TEST(HfMistake, IsListedForEveryFileOfTheFolder) {
  int json = 0, expected = 0;
  for (const auto& entry : fs::directory_iterator(kBad)) {
    json += entry.path().extension() == ".json";
    expected += entry.path().extension() == ".expected";
  }
  EXPECT_EQ(json, 36);
  EXPECT_EQ(expected, 36);
}

}  // namespace
}  // namespace stagecraft
