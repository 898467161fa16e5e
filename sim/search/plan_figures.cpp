#include "sim/search/plan_figures.hpp"

#include <algorithm>
#include <map>
#include <variant>

#include "base/units.hpp"
#include "models/operators.hpp"
#include "sim/make_report.hpp"

namespace stagecraft {

double PlanFigures::tokens(const RankedPlan& plan) const {
  return static_cast<double>(point(plan).global_batch * frame(plan).training.sequence_length);
}

double PlanFigures::samples_per_s(const RankedPlan& plan) const {
  const double seconds = to_seconds(plan.time);  // divided as Report does, to the same bit
  return seconds > 0 ? static_cast<double>(point(plan).global_batch) / seconds : 0;
}

double PlanFigures::tokens_per_s(const RankedPlan& plan) const {
  const double seconds = to_seconds(plan.time);
  return seconds > 0 ? tokens(plan) / seconds : 0;
}

double PlanFigures::mfu(const RankedPlan& plan) const {
  const auto* model = std::get_if<TransformerSpec>(&frame(plan).model);
  if (model == nullptr || !frame(plan).profile) return 0;
  Report report;
  report.gpus = point(plan).gpus();
  report.iteration_time = plan.time;
  report.model_flops = model_flops(*model, point(plan).global_batch, frame(plan).training.sequence_length);
  report.peak = mean_peak(frame(plan));
  return report.mfu();
}

std::optional<double> PlanFigures::cost_per_million_tokens(const RankedPlan& plan) const {
  if (!price_ || tokens(plan) <= 0) return std::nullopt;
  const double hours = to_seconds(plan.time) / kSecondsPerHour * point(plan).gpus();
  return price_->per_hour * hours / tokens(plan) * 1e6;
}

std::vector<RankedPlan> best_by_gpus(const SearchPlans& plans, std::span<const RankedPlan> ranked) {
  std::map<int, RankedPlan> best;
  for (const RankedPlan& plan : ranked) best.try_emplace(plans.points[plan.point].gpus(), plan);
  std::vector<RankedPlan> all;
  for (const auto& [gpus, plan] : best) all.push_back(plan);
  return all;
}

std::vector<LeftAside> orders_left_aside(const SearchPlans& plans) {
  std::vector<LeftAside> all;
  for (const SearchFrame& frame : plans.frames) {
    if (frame.left_aside == 0) continue;
    const std::string& software = frame.scenario.options.software;
    auto found = std::ranges::find(all, software, &LeftAside::software);
    if (found == all.end()) {
      const bool has_any = frame.scenario.options.rules.has_orders();
      found = all.insert(all.end(), {.software = software, .orders = {}, .has_any = has_any});
    }
    found->plans += frame.left_aside;
    const std::string& order = frame.scenario.schedule.name;
    if (std::ranges::find(found->orders, order) == found->orders.end()) found->orders.push_back(order);
  }
  return all;
}

}  // namespace stagecraft
