// Who holds which state, by pencil.
#include "sim/resilience/held_states.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

struct Job {
  explicit Job(Scenario job) : scenario(std::move(job)) {
    Diagnostics diagnostics;
    prepared = prepare(scenario, diagnostics);
    EXPECT_TRUE(prepared.has_value());
  }
  [[nodiscard]] JobStates states() const {
    return {.model = scenario.model, .plan = prepared->plan, .zero_stage = scenario.parallelism.zero_stage};
  }

  Scenario scenario;
  std::optional<Prepared> prepared;
};

// Two stages on two tensor ranks, and four replicas: 16 ranks, tensor first, then data, then pipeline.
Job dense(const std::string& sharding) {
  return Job(
      scenario_of("stagecraft: 1\n"
                  "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}\n"
                  "parallelism: {tensor: 2, pipeline: 2, data: 4" +
                  sharding +
                  "}\n"
                  "training: {global_batch_size: 8, micro_batch_size: 1}\n"));
}

// Ranks 0 and 1 are of replica 0, 2 and 3 of replica 1. A node of three has ranks of both, the next one of
// replicas 1 and 2, and so on.
TEST(ReplicasLostTogether, ShareANodeOrAreLinkedByThoseThatDo) {
  const Job job = dense("");
  EXPECT_EQ(replicas_lost_together(job.prepared->plan, 1), 1);
  EXPECT_EQ(replicas_lost_together(job.prepared->plan, 2), 1);
  EXPECT_EQ(replicas_lost_together(job.prepared->plan, 3), 4);
  EXPECT_EQ(replicas_lost_together(job.prepared->plan, 4), 2);
  EXPECT_EQ(replicas_lost_together(job.prepared->plan, 8), 4);
  const Job whole = dense(", order: [tensor, context, expert, pipeline, data]");
  EXPECT_EQ(replicas_lost_together(whole.prepared->plan, 4), 1);
  EXPECT_EQ(replicas_lost_together(whole.prepared->plan, 8), 2);
}

TEST(HeldStates, OfDataReplicasAreAlike) {
  const Job job = dense("");
  // Nodes of four ranks have two replicas of one stage, each of its two states.
  EXPECT_THAT(held_by_nodes(job.states(), {4, 4, 4, 4}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(2, 3)));
  EXPECT_EQ(without_peer(held_by_nodes(job.states(), {4, 4, 4, 4})), std::nullopt);
  // A node with all of a stage has no peer.
  EXPECT_EQ(without_peer(held_by_nodes(job.states(), {4, 4, 8})), 2);
  EXPECT_TRUE(are_copies(held_by_replicas(job.states(), 1), 4));
}

TEST(HeldStates, AreSharedOutFromZeroOneOn) {
  const Job job = dense(", zero_stage: 1");
  EXPECT_THAT(held_by_nodes(job.states(), {4, 4, 4, 4}), AllOf(SizeIs(16), Each(SizeIs(1))));
  EXPECT_EQ(without_peer(held_by_nodes(job.states(), {4, 4, 4, 4})), 0);
  EXPECT_FALSE(are_copies(held_by_replicas(job.states(), 1), 4));
}

// Replicas 0 and 1 share a copy, and so do 2 and 3: the node of two has all of it.
TEST(HeldStates, AreOnAsManyNodesAsThereAreShardedCopies) {
  const Job job = dense(", zero_stage: 3, zero_group: 2");
  EXPECT_EQ(without_peer(held_by_nodes(job.states(), {4, 4, 4, 4})), std::nullopt);
  EXPECT_FALSE(are_copies(held_by_replicas(job.states(), 1), 4));
  EXPECT_TRUE(are_copies(held_by_replicas(job.states(), 2), 2));
}

Job experts(int ranks, const std::string& rest = "") {
  return Job(
      scenario_of("stagecraft: 1\n"
                  "model: qwen3-30b-a3b\n"
                  "cluster: {node: dgx-h100, nodes: 8}\n"
                  "parallelism: {data: 64, expert: " +
                  std::to_string(ranks) + rest +
                  "}\n"
                  "training: {global_batch_size: 256, micro_batch_size: 1, sequence_length: 4096, "
                  "recompute: full}\n"));
}

TEST(HeldStates, OfExpertsAreOnTheRanksThatHaveThem) {
  const std::vector<int> nodes(8, 8);
  const Job all = experts(64), some = experts(16), few = experts(8);
  EXPECT_EQ(without_peer(held_by_nodes(all.states(), nodes)), 0);
  // Nodes 0 and 1 have them all, and so have three other pairs.
  EXPECT_EQ(without_peer(held_by_nodes(some.states(), nodes)), std::nullopt);
  EXPECT_FALSE(are_copies(held_by_replicas(some.states(), 8), 8));
  EXPECT_TRUE(are_copies(held_by_replicas(few.states(), 8), 8));
}

// Eight of the 64 ranks have an expert, on a node each: their shards are one copy; those of the dense part are
// on 64 ranks.
TEST(HeldStates, OfExpertsAreShardedAmongThoseThatHaveThem) {
  const std::vector<int> nodes(8, 8);
  const Job job = experts(8, ", zero_stage: 1");
  const Holders holders = held_by_nodes(job.states(), nodes);
  EXPECT_THAT(holders, AllOf(SizeIs(64 + 8 * 8), Each(SizeIs(1))));
}

}  // namespace
}  // namespace stagecraft
