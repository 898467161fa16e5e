#include "topology/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {
namespace {

int nics_of(const NodeSpec& node, const FabricSpec& fabric) {
  return fabric.nics_per_node > 0 ? fabric.nics_per_node : node.nics;
}

Bandwidth nic_bandwidth_of(const NodeSpec& node, const FabricSpec& fabric) {
  return fabric.nic_bandwidth > Bandwidth(0) ? fabric.nic_bandwidth : node.nic_bandwidth;
}

std::string name_of(const Vertex& vertex) {
  switch (vertex.kind) {
    case VertexKind::kGpu:
      return fmt::format("gpu {}", vertex.index);
    case VertexKind::kNvSwitch:
      return "nvswitch";
    case VertexKind::kPcieRoot:
      return "pcie root";
    case VertexKind::kNic:
      return fmt::format("nic {}", vertex.index);
    case VertexKind::kLeafSwitch:
      return fmt::format("leaf {}", vertex.index);
    case VertexKind::kSpineSwitch:
      return fmt::format("spine {}", vertex.index);
  }
  SC_CHECK(false, "every kind of vertex has a name");
  return {};
}

std::string place_of(const Vertex& vertex) {
  return vertex.node < 0 ? std::string() : fmt::format("node {} ", vertex.node);
}

}  // namespace

Cluster::Cluster(const ClusterSpec& spec) : spec_(spec) {
  SC_CHECK(spec.gpu_count() > 0, "a cluster has GPUs");
  SC_CHECK(spec.gpus_used == 0 || (spec.groups.size() == 1 && spec.groups[0].count == 1),
           "only one node can be used in part");
  SC_CHECK(spec.fabric.nodes_per_leaf > 0, "a leaf switch has nodes below it");
  node_of_gpu_.reserve(static_cast<std::size_t>(spec.gpu_count()));
  for (std::size_t group = 0; group < spec.groups.size(); ++group)
    for (int i = 0; i < spec.groups[group].count; ++i) add_node(static_cast<int>(group));
  if (node_count() > 1) add_fabric();
}

void Cluster::connect(VertexId a, VertexId b, Link link) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    link.id = EdgeId(static_cast<std::uint32_t>(edges_.size()));
    edges_.push_back(boost::add_edge(from, to, link, graph_).first);
  }
}

void Cluster::add_node(int group) {
  const NodeSpec& spec = spec_.groups[static_cast<std::size_t>(group)].node;
  SC_CHECK(spec.gpus > 0 && spec_.gpus_used <= spec.gpus, "a node has the GPUs that are used of it");
  const int nics = nics_of(spec, spec_.fabric);
  SC_CHECK(nics > 0, "a node has a NIC");
  const int index = node_count();
  const Node node{.group = group,
                  .first_gpu = gpu_count(),
                  .gpus = spec_.gpus_used > 0 ? spec_.gpus_used : spec.gpus,
                  .nics = std::min(nics, spec.gpus),
                  .first_vertex = boost::num_vertices(graph_),
                  .network = nics * nic_bandwidth_of(spec, spec_.fabric)};
  nodes_.push_back(node);
  node_of_gpu_.insert(node_of_gpu_.end(), static_cast<std::size_t>(node.gpus), index);

  const bool nvlink = spec.nvlink > Bandwidth(0);
  for (int i = 0; i < node.gpus; ++i) boost::add_vertex(Vertex{VertexKind::kGpu, index, i}, graph_);
  boost::add_vertex(Vertex{nvlink ? VertexKind::kNvSwitch : VertexKind::kPcieRoot, index, 0}, graph_);
  for (int i = 0; i < node.nics; ++i) boost::add_vertex(Vertex{VertexKind::kNic, index, i}, graph_);
  for (int i = 0; i < node.gpus; ++i) {
    connect(gpu_vertex(node, i), switch_vertex(node),
            {nvlink ? spec.nvlink : spec.pcie, spec.nvlink_latency});
    connect(gpu_vertex(node, i), nic_vertex(node, nic_of(node, i)), {spec.pcie, Duration::zero()});
  }
}

void Cluster::add_fabric() {
  const FabricSpec& fabric = spec_.fabric;
  if (fabric.kind == FabricKind::kRailOptimized)
    for (const Node& node : nodes_) rails_ = std::max(rails_, node.nics);
  const int per_leaf = fabric.kind == FabricKind::kSingleSwitch ? node_count() : fabric.nodes_per_leaf;
  const int leaves = (node_count() + per_leaf - 1) / per_leaf * rails_;
  for (int i = 0; i < leaves; ++i)
    leaves_.push_back(boost::add_vertex(Vertex{VertexKind::kLeafSwitch, -1, i}, graph_));

  std::vector<Bandwidth> down(leaves_.size());
  for (int n = 0; n < node_count(); ++n)
    for (int nic = 0; nic < at(n).nics; ++nic) {
      const Bandwidth rate = at(n).network / at(n).nics;
      connect(nic_vertex(at(n), nic), leaves_[leaf_of(n, nic)], {rate, fabric.switch_latency});
      down[leaf_of(n, nic)] += rate;
    }
  if (leaves < 2) return;

  spine_ = boost::add_vertex(Vertex{VertexKind::kSpineSwitch, -1, 0}, graph_);
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const int first = static_cast<int>(i) / rails_ * per_leaf;
    const int present = std::min(per_leaf, node_count() - first);
    // A leaf has all its ports, however few nodes hang on it.
    const double full = static_cast<double>(per_leaf) / present;
    connect(leaves_[i], spine_, {down[i] * (full / fabric.oversubscription), fabric.switch_latency});
  }
}

const NodeSpec& Cluster::node_spec_of(DeviceId gpu) const {
  return spec_.groups[static_cast<std::size_t>(at(node_of(gpu)).group)].node;
}

Bandwidth Cluster::gpu_network(DeviceId gpu) const {
  const Node& node = at(node_of(gpu));
  const Bandwidth nic = node.network / node.nics;
  const Bandwidth pcie = node_spec_of(gpu).pcie;
  return pcie > Bandwidth(0) ? std::min(nic, pcie) : nic;
}

Cluster::VertexId Cluster::gpu_vertex(const Node& node, int slot) const {
  return node.first_vertex + static_cast<VertexId>(slot);
}

Cluster::VertexId Cluster::switch_vertex(const Node& node) const {
  return node.first_vertex + static_cast<VertexId>(node.gpus);
}

Cluster::VertexId Cluster::nic_vertex(const Node& node, int nic) const {
  return switch_vertex(node) + 1 + static_cast<VertexId>(nic);
}

std::size_t Cluster::leaf_of(int node, int nic) const {
  const int block = spec_.fabric.kind == FabricKind::kSingleSwitch ? 0 : node / spec_.fabric.nodes_per_leaf;
  return static_cast<std::size_t>(block * rails_ + nic % rails_);
}

Cluster::Rail Cluster::rail_between(DeviceId a, DeviceId b) const {
  const Node& from = at(node_of(a));
  const Node& to = at(node_of(b));
  Rail rail{.slot = slot_of(a), .from_nic = nic_of(from, slot_of(a)), .to_nic = nic_of(to, slot_of(b))};
  const bool changes_rail = leaf_of(0, rail.from_nic) != leaf_of(0, rail.to_nic);
  if (!changes_rail || node_spec_of(a).nvlink <= Bandwidth(0) || rail.to_nic >= from.nics) return rail;
  while (nic_of(from, rail.slot) > rail.to_nic) --rail.slot;
  while (nic_of(from, rail.slot) < rail.to_nic) ++rail.slot;
  rail.from_nic = rail.to_nic;
  return rail;
}

std::vector<Cluster::VertexId> Cluster::way(DeviceId a, DeviceId b) const {
  const Node& from = at(node_of(a));
  const Node& to = at(node_of(b));
  std::vector<VertexId> vertices = {gpu_vertex(from, slot_of(a))};
  if (node_of(a) == node_of(b)) {
    vertices.push_back(switch_vertex(from));
  } else {
    const Rail rail = rail_between(a, b);
    if (rail.slot != slot_of(a)) {
      vertices.push_back(switch_vertex(from));
      vertices.push_back(gpu_vertex(from, rail.slot));
    }
    const std::size_t up = leaf_of(node_of(a), rail.from_nic);
    const std::size_t down = leaf_of(node_of(b), rail.to_nic);
    vertices.push_back(nic_vertex(from, rail.from_nic));
    vertices.push_back(leaves_[up]);
    if (up != down) {
      vertices.push_back(spine_);
      vertices.push_back(leaves_[down]);
    }
    vertices.push_back(nic_vertex(to, rail.to_nic));
  }
  vertices.push_back(gpu_vertex(to, slot_of(b)));
  return vertices;
}

std::vector<Cluster::Graph::edge_descriptor> Cluster::route(DeviceId a, DeviceId b) const {
  if (a == b) return {};
  const std::vector<VertexId> vertices = way(a, b);
  std::vector<Graph::edge_descriptor> edges;
  edges.reserve(vertices.size() - 1);
  for (std::size_t i = 0; i + 1 < vertices.size(); ++i) {
    const auto [edge, found] = boost::edge(vertices[i], vertices[i + 1], graph_);
    SC_CHECK(found, "a route follows links");
    edges.push_back(edge);
  }
  return edges;
}

std::string Cluster::link_name(EdgeId id) const {
  const Graph::edge_descriptor edge = edges_.at(id.index());
  const Vertex &from = graph_[boost::source(edge, graph_)], &to = graph_[boost::target(edge, graph_)];
  if (from.node < 0) return fmt::format("{} -> {}{}", name_of(from), place_of(to), name_of(to));
  return fmt::format("{}{} -> {}", place_of(from), name_of(from), name_of(to));
}

std::vector<LinkShare> Cluster::spread(DeviceId a, DeviceId b) const {
  std::vector<LinkShare> shares;
  for (const Graph::edge_descriptor& edge : route(a, b)) shares.push_back({.link = graph_[edge].id});
  std::sort(shares.begin(), shares.end(),
            [](const LinkShare& x, const LinkShare& y) { return x.link < y.link; });
  return shares;
}

int Cluster::switches_between(DeviceId a, DeviceId b) const {
  if (node_of(a) == node_of(b)) return 0;
  const Rail rail = rail_between(a, b);
  return leaf_of(node_of(a), rail.from_nic) == leaf_of(node_of(b), rail.to_nic) ? 1 : 3;
}

}  // namespace stagecraft
