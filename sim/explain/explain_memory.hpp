// Where the figures of the memory ledger come from.
#pragma once

#include <optional>
#include <string>

#include "sim/explain/explanation.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// `path` as in `run --json` ("memory.stages.0.weights_bytes"); nothing for what is no sum of the ledger.
[[nodiscard]] std::optional<Explanation> explain_memory(const Scenario& scenario,
                                                        const Simulation& simulation,
                                                        const std::string& path);

}  // namespace stagecraft
