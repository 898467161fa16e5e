// The operators of a job whose prices depend on their shapes, GEMMs and flash attention: on which of them a
// profile has data says how well a prediction is founded.
#pragma once

#include <string>
#include <vector>

#include "models/compute_cost.hpp"
#include "models/operators.hpp"
#include "sim/lower/prices.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

struct ShapedOperator {
  Op op;
  Cost cost;         // of one run
  double times = 0;  // runs in an iteration, on the mean over pipeline ranks
};

[[nodiscard]] std::vector<ShapedOperator> shaped_operators(const TransformerSpec& model,
                                                           const ParallelPlan& plan,
                                                           const PricingRequest& request,
                                                           const HardwareProfile& profile);

// "2048 x 6144 x 12288 TN": m, n, k.
[[nodiscard]] std::string shape_text(const GemmShape& shape);

// The distinct shapes with their provenance and share of the time of all, dearest first; empty for abstract
// stages. With several devices a shape is listed for each.
[[nodiscard]] std::vector<ShapeReport> priced_shapes(const Scenario& scenario, const ParallelPlan& plan);

}  // namespace stagecraft
