// What a job has of a cluster: GPUs of its own, on links of the whole.
#include <gtest/gtest.h>

#include <array>

#include "tests/topology/clusters.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

DeviceId gpu(int number) {
  return device_of(number);
}

// System: 5 nodes of 8 GPUs, 4 nodes to a leaf; a job on nodes 4 and 1, in this order.
TEST(ClusterPart, NumbersItsGpusInTheOrderOfTheList) {
  const Cluster whole = round_cluster(5);
  const Cluster part = whole.part(std::array{4, 1});
  EXPECT_EQ(part.gpu_count(), 16);
  EXPECT_EQ(part.node_count(), 2);
  EXPECT_EQ(part.spec().server_count(), 2);
  EXPECT_EQ(part.name_of(gpu(0)), "node 4 gpu 0");
  EXPECT_EQ(part.name_of(gpu(9)), "node 1 gpu 1");
  EXPECT_EQ(part.first_gpu(1), 8);
}

TEST(ClusterPart, SendsOverTheLinksOfTheWhole) {
  for (const Routing routing : {Routing::kAdaptive, Routing::kEcmp}) {
    FabricSpec fabric = round_fabric();
    fabric.routing = routing;
    fabric.spines = 4;
    const Cluster whole = round_cluster(5, fabric);
    const Cluster part = whole.part(std::array{4, 1});
    EXPECT_EQ(part.link_count(), whole.link_count());
    for (int slot = 0; slot < 8; ++slot) {
      EXPECT_EQ(part.route(gpu(slot), gpu(8)), whole.route(gpu(32 + slot), gpu(8)));
      EXPECT_EQ(part.spread(gpu(8), gpu(slot)), whole.spread(gpu(8), gpu(32 + slot)));
      EXPECT_EQ(part.switches_between(gpu(slot), gpu(8)), 3);
    }
  }
}

// 3 servers to a domain: servers 1, 2 and 4 are two nodes, of two servers and of one.
TEST(ClusterPart, KeepsServersOfANvlinkDomainTogether) {
  NodeSpec node = round_node();
  node.nvlink_domain = 3;
  const Cluster part = round_cluster(6, round_fabric(), node).part(std::array{1, 2, 4});
  EXPECT_EQ(part.node_count(), 2);
  EXPECT_EQ(part.gpus_in(0), 16);
  EXPECT_EQ(part.gpus_in(1), 8);
  EXPECT_EQ(part.node_of(gpu(15)), 0);
}

TEST(ClusterPart, OfAllServersInOrderIsTheCluster) {
  const Cluster whole = round_cluster(3);
  const Cluster part = whole.part(std::array{0, 1, 2});
  EXPECT_EQ(part.spec(), whole.spec());
  for (int i = 0; i < 24; ++i) {
    EXPECT_EQ(part.name_of(gpu(i)), whole.name_of(gpu(i)));
    EXPECT_EQ(part.node_of(gpu(i)), whole.node_of(gpu(i)));
  }
}

}  // namespace
}  // namespace stagecraft
