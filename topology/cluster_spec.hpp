// Description of a cluster in YAML: nodes of devices and links, and the fabric between them.
//
// Presets are mappings in scenarios/nodes/ and scenarios/fabrics/; a scenario may write the same mapping in
// place. The name of a preset is its file name, set by the code that opens the file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

// NVLinks that lead from one GPU of a server straight to another.
struct NvlinkPair {
  int a = 0, b = 0;
  int links = 1;
  friend bool operator==(const NvlinkPair&, const NvlinkPair&) = default;
};

// One kind of server. Bandwidths are per direction.
struct NodeSpec {
  std::string name{};
  std::string device{};  // "A100-SXM4-80GB"
  int gpus = 8;
  Bandwidth nvlink{};         // all NVLinks of one GPU together; 0 = no NVLink, GPUs communicate over PCIe
  Duration nvlink_latency{};  // latency of one hop, GPU to NVSwitch; a message takes two
  int nics = 8;
  Bandwidth nic_bandwidth{};               // bandwidth of one NIC
  Bandwidth pcie{};                        // host to device, of one GPU; also GPU to NIC
  Bytes host_memory{};                     // 0 = not stated
  Bandwidth host_memory_bandwidth{};       // bandwidth of all sockets together; 0 = not stated
  Bandwidth nvswitch{};                    // throughput of all NVSwitches of a node; 0 = no limit
  std::vector<NvlinkPair> nvlink_pairs{};  // a mesh in place of the NVSwitch; empty = NVSwitch
  int nvlink_domain = 1;                   // servers that share one tier of NVSwitches
  int gpus_per_pcie_switch = 0;            // 0 = every GPU and NIC has its own way to its PCIe root
  Bandwidth pcie_uplink{};                 // from a PCIe switch to its root; 0 = as `pcie`
  int sockets = 1;                         // each with a PCIe root and an equal part of the GPUs
  Bandwidth socket_link{};                 // between two sockets
  std::string default_profile{};
  std::string default_fabric{};
  std::string source{};

  [[nodiscard]] Bandwidth uplink() const { return pcie_uplink > Bandwidth(0) ? pcie_uplink : pcie; }
  // What a GPU has over NVLink to the others of a group of so many GPUs: everything over an NVSwitch, in a mesh its
  // links to them, as if they were spread evenly over all pairs. NCCL runs rings over all of these.
  [[nodiscard]] Bandwidth nvlink_among(int ranks) const {
    return nvlink_pairs.empty() ? nvlink : nvlink * (static_cast<double>(ranks - 1) / (gpus - 1));
  }
  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

enum class FabricKind : std::uint8_t { kSingleSwitch, kFatTree, kRailOptimized, kDragonfly, kTorus };
inline constexpr std::array<std::string_view, 5> kFabricKindNames = {"single-switch", "fat-tree",
                                                                     "rail-optimized", "dragonfly", "torus"};

// The choice among equal ways: all of them at once, or one by a hash of sender and receiver.
enum class Routing : std::uint8_t { kAdaptive, kEcmp };
inline constexpr std::array<std::string_view, 2> kRoutingNames = {"adaptive", "ecmp"};

// The network between nodes, and how much of a NIC training traffic gets out of it. The defaults are an ideal
// network.
struct FabricSpec {
  std::string name{};
  FabricKind kind = FabricKind::kFatTree;
  int nics_per_node = 0;        // 0 = as the node has
  Bandwidth nic_bandwidth{};    // 0 = as the node has
  double oversubscription = 1;  // oversubscription of the uplinks; 1 = non-blocking; at most nodes_per_leaf
  int nodes_per_leaf = 20;      // nodes below one leaf switch (fat tree) or one group of rail switches
  int spines = 1;               // spine switches of a pod and plane; 1 stands for all of them
  int nodes_per_pod = 0;        // below one set of spine switches; 0 = all, without a core
  int cores = 1;                // core switches of a plane; 1 stands for all of them
  double core_oversubscription = 1;  // oversubscription of a pod's uplinks
  int planes = 1;                    // parallel fabrics; a node's NICs alternate between them
  int groups = 0;                    // groups of a dragonfly
  int routers_per_group = 0;
  int nodes_per_router = 0;
  int global_links = 1;          // links between each pair of groups of a dragonfly
  std::vector<int> dims{};       // dimensions of a torus
  Bandwidth link_bandwidth{};    // between two routers of a torus, or of one group of a dragonfly
  Bandwidth global_bandwidth{};  // bandwidth of one global link; 0 = as link_bandwidth
  Routing routing = Routing::kAdaptive;
  std::int64_t routing_seed = 0;     // seed of ECMP's hash
  Duration switch_latency{};         // per switch on the way of a message between stages
  double collective_efficiency = 1;  // share of the node's NIC bandwidth that a collective over nodes reaches
  // Efficiency of groups with one rank per node; as collective_efficiency.
  std::optional<double> rail_efficiency{};
  // Efficiency of groups with several ranks per node, beside other such groups.
  std::optional<double> crossing_efficiency{};
  double point_to_point_efficiency = 1;   // the same for a pipeline message
  Duration collective_latency{};          // added once per collective that leaves the node
  Duration step_latency{};                // per step between nodes, 2(N-1) of them in a ring all-reduce
  double chunking = 0;                    // 0..1: share of the steps that chunks of the best size pay again
  Bytes chunk{};                          // bytes per step of a tree; 0 = unknown
  bool sharp = false;                     // the switches add: all-reduces may go through them (CollNet)
  Duration point_to_point_latency{};      // added to each message between nodes
  double tensor_collective_factor = 1;    // site term: factor on tensor-parallel collectives
  Duration tensor_collective_overhead{};  // site term: the caller adds it to every tensor-parallel collective
  std::string source{};

  // Are its nodes divided among leaf switches, or groups of rail switches?
  [[nodiscard]] bool has_leaves() const {
    return kind == FabricKind::kFatTree || kind == FabricKind::kRailOptimized;
  }
  // Number of NICs of a node in this fabric, and the bandwidth of one.
  [[nodiscard]] int nics_of(const NodeSpec& node) const {
    return nics_per_node > 0 ? nics_per_node : node.nics;
  }
  [[nodiscard]] Bandwidth nic_rate_of(const NodeSpec& node) const {
    return nic_bandwidth > Bandwidth(0) ? nic_bandwidth : node.nic_bandwidth;
  }
  friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

struct NodeGroup {
  NodeSpec node{};
  int count = 1;
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

// Lower bound on a link's fraction of its regular capacity under any slowdown. Work of hours then takes a
// century at most, and times cover 292 years.
inline constexpr double kLeastLinkShare = 1e-6;

// An exception to the rule: links by name, with `*` as a wildcard.
struct LinkException {
  std::string name{};  // "node 3 nic 1 -> leaf 0", "node * nic 1 -> *"
  std::optional<Bandwidth> bandwidth{};
  double share = 1;  // fraction of its regular bandwidth, kLeastLinkShare <= share <= 1
  std::optional<Duration> latency{};
  bool missing = false;
  bool both = true;  // the other direction of the cable as well
  friend bool operator==(const LinkException&, const LinkException&) = default;
};

struct ClusterSpec {
  std::vector<NodeGroup> groups{};
  int gpus_used = 0;  // `cluster.gpus`: part of one node; 0 = all
  FabricSpec fabric{};
  std::vector<LinkException> links{};
  [[nodiscard]] int gpu_count() const;
  [[nodiscard]] int server_count() const;
  // GPUs that are used of a node.
  [[nodiscard]] int gpus_of(const NodeSpec& node) const { return gpus_used > 0 ? gpus_used : node.gpus; }
  [[nodiscard]] int gpus_of_server(int server) const;
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

// Some servers of a cluster, in the order of the list, as a cluster of their own: neighbours of one group are
// a group. The exceptions stay with the whole, whose links they name.
[[nodiscard]] ClusterSpec part_of(const ClusterSpec& whole, std::span<const int> servers);
// The network of a cluster between other nodes. What cannot hold them, a torus of another size, a dragonfly of
// fewer places, is one switch with the same NICs; nodes with fewer NICs than there are planes share one.
// Links that differ name nodes of the cluster as it was, and are left out.
[[nodiscard]] ClusterSpec with_groups(const ClusterSpec& cluster, std::vector<NodeGroup> groups);
// The group that a server belongs to: an index into `groups`.
[[nodiscard]] std::size_t group_of(const ClusterSpec& cluster, int server);

// Every rate of the NVLinks, and every rate between nodes, whatever says how fast it is, times `factor`. Links
// that have a bandwidth by name keep it.
void scale_nvlink(ClusterSpec& cluster, double factor);
void scale_network(ClusterSpec& cluster, double factor);

}  // namespace stagecraft
