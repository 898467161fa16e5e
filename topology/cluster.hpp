// The cluster as a graph: GPUs, NVSwitches, NICs and switches, joined by links with capacity and latency.
//
// Immutable once built. The closed-form network only asks it for bandwidths and placements; a flow network
// routes over the same graph, so that one topology serves both fidelities. Nodes are built one by one: 1,024
// GPUs in 128 nodes are 2,184 vertices and 6,158 edges.
//
//   node        every GPU hangs on the node's switch (NVSwitch, or the PCIe root without NVLink) and on its
//   nearest NIC.
//               Nodes with more NICs than GPUs have one NIC vertex per GPU that bundles what the GPU can use.
//   fabric      one node has none. Single switch: all NICs on one leaf. Fat tree: the NICs of
//   `nodes_per_leaf` nodes on one
//               leaf. Rail-optimised: NIC i of these nodes on leaf i. Several leaves meet in one spine, which
//               stands for all spine switches: adaptive routing shares them like a fluid.
//   uplink      of a leaf: its downlinks, were all `nodes_per_leaf` nodes there, divided by the
//   oversubscription. source      docs of NVIDIA DGX SuperPOD for rails and leaves; oversubscription as
//   capacity of uplinks over downlinks.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

using DeviceId = Id<struct DeviceTag>;  // a GPU, 0 .. gpu_count-1: node by node
using EdgeId = Id<struct EdgeTag>;      // one direction of a cable, 0 .. link_count-1

enum class VertexKind : std::uint8_t { kGpu, kNvSwitch, kPcieRoot, kNic, kLeafSwitch, kSpineSwitch };

struct Vertex {
  VertexKind kind = VertexKind::kGpu;
  int node = -1;  // server index; -1 for switches of the fabric
  int index = 0;  // within its node and kind
};

struct Link {  // one direction: the graph is directed, each cable is two edges
  Bandwidth capacity{};
  Duration latency{};
  EdgeId id{};
};

// Which share of the bytes from one GPU to another crosses a link.
struct LinkShare {
  EdgeId link;
  double share = 1;
  friend bool operator==(const LinkShare&, const LinkShare&) = default;
};

class Cluster {
 public:
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Link>;
  using VertexId = Graph::vertex_descriptor;

  // throws InternalError on no nodes, a node without GPUs or NICs, or `gpus_used` beyond one node; loaders
  // reject these.
  explicit Cluster(const ClusterSpec& spec);

  [[nodiscard]] const ClusterSpec& spec() const { return spec_; }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] int gpu_count() const { return static_cast<int>(node_of_gpu_.size()); }
  [[nodiscard]] int node_count() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] int node_of(DeviceId gpu) const { return node_of_gpu_.at(gpu.index()); }
  [[nodiscard]] const NodeSpec& node_spec_of(DeviceId gpu) const;

  // GPUs of a node are consecutive: first_gpu(node) .. first_gpu(node) + gpus_in(node) - 1.
  [[nodiscard]] int first_gpu(int node) const { return at(node).first_gpu; }
  [[nodiscard]] int gpus_in(int node) const { return at(node).gpus; }

  // Network bandwidth out of the node of `gpu`, all its NICs together (the fabric's override counts).
  [[nodiscard]] Bandwidth node_network(DeviceId gpu) const { return at(node_of(gpu)).network; }
  // What one GPU alone gets out of its node: its nearest NIC, or its share where NICs outnumber GPUs; never
  // above its PCIe.
  [[nodiscard]] Bandwidth gpu_network(DeviceId gpu) const;

  // The way NCCL sends, as edges of the graph from `a` to `b`; empty when a == b. Fixed by the rules below,
  // not searched.
  //   same node       GPU, node's switch, GPU.
  //   other node      GPU, nearest NIC, leaf, (spine, leaf where leaves differ), NIC, GPU.
  //   rail-optimised  with NVLink first to the GPU on the rail of `b` (NCCL's PXN), so that rails never meet
  //   in the spine
  //                   below one group of rail switches.
  [[nodiscard]] std::vector<Graph::edge_descriptor> route(DeviceId a, DeviceId b) const;

  [[nodiscard]] std::size_t link_count() const { return edges_.size(); }
  [[nodiscard]] const Link& link(EdgeId id) const { return graph_[edges_.at(id.index())]; }
  // "node 3 gpu 2 -> nvswitch", "node 3 nic 1 -> leaf 0": the end in the same node is not named twice.
  [[nodiscard]] std::string link_name(EdgeId id) const;

  // How the bytes from `a` to `b` spread over links: what leaves a vertex has entered it, but for both ends.
  // Ascending by link; empty when a == b.
  [[nodiscard]] std::vector<LinkShare> spread(DeviceId a, DeviceId b) const;

  // Switches of the fabric on that way: 0 in a node, 1 below one leaf, 3 through the spine.
  [[nodiscard]] int switches_between(DeviceId a, DeviceId b) const;

 private:
  struct Node {
    int group = 0;
    int first_gpu = 0;
    int gpus = 0;
    int nics = 0;               // NIC vertices
    VertexId first_vertex = 0;  // GPUs, then the node's switch, then NICs
    Bandwidth network{};
  };

  [[nodiscard]] const Node& at(int node) const { return nodes_.at(static_cast<std::size_t>(node)); }
  [[nodiscard]] int slot_of(DeviceId gpu) const {
    return static_cast<int>(gpu.value()) - at(node_of(gpu)).first_gpu;
  }
  [[nodiscard]] int nic_of(const Node& node, int slot) const { return slot * node.nics / node.gpus; }
  [[nodiscard]] VertexId gpu_vertex(const Node& node, int slot) const;
  [[nodiscard]] VertexId switch_vertex(const Node& node) const;
  [[nodiscard]] VertexId nic_vertex(const Node& node, int nic) const;
  [[nodiscard]] std::size_t leaf_of(int node, int nic) const;  // index into leaves_
  [[nodiscard]] std::vector<VertexId> way(DeviceId a, DeviceId b) const;

  // The GPU slot in a's node whose NIC carries traffic from a to b, and the NIC that b receives on.
  struct Rail {
    int slot = 0;
    int from_nic = 0;
    int to_nic = 0;
  };
  [[nodiscard]] Rail rail_between(DeviceId a, DeviceId b) const;

  void add_node(int group);
  void add_fabric();
  void connect(VertexId a, VertexId b, Link link);

  ClusterSpec spec_;
  Graph graph_;
  std::vector<Graph::edge_descriptor> edges_;  // by EdgeId
  std::vector<int> node_of_gpu_;
  std::vector<Node> nodes_;
  int rails_ = 1;  // leaves per group of nodes
  std::vector<VertexId> leaves_;
  VertexId spine_ = 0;  // meaningful with two leaves or more
};

}  // namespace stagecraft
