#include "sim/make_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "sim/price_iteration.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {
namespace {

// Costs for orders that are fitted to them: the passes of each stage, the slowest message, and the smallest
// fraction of its activations that an input gradient frees. Shared links are ignored here.
ScheduleCosts measures(const Scenario& scenario, const ParallelPlan& plan, bool split_backward) {
  std::optional<Cluster> cluster;
  if (scenario.cluster) cluster.emplace(*scenario.cluster);
  const IterationPrices prices =
      price(scenario, cluster ? &*cluster : nullptr, pricing_request(scenario, plan, false));
  ScheduleCosts costs;
  double freed = 1;
  for (const StagePrice& stage : prices.stages) {
    const Duration weight_gradient = stage.weight_gradient.total();
    const Duration input_gradient = split_backward
                                        ? pass_price(stage, Pass::kInputGradient, true).total()
                                        : pass_price(stage, Pass::kBackward, true).total() - weight_gradient;
    costs.stages.push_back({.forward = stage.forward.total().count(),
                            .input_gradient = input_gradient.count(),
                            .weight_gradient = weight_gradient.count()});
    const double kept = static_cast<double>(stage.memory.kept.count());
    if (kept > 0)
      freed = std::min(freed, static_cast<double>(stage.memory.freed_by_input_gradient.count()) / kept);
    else
      freed = 0;
  }
  for (const EdgePrice& edge : prices.edges)
    costs.message = std::max({costs.message, edge.forward.total().count(), edge.backward.total().count()});
  if (std::holds_alternative<TransformerSpec>(scenario.model))
    costs.freed_by_input_gradient = std::max(freed, 0.0);
  return costs;
}

// The order of a file, which has to be for the sizes of the scenario.
std::optional<Schedule> given_schedule(const Scenario& scenario, const ParallelPlan& plan,
                                       Diagnostics& diagnostics) {
  const PipelineShape& shape = scenario.order->schedule.shape;
  const std::tuple<const char*, int, int> sizes[] = {
      {"pipeline", shape.ranks, plan.pipeline},
      {"virtual_stages", shape.chunks, plan.virtual_stages},
      {"micro-batches", shape.micro_batches, plan.micro_batches}};
  bool fits = true;
  for (const auto& [what, in_file, here] : sizes) {
    if (in_file == here) continue;
    fits = false;
    diagnostics.error(
        {.code = "schedule-constraint",
         .where = place_of(scenario, "schedule.file"),
         .path = "schedule.file",
         .message = fmt::format("the order is for {} {}, and the scenario has {}", what, in_file, here),
         .hint = "change the scenario, or write the order anew"});
  }
  if (!fits) return std::nullopt;
  return scenario.order->schedule;
}

}  // namespace

Placement placement_of(const Scenario& scenario) {
  if (scenario.order) return scenario.order->schedule.placement;
  const ScheduleKind* kind = find_schedule(scenario.schedule.name);
  return kind != nullptr ? kind->placement : Placement::kLoop;
}

std::optional<Schedule> make_schedule(const Scenario& scenario, const ParallelPlan& plan,
                                      Diagnostics& diagnostics) {
  if (scenario.order) return given_schedule(scenario, plan, diagnostics);
  const ScheduleKind* kind = find_schedule(scenario.schedule.name);
  SC_CHECK(kind != nullptr, "the loader accepts only schedules that exist");
  const PipelineShape shape{.ranks = plan.pipeline,
                            .micro_batches = plan.micro_batches,
                            .chunks = plan.virtual_stages,
                            .group = scenario.schedule.micro_batch_group};
  if (const std::optional<ScheduleProblem> problem = kind->constraint(shape)) {
    diagnostics.error({.code = "schedule-constraint",
                       .where = place_of(scenario, "schedule"),
                       .path = "schedule",
                       .message = problem->message,
                       .hint = problem->hint});
    return std::nullopt;
  }
  if (!kind->to_measure || diagnostics.has_errors()) return generate(*kind, shape);
  return generate(*kind, shape, measures(scenario, plan, kind->split_backward));
}

}  // namespace stagecraft
