// Effect of slow nodes on a step.
//
// A node that computes slowly delays the pipelines of its stages; a slow link delays all of them. The effect
// depends on the node's position: code that knows the shape of the job provides it (SlowReplicas). Without
// one, a step takes its slowest node's factor.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "sim/goodput/machines.hpp"

namespace stagecraft {

struct SlowPlace {
  int place = 0;       // index in StepPlan::nodes
  double compute = 1;  // factor on its passes, >= 1
  double traffic = 1;  // factor on a step by its links, >= 1

  friend bool operator==(const SlowPlace&, const SlowPlace&) = default;
};

// The slow nodes that have a place, in the order in which they became slow; `place_of(node)` is below 0 where
// it has none.
template <class PlaceOf>
[[nodiscard]] std::vector<SlowPlace> slow_places(const Machines& machines, const PlaceOf& place_of) {
  std::vector<SlowPlace> slow;
  for (const int node : machines.slow())
    if (const int place = place_of(node); place >= 0)
      slow.push_back({.place = place, .compute = machines.compute(node), .traffic = machines.traffic(node)});
  return slow;
}

// Largest factor; 1 without slow nodes.
[[nodiscard]] inline double slowest_factor(const std::vector<SlowPlace>& slow) {
  double factor = 1;
  for (const SlowPlace& at : slow) factor = std::max({factor, at.compute, at.traffic});
  return factor;
}

// Slowdown of each data replica that has one of these places in a step on `nodes` nodes, with all other
// places at full speed; >= 1, in any order. The step takes the largest. Called from any thread.
using SlowReplicas = std::function<std::vector<double>(int nodes, const std::vector<SlowPlace>& slow)>;

}  // namespace stagecraft
