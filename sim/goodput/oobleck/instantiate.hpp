// Chooses the pipelines of a job for its nodes: the multiset of template sizes with the least step time.
//
//   step = max_i T_i(nb_i) + tail(number of pipelines),
//
// the micro-batches shared as in batches.hpp. Least step; then most pipelines; then the lexicographically
// least ascending list of sizes. At least f + 1 pipelines wherever the nodes allow it.
//
// Exact for identical nodes, without listing multisets (1,000 nodes have too many to count). k pipelines
// finish B micro-batches within T exactly when their capacities at T, each at least 1, add up to B. The
// greatest capacity of k pipelines of j nodes in total is a knapsack over (k, j). Each better answer lowers
// T, until no k has one. Of one pool of nodes a line above the capacities says beforehand which k cannot have
// enough, and which sizes those that can do not have.
//
// Heterogeneous clusters: exact among instantiations in which no pipeline mixes groups. Two heuristics cover
// the rest. A group that is too small for a pipeline lends its nodes to the group nearest in speed, whose
// largest pipelines use them. Where separate groups cannot give f + 1 pipelines, all nodes are one pool.
// Sizes are chosen as if lent nodes were as fast as their hosts; the step is priced with their real speed.
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

// Time of a step beyond its pipelines: the exposed gradient reduction and the optimizer.
using StepTail = std::function<Duration(int pipelines)>;

struct InstantiateRequest {
  Composition available = {};  // nodes per group
  int min_nodes = 1;           // n0
  int most_nodes = 1;          // n_max
  int max_failures = 0;        // f
  int micro_batches = 1;       // B, of all pipelines together
  StepTail tail = {};          // empty: nothing
  // Nodes may be left out where that is faster, as X* asks; else as many as can are used.
  bool may_idle = false;
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
