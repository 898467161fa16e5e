// Bytes against the formulas of Korthikanti et al. (arXiv 2205.05198), Table 2 and Figure 1.
#include "models/memory.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/units.hpp"
#include "models/operators.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;

Shard unfused(std::int64_t micro_batch, std::int64_t tensor) {
  return {.sequence = 2048, .micro_batch = micro_batch, .tensor = tensor, .attention = Attention::kUnfused};
}

Shard with_sequence_parallelism(Shard shard) {
  shard.sequence_parallel = true;
  return shard;
}

Shard recomputing(Shard shard, Recompute recompute) {
  shard.recompute = recompute;
  return shard;
}

// Expectations: Figure 1's formulas at s = 2048, t = 8: s b h (10 + 24/t + 5as/ht), 34 s b h / t, 2 s b h.
TEST(LayerActivation, OfGptsIsTheTablesPerLayer) {
  struct Row {
    TransformerSpec model;
    std::int64_t micro_batch;
    Bytes baseline, selective_with_sp, full;
  };
  const Bytes half_mib = 512_KiB;
  const std::vector<Row> rows{{zoo::gpt_22b(), 4, 1264_MiB, 204_MiB, 96_MiB},
                              {zoo::gpt3_175b(), 1, 552_MiB, 102_MiB, 48_MiB},
                              {zoo::gpt_530b(), 1, 840_MiB, 170_MiB, 80_MiB},
                              {zoo::gpt_1t(), 1, 1050_MiB, 212_MiB + half_mib, 100_MiB}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.model.hidden);
    const Shard shard = unfused(row.micro_batch, 8);
    const Shard sp = with_sequence_parallelism(shard);
    EXPECT_EQ(layer_activation(row.model, shard).kept, row.baseline);
    EXPECT_EQ(layer_activation(row.model, recomputing(sp, Recompute::kSelective)).kept,
              row.selective_with_sp);
    EXPECT_EQ(layer_activation(row.model, recomputing(shard, Recompute::kFull)).kept, row.full);
  }
}

// Table 2, first row: s b h (34 + 5 a s / h).
TEST(LayerActivation, WithoutParallelismIsThirtyFourAndFiveScores) {
  const TransformerSpec model = zoo::gpt_22b();
  const std::int64_t s = 2048, b = 3, h = 6144, a = 64;
  EXPECT_EQ(layer_activation(model, unfused(b, 1)).kept, Bytes(34 * s * b * h + 5 * a * s * s * b));
}

TEST(LayerActivation, WithSequenceParallelismIsSplitEvenly) {
  for (const std::int64_t t : {2, 4, 8}) {
    const Bytes one = layer_activation(zoo::gpt_22b(), unfused(1, 1)).kept;
    const Bytes part = layer_activation(zoo::gpt_22b(), with_sequence_parallelism(unfused(1, t))).kept;
    EXPECT_EQ(t * part, one);
  }
}

// Flash keeps what selective recompute keeps, and a log-sum-exp of 4 bytes per token and head.
TEST(LayerActivation, OfFlashAttentionIsSelectivePlusItsLogSumExp) {
  Shard flash = unfused(2, 4);
  flash.attention = Attention::kFlash;
  const Bytes selective =
      layer_activation(zoo::gpt_22b(), recomputing(unfused(2, 4), Recompute::kSelective)).kept;
  EXPECT_EQ(layer_activation(zoo::gpt_22b(), flash).kept - selective, Bytes(4 * 2048 * 2 * 64 / 4));
}

// Masks: one byte per element of s b h twice, and 3 of the 5 bytes per score (dropout's output and mask).
TEST(LayerActivation, LosesItsMasksWithoutDropout) {
  TransformerSpec model = zoo::gpt_22b();
  const Bytes with = layer_activation(model, unfused(1, 1)).kept;
  model.dropout = false;
  const std::int64_t s = 2048;
  EXPECT_EQ(with - layer_activation(model, unfused(1, 1)).kept, Bytes(2 * s * 6144 + 3 * 64 * s * s));
}

TEST(LayerActivation, HoldsOneWholeLayerWhileItIsRecomputed) {
  const Shard shard = unfused(1, 8);
  const LayerActivation full = layer_activation(zoo::gpt3_175b(), recomputing(shard, Recompute::kFull));
  EXPECT_EQ(full.transient, layer_activation(zoo::gpt3_175b(), shard).kept);
  EXPECT_EQ(layer_activation(zoo::gpt3_175b(), shard).transient, Bytes(0));
}

// T (8h + 4aq + 4kq + 4a + 6f) / t by tensor; silu(gate) adds 2f when the activation is not fused.
TEST(LayerActivation, OfLlamaIsTheSumOfItsTensors) {
  Shard shard{.sequence = 8192};
  EXPECT_EQ(layer_activation(zoo::llama3_8b(), shard).kept, Bytes(1'141'899'264));
  shard.fused_kernels = false;
  EXPECT_EQ(layer_activation(zoo::llama3_8b(), shard).kept, Bytes(1'376'780'288));
  const Shard eight{.sequence = 8192, .tensor = 8, .sequence_parallel = true};
  EXPECT_EQ(layer_activation(zoo::llama3_70b(), eight).kept, Bytes(281'280'512));
  EXPECT_EQ(layer_activation(zoo::llama31_405b(), eight).kept, Bytes(533'200'896));
}

TEST(LayerActivation, DoublesInFp32ButForMasks) {
  TransformerSpec model = zoo::gpt_22b();
  model.dropout = false;
  Shard shard = unfused(1, 1);
  const Bytes half = layer_activation(model, shard).kept;
  shard.precision = Precision::kFp32;
  EXPECT_EQ(layer_activation(model, shard).kept, 2 * half);
}

// Section 4.3 of the paper: s b h / t of embedding dropout masks per micro-batch in flight; ids are int64.
TEST(EmbeddingActivation, IsTokenIdsAndADropoutMask) {
  const Shard shard = with_sequence_parallelism(unfused(4, 8));
  EXPECT_EQ(embedding_activation(zoo::gpt_22b(), shard), Bytes(8 * 8192 + 8192 * 6144 / 8));
  EXPECT_EQ(embedding_activation(zoo::llama3_8b(), {.sequence = 8192}), Bytes(8 * 8192));
}

// Section 4.3: 4 s b h / t (1 + V/h) for the final norm, the head and the loss.
TEST(HeadActivation, IsFourBytesPerLogitAndHiddenElement) {
  const Shard shard = with_sequence_parallelism(unfused(4, 8));
  EXPECT_EQ(head_activation(zoo::gpt_22b(), shard), Bytes(4 * 8192 * (6144 + 51200) / 8));
}

// fp32 logits of Llama-3 8B: 4 202 692 608 bytes; with 16-bit logits and their gradient twice that, about 8
// GiB.
TEST(HeadTransient, AddsLogitsAndTheirGradientToTheSoftmax) {
  const Shard shard{.sequence = 8192};
  const Bytes fp32_logits(4'202'692'608);
  EXPECT_EQ(head_activation(zoo::llama3_8b(), shard), Bytes(4 * 8192 * 4096) + fp32_logits);
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard), fp32_logits);
}

TEST(BoundaryActivation, IsTheResidualStreamSplitUnderSequenceParallelism) {
  EXPECT_EQ(boundary_activation(zoo::gpt3_175b(), unfused(1, 8)), 48_MiB);
  EXPECT_EQ(boundary_activation(zoo::gpt3_175b(), with_sequence_parallelism(unfused(1, 8))), 6_MiB);
}

// Megatron-LM's distributed-optimizer table: 18, 20, 16 and 16 bytes per parameter without sharding.
TEST(StateBytes, AreThoseOfTheDistributedOptimizerTable) {
  const auto sum = [](Precision precision, Precision gradient) {
    const StateBytes bytes = state_bytes(precision, gradient);
    return bytes.weight + bytes.gradient + bytes.optimizer;
  };
  EXPECT_EQ(sum(Precision::kBf16, Precision::kFp32), 18);
  EXPECT_EQ(sum(Precision::kFp16, Precision::kFp16), 20);
  EXPECT_EQ(sum(Precision::kFp32, Precision::kFp32), 16);
  EXPECT_EQ(sum(Precision::kBf16, Precision::kBf16), 16);
  EXPECT_EQ(state_bytes(Precision::kFp16, Precision::kFp16).optimizer, 16);
}

// The first stage of GPT-3 at t = p = 8: 2 822 731 776 parameters, 47.32 GiB at 18 bytes.
TEST(StateBytes, FillTwoThirdsOfAnA100WithGpt3sFirstStage) {
  const TransformerSpec model = zoo::gpt3_175b();
  const std::int64_t parameters =
      12 * layer_parameters(model, LayerKind::kDense, {.tensor = 8}).all() + embedding_parameters(model, 8);
  EXPECT_NEAR(Bytes(18 * parameters) / 1_GiB, 47.32, 0.005);
}

}  // namespace
}  // namespace stagecraft
