// The inside of servers: switches with ceilings, meshes, PCIe trees, NVLink domains.
#include "topology/server_graph.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "tests/topology/clusters.hpp"
#include "topology/cluster.hpp"
#include "topology/cluster_view.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

std::string way(const Cluster& cluster, int a, int b) {
  std::string text;
  for (const EdgeId id : cluster.route(gpu(a), gpu(b))) {
    if (text.empty()) text = cluster.graph().name(cluster.link(id).from);
    text += " > " + cluster.graph().name(cluster.link(id).to);
  }
  return text;
}

Bandwidth capacity(const Cluster& cluster, const std::string& name) {
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i)
    if (cluster.link_name(EdgeId(i)) == name) return cluster.link(EdgeId(i)).capacity;
  ADD_FAILURE() << "no link is named " << name;
  return {};
}

TEST(ServerGraph, OfAnNvSwitchWithACeilingHasTwoEnds) {
  NodeSpec node = round_node();
  node.nvswitch = 500_GBps;
  const Cluster cluster = round_cluster(1, round_fabric(), node);
  EXPECT_EQ(way(cluster, 0, 5), "node 0 gpu 0 > node 0 nvswitch > node 0 nvswitch out > node 0 gpu 5");
  EXPECT_EQ(capacity(cluster, "node 0 nvswitch -> nvswitch out"), 500_GBps);
  EXPECT_EQ(cluster.link_count(), 33u);
}

// System: 4 GPUs in a ring with two links each way round GPU 0 - 1, one elsewhere; a GPU has 3 links at most.
TEST(ServerGraph, OfAMeshSharesNvlinkByLinks) {
  NodeSpec node = round_node();
  node.gpus = node.nics = 4;
  node.nvlink = 30_GBps;
  node.nvlink_pairs = {{0, 1, 2}, {1, 2, 1}, {2, 3, 1}, {3, 0, 1}};
  const Cluster cluster = round_cluster(1, round_fabric(), node);
  EXPECT_EQ(capacity(cluster, "node 0 gpu 0 -> gpu 1"), 20_GBps);
  EXPECT_EQ(capacity(cluster, "node 0 gpu 2 -> gpu 3"), 10_GBps);
  EXPECT_EQ(way(cluster, 0, 1), "node 0 gpu 0 > node 0 gpu 1");
  std::map<std::string, double> shares;
  for (const LinkShare& share : cluster.spread(gpu(0), gpu(2)))
    shares[cluster.link_name(share.link)] = share.share;
  EXPECT_EQ(shares.size(), 4u);
  EXPECT_EQ(shares.at("node 0 gpu 0 -> gpu 1"), 0.5);
  EXPECT_EQ(shares.at("node 0 gpu 3 -> gpu 2"), 0.5);
}

TEST(ServerGraph, OfAMeshFallsBackToPcie) {
  NodeSpec node = round_node();
  node.nvlink_pairs = {{0, 1, 1}, {2, 3, 1}};
  EXPECT_EQ(way(round_cluster(1, round_fabric(), node), 0, 3),
            "node 0 gpu 0 > node 0 pcie root > node 0 gpu 3");
}

// System: 8 GPUs without NVLink, two to a PCIe switch, two sockets; 4 NICs, each below its first GPU's
// switch.
TEST(ServerGraph, OfPcieSwitchesSharesTheirUplinks) {
  NodeSpec node = round_node();
  node.nvlink = Bandwidth(0);
  node.nics = 4;
  node.gpus_per_pcie_switch = 2;
  node.pcie_uplink = 16_GBps;
  node.sockets = 2;
  node.socket_link = 30_GBps;
  const Cluster cluster = round_cluster(2, round_fabric(), node);
  EXPECT_EQ(way(cluster, 0, 1), "node 0 gpu 0 > node 0 pcie switch 0 > node 0 gpu 1");
  EXPECT_EQ(way(cluster, 0, 2),
            "node 0 gpu 0 > node 0 pcie switch 0 > node 0 pcie root 0 > node 0 pcie switch 1 > node 0 gpu 2");
  EXPECT_EQ(way(cluster, 0, 7),
            "node 0 gpu 0 > node 0 pcie switch 0 > node 0 pcie root 0 > node 0 pcie root 1 > node 0 pcie "
            "switch 3 > "
            "node 0 gpu 7");
  EXPECT_EQ(
      way(cluster, 1, 8),
      "node 0 gpu 1 > node 0 pcie switch 0 > node 0 nic 0 > leaf 0 > node 1 nic 0 > node 1 pcie switch 0 > "
      "node 1 gpu 0");
  EXPECT_EQ(capacity(cluster, "node 1 pcie switch 3 -> pcie root 1"), 16_GBps);
  EXPECT_EQ(capacity(cluster, "node 1 pcie root 1 -> pcie root 0"), 30_GBps);
}

// System: part of 8 GPUs, with 8 NICs and four GPUs to a PCIe switch, then with 4 NICs and two. Expectations: the
// NICs of those GPUs are there, below the switches that are there.
TEST(ServerGraph, OfPartOfANodeHasTheNicsOfItsGpus) {
  NodeSpec node = round_node();
  node.gpus_per_pcie_switch = 4;
  const Cluster half({.groups = {{node, 1}}, .gpus_used = 4, .fabric = round_fabric()});
  EXPECT_EQ(totals(half).nics, 4);
  EXPECT_EQ(totals(half).injection, 40_GBps);
  EXPECT_EQ(capacity(half, "node 0 nic 3 -> pcie switch 0"), 20_GBps);
  EXPECT_EQ(half.graph().vertex_count(), 4u + 1 + 1 + 4 + 1);  // GPUs, NVSwitch, root, NICs, PCIe switch
  node.nics = 4;
  node.gpus_per_pcie_switch = 2;
  for (int gpus = 1; gpus <= 8; ++gpus) {
    SCOPED_TRACE(gpus);
    const Cluster part({.groups = {{node, 1}}, .gpus_used = gpus, .fabric = round_fabric()});
    EXPECT_EQ(totals(part).nics, (gpus + 1) / 2);
    for (std::uint32_t i = 0; i < part.link_count(); ++i)
      EXPECT_LT(part.link(EdgeId(i)).to.index(), part.graph().vertex_count());
  }
}

TEST(ServerGraph, OfTwoSocketsWithoutSwitchesHasARootEach) {
  NodeSpec node = round_node();
  node.nvlink = Bandwidth(0);
  node.sockets = 2;
  node.socket_link = 30_GBps;
  const Cluster cluster = round_cluster(1, round_fabric(), node);
  EXPECT_EQ(way(cluster, 0, 3), "node 0 gpu 0 > node 0 pcie root 0 > node 0 gpu 3");
  EXPECT_EQ(way(cluster, 3, 4), "node 0 gpu 3 > node 0 pcie root 0 > node 0 pcie root 1 > node 0 gpu 4");
}

// System: the first 4, then the first 6 of 8 GPUs. Expectations: they are in the sockets that they are in where
// all are used.
TEST(ServerGraph, OfPartOfANodeHasTheSocketsOfItsGpus) {
  NodeSpec node = round_node();
  node.nvlink = Bandwidth(0);
  node.sockets = 2;
  node.socket_link = 30_GBps;
  const Cluster half({.groups = {{node, 1}}, .gpus_used = 4, .fabric = round_fabric()});
  EXPECT_EQ(way(half, 0, 3), "node 0 gpu 0 > node 0 pcie root > node 0 gpu 3");
  const Cluster most({.groups = {{node, 1}}, .gpus_used = 6, .fabric = round_fabric()});
  EXPECT_EQ(way(most, 0, 3), "node 0 gpu 0 > node 0 pcie root 0 > node 0 gpu 3");
  EXPECT_EQ(way(most, 3, 4), "node 0 gpu 3 > node 0 pcie root 0 > node 0 pcie root 1 > node 0 gpu 4");
}

// System: 5 servers of 4 GPUs, 2 to an NVLink domain. Expectations: a node is a domain, the last one half
// full; the network of a node is that of both its servers.
TEST(ServerGraph, OfAnNvlinkDomainIsOneNode) {
  NodeSpec node = round_node();
  node.gpus = node.nics = 4;
  node.nvlink_domain = 2;
  const Cluster cluster = round_cluster(5, round_fabric(), node);
  EXPECT_EQ(cluster.node_count(), 3);
  EXPECT_EQ(cluster.gpus_in(0), 8);
  EXPECT_EQ(cluster.gpus_in(2), 4);
  EXPECT_EQ(cluster.first_gpu(2), 16);
  EXPECT_EQ(cluster.node_of(gpu(7)), 0);
  EXPECT_EQ(cluster.server_of(gpu(7)), 1);
  EXPECT_EQ(cluster.node_network(gpu(7)), 80_GBps);
  EXPECT_EQ(cluster.gpu_network(gpu(7)), 10_GBps);
  EXPECT_EQ(way(cluster, 0, 7), "node 0 gpu 0 > nvlink domain 0 > node 1 gpu 3");
  EXPECT_EQ(way(cluster, 7, 8), "node 1 gpu 3 > node 1 nic 3 > leaf 0 > node 2 nic 0 > node 2 gpu 0");
  EXPECT_EQ(cluster.switches_between(gpu(0), gpu(7)), 0);
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i)
    EXPECT_EQ(cluster.between_nodes(EdgeId(i)),
              cluster.link_name(EdgeId(i)).find("leaf") != std::string::npos);
}

TEST(ServerGraph, OfOneNvlinkDomainHasNoFabric) {
  NodeSpec node = round_node();
  node.gpus = node.nics = 4;
  node.nvlink_domain = 18;
  node.nvswitch = 3000_GBps;
  const Cluster cluster = round_cluster(18, round_fabric(), node);
  EXPECT_EQ(cluster.gpu_count(), 72);
  EXPECT_EQ(cluster.node_count(), 1);
  EXPECT_EQ(way(cluster, 0, 71), "node 0 gpu 0 > nvlink domain 0 > nvlink domain out 0 > node 17 gpu 3");
}

}  // namespace
}  // namespace stagecraft
