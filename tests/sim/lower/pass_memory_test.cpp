// What passes hold, and what a rank holds while it runs them in order.
#include "sim/lower/pass_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/lower/memory_replay.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;

Shard unfused_selective() {
  return {.sequence = 2048, .attention = Attention::kUnfused, .recompute = Recompute::kSelective};
}

Bytes size_of(const SavedTensors& tensors, std::string_view name) {
  for (const SavedTensor& tensor : tensors)
    if (tensor.name == name) return tensor.size;
  return Bytes(0);
}

TEST(PassMemory, SumsTheLayersAndEndsOfItsStage) {
  const Shard shard{.sequence = 8192};
  const TransformerSpec model = zoo::llama3_8b();
  const Bytes layer = total(layer_tensors(model, shard));
  EXPECT_EQ(pass_memory(model, shard, {.layers = {.dense = 3}}).kept, 3 * layer);
  EXPECT_EQ(pass_memory(model, shard, {.layers = {.dense = 1}, .embedding = true, .head = true}).kept,
            layer + total(embedding_tensors(model, shard)) + head_activation(model, shard));
}

TEST(PassMemory, CountsDenseAndExpertLayersApart) {
  const Shard shard{.sequence = 4096, .expert = 8};
  const TransformerSpec model = zoo::mixtral_8x7b();
  const Bytes dense = total(layer_tensors(model, shard));
  const Bytes experts = total(layer_tensors(model, shard, LayerKind::kExperts));
  EXPECT_EQ(pass_memory(model, shard, {.layers = {.dense = 2, .experts = 3}}).kept, 2 * dense + 3 * experts);
}

// A layer of multi-token prediction is a layer, its own norms and projection, and the head once more.
TEST(PassMemory, CountsMultiTokenPredictionWithItsHead) {
  const Shard shard{.sequence = 4096, .expert = 64};
  const TransformerSpec model = zoo::deepseek_v3();
  TransformerSpec plain = model;
  plain.mtp_layers = 0;
  const StageContent without{.layers = {.experts = 1}, .head = true};
  StageContent with = without;
  with.mtp_layers = 1;
  EXPECT_EQ(pass_memory(model, shard, with).kept - pass_memory(plain, shard, without).kept,
            total(layer_tensors(model, shard, LayerKind::kExperts)) + total(mtp_tensors(model, shard)) +
                head_activation(model, shard));
}

// Full recompute keeps what the layer began with: the hidden vectors as its checkpoint, and the embedding.
TEST(PassMemory, OfARecomputedPredictionIsItsTwoInputs) {
  const Shard shard{.sequence = 4096, .expert = 64, .recompute = Recompute::kFull};
  const TransformerSpec model = zoo::deepseek_v3();
  const StageContent without{.layers = {.experts = 1}, .recomputed = {.experts = 1}};
  StageContent with = without;
  with.mtp_layers = 1;
  with.recomputed_mtp = true;
  EXPECT_EQ(pass_memory(model, shard, with).kept - pass_memory(model, shard, without).kept,
            2 * boundary_activation(model, shard) + total(embedding_tensors(model, shard)));
}

// I frees 2 of a GPT's 34 bytes per element of s b h where the core's scores are recomputed, W frees 32.
TEST(PassMemory, OfASplitBackwardLivesMostlyUntilW) {
  const PassMemory memory = pass_memory(zoo::gpt_22b(), unfused_selective(), {.layers = {.dense = 1}});
  const std::int64_t element = 2048 * 6144;
  EXPECT_EQ(memory.kept, Bytes(34 * element));
  EXPECT_EQ(memory.freed_by_input_gradient, Bytes(2 * element));
}

// Korthikanti et al. (arXiv 2205.05198), Table 2: 2 s b h a layer, of s = 2048 and t = 8.
TEST(PassMemory, OfFullRecomputeIsTheTables) {
  struct Row {
    TransformerSpec model;
    std::int64_t micro_batch;
    Bytes kept;
  };
  for (const auto& [model, micro_batch, kept] :
       {Row{zoo::gpt_22b(), 4, 96_MiB}, Row{zoo::gpt3_175b(), 1, 48_MiB}, Row{zoo::gpt_530b(), 1, 80_MiB},
        Row{zoo::gpt_1t(), 1, 100_MiB}}) {
    const Shard shard{.sequence = 2048,
                      .micro_batch = micro_batch,
                      .tensor = 8,
                      .attention = Attention::kUnfused,
                      .recompute = Recompute::kFull};
    EXPECT_EQ(pass_memory(model, shard, {.layers = {.dense = 1}, .recomputed = {.dense = 1}}).kept, kept)
        << model.hidden;
  }
}

// Checkpoints of 12 layers in groups of 4: three inputs are kept, four layers expanded at once. The first
// norm of what is made again saves the checkpoint itself.
TEST(PassMemory, OfFullRecomputeIsCheckpointsAndOneExpandedGroup) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kFull};
  const TransformerSpec model = zoo::llama3_8b();
  const Bytes row = boundary_activation(model, shard);
  const Bytes whole = total(layer_tensors(model, shard));
  const StageContent content{.layers = {.dense = 12}, .recomputed = {.dense = 12}};
  const StageTensors one = stage_tensors(model, shard, content);
  EXPECT_EQ(total(one.kept), 12 * row);
  EXPECT_EQ(size_of(one.backward_transient, "recomputed layer"), whole - row);
  const StageTensors four = stage_tensors(model, shard, content, {.checkpoint_group = 4});
  EXPECT_EQ(total(four.kept), 3 * row);
  EXPECT_EQ(size_of(four.backward_transient, "recomputed layer"), 4 * whole - row);
}

// Without a norm before attention the QKV product saves the checkpoint, but for its copy in fp8.
TEST(PassMemory, OfFullRecomputeWithoutNormsBeforeTheBlocksSavesTheCheckpointIn16BitAlone) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kFull};
  TransformerSpec model = zoo::llama3_8b();
  model.norms = Norms::kAfter;
  const StageContent content{.layers = {.dense = 12}, .recomputed = {.dense = 12}};
  const auto expanded = [&] {
    return size_of(stage_tensors(model, shard, content).backward_transient, "recomputed layer");
  };
  EXPECT_EQ(expanded(), total(layer_tensors(model, shard)) - boundary_activation(model, shard));
  shard.precision = Precision::kFp8;
  EXPECT_EQ(expanded(), total(layer_tensors(model, shard)));
}

// `block`: the first 5 of 12 layers are checkpointed one by one, the others keep everything.
TEST(PassMemory, OfBlockRecomputeKeepsTheOtherLayersWhole) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kFull};
  const TransformerSpec model = zoo::llama3_8b();
  EXPECT_EQ(pass_memory(model, shard, {.layers = {.dense = 12}, .recomputed = {.dense = 5}}).kept,
            5 * boundary_activation(model, shard) + 7 * total(layer_tensors(model, shard)));
}

// They run backwards last, when the micro-batch has let go of the 7 whole ones: a layer that is made again
// takes the room of one of these. With all but one recomputed there is room for one.
TEST(PassMemory, OfBlockRecomputeExpandsIntoTheRoomOfTheOtherLayers) {
  Shard shard{.sequence = 8192, .recompute = Recompute::kFull};
  const TransformerSpec model = zoo::llama3_8b();
  for (const std::int64_t recomputed : {1, 5, 11}) {
    const StageTensors stage =
        stage_tensors(model, shard, {.layers = {.dense = 12}, .recomputed = {.dense = recomputed}});
    EXPECT_EQ(size_of(stage.backward_transient, "recomputed layer"), Bytes(0)) << recomputed;
  }
  const StageTensors all =
      stage_tensors(model, shard, {.layers = {.dense = 12}, .recomputed = {.dense = 12}});
  EXPECT_GT(size_of(all.backward_transient, "recomputed layer"), Bytes(0));
}

// The stage's first layer runs I last: it is made again beside what the 11 others hold for W. Their checkpoints
// are gone.
TEST(PassMemory, OfAnInputGradientPeaksWhereTheOtherLayersHoldTheirTensors) {
  const Shard shard{.sequence = 8192, .recompute = Recompute::kFull};
  const TransformerSpec model = zoo::llama3_8b();
  const Bytes row = boundary_activation(model, shard);
  const Bytes held = held_for_weight_gradients(model, shard);
  const StageTensors stage =
      stage_tensors(model, shard, {.layers = {.dense = 12}, .recomputed = {.dense = 12}});
  EXPECT_EQ(size_of(stage.input_gradient_transient, kHeldForWeightGradients), 11 * (held - row));
  EXPECT_EQ(size_of(stage.input_gradient_transient, kRecomputedLayer),
            size_of(stage.backward_transient, kRecomputedLayer));
  EXPECT_EQ(size_of(stage.input_gradient_transient, "working tensors of a layer"),
            layer_transient(model, shard).backward);
}

// Groups of 4 layers: the first group runs last, beside the 8 others, which freed two checkpoints.
TEST(PassMemory, OfAnInputGradientExpandsItsLastGroupBesideTheOthers) {
  const Shard shard{.sequence = 8192, .recompute = Recompute::kFull};
  const TransformerSpec model = zoo::llama3_8b();
  const StageTensors stage = stage_tensors(
      model, shard, {.layers = {.dense = 12}, .recomputed = {.dense = 12}}, {.checkpoint_group = 4});
  EXPECT_EQ(size_of(stage.input_gradient_transient, kHeldForWeightGradients),
            8 * held_for_weight_gradients(model, shard) - 2 * boundary_activation(model, shard));
}

// The last layer runs when the head has freed its softmax, and still holds its logits' gradient for W; its
// attention runs beside what its feed-forward block holds for W.
TEST(PassMemory, OfAnInputGradientHoldsTheHeadForItsWeightGradient) {
  const Shard shard{.sequence = 8192, .attention = Attention::kUnfused};
  const TransformerSpec model = zoo::llama3_8b();
  const LayerTransient layer = layer_transient(model, shard);
  const StageContent content{.layers = {.dense = 2}, .head = true};
  const StageTensors stage = stage_tensors(model, shard, content);
  EXPECT_EQ(
      size_of(stage.input_gradient_transient, "working tensors of a layer") -
          size_of(stage.backward_transient, "working tensors of a layer"),
      boundary_activation(model, shard) + head_logits(model, shard) + layer.input_gradients - layer.backward);
}

// In 16 bit where no GEMM accumulates in place: a split backward makes it in W.
TEST(PassMemory, OfAWeightGradientPassHasTheGradientThatIsMade) {
  Shard shard{.sequence = 8192};
  const TransformerSpec model = zoo::llama3_8b();
  EXPECT_EQ(pass_memory(model, shard, {.layers = {.dense = 2}}).weight_gradient_transient, Bytes(0));
  shard.gradient_accumulation_fusion = false;
  const PassMemory memory = pass_memory(model, shard, {.layers = {.dense = 2}});
  EXPECT_EQ(memory.weight_gradient_transient, weight_gradient_transient(model, shard));
  EXPECT_EQ(memory.backward_transient - memory.input_gradient_transient, memory.weight_gradient_transient);
}

TEST(PassMemory, LeavesInHostMemoryWhatIsOffloaded) {
  const Shard shard{.sequence = 8192};
  const Bytes all = pass_memory(zoo::llama3_8b(), shard, {.layers = {.dense = 4}}).kept;
  const Bytes half = pass_memory(zoo::llama3_8b(), shard, {.layers = {.dense = 4}}, {.offloaded = 0.5}).kept;
  EXPECT_EQ(2 * half, all);
}

// Property: more recompute never holds more, forwards or backwards.
TEST(PassMemory, NeverRisesWithRecompute) {
  for (const TransformerSpec& model : {zoo::gpt_22b(), zoo::llama3_8b()}) {
    for (const Attention attention : {Attention::kFlash, Attention::kUnfused}) {
      for (const std::int64_t layers : {1, 2, 6}) {
        const auto memory = [&](Recompute recompute) {
          const Shard shard{.sequence = 2048, .attention = attention, .recompute = recompute};
          return pass_memory(model, shard,
                             {.layers = {.dense = layers},
                              .recomputed = {.dense = recompute == Recompute::kFull ? layers : 0}});
        };
        const PassMemory none = memory(Recompute::kNone), full = memory(Recompute::kFull);
        const PassMemory selective = memory(Recompute::kSelective);
        EXPECT_LE(selective.kept, none.kept);
        EXPECT_LE(full.kept, selective.kept);
        if (layers == 1) continue;  // one layer is expanded whole
        EXPECT_LE(selective.kept + selective.backward_transient, none.kept + none.backward_transient);
        EXPECT_LE(full.kept + full.backward_transient, none.kept + none.backward_transient);
      }
    }
  }
}

// Each pass of a split backward has a transient of its own.
TEST(Replay, ChargesEachHalfOfABackwardItsOwnTransient) {
  PassMemory memory{.kept = Bytes(10),
                    .freed_by_input_gradient = Bytes(-2),
                    .forward_transient = Bytes(1),
                    .backward_transient = Bytes(9)};
  memory.input_gradient_transient = Bytes(3);
  memory.weight_gradient_transient = Bytes(5);
  const std::vector<Action> order{
      {Pass::kForward, 0, 0}, {Pass::kInputGradient, 0, 0}, {Pass::kWeightGradient, 0, 0}};
  const ReplayPeak peak = replay_memory(order, std::vector{memory});
  EXPECT_EQ(peak.action, 2u);
  EXPECT_EQ(peak.live + peak.transient, Bytes(17));
}

PassMemory simple(std::int64_t kept, std::int64_t freed, std::int64_t forward, std::int64_t backward) {
  return {.kept = Bytes(kept),
          .freed_by_input_gradient = Bytes(freed),
          .forward_transient = Bytes(forward),
          .backward_transient = Bytes(backward)};
}

// F0 takes 10, F1 takes 10 more, B0 needs 5 beside them.
TEST(Replay, FindsThePassAtThePeak) {
  const std::vector<Action> order{
      {Pass::kForward, 0, 0}, {Pass::kForward, 0, 1}, {Pass::kBackward, 0, 0}, {Pass::kBackward, 0, 1}};
  const std::vector<PassMemory> memory{simple(10, 0, 1, 5)};
  const ReplayPeak peak = replay_memory(order, memory);
  EXPECT_EQ(peak.live, Bytes(20));
  EXPECT_EQ(peak.transient, Bytes(5));
  EXPECT_EQ(peak.action, 2u);
  EXPECT_EQ(peak.in_flight, (std::vector<StageInFlight>{{.whole = 2, .held = 0}}));
}

// I frees 4 of 10, so a second forward before W holds 6 + 10.
TEST(Replay, FreesASplitBackwardInTwoSteps) {
  const std::vector<Action> order{{Pass::kForward, 0, 0},       {Pass::kInputGradient, 0, 0},
                                  {Pass::kForward, 0, 1},       {Pass::kWeightGradient, 0, 0},
                                  {Pass::kInputGradient, 0, 1}, {Pass::kWeightGradient, 0, 1}};
  const std::vector<PassMemory> memory{simple(10, 4, 0, 0)};
  const ReplayPeak peak = replay_memory(order, memory);
  EXPECT_EQ(peak.live, Bytes(16));
  EXPECT_EQ(peak.action, 2u);
  EXPECT_EQ(peak.in_flight, (std::vector<StageInFlight>{{.whole = 1, .held = 1}}));
}

// Of a long pipeline a rank holds few stages, and counts only those.
TEST(Replay, CountsTheStagesOfItsOrderAlone) {
  const std::vector<Action> order{
      {Pass::kForward, 3, 0}, {Pass::kForward, 7, 0}, {Pass::kBackward, 7, 0}, {Pass::kBackward, 3, 0}};
  const std::vector<PassMemory> memory(1000, simple(10, 0, 0, 0));
  const ReplayPeak peak = replay_memory(order, memory);
  EXPECT_EQ(peak.live, Bytes(20));
  EXPECT_EQ(peak.in_flight, (std::vector<StageInFlight>{{.stage = 3, .whole = 1}, {.stage = 7, .whole = 1}}));
}

// Two stages on one rank: the gradients of the second are gone when those of the first come. Of a split
// backward W makes them.
TEST(Replay, HoldsGradientsFromTheFirstBackwardOfTheirStageToTheLast) {
  std::vector<PassMemory> memory{simple(10, 0, 0, 0), simple(10, 0, 0, 0)};
  memory[0].gradients = memory[1].gradients = Bytes(100);
  const auto gradients = [&](std::vector<Action> order) {
    const ReplayPeak peak = replay_memory(order, memory);
    return std::pair(peak.live.count(), peak.in_flight[0].gradients + peak.in_flight[1].gradients);
  };
  constexpr auto kF = Pass::kForward, kB = Pass::kBackward, kI = Pass::kInputGradient,
                 kW = Pass::kWeightGradient;
  EXPECT_EQ(gradients({{kF, 0, 0}, {kF, 1, 0}, {kB, 1, 0}, {kB, 0, 0}}), std::pair(120L, 1));
  EXPECT_EQ(gradients({{kF, 0, 0}, {kF, 1, 0}, {kB, 1, 0}, {kB, 0, 0}, {kF, 1, 1}, {kB, 1, 1}}),
            std::pair(210L, 2));
  EXPECT_EQ(gradients({{kF, 0, 0}, {kF, 1, 0}, {kI, 1, 0}, {kI, 0, 0}, {kW, 1, 0}, {kW, 0, 0}}),
            std::pair(120L, 1));
}

// Section 3 of the schedules: 1F1B min(m, p - r), GPipe m, interleaving 2(p - r - 1) + (v - 1)p + 1 chunks.
TEST(Replay, CountsMicroBatchesInFlightAsThePublishedBoundsDo) {
  const auto chunks = [](const char* name, PipelineShape shape, int rank) {
    const Schedule schedule = generate(*find_schedule(name), shape);
    const std::vector<PassMemory> memory(static_cast<std::size_t>(schedule.stages()), simple(1, 0, 0, 0));
    return replay_memory(schedule.ranks[static_cast<std::size_t>(rank)], memory).live.count();
  };
  constexpr int kRanks = 4, kBatches = 8;
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(chunks("gpipe", {.ranks = kRanks, .micro_batches = kBatches}, rank), kBatches);
    EXPECT_EQ(chunks("1f1b", {.ranks = kRanks, .micro_batches = kBatches}, rank), kRanks - rank);
    for (int v = 2; v <= 3; ++v) {
      const PipelineShape shape{.ranks = kRanks, .micro_batches = kBatches, .chunks = v};
      EXPECT_EQ(chunks("interleaved-1f1b", shape, rank), 2 * (kRanks - rank - 1) + (v - 1) * kRanks + 1);
    }
  }
}

}  // namespace
}  // namespace stagecraft
