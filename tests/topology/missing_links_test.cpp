// Clusters that lack links: ways lead round what is missing, or the cluster says which pair has none.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "tests/topology/clusters.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

LinkException missing(const std::string& name) {
  return {.name = name, .missing = true};
}

// 2 GPUs and 2 NICs; 2 nodes to a leaf.
ClusterSpec four_nodes() {
  NodeSpec node = round_node();
  node.gpus = node.nics = 2;
  FabricSpec fabric = round_fabric();
  fabric.nodes_per_leaf = 2;
  fabric.spines = 2;
  return {.groups = {{node, 4}}, .fabric = fabric};
}

std::string way(const Cluster& cluster, int a, int b) {
  std::string text;
  for (const EdgeId link : cluster.route(gpu(a), gpu(b))) text += cluster.link_name(link) + "; ";
  return text;
}

// Without its NIC GPU 0 goes over NVLink to GPU 1 and leaves by the other NIC.
TEST(MissingLinks, OfANicAreGoneRoundOverTheOtherNic) {
  ClusterSpec spec = four_nodes();
  spec.links = {missing("node 0 nic 0 -> leaf 0")};
  const Cluster cluster(spec);
  EXPECT_EQ(cluster.unreachable(), std::nullopt);
  EXPECT_EQ(way(cluster, 0, 3),
            "node 0 gpu 0 -> nvswitch; node 0 nvswitch -> gpu 1; node 0 gpu 1 -> nic 1; "
            "node 0 nic 1 -> leaf 0; leaf 0 -> node 1 nic 1; node 1 nic 1 -> gpu 1; ");
}

// One of two spines is cut off from leaf 1: all bytes between the leaves take the other.
TEST(MissingLinks, OfASpineLeaveTheOtherSpineAlone) {
  ClusterSpec spec = four_nodes();
  spec.links = {missing("leaf 1 -> spine 0")};
  const Cluster cluster(spec);
  for (const LinkShare& way : cluster.spread(gpu(0), gpu(4))) {
    EXPECT_EQ(way.share, 1);
    EXPECT_EQ(cluster.link_name(way.link).find("spine 0"), std::string::npos);
  }
}

TEST(MissingLinks, OfAllNicsCutTheirNodeOff) {
  ClusterSpec spec = four_nodes();
  spec.links = {missing("node 2 nic * -> *")};
  const auto cut_off = Cluster(spec).unreachable();
  ASSERT_TRUE(cut_off.has_value());
  EXPECT_EQ(cut_off->first, gpu(0));
  EXPECT_EQ(cut_off->second, gpu(4));
}

// System: servers of one GPU, three to an NVLink domain, all below one leaf; server 0 has lost its NIC and
// reaches its own domain alone.
TEST(MissingLinks, OfOneServerCutItOffFromOtherDomains) {
  NodeSpec tray = round_node();
  tray.gpus = tray.nics = 1;
  tray.nvlink_domain = 3;
  const Cluster cluster({.groups = {{tray, 6}},
                         .fabric = round_fabric(FabricKind::kSingleSwitch),
                         .links = {missing("node 0 nic 0 -> leaf 0")}});
  EXPECT_EQ(cluster.route(gpu(0), gpu(2)).size(), 2u);
  const auto cut_off = cluster.unreachable();
  ASSERT_TRUE(cut_off.has_value());
  EXPECT_EQ(cut_off->first, gpu(0));
  EXPECT_EQ(cut_off->second, gpu(3));
}

using Random = std::mt19937;

int any(Random& random, int from, int to) {
  return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1));
}

NodeSpec any_node(Random& random) {
  NodeSpec node = round_node();
  node.gpus = 2 * any(random, 1, 3);
  node.nics = any(random, 1, node.gpus);
  node.socket_link = 15_GBps;
  switch (any(random, 0, 5)) {
    case 0:
      node.nvlink = Bandwidth(0);
      node.sockets = any(random, 1, 2);
      break;
    case 1:
      node.gpus_per_pcie_switch = 1;
      break;
    case 2:
      node.nvlink_domain = 3;
      break;
    case 3:
      node.nvswitch = 300_GBps;
      break;
    case 4:
      for (int i = 0; i + 1 < node.gpus; ++i) node.nvlink_pairs.push_back({i, i + 1, 1});
      break;
    default:
      break;
  }
  return node;
}

ClusterSpec any_cluster(Random& random) {
  const NodeSpec node = any_node(random);
  FabricSpec fabric = round_fabric(static_cast<FabricKind>(any(random, 0, 4)));
  int nodes = any(random, 1, 6);
  fabric.routing = static_cast<Routing>(any(random, 0, 1));
  fabric.link_bandwidth = 5_GBps;
  fabric.nodes_per_leaf = any(random, 1, 3);
  fabric.spines = any(random, 1, 2);
  if (any(random, 0, 1) == 0) fabric.nodes_per_pod = 2 * fabric.nodes_per_leaf;
  fabric.cores = any(random, 0, 1) == 0 ? 1 : 2 * fabric.spines;
  fabric.planes = node.nics % 2 == 0 ? any(random, 1, 2) : 1;
  if (fabric.kind == FabricKind::kTorus) {
    fabric.dims = {any(random, 1, 3), any(random, 1, 3)};
    nodes = fabric.dims[0] * fabric.dims[1];
  }
  if (fabric.kind == FabricKind::kTorus || fabric.kind == FabricKind::kDragonfly) fabric.nodes_per_pod = 0;
  if (fabric.kind == FabricKind::kSingleSwitch) fabric.nodes_per_pod = 0;
  fabric.groups = 3;
  fabric.routers_per_group = 2;
  fabric.nodes_per_router = 1;
  fabric.global_links = any(random, 1, 2);
  return {.groups = {{node, nodes}}, .fabric = fabric};
}

// What flows into each vertex less what flows out is -1 at the sender, 1 at the receiver, 0 elsewhere.
bool conserves(const Cluster& cluster, DeviceId from, DeviceId to) {
  std::map<VertexId, double> gain;
  for (const LinkShare& way : cluster.spread(from, to)) {
    gain[cluster.link(way.link).from] -= way.share;
    gain[cluster.link(way.link).to] += way.share;
  }
  int ends = 0;
  for (const auto& [vertex, sum] : gain) {
    const bool end = std::abs(std::abs(sum) - 1) < 1e-9;
    if (!end && std::abs(sum) > 1e-9) return false;
    ends += end ? 1 : 0;
  }
  return ends == 2;
}

bool has_way(const Cluster& cluster, DeviceId from, DeviceId to) {
  try {
    return conserves(cluster, from, to);
  } catch (const InternalError&) {
    return false;
  }
}

// Property, over fabrics and nodes of all kinds with up to three missing links: either every pair has a way
// that loses nothing on the road, or the pair that the cluster names has none.
TEST(MissingLinks, LeaveEveryPairAWayOrAreNoticed) {
  Random random(7);
  int whole = 0, apart = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    ClusterSpec spec = any_cluster(random);
    const Cluster intact(spec);
    std::set<std::string> names;
    for (int i = any(random, 0, 3); i > 0; --i)
      names.insert(intact.link_name(
          EdgeId(static_cast<std::uint32_t>(any(random, 0, static_cast<int>(intact.link_count()) - 1)))));
    for (const std::string& name : names)
      spec.links.push_back({.name = name, .missing = true, .both = false});
    const Cluster cluster(spec);
    const auto cut_off = cluster.unreachable();
    if (cut_off) {
      ++apart;
      EXPECT_THROW((void)cluster.spread(cut_off->first, cut_off->second), InternalError);
      continue;
    }
    ++whole;
    for (int a = 0; a < cluster.gpu_count(); ++a)
      for (int b = 0; b < cluster.gpu_count(); ++b) {
        if (a == b) continue;
        EXPECT_TRUE(has_way(cluster, gpu(a), gpu(b))) << a << " to " << b;
      }
  }
  EXPECT_GT(whole, 100);
  EXPECT_GT(apart, 10);
}

}  // namespace
}  // namespace stagecraft
