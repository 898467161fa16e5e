#include "sim/search/enumerate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/search/frames.hpp"
#include "tests/sim/search/spaces.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_spaces::load;
using testing_spaces::mistakes_of;
using testing_spaces::small_experts;
using testing_spaces::small_gpt;
using testing_spaces::small_stages;
using testing_spaces::SmallSpace;

const std::string kOnly3D =
    "search: {fix: [parallelism.context, parallelism.expert, training.micro_batch_size, training.recompute,\n"
    "               parallelism.zero_stage, parallelism.sequence_parallel], vary: {schedule: [1f1b]}}\n";

// System: 8 GPUs. Expectations: tensor x pipeline x data = 8 has C(3 + 2, 2) = 10 solutions in powers of two.
TEST(EnumeratePlans, TakesAllGpusInEveryWay) {
  const SmallSpace small = load(small_gpt(kOnly3D));
  std::set<std::tuple<int, int, int>> seen;
  for (const SearchPoint& point : small.plans.points) {
    EXPECT_EQ(point.gpus(), 8);
    seen.emplace(point.tensor, point.pipeline, point.data);
  }
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(small.plans.points.size(), 10u);
}

// Expectations: beside 1F1B, chunks of 8 / pipeline layers: pipeline 2 has 2 and 4, pipeline 4 has 2,
// pipeline 8 has one layer a rank; with 3, 2 and 1 ways to split the rest.
TEST(EnumeratePlans, CutsChunksOnlyForSchedulesThatRunThem) {
  const SmallSpace small = load(small_gpt(kOnly3D), {.vary = {"schedule=1f1b,interleaved-1f1b"}});
  EXPECT_EQ(small.plans.points.size(), 10u + 3u * 2u + 2u * 1u);
}

// System: 8 layers. Expectations: listed numbers of chunks are those of each pipeline, whether or not a schedule
// takes them; of all that divide, 1 is tried where the schedule takes it.
TEST(EnumeratePlans, TriesOneChunkWhereItIsListedOrTaken) {
  const auto chunks = [](const std::string& order, const std::string& counts) {
    const SmallSpace small =
        load(small_gpt(kOnly3D), {.vary = {"schedule=" + order, "parallelism.virtual_stages=" + counts,
                                           "parallelism.pipeline=1,2", "parallelism.tensor=1"}});
    std::vector<std::pair<int, int>> seen;
    for (const SearchPoint& point : small.plans.points)
      seen.emplace_back(point.pipeline, point.virtual_stages);
    return seen;
  };
  using Cut = std::pair<int, int>;  // ranks, and chunks of each
  for (const std::string order : {"looped-bfs", "interleaved-1f1b"})
    EXPECT_THAT(chunks(order, "1,4"), ElementsAre(Cut(1, 1), Cut(1, 4), Cut(2, 1), Cut(2, 4)));
  EXPECT_THAT(chunks("looped-bfs", "all"), ElementsAre(Cut(1, 1), Cut(2, 1), Cut(2, 2), Cut(2, 4)));
  EXPECT_THAT(chunks("interleaved-1f1b,gpipe", "all"),
              ElementsAre(Cut(2, 2), Cut(2, 4), Cut(1, 1), Cut(2, 1)));
  EXPECT_THAT(chunks("1f1b", "1,4"), ElementsAre(Cut(1, 1), Cut(2, 1)));
}

TEST(EnumeratePlans, ListsOnceWhatChangesNothing) {
  const SmallSpace small = load(
      small_gpt(kOnly3D), {.vary = {"parallelism.zero_stage=0,1", "parallelism.tensor=1,8",
                                    "parallelism.pipeline=1,8", "parallelism.sequence_parallel=false,true"}});
  // data 8: ZeRO 0 and 1; pipeline 8: one; tensor 8: with and without sequence parallelism.
  EXPECT_EQ(small.plans.points.size(), 2u + 1u + 2u);
}

// System: the 10 plans of 8 GPUs. Expectations: what has no effect in a plan makes no second one.
TEST(EnumeratePlans, ListsOnceWhateverHasNoEffect) {
  const auto plans = [](const std::string& vary) {
    return load(small_gpt(kOnly3D), {.vary = {vary}}).plans.points.size();
  };
  EXPECT_EQ(plans("overlap.expert=true,false"), 10u);          // no experts
  EXPECT_EQ(plans("overlap.shared_experts=true,false"), 10u);  // nor shared ones
  EXPECT_EQ(plans("overlap.tensor=true,false"), 10u);          // no sequence parallelism
  EXPECT_EQ(plans("parallelism.context_exchange=p2p,all-to-all"), 10u);
  EXPECT_EQ(plans("options.reshard_after_forward=true,false"), 10u);
  EXPECT_EQ(plans("offload.optimizer=0,1"), 20u);  // a share of 0 is no offload, and 1 is one
  // 6 plans of several stages, with and without; 4 of one.
  EXPECT_EQ(plans("parallelism.loss_as_layer=false,true"), 10u + 6u);
  // 3 plans have one axis of several ranks, and 2 tensor and data in the same order; 5 have a pipeline beside
  // others.
  EXPECT_EQ(plans("parallelism.order=[tensor, context, expert, data, pipeline],"
                  "[pipeline, tensor, context, expert, data]"),
            10u + 5u);
}

// One stage of all 8 layers: a key of the even split has no effect there, and is refused beside the split.
TEST(EnumeratePlans, LeavesNoLegalPlanOutForOneThatIsRefused) {
  const SmallSpace small = load(
      small_gpt(kOnly3D + "parallelism: {stage_layers: [8]}\n"),
      {.vary = {"parallelism.loss_as_layer=true,false", "parallelism.pipeline=1", "parallelism.tensor=1"}});
  EXPECT_EQ(small.plans.points.size(), 2u);
}

TEST(EnumeratePlans, ListsOnceWhatIsListedTwice) {
  const auto plans = [](const std::string& vary) {
    return load(small_gpt(kOnly3D), {.vary = {vary}}).plans.points.size();
  };
  EXPECT_EQ(plans("parallelism.tensor=2,2"), 3u);
  EXPECT_EQ(plans("overlap.gradients=true,true"), 10u);
  EXPECT_EQ(plans("schedule=1f1b,{name: 1f1b}"), 10u);
}

std::vector<std::pair<int, std::vector<std::int64_t>>> splits_of(const SmallSpace& small) {
  std::vector<std::pair<int, std::vector<std::int64_t>>> splits;
  for (const SearchPoint& point : small.plans.points)
    splits.emplace_back(point.pipeline * point.virtual_stages, point.stage_layers);
  return splits;
}

TEST(EnumeratePlans, SpreadsLayersThatDoNotDivideWhereItMay) {
  const std::vector<std::string> vary = {"model.layers=7", "parallelism.pipeline=1,2"};
  for (const auto& [stages, layers] :
       splits_of(load(small_gpt("search: {stages: uneven}\n"), {.vary = vary})))
    EXPECT_EQ(layers, stages == 1 ? std::vector<std::int64_t>{} : spread_layers(7, stages));
  for (const auto& [stages, layers] : splits_of(load(small_gpt(), {.vary = vary})))
    EXPECT_TRUE(layers.empty());
}

// Of 8 GPUs: 3 divides none of them, and 16 is more.
TEST(EnumeratePlans, NamesListedDegreesOfNoPlan) {
  const SmallSpace small =
      load(small_gpt(), {.vary = {"parallelism.tensor=1,2,3", "parallelism.pipeline=2,16"}});
  ASSERT_EQ(small.plans.unused.size(), 2u);
  EXPECT_EQ(small.plans.unused[0].path, "parallelism.tensor");
  EXPECT_EQ(small.plans.unused[0].value, 3);
  EXPECT_EQ(small.plans.unused[1].path, "parallelism.pipeline");
  EXPECT_EQ(small.plans.unused[1].value, 16);
  EXPECT_TRUE(load(small_gpt(), {.vary = {"parallelism.tensor=1,2"}}).plans.unused.empty());
}

// System: 10 plans, of which 3 have 2 stages. Expectations: those have the scenario's split; where it is
// fixed, all have it, and the placement refuses 7.
TEST(EnumeratePlans, KeepsTheSplitOfTheScenarioForAsManyStages) {
  const std::string yaml = small_gpt(kOnly3D + "parallelism: {pipeline: 2, stage_layers: [3, 5]}\n");
  const std::vector<std::int64_t> own = {3, 5};
  const SmallSpace free = load(yaml);
  for (const auto& [stages, layers] : splits_of(free))
    EXPECT_EQ(layers, stages == 2 ? own : std::vector<std::int64_t>{});
  EXPECT_EQ(free.plans.without_own_layers, 7u);
  const SmallSpace fixed = load(yaml, {.fix = {"parallelism.stage_layers"}});
  EXPECT_EQ(fixed.plans.points.size(), 10u);
  for (const auto& [stages, layers] : splits_of(fixed)) EXPECT_EQ(layers, own);
  EXPECT_EQ(fixed.plans.without_own_layers, 0u);
}

// System: 8 layers over 2 ranks. Expectations: chunks of 2 and 4 divide them; 3 is the scenario's own split.
TEST(EnumeratePlans, TakesTheChunksOfTheScenariosOwnSplit) {
  const std::vector<std::int64_t> own = {1, 1, 2, 2, 1, 1};
  const SmallSpace small =
      load(small_gpt(kOnly3D +
                     "parallelism: {pipeline: 2, virtual_stages: 3, stage_layers: [1, 1, 2, 2, 1, 1]}\n"),
           {.vary = {"schedule=interleaved-1f1b", "parallelism.pipeline=2", "parallelism.tensor=1"}});
  using Split = std::pair<int, std::vector<std::int64_t>>;
  EXPECT_THAT(splits_of(small), ElementsAre(Split(4, {}), Split(6, own), Split(8, {})));
}

TEST(EnumeratePlans, SplitsExpertsOverTheRanksOfAStage) {
  const SmallSpace small =
      load(small_experts(kOnly3D),
           {.vary = {"parallelism.pipeline=1", "parallelism.tensor=1", "parallelism.expert=all"}});
  std::vector<int> experts;
  for (const SearchPoint& point : small.plans.points) experts.push_back(point.expert);
  EXPECT_THAT(experts, ElementsAre(1, 2, 4));
}

// System: 8 ranks, 4 experts of 2,048. Expectations: 8 / expert ranks hold the same ones, and each is split
// over 1, 2, … of them: 4, 3 and 2 ways.
TEST(EnumeratePlans, SplitsEachExpertOverTheRanksThatHoldIt) {
  const SmallSpace small =
      load(small_experts(kOnly3D), {.vary = {"parallelism.pipeline=1", "parallelism.tensor=1",
                                             "parallelism.expert=all", "parallelism.expert_tensor=all"}});
  std::vector<std::pair<int, int>> ways;
  for (const SearchPoint& point : small.plans.points) ways.emplace_back(point.expert, point.expert_tensor);
  using Way = std::pair<int, int>;
  EXPECT_THAT(ways, ElementsAre(Way(1, 1), Way(1, 2), Way(1, 4), Way(1, 8), Way(2, 1), Way(2, 2), Way(2, 4),
                                Way(4, 1), Way(4, 2)));
}

// System: 8 replicas. Expectations: blocks of 2, 4 and all; ZeRO 0 has none.
TEST(EnumeratePlans, ShardsOverBlocksOfTheReplicas) {
  const std::vector<std::string> one_rank = {"parallelism.pipeline=1", "parallelism.tensor=1",
                                             "parallelism.zero_stage=0,1"};
  const auto groups = [&](const std::string& vary, const std::string& yaml) {
    std::vector<std::string> words = one_rank;
    words.push_back(vary);
    const SmallSpace small = load(yaml, {.vary = words});
    std::vector<std::pair<int, std::optional<int>>> seen;
    for (const SearchPoint& point : small.plans.points) {
      Scenario filled = small.plans.frames[point.frame].scenario;
      fill_in(point, filled);
      seen.emplace_back(filled.parallelism.zero_stage, filled.parallelism.zero_group);
    }
    return seen;
  };
  using Group = std::pair<int, std::optional<int>>;
  const std::string own = small_gpt(kOnly3D + "parallelism: {zero_group: 8}\n");
  EXPECT_THAT(groups("parallelism.zero_group=all", own),
              ElementsAre(Group(0, {}), Group(1, 2), Group(1, 4), Group(1, {})));
  EXPECT_THAT(groups("parallelism.zero_group={at_most: 4}", own),
              ElementsAre(Group(0, {}), Group(1, 2), Group(1, 4)));
  EXPECT_THAT(groups("parallelism.zero_group=2,null", own),
              ElementsAre(Group(0, 2), Group(1, 2), Group(0, {}), Group(1, {})));
}

// System: 16 samples over data 8, 4, 2, 1. Expectations: micro-batches that divide 2, 4, 8 and 16, up to 8.
TEST(EnumeratePlans, TakesMicroBatchesThatDivideTheSamplesOfAReplica) {
  const SmallSpace small =
      load(small_gpt(kOnly3D), {.vary = {"training.micro_batch_size={at_most: 8}", "parallelism.tensor=1"}});
  EXPECT_EQ(small.plans.points.size(), 2u + 3u + 4u + 4u);
}

TEST(EnumeratePlans, LetsTheBatchFollowTheReplicasWhereItMay) {
  const std::string yaml = small_gpt(
      "search: {batch: at-most, vary: {parallelism.tensor: [1], "
      "parallelism.pipeline: [1], training.micro_batch_size: [1]}}\n");
  Diagnostics diagnostics;
  const SmallSpace small = load(yaml, {.vary = {"training.global_batch_size=21"}});
  for (const SearchPoint& point : small.plans.points) EXPECT_EQ(point.global_batch, 16);
}

// Of plans of this software; of all without one.
std::set<std::string> orders_of(const SmallSpace& small, const std::string& software = "") {
  std::set<std::string> orders;
  for (const SearchPoint& point : small.plans.points) {
    const Scenario& scenario = small.plans.frames[point.frame].scenario;
    if (software.empty() || scenario.options.software == software) orders.insert(scenario.schedule.name);
  }
  return orders;
}

std::size_t left_aside(const SmallSpace& small) {
  std::size_t plans = 0;
  for (const SearchFrame& frame : small.plans.frames) plans += frame.left_aside;
  return plans;
}

// System: A100, whose profile has Megatron-LM of 2021 where weights are whole (1f1b, interleaved-1f1b), and
// where they are sharded FSDP of 2023, which has no pipeline and no tensor ranks, and FSDP2 where there are
// some.
TEST(EnumeratePlans, KeepsToTheOrdersOfTheSoftware) {
  const SmallSpace small = load(small_gpt());
  EXPECT_THAT(orders_of(small, "megatron-lm-2021"), ElementsAre("1f1b", "interleaved-1f1b"));
  EXPECT_THAT(orders_of(small, "fsdp-2023"), ElementsAre("1f1b"));
  EXPECT_THAT(orders_of(small, "fsdp2"),
              ElementsAre("1f1b", "interleaved-pytorch", "interleaved-zb", "zb-v"));
  EXPECT_GT(left_aside(small), 0u);
  for (const SearchFrame& frame :
       small.plans.frames)  // what it has no order for is one stage, which needs none
    EXPECT_TRUE(frame.left_aside == 0 || frame.scenario.options.software != "fsdp-2023");
  std::size_t sharded = 0;
  for (const SearchPoint& point : small.plans.points) {
    if (point.zero_stage < 2) continue;
    const Scenario& scenario = small.plans.frames[point.frame].scenario;
    EXPECT_EQ(scenario.options.software == "fsdp-2023",
              point.pipeline == 1 && point.tensor == 1 && point.replicas() > 1);
    if (point.pipeline == 1) {
      EXPECT_EQ(scenario.schedule.name, "1f1b");
    }
    ++sharded;
  }
  EXPECT_GT(sharded, 0u);
  EXPECT_THAT(orders_of(load(small_gpt("options: {software: fsdp2}\n"))),
              ElementsAre("1f1b", "interleaved-pytorch", "interleaved-zb", "zb-v"));
}

// Software whose plans try selective recompute beside none.
std::set<std::string> software_that_recomputes(const std::string& yaml) {
  const SmallSpace small = load(yaml, {.vary = {"training.recompute=none,selective"}});
  std::set<std::string> software;
  for (const SearchPoint& point : small.plans.points)
    if (point.recompute == Recompute::kSelective)
      software.insert(small.plans.frames[point.frame].scenario.options.software);
  return software;
}

// The core of flash attention is nothing to recompute; FSDP2's selective recompute is of other products.
TEST(EnumeratePlans, TriesSelectiveRecomputeWhereThereIsSomethingToRecompute) {
  const std::string unfused = small_gpt();
  std::string flash = unfused;
  flash.replace(flash.find("unfused"), 7, "flash");
  EXPECT_THAT(software_that_recomputes(unfused), ElementsAre("fsdp-2023", "fsdp2", "megatron-lm-2021"));
  EXPECT_THAT(software_that_recomputes(flash), ElementsAre("fsdp2"));
}

// Eight tensor ranks with one replica of the dense weights: the experts have replicas to share with until there
// are as many groups of them as ranks.
TEST(EnumeratePlans, ShardsExpertsThatAloneHaveReplicas) {
  const SmallSpace small = load(
      small_experts(), {.vary = {"parallelism.tensor=8", "parallelism.zero_stage=0,3", "schedule=1f1b"}});
  std::set<std::pair<int, int>> seen;  // ranks of an expert group, ZeRO stage
  for (const SearchPoint& point : small.plans.points)
    seen.emplace(point.expert * point.expert_tensor, point.zero_stage);
  EXPECT_TRUE(seen.contains({2, 3}));
  EXPECT_TRUE(seen.contains({2, 0}));
  for (const auto& [ranks, zero] : seen) {
    if (ranks == 8) {
      EXPECT_EQ(zero, 0);
    }
  }
}

// System: one replica of 8 ranks. Expectations: Megatron-Core keeps weights in fp8 under any ZeRO and not without;
// copies of buckets differ between ZeRO 0, 1 and the others.
TEST(EnumeratePlans, TriesZeroOfOneReplicaWhereTheSoftwareDoesSomethingElse) {
  const auto stages = [](const std::string& precision, const std::string& options) {
    std::string yaml = small_gpt("options: {software: megatron-core" + options + "}\n");
    yaml.replace(yaml.find("dgx-a100-80gb"), 13, "dgx-h100");
    const SmallSpace small =
        load(yaml, {.vary = {"parallelism.tensor=8", "schedule=1f1b", "parallelism.sequence_parallel=true",
                             "training.recompute=none", "training.micro_batch_size=1",
                             "parallelism.zero_stage=3,2,1,0", "training.precision=" + precision}});
    std::vector<int> seen;
    for (const SearchPoint& point : small.plans.points) seen.push_back(point.zero_stage);
    return seen;
  };
  EXPECT_THAT(stages("bf16", ""), ElementsAre(0));
  EXPECT_THAT(stages("bf16", ", fp8_parameters: true"), ElementsAre(0));
  EXPECT_THAT(stages("fp8", ""), ElementsAre(0, 1));
  EXPECT_THAT(stages("fp8", ", fp8_parameters: true"), ElementsAre(0));
  EXPECT_THAT(stages("bf16", ", memory: {bucket_copies: true}"), ElementsAre(0, 1, 2));
}

TEST(EnumeratePlans, TakesAnyOrderThatIsAskedFor) {
  for (const SmallSpace& small : {load(small_gpt(), {.vary = {"schedule=zb-h1,zb-v"}}),
                                  load(small_gpt("search: {vary: {schedule: [zb-h1, zb-v]}}\n"))}) {
    EXPECT_THAT(orders_of(small), ElementsAre("zb-h1", "zb-v"));
    EXPECT_EQ(left_aside(small), 0u);
    EXPECT_TRUE(std::ranges::any_of(small.plans.points, [](const SearchPoint& point) {
      return point.pipeline > 1 && point.zero_stage >= 2;
    }));
  }
  const SmallSpace own = load(small_gpt("schedule: zb-h1\n"), {.fix = {"schedule"}});
  EXPECT_THAT(orders_of(own), ElementsAre("zb-h1"));
}

TEST(EnumeratePlans, SaysWhenTheSoftwareRunsNoneOfThem) {
  EXPECT_THAT(
      mistakes_of(small_gpt("options: {software: fsdp-2023}\n"),
                  {.vary = {"parallelism.tensor=1", "parallelism.pipeline=2", "parallelism.zero_stage=3"}}),
      HasSubstr("the space has no plan whose order fsdp-2023 runs"));
}

SearchSpace usual_orders(const std::vector<std::string>& names) {
  SearchAxis axis{.path = "schedule", .usual = true};
  for (const std::string& name : names) {
    axis.values.emplace_back();
    axis.values.back().text = name;
  }
  return {.axes = {axis}};
}

// Which of 1f1b, interleaved-1f1b and zb-h1 are tried with several stages, and which with one.
std::pair<std::string, std::string> tried(const std::optional<std::vector<std::string>>& listed) {
  std::pair<std::string, std::string> words;
  for (const char* name : {"interleaved-1f1b", "1f1b", "zb-h1"}) {
    Scenario scenario;
    scenario.schedule.name = name;
    scenario.options.rules.schedules = listed;
    const RunOrders runs = run_orders(scenario, usual_orders({"interleaved-1f1b", "1f1b", "zb-h1"}));
    if (runs.stages) words.first += std::string(name) + " ";
    if (runs.one_stage) words.second += std::string(name) + " ";
  }
  return words;
}

TEST(RunOrders, LeaveOneStageToOneOrderAtLeast) {
  using Words = std::pair<std::string, std::string>;
  const std::string all = "interleaved-1f1b 1f1b zb-h1 ";
  EXPECT_EQ(tried(std::nullopt), Words(all, all));
  EXPECT_EQ(tried({{"zb-h1", "gpipe"}}), Words("zb-h1 ", "zb-h1 "));
  EXPECT_EQ(tried({{"interleaved-1f1b"}}), Words("interleaved-1f1b ", "interleaved-1f1b 1f1b "));
  EXPECT_EQ(tried(std::vector<std::string>{}), Words("", "1f1b "));
}

// Software that shards, and has no pipeline, does not run plans that have one: FSDP2 does, in a way of its own.
TEST(EnumeratePlans, TakesTheUsualSoftwareOfShardsWithAndWithoutAPipeline) {
  const auto options_of = [](const std::string& yaml, int pipeline) {
    const SmallSpace small = load(yaml, {.vary = {"parallelism.tensor=1", "parallelism.zero_stage=3",
                                                  "parallelism.pipeline=1,2,4", "schedule=1f1b"}});
    std::vector<OptionsSpec> all;
    for (const SearchPoint& point : small.plans.points) {
      if (point.pipeline != pipeline || point.replicas() == 1) continue;
      Scenario filled = small.plans.frames[point.frame].scenario;
      fill_in(point, filled);
      all.push_back(options_in_effect(filled));
    }
    EXPECT_FALSE(all.empty());
    return all;
  };
  for (const OptionsSpec& options : options_of(small_gpt(), 1)) EXPECT_EQ(options.software, "fsdp-2023");
  for (const int pipeline : {2, 4})
    for (const OptionsSpec& options : options_of(small_gpt(), pipeline)) EXPECT_EQ(options.software, "fsdp2");
  const std::string fsdp2 = small_gpt("options: {software: fsdp2}\n");
  for (const OptionsSpec& options : options_of(fsdp2, 1)) EXPECT_EQ(options.reshard_after_forward, true);
  for (const OptionsSpec& options : options_of(fsdp2, 4)) {
    EXPECT_EQ(options.reshard_after_forward, false);
    EXPECT_EQ(options.memory.whole_gradients, true);
  }
}

// Abstract stages cost the same whatever share of a model or of the samples they are: half of them, or two
// samples in each pass, would be other work at the same cost.
TEST(EnumeratePlans, VariesOfAbstractStagesWhatTheirCostsKnow) {
  const SmallSpace small = load(small_stages());
  ASSERT_FALSE(small.plans.points.empty());
  for (const SearchPoint& point : small.plans.points) {
    EXPECT_EQ(std::tuple(point.tensor, point.pipeline, point.data, point.micro_batch),
              std::tuple(1, 4, 2, 1));
    EXPECT_TRUE(point.own_recompute);
    EXPECT_EQ(point.zero_stage, 0);
  }
  EXPECT_THAT(orders_of(small), testing::IsSupersetOf({"1f1b", "zb-h1"}));
  EXPECT_THAT(small.space.kept,
              ElementsAre("parallelism.tensor", "parallelism.pipeline", "parallelism.context",
                          "parallelism.expert", "training.micro_batch_size", "training.recompute",
                          "parallelism.zero_stage", "parallelism.sequence_parallel"));
  EXPECT_THAT(load(small_stages("1 ms", ", virtual_stages: 1")).space.kept,
              testing::Contains("parallelism.virtual_stages"));
  EXPECT_TRUE(load(small_gpt()).space.kept.empty());
}

// Chunks of each order, and the forward of a stage in milliseconds.
std::map<std::string, std::pair<int, double>> chunks_and_forwards(const SmallSpace& small) {
  std::map<std::string, std::pair<int, double>> seen;
  for (const SearchPoint& point : small.plans.points) {
    const Scenario& scenario = small.plans.frames[point.frame].scenario;
    const auto& stages = std::get<StagesSpec>(scenario.model);
    seen[scenario.schedule.name] = {point.virtual_stages, to_seconds(stages.forward.front()) * 1e3};
  }
  return seen;
}

// System: one cost of 1 ms on each of 4 ranks. Expectations: whatever order the scenario itself has, an order
// has its own chunks, which share the cost of the rank.
TEST(EnumeratePlans, GivesAbstractStagesTheChunksOfTheirOrder) {
  using Stage = std::pair<int, double>;
  const auto seen = [](const std::string& more) {
    return chunks_and_forwards(
        load(small_stages("1 ms", "", more), {.vary = {"schedule=1f1b,looped-bfs,gpipe,zb-v"}}));
  };
  for (const std::string more : {"", "schedule: 1f1b\n", "schedule: interleaved-1f1b\n", "schedule: gpipe\n"})
    EXPECT_THAT(seen(more),
                ElementsAre(std::pair("1f1b", Stage(1, 1)), std::pair("gpipe", Stage(1, 1)),
                            std::pair("looped-bfs", Stage(2, 0.5)), std::pair("zb-v", Stage(2, 0.5))))
        << more;
}

// System: the scenario says 2 chunks. Expectations: each costs 1 ms, and orders of one chunk are refused as the
// loader would.
TEST(EnumeratePlans, GivesAbstractStagesTheChunksThatTheScenarioSays) {
  const SmallSpace small = load(small_stages("1 ms", ", virtual_stages: 2", "schedule: zb-v\n"));
  const std::pair two(2, 1.0);
  EXPECT_THAT(chunks_and_forwards(small),
              ElementsAre(std::pair("interleaved-1f1b", two), std::pair("interleaved-pytorch", two),
                          std::pair("interleaved-zb", two), std::pair("zb-v", two)));
  ASSERT_EQ(small.plans.refused.size(), 1u);
  EXPECT_EQ(small.plans.refused[0].count, 2u);  // 1f1b and zb-h1
  EXPECT_EQ(one_line(small.plans.refused[0].reason),
            "parallelism.virtual_stages: 2 chunks a rank, but schedule 1f1b runs 1");
}

// System: 8 costs on 4 ranks. Expectations: listed numbers of chunks are tried with each order; all is those of
// the costs.
TEST(EnumeratePlans, TriesListedChunksOfAbstractStages) {
  const std::string yaml = small_stages("[1 ms, 1 ms, 1 ms, 1 ms, 1 ms, 1 ms, 1 ms, 2 ms]");
  const auto orders = [&](const std::string& chunks) {
    const SmallSpace small =
        load(yaml, {.vary = {"schedule=1f1b,zb-v", "parallelism.virtual_stages=" + chunks}});
    std::vector<std::pair<std::string, int>> seen;
    for (const SearchPoint& point : small.plans.points) {
      const Scenario& scenario = small.plans.frames[point.frame].scenario;
      seen.emplace_back(scenario.schedule.name, point.virtual_stages);
      EXPECT_EQ(std::get<StagesSpec>(scenario.model).input_gradient.front(), std::chrono::milliseconds(1));
    }
    return seen;
  };
  using Order = std::pair<std::string, int>;
  EXPECT_THAT(orders("1,2"),
              testing::UnorderedElementsAre(Order("1f1b", 1), Order("zb-v", 1), Order("zb-v", 2)));
  EXPECT_THAT(orders("all"), ElementsAre(Order("zb-v", 2)));
}

TEST(EnumeratePlans, RefusesWhatAbstractStagesCannotKnow) {
  for (const std::string vary :
       {"parallelism.pipeline=2,4", "parallelism.virtual_stages=1,2", "training.micro_batch_size=1,2",
        "training.recompute=none,full", "options.fused_kernels=true,false", "parallelism={pipeline: 4}"})
    EXPECT_THAT(mistakes_of(small_stages(), {.vary = {vary}}),
                HasSubstr(vary.substr(0, vary.find('=')) + ": abstract stages have costs for"));
  EXPECT_THAT(mistakes_of(small_stages("1 ms", "", "search: {vary: {parallelism.tensor: [1, 2]}}\n")),
              HasSubstr("small.yaml:6:37: error: parallelism.tensor: abstract stages"));
  EXPECT_FALSE(load(small_stages(), {.vary = {"parallelism.data=2", "schedule=gpipe"}}).plans.points.empty());
}

// System: 10 values of 8 keys that scenarios are loaded with, 10^8 choices. They are counted, not made.
TEST(EnumeratePlans, CountsChoicesBeforeTheyAreMade) {
  SearchWords words;
  for (const char* key :
       {"forward", "backward", "recompute", "tensor", "context", "expert", "data", "pipeline"})
    words.vary.push_back(std::string("training.") + key + "=0,1,2,3,4,5,6,7,8,9");
  EXPECT_THAT(mistakes_of(small_gpt(), words),
              HasSubstr("the space has more than 10,000 choices of schedules"));
}

// System: bf16 training, which fp16 gradients do not go with. Expectations: the plans of the other values, as
// if it had not been listed, and the reason with its choice, of each of two schedules.
TEST(EnumeratePlans, RefusesValuesThatMakeNoScenarioAndGoesOn) {
  const std::string dtypes = "training.gradient_dtype=";
  const SmallSpace some =
      load(small_gpt(kOnly3D), {.vary = {dtypes + "fp16,bf16,fp32", "schedule=1f1b,gpipe"}});
  const SmallSpace legal = load(small_gpt(kOnly3D), {.vary = {dtypes + "bf16,fp32", "schedule=1f1b,gpipe"}});
  ASSERT_EQ(some.plans.points.size(), legal.plans.points.size());
  for (std::size_t i = 0; i < some.plans.points.size(); ++i) {
    const SearchFrame& frame = some.plans.frames[some.plans.points[i].frame];
    EXPECT_EQ(to_yaml(frame.scenario), to_yaml(legal.plans.frames[legal.plans.points[i].frame].scenario));
    const SearchAxis& axis = *some.space.find("training.gradient_dtype");
    EXPECT_EQ(axis.values[value_in_choice(some.space, axis, frame.choice)].text,
              frame.scenario.training.gradient == Precision::kBf16 ? "bf16" : "fp32");
  }
  ASSERT_EQ(some.plans.refused.size(), 1u);
  EXPECT_EQ(some.plans.refused[0].count, 2u);
  EXPECT_EQ(one_line(some.plans.refused[0].reason),
            "training.gradient_dtype: fp16 gradients do not go with bf16 training");
  EXPECT_TRUE(legal.plans.refused.empty());
}

// System: 12 samples, which 8 replicas do not divide, so that a scenario without degrees has no plan.
// Expectations: nothing is said of that beside a value that is none.
TEST(EnumeratePlans, BlamesNoDegreeThatVaries) {
  std::string yaml = small_gpt(kOnly3D);
  yaml.replace(yaml.find("global_batch_size: 16"), 21, "global_batch_size: 12");
  EXPECT_EQ(mistakes_of(yaml, {.vary = {"training.optimizer=sgd"}}),
            "--vary training.optimizer=sgd: error: training.optimizer: 'sgd' is not known here\n"
            "  hint: one of adam, adamw\n");
}

TEST(EnumeratePlans, TriesMappingsBesideWords) {
  const SmallSpace small =
      load(small_gpt(kOnly3D),
           {.vary = {"training.recompute=none,{granularity: full, method: block, layers: 3}"}});
  EXPECT_EQ(small.plans.points.size(), 20u);
  std::set<std::pair<Recompute, std::int64_t>> seen;
  for (const SearchPoint& point : small.plans.points) {
    Scenario filled = small.plans.frames[point.frame].scenario;
    fill_in(point, filled);
    seen.emplace(filled.training.recompute.granularity, filled.training.recompute.layers);
  }
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen.contains({Recompute::kFull, 3}));
}

// System: the 10 plans of 8 GPUs, 4 of one stage with 2 to 16 micro-batches.
// Expectations: varuna has the passes of 1f1b there; zb-h1 has two for a backward, and gpipe holds all samples.
TEST(EnumeratePlans, ListsOnceOrdersThatAreTheSameOnOneStage) {
  const auto plans = [](const std::string& orders, const std::string& samples = "1") {
    const std::string batch = "training.micro_batch_size=" + samples;
    return load(small_gpt(kOnly3D), {.vary = {"schedule=" + orders, batch}}).plans.points.size();
  };
  EXPECT_EQ(plans("1f1b,varuna"), 20u - 4u);
  EXPECT_EQ(plans("{name: 1f1b, global_step: false},varuna"), 20u);
  EXPECT_EQ(plans("1f1b,zb-h1"), 20u);
  EXPECT_EQ(plans("1f1b,gpipe"), 20u);
  EXPECT_EQ(plans("1f1b,gpipe", "16"), 20u - 1u);  // one micro-batch of one replica
}

// A point's scenario is what the loader makes of the same words.
TEST(EnumeratePlans, FillsScenariosAsTheLoaderWould) {
  const SmallSpace small = load(small_gpt(), {.vary = {"schedule=1f1b,interleaved-1f1b"}});
  Library library(DataDirectory{STAGECRAFT_SOURCE_DIR});
  for (std::size_t i = 0; i < small.plans.points.size(); i += 97) {
    const SearchPoint& point = small.plans.points[i];
    Scenario filled = small.plans.frames[point.frame].scenario;
    fill_in(point, filled);
    Diagnostics diagnostics;
    const auto root = parse_yaml(to_yaml(filled), "again.yaml", diagnostics);
    ASSERT_TRUE(root.has_value());
    const auto loaded =
        read_scenario({.root = *root, .source = "again.yaml", .folder = "."}, library, diagnostics);
    ASSERT_TRUE(loaded.has_value()) << i;
    EXPECT_EQ(to_yaml(*loaded), to_yaml(filled)) << i;
    EXPECT_EQ(loaded->options, options_in_effect(filled)) << i;
  }
}

}  // namespace
}  // namespace stagecraft
