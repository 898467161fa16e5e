// Latent attention, with DeepSeek-V3's numbers: 128 heads of 128 + 64 columns, values of 128, ranks of 1536
// and 512.
#include <gtest/gtest.h>

#include "models/operators.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace op_lists;

constexpr Shard kAlone{.sequence = 4096};
constexpr Shard kFour{.sequence = 4096, .tensor = 4, .sequence_parallel = true};

GemmShape forward_shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .layout = GemmLayout::kTN};
}

TEST(LatentAttention, ProjectsDownAndUpAgain) {
  const Ops ops = layer_operators(zoo::deepseek_v3(), kAlone, LayerKind::kDense).forward;
  EXPECT_EQ(find(ops, "query down").gemm, forward_shape(4096, 1536, 7168));
  EXPECT_EQ(find(ops, "kv down").gemm, forward_shape(4096, 576, 7168));
  EXPECT_EQ(find(ops, "query up").gemm, forward_shape(4096, 24576, 1536));
  EXPECT_EQ(find(ops, "kv up").gemm, forward_shape(4096, 32768, 512));
  EXPECT_EQ(find(ops, "projection").gemm, forward_shape(4096, 7168, 16384));
}

TEST(LatentAttention, RunsInTheOrderOfTheNetwork) {
  const Ops ops = layer_operators(zoo::deepseek_v3(), kAlone, LayerKind::kDense).forward;
  EXPECT_EQ(names(ops),
            (Names{"attention norm", "query down", "query latent norm", "kv down", "kv latent norm",
                   "query up", "kv up", "rope", "key concatenation", "flash attention", "projection",
                   "residual add", "ffn norm", "ffn up", "activation", "ffn down", "residual add"}));
}

// 2 S2 (192 + 128) forward, 2.5 times as much backward. Q and K have 192 columns, V and O 128.
TEST(LatentAttention, HasHeadsOfTwoSizes) {
  const LayerOps layer = layer_operators(zoo::deepseek_v3(), kAlone, LayerKind::kDense);
  const Op& core = find(layer.forward, "flash attention");
  const AttentionShape shape{
      .batch = 128, .queries = 4096, .keys = 4096, .query_size = 192, .value_size = 128};
  EXPECT_EQ(core.attention, shape);
  EXPECT_EQ(core.flops, Flops(2.0 * 128 * 4096 * 4096 * 320));
  EXPECT_EQ(core.bytes, Bytes(4096 * 128 * (2 * 2 * 320 + 4)));
  EXPECT_EQ(find(layer.input_gradient, "flash attention").flops, 2.5 * core.flops);
}

TEST(LatentAttention, HasHeadsOfTwoSizesUnfusedToo) {
  Shard shard = kAlone;
  shard.attention = Attention::kUnfused;
  const LayerOps layer = layer_operators(zoo::deepseek_v3(), shard, LayerKind::kDense);
  EXPECT_EQ(find(layer.forward, "scores").gemm.k, 192);
  EXPECT_EQ(find(layer.forward, "values").gemm.n, 128);
  EXPECT_EQ(find(layer.input_gradient, "scores gradient").gemm.k, 128);
  EXPECT_EQ(find(layer.input_gradient, "queries gradient").gemm.n, 192);
  EXPECT_EQ(find(layer.forward, "qkv split").bytes, Bytes(4LL * 4096 * 128 * (192 + 192 + 128)));
}

// Down projections and their norms work on T/t tokens; latent vectors are gathered, not hidden ones.
TEST(LatentAttention, GathersLatentVectorsUnderSequenceParallelism) {
  const LayerOps layer = layer_operators(zoo::deepseek_v3(), kFour, LayerKind::kDense);
  EXPECT_EQ(find(layer.forward, "query down").gemm, forward_shape(1024, 1536, 7168));
  EXPECT_EQ(find(layer.forward, "kv latent norm").bytes, Bytes(1024 * (4 * 512 + 4)));
  EXPECT_EQ(find(layer.forward, "query gather").bytes, Bytes(2 * 4096 * 1536));
  EXPECT_EQ(find(layer.forward, "kv gather").bytes, Bytes(2 * 4096 * (512 + 64)));
  EXPECT_EQ(find(layer.input_gradient, "query gradient reduce").bytes, Bytes(2 * 4096 * 1536));
  EXPECT_EQ(find(layer.input_gradient, "kv gradient reduce").bytes, Bytes(2 * 4096 * (512 + 64)));
  EXPECT_EQ(find(layer.forward, "query up").gemm, forward_shape(4096, 6144, 1536));
}

// Every rank projects all tokens down; only gradients of the latent vectors are summed over the heads' ranks.
TEST(LatentAttention, ReducesLatentGradientsWithoutSequenceParallelism) {
  const LayerOps layer =
      layer_operators(zoo::deepseek_v3(), {.sequence = 4096, .tensor = 4}, LayerKind::kDense);
  EXPECT_EQ(find(layer.forward, "query down").gemm.m, 4096);
  EXPECT_EQ(count(layer.forward, "query gather") + count(layer.forward, "kv gather"), 0);
  EXPECT_EQ(find(layer.input_gradient, "query gradient reduce").collective, CollectiveKind::kAllReduce);
  EXPECT_EQ(find(layer.input_gradient, "kv gradient reduce").collective, CollectiveKind::kAllReduce);
}

// T' h twice, 6 bytes an element: two projections read one vector.
TEST(LatentAttention, AddsTheGradientsOfItsTwoInputs) {
  const LayerOps layer = layer_operators(zoo::deepseek_v3(), kFour, LayerKind::kDense);
  EXPECT_EQ(find(layer.input_gradient, "latent gradient sum").bytes, Bytes(6 * 1024 * 7168));
}

TEST(LatentAttention, WithoutAQueryRankProjectsQueriesInOneStep) {
  TransformerSpec model = zoo::deepseek_v3();
  model.latent_attention->query_rank = 0;
  const LayerOps layer = layer_operators(model, kFour, LayerKind::kDense);
  EXPECT_EQ(find(layer.forward, "query up").gemm, forward_shape(4096, 6144, 7168));
  EXPECT_EQ(find(layer.forward, "query gather").bytes, Bytes(2 * 4096 * 7168));
  EXPECT_EQ(count(layer.forward, "query down") + count(layer.weight_gradient, "query down"), 0);
  EXPECT_EQ(count(layer.forward, "query latent norm"), 0);
}

// Every GEMM of the forward has two of the same FLOPs in the backward.
TEST(LatentAttention, HasTwoGradientsOfEachWeight) {
  for (const Shard& shard : {kAlone, kFour}) {
    const LayerOps layer = layer_operators(zoo::deepseek_v3(), shard, LayerKind::kDense);
    const Flops forward = total_flops(of_kind(layer.forward, OpKind::kGemm));
    EXPECT_EQ(total_flops(of_kind(layer.input_gradient, OpKind::kGemm)), forward);
    EXPECT_EQ(total_flops(layer.weight_gradient), forward);
  }
}

// Property: t ranks together multiply what one does.
TEST(LatentAttention, SplitsItsProductsEvenly) {
  const LayerOps one = layer_operators(zoo::deepseek_v3(), kAlone, LayerKind::kDense);
  const LayerOps four = layer_operators(zoo::deepseek_v3(), kFour, LayerKind::kDense);
  EXPECT_EQ(4.0 * total_flops(four.forward), total_flops(one.forward));
  EXPECT_EQ(4.0 * total_flops(four.input_gradient), total_flops(one.input_gradient));
}

// Each gather is cut into chunks with the up projection that consumes it.
TEST(LatentAttention, GathersBesideItsUpProjectionsIfOverlapped) {
  Shard shard = kFour;
  shard.overlap_tensor = true;
  const Ops ops = layer_operators(zoo::deepseek_v3(), shard, LayerKind::kDense).forward;
  EXPECT_EQ(partner(ops, "query gather"), "query up");
  EXPECT_EQ(partner(ops, "kv gather"), "kv up");
}

TEST(LatentAttention, RepeatsItsUpProjectionsOnly) {
  Shard shard = kFour;
  shard.recompute = Recompute::kSelective;
  shard.modules = RecomputeModules{RecomputeModule::kLatentUp};
  EXPECT_EQ(names(layer_operators(zoo::deepseek_v3(), shard, LayerKind::kDense).recompute),
            (Names{"query gather", "query up", "kv gather", "kv up", "rope", "key concatenation"}));
}

}  // namespace
}  // namespace stagecraft
