#include "topology/cluster_drawing.hpp"

#include <map>
#include <utility>

namespace stagecraft {

ClusterDrawing draw(const Cluster& cluster) {
  const FabricGraph& graph = cluster.graph();
  ClusterDrawing drawing{.vertices = {}, .ends = IdVector<EdgeId, LinkEnds>(cluster.link_count())};
  int gpus = 0;             // they are numbered in the order of their vertices
  std::map<int, int> nics;  // NICs of each node; servers of one NVLink domain count on
  for (std::uint32_t i = 0; i < graph.vertex_count(); ++i) {
    Vertex vertex = graph.vertex(VertexId(i));
    if (vertex.node >= 0)
      vertex.node = cluster.node_of_server(vertex.node);
    else if (!is_fabric_switch(vertex.kind))
      vertex.node = std::exchange(vertex.index, 0);  // the NVSwitch of an NVLink domain
    if (vertex.kind == VertexKind::kGpu) vertex.index = gpus++ - cluster.first_gpu(vertex.node);
    if (vertex.kind == VertexKind::kNic) vertex.index = nics[vertex.node]++;
    drawing.vertices.push_back(vertex);
  }
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i) {
    const Link& link = cluster.link(EdgeId(i));
    drawing.ends[EdgeId(i)] = {link.from.index(), link.to.index()};
  }
  return drawing;
}

}  // namespace stagecraft
