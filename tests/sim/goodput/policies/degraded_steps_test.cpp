#include "sim/goodput/policies/degraded_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;

Duration ms(std::int64_t count) {
  return std::chrono::milliseconds(count);
}

TEST(PipelineTime, OfEqualStagesIsOneForwardOneBackward) {
  const std::vector<Duration> stages(4, ms(3));
  EXPECT_EQ(pipeline_time(stages, 8), ms((8 + 4 - 1) * 3));
}

TEST(PipelineTime, RunsAtItsSlowestStage) {
  // 2 + 5 + 1 through the pipe once, then three more of the slowest.
  EXPECT_EQ(pipeline_time(std::vector<Duration>{ms(2), ms(5), ms(1)}, 4), ms(8 + 3 * 5));
}

// System: three stages of (1, 2), (2, 4), (1, 1) ms; the slowest takes 6. Expectations: bubbles 3, 0, 4;
// stage 0 shadows a forward of 2, which fits its 3; stage 1 one of 1, no bubble; stage 2 shadows stage 0's 1,
// which fits.
TEST(RedundantStageTimes, HidesInTheBubbleWhatFits) {
  const std::vector<StageWork> stages = {{ms(1), ms(2)}, {ms(2), ms(4)}, {ms(1), ms(1)}};
  EXPECT_THAT(redundant_stage_times(stages), ElementsAre(ms(3), ms(7), ms(2)));
}

TEST(RedundantStageTimes, OfEqualStagesIsAForwardMore) {
  const std::vector<StageWork> stages(4, {ms(1), ms(2)});
  EXPECT_THAT(redundant_stage_times(stages), ElementsAre(ms(4), ms(4), ms(4), ms(4)));
}

TEST(RedundantStageTimes, OneStageShadowsNobody) {
  EXPECT_THAT(redundant_stage_times(std::vector<StageWork>{{ms(1), ms(2)}}), ElementsAre(ms(3)));
}

// System: 4 pipelines of 3 stages of 3 ms, 6 micro-batches each: fault-free (6 + 2)·3 = 24 ms, given as 30
// with gradients.
RecycleShape four_by_three() {
  return {.stage_times = {ms(3), ms(3), ms(3)}, .micro_batches = 6, .pipelines = 4, .fault_free = ms(30)};
}

TEST(RecycleIteration, WithNobodyDeadIsTheFaultFreeOne) {
  for (const RecycleForm form : {RecycleForm::kLowerBound, RecycleForm::kUnoptimised})
    EXPECT_EQ(recycle_iteration(four_by_three(), std::vector<int>{0, 0, 0}, form), ms(30));
}

TEST(RecycleIteration, UnoptimisedAddsAWholeMicroBatchForEveryMicroBatchMore) {
  // 6·4/3 = 8 micro-batches: 2 more, on whatever stage.
  for (int stage = 0; stage < 3; ++stage) {
    std::vector<int> dead(3, 0);
    dead[static_cast<std::size_t>(stage)] = 1;
    EXPECT_EQ(recycle_iteration(four_by_three(), dead, RecycleForm::kUnoptimised), ms(30 + 2 * 3));
  }
}

TEST(RecycleIteration, LowerBoundUsesTheBubblesOfEarlyStages) {
  const RecycleForm form = RecycleForm::kLowerBound;
  // Stage 0 has a ramp of 0: 8·3 = 24, no more than stage 2 fault-free, 6·3 + 6.
  EXPECT_EQ(recycle_iteration(four_by_three(), std::vector<int>{1, 0, 0}, form), ms(30));
  EXPECT_EQ(recycle_iteration(four_by_three(), std::vector<int>{0, 1, 0}, form), ms(30 + 3));
  EXPECT_EQ(recycle_iteration(four_by_three(), std::vector<int>{0, 0, 1}, form), ms(30 + 6));
}

TEST(RecycleIteration, MicroBatchesAreWhole) {
  // 5·3/2 = 7.5: some worker does 8.
  const RecycleShape shape{.stage_times = {ms(2)}, .micro_batches = 5, .pipelines = 3, .fault_free = ms(10)};
  EXPECT_EQ(recycle_iteration(shape, std::vector<int>{1}, RecycleForm::kUnoptimised), ms(16));
}

TEST(RecycleIteration, TheLowerBoundIsNeverAboveTheUnoptimisedForm) {
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b)
      for (int c = 0; c < 4; ++c) {
        const std::vector<int> dead = {a, b, c};
        const Duration bound = recycle_iteration(four_by_three(), dead, RecycleForm::kLowerBound);
        EXPECT_LE(bound, recycle_iteration(four_by_three(), dead, RecycleForm::kUnoptimised));
        EXPECT_GE(bound, ms(30));
      }
}

TEST(RecycleIteration, AStageWithoutALiveWorkerIsNoShape) {
  EXPECT_THROW((void)recycle_iteration(four_by_three(), std::vector<int>{0, 4, 0}, RecycleForm::kLowerBound),
               InternalError);
}

}  // namespace
}  // namespace stagecraft
