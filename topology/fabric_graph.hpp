// The graph of a cluster: vertices and links in flat arrays.
//
// A cable is two links, one for each direction. Between two vertices lies at most one link each way, so that
// a way is a list of vertices. Nothing is sought here but a link by its ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"

namespace stagecraft {

using VertexId = Id<struct VertexTag>;
using EdgeId = Id<struct EdgeTag>;  // one direction of a cable, 0 .. link_count-1

enum class VertexKind : std::uint8_t {
  kGpu,
  kNvSwitch,  // NVSwitch of a server, or of an NVLink domain of several servers when its `node` is -1
  kPcieRoot,
  kNic,
  kLeafSwitch,
  kSpineSwitch,
  kCoreSwitch,
  kRouter,       // router of a torus or a dragonfly
  kPcieSwitch,   // between a PCIe root and the GPUs and NICs below it
  kNvSwitchOut,  // outgoing side of an NVSwitch with limited throughput
};

struct Vertex {
  VertexKind kind = VertexKind::kGpu;
  int node = -1;    // server index; -1 between servers
  int index = 0;    // index within its server and kind
  bool one = true;  // the only one of its kind in its server: its name needs no number
};

struct Link {  // one direction
  Bandwidth capacity{};
  Duration latency{};
  EdgeId id{};
  VertexId from{}, to{};
};

// Share of the bytes from one GPU to another that crosses a link.
struct LinkShare {
  EdgeId link;
  double share = 1;
  friend bool operator==(const LinkShare&, const LinkShare&) = default;
};

[[nodiscard]] bool is_fabric_switch(VertexKind kind);

// "gpu", "pcie root", "leaf"; an NVSwitch between servers is an NVLink domain.
[[nodiscard]] std::string_view kind_name(VertexKind kind, bool between_servers = false);

class FabricGraph {
 public:
  VertexId add_vertex(Vertex vertex) { return vertices_.push_back(vertex); }
  void add_link(VertexId from, VertexId to, Bandwidth capacity, Duration latency);
  void add_cable(VertexId a, VertexId b, Bandwidth capacity, Duration latency);  // a to b, then b to a
  // Must be called once all links are there; find() and links_from() answer afterwards.
  void index();
  // Drops links for which `gone` (by EdgeId) is true and numbers the others anew, in the same order.
  void drop(const std::vector<bool>& gone);

  [[nodiscard]] std::size_t vertex_count() const { return vertices_.size(); }
  [[nodiscard]] std::size_t link_count() const { return links_.size(); }
  [[nodiscard]] const Vertex& vertex(VertexId id) const { return vertices_.at(id); }
  [[nodiscard]] const Link& link(EdgeId id) const { return links_.at(id); }
  [[nodiscard]] Link& link(EdgeId id) { return links_[id]; }
  [[nodiscard]] std::optional<EdgeId> find(VertexId from, VertexId to) const;
  [[nodiscard]] std::span<const EdgeId> links_from(VertexId vertex) const;  // ascending by where they end

  [[nodiscard]] std::string name(VertexId id) const;  // "node 3 gpu 2", "nvlink domain 0", "leaf 0"
  [[nodiscard]] std::string name(EdgeId id) const;    // the end in the same server is not named twice

 private:
  IdVector<VertexId, Vertex> vertices_;
  IdVector<EdgeId, Link> links_;
  std::vector<EdgeId> by_start_;     // links, by start and end
  std::vector<std::size_t> starts_;  // start of each vertex's links in by_start_; one more entry at the end
};

}  // namespace stagecraft
