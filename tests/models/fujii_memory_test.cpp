// The worked examples of Fujii et al.'s formulas (arXiv 2411.06465), bf16 with fp32 gradients, a distributed
// optimizer, micro-batch 1, GB = 1e9 bytes; derived from the authors' estimator.
#include "models/fujii_memory.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

TransformerSpec llama2_7b() {
  return zoo::llama({32, 4096, 11008, 32, 32, 32000});
}
TransformerSpec llama2_13b() {
  return zoo::llama({40, 5120, 13824, 40, 40, 32000});
}
TransformerSpec llama2_70b() {
  return zoo::llama({80, 8192, 28672, 64, 8, 32000});
}

struct Row {
  TransformerSpec model;
  std::int64_t tensor, pipeline, data, sequence;
  std::int64_t parameters;
  double state_gb, activation_gb;
};

TEST(FujiiEstimate, GivesTheWorkedExamples) {
  const std::vector<Row> rows{{llama2_7b(), 1, 1, 8, 4096, 6738415616, 50.538, 20.133},
                              {llama2_7b(), 4, 2, 4, 4096, 875171840, 7.877, 5.033},
                              {llama2_7b(), 8, 4, 2, 8192, 235212800, 2.823, 5.033},
                              {llama2_13b(), 1, 1, 8, 4096, 13015864320, 97.619, 31.541},
                              {llama2_13b(), 4, 2, 4, 4096, 1668101120, 15.013, 7.885},
                              {llama2_13b(), 8, 4, 2, 8192, 437560320, 5.251, 7.885},
                              {llama2_70b(), 1, 1, 8, 4096, 68976648192, 517.325, 108.716},
                              {llama2_70b(), 4, 2, 4, 4096, 8688115712, 78.193, 27.179},
                              {llama2_70b(), 8, 4, 2, 8192, 2204966912, 26.46, 27.179},
                              {zoo::llama3_8b(), 1, 1, 8, 4096, 8030261248, 60.227, 22.012},
                              {zoo::llama3_8b(), 4, 2, 4, 4096, 1135218688, 10.217, 5.503},
                              {zoo::llama3_8b(), 8, 4, 2, 8192, 349507584, 4.194, 5.503}};
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << row.model.hidden << " t" << row.tensor);
    const auto estimate = fujii_estimate(
        row.model,
        {.tensor = row.tensor, .pipeline = row.pipeline, .data = row.data, .sequence = row.sequence});
    ASSERT_TRUE(estimate);
    EXPECT_EQ(estimate->parameters, row.parameters);
    EXPECT_NEAR(static_cast<double>(estimate->state.count()) * 1e-9, row.state_gb, 0.00051);
    EXPECT_NEAR(static_cast<double>(estimate->activations.count()) * 1e-9, row.activation_gb, 0.00051);
    EXPECT_EQ(estimate->total(), estimate->state + estimate->activations);
  }
}

// 4,096 x 4,096 x (12 + 4 + 8 x 11,008 / 4,096) x 32 bytes.
TEST(FujiiEstimate, IsExactToTheByte) {
  const auto estimate = fujii_estimate(llama2_7b(), {.data = 8, .sequence = 4096});
  EXPECT_EQ(estimate->activations, Bytes(4096LL * (16 * 4096 + 8 * 11008) * 32));
  EXPECT_EQ(estimate->state, Bytes(6738415616 * 15 / 2));
}

TEST(FujiiEstimate, TakesEighteenBytesWithoutADistributedOptimizer) {
  const auto estimate =
      fujii_estimate(llama2_7b(), {.data = 8, .sequence = 4096, .distributed_optimizer = false});
  EXPECT_EQ(estimate->state, Bytes(6738415616 * 18));
}

// Every stage is charged the words, and stages that layers do not fill count whole.
TEST(FujiiEstimate, ChargesTheWordsToEveryStageAndRoundsLayersUp) {
  const auto two = fujii_estimate(llama2_7b(), {.pipeline = 2, .sequence = 4096});
  const auto three = fujii_estimate(llama2_7b(), {.pipeline = 3, .sequence = 4096});
  const std::int64_t layer = 202375168 + 2 * 4096, words = 2 * 32000 * 4096;
  EXPECT_EQ(two->parameters, 16 * layer + words + 4096);
  EXPECT_EQ(three->parameters, 11 * layer + words + 4096);
}

TEST(FujiiEstimate, DescribesNoExpertsAndNoGpt) {
  EXPECT_FALSE(fujii_estimate(zoo::mixtral_8x7b(), {.sequence = 4096}));
  EXPECT_FALSE(fujii_estimate(zoo::deepseek_v3(), {.sequence = 4096}));
  EXPECT_FALSE(fujii_estimate(zoo::gpt_22b(), {.sequence = 2048}));
}

}  // namespace
}  // namespace stagecraft
