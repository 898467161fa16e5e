#include "sim/predict_iteration.hpp"

#include <utility>

#include "sim/fit_schedule.hpp"
#include "sim/iteration_bound.hpp"
#include "sim/lower_options.hpp"
#include "sim/make_schedule.hpp"
#include "sim/price_iteration.hpp"
#include "sim/simulate_parts.hpp"

namespace stagecraft {

bool predicts_directly(const Scenario& scenario) {
  return !scenario.network.shared() && scenario.faults.empty() && scenario.jobs.empty() && !scenario.fabric &&
         !scenario.order && scenario.schedule.iterations == 1;
}

IterationPredictor::IterationPredictor(const ClusterSpec* cluster) {
  if (cluster != nullptr) cluster_.emplace(*cluster);
}

const Schedule* IterationPredictor::order_of(const Scenario& scenario, const ParallelPlan& plan,
                                             Diagnostics& diagnostics) {
  const ScheduleKind* kind = find_schedule(scenario.schedule.name);
  if (scenario.order || kind == nullptr || kind->to_measure) {
    measured_ = make_schedule(scenario, plan, diagnostics);
    return measured_ ? &*measured_ : nullptr;
  }
  const OrderKey key{scenario.schedule.name, plan.pipeline, plan.micro_batches, plan.virtual_stages,
                     scenario.schedule.micro_batch_group};
  const auto known = orders_.find(key);
  if (known != orders_.end()) return &known->second;
  std::optional<Schedule> order = make_schedule(scenario, plan, diagnostics);
  return order ? &orders_.emplace(key, *std::move(order)).first->second : nullptr;
}

std::optional<PlacedPlan> IterationPredictor::place(const Scenario& scenario, Diagnostics& diagnostics) {
  if (!predicts_directly(scenario)) {
    std::optional<Prepared> prepared = prepare(scenario, diagnostics);
    if (!prepared) return std::nullopt;
    measured_ = std::move(prepared->schedule);
    return PlacedPlan{.plan = std::move(prepared->plan), .schedule = &*measured_};
  }
  std::optional<ParallelPlan> plan = stagecraft::place(scenario, diagnostics);
  if (!plan) return std::nullopt;
  const Schedule* schedule = order_of(scenario, *plan, diagnostics);
  if (schedule != nullptr) fit_schedule(scenario, *schedule, *plan, diagnostics);
  if (schedule == nullptr || diagnostics.has_errors()) return std::nullopt;
  return PlacedPlan{.plan = *std::move(plan), .schedule = schedule};
}

HeldMemory IterationPredictor::memory(const Scenario& scenario, const PlacedPlan& placed) const {
  const MemoryLedger ledger = ledger_of(scenario, placed.plan, *placed.schedule, true);
  const StageMemory& heaviest = ledger.heaviest();
  return {.peak = heaviest.peak(), .capacity = ledger.capacity, .rank = heaviest.stage, .host = ledger.host};
}

IterationPrices IterationPredictor::prices(const Scenario& scenario, const PlacedPlan& placed) {
  const ParallelPlan& plan = placed.plan;
  const MeshKey key{{plan.tensor, plan.context, plan.data, plan.pipeline, plan.expert, plan.expert_tensor,
                     plan.shard_group, static_cast<int>(plan.placement)},
                    scenario.parallelism.order};
  PricingRequest request = pricing_request(scenario, plan, false);
  request.memo = &placements_[key];
  request.collectives = scenario.profile ? &collectives_[&*scenario.profile] : nullptr;
  IterationPrices prices = price(scenario, cluster_ ? &*cluster_ : nullptr, request);
  for (StagePrice& stage : prices.stages) stage.memory = {};
  return prices;
}

Duration IterationPredictor::time(const Scenario& scenario, const PlacedPlan& placed,
                                  const IterationPrices& prices) {
  if (!predicts_directly(scenario)) return simulate(scenario).iteration_time;
  const LowerOptions how = lower_options(scenario, *placed.schedule, prices);
  // An order that was made to measure is another one at the next question, wherever it lies.
  if (measured_ && placed.schedule == &*measured_)
    return IterationGraphs().time(*placed.schedule, prices, how);
  return graphs_.time(*placed.schedule, prices, how);
}

Duration IterationPredictor::at_least(const Scenario& scenario, const PlacedPlan& placed,
                                      const IterationPrices& prices) const {
  if (!predicts_directly(scenario)) return Duration::zero();
  return iteration_at_least(placed.plan, *placed.schedule, prices,
                            lower_options(scenario, *placed.schedule, prices));
}

}  // namespace stagecraft
