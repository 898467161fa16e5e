// Passes that are cut into units, with the traffic of each: ZeRO 2 and 3 with a pencil.
#include <gtest/gtest.h>

#include "sim/engine/engine.hpp"
#include "sim/engine/memory_high_water.hpp"
#include "sim/lower/lower.hpp"
#include "sim/report/measure.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/sim/lower/uniform_prices.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

Timeline run_lowered(const PipelineShape& shape, const IterationPrices& prices,
                     const LowerOptions& options = {}) {
  return run(lower(schedule_of("1f1b", shape), prices, options));
}

// Units of F 2, B 4 each, gathered in `gather`, reduced in `reduce` and summed over the replicas of their
// shards in `replicate` seconds.
std::vector<UnitPrice> units_of(std::size_t count, std::int64_t gather, std::int64_t reduce,
                                std::int64_t replicate = 0) {
  const UnitPrice unit{.gather = seconds(Category::kDataComm, gather),
                       .reduce = seconds(Category::kDataComm, reduce),
                       .replicate = seconds(Category::kDataComm, replicate),
                       .forward = 2s,
                       .input_gradient = 2s,
                       .weight_gradient = 2s};
  return std::vector<UnitPrice>(count, unit);
}

IterationPrices two_units(std::int64_t gather, std::int64_t reduce, std::int64_t replicate = 0) {
  IterationPrices prices = uniform_prices({.ranks = 1, .micro_batches = 1},
                                          {.forward = 4, .input_gradient = 4, .weight_gradient = 4});
  prices.stages[0].units = units_of(2, gather, reduce, replicate);
  return prices;
}

constexpr PipelineShape kOne{.ranks = 1, .micro_batches = 1};

// System: one rank, two units of F 2, B 4; gathers of 1 s.
// Expectations, overlapped: gather 0-1, F 1-3 beside gather 1-2, F 3-5. The backward's first unit is gathered
// beside the last segment of the forward, as soon as unit 0 is done, at 3-4, and its second at 5-6: B 5-9,
// 9-13. Else each of the four gathers stands alone: 12 + 4.
TEST(ShardedWeights, AreGatheredOneUnitAhead) {
  EXPECT_EQ(run_lowered(kOne, two_units(1, 0)).makespan, 13s);
  EXPECT_EQ(run_lowered(kOne, two_units(1, 0), {.overlap_parameters = false}).makespan, 16s);
}

// System: as above with gathers of 3 s, longer than a forward segment.
// Expectations: gathers 0-3, 3-6; F 3-5, 6-8. The third may start at 5, when unit 0 is done, but the stream
// is busy until 6: 6-9, the fourth when F is done at 8 and the stream free: 9-12; B 9-13, 13-17.
TEST(ShardedWeights, LimitPassesThatAreShorter) {
  EXPECT_EQ(run_lowered(kOne, two_units(3, 0)).makespan, 17s);
}

// Kept weights are gathered for the forward alone: gathers 0-1, 1-2; 1 + 12. Without overlap 2 + 12.
TEST(ShardedWeights, ThatAreKeptAreNotGatheredAgain) {
  IterationPrices prices = two_units(1, 0);
  prices.stages[0].kept_gathered = true;
  EXPECT_EQ(run_lowered(kOne, prices).makespan, 13s);
  EXPECT_EQ(run_lowered(kOne, prices, {.overlap_parameters = false}).makespan, 14s);
}

// Weights gathered again behind what is made again take two gathers of each unit in the backward.
// Expectations, overlapped: F as above until 5; gathers of the backward 3-5 and 5-7; B 5-9, 9-13. Else 12 + 2
// + 4.
TEST(ShardedWeights, ThatAreFreedBehindARecomputeAreGatheredTwiceInTheBackward) {
  IterationPrices prices = two_units(1, 0);
  for (UnitPrice& unit : prices.stages[0].units) unit.backward_gathers = 2;
  EXPECT_EQ(run_lowered(kOne, prices).makespan, 13s);
  EXPECT_EQ(run_lowered(kOne, prices, {.overlap_parameters = false}).makespan, 18s);
}

// System: no gathers, reductions of 3 s. Expectations: F 0-4, B 4-8, 8-12; reductions 8-11, 12-15. Blocking:
// B 4-8, reduction 8-11, B 11-15, reduction 15-18.
TEST(ShardedGradients, AreReducedBehindEachUnit) {
  EXPECT_EQ(run_lowered(kOne, two_units(0, 3)).makespan, 15s);
  EXPECT_EQ(run_lowered(kOne, two_units(0, 3), {.overlap_gradients = false}).makespan, 18s);
}

// System: two micro-batches, reductions of 1 s. Expectations: every backward reduces: four reductions, of
// which only the last is exposed: 24 + 1; blocking each of them: 24 + 4.
TEST(ShardedGradients, AreReducedInEveryBackward) {
  const PipelineShape shape{.ranks = 1, .micro_batches = 2};
  IterationPrices prices = uniform_prices(shape, {.forward = 4, .input_gradient = 4, .weight_gradient = 4});
  prices.stages[0].units = units_of(2, 0, 1);
  EXPECT_EQ(run_lowered(shape, prices).makespan, 25s);
  EXPECT_EQ(run_lowered(shape, prices, {.overlap_gradients = false}).makespan, 28s);
}

// The last of two micro-batches reduces for both: its second reduction is exposed, 24 + 1; blocking, both
// are: 24 + 2.
TEST(ShardedGradients, AreReducedByTheLastMicroBatchWhereTheyStayWhole) {
  const PipelineShape shape{.ranks = 1, .micro_batches = 2};
  IterationPrices prices = uniform_prices(shape, {.forward = 4, .input_gradient = 4, .weight_gradient = 4});
  prices.stages[0].units = units_of(2, 0, 1);
  EXPECT_EQ(run_lowered(shape, prices, {.reduce_last = true}).makespan, 25s);
  EXPECT_EQ(run_lowered(shape, prices, {.overlap_gradients = false, .reduce_last = true}).makespan, 26s);
}

// Reductions wait for the end of the last backward: nothing runs beside it, so it is not slowed, and both are
// exposed.
TEST(ShardedGradients, ThatWaitForTheWholeBackwardAreExposed) {
  const PipelineShape shape{.ranks = 1, .micro_batches = 2};
  IterationPrices prices = uniform_prices(shape, {.forward = 4, .input_gradient = 4, .weight_gradient = 4});
  prices.stages[0].units = units_of(2, 0, 1);
  const auto makespan = [&](bool behind, double slowdown) {
    return run_lowered(shape, slowed(prices, slowdown), {.reduce_last = true, .reduce_behind = behind})
        .makespan;
  };
  EXPECT_EQ(makespan(true, 1), 26s);
  EXPECT_EQ(makespan(true, 1.5), 26s);
  EXPECT_EQ(makespan(false, 1.5), 25500ms);  // segments of 4 and, beside a reduction, 4.5 s; 1 s exposed
}

// System: gathers of 1 s and reductions of 3 s; the traffic shares one stream.
// Expectations: gathers 0-1, 1-2, 3-4 (F 1-3, 3-5), 5-6 (B 5-9, 9-13). Reductions 9-12, 13-16.
TEST(ShardedGradients, ShareTheStreamWithGathers) {
  EXPECT_EQ(run_lowered(kOne, two_units(1, 3)).makespan, 16s);
}

// System: gathers and reductions of 1 s, then 6 s over the replicas of the shards on a stream of their own.
// Expectations: gathers and passes as if there were none, gathers 0-1, 1-2, 3-4, 5-6, B 5-9, 9-13; reductions
// 9-10, 13-14; over replicas 10-16, 16-22. Blocking: B 5-9, reduced 9-10, over replicas 10-16, and behind
// them on their stream the second gather 16-17, B 17-21, 21-22, 22-28.
TEST(ShardedGradients, AreReplicatedBesideGathersAndReductions) {
  EXPECT_EQ(run_lowered(kOne, two_units(1, 1, 6)).makespan, 22s);
  EXPECT_EQ(run_lowered(kOne, two_units(1, 1, 6), {.overlap_gradients = false}).makespan, 28s);
}

// The optimizer waits for the last of them: 22 + 3. Several iterations: so does the next forward.
TEST(ShardedGradients, AreSteppedWhenReplicated) {
  IterationPrices prices = two_units(1, 1, 6);
  prices.ranks[0].optimizer = seconds(Category::kOptimizer, 3);
  EXPECT_EQ(run_lowered(kOne, prices).makespan, 25s);
  EXPECT_GE(run_lowered(kOne, prices, {.iterations = 2}).makespan, 47s);
}

// System: reductions of 1 s and 3 s over replicas beside segments of 4 s, which lose half of the longer: B 4-8
// beside nothing, 8-13.5, last reduction 13.5-14.5, over replicas 14.5-17.5.
TEST(ShardedTraffic, OnTwoStreamsSlowsByTheLonger) {
  EXPECT_EQ(run_lowered(kOne, slowed(two_units(0, 1, 3), 1.5)).makespan, 17500ms);
}

// System: reductions of 2 s beside segments of 4 s, which lose half of the time that both run: 1 s each.
// Expectations: F 0-4, B 4-8 beside nothing, 8-13, last reduction 13-15. Gathers slow the forward in the same
// way: F of 2 s beside 1 s: 2.5 s. Gathers 0-1, 1-2; F 1-3.5, 3.5-6 beside the third gather; B 4 s beside 1 s:
// 6-10.5, and beside nothing: 10.5-14.5.
TEST(ShardedTraffic, SlowsTheSegmentsBesideIt) {
  EXPECT_EQ(run_lowered(kOne, slowed(two_units(0, 2), 1.5)).makespan, 15s);
  EXPECT_EQ(run_lowered(kOne, slowed(two_units(1, 0), 1.5)).makespan, 14500ms);
  EXPECT_EQ(run_lowered(kOne, slowed(two_units(0, 2), 1.5), {.overlap_gradients = false}).makespan,
            16s);  // 12 + 2 * 2: nothing runs beside anything
}

// System: units whose traffic moves slower, as fast and faster than they compute, alone and in four micro-batches.
// What a unit loses to traffic beside it is never more than that traffic: overlap pays, whatever it costs.
TEST(ShardedTraffic, NeverCostsMoreBesidePassesThanAlone) {
  for (const int micro_batches : {1, 4}) {
    const PipelineShape shape{.ranks = 1, .micro_batches = micro_batches};
    for (const std::int64_t gather : {0, 1, 2, 5}) {
      for (const std::int64_t reduce : {0, 1, 4, 9}) {
        IterationPrices prices = two_units(gather, reduce);
        prices.stages[0].units.push_back(prices.stages[0].units[0]);
        prices.stages[0].units[0].forward = prices.stages[0].units[0].input_gradient = 0s;  // an embedding
        const Duration beside = run_lowered(shape, slowed(prices, 2)).makespan;
        const Duration alone =
            run_lowered(shape, prices, {.overlap_gradients = false, .overlap_parameters = false}).makespan;
        EXPECT_LE(beside, alone) << micro_batches << " " << gather << " " << reduce;
      }
    }
  }
}

// System: unit 0 takes 3 of 4 s of the forward. Expectations: gathers 0-1, 1-2; F 1-4 and 4-5.
TEST(ShardedWeights, CutAPassInProportionToTheUnits) {
  IterationPrices prices = two_units(1, 0);
  prices.stages[0].units[0].forward = 3s;
  prices.stages[0].units[1].forward = 1s;
  const Program program = lower(schedule_of("1f1b", kOne), prices, {});
  const Timeline timeline = run(program);
  EXPECT_EQ(timeline.end[TaskId(0)], 4s);
  EXPECT_EQ(timeline.end[TaskId(1)], 5s);
}

IterationPrices sharded_prices(const PipelineShape& shape, bool gathers, bool kept, bool replicated) {
  IterationPrices prices =
      uniform_prices(shape, {.forward = 7, .input_gradient = 8, .weight_gradient = 5, .message = 1});
  for (std::size_t stage = 0; stage < prices.stages.size(); ++stage) {
    prices.stages[stage].units = units_of(
        2 + stage % 2, gathers ? 1 + static_cast<std::int64_t>(stage % 3) : 0, 2, replicated ? 3 : 0);
    prices.stages[stage].units[0].forward = 0s;
    prices.stages[stage].kept_gathered = kept;
    prices.stages[stage].memory = {.kept = Bytes(100),
                                   .freed_by_input_gradient = Bytes(60),
                                   .forward_transient = Bytes(7),
                                   .backward_transient = Bytes(11)};
  }
  for (RankPrice& rank : prices.ranks) {
    if (!gathers)
      rank.parameter_buckets.assign(static_cast<std::size_t>(shape.chunks),
                                    {seconds(Category::kDataComm, 1), seconds(Category::kDataComm, 2)});
    rank.tied_embedding = seconds(Category::kDataComm, 1);
    rank.gradient_norm = seconds(Category::kDataComm, 1);
    rank.optimizer = seconds(Category::kOptimizer, 3);
  }
  return prices;
}

template <class Visit>
void for_each_sharding(const Visit& visit) {
  for (const auto& [name, chunks] : {std::pair{"gpipe", 1}, {"1f1b", 1}, {"interleaved-1f1b", 2}}) {
    for (int flags = 0; flags < 64; ++flags) {
      SCOPED_TRACE(testing::Message() << name << " flags=" << flags);
      const PipelineShape shape{.ranks = 3, .micro_batches = 6, .chunks = chunks};
      visit(schedule_of(name, shape),
            slowed(sharded_prices(shape, (flags & 8) != 0, (flags & 16) != 0, (flags & 32) != 0), 1.25),
            LowerOptions{.blocking_messages = (flags & 1) != 0,
                         .overlap_gradients = (flags & 2) != 0,
                         .overlap_parameters = (flags & 4) != 0});
    }
  }
}

TEST(ShardedPrograms, UnfoldedEqualFoldedBitForBit) {
  for_each_sharding([](const Schedule& schedule, const IterationPrices& prices, LowerOptions options) {
    const Program folded = lower(schedule, prices, options);
    options.replicas = 3;
    const Program unfolded = lower(schedule, prices, options);
    const Timeline one = run(folded), all = run(unfolded);
    ASSERT_EQ(one.makespan, all.makespan);
    const std::size_t resources = folded.resources.size() - 1;  // of all ranks; joints have their own
    for (std::size_t r = 0; r < resources; ++r) {
      for (std::size_t copy = 0; copy < 3; ++copy) {
        const std::size_t same = r + resources * copy;
        const std::uint32_t a = folded.resource_begin[r], b = unfolded.resource_begin[same];
        const std::uint32_t count = folded.resource_begin[r + 1] - a;
        ASSERT_EQ(unfolded.resource_begin[same + 1] - b, count);
        for (std::uint32_t i = 0; i < count; ++i) {
          ASSERT_EQ(one.start[TaskId(a + i)], all.start[TaskId(b + i)]);
          ASSERT_EQ(one.end[TaskId(a + i)], all.end[TaskId(b + i)]);
        }
      }
    }
  });
}

// Without what buckets beside them take from passes, which depends on when they run.
TEST(ShardedPrograms, RunAsTheirLongestPath) {
  for_each_sharding([](const Schedule& schedule, const IterationPrices& prices, LowerOptions options) {
    options.replicas = 2;
    Program program = lower(schedule, prices, options);
    program.loads.clear();
    ASSERT_EQ(run(program), longest_path(program));
  });
}

TEST(ShardedPrograms, BreakDownToTheNanosecond) {
  for_each_sharding([](const Schedule& schedule, const IterationPrices& prices, const LowerOptions& options) {
    const Program program = lower(schedule, prices, options);
    const Timeline timeline = run(program);
    Duration sum{};
    for (const Duration part : measure_breakdown(program, timeline)) sum += part;
    ASSERT_EQ(sum, timeline.makespan);
  });
}

// Whatever is taken is freed, whether passes are cut or not; the peak of 1F1B's first rank is p micro-batches
// and what the backward of one needs beside them.
TEST(PassMemoryOfTasks, IsFreedToTheLastByte) {
  for_each_sharding([](const Schedule& schedule, const IterationPrices& prices, const LowerOptions& options) {
    const Program program = lower(schedule, prices, options);
    Bytes sum{};
    for (const MemoryDelta& delta : program.memory) sum += delta.at_start + delta.at_end;
    ASSERT_EQ(sum, Bytes(0));
  });
}

// System: 1F1B on two ranks, three micro-batches; 100 bytes are kept, 7 beside a forward, 11 beside a
// backward. Expectations: rank 0 holds two micro-batches and a backward's 11; rank 1 one.
TEST(PassMemoryOfTasks, PeaksWhereMostMicroBatchesAreInFlight) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 3};
  IterationPrices prices = uniform_prices(shape, {});
  for (StagePrice& stage : prices.stages)
    stage.memory = {.kept = Bytes(100),
                    .freed_by_input_gradient = Bytes(60),
                    .forward_transient = Bytes(7),
                    .backward_transient = Bytes(11)};
  const Program program = lower(schedule_of("1f1b", shape), prices, {});
  const auto peaks = memory_high_water(program, run(program));
  EXPECT_EQ(peaks[ResourceId(0)], Bytes(211));  // compute streams are each rank's first resource
  EXPECT_EQ(peaks[ResourceId(3)], Bytes(111));
}

TEST(PassMemoryOfTasks, IsNotThereWhereStagesHoldNothing) {
  const Program program = lower(schedule_of("1f1b", kOne), two_units(1, 1), {});
  EXPECT_TRUE(program.memory.empty());
}

}  // namespace
}  // namespace stagecraft
