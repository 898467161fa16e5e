// Start-up time of processes, groups and rendezvous, by the number of GPUs.
#pragma once

#include <utility>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

// Linear in the logarithm of GPUs between rows, flat beyond them; one row: always that.
//
//   rows     by GPUs, ascending, at least one
//   source   docs/resilience.md, section 1 (cost of a change).
[[nodiscard]] Duration restart_time(const std::vector<std::pair<int, Duration>>& rows, int gpus);

}  // namespace stagecraft
