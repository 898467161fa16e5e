// Ranks, axes and where groups lie.
#include "topology/rank_mesh.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "tests/topology/clusters.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;
using testing::Message;

constexpr std::array<Axis, kAxisCount> kMegatronOrder = {Axis::kTensor, Axis::kContext, Axis::kExpert,
                                                         Axis::kData, Axis::kPipeline};

RankMesh mesh(int tensor, int data, int pipeline, int context = 1) {
  return RankMesh({tensor, context, 1, data, pipeline}, kMegatronOrder);
}

// System: t=2, c=2, d=3, p=2, innermost first. Expectations: strides 1, 2, 4, 12; rank 17 = 12 + 4 + 0 + 1.
TEST(RankMesh, CountsTheInnermostAxisFirst) {
  const RankMesh m = mesh(2, 3, 2, 2);
  EXPECT_EQ(m.size(), 24);
  EXPECT_EQ(m.stride(Axis::kTensor), 1);
  EXPECT_EQ(m.stride(Axis::kContext), 2);
  EXPECT_EQ(m.stride(Axis::kData), 4);
  EXPECT_EQ(m.stride(Axis::kPipeline), 12);
  EXPECT_EQ(m.coordinate(17, Axis::kTensor), 1);
  EXPECT_EQ(m.coordinate(17, Axis::kContext), 0);
  EXPECT_EQ(m.coordinate(17, Axis::kData), 1);
  EXPECT_EQ(m.coordinate(17, Axis::kPipeline), 1);
  EXPECT_EQ(m.group(17, Axis::kData), (std::vector<int>{13, 17, 21}));
  EXPECT_EQ(m.group(17, {Axis::kContext, Axis::kData}), (std::vector<int>{13, 15, 17, 19, 21, 23}));
}

TEST(RankMesh, IsABijectionInEveryOrder) {
  std::array<Axis, kAxisCount> order = kMegatronOrder;
  std::sort(order.begin(), order.end());
  do {
    const RankMesh m({2, 1, 2, 3, 2}, order);
    for (int rank = 0; rank < m.size(); ++rank) {
      std::array<int, kAxisCount> at{};
      for (std::size_t i = 0; i < kAxisCount; ++i) at[i] = m.coordinate(rank, static_cast<Axis>(i));
      EXPECT_EQ(m.rank_at(at), rank);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(RankMesh, GroupsOfAnAxisPartitionTheRanks) {
  std::array<Axis, kAxisCount> order = kMegatronOrder;
  std::sort(order.begin(), order.end());
  do {
    const RankMesh m({2, 2, 1, 3, 2}, order);
    for (std::size_t i = 0; i < kAxisCount; ++i) {
      const auto axis = static_cast<Axis>(i);
      std::set<std::vector<int>> groups;
      for (int rank = 0; rank < m.size(); ++rank) {
        const std::vector<int> group = m.group(rank, axis);
        EXPECT_EQ(static_cast<int>(group.size()), m.degree(axis));
        EXPECT_TRUE(std::binary_search(group.begin(), group.end(), rank));
        groups.insert(group);
      }
      EXPECT_EQ(static_cast<int>(groups.size()) * m.degree(axis), m.size());
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(RankMesh, RejectsEmptyAxesAndRepeatedOnes) {
  EXPECT_THROW(RankMesh({2, 0, 1, 1, 1}, kMegatronOrder), InternalError);
  EXPECT_THROW(
      RankMesh({2, 1, 1, 1, 1}, {Axis::kTensor, Axis::kTensor, Axis::kExpert, Axis::kData, Axis::kPipeline}),
      InternalError);
  EXPECT_THROW((void)mesh(2, 2, 2).group(8, Axis::kData), InternalError);
  EXPECT_THROW((void)mesh(2, 2, 2).rank_at({2, 0, 0, 0, 0}), InternalError);
}

// System: GPT-3's layout, t=8 d=16 p=8 on 128 nodes of 8.
// Expectations: a tensor group is a node; a data group has one member in each of 16 nodes beside 7 like it.
TEST(Placement, OfTensorEightFillsNodesAndLeavesOneRailPerDataGroup) {
  const Cluster cluster = round_cluster(128);
  const RankMesh m = mesh(8, 16, 8);
  EXPECT_EQ(m.placement(cluster, 0, Axis::kTensor), (GroupPlacement{8, 1, 8, 1}));
  EXPECT_EQ(m.placement(cluster, 1000, Axis::kData), (GroupPlacement{16, 16, 1, 8}));
  EXPECT_EQ(m.placement(cluster, 5, Axis::kPipeline), (GroupPlacement{8, 8, 1, 8}));
  EXPECT_EQ(m.placement(cluster, 5, Axis::kExpert), (GroupPlacement{1, 1, 1, 8}));
}

TEST(Placement, OfTensorSixteenSpansTwoNodes) {
  EXPECT_EQ(mesh(16, 2, 1).placement(round_cluster(4), 20, Axis::kTensor), (GroupPlacement{16, 2, 8, 1}));
}

// t=2: four members of a data group of 8 fit into each node, beside one other group.
TEST(Placement, OfSmallTensorGroupsPutsSeveralDataRanksIntoANode) {
  EXPECT_EQ(mesh(2, 8, 2).placement(round_cluster(4), 0, Axis::kData), (GroupPlacement{8, 2, 4, 2}));
}

TEST(Placement, OfJointAxesCountsThemAsOneGroup) {
  EXPECT_EQ(mesh(2, 4, 1, 4).placement(round_cluster(4), 0, {Axis::kContext, Axis::kData}),
            (GroupPlacement{16, 4, 4, 2}));
}

// t=6 on nodes of 8: ranks 6 to 11 lie on two nodes, 2 and 4. Beside them lie on node 0 ranks 0 to 5, which
// send nothing out of it, and on node 1 ranks 12 to 17, which do.
TEST(Placement, OfUnevenGroupsCountsTheFullestNodeAndTheEmptiest) {
  const RankMesh m = mesh(6, 4, 1);
  const Cluster cluster = round_cluster(3);
  EXPECT_EQ(m.placement(cluster, 0, Axis::kTensor), (GroupPlacement{6, 1, 6, 2}));
  EXPECT_EQ(m.placement(cluster, 6, Axis::kTensor), (GroupPlacement{6, 2, 4, 2, 2})) << "of node 1";
  EXPECT_EQ(m.placement(cluster, 8, Axis::kTensor), (GroupPlacement{6, 2, 4, 2, 2}));
}

// t=3 on nodes of 8: ranks 6, 7 and 8 lie 2 + 1, ranks 15, 16 and 17 lie 1 + 2.
TEST(Placement, OfThreeRanksOnNodesOfEight) {
  const RankMesh m = mesh(3, 8, 1);
  const Cluster cluster = round_cluster(3);
  EXPECT_EQ(m.placement(cluster, 3, Axis::kTensor), (GroupPlacement{3, 1, 3, 3}));
  EXPECT_EQ(m.placement(cluster, 6, Axis::kTensor), (GroupPlacement{3, 2, 2, 2, 1}));
  EXPECT_EQ(m.placement(cluster, 15, Axis::kTensor), (GroupPlacement{3, 2, 2, 2, 1}));
}

// System: 32 servers of 4 GPUs, 18 of them a domain: 72 GPUs and 56. Groups of 64 lie 64 and 8 + 56, of 32
// the third lies 8 + 24, of 16 the fifth 8 + 8: that one is even. Of 40 the second lies 32 + 8, the third in
// a node beside nobody who leaves it.
TEST(Placement, OfGroupsThatDoNotDivideAnNvlinkDomain) {
  NodeSpec tray = round_node();
  tray.gpus = tray.nics = 4;
  tray.nvlink_domain = 18;
  const Cluster cluster = round_cluster(32, round_fabric(), tray);
  const auto placement = [&](int ranks, int rank) {
    return mesh(ranks, 128 / ranks, 1).placement(cluster, rank, Axis::kTensor);
  };
  EXPECT_EQ(placement(64, 0), (GroupPlacement{64, 1, 64, 2}));
  EXPECT_EQ(placement(64, 64), (GroupPlacement{64, 2, 56, 1, 8}));
  EXPECT_EQ(placement(64, 127), (GroupPlacement{64, 2, 56, 1, 8}));
  EXPECT_EQ(placement(32, 64), (GroupPlacement{32, 2, 24, 1, 8}));
  EXPECT_EQ(placement(16, 64), (GroupPlacement{16, 2, 8, 1}));
  EXPECT_EQ(placement(40, 40), (GroupPlacement{40, 2, 32, 1, 8}));
  EXPECT_EQ(placement(40, 80), (GroupPlacement{40, 1, 40, 2}));
  EXPECT_EQ(placement(128, 5), (GroupPlacement{128, 2, 72, 1, 56}));
}

// System: domains of 72 GPUs; the second group of 64 begins at 64, the third, 16 + 48, shares the domain with
// it, and both leave it.
TEST(Placement, OfGroupsThatBothLeaveADomainCountsBoth) {
  NodeSpec tray = round_node();
  tray.gpus = tray.nics = 4;
  tray.nvlink_domain = 18;
  const Cluster cluster = round_cluster(48, round_fabric(), tray);
  const RankMesh m = mesh(64, 3, 1);
  EXPECT_EQ(m.placement(cluster, 64, Axis::kTensor), (GroupPlacement{64, 2, 56, 2, 8}));
  EXPECT_EQ(m.placement(cluster, 72, Axis::kTensor), (GroupPlacement{64, 2, 56, 2, 8}));
  EXPECT_EQ(m.placement(cluster, 128, Axis::kTensor), (GroupPlacement{64, 2, 48, 2, 16}));
}

constexpr std::initializer_list<Axis> kReplicas = {Axis::kContext, Axis::kData};

// System: t=2, c=2, d=4: the replicas of rank 1 are 1, 3, 5, ..., 15.
// Expectations: blocks of 4 are 1-7 and 9-15; rank 9 begins the second, and rank 1 holds the same shard.
TEST(RankMesh, CutsAJointGroupIntoConsecutiveBlocks) {
  const RankMesh m = mesh(2, 4, 1, 2);
  EXPECT_EQ(m.block_of(5, kReplicas, 4), (std::vector<int>{1, 3, 5, 7}));
  EXPECT_EQ(m.block_of(9, kReplicas, 4), (std::vector<int>{9, 11, 13, 15}));
  EXPECT_EQ(m.across_blocks(9, kReplicas, 4), (std::vector<int>{1, 9}));
  EXPECT_EQ(m.across_blocks(14, kReplicas, 2), (std::vector<int>{2, 6, 10, 14}));
  EXPECT_EQ(m.block_of(14, kReplicas, 1), (std::vector<int>{14}));
  EXPECT_THROW((void)m.block_of(0, kReplicas, 3), InternalError);
  EXPECT_THROW((void)m.across_blocks(0, kReplicas, 0), InternalError);
}

// Data inside, context outside, pipeline between them: 0, 1, 2 and 6, 7, 8 are one group of d=3, p=2, c=2.
TEST(RankMesh, CutsBlocksByRankWhateverTheOrderOfTheAxes) {
  const RankMesh m({1, 2, 1, 3, 2},
                   {Axis::kData, Axis::kPipeline, Axis::kContext, Axis::kTensor, Axis::kExpert});
  EXPECT_EQ(m.group(7, kReplicas), (std::vector<int>{0, 1, 2, 6, 7, 8}));
  EXPECT_EQ(m.block_of(6, kReplicas, 2), (std::vector<int>{2, 6}));
  EXPECT_EQ(m.across_blocks(6, kReplicas, 2), (std::vector<int>{1, 6, 8}));
}

// Property: in every order, blocks and the ranks across them partition the ranks, and meet in one rank.
TEST(RankMesh, BlocksAndTheRanksAcrossThemMeetInOneRank) {
  std::array<Axis, kAxisCount> order = kMegatronOrder;
  std::sort(order.begin(), order.end());
  do {
    const RankMesh m({2, 2, 1, 3, 2}, order);
    for (const int block : {1, 2, 3, 6}) {
      for (int rank = 0; rank < m.size(); ++rank) {
        const std::vector<int> inside = m.block_of(rank, kReplicas, block);
        const std::vector<int> across = m.across_blocks(rank, kReplicas, block);
        EXPECT_EQ(inside.size() * across.size(), 6u);
        std::vector<int> both;
        std::set_intersection(inside.begin(), inside.end(), across.begin(), across.end(),
                              std::back_inserter(both));
        EXPECT_EQ(both, std::vector<int>{rank});
        for (const int other : inside) EXPECT_EQ(m.block_of(other, kReplicas, block), inside);
        for (const int other : across) EXPECT_EQ(m.across_blocks(other, kReplicas, block), across);
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// Property: in every order of the axes and for any of them, a block is cut out of the sorted group.
TEST(RankMesh, BlocksAreCutOutOfTheGroup) {
  std::array<Axis, kAxisCount> order = kMegatronOrder;
  std::sort(order.begin(), order.end());
  do {
    for (const std::array<int, kAxisCount> degree : {std::array{2, 2, 1, 3, 2}, std::array{1, 4, 2, 2, 1}}) {
      const RankMesh m(degree, order);
      for (const auto axes : {kReplicas, std::initializer_list<Axis>{Axis::kData},
                              std::initializer_list<Axis>{Axis::kPipeline, Axis::kExpert, Axis::kContext}}) {
        for (int rank = 0; rank < m.size(); ++rank) {
          const std::vector<int> all = m.group(rank, axes);
          const int size = static_cast<int>(all.size());
          const int at = static_cast<int>(std::find(all.begin(), all.end(), rank) - all.begin());
          for (int block = 1; block <= size; ++block) {
            if (size % block != 0) continue;
            std::vector<int> inside, across;
            for (int i = 0; i < size; ++i) {
              if (i / block == at / block) inside.push_back(all[static_cast<std::size_t>(i)]);
              if (i % block == at % block) across.push_back(all[static_cast<std::size_t>(i)]);
            }
            ASSERT_EQ(m.block_of(rank, axes, block), inside);
            ASSERT_EQ(m.across_blocks(rank, axes, block), across);
          }
        }
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// System: d=1024 x c=1024 on a million GPUs: a hundred thousand blocks of 4 are 400 thousand ranks; sorted
// out of the whole group they were 10^11.
TEST(RankMesh, BlocksOfALargeGroupTakeNoLongerThanOfASmallOne) {
  const RankMesh m = mesh(1, 1024, 1, 1024);
  std::int64_t sum = 0;
  for (int rank = 0; rank < 100'000; ++rank)
    for (const int other : m.block_of(rank, kReplicas, 4)) sum += other - rank;
  for (int rank = 0; rank < 100'000; ++rank) sum += m.across_blocks(rank, kReplicas, 1 << 18).front() - rank;
  EXPECT_EQ(sum, 0);
}

// System: t=1 d=32 on 4 nodes of 8, hybrid sharding over 8: a block fills a node, and each GPU of the node
// has its own replicas, one in each node. Blocks of 4: two a node; blocks of 16: two nodes each.
TEST(Placement, OfHybridShardingShardsInsideNodesAndReplicatesAcrossThem) {
  const Cluster cluster = round_cluster(4);
  const RankMesh m = mesh(1, 32, 1);
  EXPECT_EQ(m.block_placement(cluster, 9, kReplicas, 8), (GroupPlacement{8, 1, 8, 1}));
  EXPECT_EQ(m.across_blocks_placement(cluster, 9, kReplicas, 8), (GroupPlacement{4, 4, 1, 8}));
  EXPECT_EQ(m.block_placement(cluster, 9, kReplicas, 4), (GroupPlacement{4, 1, 4, 2}));
  EXPECT_EQ(m.across_blocks_placement(cluster, 9, kReplicas, 4), (GroupPlacement{8, 4, 2, 4}));
  EXPECT_EQ(m.block_placement(cluster, 9, kReplicas, 16), (GroupPlacement{16, 2, 8, 1}));
  EXPECT_EQ(m.across_blocks_placement(cluster, 9, kReplicas, 16), (GroupPlacement{2, 2, 1, 8}));
}

// System: t=2 c=2 d=8 on 4 nodes of 8: each node holds two replica pairs (c) of each of two tensor ranks.
// Blocks of 4 lie in one node, one for each tensor rank.
TEST(Placement, OfBlocksCountsThoseOfTheOtherTensorRanks) {
  const Cluster cluster = round_cluster(4);
  const RankMesh m = mesh(2, 8, 1, 2);
  EXPECT_EQ(m.block_placement(cluster, 0, kReplicas, 4), (GroupPlacement{4, 1, 4, 2}));
  EXPECT_EQ(m.block_placement(cluster, 0, kReplicas, 2), (GroupPlacement{2, 1, 2, 4}));
  EXPECT_EQ(m.across_blocks_placement(cluster, 0, kReplicas, 4), (GroupPlacement{4, 4, 1, 8}));
  EXPECT_EQ(m.across_blocks_placement(cluster, 0, kReplicas, 2), (GroupPlacement{8, 4, 2, 4}));
}

// One block is the whole group, and blocks of one rank leave the group to the replicas.
TEST(Placement, OfTheLargestBlockIsThatOfTheGroup) {
  const Cluster cluster = round_cluster(4);
  const RankMesh m = mesh(2, 4, 2, 2);
  EXPECT_EQ(m.block_placement(cluster, 3, kReplicas, 8), m.placement(cluster, 3, kReplicas));
  EXPECT_EQ(m.across_blocks_placement(cluster, 3, kReplicas, 1), m.placement(cluster, 3, kReplicas));
}

// System: experts of et=1 e=8 on 4 nodes of 8: the four ranks that hold the same expert lie on four nodes.
TEST(Placement, OfExpertBlocksCountsOnTheMeshOfTheExperts) {
  const Cluster cluster = round_cluster(4);
  const RankMesh experts({1, 1, 8, 4, 1}, kMegatronOrder);
  EXPECT_EQ(experts.block_placement(cluster, 0, {Axis::kData}, 2), (GroupPlacement{2, 2, 1, 8}));
  EXPECT_EQ(experts.across_blocks_placement(cluster, 0, {Axis::kData}, 2), (GroupPlacement{2, 2, 1, 8}));
}

TEST(Placement, LeavesGpusBeyondTheMeshIdle) {
  EXPECT_EQ(mesh(2, 2, 1).placement(round_cluster(1), 0, Axis::kTensor), (GroupPlacement{2, 1, 2, 2}));
  EXPECT_THROW((void)mesh(8, 2, 1).placement(round_cluster(1), 0, Axis::kTensor), InternalError);
}

}  // namespace
}  // namespace stagecraft
