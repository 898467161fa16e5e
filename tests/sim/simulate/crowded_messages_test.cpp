// When a prediction says that its messages would be in each other's way.
#include "sim/crowded_messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/lower/uniform_prices.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::optional<std::string> word_of(const char* schedule, const PipelineShape& shape, std::int64_t message,
                                   const LowerOptions& options = {}) {
  const Program program =
      lower(generate(*find_schedule(schedule), shape), uniform_prices(shape, {.message = message}), options);
  return word_on_crowded_messages(program, run(program), shape.ranks);
}

// GPipe's forwards end 1 s apart, its backwards 2 s. Copies of a rank have links of their own.
TEST(CrowdedMessages, AreThoseThatOutlastThePassBetweenThem) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 3};
  EXPECT_EQ(word_of("gpipe", shape, 1), std::nullopt);
  EXPECT_EQ(word_of("gpipe", shape, 1, {.replicas = 2}), std::nullopt);
  EXPECT_THAT(word_of("gpipe", shape, 2).value_or(""), HasSubstr("messages of 2.00 s from pipeline rank 0"));
}

// The slow copy sends every 10 s at most, the other one every second.
TEST(CrowdedMessages, OfALaterCopyAreOfARankOfThePipeline) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 3};
  const std::vector<RankSpeed> slow = {{.copy = 0, .rank = 0, .speed = 0.1},
                                       {.copy = 0, .rank = 1, .speed = 0.1}};
  EXPECT_THAT(word_of("gpipe", shape, 2, {.replicas = 2, .speeds = slow}).value_or(""),
              HasSubstr("from pipeline rank 0"));
}

TEST(CrowdedMessages, AreNoneWhereSendersWait) {
  EXPECT_EQ(word_of("gpipe", {.ranks = 2, .micro_batches = 3}, 2, {.blocking_messages = true}), std::nullopt);
}

// 1 GB over NVLink outlasts forwards of 1 ms; on shared links the messages share it.
TEST(CrowdedMessages, AreSaidInTheReport) {
  const std::string yaml =
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms, activation: 1 "
      "GB}\n"
      "cluster: {node: dgx-a100-80gb, gpus: 2}\n"
      "parallelism: {pipeline: 2}\nschedule: gpipe\ntraining: {global_batch_size: 4}\n";
  EXPECT_THAT(simulate(scenario_of(yaml)).warnings, Contains(HasSubstr("network: messages of")));
  EXPECT_THAT(simulate(scenario_of(yaml + "network: flow\n")).warnings,
              Not(Contains(HasSubstr("network: messages of"))));
}

}  // namespace
}  // namespace stagecraft
