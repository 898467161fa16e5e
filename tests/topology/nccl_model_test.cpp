// NCCL's own estimate: its formulas by hand, what it would run, and how far it is from open curves.
#include "topology/nccl_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/calibrate/fit/published_tables.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;
using namespace std::chrono_literals;

constexpr NcclSystem kA100{.generation = NcclGeneration::kAmpere, .ranks = 8};
constexpr NcclSystem kH100{.generation = NcclGeneration::kHopper, .ranks = 8};

NcclSystem h100_nodes(int nodes) {
  return {.generation = NcclGeneration::kHopper, .ranks = 8 * nodes, .nodes = nodes, .network = 400_GBps};
}

Duration estimate(const NcclSystem& system, Bytes size, std::string_view algorithm, NcclProtocol protocol) {
  for (const NcclEstimate& one : nccl_estimates(system, CollectiveKind::kAllReduce, size))
    if (one.algorithm == algorithm && one.protocol == protocol) return one.time;
  ADD_FAILURE() << algorithm;
  return {};
}

// 8 A100, 240 MB. Ring, Simple: 8.4 us + 14 * 3.4 us + 1.75 * 240 MB / 240 GB/s. LL: 6.6 us + 14 * 0.6 us,
// and at most 87.7 GB/s. LL128: 14 us + 14 * 1.9 us, 0.92 * 240 GB/s.
TEST(NcclModel, OfARingIsItsStepsAndItsBus) {
  EXPECT_EQ(estimate(kA100, Bytes(240'000'000), "ring", NcclProtocol::kSimple), 1'806us);
  EXPECT_EQ(estimate(kA100, Bytes(87'700'000), "ring", NcclProtocol::kLL), 1'765us);
  EXPECT_EQ(estimate(kA100, Bytes(220'800'000), "ring", NcclProtocol::kLL128), 1'790'600ns);
}

// 8 A100, 64 MiB: 8.4 us + 2 * 7 * 4 us + 64 MiB / (0.92 * 240 / 2 * 0.8 GB/s).
TEST(NcclModel, OfATreeIsCorrectedAtMiddleSizes) {
  const double seconds = 64.4e-6 + 64.0 * (1 << 20) / (0.92 * 120e9 * 0.8);
  EXPECT_NEAR(to_seconds(estimate(kA100, 64_MiB, "tree", NcclProtocol::kSimple)), seconds, 1e-9);
}

// 8 channels of 40 GB/s at 0.85 * 7/8, twice for all-reduce: 476 GB/s of bus; 25 us.
TEST(NcclModel, OfNvlsIsFasterThanTheRing) {
  EXPECT_NEAR(nccl_nvls_bandwidth(NcclGeneration::kHopper) / 476_GBps, 1, 1e-12);
  EXPECT_EQ(estimate(kH100, Bytes(476'000'000), "nvls", NcclProtocol::kSimple), 1'775us);
  EXPECT_EQ(nccl_nvls_bandwidth(NcclGeneration::kAmpere), Bandwidth(0));
}

// 25 us + 2 * log2(N) * 20.9 us; 8 channels at the least of 45.5 GB/s, 59.5 in the node and the NICs' 48.
TEST(NcclModel, OfNvlsTreeHasTheLatencyOfItsDepth) {
  for (const auto& [nodes, microseconds] : {std::pair{4, 108.6}, {16, 192.2}, {128, 317.6}}) {
    const double n = 8 * nodes;
    const double seconds = microseconds * 1e-6 + 364e6 * 2 * (n - 1) / n / 364e9;
    EXPECT_NEAR(
        to_seconds(estimate(h100_nodes(nodes), Bytes(364'000'000), "nvls-tree", NcclProtocol::kSimple)),
        seconds, 1e-9);
  }
}

// stas00/ml-engineering: NCCL 2.27 on 8 H200 took the ring with LL up to 1 MiB and NVLS from 2 MiB on.
TEST(NcclModel, SwitchesToNvlsWhereNcclDid) {
  for (Bytes size = 128_KiB; size <= 1_GiB; size = size * 2) {
    const NcclEstimate choice = *nccl_choice(kH100, CollectiveKind::kAllReduce, size);
    EXPECT_EQ(choice.algorithm, size <= 1_MiB ? "ring" : "nvls") << size.count();
    EXPECT_EQ(choice.protocol, size <= 1_MiB ? NcclProtocol::kLL : NcclProtocol::kSimple) << size.count();
  }
}

// (On two nodes LL128 around the ring is ahead by a hair at 256 KiB.)
TEST(NcclModel, TakesNoRingFromOneMebibyteOnOverNodesOfHopper) {
  for (int nodes = 2; nodes <= 128; nodes *= 2)
    for (Bytes size = 1_MiB; size <= 16_GiB; size = size * 2)
      EXPECT_NE(nccl_choice(h100_nodes(nodes), CollectiveKind::kAllReduce, size)->algorithm, "ring")
          << nodes << " nodes, " << size.count();
}

// 64 nodes of one GPU each, 4 MiB: PAT 211 us + 29, the ring with LL 177 + 118; large ones have the ring's
// rate.
TEST(NcclModel, GathersByRingOrByPatWithOneGpuPerNode) {
  NcclSystem rail = h100_nodes(64);
  rail.ranks = 64;
  EXPECT_EQ(nccl_choice(rail, CollectiveKind::kAllGather, 4_MiB)->algorithm, "pat");
  EXPECT_EQ(nccl_choice(rail, CollectiveKind::kAllGather, 16_GiB)->algorithm, "ring");
  EXPECT_EQ(nccl_choice(h100_nodes(64), CollectiveKind::kReduceScatter, 4_MiB)->algorithm, "ring");
}

TEST(NcclModel, HasNoOpinionOnMessages) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllToAll, CollectiveKind::kSendReceive, CollectiveKind::kBroadcast})
    EXPECT_FALSE(nccl_choice(kA100, kind, 1_MiB).has_value());
}

TEST(NcclModel, KnowsGenerationsByTheirNvlink) {
  EXPECT_EQ(nccl_generation(300_GBps), NcclGeneration::kAmpere);
  EXPECT_EQ(nccl_generation(450_GBps), NcclGeneration::kHopper);
  EXPECT_EQ(nccl_generation(900_GBps), NcclGeneration::kBlackwell);
  EXPECT_EQ(nccl_generation(150_GBps), NcclGeneration::kVolta);
  EXPECT_FALSE(nccl_generation(Bandwidth(0)).has_value());
}

// An A100 behind faster links, the H800's slower ones, a mesh of an unknown profile, and of none.
TEST(NcclModel, KnowsGenerationsByTheChipBeforeTheLinksOfItsNode) {
  HardwareProfile ampere, hopper, unknown, adds;
  ampere.device.nvlink = 300_GBps;
  hopper.device.nvlink = 450_GBps;
  adds.collectives = {{.ranks = 8, .algorithm = "nvls"}};
  for (const Bandwidth link : {200_GBps, 330_GBps, 450_GBps, 900_GBps}) {
    EXPECT_EQ(nccl_generation(ampere, link), NcclGeneration::kAmpere) << link.count();
    EXPECT_EQ(nccl_generation(hopper, link), NcclGeneration::kHopper) << link.count();
    EXPECT_EQ(nccl_generation(unknown, link), nccl_generation(link)) << link.count();
  }
  EXPECT_EQ(nccl_generation(adds, 200_GBps), NcclGeneration::kHopper);
  EXPECT_EQ(nccl_generation(adds, 900_GBps), NcclGeneration::kBlackwell);
  adds.collectives.clear();
  adds.device.peak_fp8 = 1979_TFLOPps;
  EXPECT_EQ(nccl_generation(adds, 200_GBps), NcclGeneration::kHopper);
  EXPECT_FALSE(nccl_generation(hopper, Bandwidth(0)).has_value());
}

// Property: a larger message never takes less.
TEST(NcclModel, IsMonotoneInSizeButForTheTreesCorrection) {
  for (const NcclSystem& system : {kA100, kH100, h100_nodes(2), h100_nodes(16)})
    for (const std::string_view algorithm : {"ring", "tree"}) {
      Duration before{};
      for (Bytes size = 64_B; size <= 16_GiB; size = size * 2) {
        const Duration now = estimate(system, size, algorithm, NcclProtocol::kLL);
        EXPECT_GE(now, before) << algorithm << " " << size.count();
        before = now;
      }
    }
}

// The mean error of the larger sizes of a curve.
double raw_error(const std::string& id, const NcclSystem& system, const std::vector<NamedCurve>& curves) {
  double sum = 0;
  int count = 0;
  for (const NamedCurve& curve : curves)
    for (const CurvePoint& point : curve.points) {
      if (curve.id != id || point.size <= 64.0 * (1 << 20)) continue;
      const auto size = Bytes(static_cast<std::int64_t>(point.size));
      const double seconds = to_seconds(nccl_choice(system, CollectiveKind::kAllReduce, size)->time);
      sum += std::abs(seconds / point.seconds - 1), ++count;
    }
  return sum / count;
}

// Above 64 MiB it is off by 6, 3, 10 and 4 to 8 %: the same formulas restated elsewhere say so.
TEST(NcclModel, IsNearTheLargeSizesOfOpenCurves) {
  const std::vector<NamedCurve> curves = nccl_curves();
  EXPECT_LE(raw_error("a100x8_nvswitch_mpi", kA100, curves), 0.08);
  EXPECT_LE(raw_error("h200x8_nvls_torch", kH100, curves), 0.05);
  EXPECT_LE(raw_error("h100x16_p5_efa", h100_nodes(2), curves), 0.12);
  EXPECT_LE(raw_error("gtc24_nvlstree_32", h100_nodes(4), curves), 0.08);
  EXPECT_LE(raw_error("gtc24_nvlstree_128", h100_nodes(16), curves), 0.08);
  EXPECT_LE(raw_error("gtc24_nvlstree_1024", h100_nodes(128), curves), 0.10);
}

}  // namespace
}  // namespace stagecraft
