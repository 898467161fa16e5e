// Effect of 10 % more of each main input on a figure: the scenario is simulated again, with the cluster, the
// profile or the job changed in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/explain/amount.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

struct Sensitivity {
  std::string input;                 // "NIC bandwidth"
  std::string change;                // "+10 %", "1,536 -> 1,696": the next batch that divides
  std::optional<Amount> value = {};  // value of the figure; absent where the scenario cannot run any more
  std::optional<double> difference = {};  // relative to `base`; absent where that is 0
  std::string problem = {};               // why it cannot run
};

// Inputs that the scenario does not have (a network of one node) are left out. `base`: the figure now.
[[nodiscard]] std::vector<Sensitivity> sensitivities(const Scenario& scenario, const std::string& path,
                                                     const Amount& base);

// On any of its nodes.
[[nodiscard]] bool has_nvlink(const ClusterSpec& cluster);

}  // namespace stagecraft
