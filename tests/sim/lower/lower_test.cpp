// How an iteration is put together: overlap, tail, folding.
#include "sim/lower/lower.hpp"

#include <gtest/gtest.h>

#include "sim/engine/engine.hpp"
#include "sim/report/measure.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/sim/lower/uniform_prices.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

Duration time_of(const PipelineShape& shape, const IterationPrices& prices,
                 const LowerOptions& options = {}) {
  return run(lower(schedule_of("1f1b", shape), prices, options)).makespan;
}

// System: one rank, two micro-batches, F 4 B 8; four gradient buckets of 3 s each.
// Expectations: without overlap 24 + 12. With it the last backward (16..24) hands out a bucket at 18, 20, 22,
// 24; the reductions run 18-21, 21-24, 24-27, 27-30.
TEST(Lower, BucketsAreReducedBesideTheLastBackward) {
  const PipelineShape shape{.ranks = 1, .micro_batches = 2};
  IterationPrices prices = uniform_prices(shape, {.forward = 4, .input_gradient = 4, .weight_gradient = 4});
  prices.ranks[0].gradient_buckets = {std::vector<PassPrice>(4, seconds(Category::kDataComm, 3))};
  EXPECT_EQ(time_of(shape, prices, {.overlap_gradients = false}), 36s);
  EXPECT_EQ(time_of(shape, prices, {.overlap_gradients = true}), 30s);
}

// System: as above, but a backward lasts half as long again while gradients are reduced beside it.
// Expectations: nothing is reduced beside the first quarter of the last backward, 16..18; the others take 3 s
// each and end at 21, 24, 27: 27 + 3.
TEST(Lower, ReductionsSlowTheBackwardBesideThem) {
  const PipelineShape shape{.ranks = 1, .micro_batches = 2};
  IterationPrices prices = uniform_prices(shape, {.forward = 4, .input_gradient = 4, .weight_gradient = 4});
  prices.ranks[0].gradient_buckets = {std::vector<PassPrice>(4, seconds(Category::kDataComm, 3))};
  EXPECT_EQ(time_of(shape, slowed(prices, 1.5), {.overlap_gradients = true}), 30s);
  EXPECT_EQ(time_of(shape, slowed(prices, 1.5), {.overlap_gradients = false}), 36s);
}

// System: as above with one long bucket and one short: 3 s and 1 s, on a backward of two halves.
// Traffic takes half of the GPU. Expectations: the second half, from 20 on, needs 4 s and has done 1.5 when
// the first bucket ends at 23; it ends at 25.5, and the short bucket follows: 25.5 + 1.
TEST(Lower, ABackwardLosesForAsLongAsTheTrafficBesideItLasts) {
  const PipelineShape shape{.ranks = 1, .micro_batches = 2};
  IterationPrices prices = uniform_prices(shape, {.forward = 4, .input_gradient = 4, .weight_gradient = 4});
  prices.ranks[0].gradient_buckets = {{seconds(Category::kDataComm, 3), seconds(Category::kDataComm, 1)}};
  EXPECT_EQ(time_of(shape, slowed(prices, 2), {}), 26500ms);
}

// System: two ranks of two chunks, two micro-batches, F 1 B 2, all forwards first. Backwards end on rank 0 at
// 9, 11 (chunk 1) and 13, 15 (chunk 0), on rank 1 at 7, 9 and 11, 13.
// Expectations: rank 1 reduces chunk 1 for 6 s from 9, then chunk 0 for 1 s: 16. Aligned with rank 0 it
// begins a backward later, at 11: 18. Of two buckets of rank 0's chunk 0 one is ready within the last
// backward, at 14, the other at 15: 16; aligned, both wait for its end: 17.
TEST(Lower, AlignedRanksReduceAChunkTogether) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 2, .chunks = 2};
  const auto ends = [&](const IterationPrices& prices, bool aligned) {
    const Program program =
        lower(schedule_of("interleaved-1f1b", shape), prices, {.aligned_gradients = aligned});
    return run(program).makespan;
  };
  IterationPrices last = uniform_prices(shape, {});
  last.ranks[1].gradient_buckets = {{seconds(Category::kDataComm, 1)}, {seconds(Category::kDataComm, 6)}};
  EXPECT_EQ(ends(last, false), 16s);
  EXPECT_EQ(ends(last, true), 18s);
  IterationPrices first = uniform_prices(shape, {});
  first.ranks[0].gradient_buckets = {std::vector<PassPrice>(2, seconds(Category::kDataComm, 1)), {}};
  EXPECT_EQ(ends(first, false), 16s);
  EXPECT_EQ(ends(first, true), 17s);
}

// System: two ranks of one chunk, one micro-batch, F 1 B 2: rank 1's backward ends at 4, rank 0's at 6; two
// buckets of 4 s each. Expectations: rank 1's are ready at 3 and 4 and done at 11; aligned, both begin after
// its last backward: 12. Rank 0 reduces as they become ready, at 5 and 6, aligned or not: 13.
TEST(Lower, AlignedRanksOfOneChunkReduceAfterTheirLastBackwardButForTheFirst) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 1};
  for (const bool aligned : {false, true}) {
    IterationPrices last = uniform_prices(shape, {});
    last.ranks[1].gradient_buckets = {std::vector<PassPrice>(2, seconds(Category::kDataComm, 4))};
    EXPECT_EQ(time_of(shape, last, {.aligned_gradients = aligned}), aligned ? 12s : 11s);
    IterationPrices first = uniform_prices(shape, {});
    first.ranks[0].gradient_buckets = {std::vector<PassPrice>(2, seconds(Category::kDataComm, 4))};
    EXPECT_EQ(time_of(shape, first, {.aligned_gradients = aligned}), 13s);
  }
}

// System: one rank, one micro-batch, F 4 B 8, parameters gathered in two buckets of 1 s.
// Traffic takes half of the GPU. Expectations: the first half of the forward waits 1 s and loses half a
// second to the second bucket.
TEST(Lower, GathersSlowTheForwardBesideThem) {
  const PipelineShape shape{.ranks = 1, .micro_batches = 1};
  IterationPrices prices = uniform_prices(shape, {.forward = 4, .input_gradient = 4, .weight_gradient = 4});
  prices.ranks[0].parameter_buckets = {std::vector<PassPrice>(2, seconds(Category::kDataComm, 1))};
  EXPECT_EQ(time_of(shape, slowed(prices, 2), {}), 13500ms);
}

// System: one rank, one micro-batch, F 4 B 8, parameters gathered in two buckets of 1 s.
// Expectations: overlapped, the first forward half waits 1 s, the second not at all: 1 + 12. Else the gathers
// follow the step.
TEST(Lower, ParametersAreGatheredBesideTheFirstForward) {
  const PipelineShape shape{.ranks = 1, .micro_batches = 1};
  IterationPrices prices = uniform_prices(shape, {.forward = 4, .input_gradient = 4, .weight_gradient = 4});
  prices.ranks[0].parameter_buckets = {std::vector<PassPrice>(2, seconds(Category::kDataComm, 1))};
  EXPECT_EQ(time_of(shape, prices, {.overlap_parameters = true}), 13s);
  EXPECT_EQ(time_of(shape, prices, {.overlap_parameters = false}), 14s);
}

// System: two ranks, one micro-batch, F 1 B 2: rank 1 is done at 4, rank 0 at 6. Rank 1 reduces for 5 s, rank
// 0 not at all; the norm takes 1 s on each, the optimizer 2 s. Expectations: the norm waits for the slower
// rank: 4 + 5 = 9, + 1 + 2 = 12.
TEST(Lower, TheGradientNormWaitsForEveryRank) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 1};
  IterationPrices prices = uniform_prices(shape, {});
  prices.ranks[1].gradient_buckets = {{seconds(Category::kDataComm, 5)}};
  for (RankPrice& rank : prices.ranks) {
    rank.gradient_norm = seconds(Category::kDataComm, 1);
    rank.optimizer = seconds(Category::kOptimizer, 2);
  }
  EXPECT_EQ(time_of(shape, prices), 12s);
}

// System: as above without reductions; tied embeddings take 4 s between first and last rank.
// Expectations: they start when both are done, at 6: 6 + 4 + 1.
TEST(Lower, TiedEmbeddingsAreSummedByFirstAndLastRankTogether) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 1};
  IterationPrices prices = uniform_prices(shape, {});
  for (RankPrice& rank : prices.ranks) {
    rank.tied_embedding = seconds(Category::kDataComm, 4);
    rank.gradient_norm = seconds(Category::kDataComm, 1);
  }
  EXPECT_EQ(time_of(shape, prices), 11s);
}

IterationPrices busy_prices(const PipelineShape& shape) {
  IterationPrices prices =
      uniform_prices(shape, {.forward = 3, .input_gradient = 4, .weight_gradient = 2, .message = 1});
  for (std::size_t rank = 0; rank < prices.ranks.size(); ++rank) {
    RankPrice& price = prices.ranks[rank];
    const auto buckets = std::vector<PassPrice>(2 + rank, seconds(Category::kDataComm, 2));
    price.gradient_buckets.assign(static_cast<std::size_t>(shape.chunks), buckets);
    price.parameter_buckets.assign(static_cast<std::size_t>(shape.chunks), buckets);
    price.tied_embedding = seconds(Category::kDataComm, 1);
    price.gradient_norm = seconds(Category::kDataComm, 1);
    price.optimizer = seconds(Category::kOptimizer, 3);
  }
  prices.host = seconds(Category::kOther, 1);
  return prices;
}

// Every copy of a rank does what the folded one does, to the nanosecond.
TEST(Lower, UnfoldedEqualsFoldedBitForBit) {
  for (const auto& [name, chunks] :
       {std::pair{"gpipe", 1}, {"1f1b", 1}, {"interleaved-1f1b", 2}, {"interleaved-group", 2}}) {
    for (int flags = 0; flags < 32; ++flags) {
      SCOPED_TRACE(testing::Message() << name << " flags=" << flags);
      const PipelineShape shape{.ranks = 4, .micro_batches = 8, .chunks = chunks};
      const Schedule schedule = schedule_of(name, shape);
      const IterationPrices prices = busy_prices(shape);
      LowerOptions options{.blocking_messages = (flags & 1) != 0,
                           .queued_messages = (flags & 16) != 0,
                           .overlap_gradients = (flags & 2) != 0,
                           .overlap_parameters = (flags & 4) != 0,
                           .aligned_gradients = (flags & 8) != 0};
      const Program folded = lower(schedule, prices, options);
      options.replicas = 3;
      const Program unfolded = lower(schedule, prices, options);
      const Timeline one = run(folded), all = run(unfolded);
      ASSERT_EQ(one.makespan, all.makespan);
      // The resources of copy k follow those of copy 0 in the same order: three per rank.
      for (std::size_t r = 0; r < 12; ++r) {
        for (std::size_t copy = 0; copy < 3; ++copy) {
          const std::uint32_t a = folded.resource_begin[r], b = unfolded.resource_begin[r + 12 * copy];
          const std::uint32_t count = folded.resource_begin[r + 1] - a;
          ASSERT_EQ(unfolded.resource_begin[r + 12 * copy + 1] - b, count);
          for (std::uint32_t i = 0; i < count; ++i) {
            ASSERT_EQ(one.start[TaskId(a + i)], all.start[TaskId(b + i)]);
            ASSERT_EQ(one.end[TaskId(a + i)], all.end[TaskId(b + i)]);
          }
        }
      }
    }
  }
}

TEST(Lower, EveryProgramRunsAsItsLongestPath) {
  for (int flags = 0; flags < 16; ++flags) {
    const PipelineShape shape{.ranks = 4, .micro_batches = 8, .chunks = 2};
    const Program program = lower(schedule_of("interleaved-1f1b", shape), busy_prices(shape),
                                  {.blocking_messages = (flags & 1) != 0,
                                   .queued_messages = (flags & 8) != 0,
                                   .overlap_gradients = (flags & 2) != 0,
                                   .overlap_parameters = (flags & 4) != 0,
                                   .replicas = 2});
    EXPECT_EQ(run(program), longest_path(program));
  }
}

TEST(Lower, TheBreakdownAddsUpToTheIteration) {
  for (int flags = 0; flags < 8; ++flags) {
    SCOPED_TRACE(flags);
    const PipelineShape shape{.ranks = 4, .micro_batches = 8};
    const Program program = lower(schedule_of("1f1b", shape), busy_prices(shape),
                                  {.blocking_messages = (flags & 1) != 0,
                                   .overlap_gradients = (flags & 2) != 0,
                                   .overlap_parameters = (flags & 4) != 0});
    const Timeline timeline = run(program);
    Duration sum{};
    for (const Duration part : measure_breakdown(program, timeline)) {
      EXPECT_GE(part, Duration::zero());
      sum += part;
    }
    EXPECT_EQ(sum, timeline.makespan);
  }
}

// System: GPipe on two ranks, three micro-batches, F 1, B 2, messages of 2. Expectations: rank 0's forwards
// end at 1, 2, 3. Rank 1 has them at 3, 4, 5 where messages pass each other, and its backwards end at 8, 10,
// 12; in order it has them at 3, 5, 7, and they end at 10, 12, 14. A message and a backward follow.
TEST(Lower, MessagesToOneRankGoInOrder) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 3};
  const Schedule schedule = schedule_of("gpipe", shape);
  const IterationPrices prices = uniform_prices(shape, {.message = 2});
  EXPECT_EQ(run(lower(schedule, prices, {})).makespan, 16s);
  EXPECT_EQ(run(lower(schedule, prices, {.queued_messages = true})).makespan, 18s);
}

// Messages of the program, each of which its rank sends when the one before it has arrived.
int messages_in_order(const Program& program) {
  const Timeline timeline = run(program);
  int messages = 0;
  for (std::uint32_t r = 0; r < program.resources.size(); ++r) {
    if (program.resources[ResourceId(r)].name != "send") continue;
    messages += static_cast<int>(program.resource_begin[r + 1] - program.resource_begin[r]);
    for (std::uint32_t t = program.resource_begin[r] + 1; t < program.resource_begin[r + 1]; ++t)
      EXPECT_GE(timeline.start[TaskId(t)], timeline.end[TaskId(t - 1)]);
  }
  return messages;
}

// System: two ranks of two stages in a V. The forwards of stage 0 and the gradients of stage 3 go to rank 1.
TEST(Lower, MessagesOfSeveralStagesToOneRankGoInOrder) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 4, .chunks = 2};
  IterationPrices prices = uniform_prices(shape, {.message = 3});
  prices.edges[1] = {};  // stages 1 and 2 are on rank 1
  const Schedule schedule = schedule_of("zb-v", shape);
  EXPECT_EQ(messages_in_order(lower(schedule, prices, {.queued_messages = true})), 4 * 4);
}

// A rank in the middle sends forward and back. Rank 1 sends a second forward while its first gradient is on
// its way.
TEST(Lower, MessagesThroughOneNicGoInOrder) {
  const PipelineShape shape{.ranks = 3, .micro_batches = 6};
  const Schedule schedule = schedule_of("1f1b", shape);
  IterationPrices prices = uniform_prices(shape, {.message = 4});
  const Duration apart = run(lower(schedule, prices, {.queued_messages = true})).makespan;
  for (EdgePrice& edge : prices.edges) edge.between_nodes = true;
  const Program together = lower(schedule, prices, {.queued_messages = true});
  EXPECT_EQ(messages_in_order(together), 4 * 6);
  EXPECT_GT(run(together).makespan, apart);
}

// Where no message outlasts the pass behind it the order changes nothing.
TEST(Lower, ShortMessagesNeverWaitForEachOther) {
  for (const auto& [name, chunks] :
       {std::pair{"gpipe", 1}, {"1f1b", 1}, {"interleaved-1f1b", 2}, {"zb-h1", 1}, {"zb-v", 2}})
    for (std::int64_t message = 1; message <= 3; ++message) {
      SCOPED_TRACE(testing::Message() << name << ' ' << message);
      const PipelineShape shape{.ranks = 4, .micro_batches = 8, .chunks = chunks};
      const Schedule schedule = schedule_of(name, shape);
      const IterationPrices prices =
          uniform_prices(shape, {.forward = 3, .input_gradient = 4, .message = message});
      EXPECT_EQ(run(lower(schedule, prices, {})), run(lower(schedule, prices, {.queued_messages = true})));
    }
}

// System: 1F1B, p 4, m 8, F 1, B 2, nothing else. Expectations: forward 8, backward 16, bubble 9 of 33
// (SC'21, figure 4).
TEST(Lower, TheBreakdownOfAPlainPipelineIsItsTextbookBubble) {
  const PipelineShape shape{.ranks = 4, .micro_batches = 8};
  const Program program = lower(schedule_of("1f1b", shape), uniform_prices(shape, {}), {});
  const auto parts = measure_breakdown(program, run(program));
  EXPECT_EQ(parts[static_cast<std::size_t>(Category::kForward)], 8s);
  EXPECT_EQ(parts[static_cast<std::size_t>(Category::kBackward)], 16s);
  EXPECT_EQ(parts[static_cast<std::size_t>(Category::kBubble)], 9s);
}

// System: 1F1B, p 2, m 1, F 1, B 2, messages of 1 s. Expectations: the one chain F, send, F, B, send, B: 8 s.
TEST(Lower, TheCriticalPathIsNamedTaskByTask) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 1};
  const Program program = lower(schedule_of("1f1b", shape), uniform_prices(shape, {.message = 1}), {});
  const std::vector<PathShare> expected = {{.name = "B", .tasks = 2, .time = 4s},
                                           {.name = "F", .tasks = 2, .time = 2s},
                                           {.name = "send forward", .tasks = 1, .time = 1s},
                                           {.name = "send backward", .tasks = 1, .time = 1s}};
  EXPECT_EQ(measure_critical_path(program, run(program)), expected);
}

TEST(PassPrice, HidingTakesNoMoreThanThereIs) {
  PassPrice price = seconds(Category::kTensorComm, 3);
  EXPECT_EQ(price.hide(Category::kTensorComm, 2s), 2s);
  EXPECT_EQ(price.hide(Category::kTensorComm, 2s), 1s);
  EXPECT_EQ(price.total(), 0s);
}

}  // namespace
}  // namespace stagecraft
