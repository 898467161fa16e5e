// Derivation of the figures of the memory ledger.
#pragma once

#include <optional>
#include <string>

#include "sim/explain/explanation.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// `path` as in `run --json` ("memory.stages.0.weights_bytes"); nullopt for figures that are no sum of the
// ledger.
[[nodiscard]] std::optional<Explanation> explain_memory(const Scenario& scenario,
                                                        const Simulation& simulation,
                                                        const std::string& path);

}  // namespace stagecraft
