// Traffic over uplinks against a pencil. 4 nodes of 80 GB/s below a leaf, oversubscribed by 4: 80 GB/s up.
#include "topology/uplink_table.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/topology/clusters.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

Cluster tight_cluster(int nodes, const NodeSpec& node = round_node()) {
  FabricSpec fabric = round_fabric();
  fabric.oversubscription = 4;
  return round_cluster(nodes, fabric, node);
}

// The GPU at this place of each of these nodes.
std::vector<DeviceId> on(std::initializer_list<int> nodes, int place = 0) {
  std::vector<DeviceId> gpus;
  for (const int node : nodes) gpus.push_back(gpu(8 * node + place));
  return gpus;
}

// Two rings of four nodes each, one over the even nodes and one over the odd ones. Expectations: each leaves
// a leaf once with all that it hands on, whichever rank of the node it enters by.
TEST(UplinkTable, CountsARingOnceForEachLeafThatItLeaves) {
  const Cluster cluster = tight_cluster(8);
  UplinkTable table;
  table.add(cluster, on({0, 2, 4, 6}));
  EXPECT_DOUBLE_EQ(table.of(cluster, on({0, 2, 4, 6})).ring, 1 / 80e9);
  table.add(cluster, on({1, 3, 5, 7}));
  EXPECT_DOUBLE_EQ(table.of(cluster, on({0, 2, 4, 6})).ring, 2 / 80e9);
  std::vector<DeviceId> pairs;  // one ring over all nodes, with two ranks on each
  for (int node = 0; node < 8; ++node)
    for (const int place : {4, 5}) pairs.push_back(gpu(8 * node + place));
  table.add(cluster, pairs);
  EXPECT_DOUBLE_EQ(table.of(cluster, pairs).ring, 3 / 80e9);
}

// A ring that comes back to a leaf leaves it again.
TEST(UplinkTable, CountsARingAsOftenAsItComesBack) {
  const Cluster cluster = tight_cluster(8);
  const std::vector<DeviceId> ring = {gpu(0), gpu(8 * 4), gpu(8), gpu(8 * 5)};
  UplinkTable table;
  table.add(cluster, ring);
  EXPECT_DOUBLE_EQ(table.of(cluster, ring).ring, 2 / 80e9);
}

// Of two pairs below different leaves each sends half of S to the other; of two below the same leaf none.
TEST(UplinkTable, KnowsWhichPairsOfAnAllToAllAreBelowOneLeaf) {
  const Cluster cluster = tight_cluster(8);
  UplinkTable table;
  for (const int node : {0, 1, 2, 3}) table.add(cluster, on({node, node + 4}));
  for (const int place : {1, 2}) table.add(cluster, on({0, 1, 2, 3}, place));
  EXPECT_DOUBLE_EQ(table.of(cluster, on({0, 4})).direct, 4 * 0.5 / 80e9);
  EXPECT_EQ(table.of(cluster, on({0, 1, 2, 3}, 1)), UplinkLoad());
}

// An all-to-all of the 64 ranks on 8 nodes: the 32 below a leaf send S/64 to each of 32 others.
TEST(UplinkTable, OfAnEvenAllToAllIsTheShareBeyondTheLeaf) {
  const Cluster cluster = tight_cluster(8);
  std::vector<DeviceId> all;
  for (int i = 0; i < 64; ++i) all.push_back(gpu(i));
  UplinkTable table;
  table.add(cluster, all);
  EXPECT_DOUBLE_EQ(table.of(cluster, all).direct, 32 * 32 / 64.0 / 80e9);
}

// NVLink domains of two nodes, which begin in the middle of a leaf of three: their members meet over NVLink.
TEST(UplinkTable, LeavesOutWhatMeetsInsideANode) {
  NodeSpec node = round_node();
  node.nvlink_domain = 2;
  FabricSpec fabric = round_fabric();
  fabric.nodes_per_leaf = 3;
  fabric.oversubscription = 3;
  const Cluster cluster = round_cluster(4, fabric, node);
  const std::vector<DeviceId> domain = on({2, 3}), all = on({0, 1, 2, 3});
  UplinkTable table;
  table.add(cluster, domain);
  EXPECT_EQ(table.of(cluster, domain), UplinkLoad());
  table.add(cluster, all);  // from nodes 0 and 1 to 3
  EXPECT_DOUBLE_EQ(table.of(cluster, all).direct, 2 / 4.0 / 80e9);
}

// Of two nodes a tree has one edge, and the two trees hand on half of S each; PAT's first hop is all there is.
TEST(UplinkTable, CountsTheEdgesOfBothTrees) {
  const Cluster cluster = tight_cluster(8);
  UplinkTable table;
  table.add(cluster, on({0, 4}));
  EXPECT_DOUBLE_EQ(table.of(cluster, on({0, 4})).tree, 1 / 80e9);
  EXPECT_DOUBLE_EQ(table.of(cluster, on({0, 4})).pat, 0.5 / 80e9);
}

}  // namespace
}  // namespace stagecraft
