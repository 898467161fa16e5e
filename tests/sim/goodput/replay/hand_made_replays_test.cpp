// Corrected rules on a few nodes: each case separates one rule from its published counterpart.
//
//   System        four nodes a, b, c, d that join at 0 and are usable at 45 s; 1,200 samples a step.
//                 Oobleck and Varuna: 1,200/n s a step with n nodes, at least two nodes. Bamboo: two
//                 stages a pipeline, 300 s a step with two pipelines, 500 s with one, rendezvous of 20
//                 s (local) and 30 s (global), slowdown 1.5.
//   Expectations  the end of every step, what is kept, and the buckets from the first training to the
//                 end.
//   source        calibrate/published/data/resilience_oobleck_artifact_results_dev.yaml, `hand_made`
//                 and `hand_made_bamboo`.
#include <gtest/gtest.h>

#include "tests/sim/goodput/replay/published_replays.hpp"

namespace stagecraft {
namespace {

using published::at;
using published::count;
using published::number;
using published::samples_per_second;
using published::seconds;

constexpr std::int64_t kSamples = 1200;

GlobalRestart policy_of(const YamlNode& hand_made) {
  GlobalRestart policy{.pipeline_nodes = 2,
                       .step = [](int nodes) { return std::chrono::seconds(1200) / nodes; },
                       .rendezvous = seconds(at(hand_made, "rendezvous_s"))};
  if (at(hand_made, "policy").text == "checkpoint") {
    policy.checkpoint_every = count(at(hand_made, "every_steps"));
    policy.checkpoint_write = seconds(at(hand_made, "checkpoint_write_s"));
  }
  return policy;
}

RedundantPipelines bamboo() {
  return {.stages = 2,
          .step = [](int pipelines, int) { return std::chrono::seconds(pipelines == 2 ? 300 : 500); },
          .global_rendezvous = std::chrono::seconds(30),
          .local_rendezvous = std::chrono::seconds(20),
          .slowdown = 1.5,
          .rebalance_threshold = 0.05};
}

TEST(HandMadeReplays, OobleckAndVarunaEndEveryStepWhereAPencilDoes) {
  const YamlNode file = published::table("resilience_oobleck_artifact_results_dev");
  ASSERT_EQ(at(file, "hand_made").items.size(), 11u);
  for (const YamlNode& hand_made : at(file, "hand_made").items) {
    SCOPED_TRACE(at(hand_made, "id").text);
    const auto changes = published::hand_made_changes(at(hand_made, "events"), 4);
    const Replay replay =
        replay_global_restart(changes, {.end = seconds(at(hand_made, "end_s"))}, policy_of(hand_made));
    EXPECT_EQ(published::step_ends(replay), published::step_ends(at(hand_made, "step_ends_s")));
    EXPECT_EQ(replay.kept_steps(), count(at(hand_made, "committed_steps")));
    published::expect_published(samples_per_second(replay, Rules::kCorrected, kSamples),
                                number(at(hand_made, "samples_per_s")));
  }
}

TEST(HandMadeReplays, OobleckAndVarunaBucketsAreThoseOfThePencil) {
  const YamlNode file = published::table("resilience_oobleck_artifact_results_dev");
  for (const YamlNode& hand_made : at(file, "hand_made").items) {
    SCOPED_TRACE(at(hand_made, "id").text);
    const auto changes = published::hand_made_changes(at(hand_made, "events"), 4);
    const Replay replay =
        replay_global_restart(changes, {.end = seconds(at(hand_made, "end_s"))}, policy_of(hand_made));
    const Account account = account_of(replay, {.from = replay.start.value(),
                                                .ideal_step = std::chrono::seconds(300),
                                                .samples_per_step = kSamples});
    const YamlNode& expected = at(hand_made, "buckets_s");
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      SCOPED_TRACE(kBucketNames[bucket]);
      const YamlNode* value = expected.find(kBucketNames[bucket]);
      EXPECT_EQ(account.buckets[bucket], value == nullptr ? Duration{} : seconds(*value));
    }
    EXPECT_EQ(account.total(), replay.end - *replay.start);
  }
}

// Steps of 5 s end at 60 and 85 s, and a checkpoint of 20 s follows each: the first is usable at 100 s, when the
// second is being written, which would be at 125 s. Of the loss at 103 s the first step is left.
TEST(HandMadeReplays, ACheckpointOfVarunaCoversTheStepsBeforeItAlsoWhereTheNextHasBegun) {
  std::vector<NodeChange> changes;
  for (int node = 0; node < 4; ++node) changes.push_back({.node = node, .ready = std::chrono::seconds(45)});
  changes.push_back({.time = std::chrono::seconds(103), .joins = false, .node = 3});
  const Replay replay = replay_global_restart(changes, {.end = std::chrono::seconds(114)},
                                              {.pipeline_nodes = 3,
                                               .step = [](int) { return std::chrono::seconds(5); },
                                               .rendezvous = std::chrono::seconds(10),
                                               .checkpoint_every = 1,
                                               .checkpoint_write = std::chrono::seconds(20)});
  ASSERT_EQ(replay.steps.size(), 2u);
  EXPECT_EQ(replay.steps[1].end, std::chrono::seconds(85));
  EXPECT_TRUE(replay.steps[0].kept);
  EXPECT_FALSE(replay.steps[1].kept);
}

TEST(HandMadeReplays, BambooEndsEveryStepWhereAPencilDoes) {
  const YamlNode file = published::table("resilience_oobleck_artifact_results_dev");
  ASSERT_EQ(at(file, "hand_made_bamboo").items.size(), 8u);
  for (const YamlNode& hand_made : at(file, "hand_made_bamboo").items) {
    SCOPED_TRACE(at(hand_made, "id").text);
    const auto changes = published::hand_made_changes(
        at(hand_made, "events"), static_cast<int>(count(at(hand_made, "initial_nodes"))));
    const Replay replay = replay_bamboo(changes, {.end = seconds(at(hand_made, "end_s"))}, bamboo());
    EXPECT_EQ(published::step_ends(replay), published::step_ends(at(hand_made, "step_ends_s")));
    EXPECT_EQ(replay.kept_steps(), count(at(hand_made, "steps")));
    EXPECT_EQ(replay.fatal, count(at(hand_made, "fatal")));
    EXPECT_EQ(replay.rendezvous, count(at(hand_made, "rendezvous")));
    published::expect_published(samples_per_second(replay, Rules::kCorrected, kSamples),
                                number(at(hand_made, "samples_per_s")));
  }
}

}  // namespace
}  // namespace stagecraft
