// Fabrics: how many switches and links they have, by name and capacity, and how bytes spread over them.
#include "topology/fabric.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/topology/clusters.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

// 2 nodes to a leaf, 4 to a pod; 2 spines in a pod, 4 cores.
FabricSpec three_levels() {
  FabricSpec fabric = round_fabric();
  fabric.nodes_per_leaf = 2;
  fabric.nodes_per_pod = 4;
  fabric.spines = 2;
  fabric.cores = 4;
  return fabric;
}

// 3 groups of 2 routers with 2 nodes each; 5 GB/s in a group, 4 GB/s between groups.
FabricSpec dragonfly() {
  FabricSpec fabric = round_fabric(FabricKind::kDragonfly);
  fabric.groups = 3;
  fabric.routers_per_group = 2;
  fabric.nodes_per_router = 2;
  fabric.link_bandwidth = 5_GBps;
  fabric.global_bandwidth = 4_GBps;
  return fabric;
}

FabricSpec torus(std::vector<int> dims) {
  FabricSpec fabric = round_fabric(FabricKind::kTorus);
  fabric.dims = std::move(dims);
  fabric.link_bandwidth = 5_GBps;
  return fabric;
}

FabricSpec with_planes(FabricSpec fabric) {
  fabric.planes = 2;
  return fabric;
}

int switches(const Cluster& cluster) {
  int count = 0;
  for (std::uint32_t i = 0; i < cluster.graph().vertex_count(); ++i)
    count += is_fabric_switch(cluster.graph().vertex(VertexId(i)).kind);
  return count;
}

// Cables of the fabric: not those in a node, nor those of NICs.
int trunks(const Cluster& cluster) {
  int count = 0;
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i) {
    const Link& link = cluster.link(EdgeId(i));
    count += is_fabric_switch(cluster.graph().vertex(link.from).kind) &&
             is_fabric_switch(cluster.graph().vertex(link.to).kind);
  }
  return count / 2;
}

const Link& link_named(const Cluster& cluster, const std::string& name) {
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i)
    if (cluster.link_name(EdgeId(i)) == name) return cluster.link(EdgeId(i));
  ADD_FAILURE() << "no link is named " << name;
  return cluster.link(EdgeId(0));
}

// The way between the switches, by names.
std::vector<std::string> trunk_names(const Cluster& cluster, DeviceId a, DeviceId b) {
  std::vector<std::string> names;
  for (const EdgeId id : cluster.route(a, b)) {
    const Link& link = cluster.link(id);
    if (is_fabric_switch(cluster.graph().vertex(link.from).kind) &&
        is_fabric_switch(cluster.graph().vertex(link.to).kind))
      names.push_back(cluster.link_name(id));
  }
  return names;
}

std::map<std::string, double> shares(const Cluster& cluster, DeviceId a, DeviceId b) {
  std::map<std::string, double> by_name;
  for (const LinkShare& share : cluster.spread(a, b)) by_name[cluster.link_name(share.link)] = share.share;
  return by_name;
}

// System: 8 nodes of 20 GB/s, 2 to a leaf, 2 leaves to a pod, 2 spines in a pod, 4 cores.
// Expectations: 4 leaves, 4 spines, 4 cores; 8 cables from leaves to spines and 8 from spines to cores, two
// cores for the first spine of each pod and two for the second.
TEST(Fabric, OfThreeLevelsStripesItsCores) {
  const Cluster cluster = round_cluster(8, three_levels(), small_node());
  EXPECT_EQ(switches(cluster), 12);
  EXPECT_EQ(trunks(cluster), 16);
  EXPECT_EQ(link_named(cluster, "leaf 0 -> spine 1").capacity, 20_GBps);  // 2 x 20 GB/s over 2 spines
  EXPECT_EQ(link_named(cluster, "spine 0 -> core 1").capacity, 20_GBps);  // 80 GB/s over 2 x 2 cables
  EXPECT_EQ(link_named(cluster, "core 3 -> spine 3").capacity, 20_GBps);
  const auto far = shares(cluster, gpu(0), gpu(15));
  EXPECT_EQ(far.at("leaf 0 -> spine 0"), 0.5);
  EXPECT_EQ(far.at("spine 1 -> core 3"), 0.25);
  EXPECT_EQ(far.at("core 0 -> spine 2"), 0.25);
  EXPECT_EQ(far.at("spine 3 -> leaf 3"), 0.5);
  EXPECT_EQ(cluster.switches_between(gpu(0), gpu(15)), 5);
  EXPECT_EQ(cluster.switches_between(gpu(0), gpu(6)), 3);
  EXPECT_EQ(cluster.switches_between(gpu(0), gpu(2)), 1);
}

// A pod with half of its leaves still has all its ports; the core is oversubscribed by 4 on top of the 2 of
// the leaves: 2 x 20 / 2 = 20 GB/s out of a leaf, 2 x 20 / 4 = 10 GB/s out of a pod.
TEST(Fabric, OversubscribesEachLevel) {
  FabricSpec fabric = three_levels();
  fabric.spines = 1;
  fabric.cores = 1;
  fabric.oversubscription = 2;
  fabric.core_oversubscription = 4;
  const Cluster cluster = round_cluster(6, fabric, small_node());
  EXPECT_EQ(link_named(cluster, "leaf 2 -> spine 1").capacity, 20_GBps);
  EXPECT_EQ(link_named(cluster, "spine 0 -> core 0").capacity, 10_GBps);
  EXPECT_EQ(link_named(cluster, "spine 1 -> core 0").capacity, 10_GBps);
}

TEST(Fabric, OfOneFluidCoreJoinsAllSpines) {
  FabricSpec fabric = three_levels();
  fabric.cores = 1;
  const Cluster cluster = round_cluster(8, fabric, small_node());
  const auto far = shares(cluster, gpu(0), gpu(15));
  EXPECT_EQ(far.at("spine 0 -> core 0"), 0.5);
  EXPECT_EQ(far.at("core 0 -> spine 3"), 0.5);
  EXPECT_EQ(link_named(cluster, "core 0 -> spine 3").capacity, 40_GBps);
}

// Two planes: twice the switches, and GPU 0 reaches the NIC of plane 1 over its NVSwitch.
TEST(Fabric, OfTwoPlanesKeepsThemApart) {
  FabricSpec fabric = with_planes(round_fabric());
  fabric.nodes_per_leaf = 2;
  const Cluster cluster = round_cluster(4, fabric, small_node());
  EXPECT_EQ(switches(cluster), 4 + 2);
  EXPECT_EQ(trunks(cluster), 4);
  EXPECT_EQ(link_named(cluster, "leaf 1 -> spine 1").capacity, 20_GBps);
  const auto across = shares(cluster, gpu(0), gpu(7));
  EXPECT_EQ(across.count("node 0 gpu 0 -> nvswitch"), 1u);
  EXPECT_EQ(across.count("node 0 nic 1 -> leaf 1"), 1u);
  EXPECT_EQ(across.count("leaf 1 -> spine 1"), 1u);
  EXPECT_EQ(across.count("spine 1 -> leaf 3"), 1u);
}

TEST(Fabric, OfTwoPlanesNeedsNoNvlinkToChangeThem) {
  NodeSpec node = small_node();
  node.nvlink = Bandwidth(0);
  const Cluster cluster = round_cluster(2, with_planes(round_fabric(FabricKind::kSingleSwitch)), node);
  EXPECT_EQ(switches(cluster), 2);
  EXPECT_EQ(shares(cluster, gpu(0), gpu(3)).count("node 0 gpu 0 -> pcie root"), 1u);
}

// System: 3 groups of 2 routers. Cables: one in each group, one between each two groups. Group 0 deals the
// cable to group 1 to its router 0 and the one to group 2 to its router 1; group 1 that to group 2 to router
// 2 (its first) and that to group 0 to router 3; group 2 that to group 0 to router 4 and to group 1 to
// router 5.
TEST(Fabric, OfADragonflyNeedsAtMostOneGlobalLink) {
  const Cluster cluster = round_cluster(12, dragonfly(), small_node());
  EXPECT_EQ(switches(cluster), 6);
  EXPECT_EQ(trunks(cluster), 3 + 3);
  EXPECT_EQ(link_named(cluster, "router 0 -> router 1").capacity, 5_GBps);
  EXPECT_EQ(link_named(cluster, "router 0 -> router 3").capacity, 4_GBps);
  EXPECT_EQ(trunk_names(cluster, gpu(0), gpu(4)), (std::vector<std::string>{"router 0 -> router 1"}));
  EXPECT_EQ(
      trunk_names(cluster, gpu(4), gpu(8)),
      (std::vector<std::string>{"router 1 -> router 0", "router 0 -> router 3", "router 3 -> router 2"}));
}

// Two cables between each two groups of two routers: every router has one of them, and the nearer is taken.
TEST(Fabric, OfADragonflyTakesTheGlobalLinkThatIsNearest) {
  FabricSpec fabric = dragonfly();
  fabric.global_links = 2;
  const Cluster cluster = round_cluster(12, fabric, small_node());
  EXPECT_EQ(trunks(cluster), 3 + 6);
  for (int router = 0; router < 2; ++router) {
    const auto names = trunk_names(cluster, gpu(4 * router), gpu(8));
    EXPECT_LE(names.size(), 2u);
  }
}

// System: 4 x 3 routers, the first dimension fastest. Rings: 3 of 4 and 4 of 3 cables each, 24 in all.
// From router 0 to router 5 (1, 1): along the first dimension, then along the second.
TEST(Fabric, OfATorusGoesDimensionByDimension) {
  const Cluster cluster = round_cluster(12, torus({4, 3}), small_node());
  EXPECT_EQ(switches(cluster), 12);
  EXPECT_EQ(trunks(cluster), 24);
  EXPECT_EQ(trunk_names(cluster, gpu(0), gpu(10)),
            (std::vector<std::string>{"router 0 -> router 1", "router 1 -> router 5"}));
  EXPECT_EQ(trunk_names(cluster, gpu(0), gpu(22)),  // router 11 = (3, 2): round the other way, twice
            (std::vector<std::string>{"router 0 -> router 3", "router 3 -> router 11"}));
  const auto opposite = shares(cluster, gpu(0), gpu(4));  // router 2 is two hops away both ways
  EXPECT_EQ(opposite.at("router 0 -> router 1"), 0.5);
  EXPECT_EQ(opposite.at("router 3 -> router 2"), 0.5);
}

TEST(Fabric, OfATorusHasOneCableInARingOfTwo) {
  EXPECT_EQ(trunks(round_cluster(4, torus({2, 2}), small_node())), 4);
  EXPECT_EQ(trunks(round_cluster(4, torus({4, 1}), small_node())), 4);
}

TEST(Fabric, RefusesATorusOfAnotherSize) {
  EXPECT_THROW(round_cluster(5, torus({2, 2}), small_node()), InternalError);
}

struct Case {
  std::string name;
  int nodes;
  FabricSpec fabric;
};

std::vector<Case> cases() {
  FabricSpec rails = three_levels();
  rails.kind = FabricKind::kRailOptimized;
  FabricSpec fluid = three_levels();
  fluid.cores = 1;
  FabricSpec dealt = dragonfly();
  dealt.global_links = 2;
  return {{"three levels", 8, three_levels()},
          {"fluid core", 8, fluid},
          {"rails", 8, rails},
          {"rails in planes", 7, with_planes(rails)},
          {"planes", 8, with_planes(three_levels())},
          {"single switches", 5, with_planes(round_fabric(FabricKind::kSingleSwitch))},
          {"dragonfly", 12, dragonfly()},
          {"dragonfly in planes", 11, with_planes(dealt)},
          {"torus", 16, torus({4, 2, 2})},
          {"torus in planes", 12, with_planes(torus({4, 3}))}};
}

// Property: as many as are built.
TEST(Fabric, CountsItsCablesBeforeItIsBuilt) {
  for (const Case& tested : cases())
    EXPECT_EQ(cables_of(tested.fabric, tested.nodes, 2),
              trunks(round_cluster(tested.nodes, tested.fabric, small_node())))
        << tested.name;
}

// What leaves a vertex has entered it, but for a, which gives 1, and b, which takes 1.
void expect_conserved(const Cluster& cluster, DeviceId a, DeviceId b) {
  std::map<VertexId, double> gained;
  const auto spread = cluster.spread(a, b);
  for (std::size_t i = 0; i < spread.size(); ++i) {
    EXPECT_GT(spread[i].share, 0);
    EXPECT_LE(spread[i].share, 1 + 1e-12);
    if (i > 0) {
      EXPECT_LT(spread[i - 1].link, spread[i].link);
    }
    gained[cluster.link(spread[i].link).from] -= spread[i].share;
    gained[cluster.link(spread[i].link).to] += spread[i].share;
  }
  int ends = 0;
  for (const auto& [vertex, gain] : gained) {
    if (std::abs(gain) < 1e-9) continue;
    ++ends;
    EXPECT_EQ(cluster.graph().name(vertex), cluster.name_of(gain < 0 ? a : b));
    EXPECT_NEAR(std::abs(gain), 1, 1e-9);
  }
  EXPECT_EQ(ends, a == b ? 0 : 2);
}

TEST(Fabric, SpreadsWhatItIsGivenAndLosesNothing) {
  std::mt19937 random(7);
  for (Case& tested : cases())
    for (const Routing routing : {Routing::kAdaptive, Routing::kEcmp}) {
      SCOPED_TRACE(tested.name);
      tested.fabric.routing = routing;
      const Cluster cluster = round_cluster(tested.nodes, tested.fabric, small_node());
      std::uniform_int_distribution<int> any(0, cluster.gpu_count() - 1);
      for (int i = 0; i < 200; ++i) expect_conserved(cluster, gpu(any(random)), gpu(any(random)));
    }
}

// What servers may have inside: 4 GPUs in a mesh, below PCIe switches, in NVLink domains.
TEST(Fabric, SpreadsFromEveryKindOfServer) {
  NodeSpec mesh = round_node();
  mesh.gpus = mesh.nics = 4;
  NodeSpec pcie = mesh, domain = mesh;
  mesh.nvlink_pairs = {{0, 1, 2}, {1, 2, 1}, {2, 3, 1}, {3, 0, 1}};
  pcie.nvlink = Bandwidth(0);
  pcie.nics = 2;
  pcie.gpus_per_pcie_switch = 1;
  pcie.sockets = 2;
  pcie.socket_link = 30_GBps;
  domain.nvlink_domain = 3;
  domain.nvswitch = 500_GBps;
  std::mt19937 random(11);
  for (Case& tested : cases())
    for (const NodeSpec& node : {mesh, pcie, domain}) {
      SCOPED_TRACE(tested.name);
      const Cluster cluster = round_cluster(tested.nodes, tested.fabric, node);
      std::uniform_int_distribution<int> any(0, cluster.gpu_count() - 1);
      for (int i = 0; i < 100; ++i) expect_conserved(cluster, gpu(any(random)), gpu(any(random)));
    }
}

// ECMP takes one of the ways that adaptive routing shares, the same each time.
TEST(Fabric, RoutesByHashOverOneOfTheEqualWays) {
  for (Case& tested : cases()) {
    SCOPED_TRACE(tested.name);
    const Cluster adaptive = round_cluster(tested.nodes, tested.fabric, small_node());
    tested.fabric.routing = Routing::kEcmp;
    const Cluster ecmp = round_cluster(tested.nodes, tested.fabric, small_node());
    for (int b = 1; b < ecmp.gpu_count(); ++b) {
      const auto all = shares(adaptive, gpu(0), gpu(b)), one = shares(ecmp, gpu(0), gpu(b));
      for (const auto& [name, share] : one) {
        EXPECT_EQ(share, 1);
        EXPECT_EQ(all.count(name), 1u) << name;
      }
      EXPECT_EQ(one, shares(ecmp, gpu(0), gpu(b)));
      EXPECT_EQ(one.size(), ecmp.route(gpu(0), gpu(b)).size());
    }
  }
}

// System: 4,032 pairs of different leaves over 4 spines. A fair coin per pair gives 1,008 each with a
// standard deviation of 27; a hash is allowed 4 of them.
TEST(Fabric, HashesEvenlyAndBySeed) {
  FabricSpec fabric = round_fabric();
  fabric.nodes_per_leaf = 1;
  fabric.spines = 4;
  fabric.routing = Routing::kEcmp;
  NodeSpec node = round_node();
  node.gpus = node.nics = 1;
  const Cluster cluster = round_cluster(64, fabric, node);
  fabric.routing_seed = 1;
  const Cluster other = round_cluster(64, fabric, node);
  std::map<std::string, int> taken;
  int moved = 0;
  for (int a = 0; a < 64; ++a)
    for (int b = 0; b < 64; ++b) {
      if (a == b) continue;
      const std::string up = trunk_names(cluster, gpu(a), gpu(b)).front();
      ++taken[up.substr(up.find("spine"))];
      moved += trunk_names(other, gpu(a), gpu(b)).front() != up;
    }
  ASSERT_EQ(taken.size(), 4u);
  for (const auto& [spine, pairs] : taken) EXPECT_NEAR(pairs, 1008, 110) << spine;
  EXPECT_NEAR(moved, 3024, 110);  // three in four
}

}  // namespace
}  // namespace stagecraft
