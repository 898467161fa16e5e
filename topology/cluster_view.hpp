// Summary of a cluster: bandwidth between its halves, numbers of disjoint routes between nodes, and kinds of
// GPU pairs. For display only; no price depends on it.
//
//   source   bisection as the smallest cut between two halves: Dally, Towles, Principles and Practices of
//            Interconnection Networks, section 3.3.1, here for the one halving that rank order gives; cuts
//            and disjoint ways by maximum flow: Menger 1927; Ford, Fulkerson 1956.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {

// The smallest cut between the first half of the nodes (the smaller one of an odd number) and the others, in
// rank order; of a single node between the halves of its GPUs. Each GPU may send to each of the other half.
struct Bisection {
  int first_gpus = 0;     // GPUs 0 .. first_gpus-1 are the first half
  Bandwidth bandwidth{};  // one direction: from the first half to the other
  // The links that bound it, in that direction, ascending; those nearest the first half.
  std::vector<EdgeId> cut;
};
// returns no bandwidth and no cut for a cluster of one GPU.
[[nodiscard]] Bisection bisection(const Cluster& cluster);

// Number of routes without a common link from the GPUs of one node to those of another. Other nodes forward
// nothing. A link that stands for several cables (a bundle of uplinks, one spine for all) counts once. throws
// InternalError when both are the same node.
[[nodiscard]] int disjoint_ways(const Cluster& cluster, int from_node, int to_node);

// Pairs of GPUs at equal distance: the same numbers below, and the same switches on the route.
struct PairClass {
  std::string name;        // "same NVLink domain", "same node", "same leaf", "through a spine"
  std::int64_t pairs = 0;  // unordered; an estimate where pair_classes() had to sample
  int links = 0;           // links on each route
  int switches = 0;        // fabric switches on each route
  Duration latency{};      // latency of the links: NVLink hops and one per switch; software adds to it
  // Bandwidth of one pair on an idle network over all its routes, without efficiency losses.
  Bandwidth bandwidth{};
  DeviceId from{}, to{};  // one such pair
};
struct PairClasses {
  std::vector<PairClass> classes;  // nearest first: by switches, links, latency, then widest first
  bool sampled = false;            // sampled from some of the nodes: the other pairs are assumed equal
};
// Cost: nodes that hang on the same switches with the same links are looked at once. Where the ways between
// these would have over `max_links` links together, evenly spaced nodes stand for all.
[[nodiscard]] PairClasses pair_classes(const Cluster& cluster, std::int64_t max_links = 5'000'000);

struct ClusterTotals {
  int nodes = 0;    // servers
  int domains = 0;  // GPUs that meet without the network: NVLink domains, or each node
  int gpus = 0;
  int nics = 0;            // vertices: nodes with more NICs than GPUs bundle them
  int switches = 0;        // fabric switches; one entry may stand for all spines
  std::size_t cables = 0;  // links that go both ways count once
  Bandwidth injection{};   // out of all nodes together, by their NICs
};
[[nodiscard]] ClusterTotals totals(const Cluster& cluster);

}  // namespace stagecraft
