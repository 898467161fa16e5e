// The cluster as a whole: cuts, disjoint ways, classes of pairs, against what a pencil finds.
#include "topology/cluster_view.hpp"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

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

// 2 nodes to a leaf, 4 to a pod; 2 spines in a pod, 4 cores, half of the pods' uplinks.
Cluster three_levels(int nodes) {
  FabricSpec fabric = round_fabric();
  fabric.nodes_per_leaf = 2;
  fabric.nodes_per_pod = 4;
  fabric.spines = 2;
  fabric.cores = 4;
  fabric.core_oversubscription = 2;
  return round_cluster(nodes, fabric, small_node());
}

Cluster torus(std::vector<int> dims, int nodes, const NodeSpec& node) {
  FabricSpec fabric = round_fabric(FabricKind::kTorus);
  fabric.dims = std::move(dims);
  fabric.link_bandwidth = 5_GBps;
  return round_cluster(nodes, fabric, node);
}

// Servers of 2 GPUs, two of them to an NVLink domain.
Cluster domains(int servers) {
  NodeSpec tray = small_node();
  tray.nvlink_domain = 2;
  return round_cluster(servers, round_fabric(), tray);
}

// GPUs 0, 1, 3, 2 in a ring of NVLinks of 50 GB/s, and on a PCIe root by 20 GB/s each.
Cluster mesh() {
  NodeSpec node = round_node();
  node.gpus = 4;
  node.nvlink_pairs = {{0, 1, 1}, {1, 3, 1}, {3, 2, 1}, {2, 0, 1}};
  return round_cluster(1, round_fabric(), node);
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

// Two pods of 4 * 20 GB/s, of which half gets out: four cables from spines to cores.
TEST(Bisection, OfThreeLevelsIsTheUplinkOfAPod) {
  const Cluster cluster = three_levels(8);
  const Bisection cut = bisection(cluster);
  EXPECT_EQ(cut.bandwidth, 40_GBps);
  ASSERT_EQ(cut.cut.size(), 4u);
  EXPECT_EQ(cluster.link_name(cut.cut[0]), "spine 0 -> core 0");
}

// A 4 x 4 torus in two halves of two rings: each of the four columns is cut twice.
TEST(Bisection, OfATorusIsTwoCablesForEachRingThatItCuts) {
  const Bisection cut = bisection(torus({4, 4}, 16, small_node()));
  EXPECT_EQ(cut.bandwidth, 40_GBps);
  EXPECT_EQ(cut.cut.size(), 8u);
}

// Three groups of two routers, 2 nodes each: the half is group 0 and router 2. It is left by the global
// cables of group 0 (to groups 1 and 2) and of router 2 (to group 2), 4 GB/s each, and by 5 GB/s to router 3.
TEST(Bisection, OfADragonflyCutsGroupsAndGlobalCables) {
  FabricSpec fabric = round_fabric(FabricKind::kDragonfly);
  fabric.groups = 3;
  fabric.routers_per_group = 2;
  fabric.nodes_per_router = 2;
  fabric.link_bandwidth = 5_GBps;
  fabric.global_bandwidth = 4_GBps;
  const Bisection cut = bisection(round_cluster(12, fabric, small_node()));
  EXPECT_EQ(cut.bandwidth, 17_GBps);
  EXPECT_EQ(cut.cut.size(), 4u);
}

// Two domains of 4 GPUs: their 4 NICs. One alone: two GPUs of 100 GB/s.
TEST(Bisection, OfNvlinkDomainsIsBetweenDomains) {
  EXPECT_EQ(bisection(domains(4)).first_gpus, 4);
  EXPECT_EQ(bisection(domains(4)).bandwidth, 40_GBps);
  EXPECT_EQ(bisection(domains(2)).bandwidth, 200_GBps);
}

// GPUs 0 and 1 reach 2 and 3 by two NVLinks of 50 GB/s and two PCIe links of 20 GB/s.
TEST(Bisection, OfAMeshCountsNvlinkAndPcie) {
  EXPECT_EQ(bisection(mesh()).bandwidth, 140_GBps);
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

// Two spines, two planes, or the four cables of a router: at most as many as the node has NICs.
TEST(DisjointWays, AreAsManyAsSpinesPlanesOrCables) {
  EXPECT_EQ(disjoint_ways(three_levels(8), 0, 7), 2);
  FabricSpec planes = round_fabric();
  planes.planes = 2;
  EXPECT_EQ(disjoint_ways(round_cluster(5, planes), 0, 4), 2);
  EXPECT_EQ(disjoint_ways(torus({4, 4}, 16, round_node()), 0, 5), 4);
  EXPECT_EQ(disjoint_ways(torus({4, 4}, 16, small_node()), 0, 5), 2);
  EXPECT_EQ(disjoint_ways(domains(4), 0, 1), 4);
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

// 16 GPUs in 8 nodes, 4 leaves, 2 pods: 8 pairs in nodes, 4 * 4 below leaves, 2 * 16 in pods, 64 across.
TEST(PairClasses, OfThreeLevelsGoUpToTheCore) {
  const PairClasses all = pair_classes(three_levels(8));
  ASSERT_EQ(all.classes.size(), 4u);
  const std::vector<std::int64_t> pairs = {8, 16, 32, 64};
  const std::vector<int> switches = {0, 1, 3, 5};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all.classes[i].pairs, pairs[i]);
    EXPECT_EQ(all.classes[i].switches, switches[i]);
  }
  EXPECT_EQ(all.classes[3].name, "through a core");
  EXPECT_EQ(all.classes[3].latency, 5us);
  EXPECT_EQ(all.classes[3].bandwidth, 10_GBps);
}

// A ring of 6 routers: 12 GPUs, 6 pairs in nodes, then 6 * 4 pairs each of one and two cables, 3 * 4 of
// three.
TEST(PairClasses, OfATorusAreItsDistances) {
  const PairClasses all = pair_classes(torus({6}, 6, small_node()));
  ASSERT_EQ(all.classes.size(), 4u);
  const std::vector<std::int64_t> pairs = {6, 24, 24, 12};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(all.classes[i].pairs, pairs[i]) << i;
  EXPECT_EQ(all.classes[2].bandwidth, 5_GBps);
  EXPECT_EQ(all.classes[3].switches, 4);
  EXPECT_EQ(all.classes[3].bandwidth, 10_GBps);  // both directions, 5 GB/s each, as much as the NIC
}

// Two domains of 4 GPUs below one leaf: 2 * 6 pairs over NVLink, 16 over the leaf.
TEST(PairClasses, OfNvlinkDomainsReachOverServers) {
  const PairClasses all = pair_classes(domains(4));
  ASSERT_EQ(all.classes.size(), 2u);
  EXPECT_EQ(all.classes[0].name, "same NVLink domain");
  EXPECT_EQ(all.classes[0].pairs, 12);
  EXPECT_EQ(all.classes[1].name, "same leaf");
  EXPECT_EQ(all.classes[1].pairs, 16);
}

// Neighbours on the ring, and those across it with two ways of 50 GB/s.
TEST(PairClasses, OfAMeshTellNeighboursFromOthers) {
  const PairClasses all = pair_classes(mesh());
  ASSERT_EQ(all.classes.size(), 2u);
  EXPECT_EQ(all.classes[0].pairs, 4);
  EXPECT_EQ(all.classes[0].bandwidth, 50_GBps);
  EXPECT_EQ(all.classes[1].pairs, 2);
  EXPECT_EQ(all.classes[1].bandwidth, 100_GBps);
  EXPECT_EQ(all.classes[1].latency, 2us);
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
  const PairClasses all = pair_classes(cluster), some = pair_classes(cluster, 2000);
  EXPECT_TRUE(some.sampled);
  ASSERT_EQ(some.classes.size(), all.classes.size());
  for (std::size_t i = 0; i < all.classes.size(); ++i) {
    EXPECT_EQ(some.classes[i].pairs, all.classes[i].pairs) << i;
    EXPECT_EQ(some.classes[i].name, all.classes[i].name) << i;
  }
}

// A narrow link sets its node apart: pairs with it are a class of their own.
TEST(PairClasses, SeeOneNarrowLink) {
  ClusterSpec spec{.groups = {{small_node(), 4}}, .fabric = round_fabric()};
  spec.links = {{.name = "node 1 nic 0 -> leaf 0", .bandwidth = 1_GBps}};
  std::int64_t narrow = 0;
  for (const PairClass& pair : pair_classes(Cluster(spec)).classes)
    if (pair.bandwidth == 1_GBps) narrow += pair.pairs;
  EXPECT_EQ(narrow, 6);  // GPU 0 of node 1 with the 6 GPUs of other nodes
}

// 5 nodes of 8 GPUs and 8 NICs, 24 cables each; two leaves and a spine.
TEST(ClusterTotals, CountVerticesAndCables) {
  const ClusterTotals sum = totals(round_cluster(5));
  EXPECT_EQ(sum.nodes, 5);
  EXPECT_EQ(sum.domains, 5);
  EXPECT_EQ(sum.gpus, 40);
  EXPECT_EQ(sum.nics, 40);
  EXPECT_EQ(sum.switches, 3);
  EXPECT_EQ(sum.cables, 5u * 24 + 2);
  EXPECT_EQ(sum.injection, 400_GBps);
}

// 5 nodes, two of them to an NVLink domain.
TEST(ClusterTotals, CountNodesAndTheirNvlinkDomains) {
  EXPECT_EQ(totals(domains(5)).nodes, 5);
  EXPECT_EQ(totals(domains(5)).domains, 3);
}

}  // namespace
}  // namespace stagecraft
