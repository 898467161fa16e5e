// The only search for ways, for pairs that a missing link cut off from their rule; Boost.Graph does it.
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <limits>
#include <utility>

#include "topology/fabric_ways.hpp"

namespace stagecraft {
namespace {

using Searched = boost::compressed_sparse_row_graph<boost::directedS>;
constexpr int kNever = std::numeric_limits<int>::max();

// A server passes things on inside itself, and what comes from itself to the outside: no other server's
// traffic goes through it.
bool may_cross(const FabricGraph& graph, const Link& link, int sender) {
  const int from = graph.vertex(link.from).node, to = graph.vertex(link.to).node;
  return from < 0 || from == to || from == sender;
}

// Hops from `from` to every vertex; kNever where there is no way.
std::vector<int> hops_from(const FabricGraph& graph, VertexId from) {
  const int sender = graph.vertex(from).node;
  std::vector<std::pair<std::size_t, std::size_t>> links;
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const Link& link = graph.link(EdgeId(i));
    if (may_cross(graph, link, sender)) links.emplace_back(link.from.index(), link.to.index());
  }
  const Searched searched(boost::edges_are_unsorted_multi_pass, links.begin(), links.end(),
                          graph.vertex_count());
  std::vector<int> hops(graph.vertex_count(), kNever);
  hops[from.index()] = 0;
  boost::breadth_first_search(
      searched, static_cast<Searched::vertex_descriptor>(from.index()),
      boost::visitor(boost::make_bfs_visitor(boost::record_distances(hops.data(), boost::on_tree_edge()))));
  return hops;
}

// Links into each vertex on a shortest way, seen from the end: the vertices from `to` back to `from`, each
// before those one hop nearer, with the last links of their ways.
struct Layers {
  std::vector<std::vector<EdgeId>> into;  // by vertex
  std::vector<double> ways;               // shortest ways from the start to each vertex
};

Layers shortest(const FabricGraph& graph, const std::vector<int>& hops, VertexId from) {
  Layers layers{.into = std::vector<std::vector<EdgeId>>(graph.vertex_count()),
                .ways = std::vector<double>(graph.vertex_count(), 0)};
  std::vector<VertexId> layer = {from};
  layers.ways[from.index()] = 1;
  const int sender = graph.vertex(from).node;
  for (int depth = 0; !layer.empty(); ++depth) {
    std::vector<VertexId> next;
    for (const VertexId vertex : layer)
      for (const EdgeId id : graph.links_from(vertex)) {
        const Link& link = graph.link(id);
        if (hops[link.to.index()] != depth + 1 || !may_cross(graph, link, sender)) continue;
        if (layers.into[link.to.index()].empty()) next.push_back(link.to);
        layers.into[link.to.index()].push_back(id);
        layers.ways[link.to.index()] += layers.ways[vertex.index()];
      }
    layer = std::move(next);
  }
  return layers;
}

// From the end to the start, each vertex handing its share to those before it by their number of ways.
std::vector<LinkShare> backwards(const Ways& ways, const Layers& layers, VertexId to) {
  const FabricGraph& graph = ways.graph();
  std::vector<LinkShare> shares;
  std::vector<double> through(graph.vertex_count(), 0);
  through[to.index()] = 1;
  std::vector<VertexId> layer = {to};
  for (int depth = 0; !layer.empty(); ++depth) {
    std::vector<VertexId> before;
    for (const VertexId vertex : layer) {
      const std::vector<EdgeId>& into = layers.into[vertex.index()];
      if (into.empty()) continue;
      const auto chosen = ways.choices(static_cast<int>(into.size()), depth);
      const bool one = chosen.last - chosen.first == 1;
      for (int i = chosen.first; i < chosen.last; ++i) {
        const EdgeId id = into[static_cast<std::size_t>(i)];
        const VertexId start = graph.link(id).from;
        const double part = one ? 1 : layers.ways[start.index()] / layers.ways[vertex.index()];
        shares.push_back({.link = id, .share = through[vertex.index()] * part});
        if (through[start.index()] == 0) before.push_back(start);
        through[start.index()] += shares.back().share;
      }
    }
    layer = std::move(before);
  }
  return shares;
}

}  // namespace

bool detour(Ways& ways, VertexId from, VertexId to) {
  const std::vector<int> hops = hops_from(ways.graph(), from);
  if (hops[to.index()] == kNever) return false;
  const std::vector<LinkShare> shares = backwards(ways, shortest(ways.graph(), hops, from), to);
  for (auto share = shares.rbegin(); share != shares.rend(); ++share) {
    const Link& link = ways.graph().link(share->link);
    ways.hop(link.from, link.to, share->share);
  }
  return true;
}

std::vector<bool> reachable_from(const FabricGraph& graph, VertexId from) {
  std::vector<bool> reached;
  for (const int hops : hops_from(graph, from)) reached.push_back(hops != kNever);
  return reached;
}

}  // namespace stagecraft
