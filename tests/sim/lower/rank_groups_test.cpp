#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sim/lower/messages.hpp"
#include "sim/lower/network_patterns.hpp"
#include "tests/sim/simulate/prices_of.hpp"

namespace stagecraft {
namespace {

Scenario job(const std::string& parallelism) {
  return scenario_of(
      "stagecraft: 1\n"
      "model: {family: llama, layers: 4, hidden: 1024, heads: 8, kv_heads: 8, head_size: 128, ffn_hidden: "
      "4096,"
      " vocab: 8192, max_sequence_length: 1024, experts: {count: 8, top_k: 2, ffn_hidden: 1024}}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 4}\n"
      "parallelism: {pipeline: 2, sequence_parallel: true, zero_stage: 2, " +
      parallelism + "}\ntraining: {global_batch_size: 32}\n");
}

// Property: what a group costs is asked of as many ranks, on as many nodes, as use the links.
TEST(RankGroup, IsPlacedWhereItsMembersAre) {
  for (const char* parallelism :
       {"tensor: 2, expert: 8, expert_tensor: 2", "tensor: 2, context: 2, expert: 4, zero_group: 2",
        "tensor: 4, expert: 8, zero_group: 4"}) {
    const Scenario scenario = job(parallelism);
    Diagnostics diagnostics;
    const ParallelPlan plan = place(scenario, diagnostics).value();
    const Cluster cluster(*scenario.cluster);
    PlacementMemo memo;
    const Network network{.cluster = cluster, .profile = *scenario.profile, .plan = plan, .memo = memo};
    for (int g = 0; g <= static_cast<int>(RankGroup::kExpertInNode); ++g) {
      SCOPED_TRACE(testing::Message() << parallelism << " group " << g);
      const auto group = static_cast<RankGroup>(g);
      for (const std::vector<int>& members : all_groups(network, pipeline_members(plan, 0), group)) {
        std::set<int> nodes;
        for (const int rank : members) nodes.insert(cluster.node_of(device_of(rank)));
        const GroupPlacement placed = placement_of(network, members.front(), group);
        EXPECT_EQ(placed.ranks, static_cast<int>(members.size()));
        EXPECT_EQ(placed.nodes, static_cast<int>(nodes.size()));
      }
    }
  }
}

// Pencil: the replicas of 16 GPUs of a stage on tensor 2 and context 2 are eight, sharing in pairs.
TEST(RankGroup, OfShardsCutsThatOfReplicas) {
  const Scenario scenario = job("tensor: 2, context: 2, expert: 4, zero_group: 2");
  Diagnostics diagnostics;
  const ParallelPlan plan = place(scenario, diagnostics).value();
  const Cluster cluster(*scenario.cluster);
  PlacementMemo memo;
  const Network network{.cluster = cluster, .profile = *scenario.profile, .plan = plan, .memo = memo};
  const auto ranks = [&](RankGroup group) { return placement_of(network, 0, group).ranks; };
  EXPECT_EQ(ranks(RankGroup::kReplicas), 8);
  EXPECT_EQ(ranks(RankGroup::kShards), 2);
  EXPECT_EQ(ranks(RankGroup::kShardReplicas), 4);
  EXPECT_EQ(ranks(RankGroup::kExpertReplicas), 4);
  EXPECT_EQ(ranks(RankGroup::kPipeline), 2);
}

}  // namespace
}  // namespace stagecraft
