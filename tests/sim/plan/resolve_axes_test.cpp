// Context, experts, sharding groups and the contents of stages: what is accepted, and what is said otherwise.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/sim/plan/cases.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;

Case with_experts(int gpus, const ParallelSpec& parallelism) {
  Case c;
  c.model = small_expert_model();
  c.cluster = cluster_of(1, gpus);
  c.parallelism = parallelism;
  c.training.global_batch_size = gpus;  // whatever the replicas
  return c;
}

std::vector<std::string> paths_of(const Case& c) {
  std::vector<std::string> paths;
  for (const Diagnostic& error : outcome_of(c).errors) paths.push_back(error.path);
  return paths;
}

// A head that is split splits the matrix that it shares.
TEST(ReplicatedEmbedding, IsRefusedWhereTheHeadSharesIt) {
  Case c;
  c.parallelism = {.tensor = 2, .replicated_embedding = true};
  std::get<TransformerSpec>(c.model).tied_embeddings = false;
  EXPECT_TRUE(outcome_of(c).plan);
  EXPECT_EQ(outcome_of(c).plan->embedding_ranks(), 1);
  std::get<TransformerSpec>(c.model).tied_embeddings = true;
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.replicated_embedding: the head shares its matrix "
            "(model.tied_embeddings), and tensor ranks split the head\n"
            "  hint: leave it out, or use model.tied_embeddings: false");
  c.parallelism.tensor = 1;
  EXPECT_TRUE(outcome_of(c).plan);
}

// System: 16 GPUs, tensor 2, context 2, pipeline 2. Expectations: data 2; the 4 replicas of a weight share
// it.
TEST(ContextParallel, TakesItsPartOfTheGpus) {
  Case c;
  c.cluster = cluster_of(2, 8);
  c.parallelism = {.tensor = 2, .pipeline = 2, .context = 2};
  const auto plan = outcome_of(c).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->data, 2);
  EXPECT_EQ(plan->context, 2);
  EXPECT_EQ(plan->gpus(), 16);
  EXPECT_EQ(plan->replicas(), 4);
  EXPECT_EQ(plan->shard_group, 4);
  EXPECT_EQ(plan->micro_batches, 4);  // 8 samples / 2 data ranks: context ranks share a sample
  EXPECT_EQ(plan->mesh.stride(Axis::kContext), 2);
  EXPECT_EQ(plan->mesh.stride(Axis::kData), 4);
  EXPECT_EQ(plan->mesh.stride(Axis::kPipeline), 8);
}

TEST(ContextParallel, CutsTheSequenceIntoTwoChunksARank) {
  Case c;
  c.parallelism = {.context = 8};
  c.training.sequence_length = 24;  // 24 / 8 = 3 tokens, but 24 / 16 chunks is not whole
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: parallelism.context: 2 × 8 = 16 chunks do not divide training.sequence_length = 24\n"
      "  hint: 6 or 12 would");
  c.parallelism.context_exchange = ContextExchange::kAllGather;
  EXPECT_FALSE(outcome_of(c).plan);
  c.parallelism.context_exchange = ContextExchange::kAllToAll;  // 8 heads, 4 key/value heads
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: parallelism.context: 8 does not divide the 4 key/value heads of a tensor rank, as "
      "context_exchange all-to-all asks\n"
      "  hint: 4 would; or use parallelism.context_exchange p2p or all-gather");
}

// A ring hands whole blocks on; only gathered keys and exchanged heads know of a window.
TEST(ContextParallel, KnowsNoSlidingWindowInARing) {
  Case c;
  std::get<TransformerSpec>(c.model).sliding_window = {.tokens = 128};
  c.parallelism = {.context = 2};
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: parallelism.context: 2 ranks exchange keys in a ring (context_exchange: p2p), which "
      "knows no model.sliding_window\n"
      "  hint: use parallelism.context_exchange all-gather or all-to-all");
  for (const ContextExchange exchange : {ContextExchange::kAllGather, ContextExchange::kAllToAll}) {
    c.parallelism.context_exchange = exchange;
    EXPECT_TRUE(outcome_of(c).plan);
  }
  c.parallelism.context = 8;
  EXPECT_THAT(message_of(c),
              testing::EndsWith("hint: 4 would; or use parallelism.context_exchange all-gather"));
}

TEST(ContextParallel, ExchangesWholeHeadsOfATensorRank) {
  Case c;
  c.parallelism = {.tensor = 2, .context = 4, .context_exchange = ContextExchange::kAllToAll};
  EXPECT_EQ(
      message_of(c),  // 8 / 2 = 4 heads, 4 / 2 = 2 key/value heads
      "case.yaml: error: parallelism.context: 4 does not divide the 2 key/value heads of a tensor rank, as "
      "context_exchange all-to-all asks\n"
      "  hint: 2 would; or use parallelism.context_exchange p2p or all-gather");
  c.parallelism = {.tensor = 2, .context = 2, .context_exchange = ContextExchange::kAllToAll};
  EXPECT_TRUE(outcome_of(c).plan);
}

TEST(ContextParallel, LeavesSequenceParallelTokensToSplit) {
  Case c;
  c.training.sequence_length = 12;
  c.parallelism = {.tensor = 4, .context = 2, .sequence_parallel = true};  // 12 / 2 = 6 tokens over 4
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.tensor: 12 tokens do not split over context 2 × tensor 4, as "
            "sequence_parallel asks\n"
            "  hint: 8 or 16 would; or set parallelism.sequence_parallel: false");
  c.origins = {{"parallelism.sequence_parallel", {.file = "case.yaml", .line = 7, .column = 3}}};
  EXPECT_THAT(message_of(c), StartsWith("case.yaml:7:3: error: parallelism.sequence_parallel: 12 tokens"));
  c.training.sequence_length = 16;
  EXPECT_TRUE(outcome_of(c).plan);
}

// The degree that can mend it is named, at its own place.
TEST(ContextParallel, IsBlamedWhereNoOtherDegreeHelps) {
  Case c;
  c.parallelism = {.tensor = 2, .context = 3};
  c.training.sequence_length = 24;
  c.origins = {{"parallelism.tensor", {.file = "case.yaml", .line = 3, .column = 5}},
               {"parallelism.context", {.file = "--set parallelism.context=3"}}};
  EXPECT_EQ(
      message_of(c),
      "--set parallelism.context=3: error: parallelism.context: tensor 2 × context 3 × pipeline 1 = 6 does "
      "not divide the cluster's 8 GPUs\n"
      "  hint: context 2 or 4 would do; or change the cluster");
}

TEST(ContextParallel, IsNamedWhenGpusDoNotAddUp) {
  Case c;
  c.parallelism = {.tensor = 2, .pipeline = 3, .context = 2};
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.pipeline: tensor 2 × context 2 × pipeline 3 = 12 is more than the "
            "cluster's 8 GPUs\n"
            "  hint: pipeline 2 would do; or change the cluster");
  c.parallelism = {.tensor = 2, .pipeline = 2, .data = 4, .context = 2};
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.data: tensor 2 × context 2 × pipeline 2 × data 4 = 32 is not the "
            "cluster's 8 GPUs\n"
            "  hint: leave `data` out to use what is left");
}

// System: t=2 c=2 d=4 p=2 on 32 GPUs; experts split e=4 ways, each et=2 ways.
// Expectations: the 16 ranks of a stage hold each expert shard 16 / (4 * 2) = 2 times.
TEST(ExpertParallel, LaysAMeshOfItsOwnOverTheRanksOfAStage) {
  Case c = with_experts(
      32,
      {.tensor = 2, .pipeline = 2, .context = 2, .expert = 4, .expert_tensor = 2, .sequence_parallel = true});
  const auto plan = outcome_of(c).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->data, 4);
  EXPECT_EQ(plan->expert_data(), 2);
  EXPECT_EQ(plan->expert_mesh.size(), 32);
  EXPECT_EQ(plan->expert_mesh.stride(Axis::kTensor), 1);
  EXPECT_EQ(plan->expert_mesh.stride(Axis::kExpert), 2);
  EXPECT_EQ(plan->expert_mesh.stride(Axis::kData), 8);
  EXPECT_EQ(plan->expert_mesh.stride(Axis::kPipeline), 16);
  EXPECT_EQ(plan->mesh.stride(Axis::kPipeline), 16);
}

TEST(ExpertParallel, SplitsExpertsEvenly) {
  EXPECT_EQ(message_of(with_experts(3, {.expert = 3})),
            "case.yaml: error: parallelism.expert: 3 does not divide model.experts.count = 8\n"
            "  hint: 2 or 4 would");
  EXPECT_EQ(message_of(with_experts(3, {.expert_tensor = 3})),
            "case.yaml: error: parallelism.expert_tensor: 3 does not divide model.experts.ffn_hidden = 16\n"
            "  hint: 2 or 4 would");
}

TEST(ExpertParallel, FitsIntoTheRanksOfAStage) {
  EXPECT_EQ(
      message_of(with_experts(8, {.pipeline = 2, .expert = 4, .expert_tensor = 2})),
      "case.yaml: error: parallelism.expert_tensor: expert 4 × expert_tensor 2 = 8 does not divide the 4 "
      "ranks of a pipeline stage, tensor 1 × context 1 × data 4\n"
      "  hint: expert 2 would");
}

TEST(ExpertParallel, NeedsExperts) {
  Case c;
  c.parallelism = {.expert = 2, .expert_tensor = 2};
  EXPECT_THAT(paths_of(c), ElementsAre("parallelism.expert", "parallelism.expert_tensor"));
  EXPECT_EQ(render(outcome_of(c).errors.front()),
            "case.yaml: error: parallelism.expert: 2 ways to split experts, and the model has none\n"
            "  hint: leave it out, or give the model experts");
}

TEST(ExpertParallel, NeedsSequenceParallelBesideTensorParallel) {
  EXPECT_EQ(message_of(with_experts(8, {.tensor = 2, .expert = 2})),
            "case.yaml: error: parallelism.tensor: experts beside tensor 2 need sequence_parallel, as in "
            "Megatron-LM: each tensor rank routes tokens of its own\n"
            "  hint: set parallelism.sequence_parallel: true, or parallelism.tensor: 1");
  Case c = with_experts(8, {.tensor = 8, .sequence_parallel = true});
  c.training.sequence_length = 12;
  std::get<TransformerSpec>(c.model).max_sequence_length = 12;
  EXPECT_THAT(message_of(c),
              EndsWith("hint: 8 would; or set parallelism.tensor: 1: experts need sequence_parallel"));
  c.training.sequence_length = 4;
  std::get<TransformerSpec>(c.model).max_sequence_length = 4;
  EXPECT_THAT(message_of(c), EndsWith("\n  hint: set parallelism.tensor: 1: experts need sequence_parallel"));
}

TEST(ExpertParallel, SplitsTheSharedExpertsOverTheTensorRanks) {
  Case c = with_experts(8, {.tensor = 8, .sequence_parallel = true});
  EXPECT_TRUE(outcome_of(c).plan);
  auto& experts = *std::get<TransformerSpec>(c.model).experts;
  experts.shared = 1;
  experts.shared_ffn_hidden = 12;
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: parallelism.tensor: 8 does not divide the width of the shared experts, 1 × 12 = 12\n"
      "  hint: use 1, 2 or 4");
}

// Without a dense layer nobody splits the dense width.
TEST(ExpertParallel, DoesNotSplitADenseWidthThatNoLayerHas) {
  Case c = with_experts(8, {.tensor = 8, .sequence_parallel = true});
  auto& model = std::get<TransformerSpec>(c.model);
  model.ffn_hidden = 12;
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.tensor: 8 does not divide model.ffn_hidden = 12\n"
            "  hint: use 1, 2 or 4");
  model.experts->dense_layers = {};
  EXPECT_TRUE(outcome_of(c).plan);
}

// System: 16 GPUs, p=2, t=1, c=1, d=8, e=4. Data inside pipeline inside expert: the next stage of dense
// layers is 8 ranks away, that of experts only expert_data = 2.
TEST(ExpertParallel, KeepsDenseLayersAndExpertsOfAStageOnTheSameRanks) {
  Case c = with_experts(16, {.pipeline = 2, .expert = 4});
  c.parallelism.order = {Axis::kData, Axis::kPipeline, Axis::kExpert, Axis::kTensor, Axis::kContext};
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: parallelism.order: the next pipeline stage of dense layers is 8 ranks away, that of "
      "experts 2: they would not live on the same ranks\n"
      "  hint: put pipeline last, or first");
  c.parallelism.order = {Axis::kPipeline, Axis::kData, Axis::kExpert, Axis::kTensor, Axis::kContext};
  EXPECT_TRUE(outcome_of(c).plan);
}

// Without experts there is nothing to agree with: tensor, pipeline, data is an order like any other.
TEST(Order, MayPutThePipelineAnywhereWithoutExperts) {
  Case c;
  c.parallelism = {.tensor = 2,
                   .pipeline = 2,
                   .order = {Axis::kTensor, Axis::kPipeline, Axis::kData, Axis::kContext, Axis::kExpert}};
  const auto plan = outcome_of(c).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->mesh.stride(Axis::kPipeline), 2);
  EXPECT_EQ(plan->mesh.stride(Axis::kData), 4);
}

TEST(ZeroGroup, DividesTheReplicas) {
  Case c;
  c.parallelism = {.context = 2, .zero_stage = 3, .zero_group = 3};
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: parallelism.zero_group: 3 does not divide the replicas, data 4 × context 2 = 8\n"
      "  hint: 2 or 4 would");
  c.parallelism.zero_group = 4;
  const auto plan = outcome_of(c).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->shard_group, 4);
}

// System: 12 GPUs, d=12, e=4: an expert lives on 3 ranks. Expectations: with one copy of the states these share it;
// with three each has its own; two are not possible.
TEST(ZeroGroup, DividesTheRanksThatHoldAnExpert) {
  Case c = with_experts(12, {.expert = 4, .zero_stage = 1});
  EXPECT_EQ(outcome_of(c).plan->expert_shard_group(), 3);
  c.parallelism.zero_group = 4;
  EXPECT_EQ(outcome_of(c).plan->expert_shard_group(), 1);
  c.parallelism.zero_group = 6;
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.zero_group: 2 sharded copies do not divide the 3 ranks that hold "
            "the same "
            "experts, tensor × context × data / (expert × expert_tensor)\n"
            "  hint: zero_group 4 or 12 would");
}

// System: Mixtral's case, 8 nodes of 8 GPUs, each with one copy: its 8 ranks hold an expert each. And tensor 8 on 4
// replicas in two copies: of the 32 ranks that hold all experts, 16 share each.
TEST(ZeroGroup, MakesAsManyCopiesOfExpertsAsOfDenseWeights) {
  Case c = with_experts(64, {.expert = 8, .zero_stage = 3, .zero_group = 8});
  EXPECT_EQ(outcome_of(c).plan->expert_shard_group(), 1);
  c = with_experts(32, {.tensor = 8, .sequence_parallel = true, .zero_stage = 1, .zero_group = 2});
  EXPECT_EQ(outcome_of(c).plan->expert_shard_group(), 16);
}

// Experts that are split fewer ways than the dense layers are held by more ranks than there are replicas.
TEST(ZeroGroup, SharesExpertsAmongAllThatHoldThem) {
  const auto plan = outcome_of(with_experts(8, {.tensor = 4, .expert = 2, .sequence_parallel = true})).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->shard_group, 2);
  EXPECT_EQ(plan->expert_shard_group(), 4);
}

TEST(RecomputeByOperator, IsForFlashAttentionAlone) {
  Case c;
  c.training.recompute = {.granularity = Recompute::kSelective,
                          .modules = RecomputeModules{RecomputeModule::kEverySecondProduct}};
  EXPECT_TRUE(outcome_of(c).plan);
  c.training.attention = Attention::kUnfused;
  EXPECT_EQ(message_of(c),
            "case.yaml: error: training.recompute.modules: every_second_product is not modelled for unfused "
            "attention, whose core is two products more\n"
            "  hint: name other modules, or use recompute: full");
  c.training.attention = Attention::kFlash;
  c.training.recompute.modules = c.training.recompute.modules | RecomputeModules{RecomputeModule::kMlp};
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: training.recompute.modules: every_second_product says of all tensors whether they "
      "are kept, so no other module goes with it\n"
      "  hint: name it alone, or leave it out");
}

TEST(RecomputeByOperator, IsForNormsBeforeTheBlocksAlone) {
  Case c;
  c.training.recompute = {.granularity = Recompute::kSelective,
                          .modules = RecomputeModules{RecomputeModule::kEverySecondProduct}};
  std::get<TransformerSpec>(c.model).norms = Norms::kBoth;
  EXPECT_EQ(message_of(c),
            "case.yaml: error: training.recompute.modules: every_second_product is not modelled for norms "
            "behind the "
            "blocks, which read their last products\n"
            "  hint: name other modules, or use recompute: full");
}

// 12 layers, 0 and 1 dense, over 4 stages of 3; the first two of each stage are recomputed.
TEST(StageContents, CountExpertsAndRecomputedLayers) {
  Case c = with_experts(4, {.pipeline = 4});
  std::get<TransformerSpec>(c.model).mtp_layers = 1;
  c.training.recompute = {.granularity = Recompute::kFull, .method = RecomputeMethod::kBlock, .layers = 2};
  EXPECT_THAT(
      outcome_of(c).plan->stages,
      ElementsAre(
          StageContent{.layers = {.dense = 2, .experts = 1}, .recomputed = {.dense = 2}, .embedding = true},
          StageContent{.layers = {.experts = 3}, .recomputed = {.experts = 2}},
          StageContent{.layers = {.experts = 3}, .recomputed = {.experts = 2}},
          StageContent{
              .layers = {.experts = 3}, .recomputed = {.experts = 2}, .mtp_layers = 1, .head = true}));
}

// Layouts that end in `|m|L` in Megatron-LM.
TEST(StageContents, HaveMultiTokenPredictionAloneBeforeAHeadThatIsAlone) {
  Case c = with_experts(4, {.pipeline = 4, .stage_layers = {6, 6, 0, 0}});
  auto& model = std::get<TransformerSpec>(c.model);
  model.mtp_layers = 2;
  model.tied_embeddings = false;
  EXPECT_THAT(outcome_of(c).plan->stages,
              ElementsAre(StageContent{.layers = {.dense = 2, .experts = 4}, .embedding = true},
                          StageContent{.layers = {.experts = 6}}, StageContent{.mtp_layers = 2},
                          StageContent{.head = true}));
  model.tied_embeddings = true;
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.stage_layers: a stage of multi-token prediction alone needs an "
            "embedding of its own, and the model ties its embeddings\n"
            "  hint: leave a layer on the last stage, which then has the prediction too; or "
            "model.tied_embeddings: false");
  model.tied_embeddings = false;
  c.parallelism.stage_layers = {12, 0, 0, 0};
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: parallelism.stage_layers: stage 1 of 4 holds nothing\n"
      "  hint: only the first (embedding), the last (head) and, before a last one without layers, that of "
      "multi-token prediction can do without layers");
  model.mtp_layers = 0;
  c.parallelism.stage_layers = {6, 6, 0, 0};
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.stage_layers: stage 2 of 4 holds nothing\n"
            "  hint: only the first (embedding) and the last (head) can do without layers");
}

TEST(StageContents, RecomputeEveryLayerInUniformGroups) {
  Case c = with_experts(2, {.pipeline = 2});
  c.training.recompute = {.granularity = Recompute::kFull, .layers = 4};
  EXPECT_THAT(
      outcome_of(c).plan->stages,
      ElementsAre(StageContent{.layers = {.dense = 2, .experts = 4},
                               .recomputed = {.dense = 2, .experts = 4},
                               .embedding = true},
                  StageContent{.layers = {.experts = 6}, .recomputed = {.experts = 6}, .head = true}));
}

TEST(StageContents, RecomputeNoMoreLayersThanThereAre) {
  Case c;
  c.cluster = cluster_of(1, 3);
  c.training.global_batch_size = 3;
  c.parallelism = {.pipeline = 3, .stage_layers = {7, 5, 0}};
  c.training.recompute = {.granularity = Recompute::kFull, .method = RecomputeMethod::kBlock, .layers = 6};
  EXPECT_THAT(
      outcome_of(c).plan->stages,
      ElementsAre(StageContent{.layers = 7, .recomputed = 6, .embedding = true},
                  StageContent{.layers = 5, .recomputed = 5}, StageContent{.layers = 0, .head = true}));
}

// 14 layers, an embedding and a loss make 16, 4 a stage.
TEST(StageContents, CountTheEndsAsLayersWhereAsked) {
  Case c;
  auto& model = std::get<TransformerSpec>(c.model);
  model.layers = 14;
  c.parallelism = {.pipeline = 4, .embedding_as_layer = true, .loss_as_layer = true};
  EXPECT_THAT(outcome_of(c).plan->stages,
              ElementsAre(StageContent{.layers = 3, .embedding = true}, StageContent{.layers = 4},
                          StageContent{.layers = 4}, StageContent{.layers = 3, .head = true}));
  model.layers = 7;
  c.parallelism.loss_as_layer = false;
  EXPECT_THAT(outcome_of(c).plan->stages,
              ElementsAre(StageContent{.layers = 1, .embedding = true}, StageContent{.layers = 2},
                          StageContent{.layers = 2}, StageContent{.layers = 2, .head = true}));
  model.layers = 12;
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.pipeline: 4 stages do not divide model.layers = 12 + 1 "
            "(embedding) "
            "= 13\n"
            "  hint: 1 would; or give parallelism.stage_layers");
  c.parallelism.stage_layers = {3, 3, 3, 3};
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.embedding_as_layer: is about the even split, and "
            "parallelism.stage_layers is given\n"
            "  hint: leave one of the two out");
}

TEST(Resolve, ReportsMistakesOfEveryAxisAtOnce) {
  Case c = with_experts(8, {.tensor = 2, .context = 3, .expert = 3, .expert_tensor = 3});
  EXPECT_THAT(paths_of(c),
              testing::UnorderedElementsAre("parallelism.context", "parallelism.tensor", "parallelism.expert",
                                            "parallelism.expert_tensor", "parallelism.context"));
}

TEST(Resolve, PlacesAHundredThousandGpusAndTwoTrillionParameters) {
  Case c;
  c.model = TransformerSpec{.name = "two trillion",
                            .layers = 160,
                            .hidden = 32768,
                            .heads = 256,
                            .kv_heads = 256,
                            .head_size = 128,
                            .ffn_hidden = 131072,
                            .vocab = 131072,
                            .max_sequence_length = 8192};
  c.cluster = cluster_of(12'800, 8);
  c.parallelism = {.tensor = 8, .pipeline = 16, .context = 8, .zero_stage = 1, .zero_group = 80};
  c.training = {.global_batch_size = 8000, .sequence_length = 8192};
  EXPECT_GT(parameter_count(std::get<TransformerSpec>(c.model)), 2'000'000'000'000);
  const auto plan = outcome_of(c).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->gpus(), 102'400);
  EXPECT_EQ(plan->data, 100);
  EXPECT_EQ(plan->micro_batches, 80);
}

// What holds of a plan, whatever was asked.
void expect_consistent(const ParallelPlan& plan, const Case& c) {
  const auto& model = std::get<TransformerSpec>(c.model);
  EXPECT_EQ(plan.gpus(), c.cluster->gpu_count());
  EXPECT_EQ(plan.mesh.size(), plan.gpus());
  EXPECT_EQ(plan.expert_mesh.size(), plan.gpus());
  for (int rank = 0; rank < plan.gpus(); ++rank)
    EXPECT_EQ(plan.mesh.coordinate(rank, Axis::kPipeline),
              plan.expert_mesh.coordinate(rank, Axis::kPipeline));
  EXPECT_EQ(plan.replicas() % plan.shard_group, 0);
  EXPECT_EQ(plan.expert_data() % plan.expert_shard_group(), 0);
  EXPECT_EQ(plan.stage_count(), plan.pipeline * plan.virtual_stages);
  StageContent sum;
  for (const StageContent& stage : plan.stages) {
    for (const LayerKind kind : kLayerKinds) {
      EXPECT_GE(stage.recomputed[kind], 0);
      EXPECT_LE(stage.recomputed[kind], stage.layers[kind]);
    }
    sum.layers += stage.layers;
    sum.recomputed += stage.recomputed;
    sum.mtp_layers += stage.mtp_layers;
    EXPECT_EQ(stage.embedding, &stage == &plan.stages.front());
    EXPECT_EQ(stage.head, &stage == &plan.stages.back());
  }
  EXPECT_EQ(sum.layers, model.numbers());
  EXPECT_EQ(sum.recomputed.all(), c.training.recompute.granularity == Recompute::kFull ? model.layers : 0);
  EXPECT_EQ(sum.mtp_layers, model.mtp_layers);
}

// Property: over every order of the axes, an accepted plan has two meshes over all GPUs that agree on the
// stages, groups that cut evenly, and stages that add up to the model.
TEST(Resolve, AcceptsOnlyConsistentPlans) {
  int accepted = 0;
  int tried = 0;
  std::array<Axis, kAxisCount> order = ParallelSpec{}.order;
  std::sort(order.begin(), order.end());
  do {
    for (int i = 0; i < 3 * 3 * 2 * 3 * 3 * 4; ++i) {
      int digits = i;
      const auto pick = [&](std::initializer_list<int> choices) {
        const int chosen = *(choices.begin() + digits % static_cast<int>(choices.size()));
        digits /= static_cast<int>(choices.size());
        return chosen;
      };
      Case c = with_experts(24, {.tensor = pick({1, 2, 4}),
                                 .pipeline = pick({1, 2, 3}),
                                 .context = pick({1, 2}),
                                 .expert = pick({1, 2, 4}),
                                 .expert_tensor = pick({1, 2, 3}),
                                 .sequence_parallel = true,
                                 .zero_stage = 1,
                                 .order = order});
      if (const int group = pick({0, 2, 3, 4}); group > 0) c.parallelism.zero_group = group;
      c.training.recompute.granularity = i % 2 == 0 ? Recompute::kFull : Recompute::kNone;
      std::get<TransformerSpec>(c.model).mtp_layers = i % 3;
      const Outcome outcome = outcome_of(c);
      EXPECT_EQ(outcome.plan.has_value(), outcome.errors.empty());
      ++tried;
      if (!outcome.plan) continue;
      ++accepted;
      SCOPED_TRACE(i);
      expect_consistent(*outcome.plan, c);
    }
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_GT(accepted, tried / 10);
  EXPECT_LT(accepted, tried);
}

}  // namespace
}  // namespace stagecraft
