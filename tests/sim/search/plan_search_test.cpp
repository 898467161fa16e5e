// What a search says is what simulating every plan says.
#include "sim/search/plan_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/scenario/scenario_tree.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/repository_files.hpp"
#include "tests/sim/search/spaces.hpp"

namespace stagecraft {
namespace {

using testing_spaces::load;
using testing_spaces::small_experts;
using testing_spaces::small_gpt;
using testing_spaces::small_stages;
using testing_spaces::SmallSpace;

struct NamedSpace {
  std::string name, yaml;
  SearchWords words;
};

// Small enough to simulate every plan, different enough to meet every branch.
std::vector<NamedSpace> spaces() {
  return {
      {"ample", small_gpt(), {.vary = {"parallelism.zero_stage=0,1", "training.micro_batch_size=1,2"}}},
      {"schedules",
       small_gpt(),
       {.vary = {"schedule=gpipe,interleaved-1f1b,zb-v,dualpipe,varuna,chimera", "parallelism.zero_stage=0",
                 "parallelism.tensor=1,2", "training.micro_batch_size=1"}}},
      {"sharded",
       small_gpt(),
       {.vary = {"parallelism.zero_stage=2,3", "schedule=1f1b", "overlap.gradients=true,false",
                 "offload.optimizer=0,1", "training.recompute=none"}}},
      {"experts",
       small_experts(),
       {.vary = {"parallelism.zero_stage=0,1", "schedule=1f1b,interleaved-1f1b"}}},
      // 61 billion parameters: one node hardly holds them.
      {"tight",
       "stagecraft: 1\n"
       "model: {family: gpt, layers: 20, hidden: 8192, heads: 64, vocab: 51200, max_sequence_length: 2048}\n"
       "cluster: {node: dgx-a100-80gb, nodes: 4}\n"
       "training: {global_batch_size: 64, attention: unfused}\n",
       {.vary = {"parallelism.zero_stage=0,1", "schedule=1f1b,interleaved-1f1b",
                 "training.micro_batch_size=1,2", "parallelism.tensor=4,8"}}},
      {"uneven",
       small_gpt("search: {stages: uneven, batch: at-most}\n"),
       {.vary = {"training.global_batch_size=21", "parallelism.pipeline=2,8", "parallelism.zero_stage=0,1",
                 "schedule=1f1b,interleaved-1f1b", "training.recompute=full"}}},
      {"fabrics",
       small_gpt(),
       {.vary = {"cluster.fabric=hdr-fat-tree,ndr-fat-tree", "schedule=1f1b", "parallelism.zero_stage=0,1",
                 "training.micro_batch_size=1"},
        .gpus = "16"}},
      {"devices",
       "stagecraft: 1\n"
       "model: {family: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 51200, max_sequence_length: 1024}\n"
       "cluster: {nodes: [{node: dgx-h100, nodes: 1}, {node: dgx-a100-80gb, nodes: 1}], fabric: "
       "ndr-fat-tree}\n"
       "training: {global_batch_size: 16}\n",
       {.vary = {"schedule=1f1b", "parallelism.zero_stage=0,1", "training.micro_batch_size=1,2"}}},
      {"growing",
       small_gpt(),
       {.vary = {"schedule=1f1b", "parallelism.zero_stage=1", "training.micro_batch_size=1"},
        .gpus = "2..32"}},
      {"stages",
       small_stages("1 ms", "", "schedule: interleaved-1f1b\n"),
       {.vary = {"schedule=1f1b,looped-bfs,gpipe,interleaved-1f1b,zb-v,zb-h1,dualpipe-v",
                 "overlap.gradients=true"},
        .gpus = "8,16"}}};
}

// A space, and every plan of it simulated.
struct SearchedSpace {
  SmallSpace small;
  SearchResult all;
};

const SearchedSpace& searched(const NamedSpace& space) {
  static std::map<std::string, SearchedSpace> known;
  const auto at = known.find(space.name);
  if (at != known.end()) return at->second;
  SmallSpace small = load(space.yaml, space.words);
  SearchResult all = search_plans(small.plans, {.exhaustive = true});
  return known.emplace(space.name, SearchedSpace{std::move(small), std::move(all)}).first->second;
}

class EverySpace : public testing::TestWithParam<NamedSpace> {
 protected:
  const SmallSpace& small_ = searched(GetParam()).small;
  const SearchResult& all_ = searched(GetParam()).all;
  [[nodiscard]] SearchResult search(const SearchOptions& options) const {
    return search_plans(small_.plans, options);
  }
};

TEST_P(EverySpace, IsOfASizeThatCanBeSimulated) {
  EXPECT_GE(small_.plans.points.size(), 10u);
  EXPECT_LE(small_.plans.points.size(), 2'000u);
}

// Property: the winner, and all that are listed, are those of simulating every plan that fits.
TEST_P(EverySpace, ListsThePlansThatSimulatingAllOfThemLists) {
  constexpr std::size_t kTop = 5;
  const SearchResult pruned = search({.top = kTop});
  EXPECT_EQ(all_.bounded, 0u);
  EXPECT_EQ(all_.ranked.size(), all_.fitting);
  EXPECT_EQ(pruned.ranked.size() + pruned.bounded, all_.ranked.size());
  ASSERT_GE(pruned.ranked.size(), std::min(kTop, all_.ranked.size()));
  for (std::size_t i = 0; i < std::min(kTop, all_.ranked.size()); ++i)
    EXPECT_EQ(pruned.ranked[i], all_.ranked[i]) << i;
}

TEST_P(EverySpace, HasTheParetoFrontOfAllPlans) {
  const SearchResult pruned = search({.top = 1});
  const auto key = [&](const RankedPlan& plan) {
    return std::tuple(sample_time(small_.plans, plan), plan.memory.peak,
                      small_.plans.points[plan.point].gpus());
  };
  const auto no_worse = [&](const RankedPlan& a, const RankedPlan& b) {
    return std::get<0>(key(a)) <= std::get<0>(key(b)) && std::get<1>(key(a)) <= std::get<1>(key(b)) &&
           std::get<2>(key(a)) <= std::get<2>(key(b));
  };
  for (const RankedPlan& plan : all_.ranked) {
    const bool beaten = std::ranges::any_of(all_.ranked, [&](const RankedPlan& other) {
      return other.point != plan.point && no_worse(other, plan) &&
             (key(other) != key(plan) || other.point < plan.point);
    });
    EXPECT_EQ(std::ranges::count(pruned.pareto, plan), beaten ? 0 : 1) << plan.point;
  }
}

// Oracle: simulate() on the scenario of a plan, and on the YAML of that scenario.
TEST_P(EverySpace, SaysOfAPlanWhatSimulateSays) {
  ASSERT_FALSE(all_.ranked.empty());
  for (std::size_t i = 0; i < all_.ranked.size(); i += 1 + all_.ranked.size() / 25) {
    SCOPED_TRACE(i);
    const RankedPlan& plan = all_.ranked[i];
    const Scenario scenario = scenario_of(small_.plans, plan.point);
    const Report report = simulate(scenario);
    EXPECT_EQ(report.iteration_time, plan.time);
    EXPECT_EQ(report.memory.heaviest().peak(), plan.memory.peak);
    EXPECT_EQ(report.memory.heaviest().stage, plan.memory.rank);
    Diagnostics diagnostics;
    const auto root = parse_yaml(to_yaml(scenario), "best.yaml", diagnostics);
    const auto again = read_scenario({.root = root.value(), .source = "best.yaml", .folder = "."},
                                     repository_files(), diagnostics);
    EXPECT_EQ(simulate(again.value()).timeline_hash, report.timeline_hash);
  }
}

// Property: no run is shorter than what is said of it before it runs.
TEST_P(EverySpace, IsBoundedFromBelow) {
  std::map<int, IterationPredictor> predictors;
  std::size_t tight = 0, runs = 0;
  for (std::size_t i = 0; i < small_.plans.points.size(); i += 1 + small_.plans.points.size() / 300) {
    const Scenario scenario = scenario_of(small_.plans, i);
    auto& predictor = predictors.try_emplace(small_.plans.points[i].gpus(), &*scenario.cluster).first->second;
    Diagnostics diagnostics;
    const auto placed = predictor.place(scenario, diagnostics);
    if (!placed) continue;
    const IterationPrices prices = predictor.prices(scenario, *placed);
    const Duration bound = predictor.at_least(scenario, *placed, prices);
    const Duration time = predictor.time(scenario, *placed, prices);
    EXPECT_LE(bound, time) << i;
    EXPECT_GT(bound, Duration::zero()) << i;
    ++runs;
    tight += 2 * bound >= time ? 1 : 0;
  }
  EXPECT_GE(2 * tight, runs) << "a bound below half of the time leaves nothing out";
}

TEST_P(EverySpace, IsTheSameOnAnyNumberOfThreads) {
  const SearchResult one = search({.top = 3, .threads = 1}), four = search({.top = 3, .threads = 4});
  EXPECT_EQ(one.ranked, four.ranked);
  EXPECT_EQ(one.pareto, four.pareto);
  EXPECT_EQ(one.bounded, four.bounded);
  ASSERT_EQ(one.refusals.size(), four.refusals.size());
  for (std::size_t i = 0; i < one.refusals.size(); ++i) {
    EXPECT_EQ(one.refusals[i].count, four.refusals[i].count);
    EXPECT_EQ(one.refusals[i].point, four.refusals[i].point);
    EXPECT_EQ(one.refusals[i].message, four.refusals[i].message);
  }
}

TEST_P(EverySpace, GivesEveryPlanAReasonOrATime) {
  std::size_t refused = 0;
  for (const SearchRefusal& refusal : all_.refusals) refused += refusal.count;
  EXPECT_EQ(refused + all_.ranked.size(), small_.plans.points.size());
}

// Property: the first plan of a reason is refused in the same words where it is asked alone.
TEST_P(EverySpace, GivesAnExampleOfEveryReason) {
  for (const SearchRefusal& refusal : all_.refusals) {
    SCOPED_TRACE(refusal.code);
    EXPECT_FALSE(refusal.message.empty());
    if (refusal.code != "out-of-memory") continue;
    const Scenario scenario = scenario_of(small_.plans, refusal.point);
    EXPECT_EQ(refusal.message, simulate(scenario).memory.shortage());
  }
}

INSTANTIATE_TEST_SUITE_P(Search, EverySpace, testing::ValuesIn(spaces()),
                         [](const auto& space) { return space.param.name; });

TEST(SearchPlans, CountsWhatDoesNotFitAndWhatDoesNotDivide) {
  // System: 20 samples over data 8 and 4. Expectations: 8 does not divide them.
  const SmallSpace small = load(
      small_gpt(), {.vary = {"parallelism.tensor=1", "parallelism.pipeline=1,2",
                             "training.global_batch_size=20", "schedule=1f1b", "parallelism.zero_stage=0",
                             "training.recompute=none", "training.micro_batch_size=1"}});
  const SearchResult result = search_plans(small.plans, {});
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_EQ(result.refusals[0].code, "not-divisible");
  EXPECT_EQ(result.refusals[0].path, "training.global_batch_size");
  EXPECT_EQ(result.refusals[0].count, 1u);
}

// Oracle: the scenario with each order, as `run --set schedule=…` reads it. System: a rank has 8 micro-batches of
// 3 ms, and only the work of its ranks is in the way of the fastest order.
TEST(SearchPlans, SaysOfAbstractStagesWhatARunWithTheOrderSays) {
  for (const std::string own : {"1f1b", "interleaved-1f1b", "looped-bfs"}) {
    SCOPED_TRACE(own);
    const std::string yaml = small_stages("1 ms", "", "schedule: " + own + "\n");
    const SmallSpace small =
        load(yaml, {.vary = {"schedule=1f1b,looped-bfs,gpipe,interleaved-1f1b,zb-v,zb-h1"}});
    const SearchResult result = search_plans(small.plans, {.exhaustive = true});
    EXPECT_EQ(result.ranked.size(), 6u);
    for (const RankedPlan& plan : result.ranked) {
      const std::string order = scenario_of(small.plans, plan.point).schedule.name;
      SCOPED_TRACE(order);
      Diagnostics diagnostics;
      const auto root =
          parse_yaml(small_stages("1 ms", "", "schedule: " + order + "\n"), "run.yaml", diagnostics);
      const auto alone = read_scenario({.root = root.value(), .source = "run.yaml", .folder = "."},
                                       repository_files(), diagnostics);
      const Report report = simulate(alone.value());
      EXPECT_EQ(plan.time, report.iteration_time);
      EXPECT_EQ(plan.memory.peak, report.memory.heaviest().peak());
      EXPECT_GE(plan.time, std::chrono::milliseconds(24));
    }
  }
}

// System: 8 costs on 4 ranks. Expectations: orders of one chunk have 4 stages, and are refused for that.
TEST(SearchPlans, RefusesOrdersOfOtherStagesThanAreListed) {
  const SmallSpace small = load(small_stages("[1 ms, 1 ms, 1 ms, 1 ms, 1 ms, 1 ms, 1 ms, 2 ms]"),
                                {.vary = {"schedule=1f1b,zb-h1,zb-v"}});
  const SearchResult result = search_plans(small.plans, {.exhaustive = true});
  EXPECT_EQ(result.ranked.size(), 1u);
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_EQ(result.refusals[0].code, "wrong-count");
  EXPECT_EQ(result.refusals[0].message, "8 entries for 4 stages");
  EXPECT_EQ(result.refusals[0].count, 2u);
}

// Oracle: of all plans, those that keep the promise. The fastest plan does not, so it leaves none out, either.
TEST(SearchPlans, ListsNoPlanThatMissesAnAssertion) {
  const SearchWords words{
      .vary = {"schedule=1f1b", "parallelism.zero_stage=0", "training.micro_batch_size=1,2"}};
  const SmallSpace free = load(small_gpt(), words);
  const std::vector<RankedPlan> all = search_plans(free.plans, {.exhaustive = true}).ranked;
  ASSERT_GT(all.size(), 10u);
  const Bytes limit = all.front().memory.peak;
  std::vector<RankedPlan> keep;
  std::ranges::copy_if(all, std::back_inserter(keep),
                       [&](const RankedPlan& plan) { return plan.memory.peak < limit; });
  ASSERT_GT(keep.size(), 3u);

  const std::string promise =
      "assert: {peak_memory: \"< " + std::to_string(limit.count()) + " B\", mfu: \"> 0\"}\n";
  const SmallSpace bound = load(small_gpt(promise), words);
  const SearchResult exhaustive = search_plans(bound.plans, {.exhaustive = true});
  EXPECT_EQ(exhaustive.ranked, keep);
  const auto missed = std::ranges::find(exhaustive.refusals, "assertion-missed", &SearchRefusal::code);
  ASSERT_NE(missed, exhaustive.refusals.end());
  EXPECT_EQ(missed->path, "assert.peak_memory");
  EXPECT_EQ(missed->count, all.size() - keep.size());
  EXPECT_THAT(missed->message, testing::HasSubstr(" is not < "));

  const SearchResult pruned = search_plans(bound.plans, {.top = 3});
  EXPECT_TRUE(std::equal(keep.begin(), keep.begin() + 3, pruned.ranked.begin()));
  for (const RankedPlan& plan : pruned.pareto) EXPECT_LT(plan.memory.peak, limit);
}

// System: 8 layers, 3 of them in the first of 2 stages, in all plans. Expectations: plans of 1, 4 and 8 stages
// are refused as `run` would.
TEST(SearchPlans, RefusesPlansOfOtherStagesThanAFixedSplitHas) {
  const SmallSpace small = load(small_gpt("parallelism: {pipeline: 2, stage_layers: [3, 5]}\n"),
                                {.vary = {"schedule=1f1b", "parallelism.tensor=1", "parallelism.zero_stage=0",
                                          "training.recompute=none", "training.micro_batch_size=1"},
                                 .fix = {"parallelism.stage_layers"}});
  const SearchResult result = search_plans(small.plans, {.exhaustive = true});
  EXPECT_EQ(result.ranked.size(), 1u);
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_EQ(result.refusals[0].path, "parallelism.stage_layers");
  EXPECT_EQ(result.refusals[0].count, 3u);
}

// Oracle: the scenario with all that varies written. Expectations: one reason has one path, whatever the ZeRO
// stage of the plan and the degrees of the scenario, and it is that of a run.
TEST(SearchPlans, BlamesTheKeyThatARunWithThePlanBlames) {
  const auto reasons = [](const std::string& yaml, std::vector<std::string> vary) {
    for (const char* one : {"schedule=interleaved-1f1b", "training.recompute=none",
                            "training.micro_batch_size=1", "parallelism.zero_stage=0,1,2,3"})
      vary.emplace_back(one);
    const SmallSpace small = load(yaml, {.vary = vary});
    std::map<std::string, std::size_t> seen;
    for (const SearchRefusal& refusal : search_plans(small.plans, {}).refusals) {
      seen[refusal.code + " " + refusal.path] += refusal.count;
      std::string written = to_yaml(scenario_of(small.plans, refusal.point));
      Diagnostics diagnostics;
      const auto root = parse_yaml(written, "plan.yaml", diagnostics);
      const auto alone = read_scenario({.root = root.value(), .source = "plan.yaml", .folder = "."},
                                       repository_files(), diagnostics);
      IterationPredictor predictor(&*alone.value().cluster);
      EXPECT_FALSE(predictor.place(alone.value(), diagnostics).has_value());
      const std::vector<Diagnostic> said = diagnostics.sorted();
      EXPECT_EQ(one_line(*first_error(said)), refusal.path + ": " + refusal.message);
    }
    return seen;
  };
  const std::vector<std::string> cut = {"model.layers=30", "parallelism.virtual_stages=4",
                                        "parallelism.tensor=1", "parallelism.pipeline=2"};
  using Reasons = std::map<std::string, std::size_t>;
  const Reasons layers = {{"not-divisible parallelism.pipeline", 4}};
  EXPECT_EQ(reasons(small_gpt(), cut), layers);
  EXPECT_EQ(reasons(small_gpt("parallelism: {pipeline: 2}\n"), cut), layers);
  const std::vector<std::string> experts = {"parallelism.tensor=2", "parallelism.pipeline=2",
                                            "parallelism.virtual_stages=2",
                                            "parallelism.sequence_parallel=false"};
  EXPECT_EQ(reasons(small_experts(), experts),
            (Reasons{{"needs-another-key parallelism.sequence_parallel", 12}}));
}

// System: 30 layers on 2 ranks. Expectations: looped-bfs runs one chunk a rank, 4 do not divide the layers, and
// interleaved-1f1b is refused with either.
TEST(SearchPlans, RefusesListedChunksWithTheirReason) {
  const auto result = [](const std::string& order) {
    const SmallSpace small = load(
        small_gpt(), {.vary = {"model.layers=30", "schedule=" + order, "parallelism.virtual_stages=1,4",
                               "parallelism.pipeline=2", "parallelism.tensor=1", "parallelism.zero_stage=0",
                               "training.recompute=none", "training.micro_batch_size=1"}});
    return search_plans(small.plans, {.exhaustive = true});
  };
  const SearchResult looped = result("looped-bfs"), interleaved = result("interleaved-1f1b");
  EXPECT_EQ(looped.ranked.size(), 1u);
  ASSERT_EQ(looped.refusals.size(), 1u);
  EXPECT_EQ(looped.refusals[0].code, "not-divisible");
  EXPECT_EQ(looped.refusals[0].count, 1u);
  EXPECT_TRUE(interleaved.ranked.empty());
  std::vector<std::string> codes;
  for (const SearchRefusal& refusal : interleaved.refusals) codes.push_back(refusal.code);
  EXPECT_THAT(codes, testing::UnorderedElementsAre("not-divisible", "schedule-constraint"));
}

// System: one replica whose weights are in fp8 under ZeRO alone. Expectations: less memory, and the figures of
// the scenario with the same key.
TEST(SearchPlans, SaysOfZeroOfOneReplicaWhatSimulateSays) {
  std::string yaml = small_gpt("options: {software: megatron-core}\n");
  yaml.replace(yaml.find("dgx-a100-80gb"), 13, "dgx-h100");
  const SmallSpace small = load(
      yaml, {.vary = {"parallelism.tensor=8", "schedule=1f1b", "parallelism.sequence_parallel=true",
                      "training.recompute=none", "training.micro_batch_size=1", "training.precision=fp8"}});
  const SearchResult result = search_plans(small.plans, {.exhaustive = true});
  ASSERT_EQ(result.ranked.size(), 2u);
  std::map<int, Bytes> peaks;
  for (const RankedPlan& plan : result.ranked) {
    const Report report = simulate(scenario_of(small.plans, plan.point));
    EXPECT_EQ(plan.time, report.iteration_time);
    EXPECT_EQ(plan.memory.peak, report.memory.heaviest().peak());
    peaks.emplace(small.plans.points[plan.point].zero_stage, plan.memory.peak);
  }
  EXPECT_LT(peaks.at(1), peaks.at(0));
}

TEST(SearchPlans, StopsWhenItIsTold) {
  const SmallSpace small = load(small_gpt());
  const SearchResult result =
      search_plans(small.plans, {.progress = [](std::size_t, std::size_t) { return false; }});
  EXPECT_TRUE(result.stopped);
  EXPECT_TRUE(result.ranked.empty());
}

}  // namespace
}  // namespace stagecraft
