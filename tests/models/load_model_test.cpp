// What a `model:` mapping may say, and what we answer when it says something else. Messages are goldens.
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
                                    .dropout = false}));
}

TEST(LoadModel, TakesCostsOfAbstractStages) {
  const Loaded loaded = load(
      "{family: stages, forward: [1 ms, 2 ms], input_gradient: 3 ms, weight_gradient: 0, activation: 16 MiB,"
      " gradient: [1 GiB, 2 GiB]}");
  EXPECT_THAT(loaded.messages, ElementsAre());
  EXPECT_EQ(std::get<StagesSpec>(loaded.model), (StagesSpec{.name = "stages",
                                                            .forward = {1ms, 2ms},
                                                            .input_gradient = {3ms},
                                                            .weight_gradient = {0ms},
                                                            .activation = {16_MiB},
                                                            .gradient = {1_GiB, 2_GiB}}));
}

TEST(LoadModel, LetsAbstractStagesHaveNoSizes) {
  const Loaded loaded = load("{family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}");
  EXPECT_THAT(loaded.messages, ElementsAre());
  EXPECT_EQ(std::get<StagesSpec>(loaded.model).activation, std::vector<Bytes>{0_B});
  EXPECT_EQ(std::get<StagesSpec>(loaded.model).gradient, std::vector<Bytes>{0_B});
}

TEST(BadModel, NeedsAFamilyBeforeAnythingElseMakesSense) {
  EXPECT_THAT(load("{layers: 2, hidden: 64}").messages,
              ElementsAre("model.family: is required, but not given"));
  EXPECT_THAT(load("{family: lama, layers: 2}").messages,
              ElementsAre("model.family: 'lama' is not known here (did you mean 'llama'?)"));
}

TEST(BadModel, MissesWhatHasNoDefault) {
  EXPECT_THAT(
      load("{family: llama}").messages,
      ElementsAre("model.ffn_hidden: is required, but not given", "model.heads: is required, but not given",
                  "model.hidden: is required, but not given", "model.layers: is required, but not given",
                  "model.vocab: is required, but not given"));
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

TEST(BadModel, IsAMixtureOfExperts) {
  EXPECT_THAT(load("{family: gpt, layers: 2, hidden: 64, heads: 4, vocab: 10, experts: {count: 8}}").messages,
              ElementsAre("model.experts: not supported yet (describe a dense model: leave experts out)"));
}

TEST(BadModel, IsLargerThanOurIntegers) {
  EXPECT_THAT(
      load("{family: gpt, layers: 1000000000, hidden: 1000000, heads: 1000, vocab: 10}").messages,
      ElementsAre(
          "model.layers: the model would have about 1.2e+22 parameters, more than 1e+15 (check layers, "
          "hidden, heads, ffn_hidden and vocab)"));
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
