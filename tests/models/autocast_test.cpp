// PyTorch's autocast: weights, gradients and the residual stream in fp32, products in 16 bit.
#include <gtest/gtest.h>

#include <string>

#include "base/units.hpp"
#include "models/layer_matrices.hpp"
#include "models/memory.hpp"
#include "models/operators.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kTokens = 4096;

Shard of(bool autocast, bool fused) {
  return {.sequence = 2048,
          .micro_batch = 2,
          .autocast = autocast,
          .fused_kernels = fused,
          .gradient_accumulation_fusion = false,
          .software = {.fp32_logits = true}};
}

TransformerSpec gpt() {
  TransformerSpec model = zoo::gpt(2, 1024, 16);
  model.dropout = false;
  return model;
}

std::int64_t products(const TransformerSpec& model) {
  const LayerMatrices matrices = layer_matrices(model, LayerKind::kDense, {});
  return matrices.attention() + matrices.ffn();
}

Bytes kept_more(const TransformerSpec& model, const Shard& with, const Shard& without) {
  return total(layer_tensors(model, with)) - total(layer_tensors(model, without));
}

TEST(Autocast, HasFp32WeightsAndGradientsAndNoMasters) {
  const StateBytes bytes = state_bytes(of(true, true));
  EXPECT_EQ(bytes.weight, 4);
  EXPECT_EQ(bytes.gradient, 4);
  EXPECT_EQ(bytes.optimizer, 8);
  EXPECT_FALSE(bytes.has_masters());
  Shard sharded = of(true, true);
  sharded.gathered_weights = true;
  sharded.rules.fp32_shards = true;
  EXPECT_FALSE(masters_alone(sharded));
}

// Both norms of a layer read four bytes an element in place of two, and each weight of a product has a copy.
TEST(Autocast, KeepsTheStreamInFp32AndCopiesOfTheWeights) {
  const TransformerSpec model = gpt();
  const Bytes stream(2 * 2 * kTokens * 1024), copies(2 * products(model));
  EXPECT_EQ(kept_more(model, of(true, true), of(false, true)), stream + copies);
  EXPECT_EQ(kept_more(model, of(true, false), of(false, false)), stream + copies);
  EXPECT_EQ(boundary_activation(model, of(true, true)), 2 * boundary_activation(model, of(false, true)));
}

// An eager RMSNorm keeps a cast of a 16-bit input and a 16-bit normalised tensor: 6 bytes. Of an fp32 one it keeps
// the input itself and an fp32 normalised tensor: 8.
TEST(Autocast, OfAnEagerRmsNormKeepsNoCastOfItsInput) {
  const TransformerSpec model = zoo::llama3_8b();
  const Bytes stream(2 * 2 * kTokens * 4096), copies(2 * products(model));
  EXPECT_EQ(kept_more(model, of(true, false), of(false, false)), stream + copies);
}

TEST(Autocast, OfARecomputedBlockKeepsNoCopyOfItsWeights) {
  const TransformerSpec model = gpt();
  const auto names_with = [&](RecomputeModules modules) {
    Shard shard = of(true, true);
    shard.recompute = Recompute::kSelective;
    shard.modules = modules;
    std::string names;
    for (const SavedTensor& tensor : layer_tensors(model, shard))
      if (tensor.name.starts_with("16-bit weights")) names += std::string(tensor.name) + "; ";
    return names;
  };
  EXPECT_EQ(names_with({RecomputeModule::kLayerNorm}),
            "16-bit weights of attention; 16-bit weights of feed-forward; ");
  EXPECT_EQ(names_with({RecomputeModule::kMlp}), "16-bit weights of attention; ");
  EXPECT_EQ(names_with({RecomputeModule::kSelfAttention}), "16-bit weights of feed-forward; ");
}

TEST(Autocast, CastsEachWeightOfAProductOnceAForward) {
  const TransformerSpec model = gpt();
  const LayerOps with = layer_operators(model, of(true, true));
  const auto cast = [](const Ops& ops, const char* name) {
    Bytes sum{};
    for (const Op& op : ops)
      if (op.name == name) sum += op.bytes;
    return sum;
  };
  EXPECT_EQ(cast(with.forward, "weight cast"), Bytes(6 * products(model)));
  EXPECT_EQ(cast(with.input_gradient, "weight cast"), Bytes(0));
  EXPECT_EQ(cast(with.weight_gradient, "gradient cast"), Bytes(6 * products(model)));
  // Each of them is read in fp32, not in 16 bit, where it is added.
  const LayerOps without = layer_operators(model, of(false, true));
  EXPECT_EQ(cast(with.weight_gradient, "gradient accumulation") -
                cast(without.weight_gradient, "gradient accumulation"),
            Bytes(2 * products(model)));
}

TEST(Autocast, CastsTheHeadOnceForAllChunksOfItsTokens) {
  const TransformerSpec model = gpt();
  Shard shard = of(true, true);
  shard.software.loss_chunks = 4;
  const LayerOps head = head_operators(model, shard);
  EXPECT_EQ(op_lists::count(head.forward, "head"), 4);
  EXPECT_EQ(op_lists::count(head.forward, "weight cast"), 1);
}

// A fused norm reads fp32 and writes 16 bit; an eager one writes fp32, which a kernel of its own casts. An addition to
// the stream reads 16 bit and fp32 and writes fp32.
TEST(Autocast, MovesTheBytesOfAnFp32Stream) {
  const TransformerSpec model = gpt();
  const std::int64_t elements = kTokens * 1024;
  constexpr std::int64_t kStatistics = 8;
  const LayerOps compiled = layer_operators(model, of(true, true));
  const Op& fused = op_lists::find(compiled.forward, "attention norm");
  EXPECT_EQ(fused.bytes, Bytes(elements * (4 + 2) + kTokens * kStatistics));
  const LayerOps eager = layer_operators(model, of(true, false));
  const Op& norm = op_lists::find(eager.forward, "attention norm");
  EXPECT_EQ(norm.bytes, Bytes(elements * (4 + 4 + 4 + 2) + kTokens * kStatistics));
  EXPECT_EQ(norm.kernels, 2);
  EXPECT_EQ(op_lists::find(compiled.forward, "residual add").bytes, Bytes(elements * (2 + 4 + 4)));
  EXPECT_EQ(op_lists::find(embedding_operators(model, of(true, true)).forward, "embedding").bytes,
            Bytes(elements * (4 + 4)));
}

// Without a norm before it, a block casts the stream itself, and its gradient.
TEST(Autocast, CastsTheStreamWhereNoNormDoes) {
  TransformerSpec model = gpt();
  model.norms = Norms::kAfter;
  const LayerOps layer = layer_operators(model, of(true, true));
  EXPECT_EQ(op_lists::count(layer.forward, "autocast"), 2);
  EXPECT_EQ(op_lists::count(layer.input_gradient, "autocast"), 2);
  EXPECT_EQ(op_lists::find(layer.forward, "autocast").bytes, Bytes(6 * kTokens * 1024));
  EXPECT_EQ(input_among_tensors(model, of(true, true)), "");
  EXPECT_EQ(input_among_tensors(model, of(false, true)), "QKV input");
}

TEST(Autocast, StepsWeightsThatNeedNoCopy) {
  const Ops step = optimizer_operators(1'000'000, 1'000'000, of(true, true));
  EXPECT_EQ(op_lists::count(step, "weight copy"), 0);
  EXPECT_EQ(op_lists::find(step, "adam").bytes, Bytes(1'000'000 * (4 + 8 + 16)));
}

}  // namespace
}  // namespace stagecraft
