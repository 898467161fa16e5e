// Parameter counts, exact. The values of whole models are those of the papers' tables worked out to the last
// digit: 12 l h^2 + 13 l h + V h + s h + 2 h for a GPT, l (2haq + 2hkq + 3hf + 2h) + 2 V h + h for a Llama.
#include <gtest/gtest.h>

#include "models/model_spec.hpp"
#include "models/operators.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

TEST(ParameterCount, OfGptsIsExact) {
  EXPECT_EQ(parameter_count(zoo::gpt3_175b()), 174'615'846'912);
  EXPECT_EQ(parameter_count(zoo::gpt_22b()), 22'074'273'792);
  EXPECT_EQ(parameter_count(zoo::gpt_530b()), 529'600'819'200);
  EXPECT_EQ(parameter_count(zoo::gpt_1t()), 1'008'038'758'400);
}

TEST(ParameterCount, OfLlamasIsExact) {
  EXPECT_EQ(parameter_count(zoo::llama({32, 4096, 11008, 32, 32, 32000})), 6'738'415'616);
  EXPECT_EQ(parameter_count(zoo::llama({40, 5120, 13824, 40, 40, 32000})), 13'015'864'320);
  EXPECT_EQ(parameter_count(zoo::llama({80, 8192, 28672, 64, 8, 32000})), 68'976'648'192);
  EXPECT_EQ(parameter_count(zoo::llama3_8b()), 8'030'261'248);
  EXPECT_EQ(parameter_count(zoo::llama3_70b()), 70'553'706'496);
  EXPECT_EQ(parameter_count(zoo::llama31_405b()), 405'853'388'800);
}

// Narayanan et al., eq. 2: P = 12 l h^2 (1 + 13/12h + (V + s)/12lh). It leaves out the final norm.
TEST(ParameterCount, IsEquationTwoPlusTheFinalNorm) {
  const TransformerSpec model = zoo::gpt3_175b();
  const std::int64_t l = model.layers, h = model.hidden;
  EXPECT_EQ(parameter_count(model), 12 * l * h * h + 13 * l * h + (51200 + 2048) * h + 2 * h);
}

TEST(ParameterCount, CountsTiedEmbeddingsOnce) {
  TransformerSpec model = zoo::gpt_22b();
  const std::int64_t tied = parameter_count(model);
  model.tied_embeddings = false;
  EXPECT_EQ(parameter_count(model) - tied, model.vocab * model.hidden);
}

// 226 576 896 per layer of GPT-3 at t = 8, and 2 822 731 776 on a first stage of 12 layers.
TEST(LayerParameters, OfAGptAreTwelveSquaresAndSevenRowsSplitAndSixRowsReplicated) {
  const TransformerSpec model = zoo::gpt3_175b();
  const std::int64_t h = model.hidden;
  for (const std::int64_t t : {1, 2, 4, 8}) {
    SCOPED_TRACE(t);
    EXPECT_EQ(layer_parameters(model, LayerKind::kDense, {.tensor = t}).all(),
              (12 * h * h + 7 * h) / t + 6 * h);
  }
  EXPECT_EQ(layer_parameters(model, LayerKind::kDense, {.tensor = 8}).all(), 226'576'896);
  EXPECT_EQ(embedding_parameters(model, 8), 78'643'200 + 25'165'824);
  EXPECT_EQ(
      12 * layer_parameters(model, LayerKind::kDense, {.tensor = 8}).all() + embedding_parameters(model, 8),
      2'822'731'776);
}

// Llama-3 8B has 8 key/value heads of 128: over 32 ranks each rank still holds one.
TEST(LayerParameters, ReplicateKeyValueHeadsBeyondTheirNumber) {
  const TransformerSpec model = zoo::llama3_8b();
  const std::int64_t h = 4096, f = 14336;
  const auto expected = [&](std::int64_t query, std::int64_t kv, std::int64_t ffn) {
    return h * (2 * query + 2 * kv + 3 * ffn) + 2 * h;
  };
  EXPECT_EQ(layer_parameters(model, LayerKind::kDense, {.tensor = 8}).all(), expected(512, 128, f / 8));
  EXPECT_EQ(layer_parameters(model, LayerKind::kDense, {.tensor = 32}).all(), expected(128, 128, f / 32));
}

TEST(HeadParameters, HoldTheMatrixEvenIfItIsTied) {
  const TransformerSpec model = zoo::gpt_22b();
  EXPECT_EQ(head_parameters(model, 8), 51200 / 8 * 6144 + 2 * 6144);
}

TEST(HeadParameters, GiveTheFullestRankItsShareOfAnUnevenVocabulary) {
  TransformerSpec model = zoo::gpt_22b();
  model.vocab = 50257;  // 8 * 6282 + 1
  EXPECT_EQ(head_parameters(model, 8), 6283 * 6144 + 2 * 6144);
}

}  // namespace
}  // namespace stagecraft
