// What slow nodes make of a step.
//
// A node that computes slowly holds up the pipelines whose stages it has, a link that is slow everybody. How
// much depends on where the node sits: whoever knows the shape of the job says so (SlowReplicas); without
// one, every step takes as long as its slowest node makes it.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "sim/goodput/machines.hpp"

namespace stagecraft {

struct SlowPlace {
  int place = 0;       // of StepPlan::nodes
  double compute = 1;  // its passes take so many times as long, >= 1
  double traffic = 1;  // for its links' sake a step does, >= 1

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

// 1 where nobody is slow.
[[nodiscard]] inline double slowest_factor(const std::vector<SlowPlace>& slow) {
  double factor = 1;
  for (const SlowPlace& at : slow) factor = std::max({factor, at.compute, at.traffic});
  return factor;
}

// How many times as long each data replica that has one of these places takes in a step on `nodes` nodes, all
// other places being as fast as ever; >= 1, in any order. The step takes as long as the slowest. Called from
// any thread.
using SlowReplicas = std::function<std::vector<double>(int nodes, const std::vector<SlowPlace>& slow)>;

}  // namespace stagecraft
