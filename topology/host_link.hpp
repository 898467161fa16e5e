// Bandwidth between a GPU and the memory of its node.
//
//   copy    kCopyShare of its PCIe rate each way, full duplex; of GPUs below one PCIe switch that all copy, each
//           has its part of the uplink; together they have the rate of the host's memory at most
//   memory  its part of the rate of the host's memory
#pragma once

#include "base/units.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// Fraction of a link's bandwidth reached by one large copy, between GPUs or to the host.
//   source  copies between GPU pairs reach 274 of 300 GB/s on A100, 376 of 450 on H100 and 396 of 450 on H200
//           (stas00/ml-engineering, network/README.md); PCIe 5 copies 55.4 of 63 (the same).
inline constexpr double kCopyShare = 0.87;

// The host memory bandwidth of a node that does not state it: two sockets with 8 channels of DDR4-3200 each,
// the least of the nodes in scenarios/nodes; assumed.
inline constexpr Bandwidth kAssumedHostMemory{2 * 8 * 3.2e9 * 8};

struct HostLink {
  Bandwidth copy{};    // one way
  Bandwidth memory{};  // host memory bandwidth per GPU when all GPUs of the node use it
};

// Bandwidth per GPU when all GPUs of its node copy at once; the slowest of each where nodes differ.
[[nodiscard]] HostLink host_link(const ClusterSpec& cluster);

}  // namespace stagecraft
