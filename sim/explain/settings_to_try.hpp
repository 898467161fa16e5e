// Changes of settings that may make an iteration faster, for `run --why`: one thing each, as in --set.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// The schedule, among those that the software runs where its preset lists them, the micro-batch, recompute, an
// overlap that is off, CUDA graphs, sequence parallelism, the optimizer's sharding, less sharding, less offload.
// Whether they are feasible, fit and help is not asked here.
[[nodiscard]] std::vector<std::vector<std::string>> settings_to_try(const Scenario& scenario);

}  // namespace stagecraft
