// Figures of the plans of a search: rates, utilisation, price; and the parts of the space that it left out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/search/enumerate.hpp"
#include "sim/search/plan_search.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft {

// Keeps a reference to the plans.
class PlanFigures {
 public:
  PlanFigures(const SearchPlans& plans, std::optional<GpuPrice> price)
      : plans_(plans), price_(std::move(price)) {}

  // 0 of a plan that takes no time, as abstract stages may; of tokens also where samples have none.
  [[nodiscard]] double samples_per_s(const RankedPlan& plan) const;
  [[nodiscard]] double tokens_per_s(const RankedPlan& plan) const;
  [[nodiscard]] bool has_tokens(const RankedPlan& plan) const { return tokens(plan) > 0; }
  // 0 without a model or a profile.
  [[nodiscard]] double mfu(const RankedPlan& plan) const;
  // nullopt without a price, or without tokens.
  [[nodiscard]] std::optional<double> cost_per_million_tokens(const RankedPlan& plan) const;

 private:
  [[nodiscard]] const SearchPoint& point(const RankedPlan& plan) const { return plans_.points[plan.point]; }
  [[nodiscard]] const Scenario& frame(const RankedPlan& plan) const {
    return plans_.frames[point(plan).frame].scenario;
  }
  [[nodiscard]] double tokens(const RankedPlan& plan) const;

  const SearchPlans& plans_;
  std::optional<GpuPrice> price_;
};

// The first of `ranked` with each number of GPUs, ascending by that.
[[nodiscard]] std::vector<RankedPlan> best_by_gpus(const SearchPlans& plans,
                                                   std::span<const RankedPlan> ranked);

// Orders of the default space that a software does not run.
struct LeftAside {
  std::string software;
  std::vector<std::string> orders;
  bool has_any = true;  // others than those
  std::size_t plans = 0;
};

[[nodiscard]] std::vector<LeftAside> orders_left_aside(const SearchPlans& plans);

}  // namespace stagecraft
