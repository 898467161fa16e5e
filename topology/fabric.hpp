// The switches between servers: how many there are, how they are wired, and the ways from one to another.
//
// A NIC hangs on a switch of the first level: a leaf, or a router of a torus or a dragonfly. These stand in
// `blocks` of servers, each block having one of them per rail (rail-optimised) or per plane.
//
//   planes         parallel fabrics that share no switch; NIC i of a server is in plane i mod planes.
//   tree           leaf, `spines` spine switches per pod and plane, `cores` core switches per plane. A core
//                  switch meets one spine of each pod, or, where there is one alone, all of them.
//   uplinks        of a switch: its downlinks, were all its servers there, over the oversubscription of its
//                  level, shared equally by its cables.
//   dragonfly      every router of a group meets every other; `global_links` cables between each two groups,
//                  dealt to the routers of a group in turn. Minimal ways: at most one global cable.
//   torus          a router per server, numbered with the first dimension fastest; ways go along the first
//                  dimension first, in the shorter direction, in both where these are equally long.
//   source         folded Clos: Leiserson 1985, Al-Fares et al. SIGCOMM 2008 (stripes of core switches);
//                  dragonfly: Kim, Dally, Scott, Abts, ISCA 2008; torus: Dally, Towles, Principles and
//                  Practices of Interconnection Networks, chapters 5 and 8 (dimension-order routing).
#pragma once

#include <vector>

#include "topology/cluster_spec.hpp"
#include "topology/fabric_graph.hpp"
#include "topology/fabric_ways.hpp"

namespace stagecraft {

// Number of cables between its switches, which may be any; `nics` of the server that has most. A tree has fewer where
// servers have fewer NICs.
[[nodiscard]] double cables_of(const FabricSpec& spec, int servers, int nics);

// A switch of the first level, 0 .. blocks*rails-1: block by block, in a block rail by rail.
using Entry = int;

class Fabric {
 public:
  // `nics` of the server that has most.
  // throws InternalError on sizes that loaders reject: dims that are not the servers, too few routers.
  Fabric(const FabricSpec& spec, int servers, int nics);

  [[nodiscard]] Entry entry_of(int server, int nic) const;
  [[nodiscard]] int plane_of(int nic) const { return nic % rails_ % spec_.planes; }
  [[nodiscard]] VertexId vertex_of(Entry entry) const { return entries_.at(static_cast<std::size_t>(entry)); }

  void add_entries(FabricGraph& graph);
  // `down`: bandwidth below each entry.
  void add_cables(FabricGraph& graph, const std::vector<Bandwidth>& down);

  // Between two switches of the same plane.
  void walk(Ways& ways, Entry from, Entry to) const;

 private:
  [[nodiscard]] bool is_tree() const;
  [[nodiscard]] int pod_of(int block) const;
  [[nodiscard]] VertexId spine(int pod, int plane, int i) const;
  [[nodiscard]] VertexId core(int plane, int i) const;
  [[nodiscard]] double ports_per_server(int block) const;

  void add_tree(FabricGraph& graph, const std::vector<Bandwidth>& down);
  void add_cores(FabricGraph& graph, const std::vector<Bandwidth>& up);
  void add_dragonfly(FabricGraph& graph);
  void add_torus(FabricGraph& graph);
  void walk_tree(Ways& ways, Entry from, Entry to) const;
  void walk_dragonfly(Ways& ways, Entry from, Entry to) const;
  void walk_torus(Ways& ways, Entry from, Entry to) const;
  // The router of `group` at the end of cable `i` to group `other`.
  [[nodiscard]] int gateway(int group, int other, int i) const;

  FabricSpec spec_;
  int servers_ = 0;
  int block_size_ = 1;  // servers
  int blocks_ = 1;
  int rails_ = 1;
  int pods_ = 1;
  std::vector<VertexId> entries_, spines_, cores_;
};

}  // namespace stagecraft
