// What slow nodes make of a step.
//
// A node that computes slowly holds up the pipelines whose stages it has, a link that is slow everybody. How
// much depends on where the node sits: whoever knows the shape of the job says so (SlowReplicas); without
// one, every step takes as long as its slowest node makes it.
#pragma once

#include <functional>
#include <vector>

namespace stagecraft {

struct SlowPlace {
  int place = 0;       // of StepPlan::nodes
  double compute = 1;  // its passes take so many times as long, >= 1
  double traffic = 1;  // for its links' sake a step does, >= 1

  friend bool operator==(const SlowPlace&, const SlowPlace&) = default;
};

// Of a step on `nodes` nodes: how many times as long each data replica takes that has one of these places,
// all others being as fast as ever; >= 1, in any order. The step takes as long as the slowest. Called from
// any thread.
using SlowReplicas = std::function<std::vector<double>(int nodes, const std::vector<SlowPlace>& slow)>;

}  // namespace stagecraft
