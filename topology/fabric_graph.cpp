#include "topology/fabric_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/check.hpp"

namespace stagecraft {
namespace {

std::string short_name(const Vertex& vertex) {
  const std::string_view kind = kind_name(vertex.kind, vertex.node < 0);
  return vertex.one ? std::string(kind) : fmt::format("{} {}", kind, vertex.index);
}

}  // namespace

std::string_view kind_name(VertexKind kind, bool between_servers) {
  switch (kind) {
    case VertexKind::kGpu:
      return "gpu";
    case VertexKind::kNvSwitch:
      return between_servers ? "nvlink domain" : "nvswitch";
    case VertexKind::kNvSwitchOut:
      return between_servers ? "nvlink domain out" : "nvswitch out";
    case VertexKind::kPcieRoot:
      return "pcie root";
    case VertexKind::kPcieSwitch:
      return "pcie switch";
    case VertexKind::kNic:
      return "nic";
    case VertexKind::kLeafSwitch:
      return "leaf";
    case VertexKind::kSpineSwitch:
      return "spine";
    case VertexKind::kCoreSwitch:
      return "core";
    case VertexKind::kRouter:
      return "router";
  }
  SC_CHECK(false, "every kind of vertex has a name");
  return {};
}

bool is_fabric_switch(VertexKind kind) {
  return kind == VertexKind::kLeafSwitch || kind == VertexKind::kSpineSwitch ||
         kind == VertexKind::kCoreSwitch || kind == VertexKind::kRouter;
}

void FabricGraph::add_link(VertexId from, VertexId to, Bandwidth capacity, Duration latency) {
  SC_CHECK(capacity > Bandwidth(0), "a link has a capacity");
  const EdgeId id(static_cast<std::uint32_t>(links_.size()));
  links_.push_back({.capacity = capacity, .latency = latency, .id = id, .from = from, .to = to});
}

void FabricGraph::add_cable(VertexId a, VertexId b, Bandwidth capacity, Duration latency) {
  add_link(a, b, capacity, latency);
  add_link(b, a, capacity, latency);
}

void FabricGraph::index() {
  by_start_.clear();
  for (const Link& link : links_) by_start_.push_back(link.id);
  const auto ends = [&](EdgeId id) { return std::tuple(links_[id].from, links_[id].to); };
  std::ranges::sort(by_start_, [&](EdgeId a, EdgeId b) { return ends(a) < ends(b); });
  const auto twin =
      std::ranges::adjacent_find(by_start_, [&](EdgeId a, EdgeId b) { return ends(a) == ends(b); });
  SC_CHECK(twin == by_start_.end(), "between two vertices lies at most one link each way");
  starts_.assign(vertex_count() + 1, 0);
  for (const Link& link : links_) ++starts_[link.from.index() + 1];
  for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
}

void FabricGraph::drop(const std::vector<bool>& gone) {
  SC_CHECK(gone.size() == link_count(), "each link stays or goes");
  IdVector<EdgeId, Link> rest;
  for (Link link : links_) {
    if (gone[link.id.index()]) continue;
    link.id = EdgeId(static_cast<std::uint32_t>(rest.size()));
    rest.push_back(link);
  }
  links_ = std::move(rest);
  index();
}

std::span<const EdgeId> FabricGraph::links_from(VertexId vertex) const {
  SC_CHECK(vertex.index() + 1 < starts_.size(), "a graph is indexed before it is asked");
  return std::span(by_start_).subspan(starts_[vertex.index()],
                                      starts_[vertex.index() + 1] - starts_[vertex.index()]);
}

std::optional<EdgeId> FabricGraph::find(VertexId from, VertexId to) const {
  const auto links = links_from(from);
  const auto found = std::lower_bound(links.begin(), links.end(), to,
                                      [&](EdgeId id, VertexId end) { return links_[id].to < end; });
  if (found == links.end() || links_[*found].to != to) return std::nullopt;
  return *found;
}

std::string FabricGraph::name(VertexId id) const {
  const Vertex& it = vertex(id);
  return it.node < 0 ? short_name(it) : fmt::format("node {} {}", it.node, short_name(it));
}

std::string FabricGraph::name(EdgeId id) const {
  const Vertex &from = vertex(link(id).from), &to = vertex(link(id).to);
  const bool same_server = from.node >= 0 && from.node == to.node;
  return fmt::format("{} -> {}", name(link(id).from), same_server ? short_name(to) : name(link(id).to));
}

}  // namespace stagecraft
