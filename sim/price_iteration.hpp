// Prices of all parts of an iteration.
#pragma once

#include <vector>

#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {

// The result refers to `scenario` and `plan`. `shared_links`: false where traffic is not needed.
[[nodiscard]] PricingRequest pricing_request(const Scenario& scenario, const ParallelPlan& plan,
                                             bool shared_links = true);
// By stage: bytes that one of its GPUs sends to the next stage for a micro-batch.
[[nodiscard]] std::vector<Bytes> message_bytes(const Scenario& scenario, const ParallelPlan& plan);
// `cluster` may be null only for abstract stages. throws ScenarioError where passes take more than a century:
// times are counted in 2^63 ns.
[[nodiscard]] IterationPrices price(const Scenario& scenario, const Cluster* cluster,
                                    const PricingRequest& request);

}  // namespace stagecraft
