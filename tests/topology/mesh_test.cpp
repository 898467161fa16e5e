// Nodes whose GPUs have a mesh of NVLinks in place of an NVSwitch: what collectives and messages get there.
//
// System: 4 GPUs with 6 links of 15 GB/s each, two to every other one: 90 GB/s in all, 30 GB/s of a pair. The profile was
// measured over 90 GB/s of an NVSwitch: all-reduce of 2 ranks at 45 GB/s of bus bandwidth, of 4 at 72 GB/s.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/topology/clusters.hpp"
#include "topology/collective.hpp"
#include "topology/collective_flows.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

constexpr CollectiveKind kAllReduce = CollectiveKind::kAllReduce;

NodeSpec switched() {
  NodeSpec node = round_node();
  node.gpus = node.nics = 4;
  node.nvlink = 90_GBps;
  return node;
}

NodeSpec full_mesh() {
  NodeSpec node = switched();
  node.nvlink_pairs = {{0, 1, 2}, {0, 2, 2}, {0, 3, 2}, {1, 2, 2}, {1, 3, 2}, {2, 3, 2}};
  return node;
}

Cluster one_of(const NodeSpec& node) {
  return round_cluster(1, round_fabric(), node);
}

HardwareProfile measured() {
  HardwareProfile profile = round_profile();
  profile.device.nvlink = 90_GBps;
  profile.collectives = {fit(kAllReduce, 2, 0us, 45_GBps), fit(kAllReduce, 4, 0us, 72_GBps)};
  return profile;
}

CollectiveCost all_reduce(const NodeSpec& node, int ranks, const HardwareProfile& profile) {
  const GroupPlacement group{.ranks = ranks, .nodes = 1, .ranks_per_node = ranks};
  return collective_cost({one_of(node), profile, gpu(0), group, kAllReduce, megabytes(90)});
}

std::vector<DeviceId> first(int ranks) {
  std::vector<DeviceId> members;
  for (int i = 0; i < ranks; ++i) members.push_back(gpu(i));
  return members;
}

// Megabytes on each link.
std::map<std::string, double> loads(const NodeSpec& node, int ranks, std::string_view algorithm = "ring") {
  const Cluster cluster = one_of(node);
  std::map<std::string, double> named;
  for (const LinkLoad& load : collective_loads(cluster, first(ranks), kAllReduce, algorithm, megabytes(40)))
    named[cluster.link_name(load.link)] = load.bytes / 1e6;
  return named;
}

// 2*(n-1)/n * 90 MB over the links to the others: of two GPUs a third of all, 15 GB/s, of four all of them.
TEST(Mesh, GivesAGroupItsLinksToEachOther) {
  EXPECT_EQ(all_reduce(switched(), 2, measured()).time, 2ms);
  EXPECT_EQ(all_reduce(full_mesh(), 2, measured()).time, 6ms);
  EXPECT_EQ(all_reduce(full_mesh(), 4, measured()).time, all_reduce(switched(), 4, measured()).time);
}

// 0.78 of the links where nothing was measured.
TEST(Mesh, GivesAGroupItsShareWithoutAnyFit) {
  HardwareProfile unmeasured = round_profile();
  unmeasured.collectives.clear();
  EXPECT_NEAR(to_seconds(all_reduce(full_mesh(), 2, unmeasured).transfer), 0.09 / (0.78 * 30), 1e-6);
  EXPECT_NEAR(to_seconds(all_reduce(switched(), 2, unmeasured).transfer), 0.09 / (0.78 * 90), 1e-6);
}

// There is no switch that adds.
TEST(Mesh, RunsNoNvls) {
  HardwareProfile profile = measured();
  profile.collectives.push_back(fit(kAllReduce, 4, 0us, 720_GBps, "nvls"));
  EXPECT_EQ(all_reduce(full_mesh(), 4, profile).time, all_reduce(full_mesh(), 4, measured()).time);
}

TEST(Mesh, SendsMessagesOverThePair) {
  const auto bytes = [](const NodeSpec& node) {
    return message_cost(one_of(node), gpu(0), gpu(1), megabytes(90), 1).transfer;
  };
  EXPECT_NEAR(to_seconds(bytes(full_mesh())), 3 * to_seconds(bytes(switched())), 1e-8);
}

// 2*3/4 * 40 MB of each, a third to every other one; of two GPUs 40 MB over the one pair.
TEST(Mesh, RunsRingsOverAllLinks) {
  const auto four = loads(full_mesh(), 4);
  EXPECT_EQ(four.size(), 12U);
  for (const auto& [name, bytes] : four) EXPECT_DOUBLE_EQ(bytes, 20) << name;
  for (const auto& [name, bytes] : loads(full_mesh(), 2)) EXPECT_DOUBLE_EQ(bytes, 40) << name;
  EXPECT_EQ(loads(full_mesh(), 2).size(), 2U);
  EXPECT_EQ(loads(full_mesh(), 4, "tree").size(), 12U);
}

// A square without diagonals: half of what a GPU sends goes each way round.
TEST(Mesh, RunsRingsOverTheLinksThatThereAre) {
  NodeSpec square = switched();
  square.nvlink_pairs = {{0, 1, 3}, {1, 2, 3}, {2, 3, 3}, {3, 0, 3}};
  const auto four = loads(square, 4);
  EXPECT_EQ(four.size(), 8U);
  for (const auto& [name, bytes] : four) EXPECT_DOUBLE_EQ(bytes, 30) << name;
}

// Two pairs that nothing joins: one ring over all, as routes allow.
TEST(Mesh, OfPartsKeepsOneRing) {
  NodeSpec pairs = switched();
  pairs.nvlink_pairs = {{0, 1, 6}, {2, 3, 6}};
  const Cluster cluster = one_of(pairs);
  const std::vector<DeviceId> members = {gpu(0), gpu(1), gpu(2)};
  for (const Transfer& transfer : collective_transfers(cluster, members, kAllReduce, "ring", megabytes(30)))
    EXPECT_EQ(transfer.to, gpu(static_cast<int>(transfer.from.value() + 1) % 3));
}

// Property: on idle links a collective takes what its busiest link needs, over nodes and inside one.
TEST(Mesh, LoadsLinksForTheTimeOfTheClosedForm) {
  for (const int nodes : {1, 2})
    for (const int ranks : {2, 3, 4}) {
      const Cluster cluster = round_cluster(nodes, round_fabric(), full_mesh());
      const GroupPlacement group{.ranks = ranks * nodes, .nodes = nodes, .ranks_per_node = ranks};
      std::vector<DeviceId> members;
      for (int node = 0; node < nodes; ++node)
        for (int i = 0; i < ranks; ++i) members.push_back(gpu(4 * node + i));
      const CollectiveCost cost = collective_cost({cluster, measured(), gpu(0), group, kAllReduce, 1_GiB});
      double inside = 0;
      for (const LinkLoad& load : collective_loads(cluster, members, kAllReduce, cost.algorithm, 1_GiB))
        if (!cluster.between_nodes(load.link))
          inside = std::max(inside,
                            load.bytes / (cluster.link(load.link).capacity.count() * cost.node_efficiency));
      if (nodes == 1) {
        EXPECT_NEAR(inside / to_seconds(cost.in_node), 1, 0.01) << ranks;
      }
      EXPECT_LE(inside, to_seconds(cost.transfer) * 1.01) << ranks << " on each of " << nodes;
    }
}

}  // namespace
}  // namespace stagecraft
