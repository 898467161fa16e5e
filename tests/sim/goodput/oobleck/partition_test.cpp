// Oracle: the exact search finds what listing every contiguous partition finds.
//
//   System        layers given by their work in nanoseconds, one GPU per stage.
//   Expectations  resilience_planner_oracles.yaml (equations 1-4 of arXiv 2309.08125, by brute force), and a
//                 brute force of our own for other layers and other numbers of micro-batches.
#include "sim/goodput/oobleck/partition.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>
#include <tuple>

#include "tests/sim/goodput/oobleck/oracle_file.hpp"

namespace stagecraft {
namespace {

using std::chrono::nanoseconds;

std::vector<Duration> to_durations(const std::vector<int>& weights) {
  std::vector<Duration> out;
  for (const int weight : weights) out.emplace_back(weight);
  return out;
}

TEST(PartitionSearch, FindsThePublishedPartitions) {
  int rows = 0;
  for (const YamlNode& row : oracle_rows("resilience_planner_oracles.yaml", "partitions").items) {
    const std::vector<int> weights = integers(*row.find("weights"));
    const int stages = integer(row, "S");
    SCOPED_TRACE(testing::Message() << row.find("name")->text << " S=" << stages);
    const auto found =
        PartitionSearch(to_durations(weights)).best(stages, 4 * stages, PipelineRule::kPublished);
    ASSERT_TRUE(found);
    std::vector<int> starts{0};
    for (const int layers : integers(*row.find("layers_per_stage"))) starts.push_back(starts.back() + layers);
    starts.pop_back();
    EXPECT_EQ(found->first_layers, starts);
    const int k = slowest_stage(found->work);
    EXPECT_EQ(k, integer(row, "k_star"));
    const Duration slowest = found->work[static_cast<std::size_t>(k)];
    EXPECT_EQ(std::accumulate(found->work.begin(), found->work.end(), Duration{}),
              Duration{integer(row, "T1")});
    EXPECT_EQ((4 * stages - stages + k - 1) * slowest, Duration{integer(row, "T2")});
    EXPECT_EQ(std::accumulate(found->work.begin() + k, found->work.end(), Duration{}),
              Duration{integer(row, "T3")});
    EXPECT_EQ(pipeline_line(found->work, PipelineRule::kPublished).time(4 * stages),
              Duration{integer(row, "T")});
    ++rows;
  }
  EXPECT_EQ(rows, 24);
}

// The least (time, published time, starts) over every way to cut the layers.
std::vector<int> best_of_all(const std::vector<Duration>& work, int stages, int micro_batches,
                             PipelineRule rule) {
  std::vector<int> best;
  std::tuple<Duration, Duration, std::vector<int>> least;
  std::vector<int> starts{0};
  const std::function<void()> extend = [&] {
    if (static_cast<int>(starts.size()) == stages) {
      const auto its_work = partition_at(work, starts).work;
      const std::tuple candidate{pipeline_line(its_work, rule).time(micro_batches),
                                 pipeline_line(its_work, PipelineRule::kPublished).time(micro_batches),
                                 starts};
      if (best.empty() || candidate < least) {
        least = candidate;
        best = starts;
      }
      return;
    }
    for (int next = starts.back() + 1; next < static_cast<int>(work.size()); ++next) {
      starts.push_back(next);
      extend();
      starts.pop_back();
    }
  };
  extend();
  return best;
}

// Property: for any layers, stages, micro-batches and either rule.
TEST(PartitionSearch, IsAsGoodAsListingEveryPartition) {
  std::mt19937 draw(7);
  for (int trial = 0; trial < 400; ++trial) {
    const int layers = 2 + static_cast<int>(draw() % 9);
    std::vector<Duration> work;
    for (int layer = 0; layer < layers; ++layer) work.emplace_back(draw() % 12);
    work[draw() % work.size()] += Duration{1};
    const PartitionSearch search(work);
    for (int stages = 1; stages <= layers; ++stages) {
      const int micro_batches = 1 + static_cast<int>(draw() % 40);
      for (const auto rule : {PipelineRule::kPublished, PipelineRule::kCorrected}) {
        SCOPED_TRACE(testing::Message() << "trial " << trial << " S=" << stages << " Nb=" << micro_batches);
        const auto found = search.best(stages, micro_batches, rule);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->first_layers, best_of_all(work, stages, micro_batches, rule));
      }
    }
  }
}

TEST(PartitionSearch, HasNothingForMoreStagesThanLayers) {
  EXPECT_FALSE(PartitionSearch({nanoseconds(3), nanoseconds(4)}).best(3, 12, PipelineRule::kCorrected));
}

// Four equal stages of 10 ns: (Nb + 3) * 10.
TEST(PipelineLine, IsOneForwardOneBackwardForEqualStages) {
  const std::vector<Duration> work(4, Duration{10});
  for (const auto rule : {PipelineRule::kPublished, PipelineRule::kCorrected})
    for (int nb = 1; nb <= 9; ++nb) EXPECT_EQ(pipeline_line(work, rule).time(nb), (nb + 3) * Duration{10});
}

// Stages 10, 1, 1, 1: the equations give 13 + (Nb - 5) * 10 + 13, at Nb = 4 less than four passes of the
// first.
TEST(PipelineLine, NeverFallsBelowTheSlowestStageWhenCorrected) {
  const std::vector<Duration> work{Duration{10}, Duration{1}, Duration{1}, Duration{1}};
  EXPECT_EQ(pipeline_line(work, PipelineRule::kPublished).time(4), Duration{16});
  EXPECT_EQ(pipeline_line(work, PipelineRule::kCorrected).time(4), Duration{40});
  EXPECT_EQ(pipeline_line(work, PipelineRule::kCorrected).time(1), Duration{13});  // all stages once
}

TEST(PipelineLine, CountsTheMicroBatchesThatFit) {
  for (const auto rule : {PipelineRule::kPublished, PipelineRule::kCorrected})
    for (const auto& weights :
         {std::vector{10, 1, 1, 1}, std::vector{1, 1, 9}, std::vector{4, 4, 4}, std::vector{5}}) {
      const PipelineLine line = pipeline_line(to_durations(weights), rule);
      for (int nb = 1; nb <= 30; ++nb) {
        if (line.time(nb) <= Duration{0}) continue;
        EXPECT_GE(line.within(line.time(nb), 30), nb);
        if (line.time(nb) < line.time(nb + 1)) {
          EXPECT_EQ(line.within(line.time(nb), 30), nb);
        }
        EXPECT_LT(line.within(line.time(nb) - Duration{1}, 30), nb);
      }
      EXPECT_EQ(line.within(std::chrono::hours(1), 30), 30);
    }
}

// Fast, slow, fast: layers take 2, on the second stage 4. Three, two and three layers take 6, 8 and 6; filled
// from the front within 8 they are 4, 2 and 2.
TEST(PartitionOfUnequal, GivesASlowStageLess) {
  const std::vector<Duration> fast(8, Duration{2});
  const std::vector<Duration> slow(8, Duration{4});
  const auto found = partition_of_unequal({fast, slow, fast});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first_layers, (std::vector{0, 4, 6}));
  EXPECT_EQ(found->work, to_durations({8, 8, 4}));
  EXPECT_FALSE(partition_of_unequal({{Duration{1}}, {Duration{1}}}));
}

}  // namespace
}  // namespace stagecraft
