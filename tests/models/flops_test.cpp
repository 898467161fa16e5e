// FLOPs of models against the closed forms of the papers and against what the operators add up to.
#include <gtest/gtest.h>

#include "models/operators.hpp"
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

// Property: what t ranks do together is what one rank does alone, with all layers and the head, forward and
// backward.
TEST(TensorParallelism, ConservesFlops) {
  for (const TransformerSpec& model : {zoo::gpt3_175b(), zoo::llama3_8b()}) {
    for (const std::int64_t t : {1, 2, 4, 8}) {
      SCOPED_TRACE(testing::Message() << model.name << " t=" << t);
      const Shard shard{.sequence = 2048, .micro_batch = 2, .tensor = t, .attention = Attention::kUnfused};
      const LayerOps layer = layer_operators(model, shard), head = head_operators(model, shard);
      const auto all = [](const LayerOps& ops) {
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
