#include "topology/host_link.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

// The PCIe bandwidth of one of `gpus` that all copy: those below one switch share its way to the host.
Bandwidth pcie_to_host(const NodeSpec& node, int gpus) {
  if (node.gpus_per_pcie_switch == 0) return node.pcie;
  return std::min(node.pcie, node.uplink() / std::min(node.gpus_per_pcie_switch, gpus));
}

HostLink host_link(const NodeSpec& node, int gpus) {
  const Bandwidth memory =
      node.host_memory_bandwidth > Bandwidth(0) ? node.host_memory_bandwidth : kAssumedHostMemory;
  const Bandwidth each = (1.0 / gpus) * memory;
  return {.copy = std::min(kCopyShare * pcie_to_host(node, gpus), each), .memory = each};
}

}  // namespace

HostLink host_link(const ClusterSpec& cluster) {
  HostLink worst;
  for (const NodeGroup& group : cluster.groups) {
    const HostLink here = host_link(group.node, cluster.gpus_of(group.node));
    if (worst.copy == Bandwidth(0) || here.copy < worst.copy) worst.copy = here.copy;
    if (worst.memory == Bandwidth(0) || here.memory < worst.memory) worst.memory = here.memory;
  }
  return worst;
}

}  // namespace stagecraft
