// Bisection and disjoint ways: smallest cuts, found by maximum flow.
#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/check.hpp"
#include "topology/cluster_drawing.hpp"
#include "topology/cluster_view.hpp"

namespace stagecraft {
namespace {

using Capacity = std::int64_t;  // bytes per second, or links: whole numbers, so that cuts are exact

struct FlowEdge {
  Capacity capacity = 0, residual = 0;
  boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>::edge_descriptor reverse{};
};
using FlowGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, FlowEdge>;

// The flow graph has one vertex for all sources and one for all sinks, so the amounts they send are
// unlimited.
enum class Role : std::uint8_t { kPasses, kSource, kSink, kAbsent };
constexpr std::size_t kSourceVertex = 0, kSinkVertex = 1, kFirstOther = 2;

struct Cut {
  Capacity flow = 0;
  std::vector<EdgeId> links;  // ascending
};

void add(FlowGraph& graph, std::size_t from, std::size_t to, Capacity capacity) {
  const auto forth = boost::add_edge(from, to, graph).first;
  const auto back = boost::add_edge(to, from, graph).first;
  graph[forth] = {.capacity = capacity, .residual = capacity, .reverse = back};
  graph[back] = {.capacity = 0, .residual = 0, .reverse = forth};
}

// The vertex of the flow graph, by vertex of the drawing.
std::vector<std::size_t> merged(const std::vector<Role>& roles) {
  std::vector<std::size_t> vertex_of(roles.size());
  std::size_t next = kFirstOther;
  for (std::size_t v = 0; v < roles.size(); ++v)
    vertex_of[v] = roles[v] == Role::kSource ? kSourceVertex : roles[v] == Role::kSink ? kSinkVertex : next++;
  return vertex_of;
}

// Vertices that the source still reaches after maximum flow: its side of the cut.
std::vector<bool> source_side(const FlowGraph& graph) {
  std::vector<bool> reached(boost::num_vertices(graph), false);
  std::vector<std::size_t> open = {kSourceVertex};
  reached[kSourceVertex] = true;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    for (auto [edge, end] = boost::out_edges(at, graph); edge != end; ++edge) {
      const std::size_t to = boost::target(*edge, graph);
      if (graph[*edge].residual <= 0 || reached[to]) continue;
      reached[to] = true;
      open.push_back(to);
    }
  }
  return reached;
}

template <class CapacityOf>
Cut smallest_cut(const ClusterDrawing& drawing, const std::vector<Role>& roles, CapacityOf capacity_of) {
  const std::vector<std::size_t> vertex_of = merged(roles);
  const auto absent = [&](LinkEnds link) {
    return roles[link.from] == Role::kAbsent || roles[link.to] == Role::kAbsent;
  };
  FlowGraph graph(roles.size() + kFirstOther);  // never copied: `reverse` points into it
  for (std::uint32_t i = 0; i < drawing.ends.size(); ++i) {
    const LinkEnds link = drawing.ends[EdgeId(i)];
    if (!absent(link) && vertex_of[link.from] != vertex_of[link.to])
      add(graph, vertex_of[link.from], vertex_of[link.to], capacity_of(EdgeId(i)));
  }
  Cut cut;
  cut.flow = boost::push_relabel_max_flow(
      graph, kSourceVertex, kSinkVertex, boost::get(&FlowEdge::capacity, graph),
      boost::get(&FlowEdge::residual, graph), boost::get(&FlowEdge::reverse, graph),
      boost::get(boost::vertex_index, graph));
  const std::vector<bool> near = source_side(graph);
  for (std::uint32_t i = 0; i < drawing.ends.size(); ++i) {
    const LinkEnds link = drawing.ends[EdgeId(i)];
    if (!absent(link) && near[vertex_of[link.from]] && !near[vertex_of[link.to]])
      cut.links.push_back(EdgeId(i));
  }
  return cut;
}

}  // namespace

Bisection bisection(const Cluster& cluster) {
  if (cluster.gpu_count() < 2) return {};
  const int first =
      cluster.node_count() > 1 ? cluster.first_gpu(cluster.node_count() / 2) : cluster.gpu_count() / 2;
  const ClusterDrawing drawing = draw(cluster);
  std::vector<Role> roles(drawing.vertices.size(), Role::kPasses);
  for (std::size_t v = 0; v < roles.size(); ++v) {
    const Vertex& vertex = drawing.vertices[v];
    if (vertex.kind == VertexKind::kGpu)
      roles[v] = cluster.first_gpu(vertex.node) + vertex.index < first ? Role::kSource : Role::kSink;
  }
  Cut cut = smallest_cut(drawing, roles, [&](EdgeId link) {
    return static_cast<Capacity>(std::llround(cluster.link(link).capacity.count()));
  });
  return {.first_gpus = first,
          .bandwidth = Bandwidth(static_cast<double>(cut.flow)),
          .cut = std::move(cut.links)};
}

int disjoint_ways(const Cluster& cluster, int from_node, int to_node) {
  SC_CHECK(from_node != to_node, "ways lead from one node to another");
  const ClusterDrawing drawing = draw(cluster);
  std::vector<Role> roles(drawing.vertices.size(), Role::kPasses);
  for (std::size_t v = 0; v < roles.size(); ++v) {
    const Vertex& vertex = drawing.vertices[v];
    if (vertex.node >= 0 && vertex.node != from_node && vertex.node != to_node) roles[v] = Role::kAbsent;
    if (vertex.kind != VertexKind::kGpu) continue;
    if (vertex.node == from_node) roles[v] = Role::kSource;
    if (vertex.node == to_node) roles[v] = Role::kSink;
  }
  return static_cast<int>(smallest_cut(drawing, roles, [](EdgeId) { return Capacity{1}; }).flow);
}

}  // namespace stagecraft
