// Listed plans with tensor collectives in chunks beside their GEMMs.
#include "sim/search/overlap_trial.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/simulate.hpp"
#include "tests/sim/search/spaces.hpp"

namespace stagecraft {
namespace {

using testing_spaces::load;
using testing_spaces::SmallSpace;

// Wide enough that no rank waits for its host.
std::string wide_gpt(const std::string& more = "") {
  return "stagecraft: 1\n"
         "model: {family: gpt, layers: 8, hidden: 8192, heads: 64, vocab: 51200, max_sequence_length: 1024}\n"
         "cluster: {node: dgx-a100-80gb, gpus: 8}\n"
         "training: {global_batch_size: 16}\n" +
         more;
}

const std::vector<std::string> kOneSchedule = {"schedule=1f1b", "training.micro_batch_size=1",
                                               "training.recompute=none", "parallelism.zero_stage=1",
                                               "parallelism.tensor=1,4"};

struct Tried {
  SmallSpace small;
  std::vector<RankedPlan> ranked;
  std::vector<OverlapTrial> trials;
};

Tried try_on(const std::string& yaml, const std::vector<std::string>& vary) {
  Tried tried{.small = load(yaml, {.vary = vary}), .ranked = {}, .trials = {}};
  tried.ranked = search_plans(tried.small.plans, {.exhaustive = true}).ranked;
  tried.trials = try_tensor_overlap(tried.small.space, tried.small.plans, tried.ranked, 1);
  return tried;
}

// Oracle: simulate() on the plan's scenario with the key set.
TEST(OverlapTrial, IsEachPlanWithSequenceParallelismAsSimulatedWithTheOverlap) {
  const Tried tried = try_on(wide_gpt(), kOneSchedule);
  std::size_t next = 0;
  for (const RankedPlan& plan : tried.ranked) {
    const SearchPoint& point = tried.small.plans.points[plan.point];
    if (!point.sequence_parallel || point.tensor == 1) continue;
    ASSERT_LT(next, tried.trials.size());
    const OverlapTrial& trial = tried.trials[next++];
    EXPECT_EQ(trial.point, plan.point);
    ASSERT_TRUE(trial.plan.has_value());
    EXPECT_EQ(trial.plan->point, plan.point);
    Scenario scenario = scenario_of(tried.small.plans, plan.point);
    scenario.overlap.tensor = true;
    EXPECT_EQ(trial.plan->time, simulate(scenario).iteration_time);
    EXPECT_LT(trial.plan->time, plan.time);
  }
  EXPECT_GT(next, 0u);
  EXPECT_EQ(next, tried.trials.size());
}

TEST(OverlapTrial, IsOfNoPlanWhereTheSpaceVariesIt) {
  std::vector<std::string> vary = kOneSchedule;
  vary.emplace_back("overlap.tensor=false,true");
  EXPECT_TRUE(try_on(wide_gpt(), vary).trials.empty());
}

TEST(OverlapTrial, IsOfNoPlanWhereTheScenarioWritesIt) {
  EXPECT_TRUE(try_on(wide_gpt("overlap: {tensor: false}\n"), kOneSchedule).trials.empty());
  EXPECT_TRUE(try_on(wide_gpt("overlap: {tensor: true}\n"), kOneSchedule).trials.empty());
}

TEST(OverlapTrial, HasNoTimeWhereThePromiseIsMissed) {
  std::vector<std::string> vary = kOneSchedule;
  vary.back() = "parallelism.tensor=4";
  Tried tried = try_on(wide_gpt(), vary);
  for (SearchFrame& frame : tried.small.plans.frames)
    frame.scenario.assertions = load(wide_gpt("assert: {iteration_time: '< 1 us'}\n"), {.vary = vary})
                                    .plans.frames.front()
                                    .scenario.assertions;
  const auto trials = try_tensor_overlap(tried.small.space, tried.small.plans, tried.ranked, 1);
  ASSERT_FALSE(trials.empty());
  for (const OverlapTrial& trial : trials) EXPECT_FALSE(trial.plan.has_value());
}

}  // namespace
}  // namespace stagecraft
