// How bytes go from one vertex to another: the shares of links that rules write down, hop by hop.
//
// Adaptive routing takes every shortest way equally often; ECMP takes one, by a hash of who sends to whom. A
// rule says how many equal choices there are and walks those that choices() gives it.
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
    int first = 0, last = 1;  // those to walk
    double share = 1;         // of each
  };
  // The choices among `count` equal ones. The `level` tells those of one way apart: leaf to spine, spine to
  // core.
  [[nodiscard]] Choices choices(int count, int level) const;

  void hop(VertexId from, VertexId to, double share = 1);
  // Along several vertices.
  void walk(const std::vector<VertexId>& vertices, double share = 1);

  // A hop had no link: the rule knows no way, and one has to be sought.
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] const FabricGraph& graph() const { return *graph_; }
  // The shares of links in the order in which they were walked; a link may come twice.
  [[nodiscard]] const std::vector<LinkShare>& shares() const { return shares_; }

 private:
  const FabricGraph* graph_;
  Routing routing_;
  std::uint64_t hash_;
  bool broken_ = false;
  std::vector<LinkShare> shares_;
};

// Walks the shortest ways (fewest hops) from `from` to `to` for a pair whose rule is broken. Only the servers
// at both ends pass on what is not theirs: GPUs over NVLink or PCIe to another NIC of the server.
// returns false when there is none; then nothing was walked.
[[nodiscard]] bool detour(Ways& ways, VertexId from, VertexId to);

// Which vertices `from` reaches under the same rule.
[[nodiscard]] std::vector<bool> reachable_from(const FabricGraph& graph, VertexId from);

}  // namespace stagecraft
