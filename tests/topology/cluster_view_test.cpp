// The cluster as a whole: cuts, disjoint ways, classes of pairs, against what a pencil finds.
#include "topology/cluster_view.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/check.hpp"
#include "tests/topology/clusters.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

FabricSpec oversubscribed(double factor, FabricKind kind = FabricKind::kFatTree) {
  FabricSpec fabric = round_fabric(kind);
  fabric.oversubscription = factor;
  return fabric;
}

// System: 8 nodes of 8 NICs of 10 GB/s, 4 to a leaf. Expectations: four nodes send 4 * 80 GB/s to the others,
// and where the uplinks are oversubscribed by 4, one leaf's uplink of 320 / 4 GB/s.
TEST(Bisection, OfAFatTreeIsHalfTheNodesOrTheirUplink) {
  EXPECT_EQ(bisection(round_cluster(8)).bandwidth, 320_GBps);
  const Cluster narrow = round_cluster(8, oversubscribed(4));
  const Bisection cut = bisection(narrow);
  EXPECT_EQ(cut.first_gpus, 32);
  EXPECT_EQ(cut.bandwidth, 80_GBps);
  ASSERT_EQ(cut.cut.size(), 1u);
  EXPECT_EQ(narrow.link_name(cut.cut[0]), "leaf 0 -> spine 0");
}

// Rails: NIC i of four nodes on leaf i, so eight uplinks of 40 / 4 GB/s.
TEST(Bisection, OfRailsIsTheUplinksOfAllRails) {
  const Cluster rails = round_cluster(8, oversubscribed(4, FabricKind::kRailOptimized));
  const Bisection cut = bisection(rails);
  EXPECT_EQ(cut.bandwidth, 80_GBps);
  EXPECT_EQ(cut.cut.size(), 8u);
}

// An odd number of nodes: two of five, which the NICs of the two limit.
TEST(Bisection, OfAnOddNumberOfNodesHasTheSmallerHalfFirst) {
  const Bisection cut = bisection(round_cluster(5));
  EXPECT_EQ(cut.first_gpus, 16);
  EXPECT_EQ(cut.bandwidth, 160_GBps);
  EXPECT_EQ(cut.cut.size(), 16u);
}

// One node: four GPUs of 100 GB/s into the NVSwitch; their NICs lead nowhere.
TEST(Bisection, OfOneNodeIsBetweenItsGpus) {
  EXPECT_EQ(bisection(round_cluster(1)).bandwidth, 400_GBps);
  const Bisection none = bisection(Cluster({.groups = {{round_node(), 1}}, .gpus_used = 1}));
  EXPECT_EQ(none.bandwidth, Bandwidth(0));
  EXPECT_TRUE(none.cut.empty());
}

// Property: the cut carries what the bisection says.
TEST(Bisection, IsTheSumOfItsCut) {
  for (const FabricKind kind : {FabricKind::kSingleSwitch, FabricKind::kFatTree, FabricKind::kRailOptimized})
    for (const int nodes : {1, 2, 5, 8, 13})
      for (const double factor : {1.0, 2.0, 3.0}) {
        const Cluster cluster = round_cluster(nodes, oversubscribed(factor, kind));
        const Bisection cut = bisection(cluster);
        Bandwidth sum{};
        for (const EdgeId link : cut.cut) sum += cluster.link(link).capacity;
        EXPECT_NEAR(sum.count(), cut.bandwidth.count(), static_cast<double>(cut.cut.size()))
            << nodes << " nodes, " << factor;
      }
}

// Below one leaf each NIC is a way of its own; one uplink is one way, and rails have one each.
TEST(DisjointWays, AreAsManyAsNicsOrUplinks) {
  EXPECT_EQ(disjoint_ways(round_cluster(5), 0, 1), 8);
  EXPECT_EQ(disjoint_ways(round_cluster(5), 0, 4), 1);
  EXPECT_EQ(disjoint_ways(round_cluster(5, round_fabric(FabricKind::kRailOptimized)), 0, 4), 8);
  FabricSpec two_nics = round_fabric();
  two_nics.nics_per_node = 2;
  EXPECT_EQ(disjoint_ways(round_cluster(5, two_nics), 3, 1), 2);
  EXPECT_THROW((void)disjoint_ways(round_cluster(5), 3, 3), InternalError);
}

// System: nodes 0 to 3 on leaf 0 and node 4 on leaf 1. Expectations: 5 * 28 pairs in a node, two hops of 1
// us; 6 * 64 below leaf 0; 4 * 64 through the spine.
TEST(PairClasses, OfAFatTreeAreNodeLeafAndSpine) {
  const PairClasses all = pair_classes(round_cluster(5));
  EXPECT_FALSE(all.sampled);
  ASSERT_EQ(all.classes.size(), 3u);
  const PairClass &node = all.classes[0], &leaf = all.classes[1], &spine = all.classes[2];
  EXPECT_EQ(node.name, "same NVLink domain");
  EXPECT_EQ(node.pairs, 140);
  EXPECT_EQ(node.links, 2);
  EXPECT_EQ(node.latency, 2us);
  EXPECT_EQ(node.bandwidth, 100_GBps);
  EXPECT_EQ(leaf.name, "same leaf");
  EXPECT_EQ(leaf.pairs, 384);
  EXPECT_EQ(leaf.links, 4);
  EXPECT_EQ(leaf.latency, 1us);
  EXPECT_EQ(leaf.bandwidth, 10_GBps);
  EXPECT_EQ(spine.name, "through a spine");
  EXPECT_EQ(spine.pairs, 256);
  EXPECT_EQ(spine.switches, 3);
  EXPECT_EQ(spine.latency, 3us);
}

// Rails: GPUs of one rail are four links apart below their leaf, the others two NVLink hops more.
TEST(PairClasses, OfRailsTellSameRailFromOthers) {
  const PairClasses all = pair_classes(round_cluster(2, round_fabric(FabricKind::kRailOptimized)));
  ASSERT_EQ(all.classes.size(), 3u);
  EXPECT_EQ(all.classes[1].pairs, 8);
  EXPECT_EQ(all.classes[1].links, 4);
  EXPECT_EQ(all.classes[1].latency, 1us);
  EXPECT_EQ(all.classes[2].pairs, 56);
  EXPECT_EQ(all.classes[2].links, 6);
  EXPECT_EQ(all.classes[2].latency, 3us);
}

TEST(PairClasses, OfANodeWithoutNvlinkSaySo) {
  NodeSpec pcie = round_node();
  pcie.nvlink = Bandwidth(0);
  EXPECT_EQ(pair_classes(round_cluster(1, round_fabric(), pcie)).classes.front().name, "same node");
}

// Property: classes found over sites are those found pair by pair.
TEST(PairClasses, CountEveryPairOnce) {
  for (const FabricKind kind :
       {FabricKind::kSingleSwitch, FabricKind::kFatTree, FabricKind::kRailOptimized}) {
    NodeSpec small = round_node();
    small.gpus = 4;
    small.nics = 2;
    const Cluster cluster({.groups = {{round_node(), 5}, {small, 4}}, .fabric = round_fabric(kind)});
    std::map<std::size_t, std::int64_t> by_links, found;
    for (int a = 0; a < cluster.gpu_count(); ++a)
      for (int b = a + 1; b < cluster.gpu_count(); ++b) ++by_links[cluster.spread(gpu(a), gpu(b)).size()];
    for (const PairClass& pair : pair_classes(cluster).classes)
      found[static_cast<std::size_t>(pair.links)] += pair.pairs;
    EXPECT_EQ(found, by_links);
  }
}

// All leaves full, so that every node sees the same: a sample counts as all do.
TEST(PairClasses, OfASampleAreThoseOfAllWhereNodesAreAlike) {
  const Cluster cluster = round_cluster(16);
  const PairClasses all = pair_classes(cluster), some = pair_classes(cluster, 300);
  EXPECT_TRUE(some.sampled);
  ASSERT_EQ(some.classes.size(), all.classes.size());
  for (std::size_t i = 0; i < all.classes.size(); ++i) {
    EXPECT_EQ(some.classes[i].pairs, all.classes[i].pairs) << i;
    EXPECT_EQ(some.classes[i].name, all.classes[i].name) << i;
  }
}

// 5 nodes of 8 GPUs and 8 NICs, 24 cables each; two leaves and a spine.
TEST(ClusterTotals, CountVerticesAndCables) {
  const ClusterTotals sum = totals(round_cluster(5));
  EXPECT_EQ(sum.nodes, 5);
  EXPECT_EQ(sum.gpus, 40);
  EXPECT_EQ(sum.nics, 40);
  EXPECT_EQ(sum.switches, 3);
  EXPECT_EQ(sum.cables, 5u * 24 + 2);
  EXPECT_EQ(sum.injection, 400_GBps);
}

}  // namespace
}  // namespace stagecraft
