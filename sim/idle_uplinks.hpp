// A note on uplinks that are thinner than what hangs below their leaves and yet hold nothing up.
#pragma once

#include <optional>
#include <string>

#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Where closed-form prices on several leaves of an oversubscribed fabric are those without oversubscription.
// Cost: prices the job again.
[[nodiscard]] std::optional<std::string> word_on_idle_uplinks(const Scenario& scenario,
                                                              const ParallelPlan& plan,
                                                              const IterationPrices& prices);

}  // namespace stagecraft
