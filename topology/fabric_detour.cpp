// The only searches: for the ways of a pair that a missing link cut off from its rule, and, by Boost.Graph,
// for all that a vertex reaches.
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "topology/fabric_ways.hpp"

namespace stagecraft {
namespace {

using Searched = boost::compressed_sparse_row_graph<boost::directedS>;
constexpr int kNever = std::numeric_limits<int>::max();

// May the route cross this link? A server forwards its own traffic inside itself and to the outside, but no
// other server's traffic.
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

// Shortest routes to a vertex.
struct Reached {
  int hops = 0;
  double ways = 0;           // number of routes
  std::vector<EdgeId> into;  // last links of these routes
};
using ReachedBy = std::unordered_map<std::size_t, Reached>;  // by vertex; looked up, never iterated

// Shortest routes of one pair, inside its two servers and over the fabric. Other vertices are not visited, so
// the cost of a pair is bounded by the size of the fabric.
ReachedBy shortest(const FabricGraph& graph, VertexId from, VertexId to) {
  ReachedBy reached;
  std::vector<VertexId> layer = {from};
  reached[from.index()].ways = 1;
  const int sender = graph.vertex(from).node, receiver = graph.vertex(to).node;
  for (int hops = 1; !layer.empty() && !reached.contains(to.index()); ++hops) {
    std::vector<VertexId> next;
    for (const VertexId vertex : layer)
      for (const EdgeId id : graph.links_from(vertex)) {
        const Link& link = graph.link(id);
        const int into_server = graph.vertex(link.to).node;
        const bool elsewhere = into_server >= 0 && into_server != sender && into_server != receiver;
        if (elsewhere || !may_cross(graph, link, sender)) continue;
        const auto [place, first] =
            reached.try_emplace(link.to.index(), Reached{.hops = hops, .ways = 0, .into = {}});
        if (place->second.hops != hops) continue;
        if (first) next.push_back(link.to);
        place->second.into.push_back(id);
        place->second.ways += reached.at(vertex.index()).ways;
      }
    layer = std::move(next);
  }
  return reached;
}

// From the end to the start: each vertex divides its share over its predecessors by their numbers of routes.
std::vector<LinkShare> backwards(const Ways& ways, const ReachedBy& reached, VertexId to) {
  const FabricGraph& graph = ways.graph();
  std::vector<LinkShare> shares;
  std::unordered_map<std::size_t, double> through = {{to.index(), 1.0}};
  std::vector<VertexId> layer = {to};
  for (int depth = 0; !layer.empty(); ++depth) {
    std::vector<VertexId> before;
    for (const VertexId vertex : layer) {
      const Reached& here = reached.at(vertex.index());
      if (here.into.empty()) continue;
      const auto chosen = ways.choices(static_cast<int>(here.into.size()), depth);
      const bool one = chosen.last - chosen.first == 1;
      for (int i = chosen.first; i < chosen.last; ++i) {
        const EdgeId id = here.into[static_cast<std::size_t>(i)];
        const VertexId start = graph.link(id).from;
        const double part = one ? 1 : reached.at(start.index()).ways / here.ways;
        shares.push_back({.link = id, .share = through.at(vertex.index()) * part});
        const auto [place, first] = through.try_emplace(start.index(), 0.0);
        if (first) before.push_back(start);
        place->second += shares.back().share;
      }
    }
    layer = std::move(before);
  }
  return shares;
}

}  // namespace

bool detour(Ways& ways, VertexId from, VertexId to) {
  const ReachedBy reached = shortest(ways.graph(), from, to);
  if (!reached.contains(to.index())) return false;
  const std::vector<LinkShare> shares = backwards(ways, reached, to);
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
