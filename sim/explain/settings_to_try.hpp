// Changes of settings that may make an iteration faster, for `run --why`: one thing each, as in --set.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// `simulation`: of the scenario. The schedule, among those that the software runs where its preset lists
// them; layers balanced over the stages; the micro-batch, recompute, an overlap that is off, a node-aware
// dispatcher, CUDA graphs, a fused loss, sequence parallelism, the optimizer's sharding, less sharding, less
// offload.
// Whether they are feasible, fit and help is not asked here.
[[nodiscard]] std::vector<std::vector<std::string>> settings_to_try(const Scenario& scenario,
                                                                    const Simulation& simulation);

}  // namespace stagecraft
