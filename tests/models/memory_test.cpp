// Bytes against the formulas of Korthikanti et al. (arXiv 2205.05198), Table 2 and Figure 1.
#include "models/memory.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "models/expert_exchange.hpp"
#include "models/op_builder.hpp"
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

Bytes kept(const TransformerSpec& model, const Shard& shard, LayerKind kind = LayerKind::kDense) {
  return total(layer_tensors(model, shard, kind));
}

// Expectations: Figure 1's formulas at s = 2048, t = 8: s b h (10 + 24/t + 5as/ht), 34 s b h / t.
TEST(LayerTensors, OfGptsIsTheTablesPerLayer) {
  struct Row {
    TransformerSpec model;
    std::int64_t micro_batch;
    Bytes baseline, selective_with_sp;
  };
  const Bytes half_mib = 512_KiB;
  const std::vector<Row> rows{{zoo::gpt_22b(), 4, 1264_MiB, 204_MiB},
                              {zoo::gpt3_175b(), 1, 552_MiB, 102_MiB},
                              {zoo::gpt_530b(), 1, 840_MiB, 170_MiB},
                              {zoo::gpt_1t(), 1, 1050_MiB, 212_MiB + half_mib}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.model.hidden);
    const Shard shard = unfused(row.micro_batch, 8);
    const Shard sp = with_sequence_parallelism(shard);
    EXPECT_EQ(kept(row.model, shard), row.baseline);
    EXPECT_EQ(kept(row.model, recomputing(sp, Recompute::kSelective)), row.selective_with_sp);
  }
}

// Table 2, first row: s b h (34 + 5 a s / h).
TEST(LayerTensors, WithoutParallelismIsThirtyFourAndFiveScores) {
  const TransformerSpec model = zoo::gpt_22b();
  const std::int64_t s = 2048, b = 3, h = 6144, a = 64;
  EXPECT_EQ(kept(model, unfused(b, 1)), Bytes(34 * s * b * h + 5 * a * s * s * b));
}

TEST(LayerTensors, WithSequenceParallelismIsSplitEvenly) {
  for (const std::int64_t t : {2, 4, 8}) {
    const Bytes one = kept(zoo::gpt_22b(), unfused(1, 1));
    const Bytes part = kept(zoo::gpt_22b(), with_sequence_parallelism(unfused(1, t)));
    EXPECT_EQ(t * part, one);
  }
}

// Flash keeps what selective recompute keeps, and a log-sum-exp of 4 bytes per token and head.
TEST(LayerTensors, OfFlashAttentionIsSelectivePlusItsLogSumExp) {
  Shard flash = unfused(2, 4);
  flash.attention = Attention::kFlash;
  const Bytes selective = kept(zoo::gpt_22b(), recomputing(unfused(2, 4), Recompute::kSelective));
  EXPECT_EQ(kept(zoo::gpt_22b(), flash) - selective, Bytes(4 * 2048 * 2 * 64 / 4));
  flash.repeats_flash = true;
  EXPECT_EQ(kept(zoo::gpt_22b(), recomputing(flash, Recompute::kSelective)), selective);
}

// Masks: one byte per element of s b h twice, and 3 of the 5 bytes per score (dropout's output and mask).
TEST(LayerTensors, LosesItsMasksWithoutDropout) {
  TransformerSpec model = zoo::gpt_22b();
  const Bytes with = kept(model, unfused(1, 1));
  model.dropout = false;
  const std::int64_t s = 2048;
  EXPECT_EQ(with - kept(model, unfused(1, 1)), Bytes(2 * s * 6144 + 3 * 64 * s * s));
}

// T (8h + 4aq + 4kq + 4a + 6f) / t by tensor; operator by operator silu(gate) adds 2f, and each of the two
// norms 4h: its input in fp32 and what its weight multiplies in place of the input.
TEST(LayerTensors, OfLlamaIsTheSumOfItsTensors) {
  Shard shard{.sequence = 8192};
  EXPECT_EQ(kept(zoo::llama3_8b(), shard), Bytes(1'141'899'264));
  shard.fused_kernels = false;
  EXPECT_EQ(kept(zoo::llama3_8b(), shard), Bytes(1'376'780'288 + 8 * 8192 * 4096));
  shard.fused_kernels = true;
  shard.unfused = {LateFusion::kRmsNorm, LateFusion::kSwiglu, LateFusion::kRope};
  EXPECT_EQ(kept(zoo::llama3_8b(), shard), Bytes(1'376'780'288 + 8 * 8192 * 4096));
  const Shard eight{.sequence = 8192, .tensor = 8, .sequence_parallel = true};
  EXPECT_EQ(kept(zoo::llama3_70b(), eight), Bytes(281'280'512));
  EXPECT_EQ(kept(zoo::llama31_405b(), eight), Bytes(533'200'896));
}

TEST(LayerTensors, DoublesInFp32ButForMasks) {
  TransformerSpec model = zoo::gpt_22b();
  model.dropout = false;
  Shard shard = unfused(1, 1);
  const Bytes half = kept(model, shard);
  shard.precision = Precision::kFp32;
  EXPECT_EQ(kept(model, shard), 2 * half);
}

// Section 4.3 of the paper: s b h / t of embedding dropout masks per micro-batch in flight; ids are int64.
TEST(EmbeddingTensors, IsTokenIdsAndADropoutMask) {
  const Shard shard = with_sequence_parallelism(unfused(4, 8));
  EXPECT_EQ(total(embedding_tensors(zoo::gpt_22b(), shard)), Bytes(8 * 8192 + 8192 * 6144 / 8));
  EXPECT_EQ(total(embedding_tensors(zoo::llama3_8b(), {.sequence = 8192})), Bytes(8 * 8192));
}

// Section 4.3: 4 s b h / t (1 + V/h) for the final norm, the head and the loss.
TEST(HeadActivation, IsFourBytesPerLogitAndHiddenElement) {
  const Shard shard = with_sequence_parallelism(unfused(4, 8));
  EXPECT_EQ(head_activation(zoo::gpt_22b(), shard), Bytes(4 * 8192 * (6144 + 51200) / 8));
}

// fp32 logits of Llama-3 8B: 4 202 692 608 bytes, and half as much again for the 16-bit logits while the loss
// is computed, and for their gradient later: not both, as peaks of Megatron-LM's own tests show.
TEST(HeadTransient, AddsLogitsOrTheirGradientToTheSoftmax) {
  const Shard shard{.sequence = 8192};
  const Bytes fp32_logits(4'202'692'608);
  EXPECT_EQ(head_activation(zoo::llama3_8b(), shard), Bytes(4 * 8192 * 4096) + fp32_logits);
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).forward, fp32_logits / 2);
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).backward, fp32_logits / 2);
}

TEST(BoundaryActivation, IsTheResidualStreamSplitUnderSequenceParallelism) {
  EXPECT_EQ(boundary_activation(zoo::gpt3_175b(), unfused(1, 8)), 48_MiB);
  EXPECT_EQ(boundary_activation(zoo::gpt3_175b(), with_sequence_parallelism(unfused(1, 8))), 6_MiB);
}

StateBytes states(Precision precision, Precision gradient, Precision moment = Precision::kFp32) {
  return state_bytes(Shard{.precision = precision, .gradient = gradient, .moment = moment});
}

std::int64_t kept(const StateBytes& bytes) {
  return bytes.weight + bytes.gradient + bytes.optimizer;
}

// Megatron-LM's distributed-optimizer table: 18, 20, 16 and 16 bytes per parameter without sharding. The fp32
// copy of 16-bit gradients is there during the step alone; the table counts that of fp16.
TEST(StateBytes, AreThoseOfTheDistributedOptimizerTable) {
  EXPECT_EQ(kept(states(Precision::kBf16, Precision::kFp32)), 18);
  const StateBytes fp16 = states(Precision::kFp16, Precision::kFp16);
  EXPECT_EQ(kept(fp16) + fp16.gradient_copy, 20);
  EXPECT_EQ(kept(states(Precision::kFp32, Precision::kFp32)), 16);
  EXPECT_EQ(kept(states(Precision::kBf16, Precision::kBf16)), 16);
  EXPECT_EQ(states(Precision::kBf16, Precision::kBf16).gradient_copy, 4);
  EXPECT_EQ(states(Precision::kBf16, Precision::kBf16).kept_gradient, 2);
  EXPECT_EQ(states(Precision::kBf16, Precision::kFp32).gradient_copy, 0);
}

// Moments of DeepSeek-V3 (arXiv 2412.19437, section 3.3.2: "first and second moments in BF16", master weights
// and gradients in fp32); Megatron-LM's precision-aware optimizer takes 16-bit gradients as they are.
TEST(StateBytes, OfNarrowMomentsAreThoseOfThePrecisionAwareOptimizer) {
  const StateBytes deepseek = states(Precision::kFp8, Precision::kFp32, Precision::kBf16);
  EXPECT_EQ(deepseek.optimizer, 4 + 2 + 2);
  EXPECT_EQ(deepseek.gradient, 4);
  const StateBytes narrow = states(Precision::kBf16, Precision::kBf16, Precision::kBf16);
  EXPECT_EQ(narrow.optimizer, 8);
  EXPECT_EQ(narrow.gradient_copy, 0);
  EXPECT_EQ(states(Precision::kBf16, Precision::kBf16, Precision::kFp8).optimizer, 4 + 1 + 1);
  EXPECT_EQ(states(Precision::kFp32, Precision::kFp32, Precision::kBf16).optimizer, 2 + 2);
}

// Megatron-LM's precision-aware optimizer under Transformer Engine 2.1 and later keeps the lower half of a
// master; the upper one is the bf16 weight. fp16 and fp8 weights are no halves of anything.
TEST(StateBytes, OfMastersThatKeepTheirRemaindersAreTwoLess) {
  const auto with = [](Precision precision, Precision moment, bool fp8_parameters = false) {
    return state_bytes(Shard{.precision = precision,
                             .moment = moment,
                             .master_remainders = true,
                             .fp8_parameters = fp8_parameters});
  };
  const StateBytes bytes = with(Precision::kBf16, Precision::kBf16);
  EXPECT_EQ(bytes.optimizer, 2 + 2 + 2);
  EXPECT_EQ(bytes.stepped, 4);
  EXPECT_TRUE(bytes.has_masters());
  EXPECT_EQ(with(Precision::kFp8, Precision::kFp32).optimizer, 2 + 4 + 4);
  EXPECT_EQ(with(Precision::kFp8, Precision::kFp32, true).optimizer, 4 + 4 + 4);
  EXPECT_EQ(with(Precision::kFp16, Precision::kFp32).optimizer, 4 + 4 + 4);
  const Shard without{.gradient = Precision::kBf16, .master_weights = false, .master_remainders = true};
  EXPECT_EQ(state_bytes(without).optimizer, 4 + 4);
  // It reads 16-bit gradients as they are.
  const Shard narrow{.gradient = Precision::kBf16, .master_remainders = true};
  EXPECT_EQ(state_bytes(narrow).gradient_copy, 0);
}

// Source: torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce: what was reduced is cast to the
// precision of the sharded parameters, fp32, before it is their gradient.
TEST(StateBytes, OfFp32ShardsKeepFp32Gradients) {
  Shard shard{.gradient = Precision::kBf16, .gathered_weights = true};
  shard.rules.fp32_shards = true;
  const StateBytes fsdp = state_bytes(shard);
  EXPECT_EQ(fsdp.gradient, 2);
  EXPECT_EQ(fsdp.kept_gradient, 4);
  EXPECT_EQ(fsdp.gradient_copy, 0);
  shard.gradient = Precision::kFp32;
  EXPECT_EQ(state_bytes(shard).kept_gradient, 4);
}

// All in bf16, as PyTorch's Adam keeps its states in the type of the parameters: 2 + 2 + 2 + 2.
TEST(StateBytes, WithoutMastersAreThoseOfTheWeightsThemselves) {
  const StateBytes bytes = state_bytes(Shard{.precision = Precision::kBf16,
                                             .gradient = Precision::kBf16,
                                             .moment = Precision::kBf16,
                                             .master_weights = false});
  EXPECT_EQ(kept(bytes), 8);
  EXPECT_EQ(bytes.gradient_copy, 0);
  const StateBytes fp32 = state_bytes(
      Shard{.precision = Precision::kFp32, .gradient = Precision::kFp32, .master_weights = false});
  EXPECT_EQ(kept(fp32), 16);
}

// ZeRO (arXiv 1910.02054), Figure 1: 7.5 B parameters over 64 ranks, gradients in 16 bit: 120, 31.4, 16.6 and
// 1.9 GB.
TEST(StateBytes, GiveTheZeroPapersFigures) {
  const StateBytes bytes = states(Precision::kBf16, Precision::kBf16);
  const double parameters = 7.5e9, ranks = 64;
  const auto gb = [&](double weight, double gradient, double optimizer) {
    return parameters * 1e-9 *
           (static_cast<double>(bytes.weight) / weight + static_cast<double>(bytes.gradient) / gradient +
            static_cast<double>(bytes.optimizer) / optimizer);
  };
  EXPECT_NEAR(gb(1, 1, 1), 120, 1e-9);
  EXPECT_NEAR(gb(1, 1, ranks), 31.4, 0.05);
  EXPECT_NEAR(gb(1, ranks, ranks), 16.6, 0.05);
  EXPECT_NEAR(gb(ranks, ranks, ranks), 1.9, 0.05);
}

// Llama-3 8B on one GPU 134.62 GiB at 18 bytes; sharded 8 ways 56.09 GiB; 1.87 GiB at 16 bytes over 64.
TEST(StateBytes, OfLlama3) {
  const auto parameters = static_cast<double>(parameter_count(zoo::llama3_8b()));
  constexpr double kGiB = 1 << 30;
  EXPECT_NEAR(18 * parameters / kGiB, 134.62, 0.005);
  EXPECT_NEAR((6 + 12 / 8.0) * parameters / kGiB, 56.09, 0.005);
  EXPECT_NEAR(16 * parameters / 64 / kGiB, 1.87, 0.005);
}

// The first stage of GPT-3 at t = p = 8: 2 822 731 776 parameters, 47.32 GiB at 18 bytes.
TEST(StateBytes, FillTwoThirdsOfAnA100WithGpt3sFirstStage) {
  const TransformerSpec model = zoo::gpt3_175b();
  const std::int64_t parameters =
      12 * layer_parameters(model, LayerKind::kDense, {.tensor = 8}).all() + embedding_parameters(model, 8);
  EXPECT_NEAR(Bytes(18 * parameters) / 1_GiB, 47.32, 0.005);
}

// Figure 1: states 12 l h^2 / (t p) x 18, activations per layer x l (1 + (p-1)/(pv)) of the first stage.
TEST(Figure1, IsReproducedToTheDigit) {
  struct Row {
    TransformerSpec model;
    std::int64_t pipeline, chunks, micro_batch;
    double states, baseline, best;
  };
  const std::vector<Row> rows{{zoo::gpt_22b(), 1, 1, 4, 45.5625, 59.25, 9.5625},
                              {zoo::gpt3_175b(), 8, 3, 1, 45.5625, 66.84375, 12.3515625},
                              {zoo::gpt_530b(), 35, 3, 1, 31.640625, 114.0234375, 23.076171875},
                              {zoo::gpt_1t(), 64, 1, 1, 32.958984375, 131.25, 26.5625}};
  constexpr double kGiB = 1 << 30;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.model.hidden);
    const auto h = static_cast<double>(row.model.hidden), l = static_cast<double>(row.model.layers);
    const auto p = static_cast<double>(row.pipeline), v = static_cast<double>(row.chunks);
    EXPECT_DOUBLE_EQ(12 * l * h * h / (8 * p) * 18 / kGiB, row.states);
    const double in_flight = row.chunks > 1 ? l * (1 + (p - 1) / (p * v)) : l;
    const Shard shard = unfused(row.micro_batch, 8);
    const Shard best = recomputing(with_sequence_parallelism(shard), Recompute::kSelective);
    const auto gib = [&](const Shard& s) {
      return static_cast<double>(kept(row.model, s).count()) * in_flight / kGiB;
    };
    EXPECT_DOUBLE_EQ(gib(shard), row.baseline);
    EXPECT_DOUBLE_EQ(gib(best), row.best);
  }
}

Bytes size_of(const SavedTensors& tensors, std::string_view name) {
  for (const SavedTensor& tensor : tensors)
    if (tensor.name == name) return tensor.size;
  return Bytes(0);
}

// The weight gradients wait for 32 of a GPT layer's 34 bytes per element: inputs of the four products (2 + 2
// + 2 + 8) and gradients of their outputs (6 + 2 + 8 + 2); sail-sg/zero-bubble counts the same.
TEST(HeldForWeightGradients, Is32BytesPerElementOfAGpt) {
  const std::int64_t s = 2048, h = 6144;
  EXPECT_EQ(held_for_weight_gradients(zoo::gpt_22b(), unfused(1, 1)), Bytes(32 * s * h));
}

// System: Mixtral 8x7B on 4,096 tokens, an expert a rank; a balanced rank receives 2 of 8 x 4,096 x 8 / 8.
TEST(ExpertLayer, KeepsTheTokensItReceivedAndNotADenseBlock) {
  const Shard shard{.sequence = 4096, .expert = 8};
  const SavedTensors tensors = layer_tensors(zoo::mixtral_8x7b(), shard, LayerKind::kExperts);
  const std::int64_t pairs = 4096 * 2, h = 4096, f = 14336;
  EXPECT_EQ(received_pairs(zoo::mixtral_8x7b(), shard), pairs);
  EXPECT_EQ(size_of(tensors, "received tokens"), Bytes(2 * pairs * h));
  EXPECT_EQ(size_of(tensors, "expert up output"), Bytes(4 * pairs * f));
  EXPECT_EQ(size_of(tensors, "expert down input"), Bytes(2 * pairs * f));
  EXPECT_EQ(size_of(tensors, "router logits"), Bytes(8 * 4096 * 8));
  EXPECT_EQ(size_of(tensors, "up output"), Bytes(0));
}

// Operator by operator silu(gate) is a tensor, and so is the activation that the routing weight multiplies.
TEST(ExpertLayer, KeepsMoreOfAnActivationThatIsNotFused) {
  const TransformerSpec model = zoo::deepseek_v3();
  const Shard fused{.sequence = 4096, .expert = 64};
  const auto more_than_fused = [&](const Shard& shard) {
    return kept(model, shard, LayerKind::kExperts) - kept(model, fused, LayerKind::kExperts);
  };
  const Bytes routed(2LL * received_pairs(model, fused) * 2048), shared(2LL * 4096 * 2048);
  Shard eager = fused;
  eager.unfused = {LateFusion::kSwiglu};
  EXPECT_EQ(more_than_fused(eager), 2 * routed + shared);
  eager.recompute = Recompute::kSelective;
  eager.modules = RecomputeModules{RecomputeModule::kMoeActivation};
  EXPECT_EQ(more_than_fused(eager), shared - routed);
}

// The busiest rank is the one that runs out; alone there is no other.
TEST(ExpertLayer, GrowsWithTheImbalanceOfItsRank) {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.experts->imbalance = 1.5;
  EXPECT_EQ(received_pairs(model, {.sequence = 4096, .expert = 8}), 3 * 4096);
  EXPECT_EQ(received_pairs(model, {.sequence = 4096}), 2 * 4096);
}

// Two ranks have both choices of all tokens at most, eight with an expert each one of them; where a token
// visits every expert no rank is busier. The router's counts say the same as memory.
TEST(ExpertLayer, OfTheBusiestRankIsNeverMoreThanAllTokensWithItsExperts) {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.experts->imbalance = 8;
  for (const auto& [ranks, most] : {std::pair(1, 1), {2, 2}, {4, 4}, {8, 4}}) {
    const Shard shard{.sequence = 4096, .expert = ranks};
    EXPECT_EQ(received_pairs(model, shard), most * 2 * 4096) << ranks;
    EXPECT_EQ(routing(model, shard).received, most * 2 * 4096) << ranks;
  }
  model.experts->top_k = 8;
  EXPECT_EQ(received_pairs(model, {.sequence = 4096, .expert = 4}), 8 * 4096);
}

// Dropped beyond and padded up to the capacity, whatever the imbalance.
TEST(ExpertLayer, HoldsItsCapacityWhereThereIsOne) {
  TransformerSpec model = zoo::mixtral_8x7b();
  model.experts->capacity_factor = 1.25;
  model.experts->pad_to_capacity = true;
  for (const double imbalance : {1, 3}) {
    model.experts->imbalance = imbalance;
    EXPECT_EQ(received_pairs(model, {.sequence = 4096, .expert = 8}), 2 * 4096 * 5 / 4);
  }
}

// Tensor-parallel experts see the tokens of the whole expert-tensor group, each a part of their width.
TEST(ExpertLayer, SplitsWidthsByTheExpertTensorDegreeAndNotByTensor) {
  const Shard shard{
      .sequence = 4096, .tensor = 4, .expert = 4, .expert_tensor = 2, .sequence_parallel = true};
  const SavedTensors tensors = layer_tensors(zoo::mixtral_8x7b(), shard, LayerKind::kExperts);
  const std::int64_t pairs = 1024 * 2 * 2;
  EXPECT_EQ(size_of(tensors, "received tokens"), Bytes(2 * pairs * 4096));
  EXPECT_EQ(size_of(tensors, "expert down input"), Bytes(2 * pairs * 14336 / 2));
}

// Checkpoints around attention and feed-forward: what the norms read and what they give, 4 tensors of s h.
TEST(LayerTensors, OfModulesCheckpointedOneByOneKeepsTheirInputs) {
  Shard shard{.sequence = 4096, .recompute = Recompute::kSelective};
  shard.modules = RecomputeModules{RecomputeModule::kSelfAttention, RecomputeModule::kMlp};
  EXPECT_EQ(total(layer_tensors(zoo::llama3_8b(), shard)), Bytes(4 * 2 * 4096 * 4096));
}

TEST(ExpertLayer, DropsWhatItsModulesRecompute) {
  Shard shard{.sequence = 4096, .expert = 8, .recompute = Recompute::kSelective};
  const auto kept = [&](RecomputeModule module) {
    shard.modules = RecomputeModules{module};
    return layer_tensors(zoo::mixtral_8x7b(), shard, LayerKind::kExperts);
  };
  EXPECT_EQ(size_of(kept(RecomputeModule::kMoeActivation), "expert down input"), Bytes(0));
  EXPECT_GT(size_of(kept(RecomputeModule::kMoeActivation), "expert up output"), Bytes(0));
  EXPECT_EQ(size_of(kept(RecomputeModule::kMoe), "received tokens"), Bytes(0));
  EXPECT_GT(size_of(kept(RecomputeModule::kMoe), "router input"), Bytes(0));
}

// MLA of DeepSeek-V3 on 4,096 tokens: Q and K have 192 columns for each of 128 heads, V and O 128.
TEST(LatentAttention, KeepsCompressedAndExpandedForms) {
  Shard shard{.sequence = 4096};
  const SavedTensors tensors = layer_tensors(zoo::deepseek_v3(), shard);
  EXPECT_EQ(size_of(tensors, "Q, K, V"), Bytes(2 * 4096 * 128 * (192 + 192 + 128)));
  EXPECT_EQ(size_of(tensors, "core output"), Bytes(2 * 4096 * 128 * 128));
  EXPECT_EQ(size_of(tensors, "compressed Q, K, V"), Bytes(2 * 4096 * (1536 + 512 + 64)));
  shard.recompute = Recompute::kSelective;
  shard.modules = RecomputeModules{RecomputeModule::kLatentUp};
  EXPECT_EQ(size_of(layer_tensors(zoo::deepseek_v3(), shard), "Q, K, V"), Bytes(0));
}

// s/c tokens a rank: all but the scores of unfused attention, which keep their s keys, fall c times.
TEST(LayerTensors, IsSplitOverTheContextRanks) {
  const Bytes whole = kept(zoo::llama3_8b(), {.sequence = 8192});
  EXPECT_EQ(4 * kept(zoo::llama3_8b(), {.sequence = 8192, .context = 4}), whole);
}

TEST(LayerTensors, LosesBothNormOutputsToTheirRecompute) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kSelective};
  shard.modules = RecomputeModules{RecomputeModule::kLayerNorm};
  const Bytes none = kept(zoo::llama3_8b(), {.sequence = 8192});
  EXPECT_EQ(none - kept(zoo::llama3_8b(), shard), Bytes(2 * 2 * 8192 * 4096));
  EXPECT_EQ(layer_transient(zoo::llama3_8b(), shard).recomputed, Bytes(2 * 2 * 8192 * 4096));
}

// Llama-3 8B, T = 8192 tokens of 2 bytes: input and queries of 4096, values of 1024, the core's 4096, a gate of
// 14336; 32 log-sum-exps a token. With two tensor ranks under sequence parallelism each product of the rank
// is split, and both reduced blocks are kept beside: 8192 x 2 x (2048 + 2048 + 512 + 2048 + 2048 + 7168 + 2048) +
// 16 x 4 x 8192. Without a compiler down's output is kept, too; without a gate up is the fifth and kept.
TEST(LayerTensors, OfRecomputeByOperatorKeepsEverySecondProduct) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kSelective};
  shard.modules = RecomputeModules{RecomputeModule::kEverySecondProduct};
  EXPECT_EQ(kept(zoo::llama3_8b(), shard),
            Bytes(8192LL * 2 * (4096 + 4096 + 1024 + 4096 + 14336) + 32 * 4 * 8192));
  shard.tensor = 2;
  shard.sequence_parallel = true;
  EXPECT_EQ(kept(zoo::llama3_8b(), shard),
            Bytes(8192LL * 2 * (2048 + 2048 + 512 + 2048 + 2048 + 7168 + 2048) + 16 * 4 * 8192));
  shard.tensor = 1;
  const Bytes compiled = kept(zoo::llama3_8b(), shard);
  shard.fused_kernels = false;
  EXPECT_EQ(kept(zoo::llama3_8b(), shard), compiled + Bytes(8192LL * 2 * 4096));
  EXPECT_EQ(kept(zoo::gpt3_175b(), shard),
            Bytes(8192LL * 2 * (12288 + 2 * 12288 + 12288 + 49152) + 96 * 4 * 8192));
}

// Mixtral 8x7B, T = 8192: of attention as above, of its experts nothing; over 8 expert ranks the two copies of each
// token as they arrived and as they came back. DeepSeek's exchange is no operator of PyTorch.
TEST(LayerTensors, OfRecomputeByOperatorKeepsOfExpertsWhatAnAllToAllBrought) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kSelective};
  shard.modules = RecomputeModules{RecomputeModule::kEverySecondProduct};
  const Bytes attention = Bytes(8192LL * 2 * (4096 + 1024 + 4096 + 4096) + 32 * 4 * 8192);
  const auto of_experts = [&] { return kept(zoo::mixtral_8x7b(), shard, LayerKind::kExperts); };
  EXPECT_EQ(of_experts(), attention);
  shard.expert = 8;
  EXPECT_EQ(of_experts(), attention + Bytes(2 * 2 * 2 * 8192LL * 4096));
  shard.expert_dispatcher = ExpertDispatcher::kNodeAware;
  EXPECT_EQ(of_experts(), attention);
}

// Transformer Engine: QKV's, up's and down's inputs are one byte, the projection's one more beside the core's
// output. torchao keeps what it is given.
TEST(LayerTensors, InFp8KeepsInputsOfProductsInOneByte) {
  Shard shard{.sequence = 8192};
  const Bytes sixteen = kept(zoo::llama3_8b(), shard);
  shard.precision = Precision::kFp8;
  EXPECT_EQ(kept(zoo::llama3_8b(), shard), sixteen - Bytes(8192LL * (4096 + 4096 - 4096 + 14336)));
  const Bytes eight = kept(zoo::llama3_8b(), shard);
  shard.fp8_recipe = Fp8Recipe::kMxfp8;  // and a byte of scales for 32 elements
  EXPECT_EQ(kept(zoo::llama3_8b(), shard), eight + Bytes(8192LL * (3 * 4096 + 14336) / 32));
  shard.fp8_recipe = Fp8Recipe::kTorchao;
  EXPECT_EQ(kept(zoo::llama3_8b(), shard), sixteen);
}

// Q, K and V in one byte, in MXFP8 in two layouts of 33/32; delayed scaling leaves the core's output in one as well.
TEST(LayerTensors, OfAttentionInFp8KeepsWhatTheCoreReads) {
  Shard shard{.sequence = 8192, .precision = Precision::kFp8};
  const auto of = [&](Fp8Attention attention) {
    shard.fp8_attention = attention;
    return kept(zoo::llama3_8b(), shard);
  };
  const std::int64_t inputs = 8192 * (4096 + 2 * 1024), output = 8192 * 4096;
  const Bytes sixteen = of(Fp8Attention::kNone);
  EXPECT_EQ(of(Fp8Attention::kCurrent), sixteen - Bytes(inputs));
  EXPECT_EQ(of(Fp8Attention::kDelayed), sixteen - Bytes(inputs + output));
  EXPECT_EQ(of(Fp8Attention::kMxfp8), sixteen + Bytes(inputs / 16));
}

// Tokens at their experts and the inputs of the down products; the router reads 16 bit. Tokens that were sent
// in fp8 are no smaller for it.
TEST(LayerTensors, OfExpertsInFp8KeepsTokensInOneByte) {
  const TransformerSpec mixtral = zoo::mixtral_8x7b();
  Shard shard{.sequence = 4096, .expert = 8};
  const auto of_experts = [&] { return kept(mixtral, shard, LayerKind::kExperts); };
  const Bytes sixteen = of_experts();
  shard.precision = Precision::kFp8;
  const Bytes eight = of_experts();
  EXPECT_EQ(eight, sixteen - Bytes(received_pairs(mixtral, shard) * (4096 + 14336)));
  shard.fp8_dispatch = true;  // and a scale of four bytes for each 128 values
  EXPECT_EQ(of_experts(), eight + Bytes(received_pairs(mixtral, shard) * 4 * 4096 / 128));
}

// What the experts give is spread over rows for the tokens of all eight ranks before it is scattered.
TEST(LayerTransient, OfGatheredTokensHasRowsForThemAll) {
  const TransformerSpec mixtral = zoo::mixtral_8x7b();
  Shard shard{.sequence = 4096, .expert = 8};
  const auto forward = [&] { return layer_transient(mixtral, shard, LayerKind::kExperts).forward; };
  const std::int64_t pairs = received_pairs(mixtral, shard);
  EXPECT_EQ(forward(), Bytes(2 * 4096 * (pairs + pairs)));
  shard.expert_dispatcher = ExpertDispatcher::kAllGather;
  EXPECT_EQ(forward(), Bytes(2 * 4096 * (8 * 4096 + pairs)));
}

// PyTorch's loss over logits cast to fp32: log-softmax kept, and in the backward two gradients of its size.
TEST(HeadTransient, IsTwoFp32MatricesWhereLogitsAreCast) {
  Shard shard{.sequence = 8192};
  shard.software.fp32_logits = true;
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).forward, Bytes(4 * 8192LL * 128256));
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).backward, Bytes(2 * 4 * 8192LL * 128256));
}

// Tensor ranks share it: a third matrix, of their part of the vocabulary; of one rank there is none.
TEST(HeadTransient, IsAMatrixMoreWhereLogitsAreSharded) {
  Shard shard{.sequence = 8192, .tensor = 8};
  shard.software.fp32_logits = true;
  const Bytes fp32(4 * 8192LL * 128256 / 8);
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).backward, 2 * fp32);
  shard.rules.loss_parallel = true;
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).backward, 3 * fp32);
  shard.tensor = 1;
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).backward, 2 * 8 * fp32);
}

// Each of 8 tensor ranks reads all of them, beside the eighth that it makes, and nothing of the loss is shared.
TEST(HeadTransient, OfGatheredLogitsIsThatOfOneRankAndItsOwnPart) {
  const Bytes logits(2 * 8192LL * 128256);
  for (const bool cast : {false, true}) {
    Shard one{.sequence = 8192};
    one.software.fp32_logits = cast;
    one.rules.loss_parallel = true;
    Shard gathered = one;
    gathered.tensor = 8;
    gathered.software.gathered_logits = true;
    const HeadTransient alone = head_transient(zoo::llama3_8b(), one);
    const HeadTransient all = head_transient(zoo::llama3_8b(), gathered);
    EXPECT_EQ(all.forward, alone.forward + logits / 8);
    EXPECT_EQ(all.backward, alone.backward + logits / 8);
    EXPECT_EQ(head_activation(zoo::llama3_8b(), gathered), head_activation(zoo::llama3_8b(), one));
    EXPECT_EQ(head_logits(zoo::llama3_8b(), gathered), logits / 8);
    gathered.tensor = 1;
    EXPECT_EQ(head_transient(zoo::llama3_8b(), gathered).backward, alone.backward);
  }
}

// Inputs of QKV, up and the head are 7/8 of a tensor of 8192 x 4096 more than their shards, but those of QKV
// and up where they come in chunks. A split backward holds as much more of two inputs and two gradients.
TEST(LayerTensors, OfGatheredInputsThatAreKept) {
  const TransformerSpec model = zoo::llama3_8b();
  const Bytes more(2 * 8192LL * 4096 * 7 / 8);
  const Shard sharded{.sequence = 8192, .tensor = 8, .sequence_parallel = true};
  Shard gathered = sharded;
  gathered.rules.gathered_inputs = true;
  EXPECT_EQ(kept(model, gathered) - kept(model, sharded), 2 * more);
  EXPECT_EQ(head_activation(model, gathered) - head_activation(model, sharded), more);
  EXPECT_EQ(held_for_weight_gradients(model, gathered) - held_for_weight_gradients(model, sharded), 4 * more);
  gathered.overlap_tensor = true;
  EXPECT_EQ(kept(model, gathered), kept(model, sharded));
  EXPECT_EQ(head_activation(model, gathered) - head_activation(model, sharded), more);
}

// Shared experts read a tensor of their own then; compressed Q and K are gathered for their up projections.
TEST(LayerTensors, OfGatheredInputsOfLatentsAndSharedExperts) {
  const TransformerSpec model = zoo::deepseek_v3();
  Shard shard{.sequence = 4096, .tensor = 8, .expert = 64, .expert_tensor = 1, .sequence_parallel = true};
  shard.rules.gathered_inputs = true;
  const SavedTensors tensors = layer_tensors(model, shard, LayerKind::kExperts);
  EXPECT_EQ(size_of(tensors, "up projection input"), Bytes(2 * 4096 * (1536 + 512)));
  EXPECT_EQ(size_of(tensors, "shared up input"), Bytes(2 * 4096 * 7168));
  shard.tensor = 1;  // gathers nothing
  EXPECT_EQ(size_of(layer_tensors(model, shard, LayerKind::kExperts), "shared up input"), Bytes(0));
}

// Gradients of dropout's output and input, when the block's 21 bytes a token and hidden unit are gone; where it
// holds them for weight gradients they are not.
TEST(LayerTransient, OfUnfusedAttentionRunsWhenTheFeedForwardBlockIsGone) {
  const Shard shard{.sequence = 2048, .attention = Attention::kUnfused};
  const std::int64_t row = 2048LL * 6144, scores = 64LL * 2048 * 2048;
  const LayerTransient layer = layer_transient(zoo::gpt_22b(), shard);
  EXPECT_EQ(layer.backward, Bytes(2 * row + 2 * 2 * scores - 21 * row));
  EXPECT_EQ(layer.input_gradients, Bytes(2 * row + 2 * 2 * scores));
}

// Four ranks of a ring: the scores of a query block and one block of keys at a time.
TEST(LayerTransient, OfUnfusedAttentionInARingIsOfABlock) {
  const Shard shard{.sequence = 2048, .context = 4, .attention = Attention::kUnfused};
  const std::int64_t block = 512LL * 512 * 64;
  EXPECT_EQ(layer_transient(zoo::gpt_22b(), shard).forward, Bytes(2 * 2 * block));
}

// flash_attn's loss: the 16-bit logits until the backward, which makes one more matrix of their size. Logits
// cast to fp32 are PyTorch's own loss all the same.
TEST(HeadTransient, OfALossIn16BitIsTheGradientOfTheLogits) {
  const Bytes logits(2 * 8192LL * 128256);
  Shard shard{.sequence = 8192};
  shard.rules.loss_in_16_bit = true;
  EXPECT_EQ(head_activation(zoo::llama3_8b(), shard), Bytes(4 * 8192 * 4096) + logits);
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).forward, Bytes(0));
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).backward, logits);
  shard.software.fp32_logits = true;
  EXPECT_EQ(head_activation(zoo::llama3_8b(), shard), Bytes(4 * 8192 * 4096) + 2 * logits);
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).backward, 4 * logits);
}

// Megatron-Core's compiled loss copies its fp32 softmax in the backward.
TEST(HeadTransient, OfACompiledLossIsAThirdMatrix) {
  const std::int64_t logits = 8192LL * 128256;
  Shard shard{.sequence = 8192};
  const Bytes kept = head_activation(zoo::llama3_8b(), shard);
  shard.software.compiled_loss = true;
  EXPECT_EQ(head_activation(zoo::llama3_8b(), shard), kept);
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).forward, Bytes(2 * logits));
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).backward, Bytes((2 + 4) * logits));
}

// Each goes before all that were named before it.
// Llama 3 8B over 8,192 tokens in 8 chunks: of 8 GiB of fp32 matrices an eighth while the forward runs, beside the head's
// input, and its gradient in the input's place until the backward. The chunks may be of one token.
TEST(HeadTransient, InChunksIsOfOneChunk) {
  Shard shard{.sequence = 8192};
  shard.software.fp32_logits = true;
  shard.software.loss_chunks = 8;
  const std::int64_t row = 2LL * 8192 * 4096, fp32 = 4LL * 1024 * 128256;
  const HeadTransient head = head_transient(zoo::llama3_8b(), shard);
  EXPECT_EQ(head.forward, Bytes(row + 3 * fp32));
  EXPECT_EQ(head.backward, Bytes(0));
  EXPECT_EQ(head_activation(zoo::llama3_8b(), shard), Bytes(2 * row));
  EXPECT_EQ(head_tensors(zoo::llama3_8b(), shard).back().name, "gradient of the head input");
  EXPECT_EQ(head_logits(zoo::llama3_8b(), shard), Bytes(0));
  EXPECT_EQ(loss_chunks(shard), std::vector<std::int64_t>(8, 1024));
  shard.software.loss_chunks = 3;
  EXPECT_EQ(loss_chunks(shard), (std::vector<std::int64_t>{2731, 2731, 2730}));
  shard.sequence = 2;
  EXPECT_EQ(loss_chunks(shard), (std::vector<std::int64_t>{1, 1}));
}

TEST(LossKind, IsOneOfThoseThatAreNamed) {
  Shard shard{.tensor = 2};
  EXPECT_EQ(shard.loss(), LossKind::kSoftmax);
  shard.software.compiled_loss = true;
  EXPECT_EQ(shard.loss(), LossKind::kCompiled);
  shard.rules.loss_in_16_bit = true;
  EXPECT_EQ(shard.loss(), LossKind::k16Bit);
  shard.software.fp32_logits = true;
  EXPECT_EQ(shard.loss(), LossKind::kFp32Logits);
  shard.rules.loss_parallel = true;
  EXPECT_EQ(shard.loss(), LossKind::kShardedFp32Logits);
  shard.software.fused_loss = true;
  EXPECT_EQ(shard.loss(), LossKind::kFused);
}

// A fused loss overwrites the logits in 16 bit: half of the fp32 softmax, and nothing beside it.
TEST(HeadActivation, IsHalvedByAFusedLoss) {
  Shard shard{.sequence = 8192};
  shard.software.fused_loss = true;
  EXPECT_EQ(head_activation(zoo::llama3_8b(), shard), Bytes(4 * 8192 * 4096 + 2 * 8192LL * 128256));
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).forward, Bytes(0));
  EXPECT_EQ(head_transient(zoo::llama3_8b(), shard).backward, Bytes(0));
}

// Llama-3 8B, t = 1: QKV, projection, gate and up, down: 218 103 808 weights of four shapes.
TEST(GradientPlaceholders, AreOneTensorForEachShape) {
  Shard shard{.sequence = 8192};
  EXPECT_EQ(gradient_placeholders(zoo::llama3_8b(), shard), Bytes(0));
  shard.software.gradient_placeholders = true;
  EXPECT_EQ(gradient_placeholders(zoo::llama3_8b(), shard), Bytes(2 * 218'103'808));
}

}  // namespace
}  // namespace stagecraft
