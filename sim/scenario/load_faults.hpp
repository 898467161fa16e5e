// `faults`: faults inside the simulated iteration.
//
//   faults:
//     - {at: 2 s, kind: dead-node, node: 3}
//     - {at: 1 s, kind: slow-gpu, gpu: 17, factor: 1.5, for: 500 ms}
//     - {at: 1 s, kind: slow-node, node: 2, factor: 1.2}
//     - {at: 0 s, kind: degraded-link, link: "node 3 nic 1 -> leaf 0", factor: 0.5}
//
// Nodes and GPUs have their numbers in the cluster, from 0 over all of its GPUs; where jobs are placed, in
// the whole fabric. `factor` of a slow part: its time over the usual one; of a link: the remaining share of
// its capacity. Without `for` a fault is permanent. A dead node stays dead.
#pragma once

#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Reads `faults`; the cluster, the network and the other jobs must be read before.
[[nodiscard]] std::vector<FaultSpec> load_faults(YamlMap& root, Scenario& scenario);

// "2 s: node 3 dies", "1 s to 1.5 s: GPU 17 takes 1.5 times as long"
[[nodiscard]] std::string to_text(const FaultSpec& fault);

}  // namespace stagecraft
