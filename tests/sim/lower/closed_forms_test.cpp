// The lengths of schedules against the closed forms that the literature prints, on whole numbers and exactly.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/engine/engine.hpp"
#include "sim/report/measure.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/sim/lower/uniform_prices.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

Bubble bubble_of(const char* name, const PipelineShape& shape, const UniformCosts& costs) {
  const Program program = lower(generate(*find_schedule(name), shape), uniform_prices(shape, costs), {});
  return measure_bubble(program, run(program));
}

// Source: GPipe and 1F1B waste (p-1)(F+B) (Narayanan et al., SC'21, section 2.2), for every m, also below p.
TEST(ClosedForms, GpipeAndOneFOneBWasteTheSameTime) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 20; ++m) {
      for (const char* name : {"gpipe", "1f1b"}) {
        SCOPED_TRACE(testing::Message() << name << " p=" << p << " m=" << m);
        const Bubble bubble = bubble_of(name, {.ranks = p, .micro_batches = m},
                                        {.forward = 2, .input_gradient = 3, .weight_gradient = 1});
        EXPECT_EQ(bubble.ideal, m * 6s);
        EXPECT_EQ(bubble.makespan, (m + p - 1) * 6s);
      }
    }
  }
}

// Source: 1F1B with message time c is T = (m+p-1)(F+B) + K c, K = 2(p + m - 2 - ceil(m/p)), + 2 if m mod p
// = 1.
TEST(ClosedForms, OneFOneBPaysTwoMessagesForAlmostEveryMicroBatch) {
  const UniformCosts ratios[] = {
      {.forward = 1000, .input_gradient = 1000, .weight_gradient = 1000, .message = 1},
      {.forward = 1000, .input_gradient = 500, .weight_gradient = 500, .message = 7},
      {.forward = 2000, .input_gradient = 500, .weight_gradient = 500, .message = 250},
      {.forward = 1000, .input_gradient = 1500, .weight_gradient = 1500, .message = 3000},
      {.forward = 1000, .input_gradient = 1000, .weight_gradient = 1000, .message = 20000}};
  for (UniformCosts costs : ratios) {
    costs.unit = 1ms;
    for (int p = 2; p <= 9; ++p) {
      for (int m = 1; m <= 40; ++m) {
        SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m << " c=" << costs.message);
        const std::int64_t whole = costs.forward + costs.input_gradient + costs.weight_gradient;
        const std::int64_t messages = 2 * (p + m - 2 - (m + p - 1) / p) + (m % p == 1 ? 2 : 0);
        EXPECT_EQ(bubble_of("1f1b", {.ranks = p, .micro_batches = m}, costs).makespan,
                  ((m + p - 1) * whole + messages * costs.message) * 1ms);
      }
    }
  }
}

// Source: GPipe adds one message per boundary and direction, 2(p-1)c, whatever c is.
TEST(ClosedForms, GpipePaysEachBoundaryOnce) {
  for (int p = 2; p <= 6; ++p) {
    for (int m = 1; m <= 12; ++m) {
      SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m);
      const UniformCosts costs{.forward = 4, .input_gradient = 4, .weight_gradient = 4, .message = 3};
      EXPECT_EQ(bubble_of("gpipe", {.ranks = p, .micro_batches = m}, costs).makespan,
                (m + p - 1) * 12s + 2 * (p - 1) * 3s);
    }
  }
}

// Source: interleaving divides the bubble by v (SC'21, section 2.2), and with N = p costs 2(vp-1)c for c <=
// F/2.
TEST(ClosedForms, InterleavingWastesOneChunkTimePerRank) {
  for (int p = 2; p <= 6; ++p) {
    for (int v = 2; v <= 4; ++v) {
      for (int m = p; m <= 4 * p; m += p) {
        SCOPED_TRACE(testing::Message() << "p=" << p << " v=" << v << " m=" << m);
        const PipelineShape shape{.ranks = p, .micro_batches = m, .chunks = v};
        const UniformCosts costs{.forward = 4, .input_gradient = 4, .weight_gradient = 4};
        EXPECT_EQ(bubble_of("interleaved-1f1b", shape, costs).makespan, (v * m + p - 1) * 12s);
        const UniformCosts with_messages{
            .forward = 4, .input_gradient = 4, .weight_gradient = 4, .message = 2};
        EXPECT_EQ(bubble_of("interleaved-1f1b", shape, with_messages).makespan,
                  (v * m + p - 1) * 12s + 2 * (v * p - 1) * 2s);
      }
    }
  }
}

// System: two ranks, two micro-batches, F 1 B 2, messages of 1 s.
// Expectations, overlapped: rank 1 runs F0 2-3, B0 3-5, F1 5-6, B1 6-8; rank 0 ends with B1 at 9-11.
// Blocking: rank 0 sends at 1-2 and 3-4, rank 1 at 5-6 (so F1 6-7, B1 7-9) and 9-10; rank 0 ends with B1 at
// 10-12.
TEST(ClosedForms, ABlockingMessageTakesItsSendersTime) {
  const PipelineShape shape{.ranks = 2, .micro_batches = 2};
  const IterationPrices prices = uniform_prices(shape, {.message = 1});
  const Schedule schedule = generate(*find_schedule("1f1b"), shape);
  EXPECT_EQ(run(lower(schedule, prices, {})).makespan, 11s);
  EXPECT_EQ(run(lower(schedule, prices, {.blocking_messages = true})).makespan, 12s);
}

// With interleaving every pass of an inner rank is followed by a message: blocking exposes almost 2 m v of
// them.
TEST(ClosedForms, BlockingMessagesAreExposedInEverySteadyStep) {
  const PipelineShape shape{.ranks = 4, .micro_batches = 64, .chunks = 2};
  const UniformCosts costs{.forward = 10, .input_gradient = 10, .weight_gradient = 10, .message = 1};
  const IterationPrices prices = uniform_prices(shape, costs);
  const Schedule schedule = generate(*find_schedule("interleaved-1f1b"), shape);
  const Duration beside = run(lower(schedule, prices, {})).makespan;
  const Duration blocking = run(lower(schedule, prices, {.blocking_messages = true})).makespan;
  EXPECT_GT(blocking - beside, (2 * 64 * 2 - 2 * 2 * 4 - 14) * 1s * 0.9);
}

}  // namespace
}  // namespace stagecraft
