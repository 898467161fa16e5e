// What the pieces of a transformer's scenario cost, where a test looks at prices rather than at an iteration.
#pragma once

#include "sim/price_iteration.hpp"
#include "sim/simulate_parts.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {

// throws ScenarioError where the scenario has no place on its cluster.
[[nodiscard]] inline IterationPrices prices_of(const Scenario& scenario) {
  Diagnostics diagnostics;
  const std::optional<ParallelPlan> plan = place(scenario, diagnostics);
  diagnostics.throw_if_errors();
  return price_transformer(std::get<TransformerSpec>(scenario.model), *scenario.profile,
                           Cluster(*scenario.cluster), pricing_request(scenario, *plan));
}

}  // namespace stagecraft
