// Attention over the last tokens alone: which layers have it, what it computes, what it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/attention_operators.hpp"
#include "models/compute_cost.hpp"
#include "tests/calibrate/shipped_profiles.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/read_llama.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace op_lists;
using testing::ElementsAre;

TransformerSpec windowed(TransformerSpec model, std::int64_t tokens,
                         std::vector<std::int64_t> full_layers = {}) {
  model.sliding_window = {.tokens = tokens, .full_layers = std::move(full_layers)};
  return model;
}

TEST(SlidingWindow, IsOfAllLayersButThoseThatAreNamed) {
  EXPECT_EQ(read_llama("sliding_window: {tokens: 16}").model.sliding_window,
            (SlidingWindowSpec{.tokens = 16, .full_layers = {}}));
  EXPECT_EQ(read_llama("sliding_window: {tokens: 16, full_every: 2}").model.sliding_window,
            (SlidingWindowSpec{.tokens = 16, .full_layers = {1, 3, 5}}));
  EXPECT_EQ(read_llama("sliding_window: {tokens: 16, full_every: 4}").model.sliding_window,
            (SlidingWindowSpec{.tokens = 16, .full_layers = {3}}));
  EXPECT_EQ(read_llama("sliding_window: {tokens: 16, full_layers: [0, 5]}").model.sliding_window,
            (SlidingWindowSpec{.tokens = 16, .full_layers = {0, 5}}));
}

TEST(BadSlidingWindow, IsRefusedWithAWayOut) {
  EXPECT_THAT(read_llama("sliding_window: {tokens: 0}").messages,
              ElementsAre("model.sliding_window.tokens: 0 is less than 1, the smallest allowed"));
  EXPECT_THAT(read_llama("sliding_window: {full_every: 2}").messages,
              ElementsAre("model.sliding_window.tokens: is required, but not given"));
  EXPECT_THAT(read_llama("sliding_window: {tokens: 16, full_every: 1}").messages,
              ElementsAre("model.sliding_window.full_every: 1 is less than 2, the smallest allowed"));
  EXPECT_THAT(
      read_llama("sliding_window: {tokens: 16, full_layers: [0, 1, 2, 3, 4, 5]}").messages,
      ElementsAre("model.sliding_window.full_layers: names all 6 layers of the model (leave a layer with "
                  "the window, or leave sliding_window out)"));
  EXPECT_THAT(read_llama("sliding_window: {tokens: 16, full_every: 2, full_layers: [1]}").messages,
              ElementsAre("model.sliding_window.full_every: stands beside full_layers, which says the same "
                          "thing (keep one of the two)"));
  EXPECT_THAT(read_llama("sliding_window: {tokens: 16, full_layers: [2, 1]}").messages,
              ElementsAre("model.sliding_window.full_layers: 1 stands behind 2 (name each layer once, in "
                          "ascending order, from 0)"));
  EXPECT_THAT(
      read_llama(
          "sliding_window: {tokens: 16}, latent_attention: {kv_rank: 8, nope_head_size: 8, rope_head_size: "
          "8, value_head_size: 8}")
          .messages,
      ElementsAre("model.sliding_window: no model with latent attention has one (leave sliding_window out)"));
}

// Property: layers by kind add up over any cut of the model, and each layer has the kind that both lists say.
TEST(LayerNumbers, CountEveryLayerOnceWhateverListsSayOfIt) {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.layers = 12;
  for (const auto& dense : std::vector<std::vector<std::int64_t>>{{}, {0}, {0, 1, 5}, {2, 4, 6, 8, 10}})
    for (const auto& full :
         std::vector<std::vector<std::int64_t>>{{}, {11}, {1, 3, 5, 7, 9, 11}, {0, 2, 4, 5}}) {
      model.experts->dense_layers = dense;
      model.sliding_window = {.tokens = 128, .full_layers = full};
      LayerNumbers sum;
      for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        const LayerKind kind = model.kind_of(layer);
        EXPECT_EQ(has_experts(kind), !std::ranges::binary_search(dense, layer)) << layer;
        EXPECT_EQ(in_window(kind), !std::ranges::binary_search(full, layer)) << layer;
        ++sum[kind];
      }
      EXPECT_EQ(model.numbers(), sum);
      EXPECT_EQ(sum.all(), 12);
      EXPECT_EQ(sum.with_experts(), 12 - static_cast<std::int64_t>(dense.size()));
      EXPECT_EQ(sum.by_memory(),
                (LayerNumbers{.dense = sum.without_experts(), .experts = sum.with_experts()}));
      LayerNumbers pieces = model.layers_between(0, 5);
      pieces += model.layers_between(5, 6);
      pieces += model.layers_between(6, 12);
      EXPECT_EQ(pieces, sum);
    }
}

// Property: first and last layers in 16 bit are the same layers otherwise, over any cut of the model.
TEST(LayerNumbers, TellLayersThatStayInSixteenBitApart) {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.layers = 12;
  model.experts->dense_layers = {0, 1, 5};
  model.sliding_window = {.tokens = 128, .full_layers = {1, 3, 11}};
  const TransformerSpec plain = model;
  for (std::int64_t first = 0; first <= 12; ++first)
    for (std::int64_t last = 0; first + last <= 12; ++last) {
      SCOPED_TRACE(testing::Message() << first << " and " << last);
      model.sixteen_bit = {.first = first, .last = last};
      LayerNumbers sum;
      for (std::int64_t layer = 0; layer < 12; ++layer) {
        const LayerKind kind = model.kind_of(layer), before = plain.kind_of(layer);
        EXPECT_EQ(in_sixteen_bit(kind), layer < first || layer >= 12 - last) << layer;
        EXPECT_EQ(has_experts(kind), has_experts(before)) << layer;
        EXPECT_EQ(in_window(kind), in_window(before)) << layer;
        ++sum[kind];
      }
      EXPECT_EQ(model.numbers(), sum);
      LayerNumbers pieces = model.layers_between(0, 4);
      pieces += model.layers_between(4, 9);
      pieces += model.layers_between(9, 12);
      EXPECT_EQ(pieces, sum);
      EXPECT_EQ(sum.with_window(), plain.numbers().with_window());
      EXPECT_EQ(sum.with_experts(), plain.numbers().with_experts());
    }
}

// Only the core differs, and only where it is flash: an unfused one masks.
TEST(SlidingWindow, ChangesTheFlashKernelsOfItsLayersAlone) {
  const TransformerSpec plain = zoo::llama3_8b(), model = windowed(plain, 1024, {1});
  const Shard shard{.sequence = 4096};
  EXPECT_TRUE(same(layer_operators(model, shard, LayerKind::kDense), layer_operators(plain, shard)));
  LayerOps cut = layer_operators(model, shard, LayerKind::kDenseInWindow);
  for (Ops* ops : {&cut.forward, &cut.input_gradient}) {
    const auto core = std::ranges::find_if(*ops, [](const Op& op) { return op.name == "flash attention"; });
    ASSERT_NE(core, ops->end());
    EXPECT_EQ(core->attention.window, 1024);
    core->attention.window = 0;
  }
  EXPECT_TRUE(same(cut, layer_operators(plain, shard)));
  const Shard unfused{.sequence = 4096, .attention = Attention::kUnfused};
  EXPECT_TRUE(
      same(layer_operators(model, unfused, LayerKind::kDenseInWindow), layer_operators(plain, unfused)));
}

TEST(SlidingWindow, CutsNothingOffAShorterSample) {
  for (const std::int64_t tokens : {4096, 5000})
    EXPECT_TRUE(same(
        layer_operators(windowed(zoo::llama3_8b(), tokens), {.sequence = 4096}, LayerKind::kDenseInWindow),
        layer_operators(zoo::llama3_8b(), {.sequence = 4096})));
}

// The queries of a context rank meet keys of all ranks; a window is as long as it is.
TEST(SlidingWindow, IsAsLongOverContextRanks) {
  const TransformerSpec model = windowed(zoo::llama3_8b(), 1024);
  const auto core = [&](ContextExchange exchange) {
    const Shard shard{.sequence = 4096, .context = 4, .context_exchange = exchange};
    return find(layer_operators(model, shard, LayerKind::kDenseInWindow).forward, "flash attention")
        .attention;
  };
  const AttentionShape gathered = core(ContextExchange::kAllGather),
                       exchanged = core(ContextExchange::kAllToAll);
  EXPECT_EQ(gathered.queries, 1024);
  EXPECT_EQ(gathered.keys, 4096);
  EXPECT_EQ(gathered.window, 1024);
  EXPECT_EQ(exchanged.queries, 4096);
  EXPECT_EQ(exchanged.window, 1024);
}

// Of s = 8 queries within 4: 1 + 2 + 3 + 4 * 5 of 64 pairs is 26, and the rule without the half diagonal has 24.
TEST(WindowedShare, IsThePairsWithinTheWindow) {
  EXPECT_DOUBLE_EQ(windowed_share(4, 8), 24.0 / 64);
  EXPECT_DOUBLE_EQ(windowed_share(8, 8), 0.5);
}

// Llama 3 8B over 8,192 tokens: 32 heads of 128, 4 FLOPs for each of them and pair; half of the square is counted
// twice, as of causal attention.
TEST(ModelFlops, CountTheKeysOfAWindow) {
  const TransformerSpec plain = zoo::llama3_8b();
  const double whole = model_flops(plain, 1, 8192).count();
  const double pair = 3.0 * 4 * 32 * 128;
  const double saved = 2 * (8192.0 * 8192 / 2 - (8192.0 * 1024 - 1024.0 * 1024 / 2));
  EXPECT_NEAR((whole - model_flops(windowed(plain, 1024), 1, 8192).count()) / (32 * pair * saved), 1, 1e-12);
  EXPECT_NEAR((whole - model_flops(windowed(plain, 1024, {0, 9}), 1, 8192).count()) / (30 * pair * saved), 1,
              1e-12);
  EXPECT_EQ(model_flops(windowed(plain, 8192), 1, 8192).count(), whole);
  EXPECT_EQ(model_flops(windowed(plain, 100'000), 1, 8192).count(), whole);
}

TEST(AttentionSinks, AreANumberForEachHead) {
  TransformerSpec model = zoo::mixtral_8x7b();
  const std::int64_t without = parameter_count(model);
  model.attention_sinks = true;
  EXPECT_EQ(parameter_count(model) - without, 32 * 32);
  EXPECT_EQ(layer_parameters(model, LayerKind::kExperts, {.tensor = 8}).dense,
            layer_parameters(zoo::mixtral_8x7b(), LayerKind::kExperts, {.tensor = 8}).dense + 4);
  model.experts->router_bias = true;
  EXPECT_EQ(parameter_count(model) - without, 32 * (32 + 8));
}

Duration flash_time(const HardwareProfile& profile, OpKind kind, std::int64_t keys, std::int64_t window) {
  const double products = kind == OpKind::kFlashForward ? 4 : 10;
  const double square = static_cast<double>(keys) * static_cast<double>(keys);
  const Op op{
      .kind = kind,
      .name = "flash attention",
      .attention =
          {.batch = 256, .queries = keys, .keys = keys, .query_size = 64, .value_size = 64, .window = window},
      .flops = Flops(products * 256 * square * 64)};
  return compute_cost(profile, Precision::kBf16, op).time;
}

// Property, of every profile: wider windows never take less time, none more than the whole sample, and a window's
// time goes with the tokens of a long sample.
TEST(WindowCost, RisesWithTheWindowUpToTheWholeSample) {
  for (const char* name : {"a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm-180gb",
                           "gb200-186gb", "b300-sxm-288gb", "gb300-288gb"}) {
    SCOPED_TRACE(name);
    const HardwareProfile profile = profile_called(name);
    for (const OpKind kind : {OpKind::kFlashForward, OpKind::kFlashBackward}) {
      const Duration whole = flash_time(profile, kind, 16384, 0);
      Duration before{};
      for (const std::int64_t window : {1, 64, 128, 129, 512, 1024, 4096, 8192, 12'000, 16'000, 16'383}) {
        const Duration time = flash_time(profile, kind, 16384, window);
        EXPECT_GE(time, before) << window;
        EXPECT_LE(time, whole) << window;
        before = time;
      }
      EXPECT_LT(flash_time(profile, kind, 16384, 1024), whole / 2);
      EXPECT_NEAR(to_seconds(flash_time(profile, kind, 131'072, 1024)) /
                      to_seconds(flash_time(profile, kind, 65'536, 1024)),
                  2, 0.05);
    }
  }
}

struct PublishedWindow {
  const char* profile;
  const char* kernel;
  double of_burst;                              // share of a burst's rate that the profile has
  std::vector<double> forward_ms, backward_ms;  // of 2,048 tokens and its doubles
};

// 256 heads of 64 within 128 tokens. Benchmarks are bursts; profiles of long runs are slower by what their rates say, but
// the GB300's.
// Source: NVIDIA/cudnn-frontend @a0312ccb, @07b111f1, @546cc712, @7a40ba7d,
// benchmark/attention_training/results/gpt_oss, top-left mask, bf16; the A100 is a card of PCIe.
TEST(WindowCost, MeetsThePublishedTimesOfAWindowOf128Tokens) {
  const std::vector<PublishedWindow> all = {
      {"h200-sxm-141gb", "cudnn", 0.82, {.134, .262, .515, 1.017, 2.030}, {.464, .919, 1.829, 3.654, 7.313}},
      {"gb200-186gb", "cudnn", 0.8, {.106, .207, .407, .809, 1.611}, {.234, .463, .918, 1.845, 3.662}},
      {"gb300-288gb", "cudnn", 1, {.095, .184, .361, .715, 1.423}, {.226, .438, .861, 1.728, 3.433}},
      {"a100-sxm4-80gb", "fa2", 1, {.357, .681, 1.326, 2.600, 5.254}, {1.051, 2.116, 4.212, 8.582, 17.117}}};
  for (const PublishedWindow& published : all) {
    SCOPED_TRACE(published.profile);
    const HardwareProfile profile = profile_called(published.profile);
    ASSERT_EQ(profile.attention.kernel().name, published.kernel);
    for (const OpKind kind : {OpKind::kFlashForward, OpKind::kFlashBackward}) {
      std::int64_t tokens = 2048;
      for (const double ms : kind == OpKind::kFlashForward ? published.forward_ms : published.backward_ms) {
        const double predicted =
            1e3 * published.of_burst * to_seconds(flash_time(profile, kind, tokens, 128));
        EXPECT_NEAR(predicted / ms, 1, 0.10) << tokens;
        tokens *= 2;
      }
    }
  }
}

}  // namespace
}  // namespace stagecraft
