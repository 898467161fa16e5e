#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/plan/cases.hpp"

namespace stagecraft {
namespace {

TEST(Resolve, LeavesTheRestOfTheGpusToDataParallelism) {
  Case c;
  c.cluster = cluster_of(4, 8);
  c.parallelism = {.tensor = 4, .pipeline = 2};
  const auto plan = outcome_of(c).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->data, 4);
  EXPECT_EQ(plan->gpus(), 32);
  EXPECT_EQ(plan->micro_batches, 2);  // 8 samples / 4 replicas
  EXPECT_EQ(plan->mesh.size(), 32);
  EXPECT_EQ(plan->mesh.stride(Axis::kPipeline), 16);
}

TEST(Resolve, SplitsLayersEvenlyAndPutsTheEndsAtTheEnds) {
  Case c;
  c.parallelism = {.tensor = 2, .pipeline = 2, .virtual_stages = 2};
  const auto plan = outcome_of(c).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->stages, (std::vector<StageContent>{{.layers = {.dense = 3}, .embedding = true},
                                                     {.layers = {.dense = 3}},
                                                     {.layers = {.dense = 3}},
                                                     {.layers = {.dense = 3}, .head = true}}));
  EXPECT_EQ(plan->places().rank_of(2), 0);
  EXPECT_EQ(plan->places().rank_of(3), 1);
}

TEST(Resolve, TakesUnevenSplitsWithEmptyEnds) {
  Case c;
  c.parallelism = {.pipeline = 4, .stage_layers = {0, 7, 5, 0}};
  const auto plan = outcome_of(c).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->stages, (std::vector<StageContent>{{.layers = {.dense = 0}, .embedding = true},
                                                     {.layers = {.dense = 7}},
                                                     {.layers = {.dense = 5}},
                                                     {.layers = {.dense = 0}, .head = true}}));
}

TEST(Resolve, GivesAbstractStagesGpusOfTheirOwn) {
  Case c;
  c.cluster.reset();
  c.model = StagesSpec{.name = "s",
                       .forward = {Duration(1)},
                       .input_gradient = {Duration(1)},
                       .weight_gradient = {Duration(1)},
                       .activation = {},
                       .gradient = {}};
  c.parallelism = {.pipeline = 4};
  const auto plan = outcome_of(c).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->gpus(), 4);
  EXPECT_EQ(plan->stage_count(), 4);
  EXPECT_EQ(plan->micro_batches, 8);
}

// 16 bytes of 16 * 101 elements of 12 layers are 3.1e5 a sample: 24e12 samples are 7.4e18 on one replica, and 9.3e17
// on each of the eight that the GPUs make.
TEST(Resolve, CountsTheActivationsOfTheReplicasThatTheGpusMake) {
  Case c;
  c.training = {
      .global_batch_size = 24'000'000'000'000, .micro_batch_size = 1'000'000, .sequence_length = 16};
  ASSERT_TRUE(outcome_of(c).plan);
  EXPECT_EQ(outcome_of(c).plan->data, 8);
  c.cluster = cluster_of(1, 1);
  EXPECT_THAT(
      message_of(c),
      testing::HasSubstr("training.global_batch_size: all micro-batches of a replica would have about "
                         "7.45e+18 bytes of activations, and at most 1e+18 are counted"));
  // Where the tokens of a sample are more than the samples, they are to blame.
  c.training = {.global_batch_size = 64, .sequence_length = 16'000'000'000'000};
  EXPECT_THAT(message_of(c), testing::HasSubstr("training.sequence_length: "));
}

TEST(Resolve, ListsTheTensorSizesThatWouldDo) {
  Case c;
  c.cluster = cluster_of(3, 1);
  c.parallelism = {.tensor = 3};
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.tensor: 3 does not divide model.heads = 8\n"
            "  hint: use 1; or change the cluster");
  c.cluster = cluster_of(2, 2);
  EXPECT_THAT(render(outcome_of(c).errors.front()), testing::HasSubstr("  hint: use 1, 2 or 4"));
  c.parallelism.pipeline = 2;
  EXPECT_THAT(render(outcome_of(c).errors.front()), testing::HasSubstr("  hint: use 1 or 2"));
  c.parallelism.pipeline = 3;  // which no tensor fits: those of the model
  EXPECT_THAT(render(outcome_of(c).errors.front()), testing::HasSubstr("  hint: use 1, 2, 4 or 8"));
}

// 3 and 6 divide the heads and the GPUs, but not the width.
TEST(Resolve, OffersTensorSizesThatDivideTheWholeModel) {
  Case c;
  TransformerSpec model = small_model();
  model.heads = model.kv_heads = 12;
  model.ffn_hidden = 20;
  c.model = model;
  c.cluster = cluster_of(1, 6);
  c.parallelism = {.tensor = 4};
  EXPECT_EQ(message_of(c),
            "case.yaml: error: parallelism.tensor: tensor 4 × pipeline 1 = 4 does not divide the cluster's 6 "
            "GPUs\n"
            "  hint: tensor 2 would do; or change the cluster");
}

TEST(Resolve, CopiesKeyValueHeadsOnlyEvenly) {
  Case c;
  TransformerSpec model = small_model();
  model.heads = 12;
  model.kv_heads = 4;
  c.model = model;
  c.cluster = cluster_of(1, 6);
  c.training.global_batch_size = 6;
  c.parallelism = {.tensor = 6};
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: parallelism.tensor: 6 neither divides model.kv_heads = 4 nor is a multiple of it\n"
      "  hint: use 1 or 2");
}

TEST(Resolve, AcceptsAVocabularyThatDoesNotDivide) {
  Case c;
  c.parallelism = {.tensor = 8};  // 101 = 12 * 8 + 5: frameworks pad it
  EXPECT_TRUE(outcome_of(c).plan);
}

TEST(Resolve, SaysBothNumbersWhenGpusDoNotAddUp) {
  Case c;
  c.parallelism = {.tensor = 2, .pipeline = 2, .data = 4};
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: parallelism.data: tensor 2 × pipeline 2 × data 4 = 16 is not the cluster's 8 GPUs\n"
      "  hint: leave `data` out to use what is left");
  c.parallelism = {.tensor = 4, .pipeline = 4};
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: parallelism.pipeline: tensor 4 × pipeline 4 = 16 is more than the cluster's 8 GPUs\n"
      "  hint: pipeline 2 would do; or change the cluster");
}

TEST(Resolve, RefusesChunksWithoutAPipeline) {
  Case c;
  c.parallelism = {.virtual_stages = 2};
  EXPECT_EQ(
      message_of(c),
      "case.yaml: error: schedule: 2 model chunks a rank need a pipeline, and parallelism.pipeline = 1\n"
      "  hint: use a pipeline of 2 or more, or an order of one chunk");
  c.origins = {{"parallelism.virtual_stages", {.file = "case.yaml", .line = 3, .column = 5}}};
  EXPECT_EQ(message_of(c),
            "case.yaml:3:5: error: parallelism.virtual_stages: 2 model chunks a rank need a pipeline, and "
            "parallelism.pipeline = 1\n"
            "  hint: leave virtual_stages out, or use a pipeline of 2 or more");
}

// A plan of a search was written by nobody: of one chunk a rank the pipeline is at fault, whatever was written.
TEST(Resolve, NamesTheKeyThatMakesTooManyStages) {
  Case c;
  const auto path = [&] { return outcome_of(c).errors.at(0).path; };
  c.parallelism = {.pipeline = 5};
  EXPECT_EQ(path(), "parallelism.pipeline");
  c.origins = {{"parallelism.virtual_stages", {.file = "case.yaml"}}};
  EXPECT_EQ(path(), "parallelism.pipeline");
  c.parallelism = {.pipeline = 2, .virtual_stages = 5};
  EXPECT_EQ(path(), "parallelism.virtual_stages");
  c.origins = {{"parallelism.pipeline", {.file = "case.yaml"}}};
  EXPECT_EQ(path(), "parallelism.pipeline");
}

TEST(Resolve, ReportsEveryIndependentMistakeAtOnce) {
  Case c;
  c.parallelism = {.tensor = 3, .pipeline = 5, .data = 7, .sequence_parallel = true};  // 16 over 3 follows
  c.training = {.global_batch_size = 10, .micro_batch_size = 1, .sequence_length = 16};
  std::vector<std::string> paths;
  for (const Diagnostic& error : outcome_of(c).errors) paths.push_back(error.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"parallelism.tensor", "parallelism.pipeline", "parallelism.data",
                                             "training.global_batch_size"}));
}

TEST(Resolve, DoesNotOverflowOnAbsurdNumbers) {
  Case c;
  constexpr int kMost = 2'147'483'647;
  c.cluster.reset();
  c.parallelism = {.tensor = kMost, .pipeline = kMost, .data = kMost, .virtual_stages = kMost};
  c.training = {.global_batch_size = INT64_MAX, .micro_batch_size = INT64_MAX, .sequence_length = 16};
  EXPECT_FALSE(outcome_of(c).plan);
  c.parallelism = {.stage_layers = {INT64_MAX, INT64_MAX, 3}};
  EXPECT_FALSE(outcome_of(c).plan);
}

TEST(Resolve, CountsMicroBatchesInThirtyTwoBits) {
  Case c;
  c.cluster.reset();
  c.training = {.global_batch_size = 4'000'000'000, .micro_batch_size = 1, .sequence_length = 16};
  EXPECT_EQ(message_of(c),
            "case.yaml: error: training.global_batch_size: 4000000000 micro-batches are more than "
            "2147483647\n  hint: use larger micro-batches");
}

TEST(Resolve, CountsWholeMicroBatchesWhereReplicasAreNotKnown) {
  Case c;
  c.cluster.reset();
  c.training.micro_batch_size = 3;
  EXPECT_EQ(message_of(c),
            "case.yaml: error: training.global_batch_size: 8 samples do not split over micro_batch_size 3\n"
            "  hint: 6 or 9 would");
}

// Property: on a small grid a placement is accepted exactly when counting says that it is one.
TEST(Resolve, AcceptsExactlyWhatArithmeticAccepts) {
  int accepted = 0;
  for (int t = 1; t <= 9; ++t)
    for (int p = 1; p <= 7; ++p)
      for (int d = 1; d <= 4; ++d)
        for (int v = 1; v <= 3; ++v)
          for (const int batch : {4, 6})
            for (const int gpus : {8, 12}) {
              SCOPED_TRACE(testing::Message() << "t=" << t << " p=" << p << " d=" << d << " v=" << v
                                              << " batch=" << batch << " gpus=" << gpus);
              Case c;
              c.cluster = cluster_of(1, gpus);
              c.parallelism = {.tensor = t, .pipeline = p, .data = d, .virtual_stages = v};
              c.training.global_batch_size = batch;
              const bool heads =
                  t == 1 || t == 2 || t == 4 || t == 8;  // of 8 heads, 4 key/value heads, width 24
              int stages_with_layers = 0;
              for (int layers = 1; layers <= 12; ++layers) stages_with_layers += layers * p * v == 12;
              bool batch_splits = false;
              for (int m = 1; m <= batch; ++m) batch_splits = batch_splits || m * d == batch;
              const bool chunks = v == 1 || p > 1;
              const bool legal =
                  heads && stages_with_layers == 1 && batch_splits && chunks && t * p * d == gpus;
              EXPECT_EQ(outcome_of(c).plan.has_value(), legal);
              accepted += legal;
            }
  EXPECT_GT(accepted, 20);
}

}  // namespace
}  // namespace stagecraft
