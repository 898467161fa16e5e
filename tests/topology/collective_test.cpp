// Collectives and messages against a pencil. The round cluster: 8 GPUs with 100 GB/s of NVLink and 8 NICs of
// 10 GB/s a node; collectives get half of the NICs, hence 40 GB/s out of a node, and pay 100 us + 10 us per
// step; messages get 0.8. The round profile: all-reduce of 2 ranks 20 us and 40 GB/s, of 8 ranks 40 us and 80
// GB/s of bus bandwidth.
#include "topology/collective.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/topology/clusters.hpp"
#include "topology/uplink_table.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

constexpr std::array kKinds = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                               CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                               CollectiveKind::kBroadcast,     CollectiveKind::kSendReceive};

CollectiveCost cost(const Cluster& cluster, const GroupPlacement& group, CollectiveKind kind, Bytes size) {
  return collective_cost({cluster, round_profile(), gpu(0), group, kind, size});
}

Duration time(int nodes, const GroupPlacement& group, CollectiveKind kind, Bytes size) {
  return cost(round_cluster(nodes), group, kind, size).time;
}

constexpr GroupPlacement kNode{.ranks = 8, .nodes = 1, .ranks_per_node = 8, .groups_per_node = 1};
constexpr GroupPlacement kTwoNodes{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .groups_per_node = 1};
constexpr GroupPlacement kRails{.ranks = 16, .nodes = 16, .ranks_per_node = 1, .groups_per_node = 8};

TEST(BusFactor, IsTheShareEachRankSends) {
  EXPECT_EQ(bus_factor(CollectiveKind::kAllReduce, 8), 1.75);
  EXPECT_EQ(bus_factor(CollectiveKind::kAllGather, 8), 0.875);
  EXPECT_EQ(bus_factor(CollectiveKind::kReduceScatter, 4), 0.75);
  EXPECT_EQ(bus_factor(CollectiveKind::kAllToAll, 2), 0.5);
  EXPECT_EQ(bus_factor(CollectiveKind::kBroadcast, 8), 1);
  EXPECT_EQ(bus_factor(CollectiveKind::kAllReduce, 1), 0);
}

TEST(Collective, OfOneRankOrNoBytesCostsNothing) {
  for (const CollectiveKind kind : kKinds) {
    EXPECT_EQ(time(1, {}, kind, 1_GiB), 0ns);
    EXPECT_EQ(time(1, kNode, kind, 0_B), 0ns);
  }
  EXPECT_EQ(cost(round_cluster(1), {}, CollectiveKind::kAllReduce, 1_GiB).algorithm, "none");
}

// System: 8 GPUs on an NVSwitch, 800 MB. Expectations: 1.75 * 800 MB / 80 GB/s = 17.5 ms, + 40 us; the fit's
// own story.
TEST(Collective, OfEightGpusIsTheFitOfTheProfile) {
  const CollectiveCost all_reduce = cost(round_cluster(1), kNode, CollectiveKind::kAllReduce, megabytes(800));
  EXPECT_EQ(all_reduce.time, 17'540us);
  EXPECT_EQ(all_reduce.algorithm, "any");
  EXPECT_EQ(all_reduce.provenance, Provenance::kPublished);
  EXPECT_EQ(all_reduce.relative_spread, 0.03);
}

// System: the same without NVLink, whose profile was measured over 100 GB/s of it. Expectations: of 8 GPUs
// 0.42 of 20 GB/s of PCIe, 1.75 * 84 MB / 8.4 GB/s = 17.5 ms; twice the PCIe, half of that.
TEST(Collective, WithoutNvlinkGoesOverPcieWhateverTheProfileMeasured) {
  HardwareProfile profile = round_profile();
  profile.device.nvlink = 100_GBps;
  const auto transfer = [&](Bandwidth nvlink, Bandwidth pcie) {
    NodeSpec node = round_node();
    node.nvlink = nvlink;
    node.pcie = pcie;
    const Cluster cluster = round_cluster(1, round_fabric(), node);
    return collective_cost({cluster, profile, gpu(0), kNode, CollectiveKind::kAllReduce, megabytes(84)})
        .transfer;
  };
  EXPECT_EQ(transfer(Bandwidth(0), 20_GBps), 17'500us);
  EXPECT_EQ(transfer(Bandwidth(0), 40_GBps), 8'750us);
  EXPECT_EQ(transfer(100_GBps, 40_GBps), transfer(100_GBps, 20_GBps));
  EXPECT_LT(transfer(100_GBps, 20_GBps), transfer(Bandwidth(0), 40_GBps));
}

// The bytes of the three examples below are what sharing a link stretches; latencies are not.
TEST(Collective, TellsBytesFromLatency) {
  EXPECT_EQ(cost(round_cluster(1), kNode, CollectiveKind::kAllReduce, megabytes(800)).transfer, 17'500us);
  const CollectiveCost two = cost(round_cluster(2), kTwoNodes, CollectiveKind::kAllReduce, megabytes(80));
  EXPECT_EQ(two.transfer, 2ms);
  EXPECT_EQ(two.network_efficiency, 0.5);
  const CollectiveCost message = message_cost(round_cluster(2), gpu(0), gpu(8), megabytes(8), 8);
  EXPECT_EQ(message.transfer, 1ms);
  EXPECT_EQ(message.network_efficiency, 0.8);
}

// System: 16 nodes, 8 groups of one rank in each, 80 MB; rails reach 0.8 of a NIC of 10 GB/s where others
// reach half. Expectations: a ring of 2 * 15/16 * 80 MB at 8 GB/s in place of 5, + 100 us + 30 steps of 10
// us. Groups of several ranks in a node do as before.
TEST(Collective, OfOneRankInEachNodeHasTheShareOfRails) {
  FabricSpec fabric = round_fabric();
  const auto of = [&](const GroupPlacement& group) {
    return cost(round_cluster(16, fabric), group, CollectiveKind::kAllReduce, megabytes(80));
  };
  const Duration others = of(kTwoNodes).time;
  EXPECT_EQ(of(kRails).time, 30ms + 400us);
  fabric.rail_efficiency = 0.8;
  EXPECT_EQ(of(kRails).time, 18'750us + 400us);
  EXPECT_EQ(of(kRails).network_efficiency, 0.8);
  EXPECT_EQ(of(kTwoNodes).time, others);
}

// System: 16 nodes, 4 groups of two ranks in each. They cross rails at half the share of others; a group that
// has its nodes to itself does not, nor do rails.
TEST(Collective, OfSeveralRanksBesideOtherGroupsCrossesRails) {
  FabricSpec fabric = round_fabric();
  const GroupPlacement pairs{.ranks = 32, .nodes = 16, .ranks_per_node = 2, .groups_per_node = 4};
  const auto of = [&](const GroupPlacement& group) {
    return cost(round_cluster(16, fabric), group, CollectiveKind::kAllReduce, megabytes(80));
  };
  const CollectiveCost before = of(pairs);
  const Duration rails = of(kRails).time, alone = of(kTwoNodes).time;
  fabric.crossing_efficiency = 0.25;
  EXPECT_EQ(before.network_efficiency, 0.5);
  EXPECT_EQ(of(pairs).network_efficiency, 0.25);
  EXPECT_EQ(of(pairs).transfer, 2 * before.transfer);
  EXPECT_EQ(of(kRails).time, rails);
  EXPECT_EQ(of(kTwoNodes).time, alone);
}

// 10 ns per square root of a byte: 100 MB add 10^4 * 10 ns = 100 us to 40 us + 1.75 * 100 MB / 80 GB/s.
TEST(Collective, AddsTheSquareRootTerm) {
  HardwareProfile profile = round_profile();
  profile.collectives[1].sqrt_seconds = 10e-9;
  const Cluster cluster = round_cluster(1);
  const CollectiveCost found =
      collective_cost({cluster, profile, gpu(0), kNode, CollectiveKind::kAllReduce, megabytes(100)});
  EXPECT_EQ(found.time, 40us + 2187500ns + 100us);
}

// The formula of 8 ranks says 215 us of 8 MB and 1,790 us of 80 MB. Points say 200 and 2,000 us; so they say
// of 4 MB, 127.5 us by the formula, 127.5 * 200/215, and of 800 MB 17,540 us * 2000/1790. Over nodes the
// formula holds.
TEST(Collective, GoesThroughThePointsOfItsCurve) {
  HardwareProfile profile = round_profile();
  profile.collectives.back().points = {{megabytes(8), 200us}, {megabytes(80), 2ms}};
  const auto of = [&](int nodes, const GroupPlacement& group, Bytes size) {
    return collective_cost({round_cluster(nodes), profile, gpu(0), group, CollectiveKind::kAllReduce, size});
  };
  EXPECT_EQ(of(1, kNode, megabytes(8)).time, 200us);
  EXPECT_EQ(of(1, kNode, megabytes(80)).time, 2ms);
  EXPECT_EQ(of(1, kNode, megabytes(4)).time, 118'605ns);
  EXPECT_EQ(of(1, kNode, megabytes(800)).time, 19'597'765ns);
  EXPECT_EQ(of(2, kTwoNodes, megabytes(80)).time, 2ms + 40us + 120us);
  // Four ranks are half of the way from 2, which have no points: 2,030 us * (1 + 2000/1790)/2.
  const GroupPlacement four{.ranks = 4, .nodes = 1, .ranks_per_node = 4, .groups_per_node = 2};
  EXPECT_EQ(of(1, four, megabytes(80)).time, 2'149'078ns);
  Duration before{};
  for (Bytes size = 1_KiB; size <= 4_GiB; size = Bytes(size.count() * 11 / 10)) {
    EXPECT_GT(of(1, kNode, size).time, before) << size.count();
    before = of(1, kNode, size).time;
  }
}

// Half of the way from 2 to 8 in log2: 30 us, 60 GB/s; 1.5 * 80 MB / 60 GB/s = 2 ms.
TEST(Collective, OfFourGpusLiesBetweenTheFitsOfTwoAndEight) {
  const GroupPlacement four{.ranks = 4, .nodes = 1, .ranks_per_node = 4, .groups_per_node = 2};
  const CollectiveCost all_reduce = cost(round_cluster(1), four, CollectiveKind::kAllReduce, megabytes(80));
  EXPECT_EQ(all_reduce.time, 2030us);
  EXPECT_EQ(all_reduce.provenance, Provenance::kInterpolated);
}

// A domain of 16: constants of 8; 1.875 * 80 MB / 80 GB/s = 1.875 ms.
TEST(Collective, BeyondTheFitsKeepsTheNearestConstants) {
  const GroupPlacement sixteen{.ranks = 16, .nodes = 1, .ranks_per_node = 16, .groups_per_node = 1};
  EXPECT_EQ(time(1, sixteen, CollectiveKind::kAllReduce, megabytes(80)), 1875us + 40us);
}

// Kinds without a fit: 80 GB/s as all-reduce; 0.875 * 800 MB = 8.75 ms; the way once, so half of 40 us.
TEST(Collective, OfAnotherKindFollowsFromAllReduce) {
  EXPECT_EQ(time(1, kNode, CollectiveKind::kAllGather, megabytes(800)), 8770us);
  EXPECT_EQ(time(1, kNode, CollectiveKind::kReduceScatter, megabytes(800)), 8770us);
  EXPECT_EQ(time(1, kNode, CollectiveKind::kBroadcast, megabytes(800)), 10'020us);
  EXPECT_EQ(time(1, kNode, CollectiveKind::kSendReceive, megabytes(800)), 10'020us);
  const CollectiveCost all_to_all = cost(round_cluster(1), kNode, CollectiveKind::kAllToAll, megabytes(800));
  EXPECT_EQ(all_to_all.time, 8790us);
  EXPECT_EQ(all_to_all.algorithm, "direct");
  EXPECT_EQ(all_to_all.provenance, Provenance::kAnalytic);
  EXPECT_EQ(all_to_all.relative_spread, 0.1);
}

TEST(Collective, PrefersAFitOfItsOwnKind) {
  HardwareProfile profile = round_profile();
  profile.collectives.push_back(fit(CollectiveKind::kAllGather, 8, 5us, 70_GBps));
  EXPECT_EQ(
      collective_cost({round_cluster(1), profile, gpu(0), kNode, CollectiveKind::kAllGather, megabytes(800)})
          .time,
      10'005us);
}

TEST(Collective, IgnoresFitsOverSeveralNodes) {
  HardwareProfile profile = round_profile();
  profile.collectives.push_back(fit(CollectiveKind::kAllReduce, 8, 1us, 800_GBps));
  profile.collectives.back().nodes = 2;
  EXPECT_EQ(
      collective_cost({round_cluster(1), profile, gpu(0), kNode, CollectiveKind::kAllReduce, megabytes(800)})
          .time,
      17'540us);
}

// Ring 40 us and 80 GB/s, NVLS 60 us and 160 GB/s: 1.75*S/80 - 1.75*S/160 = 20 us at S = 1.83 MB.
TEST(Collective, RunsNvlsWhereItIsFaster) {
  HardwareProfile profile = round_profile();
  for (CollectiveFit& ring : profile.collectives) ring.algorithm = "ring";
  profile.collectives.push_back(fit(CollectiveKind::kAllReduce, 8, 60us, 160_GBps, "nvls"));
  const Cluster cluster = round_cluster(1);
  const auto run = [&](const GroupPlacement& group, CollectiveKind kind, Bytes size) {
    return collective_cost({cluster, profile, gpu(0), group, kind, size}).algorithm;
  };
  EXPECT_EQ(run(kNode, CollectiveKind::kAllReduce, megabytes(1)), "ring");
  EXPECT_EQ(run(kNode, CollectiveKind::kAllReduce, megabytes(2)), "nvls");
  EXPECT_EQ(run(kNode, CollectiveKind::kAllGather, megabytes(800)), "ring");
  EXPECT_EQ(run({4, 1, 4, 2}, CollectiveKind::kAllReduce, megabytes(800)), "ring");
}

// System: 32 nodes of 8 GPUs, a Hopper's NVLinks slowed to the H800's 200 GB/s, and an A100's made as fast as
// a Hopper's. Expectations: NVLSTree for the first, as at 450 GB/s; the faster links never slow the A100 down.
TEST(Collective, OverNodesRunsWhatTheChipCanWhateverItsLinks) {
  const auto of = [](Bandwidth chip, Bandwidth link) {
    HardwareProfile profile = round_profile();
    profile.device.nvlink = chip;
    NodeSpec node = round_node();
    node.nvlink = link;
    const GroupPlacement all{.ranks = 256, .nodes = 32, .ranks_per_node = 8, .groups_per_node = 1};
    return collective_cost({round_cluster(32, round_fabric(), node), profile, gpu(0), all,
                            CollectiveKind::kAllReduce, megabytes(800)});
  };
  EXPECT_EQ(of(450_GBps, 450_GBps).algorithm, "nvls-tree");
  EXPECT_EQ(of(450_GBps, 200_GBps).algorithm, "nvls-tree");
  EXPECT_EQ(of(300_GBps, 300_GBps).algorithm, "ring");
  EXPECT_LE(of(300_GBps, 450_GBps).time, of(300_GBps, 300_GBps).time);
}

// 60.84 MB = (7,800 B)^2: 12 us + 1.75 * 60.84 MB / 78 GB/s = 1365 us + 7,800 * 8 ns.
// PCIe of 20 GB/s, 0.42 of it for 8 GPUs: 70.56 MB = (8,400 B)^2: 12 us + 14.7 ms + 8,400 * 8 ns.
TEST(Collective, WithoutAnyFitIsAssumedFromTheLinks) {
  const auto of = [](const NodeSpec& node, Bytes size) {
    return collective_cost({round_cluster(1, round_fabric(), node), HardwareProfile{}, gpu(0), kNode,
                            CollectiveKind::kAllReduce, size});
  };
  EXPECT_EQ(of(round_node(), Bytes(60'840'000)).time, 1'439'400ns);
  EXPECT_EQ(of(round_node(), Bytes(60'840'000)).provenance, Provenance::kAssumed);
  NodeSpec pcie = round_node();
  pcie.nvlink = Bandwidth(0);
  EXPECT_EQ(of(pcie, Bytes(70'560'000)).time, 14'779'200ns);
}

// System: a tensor group of 16 on two nodes, 80 MB. Expectations: NICs 80 MB / 40 GB/s = 2 ms (each half goes
// up one tree and down the other) hide NVLink's 1.75 * 80 MB / 80 GB/s = 1.75 ms; latencies 40 us in the
// node, 100 us and 2 steps of 10 us between nodes.
TEST(Collective, OfSixteenOnTwoNodesIsBoundByTheNics) {
  const CollectiveCost all_reduce =
      cost(round_cluster(2), kTwoNodes, CollectiveKind::kAllReduce, megabytes(80));
  EXPECT_EQ(all_reduce.time, 2ms + 40us + 120us);
  EXPECT_EQ(all_reduce.algorithm, "tree");
  EXPECT_EQ(all_reduce.provenance, Provenance::kAnalytic);
}

TEST(Collective, OfSixteenOnTwoNodesWithFastNicsIsBoundByNvlink) {
  NodeSpec fast = round_node();
  fast.nic_bandwidth = 20_GBps;
  EXPECT_EQ(
      cost(round_cluster(2, round_fabric(), fast), kTwoNodes, CollectiveKind::kAllReduce, megabytes(80)).time,
      1750us + 40us + 120us);
}

// System: data groups of 16 nodes, 8 of them at a time, 40 MB each. Expectations: a node sends 8 * 2*(15/16)
// * 40 MB = 600 MB at 40 GB/s; 30 steps. A group alone has one rail: the same 15 ms. Two NICs for all: four
// times as long.
TEST(Collective, OfEightConcurrentDataGroupsSharesTheNics) {
  EXPECT_EQ(time(16, kRails, CollectiveKind::kAllReduce, megabytes(40)), 15ms + 400us);
  GroupPlacement alone = kRails;
  alone.groups_per_node = 1;
  EXPECT_EQ(time(16, alone, CollectiveKind::kAllReduce, megabytes(40)), 15ms + 400us);
  FabricSpec two = round_fabric();
  two.nics_per_node = 2;
  EXPECT_EQ(cost(round_cluster(16, two), kRails, CollectiveKind::kAllReduce, megabytes(40)).time,
            60ms + 400us);
  EXPECT_EQ(cost(round_cluster(16, two), alone, CollectiveKind::kAllReduce, megabytes(40)).time,
            15ms + 400us);
}

// Two of six NICs serve two GPUs each: where all eight send, each has half a NIC, as with four. A rail alone
// has one; a message beside seven others half of one, 40 MB at 4 GB/s.
TEST(Collective, OverNicsThatServeUnlikeNumbersOfGpusWaitsForTheFullest) {
  FabricSpec six = round_fabric();
  six.nics_per_node = 6;
  const Cluster cluster = round_cluster(16, six);
  EXPECT_EQ(cluster.node_network(gpu(0)), 60_GBps);
  EXPECT_EQ(cluster.node_network(gpu(0), 8), 40_GBps);
  EXPECT_EQ(cost(cluster, kRails, CollectiveKind::kAllReduce, megabytes(40)).time, 30ms + 400us);
  GroupPlacement alone = kRails;
  alone.groups_per_node = 1;
  EXPECT_EQ(cost(cluster, alone, CollectiveKind::kAllReduce, megabytes(40)).time, 15ms + 400us);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(8), megabytes(40), 8).transfer, 10ms);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(8), megabytes(40), 1).transfer, 5ms);
  FabricSpec four = round_fabric();
  four.nics_per_node = 4;
  EXPECT_EQ(round_cluster(16, four).node_network(gpu(0), 8), 40_GBps);
}

// A tree on two nodes has two steps: the first waits for a whole chunk, 4 MB / 40 GB/s = 100 us. A ring waits
// for none, its steps are of pieces already: 1 MB takes it, 1.875 MB / 40 GB/s, and so do 16 nodes.
TEST(Collective, OfATreeWaitsForAChunkAtEachStepButTheLast) {
  FabricSpec chunks = round_fabric();
  chunks.chunk = megabytes(4);
  const auto of = [&](int nodes, const GroupPlacement& group, Bytes size) {
    return cost(round_cluster(nodes, chunks), group, CollectiveKind::kAllReduce, size);
  };
  EXPECT_EQ(of(2, kTwoNodes, megabytes(80)).time, 2ms + 40us + 120us + 100us);
  EXPECT_EQ(of(2, kTwoNodes, megabytes(80)).transfer, 2ms);
  EXPECT_EQ(of(2, kTwoNodes, megabytes(1)).time, 46'875ns + 40us + 120us);
  EXPECT_EQ(of(16, kRails, megabytes(40)).time, 15ms + 400us);
}

// Small messages go down a tree of depth 4: 100 us + 8 * 10 us, and 8 * 2 * 4600 B / 0.92 / 40 GB/s = 2 us;
// the ring would take 30 steps.
TEST(Collective, OfSmallMessagesOverManyNodesTakesTheTree) {
  const CollectiveCost all_reduce = cost(round_cluster(16), kRails, CollectiveKind::kAllReduce, 4600_B);
  EXPECT_EQ(all_reduce.time, 182us);
  EXPECT_EQ(all_reduce.algorithm, "tree");
}

// 16 ranks on two nodes, 80 MB each: a node sends 8 * 80 MB * 8/16 = 320 MB at 40 GB/s; 40 us, 100 us and one
// step.
TEST(AllToAll, OverTwoNodesSendsHalfOfEverythingOut) {
  EXPECT_EQ(time(2, kTwoNodes, CollectiveKind::kAllToAll, megabytes(80)), 8ms + 150us);
}

// A group on two nodes, the only one that leaves them.
GroupPlacement uneven(int ranks, int most, int least) {
  return {.ranks = ranks,
          .nodes = 2,
          .ranks_per_node = most,
          .groups_per_node = 1,
          .least_ranks_per_node = least};
}

Cluster domains_of_72(int nics_per_tray = 4) {
  NodeSpec tray = round_node();
  tray.gpus = 4;
  tray.nics = nics_per_tray;
  tray.nvlink_domain = 18;
  return round_cluster(36, round_fabric(FabricKind::kSingleSwitch), tray);
}

// System: domains of 72 GPUs, half of a NIC of 10 GB/s each, 64 MB a rank. Expectations: each of 8 ranks
// beside 56 others sends 56 MB at 5 GB/s, of 24 beside 40 each 40 MB, of 32 beside 32 each 32 MB. The wait
// is the longer the more uneven the group, and the same for the receivers.
TEST(AllToAll, IsAsSlowAsTheRanksOfTheSmallestPart) {
  const Cluster cluster = domains_of_72();
  const auto bytes = [&](const GroupPlacement& group) {
    return cost(cluster, group, CollectiveKind::kAllToAll, megabytes(64)).transfer;
  };
  EXPECT_EQ(bytes(uneven(64, 56, 8)), 11'200us);
  EXPECT_EQ(bytes(uneven(64, 40, 24)), 8ms);
  EXPECT_EQ(bytes(uneven(64, 32, 32)), 6'400us);
  EXPECT_EQ(bytes({.ranks = 64, .nodes = 2, .ranks_per_node = 32, .groups_per_node = 1}), 6'400us);
}

// With 36 NICs a domain 56 senders get 36/56 of a NIC each, and so it is taken of the 8; of two such groups
// no more send than there are GPUs, half a NIC each.
TEST(AllToAll, OfAnUnevenGroupSharesWhatNicsThereAre) {
  const Cluster cluster = domains_of_72(2);
  GroupPlacement group = uneven(64, 56, 8);
  const auto bytes = [&] {
    return to_seconds(cost(cluster, group, CollectiveKind::kAllToAll, megabytes(64)).transfer);
  };
  EXPECT_NEAR(bytes(), 0.0112 * 56 / 36, 1e-9);
  group.groups_per_node = 2;
  EXPECT_NEAR(bytes(), 0.0112 * 2, 1e-9);
}

// System: 64 MB over 8 + 56, 8 NICs at 5 GB/s, and over 12 + 52. Expectations: two trees over two nodes send
// 64 MB in 1.6 ms, a gather 63 MB; a message goes by one NIC at 8 GB/s.
TEST(Collective, OfAnUnevenGroupLeavesANodeByTheNicsOfTheSmallestPart) {
  const Cluster cluster = domains_of_72();
  const auto bytes = [&](const GroupPlacement& group, CollectiveKind kind) {
    return to_seconds(cost(cluster, group, kind, megabytes(64)).transfer);
  };
  EXPECT_NEAR(bytes(uneven(64, 56, 8), CollectiveKind::kAllReduce), 64e6 / 40e9, 1e-9);
  EXPECT_NEAR(bytes(uneven(64, 56, 8), CollectiveKind::kAllGather), 63e6 / 40e9, 1e-9);
  EXPECT_NEAR(bytes(uneven(64, 52, 12), CollectiveKind::kAllGather), 63e6 / 60e9, 1e-9);
  EXPECT_NEAR(bytes(uneven(64, 56, 8), CollectiveKind::kBroadcast), 64e6 / 40e9, 1e-9);
  EXPECT_NEAR(bytes(uneven(64, 56, 8), CollectiveKind::kSendReceive), 64e6 / 8e9, 1e-9);
}

// The one of 3 ranks that is alone on its node of 8 sends two thirds of 30 MB: 20 MB at 5 GB/s.
TEST(AllToAll, OfThreeRanksOnNodesOfEightWaitsForTheOneAlone) {
  EXPECT_EQ(cost(round_cluster(3), uneven(3, 2, 1), CollectiveKind::kAllToAll, megabytes(30)).transfer, 4ms);
}

// Rails of which 7 share the NIC of a rank take 7 times as long as those that have it alone.
TEST(AllToAll, OfRailsThatShareANicTakesItInTurns) {
  GroupPlacement rail{.ranks = 2, .nodes = 2, .ranks_per_node = 1, .groups_per_node = 8};
  const auto bytes = [&] {
    return cost(domains_of_72(), rail, CollectiveKind::kAllToAll, megabytes(10)).transfer;
  };
  EXPECT_EQ(bytes(), 1ms);
  rail.groups_per_rank = 7;
  EXPECT_EQ(bytes(), 7ms);
}

TEST(Collective, RefusesAPlacementWithoutRanksOnANode) {
  for (const GroupPlacement& group : {uneven(64, 56, 0), uneven(64, 8, 56)})
    EXPECT_THROW((void)cost(domains_of_72(), group, CollectiveKind::kAllToAll, 1_MiB), InternalError);
}

// System: 64 ranks on 8 nodes, 4 to a leaf, 10 MB each. Expectations: 7 * 10 MB leave a node at 40 GB/s, 1.75
// ms; with uplinks oversubscribed by 4 the half that crosses them, 8 * 10 MB / 2, takes 4 times its time: 4
// ms. 210 us of latency. A ring alone crosses each uplink once, which has room for it.
TEST(AllToAll, FeelsOversubscription) {
  GroupPlacement group{.ranks = 64, .nodes = 8, .ranks_per_node = 8, .groups_per_node = 1};
  FabricSpec tight = round_fabric();
  tight.oversubscription = 4;
  EXPECT_EQ(time(8, group, CollectiveKind::kAllToAll, megabytes(10)), 1750us + 210us);
  std::vector<DeviceId> members;
  for (int i = 0; i < 64; ++i) members.push_back(gpu(i));
  UplinkTable uplinks;
  uplinks.add(round_cluster(8, tight), members);
  group.uplinks = uplinks.of(round_cluster(8, tight), members);
  EXPECT_EQ(cost(round_cluster(8, tight), group, CollectiveKind::kAllToAll, megabytes(10)).time, 4ms + 210us);
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather})
    EXPECT_EQ(cost(round_cluster(8, tight), group, kind, megabytes(10)).time,
              time(8, group, kind, megabytes(10)));
}

// A ring shift over two nodes: one message of each group leaves a node, through one NIC: 80 MB / 8 GB/s, 30
// us.
TEST(Collective, OfSendReceiveOverNodesIsOneMessage) {
  const GroupPlacement pair{.ranks = 2, .nodes = 2, .ranks_per_node = 1, .groups_per_node = 8};
  EXPECT_EQ(time(2, pair, CollectiveKind::kSendReceive, megabytes(80)), 10ms + 30us);
}

// System: 1,024 GPUs on a switch of 50 GiB/s, 1 GiB, 1 us per step. Expectations: 2*(1023/1024)/50 s = 39.961
// ms of bytes and 2,046 us of steps.
TEST(Collective, RingOf1024KeepsTheBandwidthBound) {
  NodeSpec node = round_node();
  node.gpus = node.nics = 1;
  node.nic_bandwidth = node.pcie = Bandwidth(50.0 * (1 << 30));
  FabricSpec fabric{.kind = FabricKind::kSingleSwitch, .step_latency = 1us};
  const GroupPlacement all{.ranks = 1024, .nodes = 1024, .ranks_per_node = 1, .groups_per_node = 1};
  const CollectiveCost ring = cost(round_cluster(1024, fabric, node), all, CollectiveKind::kAllReduce, 1_GiB);
  EXPECT_GE(ring.time, 39'960us);
  EXPECT_EQ(std::chrono::round<std::chrono::microseconds>(ring.time), 39'961us + 2'046us);
  EXPECT_EQ(ring.algorithm, "ring");
}

GroupPlacement on_nodes(int nodes, int ranks_per_node) {
  return {.ranks = nodes * ranks_per_node,
          .nodes = nodes,
          .ranks_per_node = ranks_per_node,
          .groups_per_node = 8 / ranks_per_node};
}

// Property: for every kind, more bytes never take less time.
TEST(Collective, IsMonotoneInSize) {
  const Cluster cluster = round_cluster(16);
  for (const CollectiveKind kind : kKinds)
    for (const int nodes : {1, 2, 5, 16})
      for (const int ranks_per_node : {1, 2, 4, 8}) {
        Duration before{};
        for (Bytes size = 1_B; size <= 16_GiB; size = size * 2) {
          const Duration now = cost(cluster, on_nodes(nodes, ranks_per_node), kind, size).time;
          EXPECT_GE(now, before) << kCollectiveNames[static_cast<std::size_t>(kind)] << " " << size.count();
          before = now;
        }
      }
}

// Property: for every kind, more nodes with the same ranks on each never take less time.
// Property: the transfer is that of the tier that is busy for longer, and a group in a node uses no NIC.
TEST(Collective, IsAsLongAsItsBusierTier) {
  for (const int nodes : {1, 2, 5})
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kAllToAll})
      for (const int ranks : {1, 4, 8}) {
        if (nodes * ranks == 1) continue;
        const GroupPlacement group{
            .ranks = nodes * ranks, .nodes = nodes, .ranks_per_node = ranks, .least_ranks_per_node = ranks};
        const CollectiveCost c = cost(round_cluster(nodes), group, kind, megabytes(800));
        EXPECT_EQ(c.transfer, std::max(c.in_node, c.between_nodes)) << nodes << ' ' << ranks;
        EXPECT_EQ(c.between_nodes > Duration::zero(), nodes > 1) << nodes << ' ' << ranks;
        EXPECT_EQ(c.in_node > Duration::zero(), ranks > 1) << nodes << ' ' << ranks;
      }
}

TEST(Collective, IsMonotoneInNodes) {
  const Cluster cluster = round_cluster(64);
  for (const CollectiveKind kind : kKinds)
    for (const int ranks_per_node : {1, 2, 4, 8})
      for (const Bytes size : {1_KiB, 1_MiB, 1_GiB}) {
        Duration before{};
        for (int nodes = 1; nodes <= 64; ++nodes) {
          const Duration now = cost(cluster, on_nodes(nodes, ranks_per_node), kind, size).time;
          EXPECT_GE(now, before) << kCollectiveNames[static_cast<std::size_t>(kind)] << " nodes=" << nodes;
          before = now;
        }
      }
}

// Property: with the ring, reduce-scatter and all-gather take what all-reduce takes and one more start.
TEST(Collective, AllReduceIsReduceScatterAndAllGather) {
  const Cluster cluster = round_cluster(16);
  for (const int nodes : {1, 2, 5, 16})
    for (const int ranks_per_node : {1, 2, 4, 8})
      for (Bytes size = 1_KiB; size <= 4_GiB; size = size * 2) {
        const GroupPlacement group = on_nodes(nodes, ranks_per_node);
        const CollectiveCost whole = cost(cluster, group, CollectiveKind::kAllReduce, size);
        const Duration parts = cost(cluster, group, CollectiveKind::kReduceScatter, size).time +
                               cost(cluster, group, CollectiveKind::kAllGather, size).time;
        SCOPED_TRACE(testing::Message() << nodes << " x " << ranks_per_node << ", " << size.count() << " B");
        EXPECT_LE(whole.time, parts + 1ns);  // rounded once against twice
        if (whole.algorithm == "ring" || nodes == 1) {
          EXPECT_LE(parts, whole.time + (nodes > 1 ? 100us : 0us) + 1ns);
        }
      }
}

// Property: a faster NIC is never slower, for collectives and messages.
TEST(Collective, IsNeverSlowerWithAFasterNic) {
  for (const CollectiveKind kind : kKinds)
    for (const int ranks_per_node : {1, 8}) {
      Duration before = Duration::max();
      Duration message_before = Duration::max();
      for (int rate = 1; rate <= 64; ++rate) {
        NodeSpec node = round_node();
        node.nic_bandwidth = Bandwidth(rate * 1e9);
        const Cluster cluster = round_cluster(2, round_fabric(), node);
        const Duration now = cost(cluster, on_nodes(2, ranks_per_node), kind, 64_MiB).time;
        const Duration message = message_cost(cluster, gpu(0), gpu(8), 64_MiB, 8).time;
        EXPECT_LE(now, before) << rate;
        EXPECT_LE(message, message_before) << rate;
        before = now;
        message_before = message;
      }
    }
}

TEST(Collective, RejectsImpossiblePlacements) {
  const Cluster cluster = round_cluster(2);
  EXPECT_THROW((void)cost(cluster, {.ranks = 2, .nodes = 3}, CollectiveKind::kAllReduce, 1_MiB),
               InternalError);
  EXPECT_THROW((void)cost(cluster, {.ranks = 2, .nodes = 0}, CollectiveKind::kAllReduce, 1_MiB),
               InternalError);
  EXPECT_THROW((void)cost(cluster, kNode, CollectiveKind::kAllReduce, Bytes(-1)), InternalError);
}

// 87 MB at 0.87 of 100 GB/s, and two hops of 1 us; others on the NVSwitch do not matter.
TEST(Message, InANodeGoesOverNvlink) {
  const Cluster cluster = round_cluster(1);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(4), megabytes(87), 1).time, 1002us);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(4), megabytes(87), 8).time, 1002us);
}

TEST(Message, ToItselfOrOfNothingCostsNothing) {
  const Cluster cluster = round_cluster(2);
  EXPECT_EQ(message_cost(cluster, gpu(3), gpu(3), 1_GiB, 1).time, 0ns);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(8), 0_B, 1).time, 0ns);
}

// 8 MB at 0.8 of one NIC of 10 GB/s, 30 us, and 1 us for each switch: one below a leaf, three through the
// spine.
TEST(Message, BetweenNodesHasANicOfItsOwn) {
  const Cluster cluster = round_cluster(5);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(8), megabytes(8), 8).time, 1031us);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(8), megabytes(8), 1).time, 1031us);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(32), megabytes(8), 8).time, 1033us);
}

// Four NICs of 10 GB/s for 8 senders: 5 GB/s each, and one sender still has only one NIC.
TEST(Message, BetweenNodesSharesFewNics) {
  FabricSpec fabric = round_fabric();
  fabric.nics_per_node = 4;
  const Cluster cluster = round_cluster(2, fabric);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(8), megabytes(8), 8).time, 2031us);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(8), megabytes(8), 4).time, 1031us);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(8), megabytes(8), 1).time, 1031us);
}

// 8 MB at 0.8 of 5 GB/s: what is left beyond the leaf, where that is less than the NIC has.
TEST(Message, BeyondItsLeafGetsWhatTheUplinksLeave) {
  const Cluster cluster = round_cluster(5);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(32), megabytes(8), 8, 5_GBps).time, 2033us);
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(32), megabytes(8), 8, 50_GBps).time, 1033us);
}

TEST(Message, BetweenUnlikeNodesIsAsSlowAsTheSlowerEnd) {
  NodeSpec slow = round_node();
  slow.nic_bandwidth = 5_GBps;
  const Cluster cluster({.groups = {{round_node(), 1}, {slow, 1}}, .fabric = round_fabric()});
  EXPECT_EQ(message_cost(cluster, gpu(0), gpu(8), megabytes(8), 1).time, 2031us);
  EXPECT_EQ(message_cost(cluster, gpu(8), gpu(0), megabytes(8), 1).time, 2031us);
}

}  // namespace
}  // namespace stagecraft
