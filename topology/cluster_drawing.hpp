// The graph of a cluster as two lists, for code that visits all of it: vertices, and the ends of each link.
#pragma once

#include <cstddef>
#include <vector>

#include "base/ids.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {

struct LinkEnds {
  std::size_t from = 0, to = 0;  // indices into `vertices`
};

struct ClusterDrawing {
  // `node` is the node (see cluster.hpp), not the server, and a GPU's `index` counts within it.
  std::vector<Vertex> vertices;
  IdVector<EdgeId, LinkEnds> ends;
};
[[nodiscard]] ClusterDrawing draw(const Cluster& cluster);

}  // namespace stagecraft
