// What a `model:` mapping may say, and what we answer when it says something else. Messages are goldens.
#include "models/load_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/yaml.hpp"
#include "models/model_spec.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;
using namespace std::chrono_literals;
using testing::ElementsAre;

struct Loaded {
  ModelSpec model;
  std::vector<std::string> messages;  // "path: message (hint)"
};

Loaded load(std::string_view text) {
  Diagnostics diagnostics;
  const auto root = parse_yaml(text, "model.yaml", diagnostics);
  diagnostics.throw_if_errors();
  YamlMap map(&root.value(), "model", {.file = "model.yaml", .line = 1, .column = 1}, diagnostics);
  Loaded loaded{.model = load_model(map), .messages = {}};
  for (const Diagnostic& d : diagnostics.sorted()) {
    loaded.messages.push_back(d.path + ": " + d.message + (d.hint.empty() ? "" : " (" + d.hint + ")"));
  }
  return loaded;
}

TransformerSpec transformer(std::string_view text) {
  const Loaded loaded = load(text);
  EXPECT_THAT(loaded.messages, ElementsAre());
  return std::get<TransformerSpec>(loaded.model);
}

TEST(LoadModel, GivesGptItsDefaults) {
  const TransformerSpec model = transformer("{family: gpt, layers: 2, hidden: 64, heads: 4, vocab: 100}");
  EXPECT_EQ(model, (TransformerSpec{.name = "gpt",
                                    .family = Family::kGpt,
                                    .layers = 2,
                                    .hidden = 64,
                                    .heads = 4,
                                    .kv_heads = 4,
                                    .head_size = 16,
                                    .ffn_hidden = 256,
                                    .vocab = 100,
                                    .max_sequence_length = 0,
                                    .activation = Activation::kGelu,
                                    .normalization = Normalization::kLayerNorm,
                                    .position = Position::kLearned,
                                    .tied_embeddings = true,
                                    .biases = true,
                                    .dropout = true}));
}

TEST(LoadModel, GivesLlamaItsDefaults) {
  const TransformerSpec model =
      transformer("{family: llama, layers: 2, hidden: 64, heads: 4, ffn_hidden: 172, vocab: 100}");
  EXPECT_EQ(model, (TransformerSpec{.name = "llama",
                                    .family = Family::kLlama,
                                    .layers = 2,
                                    .hidden = 64,
                                    .heads = 4,
                                    .kv_heads = 4,
                                    .head_size = 16,
                                    .ffn_hidden = 172,
                                    .vocab = 100,
                                    .max_sequence_length = 0,
                                    .activation = Activation::kSwiglu,
                                    .normalization = Normalization::kRmsNorm,
                                    .position = Position::kRope,
                                    .tied_embeddings = false,
                                    .biases = false,
                                    .qkv_bias = false,
                                    .dropout = false}));
}

TEST(LoadModel, TakesEveryNumberAndChoiceAlone) {
  const TransformerSpec model = transformer(
      "{name: odd, family: gpt, layers: 3, hidden: 60, heads: 8, kv_heads: 2, head_size: 24, ffn_hidden: 7, "
      "vocab: 11,"
      " max_sequence_length: 5, activation: swiglu, normalization: rmsnorm, position: rope, tied_embeddings: "
      "false,"
      " biases: false, dropout: false}");
  EXPECT_EQ(model, (TransformerSpec{.name = "odd",
                                    .family = Family::kGpt,
                                    .layers = 3,
                                    .hidden = 60,
                                    .heads = 8,
                                    .kv_heads = 2,
                                    .head_size = 24,
                                    .ffn_hidden = 7,
                                    .vocab = 11,
                                    .max_sequence_length = 5,
                                    .activation = Activation::kSwiglu,
                                    .normalization = Normalization::kRmsNorm,
                                    .position = Position::kRope,
                                    .tied_embeddings = false,
                                    .biases = false,
                                    .qkv_bias = false,
                                    .dropout = false}));
}

TEST(LoadModel, TakesCostsOfAbstractStages) {
  const Loaded loaded = load(
      "{family: stages, forward: [1 ms, 2 ms], input_gradient: 3 ms, weight_gradient: 0, activation: 16 MiB,"
      " gradient: [1 GiB, 2 GiB], message: 2 MiB}");
  EXPECT_THAT(loaded.messages, ElementsAre());
  EXPECT_EQ(std::get<StagesSpec>(loaded.model), (StagesSpec{.name = "stages",
                                                            .forward = {1ms, 2ms},
                                                            .input_gradient = {3ms},
                                                            .weight_gradient = {0ms},
                                                            .activation = {16_MiB},
                                                            .gradient = {1_GiB, 2_GiB},
                                                            .message = {2_MiB}}));
}

// A stage of 3 + 1 + 1 ms in two parts; what it sent, each of them sends.
TEST(AbstractStages, AreCutIntoPartsOfEqualCost) {
  const StagesSpec whole{.name = "s",
                         .forward = {3ms},
                         .input_gradient = {1ms},
                         .weight_gradient = {1ms},
                         .activation = {Bytes(5)},
                         .gradient = {1_GiB}};
  EXPECT_EQ(in_parts(whole, 1), whole);
  EXPECT_EQ(in_parts(whole, 2), (StagesSpec{.name = "s",
                                            .forward = {1500us},
                                            .input_gradient = {500us},
                                            .weight_gradient = {500us},
                                            .activation = {Bytes(3)},
                                            .gradient = {512_MiB},
                                            .message = {Bytes(5)}}));
}

// Costs of each stage are those of the chunks.
TEST(AbstractStages, WithCostsOfTheirOwnStayAsTheyAre) {
  const StagesSpec each{.name = "s",
                        .forward = {1ms, 2ms},
                        .input_gradient = {1ms, 2ms},
                        .weight_gradient = {1ms, 2ms},
                        .activation = {1_MiB, 2_MiB},
                        .gradient = {1_MiB, 2_MiB}};
  EXPECT_EQ(in_parts(each, 2).forward, each.forward);
  EXPECT_EQ(in_parts(each, 2).activation, each.activation);
}

TEST(LoadModel, LetsAbstractStagesHaveNoSizes) {
  const Loaded loaded = load("{family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}");
  EXPECT_THAT(loaded.messages, ElementsAre());
  EXPECT_EQ(std::get<StagesSpec>(loaded.model).activation, std::vector<Bytes>{0_B});
  EXPECT_EQ(std::get<StagesSpec>(loaded.model).gradient, std::vector<Bytes>{0_B});
}

TEST(BadModel, SaysWhatElseIsWrongWhereItsFamilyIsNotKnown) {
  EXPECT_THAT(
      load("{famly: gpt, layers: 2, hiden: 64, heads: 4}").messages,
      ElementsAre("model.family: is required, but not given", "model.hidden: is required, but not given",
                  "model.famly: is not a known key (did you mean 'family'?)",
                  "model.hiden: is not a known key (did you mean 'hidden'?)"));
  EXPECT_THAT(load("{family: lama, layers: 2, hidden: 64, heads: 4, ffn_hidden: 7}").messages,
              ElementsAre("model.family: 'lama' is not known here (did you mean 'llama'?)"));
  EXPECT_THAT(
      load("{forward: 1 ms, input_gradient: 1, weight_gradient: 1 ms}").messages,
      ElementsAre(
          "model.family: is required, but not given",
          "model.input_gradient: '1' has no unit (1 ms is 0.001 s; units are ns us ms s min h days)"));
}

TEST(BadModel, MissesWhatHasNoDefault) {
  EXPECT_THAT(
      load("{family: llama}").messages,
      ElementsAre("model.ffn_hidden: is required, but not given", "model.heads: is required, but not given",
                  "model.hidden: is required, but not given", "model.layers: is required, but not given",
                  "model.vocab: is not given: 32,000, that of the first Llamas (give vocab)"));
  EXPECT_THAT(load("{family: stages, forward: 1 ms}").messages,
              ElementsAre("model.input_gradient: is required, but not given",
                          "model.weight_gradient: is required, but not given"));
}

TEST(BadModel, HasHeadsThatDoNotDivideItsWidth) {
  EXPECT_THAT(
      load("{family: gpt, layers: 2, hidden: 100, heads: 7, vocab: 10}").messages,
      ElementsAre(
          "model.hidden: 100 is not divisible by heads = 7 (give head_size, or change hidden or heads)"));
  EXPECT_THAT(load("{family: gpt, layers: 2, hidden: 100, heads: 7, head_size: 16, vocab: 10}").messages,
              ElementsAre());
}

TEST(BadModel, HasKeyValueHeadsThatDoNotDivideItsHeads) {
  EXPECT_THAT(load("{family: gpt, layers: 2, hidden: 96, heads: 12, kv_heads: 5, vocab: 10}").messages,
              ElementsAre("model.kv_heads: 5 does not divide heads = 12 (use 1, 2, 3, 4, 6 or 12)"));
}

TEST(BadModel, IsNotBlamedTwiceForOneMistake) {
  EXPECT_THAT(load("{family: gpt, layers: 2, hidden: 0, heads: 12, vocab: 10}").messages,
              ElementsAre("model.hidden: 0 is less than 1, the smallest allowed"));
  EXPECT_THAT(
      load("{family: stages, forward: [1 ms, 2], input_gradient: [1 ms, 1 ms], weight_gradient: 0}").messages,
      testing::SizeIs(1));
}

TEST(BadModel, HasKeysThatNobodyKnows) {
  EXPECT_THAT(load("{family: gpt, layer: 2, layers: 2, hidden: 64, heads: 4, vocab: 10}").messages,
              ElementsAre("model.layer: is not a known key (did you mean 'layers'?)"));
}

// 4 layers of 8 experts, of which a token visits 2.
std::string with_experts(const std::string& more) {
  return "{family: llama, layers: 4, hidden: 64, heads: 4, ffn_hidden: 96, vocab: 10, experts: {count: 8, "
         "top_k: 2,"
         " ffn_hidden: 32" +
         (more.empty() ? std::string() : ", " + more) + "}}";
}

TEST(LoadModel, GivesExpertsTheirDefaults) {
  const TransformerSpec model = transformer(with_experts(""));
  EXPECT_EQ(model.experts, (ExpertsSpec{.count = 8,
                                        .top_k = 2,
                                        .ffn_hidden = 32,
                                        .shared = 0,
                                        .shared_ffn_hidden = 0,
                                        .shared_gate = false,
                                        .dense_layers = {},
                                        .capacity_factor = 0,
                                        .imbalance = 1}));
  EXPECT_EQ(model.numbers().experts, 4);
  EXPECT_EQ(model.ffn_hidden, 96);
}

TEST(LoadModel, TakesEveryNumberOfExperts) {
  const TransformerSpec model =
      transformer(with_experts("shared: 2, shared_ffn_hidden: 48, shared_gate: true, dense_layers: [0, 3], "
                               "capacity_factor: 1.25, pad_to_capacity: true, imbalance: 1.1"));
  EXPECT_EQ(model.experts, (ExpertsSpec{.count = 8,
                                        .top_k = 2,
                                        .ffn_hidden = 32,
                                        .shared = 2,
                                        .shared_ffn_hidden = 48,
                                        .shared_gate = true,
                                        .dense_layers = {0, 3},
                                        .capacity_factor = 1.25,
                                        .pad_to_capacity = true,
                                        .imbalance = 1.1}));
  EXPECT_EQ(model.experts->shared_width(), 96);
  EXPECT_EQ(model.kind_of(0), LayerKind::kDense);
  EXPECT_EQ(model.kind_of(1), LayerKind::kExperts);
  EXPECT_EQ(model.mtp_kind(), LayerKind::kDense);
}

TEST(LoadModel, TakesGroupsOfExperts) {
  const ExpertsSpec limited = *transformer(with_experts("groups: 4, top_groups: 2")).experts;
  EXPECT_EQ(limited.groups, 4);
  EXPECT_EQ(limited.top_groups, 2);
  EXPECT_EQ(limited.candidates(), 4);  // two groups of two
  EXPECT_EQ(transformer(with_experts("groups: 4")).experts->top_groups, 4);
  EXPECT_EQ(transformer(with_experts("")).experts->candidates(), 8);
}

TEST(LoadModel, MakesSharedExpertsAsWideAsRoutedOnes) {
  EXPECT_EQ(transformer(with_experts("shared: 3")).experts->shared_width(), 3 * 32);
}

TEST(LoadModel, TakesTheFirstLayersAsDense) {
  EXPECT_EQ(transformer(with_experts("first_dense_layers: 3")).experts->dense_layers,
            (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(transformer(with_experts("first_dense_layers: 0")).experts->dense_layers,
            std::vector<std::int64_t>{});
}

TEST(LoadModel, NeedsTheDenseWidthOnlyWhereALayerIsDense) {
  const std::string head =
      "{family: llama, layers: 4, hidden: 64, heads: 4, vocab: 10, experts: {count: 8, top_k: 2,"
      " ffn_hidden: 32";
  EXPECT_EQ(transformer(head + "}}").ffn_hidden, 32);
  EXPECT_THAT(load(head + ", first_dense_layers: 1}}").messages,
              ElementsAre("model.ffn_hidden: is required, but not given"));
}

TEST(LoadModel, SaysWhichNumbersItAssumes) {
  const Loaded gpt = load("{family: gpt, layers: 2, hidden: 64, heads: 4, experts: {count: 8, top_k: 2}}");
  EXPECT_EQ(std::get<TransformerSpec>(gpt.model).vocab, 51'200);
  EXPECT_EQ(std::get<TransformerSpec>(gpt.model).experts->ffn_hidden, 256);
  EXPECT_EQ(std::get<TransformerSpec>(gpt.model).ffn_hidden, 256);
  EXPECT_THAT(
      gpt.messages,
      ElementsAre("model.vocab: is not given: 51,200, that of GPT in Megatron-LM (give vocab)",
                  "model.experts.ffn_hidden: is not given: 256, the model's ffn_hidden (give ffn_hidden)"));
  const std::string llama = "{family: llama, layers: 2, hidden: 64, heads: 4, vocab: 10, ";
  EXPECT_THAT(
      load(llama + "ffn_hidden: 96, experts: {count: 8, top_k: 2}}").messages,
      ElementsAre("model.experts.ffn_hidden: is not given: 96, the model's ffn_hidden (give ffn_hidden)"));
  EXPECT_THAT(load(llama + "experts: {count: 8, top_k: 2}}").messages,
              ElementsAre("model.experts.ffn_hidden: is required, but not given"));
}

TEST(LoadModel, TakesLatentAttention) {
  const TransformerSpec model = transformer(
      "{family: llama, layers: 2, hidden: 64, heads: 4, ffn_hidden: 96, vocab: 10, mtp_layers: 1,"
      " latent_attention: {query_rank: 24, kv_rank: 16, nope_head_size: 8, rope_head_size: 4, "
      "value_head_size: 10}}");
  EXPECT_EQ(
      model.latent_attention,
      (LatentAttentionSpec{
          .query_rank = 24, .kv_rank = 16, .nope_head_size = 8, .rope_head_size = 4, .value_head_size = 10}));
  EXPECT_EQ(model.head_size, 12);
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.mtp_layers, 1);
}

TEST(LoadModel, LetsLatentAttentionProjectQueriesInOneStep) {
  const TransformerSpec model = transformer(
      "{family: gpt, layers: 2, hidden: 64, heads: 4, vocab: 10, head_size: 12, kv_heads: 4,"
      " latent_attention: {kv_rank: 16, nope_head_size: 8, rope_head_size: 4, value_head_size: 10}}");
  EXPECT_EQ(model.latent_attention->query_rank, 0);
  EXPECT_TRUE(model.biases);
  EXPECT_FALSE(model.qkv_bias);
}

TEST(LoadModel, GivesQkvTheBiasesOfTheOthersUnlessToldOtherwise) {
  const std::string gpt = "{family: gpt, layers: 2, hidden: 64, heads: 4, vocab: 10";
  EXPECT_TRUE(transformer(gpt + "}").qkv_bias);
  EXPECT_FALSE(transformer(gpt + ", biases: false}").qkv_bias);
  EXPECT_TRUE(transformer(gpt + ", biases: false, qkv_bias: true, qk_norm: true}").qkv_bias);
}

TEST(LoadModel, TakesAModelOfTwoTrillionParameters) {
  const TransformerSpec model = transformer(
      "{family: llama, layers: 100, hidden: 16384, heads: 128, kv_heads: 8, vocab: 200000,"
      " experts: {count: 512, top_k: 8, ffn_hidden: 800}}");
  EXPECT_EQ(parameter_count(model),
            100 * (16384 * 128 * 2 * (128 + 8) + 2 * 16384 + 512 * (3 * std::int64_t{16384} * 800 + 16384)) +
                2 * std::int64_t{200000} * 16384 + 16384);
  EXPECT_GT(parameter_count(model), 2'000'000'000'000);
}

TEST(BadModel, HasExpertsWithoutTheirNumbers) {
  EXPECT_THAT(
      load("{family: gpt, layers: 2, hidden: 64, heads: 4, vocab: 10, experts: {}}").messages,
      ElementsAre("model.experts.count: is required, but not given",
                  "model.experts.ffn_hidden: is not given: 256, the model's ffn_hidden (give ffn_hidden)",
                  "model.experts.top_k: is required, but not given"));
  EXPECT_THAT(load("{family: gpt, layers: 2, hidden: 64, heads: 4, vocab: 10, experts: 8}").messages,
              ElementsAre("model.experts: expected a mapping, found '8'"));
}

TEST(BadModel, SendsATokenToMoreExpertsThanThereAre) {
  EXPECT_THAT(load("{family: gpt, layers: 2, hidden: 64, heads: 4, vocab: 10, experts: {count: 8, top_k: 9, "
                   "ffn_hidden: 1}}")
                  .messages,
              ElementsAre("model.experts.top_k: 9 is more than experts.count = 8 (use 1 to 8)"));
}

TEST(BadModel, GroupsItsExpertsUnevenlyOrTooNarrowly) {
  EXPECT_THAT(load(with_experts("groups: 3")).messages,
              ElementsAre("model.experts.groups: 3 does not divide experts.count = 8 (groups are of one "
                          "size: use a number that divides it)"));
  EXPECT_THAT(load(with_experts("groups: 2, top_groups: 4")).messages,
              ElementsAre("model.experts.top_groups: 4 is more than experts.groups = 2 (use 1 to 2)"));
  EXPECT_THAT(load(with_experts("groups: 8, top_groups: 1")).messages,
              ElementsAre("model.experts.top_groups: 1 × 1 experts to choose from are fewer than top_k = 2 "
                          "(use at least 2)"));
  EXPECT_THAT(load(with_experts("top_groups: 1")).messages,
              ElementsAre("model.experts.top_groups: chooses among groups, but there are none (give groups, "
                          "or leave this out)"));
}

TEST(BadModel, HasNoLayerWithExperts) {
  EXPECT_THAT(
      load(with_experts("first_dense_layers: 4")).messages,
      ElementsAre("model.experts.first_dense_layers: 4 leaves no layer with experts: the model has 4 (use "
                  "at most 3, or leave experts out)"));
  EXPECT_THAT(
      load(with_experts("dense_layers: [0, 1, 2, 3]")).messages,
      ElementsAre("model.experts.dense_layers: names all 4 layers of the model (leave a layer with experts, "
                  "or leave experts out)"));
}

TEST(BadModel, NamesItsDenseLayersInTwoWays) {
  EXPECT_THAT(
      load(with_experts("first_dense_layers: 1, dense_layers: [0]")).messages,
      ElementsAre("model.experts.first_dense_layers: stands beside dense_layers, which says the same thing "
                  "(keep one of the two)"));
}

TEST(BadModel, NamesDenseLayersThatAreNotThereOrTwiceOrOutOfOrder) {
  const std::string order = " (name each layer once, in ascending order, from 0)";
  EXPECT_THAT(load(with_experts("dense_layers: [0, 4]")).messages,
              ElementsAre("model.experts.dense_layers.1: 4 is more than 3, the largest allowed"));
  EXPECT_THAT(load(with_experts("dense_layers: [1, 0]")).messages,
              ElementsAre("model.experts.dense_layers: 0 stands behind 1" + order));
  EXPECT_THAT(load(with_experts("dense_layers: [1, 1]")).messages,
              ElementsAre("model.experts.dense_layers: 1 stands behind 1" + order));
}

TEST(BadModel, DescribesSharedExpertsThatItHasNot) {
  EXPECT_THAT(
      load(with_experts("shared_ffn_hidden: 32, shared_gate: true")).messages,
      ElementsAre("model.experts.shared_ffn_hidden: is the width of shared experts, but there are none (give "
                  "shared, or leave this out)",
                  "model.experts.shared_gate: gates the output of shared experts, but there are none (give "
                  "shared, or leave this out)"));
}

TEST(BadModel, BalancesItsExpertsInAnImpossibleWay) {
  EXPECT_THAT(
      load(with_experts("capacity_factor: 0, imbalance: 0.9")).messages,
      ElementsAre("model.experts.capacity_factor: is not above 0 (leave it out: no token is dropped then)",
                  "model.experts.imbalance: 0.9 is less than 1, the smallest allowed"));
  EXPECT_THAT(load(with_experts("capacity_factor: 9, imbalance: 8.5")).messages,
              ElementsAre("model.experts.capacity_factor: 9 is more than 4, the largest allowed",
                          "model.experts.imbalance: 8.5 is more than 4, the largest allowed"));
  EXPECT_THAT(
      load(with_experts("pad_to_capacity: true")).messages,
      ElementsAre("model.experts.pad_to_capacity: pads experts to a capacity, but there is none (give "
                  "capacity_factor, or leave this out)"));
}

TEST(BadModel, ContradictsItsLatentAttention) {
  EXPECT_THAT(
      load("{family: llama, layers: 2, hidden: 64, heads: 4, kv_heads: 2, head_size: 16, ffn_hidden: 96, "
           "vocab: 10,"
           " qkv_bias: true, qk_norm: true,"
           " latent_attention: {kv_rank: 16, nope_head_size: 8, rope_head_size: 4, value_head_size: 10}}")
          .messages,
      ElementsAre(
          "model.kv_heads: 2 contradicts latent_attention, which expands keys and values to all heads: 4 "
          "(leave kv_heads out)",
          "model.head_size: 16 contradicts latent_attention, where nope_head_size + rope_head_size is 12 "
          "(leave head_size out)",
          "model.qkv_bias: latent attention projects Q, K and V without biases (leave qkv_bias out)",
          "model.qk_norm: latent attention has norms of its own, on the compressed vectors (leave qk_norm "
          "out)"));
}

TEST(BadModel, HasLatentAttentionWithoutItsNumbers) {
  EXPECT_THAT(load("{family: gpt, layers: 2, hidden: 64, heads: 4, head_size: 3, vocab: 10,"
                   " latent_attention: {rank: 4}}")
                  .messages,
              ElementsAre("model.latent_attention.kv_rank: is required, but not given",
                          "model.latent_attention.nope_head_size: is required, but not given",
                          "model.latent_attention.rope_head_size: is required, but not given",
                          "model.latent_attention.value_head_size: is required, but not given",
                          "model.latent_attention.rank: is not a known key (did you mean 'query_rank' or "
                          "'kv_rank'?)"));
}

TEST(BadModel, IsLargerThanOurIntegers) {
  const std::string hint = ", more than 1e+15 (check layers, hidden, heads, ffn_hidden, vocab and experts)";
  EXPECT_THAT(load("{family: gpt, layers: 1000000, hidden: 1000000, heads: 1000, vocab: 10}").messages,
              ElementsAre("model.layers: the model would have about 1.2e+19 parameters" + hint));
  EXPECT_THAT(
      load("{family: llama, layers: 1, hidden: 1000000000, heads: 1, vocab: 10, experts: {count: 1000000000,"
           " top_k: 1, ffn_hidden: 1000000000, shared: 1000000000}}")
          .messages,
      ElementsAre("model.layers: the model would have about 6.0e+27 parameters" + hint));
  EXPECT_THAT(
      load("{family: llama, layers: 1, hidden: 1000000000, heads: 1, head_size: 1, ffn_hidden: 1, vocab: 10,"
           " mtp_layers: 1}")
          .messages,
      ElementsAre("model.layers: the model would have about 2.0e+18 parameters" + hint));
  EXPECT_THAT(load("{family: gpt, layers: 1000000001, hidden: 64, heads: 4, vocab: 10}").messages,
              ElementsAre("model.layers: 1000000001 is more than 1000000, the largest allowed"));
}

// Answers at once, although 10^9 numbers might divide it.
TEST(BadModel, IsToldTheDivisorsOfAHugePrime) {
  EXPECT_THAT(
      load("{family: gpt, layers: 1, hidden: 10, heads: 999999937, kv_heads: 2, head_size: 1, vocab: 10}")
          .messages,
      ElementsAre("model.kv_heads: 2 does not divide heads = 999999937 (use 1 or 999999937)"));
}

TEST(BadModel, IsToldTheFirstSixteenDivisors) {
  EXPECT_THAT(
      load("{family: gpt, layers: 1, hidden: 720, heads: 720, kv_heads: 7, vocab: 10}").messages,
      ElementsAre("model.kv_heads: 7 does not divide heads = 720 (use 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, "
                  "16, 18, 20, 24 or 30)"));
}

TEST(BadModel, HasStageListsThatDisagree) {
  EXPECT_THAT(
      load(
          "{family: stages, forward: [1 ms, 1 ms], input_gradient: [1 ms, 1 ms, 1 ms], weight_gradient: 1 ms,"
          " gradient: []}")
          .messages,
      ElementsAre(
          "model.input_gradient: has 3 entries, forward has 2 (give every list one entry per stage, or "
          "one for all)",
          "model.gradient: has no entry (give one entry per stage, or one for all)"));
}

}  // namespace
}  // namespace stagecraft
