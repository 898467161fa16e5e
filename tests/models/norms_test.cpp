// Norms before the blocks, behind them or both, norms over the whole width of Q and K, and gates of GELU: what they count,
// run and keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/compute_cost.hpp"
#include "models/memory.hpp"
#include "models/operators.hpp"
#include "tests/calibrate/shipped_profiles.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/read_llama.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace op_lists;
using testing::ElementsAre;

TransformerSpec with_norms(TransformerSpec model, Norms norms) {
  model.norms = norms;
  return model;
}

TransformerSpec llama(Norms norms) {
  return with_norms(zoo::llama3_8b(), norms);
}

Names kept_names(const TransformerSpec& model, const Shard& shard, LayerKind kind = LayerKind::kDense) {
  Names list;
  for (const SavedTensor& tensor : layer_tensors(model, shard, kind)) list.push_back(tensor.name);
  return list;
}

Bytes kept(const TransformerSpec& model, const Shard& shard, LayerKind kind = LayerKind::kDense) {
  return total(layer_tensors(model, shard, kind));
}

TEST(Norms, AreBeforeTheBlocksUnlessToldOtherwise) {
  EXPECT_EQ(read_llama("qk_norm: false").model.norms, Norms::kBefore);
  EXPECT_EQ(read_llama("norms: before").model, read_llama("qk_norm: false").model);
  EXPECT_EQ(read_llama("norms: after").model.norms, Norms::kAfter);
  EXPECT_EQ(read_llama("norms: both").model.norms, Norms::kBoth);
  EXPECT_THAT(read_llama("norms: behind").messages,
              ElementsAre("model.norms: 'behind' is not known here (one of before, after, both)"));
}

TEST(QkNorm, IsOverEachHeadUnlessItIsOverTheWidth) {
  EXPECT_EQ(read_llama("biases: false").model.qk_norm, QkNorm::kNone);
  EXPECT_EQ(read_llama("qk_norm: false").model.qk_norm, QkNorm::kNone);
  EXPECT_EQ(read_llama("qk_norm: true").model.qk_norm, QkNorm::kHead);
  EXPECT_EQ(read_llama("qk_norm: True").model.qk_norm, QkNorm::kHead);
  EXPECT_EQ(read_llama("qk_norm: head").model.qk_norm, QkNorm::kHead);
  EXPECT_EQ(read_llama("qk_norm: width").model.qk_norm, QkNorm::kWidth);
  EXPECT_THAT(read_llama("qk_norm: wide").messages,
              ElementsAre("model.qk_norm: 'wide' is not known here (did you mean 'width'?)"));
}

// Four norms of h, or two; Q and K of 8 heads of 8, K of 2 of them.
TEST(Norms, AreCountedByTheirPlacesAndWidths) {
  const auto count = [](std::string_view keys) { return parameter_count(read_llama(keys).model); };
  const std::int64_t plain = count("kv_heads: 2");
  EXPECT_EQ(count("kv_heads: 2, norms: after"), plain);
  EXPECT_EQ(count("kv_heads: 2, norms: both"), plain + 6 * 2 * 64);
  EXPECT_EQ(count("kv_heads: 2, norms: both, normalization: layernorm"),
            count("kv_heads: 2, normalization: layernorm") + 6 * 4 * 64);
  EXPECT_EQ(count("kv_heads: 2, qk_norm: head"), plain + 6 * 2 * 8);
  EXPECT_EQ(count("kv_heads: 2, qk_norm: width"), plain + 6 * (8 + 2) * 8);
  EXPECT_EQ(count("kv_heads: 2, activation: geglu"), plain);
}

// OLMo 2 32B: 40 heads of queries and 8 of keys, 128 wide.
TEST(QkNorm, OverTheWidthIsSplitWithItsHeads) {
  const auto parameters = [](QkNorm norm, std::int64_t tensor) {
    TransformerSpec model = zoo::olmo2_32b();
    model.qk_norm = norm;
    return layer_parameters(model, LayerKind::kDense, {.tensor = tensor}).all();
  };
  EXPECT_EQ(parameters(QkNorm::kWidth, 1) - parameters(QkNorm::kNone, 1), 48 * 128);
  EXPECT_EQ(parameters(QkNorm::kWidth, 8) - parameters(QkNorm::kNone, 8), 6 * 128);
  EXPECT_EQ(parameters(QkNorm::kHead, 8) - parameters(QkNorm::kNone, 8), 2 * 128);
}

// A row is all heads of a token: one root mean square of 4 bytes instead of one a head, and as many weights as columns.
TEST(QkNorm, OverTheWidthRunsOnceAToken) {
  TransformerSpec model = zoo::llama3_8b();
  model.qk_norm = QkNorm::kWidth;
  const LayerOps layer = layer_operators(model, {.sequence = 1024});
  const std::int64_t q = 1024 * 4096, k = 1024 * 1024;
  EXPECT_EQ(find(layer.forward, "query norm").bytes, Bytes(4 * q + 4 * 1024));
  EXPECT_EQ(find(layer.forward, "key norm").bytes, Bytes(4 * k + 4 * 1024));
  EXPECT_EQ(find(layer.input_gradient, "query norm").bytes, Bytes(6 * q + 4 * 4096));
  EXPECT_EQ(find(layer.input_gradient, "key norm").bytes, Bytes(6 * k + 4 * 1024));
}

TEST(Norms, StandWhereTheyAreSaidToBe) {
  const Shard shard{.sequence = 1024};
  EXPECT_EQ(names(layer_operators(llama(Norms::kAfter), shard).forward),
            (Names{"qkv", "rope", "flash attention", "projection", "attention output norm", "residual add",
                   "ffn up", "activation", "ffn down", "ffn output norm", "residual add"}));
  EXPECT_EQ(names(layer_operators(llama(Norms::kBoth), shard).forward),
            (Names{"attention norm", "qkv", "rope", "flash attention", "projection", "attention output norm",
                   "residual add", "ffn norm", "ffn up", "activation", "ffn down", "ffn output norm",
                   "residual add"}));
  EXPECT_EQ(
      names(layer_operators(llama(Norms::kAfter), shard).input_gradient),
      (Names{"ffn output norm", "ffn down", "activation", "ffn up", "residual gradient",
             "attention output norm", "projection", "flash attention", "rope", "qkv", "residual gradient"}));
  EXPECT_EQ(names(layer_operators(llama(Norms::kBoth), shard).input_gradient),
            (Names{"ffn output norm", "ffn down", "activation", "ffn up", "ffn norm", "attention output norm",
                   "projection", "flash attention", "rope", "qkv", "attention norm"}));
}

// T' h elements: 4 bytes forward and 4 a token; 6 backward, and without a norm before the block 6 for the sum of both
// gradients, which a norm adds for 2.
TEST(Norms, BehindABlockReadAndWriteWhatItReturns) {
  const std::int64_t h = 4096;
  for (const std::int64_t t : {1, 8}) {
    const Shard shard{.sequence = 8192, .tensor = t, .sequence_parallel = t > 1};
    const std::int64_t rows = 8192 / t;
    for (const Norms norms : {Norms::kAfter, Norms::kBoth}) {
      const LayerOps layer = layer_operators(llama(norms), shard);
      for (const char* name : {"attention output norm", "ffn output norm"}) {
        EXPECT_EQ(find(layer.forward, name).bytes, Bytes(4 * rows * h + 4 * rows));
        EXPECT_EQ(find(layer.input_gradient, name).bytes, Bytes(6 * rows * h + 4 * h));
      }
      if (norms == Norms::kAfter)
        EXPECT_EQ(find(layer.input_gradient, "residual gradient").bytes, Bytes(6 * rows * h));
      else
        EXPECT_EQ(find(layer.input_gradient, "ffn norm").bytes, Bytes(8 * rows * h + 4 * h));
    }
  }
}

// The block's output is reduced before it is normalised: a rank has whole rows.
TEST(Norms, BehindABlockFollowItsReduction) {
  const Shard shard{.sequence = 8192, .tensor = 8, .sequence_parallel = true};
  const Names forward = names(layer_operators(llama(Norms::kAfter), shard).forward);
  const auto reduce = std::ranges::find(forward, "projection reduce");
  ASSERT_NE(reduce, forward.end());
  EXPECT_EQ(*(reduce + 1), "attention output norm");
}

// A norm before a product writes fp8 itself, one byte less; without it the residual stream is cast, 4 bytes an element.
TEST(Norms, BehindABlockWriteNoFp8) {
  const Shard shard{.sequence = 1024, .precision = Precision::kFp8};
  const std::int64_t th = 1024 * 4096;
  const Ops after = layer_operators(llama(Norms::kAfter), shard).forward;
  const Ops both = layer_operators(llama(Norms::kBoth), shard).forward;
  EXPECT_EQ(find(both, "attention norm").bytes, Bytes(3 * th + 4 * 1024));
  EXPECT_EQ(find(both, "attention output norm").bytes, Bytes(4 * th + 4 * 1024));
  EXPECT_EQ(find(after, "ffn output norm").bytes, Bytes(4 * th + 4 * 1024));
  ASSERT_EQ(after.front().name, "fp8 cast");
  EXPECT_EQ(after.front().bytes, Bytes(4 * th));
}

// 2 bytes each of T h: in place of what a norm reads the products' inputs are the residual stream itself, and what the
// blocks return is kept for the norms behind them.
TEST(LayerTensors, HoldTheOutputsOfNormalisedBlocks) {
  const Shard shard{.sequence = 8192};
  const Bytes row(2 * 8192 * 4096);
  EXPECT_EQ(kept_names(llama(Norms::kAfter), shard),
            (Names{"QKV input", "Q, K, V", "core output", "log-sum-exp", "attention output", "up input",
                   "up output", "down input", "feed-forward output"}));
  EXPECT_EQ(kept(llama(Norms::kAfter), shard), kept(llama(Norms::kBefore), shard));
  EXPECT_EQ(kept(llama(Norms::kBoth), shard), kept(llama(Norms::kBefore), shard) + 2 * row);
  const Shard eager{.sequence = 8192, .unfused = {LateFusion::kRmsNorm}};  // 4 + 2 bytes in place of 2
  EXPECT_EQ(kept(llama(Norms::kBoth), eager), kept(llama(Norms::kBefore), eager) + 6 * row);
}

TEST(LayerTensors, HoldTheOutputsOfNormalisedExperts) {
  const TransformerSpec model = with_norms(zoo::mixtral_8x7b(), Norms::kBoth);
  const Shard shard{.sequence = 4096};
  EXPECT_EQ(kept(model, shard, LayerKind::kExperts),
            kept(zoo::mixtral_8x7b(), shard, LayerKind::kExperts) + 2 * Bytes(2 * 4096 * 4096));
  EXPECT_EQ(kept(with_norms(model, Norms::kAfter), shard, LayerKind::kExperts),
            kept(zoo::mixtral_8x7b(), shard, LayerKind::kExperts));
}

TEST(Norms, AreRepeatedWhereProductsReadThem) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kSelective};
  shard.modules = RecomputeModules{RecomputeModule::kLayerNorm};
  EXPECT_EQ(names(layer_operators(llama(Norms::kBoth), shard).recompute),
            (Names{"attention norm", "ffn norm"}));
  EXPECT_TRUE(layer_operators(llama(Norms::kAfter), shard).recompute.empty());
  const Shard none{.sequence = 8192};
  EXPECT_EQ(kept(llama(Norms::kAfter), shard), kept(llama(Norms::kAfter), none));
  EXPECT_EQ(kept(llama(Norms::kBoth), none) - kept(llama(Norms::kBoth), shard), 2 * Bytes(2 * 8192 * 4096));
}

// A checkpoint around a block ends before the norm behind it, one around a layer behind that norm: its input is the last
// tensor that is kept.
TEST(Norms, BehindABlockEndAnEarlyStop) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kSelective, .recompute_stops_early = true};
  shard.modules = RecomputeModules{RecomputeModule::kSelfAttention, RecomputeModule::kMlp};
  EXPECT_EQ(names(layer_operators(llama(Norms::kAfter), shard).recompute),
            (Names{"qkv", "rope", "flash attention", "ffn up", "activation"}));
  EXPECT_THAT(kept_names(llama(Norms::kAfter), shard),
              ElementsAre("QKV input", "attention output", "up input", "feed-forward output"));
  shard.recompute = Recompute::kFull;
  const Ops again = layer_operators(llama(Norms::kAfter), shard).recompute;
  EXPECT_EQ(again.back().name, "ffn output norm");
  const RecomputedShare full{.granularity = Recompute::kFull, .stops_early = true};
  const double products = 2.0 * 8192 * (2.0 * 4096 * (4096 + 1024) + 3.0 * 4096 * 14336);
  EXPECT_EQ(hardware_flops(llama(Norms::kAfter), 1, 8192, full) - model_flops(llama(Norms::kAfter), 1, 8192),
            Flops(32 * (products + 4.0 * 8192 * 8192 * 4096)));
  EXPECT_EQ(names(layer_operators(llama(Norms::kBefore), shard).recompute).back(), "activation");
}

// Without a norm before attention, fp8 and gathered inputs leave no tensor that is the layer's input itself.
TEST(InputAmongTensors, IsWhatTheFirstOperatorReads) {
  Shard shard{.sequence = 8192};
  EXPECT_EQ(input_among_tensors(llama(Norms::kBefore), shard), "norm 1 input");
  EXPECT_EQ(input_among_tensors(llama(Norms::kAfter), shard), "QKV input");
  shard.precision = Precision::kFp8;
  EXPECT_EQ(input_among_tensors(llama(Norms::kBoth), shard), "norm 1 input");
  EXPECT_EQ(input_among_tensors(llama(Norms::kAfter), shard), "");
}

// Which function the gate has changes nothing.
TEST(Geglu, CostsAndKeepsWhatSwigluDoes) {
  TransformerSpec model = zoo::llama3_8b();
  model.activation = Activation::kGeglu;
  EXPECT_EQ(parameter_count(model), parameter_count(zoo::llama3_8b()));
  EXPECT_EQ(model_flops(model, 1, 8192), model_flops(zoo::llama3_8b(), 1, 8192));
  for (const LateFusions unfused :
       {LateFusions{}, LateFusions{LateFusion::kSwiglu}, LateFusions{LateFusion::kGelu}}) {
    const Shard shard{.sequence = 8192, .unfused = unfused};
    EXPECT_TRUE(same(layer_operators(model, shard), layer_operators(zoo::llama3_8b(), shard)));
    EXPECT_EQ(kept(model, shard), kept(zoo::llama3_8b(), shard));
  }
}

Duration time_of(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  static const HardwareProfile profile = profile_called("h100-sxm5-80gb");
  const LayerOps layer = layer_operators(model, shard, kind);
  Duration sum{};
  for (const Ops* ops : layer.each())
    for (const Op& op : *ops)
      if (op.kind != OpKind::kCollective) sum += compute_cost(profile, shard.precision, op).time;
  return sum;
}

std::vector<Shard> shards() {
  std::vector<Shard> list;
  for (const bool fused : {true, false})
    for (const Precision precision : {Precision::kBf16, Precision::kFp8})
      for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
        for (const bool sequence_parallel : {false, true})
          list.push_back(
              {.sequence = 4096,
               .tensor = 4,
               .sequence_parallel = sequence_parallel,
               .precision = precision,
               .recompute = recompute,
               .modules = {RecomputeModule::kLayerNorm, RecomputeModule::kMlp, RecomputeModule::kMoe},
               .fused_kernels = fused});
  return list;
}

// Property: four norms never keep less nor take less time than two before the blocks.
TEST(Norms, OnBothSidesAreNeverCheaper) {
  for (TransformerSpec model : {zoo::gpt3_175b(), zoo::llama3_8b(), zoo::mixtral_8x7b(), zoo::deepseek_v3()})
    for (const Shard& shard : shards())
      for (const LayerKind kind : {LayerKind::kDense, LayerKind::kExperts}) {
        if (has_experts(kind) && (!model.experts || !shard.sequence_parallel)) continue;
        if (!has_experts(kind) && model.experts && model.numbers().without_experts() == 0) continue;
        const TransformerSpec before = with_norms(model, Norms::kBefore),
                              both = with_norms(model, Norms::kBoth);
        EXPECT_GT(kept(both, shard, kind), kept(before, shard, kind));
        EXPECT_GT(time_of(both, shard, kind), time_of(before, shard, kind));
        EXPECT_GE(layer_transient(both, shard, kind).recomputed, Bytes(0));
        EXPECT_EQ(held_for_weight_gradients(both, shard, kind),
                  held_for_weight_gradients(before, shard, kind));
        const TransformerSpec after = with_norms(model, Norms::kAfter);
        EXPECT_LE(kept(after, shard, kind), kept(both, shard, kind));
        EXPECT_LE(time_of(after, shard, kind), time_of(both, shard, kind));
      }
}

}  // namespace
}  // namespace stagecraft
