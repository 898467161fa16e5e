#include "sim/search/plan_figures.hpp"

#include <gtest/gtest.h>

#include "sim/simulate.hpp"
#include "tests/sim/search/spaces.hpp"

namespace stagecraft {
namespace {

using testing_spaces::load;
using testing_spaces::small_gpt;
using testing_spaces::small_stages;
using testing_spaces::SmallSpace;

TEST(PlanFigures, AreThoseOfTheSimulatedPlan) {
  const SmallSpace small =
      load(small_gpt(), {.vary = {"schedule=1f1b", "parallelism.zero_stage=1"}, .price = "2 USD/h"});
  const SearchResult result = search_plans(small.plans, {.exhaustive = true});
  ASSERT_FALSE(result.ranked.empty());
  const PlanFigures figures(small.plans, small.space.price);
  for (const RankedPlan& plan : result.ranked) {
    const Report report = simulate(scenario_of(small.plans, plan.point));
    EXPECT_DOUBLE_EQ(figures.tokens_per_s(plan), report.tokens_per_s());
    EXPECT_DOUBLE_EQ(figures.mfu(plan), report.mfu());
    // 2 USD a GPU and hour.
    const double per_s = 2.0 / 3600 * report.gpus;
    EXPECT_NEAR(figures.cost_per_million_tokens(plan).value(), per_s / report.tokens_per_s() * 1e6, 1e-9);
  }
}

TEST(PlanFigures, HaveNoPriceUnlessOneIsGiven) {
  const SmallSpace small = load(small_gpt(), {.vary = {"schedule=1f1b", "parallelism.zero_stage=1"}});
  const SearchResult result = search_plans(small.plans, {.top = 1});
  ASSERT_FALSE(result.ranked.empty());
  EXPECT_EQ(PlanFigures(small.plans, small.space.price).cost_per_million_tokens(result.ranked.front()),
            std::nullopt);
}

TEST(PlanFigures, OfAbstractStagesHaveNoUseOfTheHardware) {
  const SmallSpace small = load(small_stages(), {.vary = {"schedule=1f1b"}});
  const SearchResult result = search_plans(small.plans, {.top = 1});
  ASSERT_FALSE(result.ranked.empty());
  EXPECT_EQ(PlanFigures(small.plans, std::nullopt).mfu(result.ranked.front()), 0);
}

TEST(BestByGpus, TakesTheFirstOfEachNumber) {
  const SmallSpace small =
      load(small_gpt(), {.vary = {"schedule=1f1b", "parallelism.zero_stage=1"}, .gpus = "4,8"});
  const SearchResult result = search_plans(small.plans, {.exhaustive = true});
  const std::vector<RankedPlan> best = best_by_gpus(small.plans, result.ranked);
  ASSERT_EQ(best.size(), 2U);
  for (std::size_t i = 0; i < best.size(); ++i) {
    const int gpus = small.plans.points[best[i].point].gpus();
    EXPECT_EQ(gpus, i == 0 ? 4 : 8);
    for (const RankedPlan& plan : result.ranked) {
      if (small.plans.points[plan.point].gpus() != gpus) continue;
      EXPECT_LE(sample_time(small.plans, best[i]), sample_time(small.plans, plan));
    }
  }
}

}  // namespace
}  // namespace stagecraft
