// Clusters and a profile with round numbers for the tests of topology/.
#pragma once

#include <cstdint>

#include "calibrate/profile/hardware_profile.hpp"
#include "topology/cluster.hpp"

namespace stagecraft::testing_topology {

using namespace stagecraft::literals;
using namespace std::chrono_literals;

constexpr Bytes megabytes(std::int64_t n) {
  return Bytes(n * 1'000'000);
}

// 8 GPUs with 100 GB/s of NVLink, 8 NICs of 10 GB/s, PCIe of 20 GB/s.
inline NodeSpec round_node() {
  return {.name = "round",
          .device = "round",
          .gpus = 8,
          .nvlink = 100_GBps,
          .nvlink_latency = 1us,
          .nics = 8,
          .nic_bandwidth = 10_GBps,
          .pcie = 20_GBps};
}

// 2 GPUs, 2 NICs of 10 GB/s.
inline NodeSpec small_node() {
  NodeSpec node = round_node();
  node.gpus = 2;
  node.nics = 2;
  return node;
}

// Half of a NIC for collectives, 100 us each and 10 us per step; 0.8 of a NIC and 30 us for messages; 1 us
// per switch.
inline FabricSpec round_fabric(FabricKind kind = FabricKind::kFatTree) {
  return {.name = "round",
          .kind = kind,
          .nodes_per_leaf = 4,
          .switch_latency = 1us,
          .collective_efficiency = 0.5,
          .point_to_point_efficiency = 0.8,
          .collective_latency = 100us,
          .step_latency = 10us,
          .point_to_point_latency = 30us};
}

inline Cluster round_cluster(int nodes, const FabricSpec& fabric = round_fabric(),
                             const NodeSpec& node = round_node()) {
  return Cluster({.groups = {{node, nodes}}, .fabric = fabric});
}

inline CollectiveFit fit(CollectiveKind kind, int ranks, Duration latency, Bandwidth bus,
                         const char* algorithm = "any") {
  return {.kind = kind,
          .ranks = ranks,
          .algorithm = algorithm,
          .latency = latency,
          .bus_bandwidth = bus,
          .provenance = Provenance::kPublished,
          .source = "made up"};
}

// All-reduce of 2 and 8 ranks: 20 us at 40 GB/s of bus bandwidth, 40 us at 80 GB/s. Published figures spread
// by 3 %.
inline HardwareProfile round_profile() {
  HardwareProfile profile;
  profile.name = "round";
  profile.collectives = {fit(CollectiveKind::kAllReduce, 2, 20us, 40_GBps),
                         fit(CollectiveKind::kAllReduce, 8, 40us, 80_GBps)};
  profile.relative_spread[static_cast<std::size_t>(Provenance::kPublished)] = 0.03;
  profile.relative_spread[static_cast<std::size_t>(Provenance::kAnalytic)] = 0.1;
  return profile;
}

inline DeviceId gpu(int index) {
  return device_of(index);
}

}  // namespace stagecraft::testing_topology
