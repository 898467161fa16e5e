// Which pipelines a job runs with the nodes it has: the multiset of template sizes with the least step time.
//
//   step = max_i T_i(nb_i) + tail(number of pipelines),
//
// the micro-batches shared as in batches.hpp. Least step; then most pipelines; then the lexicographically
// least ascending list of sizes. At least f + 1 pipelines wherever the nodes allow it.
//
// Exact where all nodes are alike, without listing multisets, of which 1,000 nodes have more than can be
// counted: B micro-batches are done within T by k pipelines exactly when their capacities at T, each at least
// 1, add up to B, and the greatest capacity of k pipelines of j nodes in all is a knapsack over (k, j). Each
// answer better than the last lowers T, until no k has one.
//
// Heterogeneous clusters: exact among instantiations in which no pipeline mixes groups. A group that is too
// small for a pipeline of its own lends its nodes to the group nearest in speed, where they end up in the
// largest pipelines; and where groups apart cannot give f + 1 pipelines, all nodes are one pool. Both are
// heuristics: the sizes are chosen as if lent nodes were as fast as their hosts, but the step is priced with
// what they are.
//
//   source  Jang et al., "Oobleck", SOSP 2023, section 4.2; docs/resilience.md, section 5.4
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "sim/goodput/oobleck/batches.hpp"
#include "sim/goodput/oobleck/templates.hpp"

namespace stagecraft {

// What a step takes beyond its pipelines: the reduction of gradients that no backward pass hides, the
// optimizer.
using StepTail = std::function<Duration(int pipelines)>;

struct InstantiateRequest {
  Composition available = {};  // nodes per group
  int min_nodes = 1;           // n0
  int most_nodes = 1;          // n_max
  int max_failures = 0;        // f
  int micro_batches = 1;       // B, of all pipelines together
  StepTail tail = {};          // empty: nothing
  bool may_idle =
      false;  // nodes may be left out where that is faster, as X* asks; else as many as can are used
};

struct Instantiation {
  std::vector<Composition> pipelines = {};  // groups in order, within a group from small to large
  BatchShares shares = {};
  Duration step{};
  Composition idle = {};  // nodes that no multiset of sizes uses, per group
};

// nullopt when there are fewer than n0 nodes. With fewer than (f + 1) n0 there are as many pipelines as n0
// allows. requires micro_batches >= 1, 1 <= n0 <= n_max, and a template for every size between.
[[nodiscard]] std::optional<Instantiation> instantiate(Templates& templates,
                                                       const InstantiateRequest& request);

}  // namespace stagecraft
