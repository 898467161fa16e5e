// Layers with experts: what a rank routes, exchanges and multiplies.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "models/expert_exchange.hpp"
#include "models/memory.hpp"
#include "models/operators.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace op_lists;

// Mixtral 8x7B: h 4096, 8 experts of 14336, of which a token visits 2.
LayerOps mixtral(const Shard& shard) {
  return layer_operators(zoo::mixtral_8x7b(), shard, LayerKind::kExperts);
}

constexpr Shard kAlone{.sequence = 4096};
constexpr Shard kEight{.sequence = 4096, .expert = 8};

// The names of the feed-forward block: what follows the second norm.
Names block(const Ops& forward) {
  const Names all = names(forward);
  return {std::find(all.begin(), all.end(), "ffn norm") + 1, all.end() - 1};
}

TEST(Experts, OfOneRankExchangeNothing) {
  const LayerOps layer = mixtral(kAlone);
  EXPECT_EQ(block(layer.forward), (Names{"router", "router choice", "permute", "expert sort", "expert up",
                                         "expert activation", "expert down", "expert unsort", "unpermute"}));
  EXPECT_EQ(payload(layer.forward) + payload(layer.input_gradient), Bytes(0));
}

// One expert a rank: nothing to sort.
TEST(Experts, AreReachedByTwoExchanges) {
  EXPECT_EQ(block(mixtral(kEight).forward),
            (Names{"router", "router choice", "expert counts", "permute", "expert dispatch", "expert up",
                   "expert activation", "expert down", "expert combine", "unpermute"}));
}

// 4096 tokens, two copies each, over 8 experts: 1024 a rank's tokens; 8 ranks' tokens reach the one expert
// here.
TEST(Experts, MultiplyTheMeanNumberOfTokens) {
  const GemmShape alone{.m = 1024, .n = 28672, .k = 4096, .batch = 8, .layout = GemmLayout::kTN};
  const GemmShape shared{.m = 8192, .n = 28672, .k = 4096, .batch = 1, .layout = GemmLayout::kTN};
  EXPECT_EQ(find(mixtral(kAlone).forward, "expert up").gemm, alone);
  EXPECT_EQ(find(mixtral(kEight).forward, "expert up").gemm, shared);
  EXPECT_EQ(find(mixtral(kEight).forward, "expert up").kind, OpKind::kGroupedGemm);
}

TEST(Experts, HaveThreePassesOfEachWeight) {
  const LayerOps layer = mixtral(kAlone);
  const GemmShape input{.m = 1024, .n = 14336, .k = 4096, .batch = 8, .layout = GemmLayout::kNN};
  const GemmShape weight{.m = 4096, .n = 14336, .k = 1024, .batch = 8, .layout = GemmLayout::kNT};
  EXPECT_EQ(find(layer.input_gradient, "expert down").gemm, input);
  EXPECT_EQ(find(layer.weight_gradient, "expert down").gemm, weight);
  const std::int64_t weights = 4096 * 14336, rows = 1024 * (4096 + 14336);
  EXPECT_EQ(find(layer.input_gradient, "expert down").bytes, Bytes(8 * 2 * (rows + weights)));
  EXPECT_EQ(find(layer.weight_gradient, "expert down").bytes, Bytes(8 * (2 * rows + 8 * weights)));
}

// Scores of 8 experts; both weights in fp32: 20 and 19 bytes a score.
TEST(Experts, AreChosenByARouter) {
  const LayerOps layer = mixtral(kAlone);
  const GemmShape forward{.m = 4096, .n = 8, .k = 4096, .layout = GemmLayout::kTN};
  EXPECT_EQ(find(layer.forward, "router").gemm, forward);
  EXPECT_EQ(find(layer.forward, "router choice").bytes, Bytes(20 * 4096 * 8));
  EXPECT_EQ(find(layer.input_gradient, "router choice").bytes, Bytes(19 * 4096 * 8));
}

// Read T h and write 2 T h; dispatch 2 T copies with a weight of 4 bytes, combine without; 8 counts of 8
// bytes from 8 ranks. Activation: 6 bytes per element of f and 4 a row; 10 and 8 backward.
TEST(Experts, MoveEachCopyOnce) {
  const LayerOps layer = mixtral(kEight);
  const std::int64_t h = 4096, copies = 2 * 4096;
  EXPECT_EQ(find(layer.forward, "permute").bytes, Bytes(2 * (4096 + copies) * h));
  EXPECT_EQ(find(layer.forward, "permute").kind, OpKind::kPermutation);
  EXPECT_EQ(find(layer.forward, "expert dispatch").bytes, Bytes(copies * (2 * h + 4)));
  EXPECT_EQ(find(layer.forward, "expert combine").bytes, Bytes(copies * 2 * h));
  EXPECT_EQ(find(layer.forward, "expert counts").bytes, Bytes(8 * 8 * 8));
  EXPECT_EQ(find(layer.forward, "expert activation").bytes, Bytes(copies * (6 * 14336 + 4)));
  EXPECT_EQ(find(layer.input_gradient, "expert activation").bytes, Bytes(copies * (10 * 14336 + 8)));
  EXPECT_EQ(find(mixtral(kAlone).forward, "expert sort").bytes, Bytes(4 * copies * h));
}

// 28 and 40 bytes per element of the experts' outputs, 2 and 5 kernels an expert and two more; part of the products
// of Transformer Engine's fused block, which is of MXFP8.
TEST(Experts, AddTheirBiasesOneByOne) {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.biases = true;
  const LayerOps layer = layer_operators(model, kAlone, LayerKind::kExperts);
  const Op& forward = find(layer.forward, "expert biases");
  EXPECT_EQ(forward.bytes, Bytes(28 * 2 * 4096 * 4096));
  EXPECT_EQ(forward.kernels, 2 * 8 + 2);
  EXPECT_TRUE(forward.routed);
  EXPECT_EQ(find(layer.input_gradient, "expert biases").bytes, Bytes(40 * 2 * 4096 * 4096));
  EXPECT_EQ(find(layer.input_gradient, "expert biases").kernels, 5 * 8 + 2);
  EXPECT_EQ(count(mixtral(kAlone).forward, "expert biases"), 0);
  Shard fp8 = kAlone;
  fp8.precision = Precision::kFp8;
  EXPECT_EQ(count(layer_operators(model, fp8, LayerKind::kExperts).forward, "expert biases"), 1);
  fp8.fp8_recipe = Fp8Recipe::kMxfp8;
  EXPECT_EQ(count(layer_operators(model, fp8, LayerKind::kExperts).forward, "expert biases"), 1);
  fp8.fused_experts = true;
  EXPECT_EQ(count(layer_operators(model, fp8, LayerKind::kExperts).forward, "expert biases"), 0);
}

// Mixtral 8x7B alone on a GPU: R = 8,192 rows, h = 4,096, f = 14,336, gated. In MXFP8 an element and its share of a scale
// have 33/32 bytes in each of two layouts.
//   up    writes 2 R 2f as ever, and f in fp8; without fusion a kernel reads and writes 6 R f, a cast 2 R f + the same
//   down  its input gradient stays inside; 2 R 2f are read, and 2f written in fp8
TEST(Experts, FusedEndTheirProductsInTheActivationAndItsCast) {
  Shard shard = kAlone;
  shard.precision = Precision::kFp8;
  shard.fp8_recipe = Fp8Recipe::kMxfp8;
  const LayerOps apart = mixtral(shard);
  shard.fused_experts = true;
  const LayerOps fused = mixtral(shard);
  const std::int64_t rows = 2 * shard.sequence, elements = rows * 14336,
                     in_fp8 = 2 * (elements + elements / 32);
  EXPECT_EQ(find(fused.forward, "expert up").bytes,
            find(apart.forward, "expert up").bytes + Bytes(in_fp8 + 4 * rows));
  EXPECT_EQ(find(fused.input_gradient, "expert down").bytes,
            find(apart.input_gradient, "expert down").bytes + Bytes(2 * elements + 2 * in_fp8 + 8 * rows));
  for (const LayerOps* layer : {&apart, &fused}) {
    const bool is_fused = layer == &fused;
    EXPECT_EQ(count(layer->forward, "expert activation"), is_fused ? 0 : 1);
    EXPECT_EQ(count(layer->input_gradient, "expert activation"), is_fused ? 0 : 1);
    EXPECT_EQ(find(layer->forward, "expert up").joined, is_fused);
  }
  EXPECT_EQ(count(apart.forward, "fp8 cast") - count(fused.forward, "fp8 cast"), 1);
  EXPECT_EQ(count(apart.input_gradient, "fp8 cast") - count(fused.input_gradient, "fp8 cast"), 1);
  EXPECT_EQ(find(fused.forward, "expert down").bytes, find(apart.forward, "expert down").bytes);
  EXPECT_EQ(fused.weight_gradient.size(), apart.weight_gradient.size());
}

// The kernel of NVFP4 writes 16 bit, which are cast; other recipes have no such block.
TEST(Experts, FusedInNvfp4AreCastAfterTheirActivation) {
  Shard shard = kAlone;
  shard.precision = Precision::kFp8;
  const auto casts = [&](bool fused) {
    shard.fused_experts = fused;
    return count(mixtral(shard).forward, "fp4 cast");
  };
  const auto activations = [&](Fp8Recipe recipe) {
    shard.fp8_recipe = recipe;
    shard.fused_experts = true;
    return count(mixtral(shard).forward, "expert activation");
  };
  shard.fp8_recipe = Fp8Recipe::kNvfp4;
  EXPECT_EQ(casts(true), casts(false));
  EXPECT_EQ(activations(Fp8Recipe::kNvfp4), 0);
  for (const Fp8Recipe recipe : {Fp8Recipe::kDelayed, Fp8Recipe::kCurrent, Fp8Recipe::kBlockwise})
    EXPECT_EQ(activations(recipe), 1);
  shard.fused_kernels = false;
  EXPECT_EQ(activations(Fp8Recipe::kMxfp8), 1);
}

// Two clamps of 4 bytes and their joining of 8 per element of f; backward two of 6, and 8.
TEST(Experts, ClampWhatGoesIntoTheirGates) {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.clamped_activation = true;
  Shard joining = kAlone;
  joining.joins_clamps = true;
  Shard shard = joining;
  const auto more = [&](bool backward) {
    const auto bytes = [&](const TransformerSpec& of) {
      const LayerOps layer = layer_operators(of, shard, LayerKind::kExperts);
      return find(backward ? layer.input_gradient : layer.forward, "expert activation").bytes;
    };
    return bytes(model) - bytes(zoo::mixtral_8x7b());
  };
  EXPECT_EQ(more(false), Bytes(std::int64_t{16} * 2 * 4096 * 14336));
  EXPECT_EQ(more(true), Bytes(std::int64_t{20} * 2 * 4096 * 14336));
  const auto kept = [&](const TransformerSpec& of) {
    Bytes sum{};
    for (const SavedTensor& tensor : layer_tensors(of, shard, LayerKind::kExperts)) sum += tensor.size;
    return sum;
  };
  EXPECT_EQ(kept(model) - kept(zoo::mixtral_8x7b()), Bytes(2 * 2 * 4096 * 2 * 14336));
  shard.recompute = Recompute::kSelective;
  shard.modules = RecomputeModules{RecomputeModule::kMoeActivation};
  EXPECT_EQ(kept(model), kept(zoo::mixtral_8x7b()));
  shard = kAlone;  // a compiler puts them into the kernel of the gate
  EXPECT_EQ(more(false), Bytes(0));
  EXPECT_EQ(kept(model), kept(zoo::mixtral_8x7b()));
  shard.fused_kernels = false;
  EXPECT_EQ(more(false), Bytes(8 * 2 * 4096 * 14336));
  shard = joining;
  shard.precision = Precision::kFp8;
  shard.fp8_recipe = Fp8Recipe::kMxfp8;
  shard.fused_experts = true;
  EXPECT_EQ(kept(model), kept(zoo::mixtral_8x7b()));
  const Bytes fused = kept(model);
  shard.unfused = {LateFusion::kSwiglu};  // of other blocks
  EXPECT_EQ(kept(model), fused);
}

std::int64_t exchanges(const Ops& ops) {
  return std::count_if(ops.begin(), ops.end(), [](const Op& op) {
    return op.kind == OpKind::kCollective && op.collective == CollectiveKind::kAllToAll;
  });
}

TEST(Experts, ExchangeFourTimesAndTwiceMoreIfRepeated) {
  Shard shard = kEight;
  const auto all = [&] {
    const LayerOps layer = mixtral(shard);
    return exchanges(layer.forward) + exchanges(layer.recompute) + exchanges(layer.input_gradient) +
           exchanges(layer.weight_gradient);
  };
  EXPECT_EQ(all(), 4);
  shard.recompute = Recompute::kSelective;
  EXPECT_EQ(all(), 4);
  shard.modules = RecomputeModules{RecomputeModule::kMoe};
  EXPECT_EQ(all(), 6);
  shard.recompute = Recompute::kFull;
  EXPECT_EQ(all(), 6);
}

// Megatron-LM's shared_experts.py: first product and activation beside the dispatch, the second beside the
// combine; backwards the same halves.
TEST(Experts, ExchangeBesideTheSharedOnesIfOverlapped) {
  Shard shard{.sequence = 4096, .expert = 64, .overlap_shared_experts = true};
  const TransformerSpec model = zoo::deepseek_v3();
  const LayerOps layer = layer_operators(model, shard, LayerKind::kExperts);
  const auto expect = [](const Ops& ops, const char* exchange, SharedHalf half) {
    EXPECT_EQ(find(ops, exchange).beside, Beside::kSharedExperts) << exchange;
    EXPECT_EQ(find(ops, exchange).shared, half) << exchange;
  };
  expect(layer.forward, "expert dispatch", SharedHalf::kUp);
  expect(layer.forward, "expert combine", SharedHalf::kDown);
  expect(layer.input_gradient, "expert dispatch gradient", SharedHalf::kUp);
  expect(layer.input_gradient, "expert combine gradient", SharedHalf::kDown);
  for (const Ops* ops : {&layer.forward, &layer.input_gradient}) {
    EXPECT_EQ(find(*ops, "shared up").shared, SharedHalf::kUp);
    EXPECT_EQ(find(*ops, "shared activation").shared, SharedHalf::kUp);
    EXPECT_EQ(find(*ops, "shared down").shared, SharedHalf::kDown);
    EXPECT_EQ(find(*ops, "expert up").shared, SharedHalf::kNone);
  }
  shard = {.sequence = 4096, .expert = 8, .overlap_shared_experts = true};
  EXPECT_EQ(find(mixtral(shard).forward, "expert dispatch").beside, Beside::kNothing);  // has none
}

// Two ranks share an expert: both need the tokens of both, and each has half of the width.
TEST(Experts, SplitInTwoAreGatheredForAndScatteredFrom) {
  const LayerOps layer = mixtral({.sequence = 4096, .expert = 8, .expert_tensor = 2});
  const GemmShape up{.m = 16384, .n = 14336, .k = 4096, .layout = GemmLayout::kTN};
  EXPECT_EQ(find(layer.forward, "expert up").gemm, up);
  EXPECT_EQ(find(layer.forward, "expert gather").bytes, Bytes(16384 * (2 * 4096 + 4)));
  EXPECT_EQ(find(layer.forward, "expert gather").group, CommGroup::kExpertTensor);
  EXPECT_EQ(find(layer.forward, "expert scatter").bytes, Bytes(16384 * 2 * 4096));
  EXPECT_EQ(find(layer.forward, "expert scatter").collective, CollectiveKind::kReduceScatter);
  EXPECT_EQ(find(layer.input_gradient, "expert gradient gather").bytes, Bytes(16384 * 2 * 4096));
  EXPECT_EQ(find(layer.input_gradient, "expert gradient scatter").collective, CollectiveKind::kReduceScatter);
}

// The busiest rank gets a quarter more than its share; what it sends itself is as before.
TEST(Experts, OfTheBusiestRankSeeMoreTokens) {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.experts->imbalance = 1.25;
  const TokenRouting routes = routing(model, kEight);
  EXPECT_EQ(routes.sent, 8192);
  EXPECT_EQ(routes.received, 10240);
  EXPECT_EQ(routes.per_expert, 10240);
}

// Capacity 2: every expert sees twice the mean, padded, whatever the imbalance.
TEST(Experts, WithACapacityArePaddedToIt) {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.experts->imbalance = 4;
  model.experts->capacity_factor = 2;
  model.experts->pad_to_capacity = true;
  const TokenRouting routes = routing(model, kEight);
  EXPECT_EQ(routes.sent, 16384);
  EXPECT_EQ(routes.received, 16384);
  EXPECT_EQ(routes.per_expert, 16384);
}

// Without padding a capacity only drops: half of all below the even share, a part of the busiest rank's above.
TEST(Experts, WithACapacityDropWhatExceedsIt) {
  TransformerSpec model = zoo::mixtral_8x7b();
  const auto received = [&](double capacity, double imbalance) {
    model.experts->capacity_factor = capacity;
    model.experts->imbalance = imbalance;
    return routing(model, kEight).received;
  };
  EXPECT_EQ(received(2, 1), 8192);
  EXPECT_EQ(received(2, 1.5), 12288);
  EXPECT_EQ(received(1.25, 1.5), 10240);
  EXPECT_EQ(routing(model, kEight).sent, 8192);
  EXPECT_EQ(received(0.5, 1.5), 4096);
  EXPECT_EQ(routing(model, kEight).sent, 4096);
}

// Tokens of all 8 ranks arrive with 8 weights and flags; 8192 copies are for this rank, all from other
// tokens.
TEST(GatheringDispatcher, GathersAllTokensAndScattersTheResults) {
  Shard shard = kEight;
  shard.expert_dispatcher = ExpertDispatcher::kAllGather;
  const LayerOps layer = mixtral(shard);
  const std::int64_t all = 8 * 4096, h = 4096;
  EXPECT_EQ(block(layer.forward), (Names{"router", "router choice", "expert dispatch", "permute", "expert up",
                                         "expert activation", "expert down", "unpermute", "expert combine"}));
  EXPECT_EQ(find(layer.forward, "expert dispatch").collective, CollectiveKind::kAllGather);
  EXPECT_EQ(find(layer.forward, "expert dispatch").bytes, Bytes(all * (2 * h + 5 * 8)));
  EXPECT_EQ(find(layer.forward, "expert combine").collective, CollectiveKind::kReduceScatter);
  EXPECT_EQ(find(layer.forward, "expert combine").bytes, Bytes(all * 2 * h));
  EXPECT_EQ(find(layer.forward, "permute").bytes, Bytes(2 * (8192 + 8192) * h));
  EXPECT_EQ(find(layer.forward, "unpermute").bytes, Bytes(2 * (8192 + all) * h));
  EXPECT_EQ(find(layer.forward, "expert up").gemm, find(mixtral(kEight).forward, "expert up").gemm);
}

// DeepSeek-V3: one shared expert of 2048 that all tokens visit.
TEST(SharedExperts, AreAFeedForwardBlockBesideTheRoutedOnes) {
  const LayerOps layer = layer_operators(zoo::deepseek_v3(), {.sequence = 4096}, LayerKind::kExperts);
  const GemmShape up{.m = 4096, .n = 4096, .k = 7168, .layout = GemmLayout::kTN};
  EXPECT_EQ(find(layer.forward, "shared up").gemm, up);
  EXPECT_EQ(find(layer.forward, "shared add").bytes, Bytes(6 * 4096 * 7168));
  EXPECT_EQ(find(layer.input_gradient, "branch gradient sum").bytes, Bytes(2 * 6 * 4096 * 7168));
  EXPECT_EQ(find(mixtral(kAlone).input_gradient, "branch gradient sum").bytes, Bytes(6 * 4096 * 4096));
}

TEST(SharedExperts, AreSplitOverTheTensorRanks) {
  const Shard shard{.sequence = 4096, .tensor = 4, .sequence_parallel = true};
  const LayerOps layer = layer_operators(zoo::deepseek_v3(), shard, LayerKind::kExperts);
  EXPECT_EQ(find(layer.forward, "shared up").gemm.n, 1024);
  EXPECT_EQ(find(layer.forward, "shared gather").bytes, Bytes(2 * 4096 * 7168));
  EXPECT_EQ(find(layer.forward, "shared reduce").collective, CollectiveKind::kReduceScatter);
  EXPECT_EQ(find(layer.forward, "router").gemm.m, 1024);
}

TEST(SharedExperts, AreGatheredForAndReducedInChunksIfOverlapped) {
  const Shard shard{.sequence = 4096, .tensor = 4, .sequence_parallel = true, .overlap_tensor = true};
  const Ops ops = layer_operators(zoo::deepseek_v3(), shard, LayerKind::kExperts).forward;
  EXPECT_EQ(partner(ops, "shared gather"), "shared up");
  EXPECT_EQ(partner(ops, "shared reduce"), "shared down");
}

// Forward FLOPs of all layers and the head, a token, three times: 6 (weights that a token meets, head and
// routers included) + 12 l s a (d_qk + d_v)/2.
double training_flops_per_token(const TransformerSpec& model, const Shard& shard) {
  double sum = total_flops(head_operators(model, shard).forward).count();
  for (const LayerKind kind : {LayerKind::kDense, LayerKind::kExperts}) {
    if (model.numbers()[kind] == 0) continue;
    sum += static_cast<double>(model.numbers()[kind]) *
           total_flops(layer_operators(model, shard, kind).forward).count();
  }
  return 3 * sum / static_cast<double>(shard.sequence);
}

// Mixtral: 32 layers of 2 * 4096 (4096 + 1024) attention + 8 * 4096 router + 2 * 3 * 4096 * 14336 weights,
// and 32000 * 4096 of the head: 12 748 587 008. The core 12 * 32 * 4096 * 4096.
TEST(Experts, OfMixtralHaveItsFlopsToTheLastDigit) {
  EXPECT_EQ(training_flops_per_token(zoo::mixtral_8x7b(), kAlone),
            6.0 * 12'748'587'008 + 12.0 * 32 * 4096 * 4096);
}

// DeepSeek-V3: 61 attentions of 187 105 280 weights, 3 dense blocks of 3 * 7168 * 18432, 58 of nine experts
// of 3 * 7168 * 2048 and a router of 7168 * 256, and 129280 * 7168 of the head. The core 6 * 61 * 4096 * 128
// * 320.
TEST(Experts, OfDeepSeekHaveItsFlopsToTheLastDigit) {
  const double weights = 61.0 * 187'105'280 + 3.0 * 3 * 7168 * 18432 +
                         58.0 * (9.0 * 3 * 7168 * 2048 + 7168 * 256) + 129280.0 * 7168;
  EXPECT_EQ(training_flops_per_token(zoo::deepseek_v3(), kAlone),
            6.0 * weights + 6.0 * 61 * 4096 * 128 * 320);
}

TEST(Recomputation, OfPartsOfTheExperts) {
  Shard shard{.sequence = 4096, .recompute = Recompute::kSelective};
  const auto repeated = [&](RecomputeModules modules) {
    shard.modules = modules;
    return names(layer_operators(zoo::deepseek_v3(), shard, LayerKind::kExperts).recompute);
  };
  const RecomputeModules none;
  const RecomputeModules parts = {RecomputeModule::kMoeActivation, RecomputeModule::kSharedExperts};
  EXPECT_EQ(repeated(none), Names{});
  EXPECT_EQ(repeated(parts), (Names{"shared up", "shared activation", "shared down", "expert activation"}));
  EXPECT_EQ(repeated({RecomputeModule::kMlp}), Names{});
  const Names whole = repeated({RecomputeModule::kMoe});
  EXPECT_EQ(whole.front(), "router");
  EXPECT_EQ(whole.back(), "shared add");
  EXPECT_EQ(repeated(parts | RecomputeModules{RecomputeModule::kMoe}), whole);
}

Flops products(const LayerOps& layer) {
  Flops sum;
  for (const Ops* ops : {&layer.forward, &layer.input_gradient, &layer.weight_gradient})
    sum += total_flops(*ops);
  return sum;
}

// Property: one expert that all tokens visit is the dense block, and 6 T h FLOPs of a router.
TEST(Experts, OfOneAreTheDenseBlockAndARouter) {
  TransformerSpec model = zoo::llama3_8b();
  const Flops dense = products(layer_operators(model, kAlone));
  model.experts = ExpertsSpec{.count = 1, .top_k = 1, .ffn_hidden = model.ffn_hidden};
  EXPECT_EQ(products(layer_operators(model, kAlone, LayerKind::kExperts)), dense + Flops(6.0 * 4096 * 4096));
}

std::vector<Shard> split_shards(ExpertDispatcher dispatcher) {
  std::vector<Shard> shards;
  for (const std::int64_t t : {1, 2})
    for (const std::int64_t c : {1, 4})
      for (const std::int64_t e : {1, 2, 8})
        for (const std::int64_t et : {1, 2})
          shards.push_back({.sequence = 4096,
                            .tensor = t,
                            .context = c,
                            .expert = e,
                            .expert_tensor = et,
                            .sequence_parallel = t > 1,
                            .context_exchange = ContextExchange::kAllGather,
                            .expert_dispatcher = dispatcher});
  return shards;
}

// Property: expert ranks have tokens of their own, so that each multiplies what one rank with all experts
// does. Tensor and context ranks share a rank's tokens.
TEST(Experts, SplitTheirProductsEvenly) {
  for (const TransformerSpec& model : {zoo::mixtral_8x7b(), zoo::deepseek_v3()}) {
    const Flops alone = products(layer_operators(model, kAlone, LayerKind::kExperts));
    for (const ExpertDispatcher dispatcher :
         {ExpertDispatcher::kAllToAll, ExpertDispatcher::kAllGather, ExpertDispatcher::kNodeAware}) {
      for (const Shard& shard : split_shards(dispatcher)) {
        SCOPED_TRACE(testing::Message() << "t=" << shard.tensor << " c=" << shard.context
                                        << " e=" << shard.expert << " et=" << shard.expert_tensor);
        const Flops rank = products(layer_operators(model, shard, LayerKind::kExperts));
        EXPECT_EQ(static_cast<double>(shard.tensor * shard.context) * rank, alone);
      }
    }
  }
}

// A column sum of dY for each bias of a product; the router has none, and that behind the experts is weighted.
TEST(Experts, SumBiasGradientsWhenEager) {
  TransformerSpec model = zoo::gpt_22b();
  model.experts = ExpertsSpec{.count = 4, .top_k = 1, .ffn_hidden = 24576};
  const Shard shard{.sequence = 2048, .fused_kernels = false};
  const Ops ops = layer_operators(model, shard, LayerKind::kExperts).weight_gradient;
  EXPECT_EQ(names(ops), (Names{"expert down", "expert up", "bias gradient", "router", "projection",
                               "bias gradient", "qkv", "bias gradient"}));
  EXPECT_EQ(ops[2].bytes, Bytes(2 * 2048 * 24576));
  EXPECT_EQ(find(layer_operators(model, shard, LayerKind::kExperts).input_gradient, "expert biases").bytes,
            Bytes(40 * 2048 * 6144));
}

// The degrees of experts change nothing in a dense layer.
TEST(Experts, OfAModelLeaveItsDenseLayersAlone) {
  const LayerOps expected = layer_operators(zoo::deepseek_v3(), kAlone, LayerKind::kDense);
  const Shard shard{.sequence = 4096, .expert = 8, .expert_tensor = 2, .overlap_shared_experts = true};
  EXPECT_TRUE(same(layer_operators(zoo::deepseek_v3(), shard, LayerKind::kDense), expected));
}

// A rank of a tensor group routes its own tokens: without sequence parallelism it would have none.
TEST(Experts, NeedSequenceParallelismOverTensorRanks) {
  EXPECT_THROW(mixtral({.sequence = 4096, .tensor = 2}), InternalError);
}

}  // namespace
}  // namespace stagecraft
