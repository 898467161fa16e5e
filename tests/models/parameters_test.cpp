// Parameter counts, exact. The values of whole models are those of the papers' tables worked out to the last
// digit: 12 l h^2 + 13 l h + V h + s h + 2 h for a GPT, l (2haq + 2hkq + 3hf + 2h) + 2 V h + h for a Llama;
// with experts E (3 h f_e + h) in place of 3 h f.
#include <gtest/gtest.h>

#include <vector>

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

// The parameters of a whole layer, on one GPU.
std::int64_t layer(const TransformerSpec& model, LayerKind kind) {
  return layer_parameters(model, kind, {}).all();
}

TEST(ParameterCount, OfModelsWithBiasesOrNormsOnTheirHeadsIsExact) {
  EXPECT_EQ(parameter_count(zoo::qwen2_7b()), 7'615'616'512);
  EXPECT_EQ(layer(zoo::qwen2_7b(), LayerKind::kDense), 233'057'792);
  EXPECT_EQ(parameter_count(zoo::qwen3_0_6b()), 596'049'920);
  EXPECT_EQ(layer(zoo::qwen3_0_6b(), LayerKind::kDense), 15'730'944);
  TransformerSpec gpt2 = zoo::gpt(12, 768, 12);
  gpt2.vocab = 50257;
  gpt2.max_sequence_length = 1024;
  EXPECT_EQ(parameter_count(gpt2), 124'439'808);
  EXPECT_EQ(layer(gpt2, LayerKind::kDense), 7'087'872);
}

struct Sparse {
  TransformerSpec model;
  std::int64_t layer, all, active;
};

TEST(ParameterCount, OfMixturesOfExpertsIsExact) {
  for (const Sparse& it :
       {Sparse{zoo::mixtral_8x7b(), 1'451'270'144, 46'702'792'704, 12'879'925'248},
        Sparse{zoo::mixtral_8x22b(), 2'504'060'928, 140'630'071'296, 39'161'468'928},
        Sparse{zoo::qwen3_30b_a3b(), 623'120'640, 30'532'122'624, 3'353'032'704},
        Sparse{zoo::qwen3_235b_a22b(), 2'487'755'008, 235'093'634'560, 22'190'763'520},
        Sparse{zoo::deepseek_v3_without_mtp(), 11'507'286'016, 671'026'404'352, 37'552'282'624}}) {
    SCOPED_TRACE(it.all);
    EXPECT_EQ(layer(it.model, LayerKind::kExperts), it.layer);
    EXPECT_EQ(parameter_count(it.model), it.all);
    EXPECT_EQ(active_parameter_count(it.model), it.active);
  }
}

TEST(ParameterCount, OfDenseModelsIsActiveForEveryToken) {
  for (const TransformerSpec& model : {zoo::gpt_22b(), zoo::llama3_8b(), zoo::qwen2_7b(), zoo::qwen3_0_6b()})
    EXPECT_EQ(active_parameter_count(model), parameter_count(model));
}

// Down h (q_r + kv_r + r), up q_r a (n + r) and kv_r a (n + w), output a w h, and norms of q_r and kv_r.
TEST(LayerParameters, OfLatentAttentionAreProjectionsDownAndUpAndTwoNorms) {
  const TransformerSpec model = zoo::deepseek_v3();
  const std::int64_t h = 7168, a = 128;
  const std::int64_t latent =
      h * (1536 + 512 + 64) + 1536 * a * (128 + 64) + 512 * a * (128 + 128) + a * 128 * h + 1536 + 512;
  EXPECT_EQ(latent, 187'107'328);
  EXPECT_EQ(layer(model, LayerKind::kDense), latent + 3 * h * 18432 + 2 * h);
  EXPECT_EQ(layer(model, LayerKind::kDense), 583'483'392);
}

TEST(LayerParameters, ProjectQueriesInOneStepWithoutAQueryRank) {
  TransformerSpec model = zoo::deepseek_v3();
  const std::int64_t two_steps = layer(model, LayerKind::kDense);
  model.latent_attention->query_rank = 0;
  const std::int64_t h = 7168, queries = 128 * 192;
  EXPECT_EQ(layer(model, LayerKind::kDense) - two_steps, h * queries - 1536 * (h + queries) - 1536);
}

// One layer of the last kind, 2 h^2 and 3 h; embedding and head are those of the model.
TEST(ParameterCount, CountsALayerOfMultiTokenPrediction) {
  const TransformerSpec model = zoo::deepseek_v3();
  EXPECT_EQ(mtp_parameters(model, {}).all(), 11'610'067'968);
  EXPECT_EQ(mtp_parameters(model, {}).all(), 11'507'286'016 + 2 * 7168 * 7168 + 3 * 7168);
  EXPECT_EQ(parameter_count(model), 671'026'404'352 + 11'610'067'968);
  EXPECT_EQ(active_parameter_count(model),
            37'552'282'624 + 11'610'067'968 - 248 * 3 * std::int64_t{7168} * 2048);
}

// Qwen2-MoE's shared experts have a gate of h; GELU experts have two matrices and GPT's biases.
TEST(LayerParameters, OfExpertsFollowTheChoicesOfTheModel) {
  TransformerSpec gated = zoo::mixtral_8x7b();
  gated.experts->shared = 2;
  gated.experts->shared_ffn_hidden = 1024;
  const std::int64_t ungated = layer(gated, LayerKind::kExperts);
  EXPECT_EQ(ungated - layer(zoo::mixtral_8x7b(), LayerKind::kExperts), 3 * 4096 * 2 * 1024);
  gated.experts->shared_gate = true;
  EXPECT_EQ(layer(gated, LayerKind::kExperts) - ungated, 4096);

  TransformerSpec gelu = zoo::gpt(2, 64, 4);
  gelu.experts = ExpertsSpec{.count = 8, .top_k = 2, .ffn_hidden = 128};
  const std::int64_t attention = 4 * 64 * 64 + 3 * 64 + 64, norms = 4 * 64;
  EXPECT_EQ(layer(gelu, LayerKind::kExperts), attention + norms + 64 * 8 + 8 * (2 * 64 * 128 + 128 + 64));
}

// What every rank of t holds alike: norms, row biases, MLA's down projections, router and gate.
std::int64_t replicated(const TransformerSpec& model, LayerKind kind) {
  const std::int64_t h = model.hidden;
  const std::int64_t norms = model.norms == Norms::kBoth ? 4 : 2;
  std::int64_t sum = norms * (model.normalization == Normalization::kLayerNorm ? 2 * h : h);
  if (model.qk_norm == QkNorm::kHead) sum += 2 * model.head_size;
  if (model.biases) sum += 2 * h;
  if (const auto& latent = model.latent_attention)
    sum += h * (latent->query_rank + latent->kv_rank + latent->rope_head_size) + latent->query_rank +
           latent->kv_rank;
  if (kind == LayerKind::kExperts) sum += h * model.experts->count + (model.experts->shared_gate ? h : 0);
  return sum;
}

// Property: t ranks hold the dense part of a layer once, and t - 1 further copies of what is replicated.
TEST(LayerParameters, OfAllTensorRanksAddUpToTheLayer) {
  for (const TransformerSpec& model :
       {zoo::gpt_22b(), zoo::llama3_8b(), zoo::mixtral_8x7b(), zoo::deepseek_v3(), zoo::qwen3_0_6b(),
        zoo::qwen3_30b_a3b(), zoo::olmo2_32b(), zoo::gemma2_9b(), zoo::olmoe()}) {
    for (const LayerKind kind : {LayerKind::kDense, LayerKind::kExperts}) {
      if (kind == LayerKind::kExperts && !model.experts) continue;
      const std::int64_t whole = layer_parameters(model, kind, {}).dense;
      for (const std::int64_t t : {1, 2, 4}) {
        SCOPED_TRACE(testing::Message() << model.hidden << " t=" << t);
        EXPECT_EQ(t * layer_parameters(model, kind, {.tensor = t}).dense,
                  whole + (t - 1) * replicated(model, kind));
      }
    }
  }
}

// Property: e x et ranks hold the routed experts once, however the dense part is split.
TEST(LayerParameters, OfAllExpertRanksAddUpToTheExperts) {
  for (const TransformerSpec& model : {zoo::mixtral_8x7b(), zoo::deepseek_v3(), zoo::qwen3_235b_a22b()}) {
    const std::int64_t whole = layer_parameters(model, LayerKind::kExperts, {}).experts;
    EXPECT_EQ(whole, model.experts->count * 3 * model.hidden * model.experts->ffn_hidden);
    for (const std::int64_t e : {1, 2, 8})
      for (const std::int64_t et : {1, 2, 4})
        for (const std::int64_t t : {1, 4}) {
          SCOPED_TRACE(testing::Message() << "e=" << e << " et=" << et << " t=" << t);
          const WeightSplit split{.tensor = t, .expert = e, .expert_tensor = et};
          EXPECT_EQ(e * et * layer_parameters(model, LayerKind::kExperts, split).experts, whole);
          EXPECT_EQ(layer_parameters(model, LayerKind::kExperts, split).dense,
                    layer_parameters(model, LayerKind::kExperts, {.tensor = t}).dense);
        }
  }
}

// Property: on one GPU the parts add up to the model, whatever its layers are.
TEST(LayerParameters, AddUpToTheModel) {
  for (const TransformerSpec& model : {zoo::llama3_8b(), zoo::mixtral_8x7b(), zoo::deepseek_v3()}) {
    std::int64_t sum = embedding_parameters(model, 1) + head_parameters(model, 1);
    for (std::int64_t i = 0; i < model.layers; ++i) sum += layer(model, model.kind_of(i));
    for (std::int64_t i = 0; i < model.mtp_layers; ++i) sum += mtp_parameters(model, {}).all();
    EXPECT_EQ(parameter_count(model), sum);
  }
}

// The regressions below are figures that other estimators got wrong.

// NVIDIA-NeMo/Megatron-Bridge#3744: experts were divided by TP instead of ETP x EP.
TEST(EstimatorRegression, ExpertsAreDividedByExpertRanksAndNotByTensorRanks) {
  const TransformerSpec model = zoo::mixtral_8x7b();
  const std::int64_t experts = 8 * 3 * std::int64_t{4096} * 14336;
  EXPECT_EQ(layer_parameters(model, LayerKind::kExperts, {.tensor = 4}).experts, experts);
  EXPECT_EQ(layer_parameters(model, LayerKind::kExperts, {.tensor = 4, .expert = 8}).experts, experts / 8);
  EXPECT_EQ(
      layer_parameters(model, LayerKind::kExperts, {.tensor = 4, .expert = 2, .expert_tensor = 4}).experts,
      experts / 8);
}

// NVIDIA/Megatron-LM#1784: a mixture of experts was priced as a dense model.
TEST(EstimatorRegression, AMixtureOfExpertsIsNotADenseModel) {
  TransformerSpec dense = zoo::mixtral_8x7b();
  dense.experts.reset();
  const std::int64_t router = 4096 * 8, expert = 3 * std::int64_t{4096} * 14336;
  EXPECT_EQ(parameter_count(zoo::mixtral_8x7b()) - parameter_count(dense), 32 * (router + 7 * expert));
}

// Memory of multi-token prediction left out: 1.7 % of DeepSeek-V3, all of it on the last stage.
TEST(EstimatorRegression, MultiTokenPredictionIsSplitLikeItsLayer) {
  const TransformerSpec model = zoo::deepseek_v3();
  const WeightSplit split{.tensor = 8, .expert = 64};
  const ParameterShare inner = layer_parameters(model, LayerKind::kExperts, split),
                       all = mtp_parameters(model, split);
  EXPECT_EQ(all.experts, inner.experts);
  EXPECT_EQ(all.experts, 4 * 3 * std::int64_t{7168} * 2048);
  EXPECT_EQ(all.dense - inner.dense, 2 * 7168 * 7168 / 8 + 3 * 7168);
}

// NVIDIA-NeMo/Megatron-Bridge#5077: with an uneven pipeline every stage was given l/p layers. DeepSeek-V3
// over 16 stages: the first has four layers, three of them dense, the others their own kinds.
TEST(EstimatorRegression, AnUnevenPipelineHoldsTheLayersOfEachStage) {
  const TransformerSpec model = zoo::deepseek_v3_without_mtp();
  const std::vector<std::int64_t> stage_layers{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1};
  const std::int64_t dense = 583'483'392, sparse = 11'507'286'016;
  std::vector<std::int64_t> held;
  std::int64_t at = 0;
  for (const std::int64_t layers : stage_layers) {
    held.push_back(0);
    for (const std::int64_t end = at + layers; at < end; ++at) held.back() += layer(model, model.kind_of(at));
  }
  EXPECT_EQ(held.front(), 3 * dense + sparse);
  EXPECT_EQ(held[1], 4 * sparse);
  EXPECT_EQ(held.back(), sparse);
  std::int64_t sum = embedding_parameters(model, 1) + head_parameters(model, 1);
  for (const std::int64_t part : held) sum += part;
  EXPECT_EQ(sum, parameter_count(model));
}

}  // namespace
}  // namespace stagecraft
