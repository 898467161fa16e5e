// What a cluster is made of, as YAML says it: nodes of devices and links, and the fabric between them.
//
// Presets are mappings in scenarios/nodes/ and scenarios/fabrics/; a scenario may write the same mapping in
// place. The name of a preset is its file name: whoever opens the file sets `name`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

// One kind of server. Bandwidths are per direction.
struct NodeSpec {
  std::string name{};
  std::string device{};       // "A100-SXM4-80GB"
  int gpus = 8;               // one NVLink domain
  Bandwidth nvlink{};         // of one GPU into the NVSwitch; 0 = no NVLink, GPUs meet over PCIe
  Duration nvlink_latency{};  // of one hop, GPU to NVSwitch; a message takes two
  int nics = 8;
  Bandwidth nic_bandwidth{};          // of one NIC
  Bandwidth pcie{};                   // host to device, of one GPU; also GPU to NIC
  Bytes host_memory{};                // 0 = not stated
  Bandwidth host_memory_bandwidth{};  // of all sockets together; 0 = not stated
  std::string default_profile{};
  std::string default_fabric{};
  std::string source{};

  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

enum class FabricKind : std::uint8_t { kSingleSwitch, kFatTree, kRailOptimized };
inline constexpr std::array<std::string_view, 3> kFabricKindNames = {"single-switch", "fat-tree",
                                                                     "rail-optimized"};

// The network between nodes, and how much of a NIC training traffic gets out of it. The defaults are an ideal
// network.
struct FabricSpec {
  std::string name{};
  FabricKind kind = FabricKind::kFatTree;
  int nics_per_node = 0;             // 0 = as the node has
  Bandwidth nic_bandwidth{};         // 0 = as the node has
  double oversubscription = 1;       // of the uplinks; 1 = non-blocking; at most nodes_per_leaf
  int nodes_per_leaf = 20;           // nodes below one leaf switch (fat tree) or one group of rail switches
  Duration switch_latency{};         // per switch on the way
  double collective_efficiency = 1;  // share of the node's NIC bandwidth that a collective over nodes reaches
  double point_to_point_efficiency = 1;   // the same for a pipeline message
  Duration collective_latency{};          // added once per collective that leaves the node
  Duration step_latency{};                // per step between nodes, 2(N-1) of them in a ring all-reduce
  Duration point_to_point_latency{};      // added to each message between nodes
  double tensor_collective_factor = 1;    // site term: tensor-parallel collectives last so much longer
  Duration tensor_collective_overhead{};  // site term: the caller adds it to every tensor-parallel collective
  std::string source{};

  friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

struct NodeGroup {
  NodeSpec node{};
  int count = 1;
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

struct ClusterSpec {
  std::vector<NodeGroup> groups{};
  int gpus_used = 0;  // `cluster.gpus`: part of one node; 0 = all
  FabricSpec fabric{};
  [[nodiscard]] int gpu_count() const;
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

// Read one mapping and finish it. Bandwidths and times need units; counts and shares are bare. Mistakes go to
// the diagnostics of `map`; what is returned after a mistake is harmless but meaningless.
//
//   node     device, gpus, nics, nic_bandwidth and pcie are required; nvlink_latency as well where nvlink is
//   given. fabric   kind is required; all else has the defaults of FabricSpec.
[[nodiscard]] NodeSpec load_node(YamlMap& map);
[[nodiscard]] FabricSpec load_fabric(YamlMap& map);

}  // namespace stagecraft
