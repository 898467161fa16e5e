// The cluster as a graph: GPUs, NVSwitches, NICs and switches, joined by links with capacity and latency.
//
// Immutable once built. The closed-form network only asks it for bandwidths and placements; the flow network (later) routes
// over the same graph, so that one topology serves both fidelities. Many identical nodes are built one by one: 1,024 GPUs are
// about 3,000 vertices.
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

enum class VertexKind : std::uint8_t { kGpu, kNvSwitch, kNic, kLeafSwitch, kSpineSwitch };

struct Vertex {
  VertexKind kind = VertexKind::kGpu;
  int node = -1;   // server index; -1 for switches of the fabric
  int index = 0;   // within its node and kind
};

struct Link {  // one direction: the graph is directed, each cable is two edges
  Bandwidth capacity;
  Duration latency{};
};

class Cluster {
 public:
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Link>;

  explicit Cluster(const ClusterSpec& spec);

  [[nodiscard]] const ClusterSpec& spec() const { return spec_; }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] int gpu_count() const { return static_cast<int>(node_of_gpu_.size()); }
  [[nodiscard]] int node_count() const { return node_count_; }
  [[nodiscard]] int node_of(DeviceId gpu) const { return node_of_gpu_.at(gpu.index()); }
  [[nodiscard]] const NodeSpec& node_spec_of(DeviceId gpu) const;

  // Network bandwidth out of the node of `gpu`, all its NICs together (the fabric's override counts).
  [[nodiscard]] Bandwidth node_network(DeviceId gpu) const;

  // Shortest route by latency then hops, as graph edges; empty when a == b. Deterministic.
  [[nodiscard]] std::vector<Graph::edge_descriptor> route(DeviceId a, DeviceId b) const;

 private:
  ClusterSpec spec_;
  Graph graph_;
  std::vector<int> node_of_gpu_;
  std::vector<int> group_of_node_;
  int node_count_ = 0;
};

}  // namespace stagecraft
