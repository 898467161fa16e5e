// The operators of one layer: shapes, FLOPs, bytes and collectives, each by hand.
#include "models/operators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/models/op_lists.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace op_lists;

// GPT-3 175B on 8 ranks, one sample of 2048 tokens, as trained by Megatron-LM in 2021.
Shard gpt3_shard() {
  return {.sequence = 2048, .tensor = 8, .attention = Attention::kUnfused};
}

Shard with_sequence_parallelism(Shard shard) {
  shard.sequence_parallel = true;
  return shard;
}

TEST(LayerForward, OfAGptRunsInTheOrderOfTheNetwork) {
  EXPECT_EQ(names(layer_operators(zoo::gpt3_175b(), gpt3_shard()).forward),
            (Names{"attention norm", "qkv", "qkv split", "scores", "softmax", "attention dropout", "values",
                   "head transposition", "projection", "projection reduce", "dropout add", "ffn norm",
                   "ffn up", "activation", "ffn down", "ffn reduce", "dropout add"}));
}

TEST(LayerForward, OfALlamaHasNoDropoutAndTurnsItsQueriesAndKeys) {
  EXPECT_EQ(names(layer_operators(zoo::llama3_8b(), {.sequence = 8192}).forward),
            (Names{"attention norm", "qkv", "rope", "flash attention", "projection", "residual add",
                   "ffn norm", "ffn up", "activation", "ffn down", "residual add"}));
}

// 2 m n k of (2048, 4608, 12288), two of 12 x (2048, 2048, 128), (2048, 12288, 1536) and twice 2048 * 6144 *
// 12288.
TEST(LayerForward, OfGpt3HasItsFlopsToTheLastDigit) {
  const Ops ops = layer_operators(zoo::gpt3_175b(), gpt3_shard()).forward;
  EXPECT_EQ(find(ops, "qkv").flops, Flops(231'928'233'984));
  EXPECT_EQ(find(ops, "scores").flops + find(ops, "values").flops, Flops(25'769'803'776));
  EXPECT_EQ(find(ops, "projection").flops, Flops(77'309'411'328));
  EXPECT_EQ(find(ops, "ffn up").flops, Flops(309'237'645'312));
  EXPECT_EQ(find(ops, "ffn down").flops, Flops(309'237'645'312));
  EXPECT_EQ(total_flops(ops), Flops(953'482'739'712));
}

TEST(LayerForward, OfLlama3HasItsFlopsToTheLastDigit) {
  const Ops ops = layer_operators(zoo::llama3_8b(), {.sequence = 8192}).forward;
  EXPECT_EQ(find(ops, "qkv").flops, Flops(412'316'860'416));
  EXPECT_EQ(find(ops, "flash attention").flops, Flops(1'099'511'627'776));
  EXPECT_EQ(find(ops, "projection").flops, Flops(274'877'906'944));
  EXPECT_EQ(find(ops, "ffn up").flops, Flops(1'924'145'348'608));
  EXPECT_EQ(find(ops, "ffn down").flops, Flops(962'072'674'304));
  EXPECT_EQ(total_flops(ops), Flops(4'672'924'418'048));
}

TEST(LinearLayer, HasThreePassesOfOneWeight) {
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), gpt3_shard());
  const GemmShape forward{.m = 2048, .n = 4608, .k = 12288, .layout = GemmLayout::kTN};
  const GemmShape input{.m = 2048, .n = 12288, .k = 4608, .layout = GemmLayout::kNN};
  const GemmShape weight{.m = 4608, .n = 12288, .k = 2048, .layout = GemmLayout::kNT};
  EXPECT_EQ(find(layer.forward, "qkv").gemm, forward);
  EXPECT_EQ(find(layer.input_gradient, "qkv").gemm, input);
  EXPECT_EQ(find(layer.weight_gradient, "qkv").gemm, weight);
}

// 2 (T in + in out + T out) forward and back; the weight gradient reads 2 (T in + T out) and adds into fp32:
// 8 in out.
TEST(LinearLayer, ReadsAndWritesEachOperandOnce) {
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), gpt3_shard());
  const std::int64_t t = 2048, in = 12288, out = 4608;
  const Bytes activations(2 * t * (in + out));
  EXPECT_EQ(find(layer.forward, "qkv").bytes, activations + Bytes(2 * in * out));
  EXPECT_EQ(find(layer.input_gradient, "qkv").bytes, activations + Bytes(2 * in * out));
  EXPECT_EQ(find(layer.weight_gradient, "qkv").bytes, activations + Bytes(8 * in * out));
}

// Without fusion the GEMM writes 16 bit (2) and a kernel adds it to fp32 (2 + 4 + 4).
TEST(LinearLayer, AddsItsGradientInAKernelOfItsOwnWithoutFusion) {
  Shard shard = gpt3_shard();
  shard.gradient_accumulation_fusion = false;
  const Ops ops = layer_operators(zoo::gpt3_175b(), shard).weight_gradient;
  const std::int64_t t = 2048, h = 12288, f = 6144;
  EXPECT_EQ(names(ops), (Names{"ffn down", "gradient accumulation", "ffn up", "gradient accumulation",
                               "projection", "gradient accumulation", "qkv", "gradient accumulation"}));
  EXPECT_EQ(ops[0].bytes, Bytes(2 * t * (h + f) + 2 * h * f));
  EXPECT_EQ(ops[1].bytes, Bytes(10 * h * f));
}

// Gradients of 16 bit are read and written by 2 bytes in place of 4.
TEST(LinearLayer, AccumulatesHalfAsManyBytesInSixteenBit) {
  Shard shard = gpt3_shard();
  const auto bytes = [&] { return layer_operators(zoo::gpt3_175b(), shard).weight_gradient[0].bytes; };
  const Bytes fp32 = bytes();
  shard.gradient = Precision::kBf16;
  EXPECT_EQ(fp32 - bytes(), Bytes(4 * 12288 * 6144));
}

// Operands of one byte, results of two, and casts of X and dY: read 2, write 1, and a transposed copy. What
// comes from a norm is fp8.
TEST(LinearLayer, CastsItsOperandsToFp8) {
  Shard shard = gpt3_shard();
  shard.precision = Precision::kFp8;
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), shard);
  const std::int64_t t = 2048, in = 12288, out = 4608;
  EXPECT_EQ(layer.forward[1].name, "fp8 cast");
  EXPECT_EQ(layer.forward[1].bytes, Bytes(2 * t * in));
  EXPECT_EQ(layer.forward[1].kernels, 1);
  EXPECT_EQ(find(layer.input_gradient, "fp8 cast").bytes, Bytes(4 * t * in));
  EXPECT_EQ(find(layer.forward, "qkv").bytes, Bytes(t * in + in * out + 2 * t * out));
  EXPECT_EQ(find(layer.weight_gradient, "qkv").bytes, Bytes(t * (in + out) + 8 * in * out));
}

// Under sequence parallelism a rank casts its own rows, unless a norm did, which travel in one byte; what comes
// is transposed. The input that is gathered again for the weight gradient was kept in fp8; outputs are reduced
// in 16 bit.
TEST(LinearLayer, GathersItsOperandsInFp8) {
  Shard shard = with_sequence_parallelism(gpt3_shard());
  const LayerOps bf16 = layer_operators(zoo::gpt3_175b(), shard);
  shard.precision = Precision::kFp8;
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), shard);
  const std::int64_t t = 2048, in = 12288;
  EXPECT_EQ(find(layer.input_gradient, "fp8 cast").bytes, Bytes(3 * t / 8 * in));  // before the gather
  const auto gather = std::ranges::find(layer.forward, "qkv gather", &Op::name);
  ASSERT_LT(gather + 1, layer.forward.end());
  EXPECT_EQ((gather + 1)->name, "fp8 cast");
  EXPECT_EQ((gather + 1)->bytes, Bytes(2 * t * in));
  EXPECT_EQ(gather->bytes, Bytes(t * in));
  for (const char* name : {"qkv input gather", "projection gradient gather", "ffn gradient gather"})
    EXPECT_EQ(find(layer.input_gradient, name).bytes * 2, find(bf16.input_gradient, name).bytes) << name;
  EXPECT_EQ(find(layer.forward, "ffn reduce").bytes, find(bf16.forward, "ffn reduce").bytes);
  const auto casts = [](const Ops& ops) { return std::ranges::count(ops, "fp8 cast", &Op::name); };
  EXPECT_EQ(casts(layer.forward), 4);             // four products
  EXPECT_EQ(casts(layer.input_gradient), 4 + 2);  // and two gathers of gradients
}

// ZeRO 3 under Transformer Engine: read 2, write 1 and its transpose, in the forward alone.
TEST(LinearLayer, CastsGatheredWeightsInEveryForward) {
  Shard shard = gpt3_shard();
  shard.precision = Precision::kFp8;
  shard.gathered_weights = true;
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), shard);
  EXPECT_EQ(find(layer.forward, "fp8 weight cast").bytes, Bytes(4LL * 12288 * 4608));
  EXPECT_EQ(std::ranges::count(layer.forward, "fp8 weight cast", &Op::name), 4);
  EXPECT_EQ(std::ranges::count(layer.input_gradient, "fp8 weight cast", &Op::name), 0);
}

// Weights in fp8 arrive as they are multiplied, and want a transposed copy.
TEST(LinearLayer, TransposesWeightsThatAreFp8Already) {
  Shard shard = gpt3_shard();
  shard.precision = Precision::kFp8;
  shard.fp8_parameters = shard.gathered_weights = true;
  const LayerOps gathered = layer_operators(zoo::gpt3_175b(), shard);
  shard.gathered_weights = false;
  const LayerOps whole = layer_operators(zoo::gpt3_175b(), shard);
  shard.fp8_recipe = Fp8Recipe::kTorchao;
  const LayerOps dynamic = layer_operators(zoo::gpt3_175b(), shard);
  for (const LayerOps& layer : {gathered, dynamic}) {
    EXPECT_EQ(std::ranges::count(layer.forward, "fp8 weight cast", &Op::name), 0);
    EXPECT_EQ(find(layer.input_gradient, "fp8 weight cast").bytes, Bytes(2LL * 12288 * 6144));
    EXPECT_EQ(std::ranges::count(layer.input_gradient, "fp8 scale", &Op::name), 0);
  }
  EXPECT_EQ(std::ranges::count(whole.input_gradient, "fp8 weight cast", &Op::name), 0);
}

// Another kernel reads 2 before, for the largest value.
TEST(LinearLayer, ReadsItsOperandsTwiceUnderDynamicScaling) {
  Shard shard = gpt3_shard();
  shard.precision = Precision::kFp8;
  shard.fp8_recipe = Fp8Recipe::kTorchao;
  const Op cast = find(layer_operators(zoo::gpt3_175b(), shard).forward, "fp8 cast");
  EXPECT_EQ(cast.bytes, Bytes(6LL * 2048 * 12288));
  EXPECT_EQ(cast.kernels, 2);
}

// torchao: the largest value of each operand is read first, in every pass, weights' too; tensor ranks agree
// on those of weights.
TEST(LinearLayer, ScalesItsOperandsAnewInEveryPass) {
  Shard shard = with_sequence_parallelism(gpt3_shard());
  shard.precision = Precision::kFp8;
  shard.fp8_recipe = Fp8Recipe::kTorchao;
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), shard);
  const std::int64_t t = 2048, in = 12288, out = 4608;
  EXPECT_EQ(find(layer.forward, "fp8 cast").bytes, Bytes(5 * t / 8 * in));
  EXPECT_EQ(find(layer.forward, "fp8 weight cast").bytes, Bytes(5 * in * out));
  EXPECT_EQ(find(layer.forward, "fp8 scale").bytes, Bytes(4));
  EXPECT_EQ(find(layer.input_gradient, "fp8 weight cast").bytes, Bytes(5LL * 12288 * 6144));
  shard.precision = Precision::kBf16;
  const LayerOps bf16 = layer_operators(zoo::gpt3_175b(), shard);
  shard.fp8_recipe = Fp8Recipe::kDelayed;
  EXPECT_EQ(names(bf16.forward), names(layer_operators(zoo::gpt3_175b(), shard).forward));
}

// Shapes (s, s, q) and (s, q, s) for each of b a/t heads; two forward, four backward.
TEST(UnfusedAttention, MultipliesSixBatchesOfHeads) {
  Shard shard = gpt3_shard();
  shard.micro_batch = 3;
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), shard);
  const auto batched = [](const Ops& ops) {
    Flops sum;
    for (const Op& op : ops) sum += op.kind == OpKind::kBatchedGemm ? op.flops : Flops(0);
    return sum;
  };
  const GemmShape scores{.m = 2048, .n = 2048, .k = 128, .batch = 36, .layout = GemmLayout::kTN};
  const GemmShape values{.m = 2048, .n = 128, .k = 2048, .batch = 36, .layout = GemmLayout::kNN};
  EXPECT_EQ(find(layer.forward, "scores").gemm, scores);
  EXPECT_EQ(find(layer.forward, "values").gemm, values);
  EXPECT_EQ(batched(layer.forward), Flops(4.0 * 36 * 2048 * 2048 * 128));
  EXPECT_EQ(batched(layer.input_gradient), 2.0 * batched(layer.forward));
}

// Softmax 4 and dropout 5 forward, 6 and 5 backward.
TEST(UnfusedAttention, MovesNineBytesPerScoreForwardAndElevenBackward) {
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), gpt3_shard());
  const std::int64_t scores = 12 * 2048 * 2048;
  const auto moved = [](const Ops& ops) {
    return find(ops, "softmax").bytes + find(ops, "attention dropout").bytes;
  };
  EXPECT_EQ(moved(layer.forward), Bytes(9 * scores));
  EXPECT_EQ(moved(layer.input_gradient), Bytes(11 * scores));
}

// Nothing casts Q, K, V and the scores to fp8: the products of the core are those of bf16.
TEST(UnfusedAttention, StaysInSixteenBitUnderFp8) {
  Shard fp8 = gpt3_shard();
  fp8.precision = Precision::kFp8;
  const LayerOps expected = layer_operators(zoo::gpt3_175b(), gpt3_shard());
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), fp8);
  for (const Ops LayerOps::*pass : {&LayerOps::forward, &LayerOps::input_gradient}) {
    const Ops products = of_kind(layer.*pass, OpKind::kBatchedGemm);
    const Ops sixteen_bit = of_kind(expected.*pass, OpKind::kBatchedGemm);
    ASSERT_EQ(products.size(), sixteen_bit.size());
    for (std::size_t i = 0; i < products.size(); ++i) {
      EXPECT_EQ(products[i].precision, Precision::kBf16) << products[i].name;
      EXPECT_EQ(products[i].bytes, sixteen_bit[i].bytes) << products[i].name;
    }
  }
}

// Eager: scale 4, mask 5, to fp32 6, softmax 8, back 6; 8 + 4 + 12 on the way back.
TEST(UnfusedAttention, MovesTwentyNineBytesPerScoreWhenEager) {
  Shard shard = gpt3_shard();
  shard.fused_kernels = false;
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), shard);
  EXPECT_EQ(find(layer.forward, "softmax").bytes, Bytes(29LL * 12 * 2048 * 2048));
  EXPECT_EQ(find(layer.forward, "softmax").kernels, 5);
  EXPECT_EQ(find(layer.input_gradient, "softmax").bytes, Bytes(24LL * 12 * 2048 * 2048));
}

// The split of Q, K, V and the transposition of the heads read and write each element once.
TEST(UnfusedAttention, ReordersQkvAndHeadsInEachDirection) {
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), gpt3_shard());
  for (const Ops* ops : {&layer.forward, &layer.input_gradient}) {
    EXPECT_EQ(find(*ops, "qkv split").bytes, Bytes(4 * 2048 * 4608));
    EXPECT_EQ(find(*ops, "head transposition").bytes, Bytes(4 * 2048 * 1536));
  }
}

// Reads Q, K, V, writes O, with a log-sum-exp of 4 bytes per token and head; backward twice as many tensors
// and five products in place of two.
TEST(FlashAttention, CountsTheFullSquareAndFiveProductsBackward) {
  const LayerOps layer = layer_operators(zoo::llama3_8b(), {.sequence = 4096, .tensor = 2});
  const Op& forward = find(layer.forward, "flash attention");
  const Op& backward = find(layer.input_gradient, "flash attention");
  EXPECT_EQ(forward.kind, OpKind::kFlashForward);
  EXPECT_EQ(backward.kind, OpKind::kFlashBackward);
  EXPECT_EQ(forward.flops, Flops(4.0 * 16 * 4096 * 4096 * 128));
  EXPECT_EQ(backward.flops, 2.5 * forward.flops);
  EXPECT_EQ(forward.bytes, Bytes(4096 * (2 * (2 * 2048 + 2 * 512) + 4 * 16)));
  EXPECT_EQ(backward.bytes, Bytes(4096 * (2 * (4 * 2048 + 4 * 512) + 4 * 16)));
}

// One problem a sample and head of the rank, every query against every key, the later ones masked.
// Llama 3 8B, 8,192 tokens: Q and O have 4,096 columns, K and V 1,024 each. One scale a tensor: 2 + 1 bytes an element,
// current ones read it once more before. Delayed scaling leaves O and the gradients of Q, K and V in fp8.
TEST(FlashAttention, InFp8CastsWhatItReads) {
  Shard shard{.sequence = 8192, .precision = Precision::kFp8};
  const auto bytes = [&](Fp8Attention attention, bool backward) {
    shard.fp8_attention = attention;
    const LayerOps layer = layer_operators(zoo::llama3_8b(), shard);
    const Ops& ops = backward ? layer.input_gradient : layer.forward;
    const auto core = std::ranges::find(ops, "flash attention", &Op::name);
    EXPECT_EQ(core->attention.operands, operands_of(attention));
    std::vector<std::int64_t> around;
    for (const Op* op : {&core[-1], &core[1]})
      around.push_back(op->name.starts_with("fp8 cast") ? op->bytes.count() : 0);
    return around;
  };
  const std::int64_t inputs = 8192 * (4096 + 2 * 1024), output = 8192 * 4096;
  using Around = std::vector<std::int64_t>;
  const std::int64_t projection = bytes(Fp8Attention::kNone, false)[1];  // the projection's own cast
  EXPECT_EQ(bytes(Fp8Attention::kCurrent, false), (Around{5 * inputs, projection}));
  EXPECT_EQ(bytes(Fp8Attention::kDelayed, false), (Around{3 * inputs, 3 * output}));
  EXPECT_EQ(bytes(Fp8Attention::kMxfp8, false), (Around{4 * inputs + inputs / 16, projection}));
  EXPECT_EQ(bytes(Fp8Attention::kCurrent, true)[0], 5 * output);
  EXPECT_EQ(bytes(Fp8Attention::kDelayed, true), (Around{3 * output, 3 * inputs}));
  EXPECT_EQ(bytes(Fp8Attention::kMxfp8, true)[0], 4 * output + output / 16);
}

TEST(FlashAttention, IsInFp8WhereTheJobIsAndTheLayerToo) {
  const auto operands = [](const Shard& shard, LayerKind kind = LayerKind::kDense) {
    const LayerOps layer = layer_operators(zoo::llama3_8b(), shard, kind);
    const auto core = std::ranges::find(layer.forward, "flash attention", &Op::name);
    return core->attention.operands;
  };
  Shard shard{.sequence = 8192, .fp8_attention = Fp8Attention::kCurrent};
  EXPECT_EQ(operands(shard), FlashOperands::kSixteenBit);
  shard.precision = Precision::kFp8;
  EXPECT_EQ(operands(shard), FlashOperands::kFp8);
  EXPECT_EQ(operands(shard, LayerKind::kDenseIn16Bit), FlashOperands::kSixteenBit);
}

TEST(FlashAttention, SaysTheShapeOfItsProblems) {
  const Shard shard{.sequence = 4096, .micro_batch = 3, .tensor = 2};
  const LayerOps layer = layer_operators(zoo::llama3_8b(), shard);
  const AttentionShape shape{
      .batch = 3 * 16, .queries = 4096, .keys = 4096, .query_size = 128, .value_size = 128, .causal = true};
  EXPECT_EQ(find(layer.forward, "flash attention").attention, shape);
  EXPECT_EQ(find(layer.input_gradient, "flash attention").attention, shape);
}

struct Expected {
  std::string_view name;
  std::int64_t fused_forward, fused_backward, eager_forward, eager_backward;  // bytes
};

// Per element of T' h: norm 4 (+ 8 statistics a token), and 6 back + 2 for the residual's gradient (+ 4 h
// partials); bias, dropout and add 7 fused, 15 eager. Per element of T f/t: bias and GELU 4 and 6, eager 8
// and 12.
TEST(ElementwiseOperators, OfAGptMoveTheTablesBytes) {
  const std::int64_t th = 2048 * 12288, tf = 2048 * 6144, h = 12288;
  const std::vector<Expected> table{
      {"ffn norm", 4 * th + 8 * 2048, 8 * th + 4 * h, 4 * th + 8 * 2048, 8 * th + 4 * h},
      {"activation", 4 * tf, 6 * tf, 8 * tf, 12 * tf},
      {"dropout add", 7 * th, 5 * th, 15 * th, 5 * th}};
  Shard shard = gpt3_shard();
  const LayerOps fused = layer_operators(zoo::gpt3_175b(), shard);
  shard.fused_kernels = false;
  const LayerOps eager = layer_operators(zoo::gpt3_175b(), shard);
  for (const Expected& row : table) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(find(fused.forward, row.name).bytes, Bytes(row.fused_forward));
    EXPECT_EQ(find(fused.input_gradient, row.name).bytes, Bytes(row.fused_backward));
    EXPECT_EQ(find(eager.forward, row.name).bytes, Bytes(row.eager_forward));
    EXPECT_EQ(find(eager.input_gradient, row.name).bytes, Bytes(row.eager_backward));
  }
  EXPECT_EQ(find(eager.input_gradient, "residual gradient").bytes, Bytes(6 * th));
}

// RMSNorm 4 (+ 4 a token) and 36 eager; SwiGLU 6 and 10, eager 10 and 26; RoPE 4, eager 20 on Q and K.
TEST(ElementwiseOperators, OfALlamaMoveTheTablesBytes) {
  const std::int64_t th = 8192 * 4096, tf = 8192 * 14336, rope = 8192 * (4096 + 1024), h = 4096;
  const std::vector<Expected> table{
      {"ffn norm", 4 * th + 4 * 8192, 8 * th + 4 * h, 36 * th + 4 * 8192, 60 * th + 4 * h},
      {"activation", 6 * tf, 10 * tf, 10 * tf, 26 * tf},
      {"rope", 4 * rope, 4 * rope, 20 * rope, 20 * rope}};
  const LayerOps fused = layer_operators(zoo::llama3_8b(), {.sequence = 8192});
  const LayerOps eager = layer_operators(zoo::llama3_8b(), {.sequence = 8192, .fused_kernels = false});
  for (const Expected& row : table) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(find(fused.forward, row.name).bytes, Bytes(row.fused_forward));
    EXPECT_EQ(find(fused.input_gradient, row.name).bytes, Bytes(row.fused_backward));
    EXPECT_EQ(find(eager.forward, row.name).bytes, Bytes(row.eager_forward));
    EXPECT_EQ(find(eager.input_gradient, row.name).bytes, Bytes(row.eager_backward));
  }
  EXPECT_EQ(find(fused.forward, "residual add").bytes, Bytes(6 * th));
}

// Software that fuses a GPT's operations may run a Llama's operator by operator, one or all.
TEST(ElementwiseOperators, OfALlamaAreFusedOneByOne) {
  const LayerOps eager = layer_operators(zoo::llama3_8b(), {.sequence = 8192, .fused_kernels = false});
  const LayerOps fused = layer_operators(zoo::llama3_8b(), {.sequence = 8192});
  const std::pair<std::string_view, LateFusions> rows[] = {{"ffn norm", {LateFusion::kRmsNorm}},
                                                           {"activation", {LateFusion::kSwiglu}},
                                                           {"rope", {LateFusion::kRope}}};
  for (const auto& [name, unfused] : rows) {
    const LayerOps ops = layer_operators(zoo::llama3_8b(), {.sequence = 8192, .unfused = unfused});
    for (const auto& [other, ignored] : rows) {
      SCOPED_TRACE(testing::Message() << name << " eager, " << other);
      const LayerOps& like = other == name ? eager : fused;
      EXPECT_EQ(find(ops.forward, other).bytes, find(like.forward, other).bytes);
      EXPECT_EQ(find(ops.input_gradient, other).bytes, find(like.input_gradient, other).bytes);
    }
    EXPECT_EQ(find(ops.forward, "residual add").bytes, find(fused.forward, "residual add").bytes);
  }
}

// A column sum of dY for each of the four biases, when no GEMM's epilogue has it.
TEST(ElementwiseOperators, SumBiasGradientsOnlyWhenEager) {
  Shard shard = gpt3_shard();
  const auto sums = [&] {
    return count(layer_operators(zoo::gpt3_175b(), shard).weight_gradient, "bias gradient");
  };
  EXPECT_EQ(sums(), 0);
  shard.fused_kernels = false;
  EXPECT_EQ(sums(), 4);
}

TEST(ElementwiseOperators, DoubleInFp32) {
  Shard shard = gpt3_shard();
  const Bytes half = find(layer_operators(zoo::gpt3_175b(), shard).forward, "activation").bytes;
  shard.precision = Precision::kFp32;
  EXPECT_EQ(find(layer_operators(zoo::gpt3_175b(), shard).forward, "activation").bytes, 2 * half);
}

// Norms and residuals work on T/t tokens, everything between the GEMMs on T.
TEST(SequenceParallelism, SplitsNormsAndResidualsOnly) {
  const Ops tp = layer_operators(zoo::gpt3_175b(), gpt3_shard()).forward;
  const Ops sp = layer_operators(zoo::gpt3_175b(), with_sequence_parallelism(gpt3_shard())).forward;
  for (const std::string_view name : {"attention norm", "ffn norm", "dropout add"}) {
    EXPECT_EQ(8 * find(sp, name).bytes, find(tp, name).bytes) << name;
  }
  for (const std::string_view name : {"qkv split", "activation", "softmax"}) {
    EXPECT_EQ(find(sp, name).bytes, find(tp, name).bytes) << name;
  }
}

TEST(TensorParallelism, AloneOnARankNeedsNoCollective) {
  for (const bool sp : {false, true}) {
    const Shard shard{.sequence = 2048, .sequence_parallel = sp, .recompute = Recompute::kFull};
    const LayerOps layer = layer_operators(zoo::gpt_22b(), shard);
    for (const Ops* ops : layer.each()) {
      EXPECT_EQ(payload(*ops), Bytes(0));
    }
  }
}

// Two all-reduces of 2 T h in each direction.
TEST(TensorParallelism, ReducesTwiceForwardAndTwiceBackward) {
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), gpt3_shard());
  const Bytes once(2 * 2048 * 12288);
  EXPECT_EQ(payload(layer.forward), 2 * once);
  EXPECT_EQ(payload(layer.input_gradient), 2 * once);
  EXPECT_EQ(payload(layer.weight_gradient), Bytes(0));
  EXPECT_EQ(find(layer.forward, "projection reduce").collective, CollectiveKind::kAllReduce);
  EXPECT_EQ(find(layer.input_gradient, "qkv gradient reduce").collective, CollectiveKind::kAllReduce);
}

// An all-reduce moves 2 (t-1)/t of its payload over the bus, an all-gather or reduce-scatter half of that:
// forward is the same traffic; backward gathers the two column-parallel inputs once more.
TEST(SequenceParallelism, KeepsTheForwardTrafficAndGathersTwoInputsMoreBackward) {
  const auto halves = [](const Ops& ops) {
    std::int64_t sum = 0;
    for (const Op& op : ops) {
      if (op.kind == OpKind::kCollective)
        sum += (op.collective == CollectiveKind::kAllReduce ? 2 : 1) * op.bytes.count();
    }
    return sum;
  };
  const LayerOps tp = layer_operators(zoo::gpt3_175b(), gpt3_shard());
  const LayerOps sp = layer_operators(zoo::gpt3_175b(), with_sequence_parallelism(gpt3_shard()));
  EXPECT_EQ(halves(sp.forward), halves(tp.forward));
  EXPECT_EQ(halves(sp.input_gradient), halves(tp.input_gradient) + 2 * 2 * 2048 * 12288);
}

TEST(SequenceParallelism, GathersNoInputAgainThatIsKept) {
  Shard shard = with_sequence_parallelism(gpt3_shard());
  const std::size_t again = layer_operators(zoo::gpt3_175b(), shard).input_gradient.size();
  shard.rules.gathered_inputs = true;
  EXPECT_EQ(layer_operators(zoo::gpt3_175b(), shard).input_gradient.size() + 2, again);
  shard.recompute = Recompute::kSelective;  // of the norms: their outputs are not kept
  shard.modules = RecomputeModules{RecomputeModule::kLayerNorm};
  EXPECT_EQ(layer_operators(zoo::gpt3_175b(), shard).input_gradient.size(), again);
}

TEST(SequenceParallelism, GathersBeforeAndScattersAfterEachBlock) {
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), with_sequence_parallelism(gpt3_shard()));
  EXPECT_EQ(find(layer.forward, "qkv gather").collective, CollectiveKind::kAllGather);
  EXPECT_EQ(find(layer.forward, "ffn reduce").collective, CollectiveKind::kReduceScatter);
  EXPECT_EQ(find(layer.input_gradient, "ffn gradient gather").collective, CollectiveKind::kAllGather);
  EXPECT_EQ(find(layer.input_gradient, "ffn gradient reduce").collective, CollectiveKind::kReduceScatter);
}

TEST(Overlap, HidesInputGradientReductionsAndInputGathersOnly) {
  const LayerOps tp = layer_operators(zoo::gpt3_175b(), gpt3_shard());
  Shard shard = with_sequence_parallelism(gpt3_shard());
  shard.recompute = Recompute::kFull;
  const LayerOps sp = layer_operators(zoo::gpt3_175b(), shard);
  EXPECT_EQ(hidden(tp.input_gradient), (Names{"ffn gradient reduce", "qkv gradient reduce"}));
  EXPECT_EQ(hidden(sp.input_gradient),
            (Names{"ffn input gather", "ffn gradient reduce", "qkv input gather", "qkv gradient reduce"}));
  EXPECT_EQ(hidden(sp.forward), Names{});
  EXPECT_EQ(hidden(sp.recompute), Names{});
}

// A norm that is plain PyTorch writes 16 bit, which is cast before QKV as any other tensor.
TEST(Fp8, OnlyAFusedNormWritesIt) {
  Shard shard{.sequence = 8192, .precision = Precision::kFp8};
  const auto of_norm = [&] {
    const LayerOps layer = layer_operators(zoo::llama3_8b(), shard);
    return std::pair(find(layer.forward, "attention norm").bytes, find(layer.forward, "fp8 cast").bytes);
  };
  const std::int64_t elements = 8192LL * 4096;
  EXPECT_EQ(of_norm().second, Bytes(2 * elements));
  shard.unfused = {LateFusion::kRmsNorm};
  const auto unfused = of_norm();
  shard.unfused = {};
  shard.fused_kernels = false;
  EXPECT_EQ(unfused, of_norm());
  EXPECT_EQ(unfused.second, Bytes(4 * elements));
}

// Source: torch/distributed/_functional_collectives.py: chunk and cat around what is not the first dimension.
TEST(FunctionalCollectives, HideNothingAndCopyWhatSeveralSamplesGatherAndScatter) {
  Shard shard = with_sequence_parallelism(gpt3_shard());
  shard.micro_batch = 2;
  const std::int64_t whole = shard.tokens() * zoo::gpt3_175b().hidden;
  shard.functional_collectives = true;
  for (const auto& [precision, gathered] : {std::pair(Precision::kBf16, 4), std::pair(Precision::kFp8, 2)}) {
    shard.precision = precision;
    const LayerOps layer = layer_operators(zoo::gpt3_175b(), shard);
    EXPECT_EQ(hidden(layer.input_gradient), Names{});
    EXPECT_EQ(find(layer.forward, "gathered copy").bytes, Bytes(gathered * whole));
    EXPECT_EQ(find(layer.forward, "scattered copy").bytes, Bytes(4 * whole));
    EXPECT_EQ(std::ranges::count(names(layer.forward), "gathered copy"), 2);
    EXPECT_EQ(std::ranges::count(names(layer.forward), "scattered copy"), 2);
  }
  shard.micro_batch = 1;  // a view
  const LayerOps one = layer_operators(zoo::gpt3_175b(), shard);
  EXPECT_EQ(std::ranges::count(names(one.forward), "gathered copy"), 0);
  EXPECT_EQ(hidden(one.input_gradient), Names{});
  shard.micro_batch = 2;
  shard.overlap_tensor = true;  // asynchronous tensor parallelism
  const LayerOps chunks = layer_operators(zoo::gpt3_175b(), shard);
  EXPECT_EQ(std::ranges::count(names(chunks.forward), "gathered copy"), 0);
  EXPECT_NE(hidden(chunks.input_gradient), Names{});
}

// TransformerEngine's user buffers, in bf16 and with fp8's casts between.
TEST(TensorOverlap, CutsGathersBeforeAndScattersBehindAProduct) {
  Shard shard = with_sequence_parallelism(gpt3_shard());
  shard.overlap_tensor = true;
  for (const Precision precision : {Precision::kBf16, Precision::kFp8}) {
    shard.precision = precision;
    const LayerOps layer = layer_operators(zoo::gpt3_175b(), shard);
    EXPECT_EQ(partner(layer.forward, "qkv gather"), "qkv");
    EXPECT_EQ(partner(layer.forward, "projection reduce"), "projection");
    EXPECT_EQ(partner(layer.forward, "ffn gather"), "ffn up");
    EXPECT_EQ(partner(layer.forward, "ffn reduce"), "ffn down");
    EXPECT_EQ(partner(layer.input_gradient, "ffn gradient gather"), "ffn down");
    EXPECT_EQ(partner(layer.input_gradient, "projection gradient gather"), "projection");
    EXPECT_EQ(hidden(layer.input_gradient),
              (Names{"ffn input gather", "ffn gradient reduce", "qkv input gather", "qkv gradient reduce"}));
  }
  EXPECT_EQ(partner(head_operators(zoo::gpt3_175b(), shard).forward, "head gather"), "none");
}

TEST(TensorOverlap, CutsNoAllReduce) {
  Shard shard = gpt3_shard();
  const LayerOps expected = layer_operators(zoo::gpt3_175b(), shard);
  shard.overlap_tensor = true;
  EXPECT_TRUE(same(layer_operators(zoo::gpt3_175b(), shard), expected));
}

// 32 heads of queries and 8 of keys, 128 wide: 4 bytes per element and 4 per head and token; 6 and a weight's
// partials of 4 * 128 backward.
TEST(HeadNorms, RunOverQueriesAndKeys) {
  TransformerSpec model = zoo::llama3_8b();
  model.qk_norm = QkNorm::kHead;
  const LayerOps layer = layer_operators(model, {.sequence = 1024});
  const std::int64_t q = 1024 * 4096, k = 1024 * 1024;
  EXPECT_EQ(find(layer.forward, "query norm").bytes, Bytes(4 * q + 4 * 1024 * 32));
  EXPECT_EQ(find(layer.forward, "key norm").bytes, Bytes(4 * k + 4 * 1024 * 8));
  EXPECT_EQ(find(layer.input_gradient, "query norm").bytes, Bytes(6 * q + 4 * 128));
  EXPECT_EQ(find(layer.input_gradient, "key norm").bytes, Bytes(6 * k + 4 * 128));
}

TEST(QkvBias, HasAGradientOfItsOwnWhenEager) {
  TransformerSpec model = zoo::llama3_8b();
  const Shard shard{.sequence = 1024, .fused_kernels = false};
  EXPECT_EQ(count(layer_operators(model, shard).weight_gradient, "bias gradient"), 0);
  model.qkv_bias = true;
  EXPECT_EQ(find(layer_operators(model, shard).weight_gradient, "bias gradient").bytes,
            Bytes(2 * 1024 * (4096 + 2 * 1024)));
}

TEST(Recomputation, RepeatsNothingUnlessAsked) {
  EXPECT_TRUE(layer_operators(zoo::gpt3_175b(), gpt3_shard()).recompute.empty());
}

// 4 S2 q: the scores and the values again, with what lies between.
TEST(Recomputation, OfTheCoreRepeatsScoresToValues) {
  Shard shard = gpt3_shard();
  shard.recompute = Recompute::kSelective;
  const Ops ops = layer_operators(zoo::gpt3_175b(), shard).recompute;
  EXPECT_EQ(names(ops), (Names{"scores", "softmax", "attention dropout", "values"}));
  EXPECT_EQ(total_flops(ops), Flops(25'769'803'776));
}

TEST(Recomputation, OfTheCoreIsDoneByFlashAlready) {
  const Shard shard{.sequence = 2048, .attention = Attention::kFlash, .recompute = Recompute::kSelective};
  EXPECT_TRUE(layer_operators(zoo::gpt3_175b(), shard).recompute.empty());
}

// A checkpoint around the core runs its kernel again, of which only the log-sum-exp was kept.
TEST(Recomputation, OfTheCoreRunsAFlashKernelAgainWhereTheSoftwareDoes) {
  const Shard shard{.sequence = 2048,
                    .attention = Attention::kFlash,
                    .recompute = Recompute::kSelective,
                    .repeats_flash = true};
  const Ops ops = layer_operators(zoo::gpt3_175b(), shard).recompute;
  ASSERT_EQ(ops.size(), 1U);
  EXPECT_EQ(ops.front().kind, OpKind::kFlashForward);
}

TEST(Recomputation, OfSelectedModulesRepeatsTheirForward) {
  Shard shard = with_sequence_parallelism(gpt3_shard());
  shard.recompute = Recompute::kSelective;
  const auto repeated = [&](RecomputeModule module) {
    shard.modules = RecomputeModules{module};
    return names(layer_operators(zoo::gpt3_175b(), shard).recompute);
  };
  EXPECT_EQ(repeated(RecomputeModule::kLayerNorm), (Names{"attention norm", "ffn norm"}));
  EXPECT_EQ(repeated(RecomputeModule::kMlp),
            (Names{"ffn gather", "ffn up", "activation", "ffn down", "ffn reduce"}));
  EXPECT_EQ(repeated(RecomputeModule::kSelfAttention),
            (Names{"qkv gather", "qkv", "qkv split", "scores", "softmax", "attention dropout", "values",
                   "head transposition", "projection", "projection reduce"}));
  EXPECT_EQ(repeated(RecomputeModule::kMoe), Names{});
  EXPECT_EQ(repeated(RecomputeModule::kLatentUp), Names{});
}

// NeMo AutoModel's FSDP2 run of Llama 3.1 70B launches 4,166 products a step of two micro-batches: six of the
// head, and 26 of each layer and micro-batch, seven forward, fourteen backward, and again all but the last of
// both blocks (NVIDIA-NeMo/Automodel, analysis_report_no_flag.md of 2026-04-14).
TEST(Recomputation, OfModulesThatStopsEarlyMakesNeitherLastProjection) {
  Shard shard{.sequence = 4096, .recompute = Recompute::kSelective, .recompute_stops_early = true};
  shard.modules = RecomputeModules{RecomputeModule::kSelfAttention, RecomputeModule::kMlp};
  EXPECT_EQ(names(layer_operators(zoo::llama3_8b(), shard).recompute),
            (Names{"qkv", "rope", "flash attention", "ffn up", "activation"}));
}

// The products that hardware_flops counts are repeated; the core is not.
TEST(Recomputation, ByOperatorRepeatsKeysProjectionAndUp) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kSelective};
  shard.modules = RecomputeModules{RecomputeModule::kEverySecondProduct};
  const LayerOps layer = layer_operators(zoo::llama3_8b(), shard);
  EXPECT_EQ(total_flops(layer.recompute), Flops(2.0 * 8192 * 4096 * (1024 + 4096 + 14336)));
  const LayerOps gpt = layer_operators(zoo::gpt3_175b(), shard);
  EXPECT_EQ(total_flops(gpt.recompute), Flops(2.0 * 8192 * 12288 * (12288 + 12288)));
  for (const Op& op : layer.recompute) EXPECT_NE(op.kind, OpKind::kFlashForward);
}

// Of experts all is repeated up to the activation, but for the exchange whose tokens were kept.
TEST(Recomputation, ByOperatorRepeatsExpertsUpToTheirActivation) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kSelective};
  shard.modules = RecomputeModules{RecomputeModule::kEverySecondProduct};
  const auto again = [&] {
    return layer_operators(zoo::mixtral_8x7b(), shard, LayerKind::kExperts).recompute;
  };
  EXPECT_EQ(total_flops(again()), Flops(2.0 * 8192 * 4096 * (4096 + 1024 + 8 + 2 * 2 * 14336)));
  shard.expert = 8;
  EXPECT_EQ(payload(again()), Bytes());
  shard.expert_dispatcher = ExpertDispatcher::kNodeAware;
  EXPECT_GT(payload(again()), Bytes());
}

TEST(Recomputation, OfTheLayerRepeatsItsForwardWithItsCollectives) {
  Shard shard = with_sequence_parallelism(gpt3_shard());
  shard.recompute = Recompute::kFull;
  const LayerOps layer = layer_operators(zoo::gpt3_175b(), shard);
  EXPECT_EQ(names(layer.recompute), names(layer.forward));
  EXPECT_EQ(total_flops(layer.recompute), total_flops(layer.forward));
  EXPECT_EQ(payload(layer.recompute), payload(layer.forward));
}

// The down projection takes 2 T h f FLOPs; nothing in the backward reads what it made.
TEST(Recomputation, ThatStopsEarlyMakesNoDownProjection) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kFull};
  const double whole = total_flops(layer_operators(zoo::llama3_8b(), shard).recompute).count();
  shard.recompute_stops_early = true;
  const double early = total_flops(layer_operators(zoo::llama3_8b(), shard).recompute).count();
  EXPECT_EQ(whole - early, 2.0 * 8192 * 4096 * 14336);
}

}  // namespace
}  // namespace stagecraft
