// The times of a task graph, asked of prices, are those that lowering them gives.
#include "sim/lower/time_sources.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "tests/sim/lower/uniform_prices.hpp"

namespace stagecraft {
namespace {

// Everything that a graph may have: messages, buckets of unlike number, tied embedding, norm, optimizer.
IterationPrices rich_prices(const PipelineShape& shape, std::int64_t unit) {
  IterationPrices prices =
      uniform_prices(shape, {.forward = 3 * unit, .input_gradient = 4 * unit, .weight_gradient = 2 * unit});
  for (std::size_t i = 0; i < prices.stages.size(); ++i) {
    const auto more = static_cast<std::int64_t>(i) * unit;
    prices.stages[i].forward.add(Category::kTensorComm, Duration(1 + more), Provenance::kAnalytic);
    prices.stages[i].recompute.add(Category::kRecompute, Duration(2 + more), Provenance::kAnalytic);
    if (i + 1 == prices.stages.size()) continue;
    prices.edges[i].forward = seconds(Category::kPipelineComm, unit);
    prices.edges[i].backward = seconds(Category::kPipelineComm, 2 * unit);
  }
  for (std::size_t rank = 0; rank < prices.ranks.size(); ++rank) {
    RankPrice& price = prices.ranks[rank];
    const auto chunks = static_cast<std::size_t>(shape.chunks);
    price.gradient_buckets.assign(chunks,
                                  std::vector<PassPrice>(1 + rank, seconds(Category::kDataComm, 5 * unit)));
    price.parameter_buckets.assign(chunks, std::vector<PassPrice>(3, seconds(Category::kDataComm, 2 * unit)));
    price.gradient_norm = seconds(Category::kDataComm, unit);
    price.optimizer = seconds(Category::kOptimizer, 7 * unit);
  }
  prices.ranks.front().tied_embedding = seconds(Category::kDataComm, unit);
  prices.host = seconds(Category::kOther, unit);
  return prices;
}

std::vector<Duration> times_of(const Program& program, const std::vector<Duration>& asked) {
  std::vector<Duration> times;
  for (std::uint32_t i = 0; i < program.task_count(); ++i)
    times.push_back(asked[program.label[TaskId(i)].index()]);
  return times;
}

class EveryOrder : public testing::TestWithParam<std::string> {};

// Property: the graph of one set of prices with the times of another is what lowering the other gives.
TEST_P(EveryOrder, HasTheTimesThatLoweringGives) {
  const ScheduleKind& kind = *find_schedule(GetParam());
  const PipelineShape shape{.ranks = 4, .micro_batches = 8, .chunks = kind.chunked ? 2 : 1};
  const Schedule schedule = generate(kind, shape);
  const IterationPrices first = slowed(rich_prices(shape, 1), 1.25),
                        other = slowed(rich_prices(shape, 3), 1.25);
  ASSERT_EQ(shape_of(first), shape_of(other));
  for (int how = 0; how < 16; ++how) {
    SCOPED_TRACE(how);
    const LowerOptions options{.blocking_messages = (how & 1) != 0,
                               .queued_messages = (how & 8) != 0,
                               .overlap_gradients = (how & 2) != 0,
                               .overlap_parameters = (how & 4) != 0};
    ASSERT_TRUE(is_traceable(first, options));
    const TracedProgram traced = lower_traced(schedule, first, options);
    const Program expected = lower(schedule, other, options);
    EXPECT_EQ(traced.program.successors, expected.successors);
    EXPECT_EQ(traced.program.resource_begin, expected.resource_begin);
    EXPECT_EQ(traced.program.loads.size(), expected.loads.size());
    EXPECT_EQ(times_of(traced.program, label_times(traced.sources, first)), traced.program.duration.raw());
    EXPECT_EQ(times_of(traced.program, label_times(traced.sources, other)), expected.duration.raw());
  }
}

INSTANTIATE_TEST_SUITE_P(TimeSources, EveryOrder,
                         testing::Values("gpipe", "1f1b", "interleaved-1f1b", "zb-h1"),
                         [](const auto& order) {
                           std::string name = order.param;
                           std::erase(name, '-');
                           return name;
                         });

// A message that takes no time is no task; one bucket more is one segment more; a word embedding for
// multi-token prediction may be on another rank than the last.
TEST(PriceShape, TellsGraphsApart) {
  const PipelineShape shape{.ranks = 3, .micro_batches = 4};
  const IterationPrices prices = rich_prices(shape, 1);
  IterationPrices silent = prices, finer = prices, slower = prices, elsewhere = prices;
  silent.edges[0].forward = {};
  finer.ranks[1].gradient_buckets[0].push_back(seconds(Category::kDataComm, 1));
  slower.ranks[1].gradient_buckets[0][0] = seconds(Category::kDataComm, 9);
  elsewhere.second_embedding = 1;
  EXPECT_NE(shape_of(silent), shape_of(prices));
  EXPECT_NE(shape_of(finer), shape_of(prices));
  EXPECT_NE(shape_of(elsewhere), shape_of(prices));
  EXPECT_EQ(shape_of(slower), shape_of(prices));
}

TEST(PriceShape, IsNotAllThatAGraphOfUnitsDependsOn) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 4};
  IterationPrices prices = rich_prices(shape, 1);
  EXPECT_TRUE(is_traceable(prices, {}));
  EXPECT_FALSE(is_traceable(prices, {.replicas = 2}));
  EXPECT_FALSE(is_traceable(prices, {.iterations = 2}));
  EXPECT_FALSE(is_traceable(prices, {.pairs = {FusedPairRule{}}}));
  prices.stages[0].units.emplace_back();
  EXPECT_FALSE(is_traceable(prices, {}));
}

}  // namespace
}  // namespace stagecraft
