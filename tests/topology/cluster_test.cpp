// The cluster graph: counts, capacities, and routes.
#include "topology/cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "tests/topology/clusters.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

constexpr std::array kKinds = {FabricKind::kSingleSwitch, FabricKind::kFatTree, FabricKind::kRailOptimized};

int count(const Cluster& cluster, VertexKind kind) {
  int vertices = 0;
  for (std::uint32_t i = 0; i < cluster.graph().vertex_count(); ++i)
    vertices += cluster.graph().vertex(VertexId(i)).kind == kind;
  return vertices;
}

// The route as the kinds of its vertices, e.g. "GSG" in a node.
std::string shape(const Cluster& cluster, DeviceId a, DeviceId b) {
  constexpr char kLetters[] = {'G', 'S', 'P', 'N', 'L', 'T'};
  const auto route = cluster.route(a, b);
  if (route.empty()) return "";
  std::string letters;
  const auto letter = [&](VertexId v) {
    letters += kLetters[static_cast<std::size_t>(cluster.graph().vertex(v).kind)];
  };
  letter(cluster.link(route.front()).from);
  for (const EdgeId id : route) letter(cluster.link(id).to);
  return letters;
}

Bandwidth narrowest(const Cluster& cluster, DeviceId a, DeviceId b) {
  Bandwidth rate(1e18);
  for (const EdgeId id : cluster.route(a, b)) rate = std::min(rate, cluster.link(id).capacity);
  return rate;
}

// System: 5 nodes of 8 GPUs, 1 NVSwitch, 8 NICs; 4 nodes to a leaf.
// Expectations: a node has 17 vertices and 16 + 8 cables inside; every NIC has one cable to a leaf; a cable
// is two edges.
TEST(Cluster, OfAFatTreeHasOneLeafPerFourNodesAndASpine) {
  const Cluster cluster = round_cluster(5);
  EXPECT_EQ(cluster.gpu_count(), 40);
  EXPECT_EQ(cluster.node_count(), 5);
  EXPECT_EQ(count(cluster, VertexKind::kGpu), 40);
  EXPECT_EQ(count(cluster, VertexKind::kNvSwitch), 5);
  EXPECT_EQ(count(cluster, VertexKind::kNic), 40);
  EXPECT_EQ(count(cluster, VertexKind::kLeafSwitch), 2);
  EXPECT_EQ(count(cluster, VertexKind::kSpineSwitch), 1);
  EXPECT_EQ(cluster.link_count(), 2u * (5 * (8 + 8 + 8) + 2));
}

TEST(Cluster, OfRailsHasOneLeafPerNicAndFourNodes) {
  const Cluster cluster = round_cluster(5, round_fabric(FabricKind::kRailOptimized));
  EXPECT_EQ(count(cluster, VertexKind::kLeafSwitch), 16);
  EXPECT_EQ(count(cluster, VertexKind::kSpineSwitch), 1);
  EXPECT_EQ(cluster.link_count(), 2u * (5 * (8 + 8 + 8) + 16));
}

TEST(Cluster, OfASingleSwitchHasNoSpine) {
  const Cluster cluster = round_cluster(5, round_fabric(FabricKind::kSingleSwitch));
  EXPECT_EQ(count(cluster, VertexKind::kLeafSwitch), 1);
  EXPECT_EQ(count(cluster, VertexKind::kSpineSwitch), 0);
}

TEST(Cluster, OfOneNodeHasNoFabric) {
  const Cluster cluster = round_cluster(1);
  EXPECT_EQ(cluster.graph().vertex_count(), 17u);
  EXPECT_EQ(cluster.link_count(), 32u);
}

TEST(Cluster, NamesItsLinksByTheirEnds) {
  const Cluster cluster = round_cluster(5);
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i) {
    EXPECT_EQ(cluster.link(EdgeId(i)).id, EdgeId(i));
    names.insert(cluster.link_name(EdgeId(i)));
  }
  EXPECT_EQ(names.size(), cluster.link_count());
  for (const char* name :
       {"node 3 gpu 2 -> nvswitch", "nvswitch -> gpu 2", "node 4 gpu 7 -> nic 7", "node 3 nic 1 -> leaf 0",
        "leaf 1 -> node 4 nic 0", "leaf 1 -> spine 0", "spine 0 -> leaf 0"})
    EXPECT_TRUE(names.contains(name) || names.contains(std::string("node 3 ") + name)) << name;
}

// Everything that is sent is on every link of the one way there is.
TEST(Cluster, SpreadsOverTheLinksOfItsWay) {
  const Cluster cluster = round_cluster(5);
  EXPECT_TRUE(cluster.spread(gpu(3), gpu(3)).empty());
  EXPECT_EQ(cluster.spread(gpu(0), gpu(1)).size(), 2u);
  const std::vector<LinkShare> far = cluster.spread(gpu(0), gpu(39));
  EXPECT_EQ(far.size(), 6u);  // GPU, NIC, leaf, spine, leaf, NIC, GPU
  EXPECT_TRUE(std::is_sorted(far.begin(), far.end(),
                             [](const LinkShare& a, const LinkShare& b) { return a.link < b.link; }));
  for (const LinkShare& link : far) EXPECT_EQ(link.share, 1);
}

TEST(Cluster, MayUsePartOfOneNode) {
  const Cluster cluster({.groups = {{round_node(), 1}}, .gpus_used = 4, .fabric = round_fabric()});
  EXPECT_EQ(cluster.gpu_count(), 4);
  EXPECT_EQ(count(cluster, VertexKind::kGpu), 4);
}

TEST(Cluster, CannotUsePartOfTwoNodesOrMoreThanANodeHas) {
  EXPECT_THROW(Cluster({.groups = {{round_node(), 2}}, .gpus_used = 4, .fabric = round_fabric()}),
               InternalError);
  EXPECT_THROW(Cluster({.groups = {{round_node(), 1}}, .gpus_used = 9, .fabric = round_fabric()}),
               InternalError);
  EXPECT_THROW(Cluster({.groups = {}, .fabric = round_fabric()}), InternalError);
}

TEST(Cluster, KeepsUnlikeNodesApart) {
  NodeSpec small = round_node();
  small.gpus = 4;
  small.nics = 2;
  const Cluster cluster({.groups = {{round_node(), 1}, {small, 2}}, .fabric = round_fabric()});
  EXPECT_EQ(cluster.gpu_count(), 16);
  EXPECT_EQ(cluster.node_of(gpu(7)), 0);
  EXPECT_EQ(cluster.node_of(gpu(8)), 1);
  EXPECT_EQ(cluster.node_of(gpu(15)), 2);
  EXPECT_EQ(cluster.node_spec_of(gpu(12)).gpus, 4);
  EXPECT_EQ(cluster.first_gpu(2), 12);
  EXPECT_EQ(cluster.gpus_in(2), 4);
  EXPECT_EQ(cluster.node_network(gpu(0)), 80_GBps);
  EXPECT_EQ(cluster.node_network(gpu(8)), 20_GBps);
}

// Fewer NICs than GPUs: a GPU still has only one. More: it has its share, within its PCIe of 20 GB/s.
TEST(Cluster, GivesOneGpuItsNearestNic) {
  FabricSpec fabric = round_fabric();
  EXPECT_EQ(round_cluster(2, fabric).gpu_network(gpu(0)), 10_GBps);
  fabric.nics_per_node = 2;
  EXPECT_EQ(round_cluster(2, fabric).gpu_network(gpu(0)), 10_GBps);
  EXPECT_EQ(round_cluster(2, fabric).node_network(gpu(0)), 20_GBps);
  fabric.nics_per_node = 16;
  fabric.nic_bandwidth = 8_GBps;
  EXPECT_EQ(round_cluster(2, fabric).gpu_network(gpu(0)), 16_GBps);
  fabric.nics_per_node = 32;
  EXPECT_EQ(round_cluster(2, fabric).gpu_network(gpu(0)), 20_GBps);
}

// System: a leaf with 4 nodes of 80 GB/s, oversubscribed by 4; the second leaf has one node but all its
// ports.
TEST(Cluster, UplinksCarryTheDownlinksOverTheOversubscription) {
  FabricSpec fabric = round_fabric();
  fabric.oversubscription = 4;
  const Cluster cluster = round_cluster(5, fabric);
  int uplinks = 0;
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i) {
    const Link& link = cluster.link(EdgeId(i));
    if (cluster.graph().vertex(link.to).kind != VertexKind::kSpineSwitch) continue;
    EXPECT_EQ(link.capacity, 80_GBps);
    EXPECT_EQ(link.capacity, cluster.leaf_uplinks(gpu(uplinks == 0 ? 0 : 32)));
    ++uplinks;
  }
  EXPECT_EQ(uplinks, 2);
}

TEST(Cluster, CountsLeavesInTreesAlone) {
  const auto leaves = [](FabricKind kind) {
    const Cluster cluster = round_cluster(5, round_fabric(kind));
    return std::pair{cluster.leaf_of(gpu(31)), cluster.leaf_of(gpu(32))};
  };
  EXPECT_EQ(leaves(FabricKind::kFatTree), std::pair(0, 1));
  EXPECT_EQ(leaves(FabricKind::kRailOptimized), std::pair(0, 1));
  EXPECT_EQ(leaves(FabricKind::kSingleSwitch), std::pair(0, 0));
}

TEST(Cluster, RoutesInsideANodeThroughItsSwitch) {
  EXPECT_EQ(shape(round_cluster(1), gpu(0), gpu(5)), "GSG");
  NodeSpec pcie = round_node();
  pcie.nvlink = Bandwidth(0);
  const Cluster cluster = round_cluster(1, round_fabric(), pcie);
  EXPECT_EQ(shape(cluster, gpu(0), gpu(5)), "GPG");
  EXPECT_EQ(narrowest(cluster, gpu(0), gpu(5)), 20_GBps);
}

TEST(Cluster, RoutesNowhereFromAGpuToItself) {
  EXPECT_TRUE(round_cluster(2).route(gpu(3), gpu(3)).empty());
}

TEST(Cluster, RoutesThroughOneLeafOrTheSpine) {
  const Cluster cluster = round_cluster(5);
  EXPECT_EQ(shape(cluster, gpu(0), gpu(8)), "GNLNG");
  EXPECT_EQ(shape(cluster, gpu(0), gpu(9)), "GNLNG");
  EXPECT_EQ(shape(cluster, gpu(0), gpu(32)), "GNLTLNG");
  EXPECT_EQ(shape(round_cluster(5, round_fabric(FabricKind::kSingleSwitch)), gpu(0), gpu(32)), "GNLNG");
}

// Another rail: NVLink takes the message to the GPU on the receiver's rail first, where there is NVLink.
TEST(Cluster, RoutesBetweenRailsOverNvlink) {
  const FabricSpec rails = round_fabric(FabricKind::kRailOptimized);
  const Cluster cluster = round_cluster(5, rails);
  EXPECT_EQ(shape(cluster, gpu(0), gpu(8)), "GNLNG");
  EXPECT_EQ(shape(cluster, gpu(0), gpu(13)), "GSGNLNG");
  EXPECT_EQ(shape(cluster, gpu(0), gpu(37)), "GSGNLTLNG");
  NodeSpec pcie = round_node();
  pcie.nvlink = Bandwidth(0);
  EXPECT_EQ(shape(round_cluster(2, rails, pcie), gpu(0), gpu(13)), "GNLTLNG");
}

// Properties of every pair, every fabric, with one NIC per GPU and with one for four.
TEST(Cluster, RoutesAreConnectedLoopFreeAndEquallyLongBothWays) {
  for (const FabricKind kind : kKinds)
    for (const int nics : {2, 8}) {
      FabricSpec fabric = round_fabric(kind);
      fabric.nics_per_node = nics;
      const Cluster cluster = round_cluster(5, fabric);
      const auto vertex = [&](VertexId id) { return cluster.graph().vertex(id); };
      for (int a = 0; a < 40; ++a)
        for (int b = 0; b < 40; ++b) {
          SCOPED_TRACE(testing::Message() << kFabricKindNames[static_cast<std::size_t>(kind)]
                                          << " nics=" << nics << " " << a << " to " << b);
          const auto route = cluster.route(gpu(a), gpu(b));
          EXPECT_EQ(route.size(), cluster.route(gpu(b), gpu(a)).size());
          if (a == b) continue;
          std::set<VertexId> seen = {cluster.link(route.front()).from};
          int switches = 0;
          for (std::size_t i = 0; i < route.size(); ++i) {
            if (i > 0) {
              EXPECT_EQ(cluster.link(route[i]).from, cluster.link(route[i - 1]).to);
            }
            EXPECT_TRUE(seen.insert(cluster.link(route[i]).to).second);
            const VertexKind on_the_way = vertex(cluster.link(route[i]).to).kind;
            switches += on_the_way == VertexKind::kLeafSwitch || on_the_way == VertexKind::kSpineSwitch;
          }
          const Vertex from = vertex(cluster.link(route.front()).from);
          const Vertex to = vertex(cluster.link(route.back()).to);
          EXPECT_EQ(from.node * 8 + from.index, a);
          EXPECT_EQ(to.node * 8 + to.index, b);
          EXPECT_EQ(cluster.switches_between(gpu(a), gpu(b)), switches);
          EXPECT_EQ(narrowest(cluster, gpu(a), gpu(b)), a / 8 == b / 8 ? 100_GBps : 10_GBps);
        }
    }
}

// 128 nodes: 17 vertices and 24 cables each, 7 leaves of 20 nodes, one spine.
TEST(Cluster, Of1024GpusHas2184Vertices) {
  FabricSpec fabric = round_fabric();
  fabric.nodes_per_leaf = 20;
  const Cluster cluster = round_cluster(128, fabric);
  EXPECT_EQ(cluster.graph().vertex_count(), 128u * 17 + 7 + 1);
  EXPECT_EQ(cluster.link_count(), 2u * (128 * 24 + 7));
}

}  // namespace
}  // namespace stagecraft
