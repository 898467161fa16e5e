// Golden: the pipelines that Oobleck's own unit tests expect after failures.
//
//   System        four pipelines of 2, 3, 4 and 5 nodes, numbered through; n0 = 2.
//   Expectations  resilience_oobleck_reconfig_vectors.yaml, all 22, in ranks: a node of g GPUs has g of them.
#include "sim/goodput/oobleck/reconfigure.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/goodput/oobleck/oracle_file.hpp"

namespace stagecraft {
namespace {

Pipelines numbered_through(const std::vector<int>& sizes) {
  Pipelines out;
  int node = 0;
  for (const int size : sizes) {
    auto& nodes = out.emplace_back();
    for (int i = 0; i < size; ++i) nodes.push_back(node++);
  }
  return out;
}

Pipelines in_ranks(const Pipelines& pipelines, int gpus) {
  Pipelines out;
  for (const auto& nodes : pipelines) {
    auto& ranks = out.emplace_back();
    for (const int node : nodes)
      for (int gpu = 0; gpu < gpus; ++gpu) ranks.push_back(node * gpus + gpu);
  }
  return out;
}

TEST(Reconfigure, FollowsThePublishedVectors) {
  int rows = 0;
  for (const YamlNode& row : oracle_rows("resilience_oobleck_reconfig_vectors.yaml", "cases").items) {
    SCOPED_TRACE(row.find("id")->text);
    const int gpus = integer(row, "gpus_per_node");
    std::vector<int> failed;  // nodes, each once: the vectors fail whole nodes
    for (const int rank : integers(*row.find("failed")))
      if (rank % gpus == 0) failed.push_back(rank / gpus);
    EXPECT_EQ(failed.size() * static_cast<std::size_t>(gpus), row.find("failed")->items.size());
    Pipelines expected;
    for (const YamlNode& ranks : row.find("expected")->items) expected.push_back(integers(ranks));
    const Reconfiguration after = reconfigure(numbered_through({2, 3, 4, 5}), failed, 2);
    EXPECT_EQ(in_ranks(after.pipelines, gpus), expected);
    EXPECT_TRUE(after.recoverable);
    ++rows;
  }
  EXPECT_EQ(rows, 22);
}

// [0 1] [2 3 4]: node 1 fails, the first pipeline takes node 4 of the second.
TEST(Reconfigure, TellsWhoLendsToWhom) {
  const Reconfiguration after = reconfigure(numbered_through({2, 3}), std::vector{1}, 2);
  EXPECT_EQ(after.pipelines, (Pipelines{{0, 4}, {2, 3}}));
  EXPECT_EQ(after.events, (std::vector<PipelineEvent>{
                              {.pipeline = 0, .change = PipelineChange::kBorrow, .node = 4, .other = 1},
                              {.pipeline = 1, .change = PipelineChange::kLend, .node = 4, .other = 0}}));
}

// [0 1] [2 3]: nobody has a node to spare, so that the short one is merged.
TEST(Reconfigure, MergesWhereNobodyCanLend) {
  const Reconfiguration after = reconfigure(numbered_through({2, 2}), std::vector{1}, 2);
  EXPECT_EQ(after.pipelines, (Pipelines{{0, 2, 3}}));
  EXPECT_EQ(after.events,
            (std::vector<PipelineEvent>{{.pipeline = 1, .change = PipelineChange::kMerge, .other = 0}}));
}

TEST(Reconfigure, CannotRecoverWithFewerNodesThanTheModelNeeds) {
  EXPECT_FALSE(reconfigure(numbered_through({3, 3}), std::vector{0, 1, 2, 3}, 3).recoverable);
  EXPECT_FALSE(reconfigure(numbered_through({2}), std::vector{0, 1}, 2).recoverable);
}

TEST(Reconfigure, LeavesEveryPipelineWithEnoughNodesAndNoNodeTwice) {
  for (int mask = 0; mask < 1 << 9; ++mask) {  // any failures of [0 1] [2 3 4] [5 6 7 8]
    std::vector<int> failed;
    std::vector<int> alive;
    for (int node = 0; node < 9; ++node) (mask >> node & 1 ? failed : alive).push_back(node);
    const Reconfiguration after = reconfigure(numbered_through({2, 3, 4}), failed, 2);
    EXPECT_EQ(after.recoverable, alive.size() >= 2);
    std::vector<int> used;
    for (const auto& nodes : after.pipelines) {
      if (after.recoverable) {
        EXPECT_GE(nodes.size(), 2u);
      }
      used.insert(used.end(), nodes.begin(), nodes.end());
    }
    std::ranges::sort(used);
    EXPECT_EQ(used, alive);
  }
}

}  // namespace
}  // namespace stagecraft
