// What everything in an iteration takes.
#pragma once

#include <vector>

#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {

// What points into `scenario` and `plan`. `shared_links`: false where nobody reads the links.
[[nodiscard]] PricingRequest pricing_request(const Scenario& scenario, const ParallelPlan& plan,
                                             bool shared_links = true);
// By stage what one of its GPUs sends to the next for a micro-batch.
[[nodiscard]] std::vector<Bytes> message_bytes(const Scenario& scenario, const ParallelPlan& plan);
// `cluster` may be null for abstract stages alone.
// throws ScenarioError where passes take more than a century: times are counted in 2^63 ns.
[[nodiscard]] IterationPrices price(const Scenario& scenario, const Cluster* cluster,
                                    const PricingRequest& request);

}  // namespace stagecraft
