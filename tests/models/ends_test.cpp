// The ends of the pipeline and the optimizer step, each operator by hand.
#include <gtest/gtest.h>

#include "models/operators.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace op_lists;

constexpr Shard kEight{.sequence = 2048, .tensor = 8};
constexpr Shard kEightWithSp{.sequence = 2048, .tensor = 8, .sequence_parallel = true};

// Rows 4 and positions 6 bytes per element, dropout 5; back: read 2 and add into fp32 rows 8, positions 2 + 8
// s h.
TEST(EmbeddingOperators, LookUpReduceAndDropOut) {
  const LayerOps ends = embedding_operators(zoo::gpt3_175b(), kEight);
  const std::int64_t th = 2048 * 12288;
  EXPECT_EQ(names(ends.forward), (Names{"embedding", "embedding reduce", "positions", "embedding dropout"}));
  EXPECT_EQ(ends.forward[0].bytes, Bytes(4 * th));
  EXPECT_EQ(ends.forward[1].bytes, Bytes(2 * th));
  EXPECT_EQ(ends.forward[2].bytes, Bytes(6 * th));
  EXPECT_EQ(ends.forward[3].bytes, Bytes(5 * th));
  EXPECT_EQ(names(ends.input_gradient), Names{"embedding dropout"});
  EXPECT_EQ(names(ends.weight_gradient), (Names{"embedding", "positions"}));
  EXPECT_EQ(ends.weight_gradient[0].bytes, Bytes(10 * th));
  EXPECT_EQ(ends.weight_gradient[1].bytes, Bytes(2 * th + 8 * 2048 * 12288));
}

TEST(EmbeddingOperators, OfOneLlamaRankOnlyLookUp) {
  const LayerOps ends = embedding_operators(zoo::llama3_8b(), {.sequence = 8192});
  EXPECT_EQ(names(ends.forward), Names{"embedding"});
  EXPECT_TRUE(ends.input_gradient.empty());
  EXPECT_EQ(names(ends.weight_gradient), Names{"embedding"});
}

TEST(EmbeddingOperators, ScatterUnderSequenceParallelismAndGatherOnTheWayBack) {
  const LayerOps ends = embedding_operators(zoo::gpt3_175b(), kEightWithSp);
  EXPECT_EQ(find(ends.forward, "embedding reduce").collective, CollectiveKind::kReduceScatter);
  EXPECT_EQ(find(ends.forward, "embedding dropout").bytes, Bytes(5 * 2048 * 12288 / 8));
  EXPECT_EQ(find(ends.input_gradient, "embedding gradient gather").bytes, Bytes(2 * 2048 * 12288));
}

// Where each rank has all rows there is nothing to sum; the gradients of a sequence's parts meet all the same.
TEST(EmbeddingOperators, OfAReplicatedTableReduceNothing) {
  for (Shard shard : {kEight, kEightWithSp}) {
    const LayerOps split = embedding_operators(zoo::gpt3_175b(), shard);
    shard.replicated_embedding = true;
    const LayerOps whole = embedding_operators(zoo::gpt3_175b(), shard);
    EXPECT_EQ(names(whole.forward), (Names{"embedding", "positions", "embedding dropout"}));
    EXPECT_EQ(names(whole.input_gradient), names(split.input_gradient));
    EXPECT_EQ(names(whole.weight_gradient), names(split.weight_gradient));
  }
}

// A context rank looks up the s/c tokens that it holds, and their positions.
TEST(EmbeddingOperators, OfAContextRankSeeItsTokens) {
  const Shard shard{.sequence = 2048, .micro_batch = 2, .context = 4};
  const LayerOps ends = embedding_operators(zoo::gpt3_175b(), shard);
  EXPECT_EQ(ends.forward[0].bytes, Bytes(4 * 1024 * 12288));
  EXPECT_EQ(find(ends.weight_gradient, "positions").bytes, Bytes(2 * 1024 * 12288 + 8 * 512 * 12288));
  EXPECT_EQ(find(head_operators(zoo::gpt3_175b(), shard).forward, "head").gemm.m, 1024);
}

TEST(EmbeddingOperators, AreNotRecomputed) {
  Shard shard = kEight;
  shard.recompute = Recompute::kFull;
  EXPECT_TRUE(embedding_operators(zoo::gpt3_175b(), shard).recompute.empty());
  EXPECT_TRUE(head_operators(zoo::gpt3_175b(), shard).recompute.empty());
}

// (2048, 6400, 12288) and its two gradients.
TEST(HeadOperators, MultiplyByTheRanksShareOfTheVocabulary) {
  const LayerOps ends = head_operators(zoo::gpt3_175b(), kEight);
  const GemmShape forward{.m = 2048, .n = 6400, .k = 12288, .layout = GemmLayout::kTN};
  const GemmShape input{.m = 2048, .n = 12288, .k = 6400, .layout = GemmLayout::kNN};
  const GemmShape weight{.m = 6400, .n = 12288, .k = 2048, .layout = GemmLayout::kNT};
  EXPECT_EQ(find(ends.forward, "head").gemm, forward);
  EXPECT_EQ(find(ends.input_gradient, "head").gemm, input);
  EXPECT_EQ(find(ends.weight_gradient, "head").gemm, weight);
  EXPECT_EQ(total_flops(ends.forward), Flops(322'122'547'200));
  EXPECT_EQ(total_flops(head_operators(zoo::llama3_8b(), {.sequence = 8192}).forward),
            Flops(8'607'114'461'184));
}

// The product is split as before; its outputs, 2 x 2048 x 51200 bytes together, are gathered and put side by side, and the
// loss reads all of them without another rank.
TEST(HeadOperators, GatherTheLogitsForALossOfEachRank) {
  Shard shard = kEight;
  shard.software.gathered_logits = true;
  const LayerOps ends = head_operators(zoo::gpt3_175b(), shard);
  const LayerOps split = head_operators(zoo::gpt3_175b(), kEight);
  const std::int64_t logits = 2048LL * 51200;
  EXPECT_EQ(names(ends.forward),
            (Names{"final norm", "head", "logits gather", "logits side by side", "loss"}));
  EXPECT_EQ(find(ends.forward, "head").gemm, find(split.forward, "head").gemm);
  EXPECT_EQ(find(ends.forward, "logits gather").collective, CollectiveKind::kAllGather);
  EXPECT_EQ(find(ends.forward, "logits gather").bytes, Bytes(2 * logits));
  EXPECT_EQ(find(ends.forward, "logits side by side").bytes, Bytes(4 * logits));
  EXPECT_EQ(find(ends.forward, "loss").bytes, 8 * find(split.forward, "loss").bytes);
  EXPECT_EQ(find(ends.input_gradient, "loss gradient").bytes,
            8 * find(split.input_gradient, "loss gradient").bytes);
  EXPECT_EQ(names(ends.input_gradient), names(split.input_gradient));
}

// 8 * 6282 + 1 rows: the fullest rank has 6283.
TEST(HeadOperators, TakeTheVocabularyAsGiven) {
  TransformerSpec model = zoo::gpt3_175b();
  model.vocab = 50257;
  EXPECT_EQ(find(head_operators(model, kEight).forward, "head").gemm.n, 6283);
}

// To fp32 6, max 4, subtract 8, exp 8, sum 4, divide 8; scale 8 and cast 6 back. Three fp32 per token are
// reduced.
TEST(HeadOperators, CountTheUnfusedLoss) {
  const LayerOps ends = head_operators(zoo::gpt3_175b(), kEight);
  EXPECT_EQ(names(ends.forward),
            (Names{"final norm", "head", "loss", "loss maximum", "loss target", "loss sum"}));
  EXPECT_EQ(find(ends.forward, "loss").bytes, Bytes(38 * 2048 * 6400));
  EXPECT_EQ(find(ends.input_gradient, "loss gradient").bytes, Bytes(14 * 2048 * 6400));
  EXPECT_EQ(find(ends.forward, "loss sum").bytes, Bytes(4 * 2048));
}

TEST(HeadOperators, OfAFusedLossReduceTwice) {
  Shard shard = kEight;
  shard.software.fused_loss = true;
  const LayerOps ends = head_operators(zoo::gpt3_175b(), shard);
  EXPECT_EQ(names(ends.forward),
            (Names{"final norm", "head", "loss", "loss maximum", "loss target and sum"}));
  EXPECT_EQ(find(ends.forward, "loss target and sum").bytes, Bytes(8 * 2048));
}

// A fused kernel moves the profile's share of the unfused count. Megatron-Core's loss is none, however many other
// kernels are fused, and what it compiles moves nearly as much.
TEST(HeadOperators, OfMegatronCoreReadLogitsAgainAndAgain) {
  Shard shard = kEight;
  const auto loss = [&](bool back) {
    const LayerOps ends = head_operators(zoo::gpt3_175b(), shard);
    return back ? find(ends.input_gradient, "loss gradient") : find(ends.forward, "loss");
  };
  EXPECT_EQ(loss(false).kind, OpKind::kLoss);
  EXPECT_EQ(loss(true).kind, OpKind::kLoss);
  shard.rules.eager_loss = true;
  EXPECT_EQ(loss(false).kind, OpKind::kMemory);
  EXPECT_EQ(loss(true).kind, OpKind::kMemory);
  EXPECT_EQ(loss(false).bytes, Bytes(38 * 2048 * 6400));
  shard.software.compiled_loss = true;
  EXPECT_EQ(loss(false).kind, OpKind::kMemory);
  EXPECT_EQ(loss(false).bytes, Bytes(34 * 2048 * 6400));
  EXPECT_EQ(loss(true).bytes, Bytes(18 * 2048 * 6400));
  shard.software.fused_loss = true;
  EXPECT_EQ(loss(false).kind, OpKind::kLoss);
  EXPECT_EQ(loss(false).bytes, Bytes(38 * 2048 * 6400));
  shard.fused_kernels = false;
  EXPECT_EQ(loss(true).kind, OpKind::kLoss);
}

// Without the profile's share either: a compiled loss is what it says under any software, and without fused kernels
// the loss has none.
TEST(HeadOperators, OfACompiledLossAreNoFusedKernelUnderAnySoftware) {
  Shard shard = kEight;
  shard.software.compiled_loss = true;
  EXPECT_EQ(find(head_operators(zoo::gpt3_175b(), shard).forward, "loss").kind, OpKind::kMemory);
  shard.software.compiled_loss = false;
  shard.fused_kernels = false;
  EXPECT_EQ(find(head_operators(zoo::gpt3_175b(), shard).forward, "loss").kind, OpKind::kMemory);
}

// Three chunks of 2,048 tokens: 683, 683 and 682. All of it is done, in smaller products.
TEST(HeadOperators, InChunksDoTheSameInParts) {
  Shard shard = kEight;
  const LayerOps whole = head_operators(zoo::gpt3_175b(), shard);
  shard.software.loss_chunks = 3;
  const LayerOps parts = head_operators(zoo::gpt3_175b(), shard);
  EXPECT_EQ(names(parts.forward),
            (Names{"final norm", "head", "loss", "loss maximum", "loss target", "loss sum", "head", "loss",
                   "loss maximum", "loss target", "loss sum", "head", "loss", "loss maximum", "loss target",
                   "loss sum"}));
  EXPECT_EQ(parts.forward[1].gemm.m, 683);
  EXPECT_EQ(parts.forward[11].gemm.m, 682);
  EXPECT_EQ(names(parts.weight_gradient), (Names{"head", "head", "head"}));
  EXPECT_EQ(parts.weight_gradient[0].gemm.k, 683);
  EXPECT_EQ(total_flops(parts.forward), total_flops(whole.forward));
  EXPECT_EQ(total_flops(parts.input_gradient), total_flops(whole.input_gradient));
  EXPECT_EQ(total_flops(parts.weight_gradient), total_flops(whole.weight_gradient));
  EXPECT_EQ(parts.forward[2].bytes + parts.forward[7].bytes + parts.forward[12].bytes,
            find(whole.forward, "loss").bytes);
}

TEST(HeadOperators, ConvertNothingForTheLossInFp32) {
  const LayerOps ends = head_operators(zoo::gpt3_175b(), {.sequence = 2048, .precision = Precision::kFp32});
  EXPECT_EQ(find(ends.forward, "loss").bytes, Bytes(32LL * 2048 * 51200));
  EXPECT_EQ(find(ends.input_gradient, "loss gradient").bytes, Bytes(8LL * 2048 * 51200));
}

TEST(HeadOperators, GatherAndScatterUnderSequenceParallelism) {
  const LayerOps ends = head_operators(zoo::gpt3_175b(), kEightWithSp);
  EXPECT_EQ(find(ends.forward, "head gather").bytes, Bytes(2 * 2048 * 12288));
  EXPECT_EQ(find(ends.forward, "head gather").beside, Beside::kNothing);
  EXPECT_EQ(find(ends.input_gradient, "head input gather").beside, Beside::kWeightGradient);
  EXPECT_EQ(find(ends.input_gradient, "head gradient reduce").collective, CollectiveKind::kReduceScatter);
  EXPECT_EQ(find(ends.input_gradient, "head gradient reduce").beside, Beside::kWeightGradient);
}

// The final norm has no residual beside it: 4 (+ 8 a token) and 6 (+ 4 h).
TEST(HeadOperators, NormWithoutAResidual) {
  const LayerOps ends = head_operators(zoo::gpt3_175b(), kEight);
  EXPECT_EQ(find(ends.forward, "final norm").bytes, Bytes(4 * 2048 * 12288 + 8 * 2048));
  EXPECT_EQ(find(ends.input_gradient, "final norm").bytes, Bytes(6 * 2048 * 12288 + 4 * 12288));
}

// The shifted tokens are looked up; two norms, two vectors side by side (4 bytes per element of 2h), a
// product from 2h to h.
TEST(MtpOperators, LookUpNormJoinAndProject) {
  const LayerOps ops = mtp_operators(zoo::deepseek_v3(), {.sequence = 4096});
  const std::int64_t th = 4096 * 7168;
  EXPECT_EQ(names(ops.forward), (Names{"embedding", "mtp embedding norm", "mtp hidden norm",
                                       "mtp concatenation", "mtp projection"}));
  EXPECT_EQ(find(ops.forward, "embedding").bytes, Bytes(4 * th));
  EXPECT_EQ(find(ops.weight_gradient, "embedding").bytes, Bytes(10 * th));  // read 2, add 8 in fp32
  const GemmShape forward{.m = 4096, .n = 7168, .k = 14336, .layout = GemmLayout::kTN};
  const GemmShape weight{.m = 7168, .n = 14336, .k = 4096, .layout = GemmLayout::kNT};
  EXPECT_EQ(find(ops.forward, "mtp projection").gemm, forward);
  EXPECT_EQ(find(ops.weight_gradient, "mtp projection").gemm, weight);
  EXPECT_EQ(find(ops.forward, "mtp concatenation").bytes, Bytes(8 * th));
  EXPECT_EQ(find(ops.input_gradient, "mtp hidden norm").bytes, Bytes(6 * th + 4 * 7168));
}

// The projection is split by its outputs; 2h are gathered before it and h behind it.
TEST(MtpOperators, SplitTheProjectionByColumns) {
  const Shard shard{.sequence = 4096, .tensor = 4, .sequence_parallel = true};
  const LayerOps ops = mtp_operators(zoo::deepseek_v3(), shard);
  const std::int64_t th = 4096 * 7168;
  EXPECT_EQ(find(ops.forward, "mtp projection").gemm.n, 1792);
  EXPECT_EQ(find(ops.forward, "embedding reduce").bytes, Bytes(2 * th));
  EXPECT_EQ(find(ops.input_gradient, "embedding gradient gather").bytes, Bytes(2 * th));
  EXPECT_EQ(find(ops.forward, "mtp gather").bytes, Bytes(4 * th));
  EXPECT_EQ(find(ops.forward, "mtp output gather").bytes, Bytes(2 * th));
  EXPECT_EQ(find(ops.input_gradient, "mtp gradient gather").bytes, Bytes(2 * th));
  EXPECT_EQ(find(ops.input_gradient, "mtp gradient reduce").bytes, Bytes(4 * th));
}

// What was looked up is kept.
TEST(MtpOperators, AreRepeatedWithAWholeLayerOnly) {
  Shard shard{.sequence = 4096, .recompute = Recompute::kSelective};
  EXPECT_TRUE(mtp_operators(zoo::deepseek_v3(), shard).recompute.empty());
  shard.recompute = Recompute::kFull;
  const LayerOps ops = mtp_operators(zoo::deepseek_v3(), shard);
  EXPECT_EQ(names(ops.recompute),
            (Names{"mtp embedding norm", "mtp hidden norm", "mtp concatenation", "mtp projection"}));
}

// Zero 4; norm 4, Adam 28, copy 6, sharded: 4 + 38/N bytes per parameter.
TEST(OptimizerOperators, MoveFourBytesAndThirtyEightShardedPerParameter) {
  const Ops ops = optimizer_operators(1600, 100, {.sequence = 1});
  EXPECT_EQ(names(ops), (Names{"zero gradients", "gradient norm", "adam", "weight copy"}));
  EXPECT_EQ(total_bytes(ops), Bytes(4 * 1600 + 38 * 100));
}

// Nothing is zeroed where the backward makes gradients anew: 38 bytes. One operation after the other reads and writes w
// four times, g twice, m, v and the root of v fourteen times: 80 in place of 28, in eight kernels.
TEST(OptimizerOperators, OfPyTorchZeroNothingAndMayRunOneByOne) {
  Shard shard{.sequence = 1, .rules = {.fresh_gradients = true}};
  EXPECT_EQ(total_bytes(optimizer_operators(100, 100, shard)), Bytes(38 * 100));
  shard.foreach_step = true;
  const Ops ops = optimizer_operators(100, 100, shard);
  EXPECT_EQ(names(ops), (Names{"gradient norm", "adam", "weight copy"}));
  EXPECT_EQ(find(ops, "adam").bytes, Bytes(80 * 100));
  EXPECT_EQ(find(ops, "adam").kernels, 8);
}

// fp16 gradients: zero 2, check 4, unscale 8: 14 + 38/N.
TEST(OptimizerOperators, CheckAndUnscaleFp16) {
  const Shard shard{.sequence = 1, .precision = Precision::kFp16, .gradient = Precision::kFp16};
  EXPECT_EQ(total_bytes(optimizer_operators(1600, 100, shard)), Bytes(14 * 1600 + 38 * 100));
}

TEST(OptimizerOperators, CopyNoWeightsInFp32) {
  const Shard shard{.sequence = 1, .precision = Precision::kFp32};
  EXPECT_EQ(total_bytes(optimizer_operators(1000, 1000, shard)), Bytes((4 + 4 + 28) * 1000));
}

// Adam works in fp32: a shard of 16-bit gradients is copied first, 2 read and 4 written.
TEST(OptimizerOperators, CopySixteenBitGradientsToFp32) {
  const Shard shard{.sequence = 1, .precision = Precision::kBf16, .gradient = Precision::kBf16};
  EXPECT_EQ(total_bytes(optimizer_operators(1600, 100, shard)), Bytes(2 * 1600 + (38 + 6) * 100));
}

// Norm 2; Adam reads a gradient of 2, a weight of 4, moments of 2 each and writes the latter three; copy 6.
TEST(OptimizerOperators, ReadSixteenBitGradientsAsTheyAreWhereMomentsAreNarrow) {
  const Shard shard{
      .sequence = 1, .precision = Precision::kBf16, .gradient = Precision::kBf16, .moment = Precision::kBf16};
  const Ops ops = optimizer_operators(1600, 100, shard);
  EXPECT_EQ(names(ops), (Names{"zero gradients", "gradient norm", "adam", "weight copy"}));
  EXPECT_EQ(total_bytes(ops), Bytes(2 * 1600 + (2 + 18 + 6) * 100));
}

// Norm 2; Adam reads a gradient of 2, both halves of a weight and two moments of 2 each and writes the latter
// four: no copy to 16 bit follows.
TEST(OptimizerOperators, WriteTheWeightWithTheRemainderOfItsMaster) {
  const Shard shard{.sequence = 1,
                    .precision = Precision::kBf16,
                    .gradient = Precision::kBf16,
                    .moment = Precision::kBf16,
                    .master_remainders = true};
  const Ops ops = optimizer_operators(1600, 100, shard);
  EXPECT_EQ(names(ops), (Names{"zero gradients", "gradient norm", "adam"}));
  EXPECT_EQ(total_bytes(ops), Bytes(2 * 1600 + (2 + 18) * 100));
}

// Norm 2; Adam reads a gradient, a weight and two moments of 2 each and writes the latter three.
TEST(OptimizerOperators, StepSixteenBitWeightsThemselvesWhereThereAreNoMasters) {
  const Shard shard{.sequence = 1,
                    .precision = Precision::kBf16,
                    .gradient = Precision::kBf16,
                    .moment = Precision::kBf16,
                    .master_weights = false};
  const Ops ops = optimizer_operators(1600, 100, shard);
  EXPECT_EQ(names(ops), (Names{"zero gradients", "gradient norm", "adam"}));
  EXPECT_EQ(total_bytes(ops), Bytes(2 * 1600 + (2 + 14) * 100));
}

}  // namespace
}  // namespace stagecraft
