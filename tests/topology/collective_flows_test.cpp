// Which links a collective loads, against a pencil and against the closed form.
#include "topology/collective_flows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "tests/topology/clusters.hpp"
#include "topology/collective.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

// `ranks` GPUs of each of `nodes` nodes, from slot `first` on.
std::vector<DeviceId> members(int nodes, int ranks, int first = 0) {
  std::vector<DeviceId> list;
  for (int node = 0; node < nodes; ++node)
    for (int i = 0; i < ranks; ++i) list.push_back(gpu(8 * node + first + i));
  return list;
}

std::map<std::string, double> named(const Cluster& cluster, const std::vector<LinkLoad>& loads) {
  std::map<std::string, double> by_name;
  for (const LinkLoad& load : loads) by_name[cluster.link_name(load.link)] = load.bytes / 1e6;
  return by_name;
}

// System: two nodes of 8, GPU 0 of each. 40 MB: each sends 2*1/2 * 40 out of its NIC and gets as much.
TEST(CollectiveLoads, OfARailPassOneNicOfEachNode) {
  const Cluster cluster = round_cluster(2);
  const auto loads = named(
      cluster, collective_loads(cluster, members(2, 1), CollectiveKind::kAllReduce, "ring", megabytes(40)));
  EXPECT_EQ(loads.size(), 8U);  // GPU, NIC, leaf and back, of both
  for (const auto& [name, bytes] : loads) EXPECT_DOUBLE_EQ(bytes, 40) << name;
  EXPECT_EQ(loads.count("node 0 nic 0 -> leaf 0"), 1U);
}

// System: two whole nodes. A ring of 16 sends 2*15/16 * 80 = 150 MB a hop: an eighth of it over each NIC.
TEST(CollectiveLoads, OfARingOverWholeNodesUseEveryNic) {
  const Cluster cluster = round_cluster(2);
  const auto loads = named(
      cluster, collective_loads(cluster, members(2, 8), CollectiveKind::kAllReduce, "ring", megabytes(80)));
  for (int nic = 0; nic < 8; ++nic)
    EXPECT_DOUBLE_EQ(loads.at("node 1 nic " + std::to_string(nic) + " -> leaf 0"), 150.0 / 8);
  EXPECT_DOUBLE_EQ(loads.at("node 0 gpu 3 -> nvswitch"), 150.0 * 7 / 8);
}

TEST(CollectiveLoads, OfNvlsAreTheBufferOnceEachWay) {
  const Cluster cluster = round_cluster(1);
  const auto loads = named(
      cluster, collective_loads(cluster, members(1, 8), CollectiveKind::kAllReduce, "nvls", megabytes(80)));
  EXPECT_EQ(loads.size(), 16U);
  for (const auto& [name, bytes] : loads) EXPECT_DOUBLE_EQ(bytes, 80) << name;
}

TEST(MessageLoads, AreTheMessageOnItsWay) {
  const Cluster cluster = round_cluster(2);
  const auto loads = named(cluster, message_loads(cluster, gpu(1), gpu(9), megabytes(10)));
  EXPECT_EQ(loads.size(), 4U);
  for (const auto& [name, bytes] : loads) EXPECT_DOUBLE_EQ(bytes, 10) << name;
  EXPECT_TRUE(message_loads(cluster, gpu(1), gpu(1), megabytes(10)).empty());
  EXPECT_TRUE(message_loads(cluster, gpu(1), gpu(9), Bytes(0)).empty());
}

// Bytes that enter and leave each vertex.
struct Flow {
  double in = 0;
  double out = 0;
};

std::map<VertexId, Flow> flows(const Cluster& cluster, const std::vector<LinkLoad>& loads) {
  std::map<VertexId, Flow> by_vertex;
  for (const LinkLoad& load : loads) {
    by_vertex[cluster.link(load.link).from].out += load.bytes;
    by_vertex[cluster.link(load.link).to].in += load.bytes;
  }
  return by_vertex;
}

std::vector<DeviceId> random_group(std::mt19937& random, int gpus) {
  std::vector<DeviceId> all;
  for (int i = 0; i < gpus; ++i)
    if (random() % 3 == 0) all.push_back(gpu(i));
  return all;
}

// Property: on every fabric and for every algorithm, switches and NICs pass on what they get, and each link
// is listed once, in ascending order. (A GPU on the way of a rail passes on as well: what enters all GPUs
// leaves them.)
TEST(CollectiveLoads, AreConservedByEveryVertex) {
  std::mt19937 random(11);
  for (const FabricKind kind :
       {FabricKind::kSingleSwitch, FabricKind::kFatTree, FabricKind::kRailOptimized}) {
    const Cluster cluster = round_cluster(6, round_fabric(kind));
    for (int round = 0; round < 20; ++round) {
      const std::vector<DeviceId> group = random_group(random, 48);
      if (group.size() < 2) continue;
      for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
        if (algorithm.name == "nvls") continue;  // in one node: above
        const auto collective = algorithm.serves(CollectiveKind::kAllReduce)   ? CollectiveKind::kAllReduce
                                : algorithm.serves(CollectiveKind::kAllGather) ? CollectiveKind::kAllGather
                                                                               : CollectiveKind::kAllToAll;
        const std::vector<LinkLoad> loads =
            collective_loads(cluster, group, collective, algorithm.name, megabytes(100));
        SCOPED_TRACE(testing::Message() << algorithm.name << " of " << group.size());
        EXPECT_TRUE(std::is_sorted(loads.begin(), loads.end(),
                                   [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; }));
        EXPECT_EQ(std::adjacent_find(loads.begin(), loads.end(),
                                     [](const LinkLoad& a, const LinkLoad& b) { return a.link == b.link; }),
                  loads.end());
        for (const auto& [vertex, flow] : flows(cluster, loads)) EXPECT_NEAR(flow.in, flow.out, 1);
      }
    }
  }
}

struct Placement {
  const char* name;
  std::vector<DeviceId> members;
  GroupPlacement group;
};

std::vector<Placement> regular_placements() {
  return {{"in a node", members(1, 8), {8, 1, 8, 1}},
          {"half a node", members(1, 4), {4, 1, 4, 2}},
          {"one GPU per node", members(8, 1), {8, 8, 1, 1}},
          {"whole nodes", members(8, 8), {64, 8, 8, 1}},
          {"half nodes", members(4, 4), {16, 4, 4, 1}},
          {"tensor over two nodes", members(2, 8), {16, 2, 8, 1}}};
}

// Seconds that the most loaded link needs: NVLinks at node_efficiency, all others at network_efficiency.
double busiest(const Cluster& cluster, const std::vector<LinkLoad>& loads, const CollectiveCost& cost) {
  double seconds = 0;
  for (const LinkLoad& load : loads) {
    const std::string name = cluster.link_name(load.link);
    const bool nvlink = name.find("nvswitch") != std::string::npos;
    const double efficiency = nvlink ? cost.node_efficiency : cost.network_efficiency;
    seconds = std::max(seconds, load.bytes / (cluster.link(load.link).capacity.count() * efficiency));
  }
  return seconds;
}

// A node like the round one whose NVLinks NVLS can use, and whose PCIe is never what limits a NIC.
NodeSpec fast_node() {
  NodeSpec node = round_node();
  node.nvlink = 450_GBps;
  node.pcie = 64_GBps;
  return node;
}

// Property: on an idle network the bytes of the closed form take what the busiest link of the algorithm
// takes.
TEST(CollectiveLoads, TakeTheTimeOfTheClosedFormOnAnIdleNetwork) {
  for (const NodeSpec& node : {round_node(), fast_node()})
    for (const FabricKind fabric :
         {FabricKind::kSingleSwitch, FabricKind::kFatTree, FabricKind::kRailOptimized})
      for (const bool sharp : {false, true})
        for (const Placement& placement : regular_placements())
          for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                            CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
            FabricSpec spec = round_fabric(fabric);
            spec.sharp = sharp;
            const Cluster cluster = round_cluster(8, spec, node);
            for (const Bytes size : {64_KiB, 64_MiB, 1_GiB}) {
              const CollectiveCost cost =
                  collective_cost({cluster, round_profile(), gpu(0), placement.group, kind, size});
              const auto loads = collective_loads(cluster, placement.members, kind, cost.algorithm, size);
              EXPECT_NEAR(busiest(cluster, loads, cost) / to_seconds(cost.transfer), 1, 0.01)
                  << placement.name << ", " << kCollectiveNames[static_cast<std::size_t>(kind)] << " by "
                  << cost.algorithm << " of " << size.count() << " on "
                  << kFabricKindNames[static_cast<std::size_t>(fabric)] << ", NVLink "
                  << node.nvlink.count() / 1e9;
            }
          }
}

// Groups that do not lie alike on their nodes. An even ring is laid over rails one by one; here rails share
// NICs, and each way out of the smallest part is as busy as the price says.
TEST(CollectiveLoads, OfUnevenGroupsTakeTheTimeOfTheClosedForm) {
  const auto from_to = [](int first, int end) {
    std::vector<DeviceId> gpus;
    for (int i = first; i < end; ++i) gpus.push_back(gpu(i));
    return gpus;
  };
  const std::vector<Placement> placements = {{"2 + 1", from_to(6, 9), {3, 2, 2, 1, 1}},
                                             {"2 + 6", from_to(6, 14), {8, 2, 6, 1, 2}},
                                             {"1 + 8", from_to(7, 16), {9, 2, 8, 1, 1}},
                                             {"7 + 5", from_to(1, 13), {12, 2, 7, 1, 5}}};
  for (const FabricKind fabric : {FabricKind::kSingleSwitch, FabricKind::kFatTree})
    for (const Placement& placement : placements)
      for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                        CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
        const Cluster cluster = round_cluster(8, round_fabric(fabric));
        const CollectiveCost cost =
            collective_cost({cluster, round_profile(), gpu(0), placement.group, kind, 64_MiB});
        const auto loads = collective_loads(cluster, placement.members, kind, cost.algorithm, 64_MiB);
        EXPECT_NEAR(busiest(cluster, loads, cost) / to_seconds(cost.transfer), 1, 0.02)
            << placement.name << ", " << kCollectiveNames[static_cast<std::size_t>(kind)] << " by "
            << cost.algorithm << " on " << kFabricKindNames[static_cast<std::size_t>(fabric)];
      }
}

// A message in a node, below a leaf and through the spine.
TEST(MessageLoads, TakeTheTimeOfTheClosedFormOnAnIdleNetwork) {
  const Cluster cluster = round_cluster(8);
  for (const int to : {4, 8, 40}) {
    const CollectiveCost cost = message_cost(cluster, gpu(0), gpu(to), 64_MiB, 1);
    const auto loads = message_loads(cluster, gpu(0), gpu(to), 64_MiB);
    EXPECT_NEAR(busiest(cluster, loads, cost) / to_seconds(cost.transfer), 1, 0.01) << to;
  }
}

// Property: NVLS and the trees between nodes of NVSwitches that add are priced as they load.
TEST(CollectiveLoads, OfSwitchesThatAddTakeTheTimeOfTheClosedForm) {
  HardwareProfile profile = round_profile();
  profile.collectives = {fit(CollectiveKind::kAllReduce, 8, 20us, 480_GBps, "nvls")};
  for (const int nodes : {1, 2, 3, 4, 8})
    for (const Bytes size : {64_MiB, 1_GiB}) {
      const Cluster cluster = round_cluster(8, round_fabric(), fast_node());
      const GroupPlacement group{8 * nodes, nodes, 8, 1};
      const CollectiveCost cost =
          collective_cost({cluster, profile, gpu(0), group, CollectiveKind::kAllReduce, size});
      EXPECT_EQ(cost.algorithm, nodes == 1 ? "nvls" : "nvls-tree");
      const auto loads =
          collective_loads(cluster, members(nodes, 8), CollectiveKind::kAllReduce, cost.algorithm, size);
      EXPECT_NEAR(busiest(cluster, loads, cost) / to_seconds(cost.transfer), 1, 0.01) << nodes;
    }
}

// Property: with the same GPUs in all, more nodes are never faster. PAT is the exception that NCCL makes: a
// small gather over nodes of one GPU has fewer steps than the ring over nodes of two.
TEST(Collective, OfTheSameGpusOverMoreNodesIsNeverFaster) {
  const Cluster cluster = round_cluster(64);
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                    CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll})
    for (const Bytes size : {1_KiB, 1_MiB, 64_MiB, 1_GiB}) {
      Duration before{};
      for (const int nodes : {1, 2, 4, 8}) {
        const GroupPlacement group{8, nodes, 8 / nodes, nodes};
        const CollectiveCost now = collective_cost({cluster, round_profile(), gpu(0), group, kind, size});
        if (now.algorithm == "pat") continue;
        EXPECT_GE(now.time, before) << kCollectiveNames[static_cast<std::size_t>(kind)] << " over " << nodes
                                    << " of " << size.count();
        before = now.time;
      }
    }
}

}  // namespace
}  // namespace stagecraft
