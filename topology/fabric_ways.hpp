// Routes from one vertex to another: the shares of links that a rule defines, hop by hop.
//
// Adaptive routing uses all shortest routes equally; ECMP uses one, by a hash of the pair. A rule states the
// number of equal choices and walks those that choices() returns.
//
//   source   ECMP: RFC 2992 (a hash of the flow selects the way); adaptive routing as fluid sharing, see
//            Thakur et al. and InfiniBand's adaptive routing: an idealisation.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/cluster_spec.hpp"
#include "topology/fabric_graph.hpp"

namespace stagecraft {

// Mixes `value` into `hash` (the finaliser of SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
[[nodiscard]] std::uint64_t mixed(std::uint64_t hash, std::uint64_t value);

class Ways {
 public:
  Ways(const FabricGraph& graph, Routing routing, std::uint64_t hash)
      : graph_(&graph), routing_(routing), hash_(hash) {}

  struct Choices {
    int first = 0, last = 1;  // the choices to walk
    double share = 1;         // share of each choice
  };
  // The choices among `count` equal ones. `level` separates the choices along one route: leaf to spine, spine
  // to core.
  [[nodiscard]] Choices choices(int count, int level) const;

  void hop(VertexId from, VertexId to, double share = 1);
  // Along several vertices.
  void walk(const std::vector<VertexId>& vertices, double share = 1);

  // A hop had no link: the rule knows no way, and one has to be sought.
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] const FabricGraph& graph() const { return *graph_; }
  // The shares of links in the order of the walk; a link may occur twice.
  [[nodiscard]] const std::vector<LinkShare>& shares() const { return shares_; }

 private:
  const FabricGraph* graph_;
  Routing routing_;
  std::uint64_t hash_;
  bool broken_ = false;
  std::vector<LinkShare> shares_;
};

// Walks the shortest routes (fewest hops) from `from` to `to` for a pair whose rule is broken. Only the
// servers at both ends forward traffic: GPUs over NVLink or PCIe to another NIC of the server. returns false
// when there is none; then nothing was walked.
[[nodiscard]] bool detour(Ways& ways, VertexId from, VertexId to);

// Vertices that `from` reaches under the same rule.
[[nodiscard]] std::vector<bool> reachable_from(const FabricGraph& graph, VertexId from);

}  // namespace stagecraft
