// Which templates exist, with how many GPUs per stage, and which counts of nodes they cover.
#include "sim/goodput/oobleck/templates.hpp"

#include <gtest/gtest.h>

#include "tests/sim/goodput/oobleck/oracle_file.hpp"

namespace stagecraft {
namespace {

TEST(TemplateRange, IsThePublishedOne) {
  int rows = 0;
  for (const YamlNode& row : oracle_rows("resilience_planner_oracles.yaml", "template_ranges").items) {
    const int n0 = integer(row, "n0");
    const int f = integer(row, "f");
    const TemplateRange range = template_range(integer(row, "N"), n0, f, 1000);
    EXPECT_TRUE(range.survivable());
    EXPECT_EQ(range.most_nodes, integer(row, "n_max"));
    EXPECT_EQ(range.most_nodes - range.min_nodes + 1, integer(row, "templates"));
    EXPECT_EQ(range.enough_for_every_count(), row.find("enough_for_every_count")->text == "true");
    EXPECT_EQ(row.find("guaranteed_counts")->text,
              std::to_string((f + 1) * n0) + ".." + std::to_string(range.nodes));
    if (range.enough_for_every_count()) {
      EXPECT_TRUE(counts_not_covered(range).empty());
    }
    ++rows;
  }
  EXPECT_EQ(rows, 6);
}

// Three replicas of four nodes need twelve.
TEST(TemplateRange, IsNotSurvivableWithFewerNodesThanReplicasNeed) {
  EXPECT_FALSE(template_range(11, 4, 2, 100).survivable());
  EXPECT_TRUE(template_range(12, 4, 2, 100).survivable());
}

// Sizes 5 and 6 only: two make 10..12, three 15..18; 13 and 14 are no sum.
TEST(TemplateRange, NamesTheCountsThatNoSizesReach) {
  EXPECT_EQ(counts_not_covered({.nodes = 16, .min_nodes = 5, .max_failures = 1, .most_nodes = 6}),
            (std::vector{13, 14}));
}

std::vector<LayerCost> layers_of(int count, int work) {
  return std::vector<LayerCost>(static_cast<std::size_t>(count),
                                {.forward = Duration{work}, .backward = Duration{2 * work}});
}

// 12 GPUs: 1, 2 and 4 divide them, 8 does not.
TEST(StageOptions, AreThePowersOfTwoThatDivideTheNode) {
  const auto options = stage_options(layers_of(2, 100), 12, [](int layer, int gpus) {
    return LayerCost{.forward = Duration{layer}, .backward = Duration{gpus}};
  });
  ASSERT_EQ(options.size(), 3u);
  EXPECT_EQ(options[0].layers[1].forward, Duration{100});
  EXPECT_EQ(options[0].layers[1].backward, Duration{200});
  EXPECT_EQ(options[2].gpus, 4);
  EXPECT_EQ(options[2].layers[1].forward, Duration{25 + 1});
  EXPECT_EQ(options[2].layers[1].backward, Duration{50 + 4});
}

Templates two_gpus(int layers, double micro_batches_per_node, int reduce) {
  AlikeNodes group{.nodes = 8, .options = stage_options(layers_of(layers, 10), 2, [reduce](int, int) {
                                 return LayerCost{.forward = Duration{reduce}};
                               })};
  return Templates({group}, 2, {.micro_batches_per_node = micro_batches_per_node});
}

// Two nodes of two GPUs, eight layers of 30. One GPU per stage: four stages of 60. Two GPUs: two stages of
// 4 (15 + reduce). At 4 micro-batches (4 + 3) * 60 = 420 against (4 + 1) * 4 (15 + reduce) = 300 + 20 reduce.
TEST(Templates, ChooseGpusPerStageByTheTimeAtTheRealMicroBatches) {
  const Composition pair{2};
  Templates cheap = two_gpus(8, 2, 5);
  EXPECT_EQ(cheap.at(cheap.find(pair).value()).gpus_per_stage, 2);
  Templates dear = two_gpus(8, 2, 7);
  EXPECT_EQ(dear.at(dear.find(pair).value()).gpus_per_stage, 1);
  Templates many = two_gpus(8, 500, 5);  // the bubble is nothing: 60 a micro-batch against 80
  EXPECT_EQ(many.at(many.find(pair).value()).gpus_per_stage, 1);
}

// Four nodes of two GPUs and six layers: eight stages are too many, four of two GPUs are not.
TEST(Templates, HaveNoMoreStagesThanLayers) {
  Templates templates = two_gpus(6, 2, 5);
  EXPECT_EQ(templates.at(templates.find({4}).value()).gpus_per_stage, 2);
  EXPECT_FALSE(templates.find({7}));
}

// Two stages a node of eight layers: node 1 of two holds the second half.
TEST(Templates, PutConsecutiveStagesOnANode) {
  Templates templates = two_gpus(8, 500, 5);
  const PipelineTemplate& pair = templates.at(templates.find({2}).value());
  EXPECT_EQ(pair.stages(), 4);
  EXPECT_EQ(pair.layers_on(0, 8), (PipelineTemplate::Layers{0, 4}));
  EXPECT_EQ(pair.layers_on(1, 8), (PipelineTemplate::Layers{4, 8}));
}

// A pipeline of slow nodes alone is cut as one of fast nodes, and takes as many times as long.
TEST(Templates, PriceAGroupWithItsOwnCosts) {
  const auto options = stage_options(layers_of(9, 10), 1, {});
  Templates templates({{.nodes = 4, .options = options}, {.nodes = 4, .options = scaled(options, 1.5)}}, 1,
                      {});
  const int fast = templates.find({3, 0}).value();
  const int slow = templates.find({0, 3}).value();
  EXPECT_EQ(templates.at(fast).partition.first_layers, templates.at(slow).partition.first_layers);
  EXPECT_EQ(2 * templates.time(slow, 10), 3 * templates.time(fast, 10));
  const int mixed = templates.find({2, 1}).value();
  EXPECT_LT(templates.time(mixed, 10), templates.time(slow, 10));
  EXPECT_GT(templates.time(mixed, 10), templates.time(fast, 10));
}

// A time of nb^2: asked at 4, 6 and 8, linear between; and only where it is needed, once.
TEST(Templates, AskForDearTimesAtFewCounts) {
  std::vector<int> asked;
  const auto dear = [&asked](const PipelineTemplate&, int nb) {
    asked.push_back(nb);
    return Duration{nb * nb};
  };
  Templates templates({{.nodes = 1, .options = stage_options(layers_of(2, 10), 1, {})}}, 1,
                      {.time = dear, .interpolate = true, .micro_batches_per_node = 1});
  const int one = templates.find({1}).value();
  asked.clear();
  EXPECT_EQ(templates.time(one, 4), Duration{16});
  EXPECT_EQ(templates.time(one, 5), Duration{(16 + 36) / 2});
  EXPECT_EQ(templates.time(one, 7), Duration{(36 + 64) / 2});
  EXPECT_EQ(templates.time(one, 8), Duration{64});
  EXPECT_EQ(asked, (std::vector{4, 6, 8}));
  EXPECT_EQ(templates.within(one, Duration{50}, 100), 7);
}

}  // namespace
}  // namespace stagecraft
