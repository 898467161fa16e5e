// FLOPs of models against the closed forms of the papers and against what the operators add up to.
#include <gtest/gtest.h>

#include "models/operators.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

// 72 B l s h^2 (1 + share s/h + V/12lh), multiplied out so that every term is whole.
double gpt_form(const TransformerSpec& model, std::int64_t s, std::int64_t core_per_score_row) {
  const std::int64_t l = model.layers, h = model.hidden, v = model.vocab;
  return static_cast<double>(72 * l * s * h * h) + static_cast<double>(core_per_score_row * l * s * s * h) +
         static_cast<double>(6 * s * h * v);
}

// Korthikanti et al., appendix A: 72 B l s h^2 (1 + s/6h + V/12lh); 72/6 = 12.
TEST(ModelFlops, OfAGptAreTheSeventyTwoForm) {
  for (const TransformerSpec& model : {zoo::gpt_22b(), zoo::gpt3_175b(), zoo::gpt_530b(), zoo::gpt_1t()}) {
    EXPECT_EQ(model_flops(model, 1, 2048), Flops(gpt_form(model, 2048, 12)));
  }
  EXPECT_EQ(model_flops(zoo::gpt3_175b(), 1, 2048), Flops(2'204'555'173'429'248.0));
}

TEST(ModelFlops, GrowWithTheSamples) {
  EXPECT_EQ(model_flops(zoo::gpt_22b(), 4, 2048), 4.0 * model_flops(zoo::gpt_22b(), 1, 2048));
}

// 3 x (32 layers of 4 672 924 418 048 + head of 8 607 114 461 184).
TEST(ModelFlops, OfLlama3AreThreeForwards) {
  EXPECT_EQ(model_flops(zoo::llama3_8b(), 1, 8192), Flops(474'422'087'516'160.0));
}

// Training FLOPs per token at s = 8192: 5.791285e10, 4.814348e11 and 2.625425e12, attention counted dense.
// Written out: 6 (parameters without embedding and norms) + 12 l s a q.
TEST(ModelFlops, PerTokenAreSixPerWeightAndTwelvePerScoreRow) {
  for (const TransformerSpec& model : {zoo::llama3_8b(), zoo::llama3_70b(), zoo::llama31_405b()}) {
    const std::int64_t norms = (2 * model.layers + 1) * model.hidden;
    const std::int64_t weights = parameter_count(model) - model.vocab * model.hidden - norms;
    const std::int64_t per_token = 6 * weights + 12 * model.layers * 8192 * model.hidden;
    EXPECT_EQ(model_flops(model, 1, 8192), Flops(8192.0 * static_cast<double>(per_token)));
  }
  EXPECT_NEAR(model_flops(zoo::llama3_70b(), 1, 8192).count() / 8192, 4.814348e11, 1e5);
  EXPECT_NEAR(model_flops(zoo::llama31_405b(), 1, 8192).count() / 8192, 2.625425e12, 1e6);
}

// Training FLOPs per token, attention counted over the full square.
double per_token(const TransformerSpec& model, std::int64_t sequence) {
  return model_flops(model, 1, sequence).count() / static_cast<double>(sequence);
}

// 6 (parameters a token meets, without embedding and norms) + 6 l s a (d_qk + d_v).
TEST(ModelFlops, OfExpertsCountThoseThatATokenVisits) {
  for (const TransformerSpec& model : {zoo::mixtral_8x7b(), zoo::mixtral_8x22b()}) {
    const std::int64_t norms = (2 * model.layers + 1) * model.hidden;
    const std::int64_t weights = active_parameter_count(model) - model.vocab * model.hidden - norms;
    const std::int64_t token = 6 * weights + 12 * model.layers * 4096 * model.hidden;
    EXPECT_EQ(model_flops(model, 1, 4096), Flops(4096.0 * static_cast<double>(token)));
  }
  EXPECT_NEAR(per_token(zoo::mixtral_8x7b(), 4096), 8.293397e10, 1e4);
  EXPECT_NEAR(per_token(zoo::llama3_8b(), 8192), 5.791285e10, 1e4);
}

// Scores over d_qk = 192 columns of a head, values over 128; the router of 58 layers included.
TEST(ModelFlops, OfLatentAttentionCountQueriesAndValuesApart) {
  const TransformerSpec model = zoo::deepseek_v3_without_mtp();
  const std::int64_t norms = 61 * (2 * 7168 + 1536 + 512) + 7168;
  const std::int64_t weights = active_parameter_count(model) - 129280 * 7168 - norms;
  const std::int64_t token = 6 * weights + 6 * 61 * std::int64_t{4096} * 128 * (192 + 128);
  EXPECT_EQ(model_flops(model, 1, 4096), Flops(4096.0 * static_cast<double>(token)));
  EXPECT_NEAR(per_token(model, 4096), 2.811522e11, 1e5);
}

// Its layer, its projection [h, 2h], and the head once more.
TEST(ModelFlops, OfMultiTokenPredictionAreALayerAProjectionAndAHead) {
  const TransformerSpec with = zoo::deepseek_v3(), without = zoo::deepseek_v3_without_mtp();
  TransformerSpec deeper = without;
  ++deeper.layers;
  const double projection = 6.0 * 2 * 7168 * 7168, head = 6.0 * 7168 * 129280;
  EXPECT_EQ(model_flops(with, 1, 4096) - model_flops(deeper, 1, 4096), Flops(4096 * (projection + head)));
}

TEST(ModelFlops, OfSharedExpertsAndTheirGateAreEveryTokens) {
  TransformerSpec shared = zoo::mixtral_8x7b();
  shared.experts->shared = 2;
  shared.experts->shared_ffn_hidden = 1024;
  shared.experts->shared_gate = true;
  EXPECT_EQ(model_flops(shared, 1, 4096) - model_flops(zoo::mixtral_8x7b(), 1, 4096),
            Flops(6.0 * 4096 * 32 * (3.0 * 4096 * 2048 + 4096)));
}

// Half the copies are dropped: half of the experts' work is left, that of all else stays.
TEST(ModelFlops, CountOfDroppedTokensNoExperts) {
  TransformerSpec model = zoo::mixtral_8x7b();
  const double whole = model_flops(model, 1, 4096).count();
  model.experts->capacity_factor = 0.5;
  const double experts = 3.0 * 2 * 32 * 4096 * 2 * (3.0 * 4096 * 14336);
  EXPECT_DOUBLE_EQ(whole - model_flops(model, 1, 4096).count(), experts / 2);
  EXPECT_DOUBLE_EQ(hardware_flops(zoo::mixtral_8x7b(), 1, 4096, {.granularity = Recompute::kFull}).count() -
                       hardware_flops(model, 1, 4096, {.granularity = Recompute::kFull}).count(),
                   experts / 2 * 4 / 3);
}

// Balance moves time, and padding is nobody's work.
TEST(ModelFlops, IgnoreImbalanceAndPadding) {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.experts->imbalance = 1.5;
  model.experts->capacity_factor = 1.25;
  model.experts->pad_to_capacity = true;
  EXPECT_EQ(model_flops(model, 1, 4096), model_flops(zoo::mixtral_8x7b(), 1, 4096));
}

TEST(HardwareFlops, AreTheModelsWithoutRecompute) {
  EXPECT_EQ(hardware_flops(zoo::gpt_22b(), 2, 2048, {.granularity = Recompute::kNone}),
            model_flops(zoo::gpt_22b(), 2, 2048));
}

// Narayanan et al., section 5.1: 96 B l s h^2 (1 + s/6h + V/16lh); 96/6 = 16, 96/16 = 6.
TEST(HardwareFlops, OfAFullyRecomputedGptAreTheNinetySixForm) {
  const TransformerSpec model = zoo::gpt3_175b();
  const double l = 96, h = 12288, s = 2048, v = 51200;
  EXPECT_EQ(hardware_flops(model, 1, 2048, {.granularity = Recompute::kFull}),
            Flops(96 * l * s * h * h + 16 * l * s * s * h + 6 * s * h * v));
  EXPECT_NEAR(hardware_flops(model, 1, 2048, {.granularity = Recompute::kFull}).count(), 2.936830e15, 1e9);
}

// Korthikanti et al., appendix A: 72 B l s h^2 (1 + s/3h + V/12lh); 72/3 = 24.
TEST(HardwareFlops, OfSelectiveRecomputeFollowThePapersConvention) {
  const TransformerSpec model = zoo::gpt3_175b();
  EXPECT_EQ(hardware_flops(model, 1, 2048, {.granularity = Recompute::kSelective}),
            Flops(gpt_form(model, 2048, 24)));
  EXPECT_NEAR(hardware_flops(model, 1, 2048, {.granularity = Recompute::kSelective}).count(), 2.263929e15,
              1e9);
}

// FLOPs that selective recompute of `modules` repeats, of one sample of 4096 tokens.
double repeated(const TransformerSpec& model, RecomputeModules modules) {
  const Flops hardware =
      hardware_flops(model, 1, 4096, {.granularity = Recompute::kSelective, .modules = modules});
  return (hardware - model_flops(model, 1, 4096)).count();
}

double repeated(const TransformerSpec& model, RecomputeModule module) {
  return repeated(model, RecomputeModules{module});
}

// DeepSeek-V3: 3 dense layers of width 18432; 58 of experts and one of multi-token prediction, 8 x 2048
// routed and 2048 shared.
TEST(HardwareFlops, OfSelectiveRecomputeAddTheForwardOfEachModuleOnce) {
  using enum RecomputeModule;
  const TransformerSpec model = zoo::deepseek_v3();
  const double two = 2.0 * 4096, h = 7168, shared = 3 * h * 2048;
  EXPECT_EQ(repeated(model, RecomputeModules()), 0);
  EXPECT_EQ(repeated(model, kMlp), two * 3 * (3 * h * 18432));
  EXPECT_EQ(repeated(model, kSharedExperts), two * 59 * shared);
  EXPECT_EQ(repeated(model, kMoe), two * 59 * (h * 256 + 8 * 3 * h * 2048 + shared));
  EXPECT_EQ(repeated(model, kLatentUp), two * 62 * (1536.0 * 128 * 192 + 512.0 * 128 * 256));
  const double latent = 1536.0 * h + 576.0 * h + 128.0 * 128 * h;  // down to Q, to K and V, and back from V
  EXPECT_EQ(repeated(model, kSelfAttention),
            repeated(model, kLatentUp) + repeated(model, kCoreAttention) / 3 + two * 62 * latent);
  EXPECT_EQ(repeated(model, kLayerNorm), 0);
  EXPECT_EQ(repeated(model, kMoeActivation), 0);
}

// A flash core that runs again counts what it does, not by the convention of unfused ones.
TEST(HardwareFlops, OfAFlashCoreCountItOnce) {
  const TransformerSpec model = zoo::llama3_8b();
  const Flops hardware =
      hardware_flops(model, 1, 4096, {.granularity = Recompute::kSelective, .flash_core = true});
  EXPECT_EQ((hardware - model_flops(model, 1, 4096)).count(),
            repeated(model, RecomputeModule::kCoreAttention) / 3);
}

// Llama-3 8B, a layer: keys of 1024 columns, the projection's 4096, an up of 14336, all from 4096.
TEST(HardwareFlops, OfRecomputeByOperatorRepeatTheSecondOfEachTwoProducts) {
  const TransformerSpec model = zoo::llama3_8b();
  const Flops again = hardware_flops(model, 1, 8192,
                                     {.granularity = Recompute::kSelective,
                                      .modules = RecomputeModules{RecomputeModule::kEverySecondProduct}}) -
                      model_flops(model, 1, 8192);
  EXPECT_EQ(again, Flops(2.0 * 32 * 8192 * 4096 * (4096 + 1024 + 14336)));
}

// Mixtral's router of 8 rows and the gates and ups of its two experts beside q and v.
TEST(HardwareFlops, OfRecomputeByOperatorRepeatExpertsUpToTheirActivation) {
  EXPECT_EQ(repeated(zoo::mixtral_8x7b(), RecomputeModule::kEverySecondProduct),
            2.0 * 32 * 4096 * 4096 * (4096 + 1024 + 8 + 2 * 2 * 14336));
}

TEST(HardwareFlops, AddUpOverModules) {
  using enum RecomputeModule;
  const TransformerSpec model = zoo::deepseek_v3();
  EXPECT_EQ(repeated(model, RecomputeModules{kMlp, kLatentUp, kLayerNorm}),
            repeated(model, kMlp) + repeated(model, kLatentUp));
  EXPECT_EQ(repeated(model, RecomputeModules{kMoe, kSharedExperts}), repeated(model, kMoe));
}

TEST(HardwareFlops, OfModulesThatAModelHasNotAreTheModels) {
  using enum RecomputeModule;
  for (const RecomputeModule module : {kMoe, kMoeActivation, kSharedExperts, kLatentUp})
    EXPECT_EQ(repeated(zoo::llama3_8b(), module), 0);
  EXPECT_EQ(repeated(zoo::mixtral_8x7b(), kMlp), 0);
}

// All but the heads runs again: four forwards of layers and projection, three of each of the two heads.
TEST(HardwareFlops, OfFullRecomputeRepeatTheLayersOfMultiTokenPrediction) {
  const TransformerSpec model = zoo::deepseek_v3();
  const double forward = model_flops(model, 1, 4096).count() / 3, heads = 2 * 2.0 * 4096 * 7168 * 129280;
  EXPECT_EQ(hardware_flops(model, 1, 4096, {.granularity = Recompute::kFull}),
            Flops(4 * (forward - heads) + 3 * heads));
}

// PyTorch's checkpoints end with the last product that is read again: 32 layers of 4096 x 14336 less, and of
// attention alone 4096 x 4096.
TEST(HardwareFlops, LeaveOutTheLastProductWhereRecomputeStopsEarly) {
  const auto less = [](RecomputedShare recompute) {
    const Flops whole = hardware_flops(zoo::llama3_8b(), 1, 4096, recompute);
    recompute.stops_early = true;
    return (whole - hardware_flops(zoo::llama3_8b(), 1, 4096, recompute)).count() / (2.0 * 4096 * 32 * 4096);
  };
  EXPECT_NEAR(less({.granularity = Recompute::kFull}), 14336, 1e-6);
  EXPECT_NEAR(less({.granularity = Recompute::kSelective, .modules = {RecomputeModule::kMlp}}), 14336, 1e-6);
  EXPECT_NEAR(less({.granularity = Recompute::kSelective, .modules = {RecomputeModule::kSelfAttention}}),
              4096, 1e-6);
}

// Blocks repeat layers of one kind and not of another: a dense one of DeepSeek-V3 is 2 * 4096 * (its matrices)
// and its core, and nothing of multi-token prediction.
TEST(HardwareFlops, OfFullRecomputeCountTheLayersThatAreRepeated) {
  const TransformerSpec model = zoo::deepseek_v3();
  const auto extra = [&](const LayerCounts& layers) {
    return hardware_flops(model, 1, 4096, {.granularity = Recompute::kFull, .layers = layers}).count() -
           model_flops(model, 1, 4096).count();
  };
  const double attention =
      2.0 * 4096 *
          (7168 * (1536 + 512 + 64) + 1536 * 128 * (128 + 64) + 512 * 128 * (128 + 128) + 128 * 128 * 7168) +
      2.0 * 4096 * 4096 * 128 * (128 + 64 + 128);
  const double dense = attention + 2.0 * 4096 * 3 * 7168 * 18432;
  const double experts = attention + 2.0 * 4096 * (7168 * 256 + 9 * 3 * 7168 * 2048);
  EXPECT_NEAR(extra({.layers = {.dense = 1}}) / dense, 1, 1e-12);
  EXPECT_NEAR(extra({.layers = {.experts = 1}}) / experts, 1, 1e-12);
  EXPECT_NEAR(extra({.layers = {.dense = 2, .experts = 3}}) / (2 * dense + 3 * experts), 1, 1e-12);
  EXPECT_NEAR(extra({.predictions = 1}) / (experts + 2.0 * 4096 * 2 * 7168 * 7168), 1, 1e-12);
  EXPECT_EQ(extra({}), 0);
}

// Property: what t ranks do together is what one rank does alone, with all layers and the head, forward and
// backward.
TEST(TensorParallelism, ConservesFlops) {
  for (const TransformerSpec& model : {zoo::gpt3_175b(), zoo::llama3_8b()}) {
    for (const std::int64_t t : {1, 2, 4, 8}) {
      SCOPED_TRACE(testing::Message() << model.name << " t=" << t);
      const Shard shard{.sequence = 2048, .micro_batch = 2, .tensor = t, .attention = Attention::kUnfused};
      const LayerOps layer = layer_operators(model, shard), head = head_operators(model, shard);
      const auto all = [](const LayerOps& ops) {
        using op_lists::total_flops;
        return total_flops(ops.forward) + total_flops(ops.input_gradient) + total_flops(ops.weight_gradient);
      };
      const Flops one_rank = static_cast<double>(model.layers) * all(layer) + all(head);
      EXPECT_EQ(static_cast<double>(t) * one_rank, model_flops(model, 2, 2048));
    }
  }
}

// 8 key/value heads over 16 ranks: each rank keeps a whole head, so K and V cost twice.
TEST(TensorParallelism, RepeatsKeyAndValueProjectionsBeyondTheirHeads) {
  const TransformerSpec model = zoo::llama3_8b();
  const auto qkv = [&](std::int64_t t) {
    return layer_operators(model, {.sequence = 1024, .tensor = t}).forward[1].flops;
  };
  const double h = 4096, tokens = 1024, q = 128;
  EXPECT_EQ(16.0 * qkv(16) - 8.0 * qkv(8), Flops(2 * tokens * h * 8 * 2 * q));
}

}  // namespace
}  // namespace stagecraft
