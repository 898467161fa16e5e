// What the algorithms send, against a pencil, and what all of them have in common.
//
// System: nodes of 8 GPUs; GPU 8k+i is GPU i of node k.
#include "topology/collective_transfers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <numeric>
#include <random>

#include "tests/topology/clusters.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

std::vector<DeviceId> gpus(std::initializer_list<int> indices) {
  std::vector<DeviceId> list;
  for (const int index : indices) list.push_back(gpu(index));
  return list;
}

using Pairs = std::map<std::pair<int, int>, double>;  // MB from GPU to GPU

Pairs sent(std::initializer_list<int> members, CollectiveKind kind, std::string_view algorithm, Bytes size) {
  const std::vector<DeviceId> group = gpus(members);
  Pairs pairs;
  for (const Transfer& t : collective_transfers(round_cluster(8), group, kind, algorithm, size))
    pairs[{static_cast<int>(t.from.value()), static_cast<int>(t.to.value())}] += t.bytes / 1e6;
  return pairs;
}

constexpr CollectiveKind kAllReduce = CollectiveKind::kAllReduce;

// Four GPUs, 40 MB: 2*3/4 * 40 = 60 MB to the next.
TEST(Transfers, OfARingGoToTheNext) {
  EXPECT_EQ(sent({0, 1, 2, 3}, kAllReduce, "ring", megabytes(40)),
            (Pairs{{{0, 1}, 60}, {{1, 2}, 60}, {{2, 3}, 60}, {{3, 0}, 60}}));
  EXPECT_EQ(sent({0, 1, 2, 3}, CollectiveKind::kAllGather, "ring", megabytes(40)),
            (Pairs{{{0, 1}, 30}, {{1, 2}, 30}, {{2, 3}, 30}, {{3, 0}, 30}}));
}

// Two nodes with two members each, 40 MB: 60 MB a hop on two channels. Each channel crosses to the other node
// once, on its own rail, and has one hop inside each node.
TEST(Transfers, OfARingOverNodesUseEveryRail) {
  EXPECT_EQ(sent({0, 1, 8, 9}, kAllReduce, "ring", megabytes(40)), (Pairs{{{0, 1}, 30},
                                                                          {{1, 0}, 30},
                                                                          {{8, 9}, 30},
                                                                          {{9, 8}, 30},
                                                                          {{0, 8}, 30},
                                                                          {{1, 9}, 30},
                                                                          {{8, 0}, 30},
                                                                          {{9, 1}, 30}}));
}

// One member on a node, two on the other: 2*2/3 * 30 = 40 MB a hop, half of it with each of the two.
TEST(Transfers, OfAnUnevenRingShareTheWayToTheNode) {
  EXPECT_EQ(sent({0, 8, 9}, kAllReduce, "ring", megabytes(30)),
            (Pairs{{{0, 8}, 20}, {{0, 9}, 20}, {{8, 9}, 20}, {{9, 8}, 20}, {{8, 0}, 20}, {{9, 0}, 20}}));
}

// From the first member around the ring, and not back to it.
TEST(Transfers, OfABroadcastEndBeforeTheRoot) {
  EXPECT_EQ(sent({1, 2, 3}, CollectiveKind::kBroadcast, "ring", megabytes(30)),
            (Pairs{{{1, 2}, 30}, {{2, 3}, 30}}));
}

// 2*1/2 * 40 around each node, then 40/2 around each rail.
TEST(Transfers, OfAHierarchicalRingReduceInTheNodeFirst) {
  EXPECT_EQ(sent({0, 1, 8, 9}, kAllReduce, "hierarchical", megabytes(40)), (Pairs{{{0, 1}, 40},
                                                                                  {{1, 0}, 40},
                                                                                  {{8, 9}, 40},
                                                                                  {{9, 8}, 40},
                                                                                  {{0, 8}, 20},
                                                                                  {{1, 9}, 20},
                                                                                  {{8, 0}, 20},
                                                                                  {{9, 1}, 20}}));
}

// Four nodes: 0 - 2 - {1, 3}, and read backwards 3 - 1 - {2, 0}.
TEST(DoubleTree, TurnsLeavesIntoInnerNodes) {
  const auto [first, second] = double_tree(4);
  EXPECT_EQ(first, (std::vector<int>{-1, 2, 0, 2}));
  EXPECT_EQ(second, (std::vector<int>{1, 3, 1, -1}));
}

// Three nodes: 0 - 2 - 1, and shifted by one 1 - 0 - 2.
TEST(DoubleTree, OfAnOddNumberIsShifted) {
  const auto [first, second] = double_tree(3);
  EXPECT_EQ(first, (std::vector<int>{-1, 2, 0}));
  EXPECT_EQ(second, (std::vector<int>{1, -1, 0}));
}

// Property: all nodes hang on one root, the depth is at most ceil(log2 N), and no node has more than two
// children in both trees together.
TEST(DoubleTree, IsTwoTreesOfSmallDepth) {
  for (int nodes = 1; nodes <= 130; ++nodes) {
    SCOPED_TRACE(nodes);
    std::vector<int> both(static_cast<std::size_t>(nodes), 0);
    for (const std::vector<int>& parents : double_tree(nodes)) {
      std::vector<int> children(static_cast<std::size_t>(nodes), 0);
      EXPECT_EQ(std::count(parents.begin(), parents.end(), -1), 1);
      for (int i = 0; i < nodes; ++i) {
        int depth = 0;
        for (int at = i; parents[static_cast<std::size_t>(at)] >= 0 && depth <= nodes; ++depth)
          at = parents[static_cast<std::size_t>(at)];
        EXPECT_LE(depth, std::bit_width(static_cast<unsigned>(nodes - 1)));
        if (parents[static_cast<std::size_t>(i)] >= 0)
          ++children[static_cast<std::size_t>(parents[static_cast<std::size_t>(i)])];
      }
      for (std::size_t i = 0; i < children.size(); ++i) {
        EXPECT_LE(children[i], 2);
        both[i] += children[i];
      }
    }
    EXPECT_LE(*std::max_element(both.begin(), both.end()), 2);
  }
}

// Three nodes with one member: half of 40 MB up and down 0-2, 2-1 and 1-0, 0-2.
TEST(Transfers, OfTheTreesGoBothWaysOnEachEdge) {
  EXPECT_EQ(sent({0, 8, 16}, kAllReduce, "tree", megabytes(40)),
            (Pairs{{{0, 16}, 40}, {{16, 0}, 40}, {{8, 16}, 20}, {{16, 8}, 20}, {{0, 8}, 20}, {{8, 0}, 20}}));
}

// Three GPUs of a node are chains: 2/3 of 30 MB both ways between neighbours.
TEST(Transfers, OfATreeInANodeAreChains) {
  EXPECT_EQ(sent({0, 1, 2}, kAllReduce, "tree", megabytes(30)),
            (Pairs{{{0, 1}, 20}, {{1, 0}, 20}, {{1, 2}, 20}, {{2, 1}, 20}, {{2, 0}, 20}, {{0, 2}, 20}}));
}

// Each port of the NVSwitch takes and gives 40 MB, and each node's two rails 20 MB up and down a tree of two.
TEST(Transfers, OfNvlsAreWhatThePortsOfTheSwitchSee) {
  EXPECT_EQ(sent({0, 1}, kAllReduce, "nvls", megabytes(40)), (Pairs{{{0, 1}, 40}, {{1, 0}, 40}}));
  EXPECT_EQ(sent({0, 1, 8, 9}, kAllReduce, "nvls-tree", megabytes(40)), (Pairs{{{0, 1}, 40},
                                                                               {{1, 0}, 40},
                                                                               {{8, 9}, 40},
                                                                               {{9, 8}, 40},
                                                                               {{0, 8}, 20},
                                                                               {{1, 9}, 20},
                                                                               {{8, 0}, 20},
                                                                               {{9, 1}, 20}}));
}

// The fabric's switches take 40/2 MB from each rail of each node and give it back.
TEST(Transfers, OfCollNetPassEachRailOnce) {
  const Pairs pairs = sent({0, 1, 8, 9, 16, 17}, kAllReduce, "collnet", megabytes(40));
  EXPECT_EQ(pairs.at({0, 8}), 20);
  EXPECT_EQ(pairs.at({17, 1}), 20);
  EXPECT_EQ(pairs.at({0, 1}), 40);
}

// Five: four exchange 2 * 40/2 MB with the next and 2 * 40/4 two away; the fifth gives 40 MB and gets 40.
TEST(Transfers, OfHalvingAndDoublingStayNear) {
  const Pairs pairs = sent({0, 1, 2, 3, 4}, kAllReduce, "halving-doubling", megabytes(40));
  EXPECT_EQ(pairs.at({0, 1}), 40);
  EXPECT_EQ(pairs.at({0, 2}), 20);
  EXPECT_EQ(pairs.at({4, 0}), 40);
  EXPECT_EQ(pairs.at({0, 4}), 40);
  EXPECT_EQ(pairs.size(), 10U);
}

// Six, 60 MB, blocks of 10: offsets 1, 3, 5 end with one hop, 2 with two, 4 with four.
TEST(Transfers, OfPatSendLittleFarAway) {
  const Pairs gather = sent({0, 1, 2, 3, 4, 5}, CollectiveKind::kAllGather, "pat", megabytes(60));
  EXPECT_EQ(gather.at({0, 1}), 30);
  EXPECT_EQ(gather.at({0, 2}), 10);
  EXPECT_EQ(gather.at({0, 4}), 10);
  const Pairs scatter = sent({0, 1, 2, 3, 4, 5}, CollectiveKind::kReduceScatter, "pat", megabytes(60));
  EXPECT_EQ(scatter.at({1, 0}), 30);
  EXPECT_EQ(scatter.at({0, 2}), 10);  // four hops back, around the end
}

TEST(Transfers, OfAllToAllAreThePairs) {
  for (const char* algorithm : {"direct", "pairwise"})
    EXPECT_EQ(sent({0, 1, 8}, CollectiveKind::kAllToAll, algorithm, megabytes(30)),
              (Pairs{{{0, 1}, 10}, {{0, 8}, 10}, {{1, 0}, 10}, {{1, 8}, 10}, {{8, 0}, 10}, {{8, 1}, 10}}));
  EXPECT_EQ(sent({0, 1, 8}, CollectiveKind::kSendReceive, "direct", megabytes(30)),
            (Pairs{{{0, 1}, 30}, {{1, 8}, 30}, {{8, 0}, 30}}));
}

TEST(Transfers, OfOneMemberOrNoBytesAreNone) {
  EXPECT_TRUE(sent({3}, kAllReduce, "ring", megabytes(1)).empty());
  EXPECT_TRUE(sent({3, 4}, kAllReduce, "ring", Bytes(0)).empty());
  EXPECT_TRUE(sent({3, 4}, kAllReduce, "none", megabytes(1)).empty());
}

TEST(Transfers, RejectWhatNobodyRuns) {
  EXPECT_THROW((void)sent({0, 1}, kAllReduce, "bus", 1_MiB), InternalError);
  EXPECT_THROW((void)sent({0, 1}, CollectiveKind::kAllToAll, "ring", 1_MiB), InternalError);
  EXPECT_THROW((void)sent({0, 8}, kAllReduce, "nvls", 1_MiB), InternalError);
  EXPECT_THROW((void)sent({0, 0}, kAllReduce, "ring", 1_MiB), InternalError);
  EXPECT_THROW((void)sent({0, 1}, kAllReduce, "ring", Bytes(-1)), InternalError);
}

// Random members of up to eight nodes, in a random order of nodes.
std::vector<DeviceId> random_group(std::mt19937& random) {
  std::vector<int> nodes(8);
  std::iota(nodes.begin(), nodes.end(), 0);
  std::shuffle(nodes.begin(), nodes.end(), random);
  nodes.resize(1 + random() % 8);
  std::vector<DeviceId> members;
  for (const int node : nodes) {
    const auto chosen = static_cast<unsigned>(1 + random() % 255);
    for (int i = 0; i < 8; ++i)
      if ((chosen >> i & 1U) != 0) members.push_back(gpu(8 * node + i));
  }
  return members;
}

struct Traffic {
  double sent = 0;
  double received = 0;
};

std::map<DeviceId, Traffic> traffic(const Cluster& cluster, const std::vector<DeviceId>& members,
                                    CollectiveKind kind, std::string_view algorithm, Bytes size) {
  std::map<DeviceId, Traffic> all;
  for (const DeviceId member : members) all[member] = {};
  for (const Transfer& transfer : collective_transfers(cluster, members, kind, algorithm, size)) {
    EXPECT_NE(transfer.from, transfer.to);
    EXPECT_GT(transfer.bytes, 0);
    all.at(transfer.from).sent += transfer.bytes;  // throws where an outsider takes part
    all.at(transfer.to).received += transfer.bytes;
  }
  return all;
}

bool one_node(const Cluster& cluster, const std::vector<DeviceId>& members) {
  return std::all_of(members.begin(), members.end(), [&](DeviceId member) {
    return cluster.node_of(member) == cluster.node_of(members.front());
  });
}

bool same_ranks_on_each_node(const Cluster& cluster, const std::vector<DeviceId>& members) {
  std::map<int, int> ranks;
  for (const DeviceId member : members) ++ranks[cluster.node_of(member)];
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](const auto& node) { return node.second == ranks.begin()->second; });
}

// Property: what enters a member leaves it, except at the two ends of a broadcast, and nothing is lost on the
// way. All bytes together are those of the formula: n * f * S, or with trees 2(n-1) * S, which is the same.
TEST(Transfers, KeepTheirBytes) {
  std::mt19937 random(7);
  const Cluster cluster = round_cluster(8);
  const Bytes size = megabytes(100);
  const double s = 100e6;
  for (int round = 0; round < 200; ++round) {
    const std::vector<DeviceId> members = random_group(random);
    const auto n = static_cast<double>(members.size());
    if (members.size() < 2) continue;
    for (const CollectiveAlgorithm& algorithm : collective_algorithms())
      for (std::size_t k = 0; k < std::size(kCollectiveNames); ++k) {
        const auto kind = static_cast<CollectiveKind>(k);
        if (!algorithm.serves(kind) || algorithm.name == "none") continue;
        if (algorithm.name == "nvls" && !one_node(cluster, members)) continue;
        SCOPED_TRACE(testing::Message() << algorithm.name << " " << kCollectiveNames[k] << " n=" << n);
        double out = 0, in = 0;
        for (const auto& [member, bytes] : traffic(cluster, members, kind, algorithm.name, size)) {
          out += bytes.sent;
          in += bytes.received;
          if (kind != CollectiveKind::kBroadcast) {
            EXPECT_NEAR(bytes.sent, bytes.received, 1e-6 * s);
          }
        }
        EXPECT_NEAR(out, in, 1e-6 * s);
        const bool adding_switch = algorithm.name.starts_with("nvls") || algorithm.name == "collnet";
        const bool uneven_tiers =
            algorithm.name == "hierarchical" && !same_ranks_on_each_node(cluster, members);
        if (adding_switch || uneven_tiers) continue;
        const double total =
            kind == CollectiveKind::kBroadcast ? (n - 1) * s : n * bus_factor(kind, static_cast<int>(n)) * s;
        EXPECT_NEAR(out, total, 1e-6 * s);
      }
  }
}

// Property: with as many members on each node, every member sends f*S in rings, exchanges and PAT; S through
// NVSwitch.
TEST(Transfers, OfEachRankAreItsShareOfTheFormula) {
  const Cluster cluster = round_cluster(8);
  for (const int nodes : {1, 2, 3, 8})
    for (const int ranks : {1, 2, 4, 8}) {
      if (nodes * ranks == 1) continue;
      std::vector<DeviceId> members;
      for (int node = 0; node < nodes; ++node)
        for (int i = 0; i < ranks; ++i) members.push_back(gpu(8 * node + i));
      for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
        if (algorithm.name == "halving-doubling" && !std::has_single_bit(members.size())) continue;
        for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                          CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
          const bool by_rank = algorithm.name != "tree" && algorithm.name != "none" &&
                               algorithm.name != "collnet" && !algorithm.name.starts_with("nvls");
          if (!by_rank || !algorithm.serves(kind)) continue;
          for (const auto& [member, bytes] : traffic(cluster, members, kind, algorithm.name, megabytes(100)))
            EXPECT_NEAR(bytes.sent, bus_factor(kind, nodes * ranks) * 100e6, 1)
                << algorithm.name << " " << nodes << " x " << ranks << " " << member.value();
        }
      }
      if (nodes > 1) continue;
      for (const auto& [member, bytes] : traffic(cluster, members, kAllReduce, "nvls", megabytes(100)))
        EXPECT_NEAR(bytes.sent, 100e6, 1) << member.value();
    }
}

// Nodes in the order of their first members, whoever comes between.
TEST(Transfers, OfMembersInAnyOrderGoFromNodeToNodeAsTheyCome) {
  EXPECT_EQ(sent({8, 0, 9, 1, 16}, kAllReduce, "hierarchical", megabytes(30)), (Pairs{{{8, 9}, 30},
                                                                                      {{9, 8}, 30},
                                                                                      {{0, 1}, 30},
                                                                                      {{1, 0}, 30},
                                                                                      {{8, 0}, 20},
                                                                                      {{9, 1}, 20},
                                                                                      {{0, 16}, 20},
                                                                                      {{1, 16}, 20},
                                                                                      {{16, 8}, 20},
                                                                                      {{16, 9}, 20}}));
}

// A glance at every known node for each member would be 20,000 million.
TEST(Transfers, OfHundredsOfThousandsOfNodesAreFoundInTheirTime) {
  NodeSpec node = round_node();
  node.gpus = node.nics = 1;
  const Cluster cluster = round_cluster(200'000, round_fabric(FabricKind::kSingleSwitch), node);
  std::vector<DeviceId> members;
  for (int i = 0; i < cluster.gpu_count(); ++i) members.push_back(gpu(i));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(collective_transfers(cluster, members, kAllReduce, "ring", megabytes(1)).size(), members.size());
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

}  // namespace
}  // namespace stagecraft
