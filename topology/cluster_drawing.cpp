#include "topology/cluster_drawing.hpp"

namespace stagecraft {

ClusterDrawing draw(const Cluster& cluster) {
  const Cluster::Graph& graph = cluster.graph();
  ClusterDrawing drawing{.vertices = {}, .ends = IdVector<EdgeId, LinkEnds>(cluster.link_count())};
  for (auto [vertex, end] = boost::vertices(graph); vertex != end; ++vertex)
    drawing.vertices.push_back(graph[*vertex]);
  for (auto [edge, end] = boost::edges(graph); edge != end; ++edge)
    drawing.ends[graph[*edge].id] = {boost::source(*edge, graph), boost::target(*edge, graph)};
  return drawing;
}

bool is_network_switch(VertexKind kind) {
  return kind == VertexKind::kLeafSwitch || kind == VertexKind::kSpineSwitch;
}

}  // namespace stagecraft
