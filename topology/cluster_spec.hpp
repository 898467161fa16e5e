// What a cluster is made of, as YAML says it: nodes of devices and links, and the fabric between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

// One kind of server. Bandwidths are per direction.
struct NodeSpec {
  std::string name;
  std::string device;             // "A100-SXM4-80GB"
  int gpus = 8;
  Bandwidth nvlink;               // of one GPU into the NVSwitch; 0 = no NVLink
  Duration nvlink_latency{};
  int nics = 8;
  Bandwidth nic_bandwidth;        // of one NIC
  Bandwidth pcie;                 // host to device, of one GPU
  Bytes host_memory{};
  std::string default_profile;
  std::string default_fabric;
  std::string source;

  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

enum class FabricKind : std::uint8_t { kSingleSwitch, kFatTree, kRailOptimized };

// The network between nodes, and how much of a NIC training traffic gets out of it.
struct FabricSpec {
  std::string name;
  FabricKind kind = FabricKind::kFatTree;
  int nics_per_node = 0;            // 0 = as the node has
  Bandwidth nic_bandwidth;          // 0 = as the node has
  double oversubscription = 1;      // of the uplinks; 1 = non-blocking
  int nodes_per_leaf = 20;          // nodes below one leaf switch (fat tree) or one rail group
  Duration switch_latency{};        // per switch on the way
  double collective_efficiency = 1;      // share of the node's NIC bandwidth that a collective over nodes reaches
  double point_to_point_efficiency = 1;  // the same for a pipeline message
  Duration collective_latency{};    // added once per collective that leaves the node
  Duration step_latency{};          // per ring step between nodes, 2(N-1) of them in an all-reduce
  Duration point_to_point_latency{};
  Duration tensor_collective_overhead{};  // site term: added to every tensor-parallel collective; 0 on a normal site
  std::string source;

  friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

struct NodeGroup {
  NodeSpec node;
  int count = 1;
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

struct ClusterSpec {
  std::vector<NodeGroup> groups;
  int gpus_used = 0;      // `cluster.gpus`: part of one node; 0 = all
  FabricSpec fabric;
  [[nodiscard]] int gpu_count() const;
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

// Read one mapping and finish it. Bandwidths need units; counts are bare.
[[nodiscard]] NodeSpec load_node(YamlMap& map);
[[nodiscard]] FabricSpec load_fabric(YamlMap& map);

}  // namespace stagecraft
