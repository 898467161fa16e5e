// Measures of hand-made programs: bubble, critical path, breakdown.
#include "sim/report/measure.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/report/rank_passes.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

// A rank's compute and data stream, and tasks whose whole time is of one category.
class Drawing {
 public:
  using Handle = ProgramBuilder::Handle;

  ResourceId stream(int rank) { return builder_.add_resource({ResourceKind::kStream, rank, "compute"}); }
  ResourceId link(int rank) { return builder_.add_resource({ResourceKind::kConcurrent, rank, "send"}); }

  Handle pass(ResourceId where, Duration time, Category category) { return task(where, time, category, 0); }
  Handle other(ResourceId where, Duration time, Category category) { return task(where, time, category, -1); }
  Handle end_of_iteration(ResourceId where) {
    return builder_.add_task(
        where, Duration::zero(),
        builder_.add_label({.name = std::string(kEndOfIteration), .stage = -1, .parts = {}}));
  }
  void edge(Handle before, Handle after) { builder_.add_dependency(before, after); }

  Program build() { return std::move(builder_).build(); }

 private:
  Handle task(ResourceId where, Duration time, Category category, int stage) {
    const TaskPart part{static_cast<std::int32_t>(category), time};
    const std::string name(kCategoryNames[static_cast<std::size_t>(category)]);
    return builder_.add_task(where, time,
                             builder_.add_label({.name = name, .stage = stage, .parts = {part}}));
  }

  ProgramBuilder builder_;
};

// System: rank 0 runs F 2 s and, when B of rank 1 and its message are back, B 4 s; rank 1 runs F 3 s and B 6
// s. Messages take 1 s each way. Timeline: F 0-2, message 2-3, F 3-6, B 6-12, message 12-13, B 13-17; then
// reduction 17-22 and optimizer 22-25.
Program two_ranks() {
  Drawing draw;
  const ResourceId compute0 = draw.stream(0), send0 = draw.link(0), data0 = draw.stream(0);
  const ResourceId compute1 = draw.stream(1), send1 = draw.link(1);
  const auto f0 = draw.pass(compute0, 2s, Category::kForward);
  const auto there = draw.other(send0, 1s, Category::kPipelineComm);
  const auto f1 = draw.pass(compute1, 3s, Category::kForward);
  const auto b1 = draw.pass(compute1, 6s, Category::kBackward);
  const auto back = draw.other(send1, 1s, Category::kPipelineComm);
  const auto b0 = draw.pass(compute0, 4s, Category::kBackward);
  const auto reduce = draw.other(data0, 5s, Category::kDataComm);
  const auto step = draw.other(compute0, 3s, Category::kOptimizer);
  draw.edge(f0, there);
  draw.edge(there, f1);
  draw.edge(b1, back);
  draw.edge(back, b0);
  draw.edge(b0, reduce);
  draw.edge(reduce, step);
  return draw.build();
}

TEST(Bubble, IsOfThePassesAlone) {
  const Program program = two_ranks();
  const Bubble bubble = measure_bubble(program, run(program));
  EXPECT_EQ(bubble.ideal, 9s);      // rank 1
  EXPECT_EQ(bubble.makespan, 17s);  // without reduction and optimizer
  EXPECT_EQ(bubble.span, 17s);      // rank 0; rank 1 is there from 3 to 12
  EXPECT_DOUBLE_EQ(bubble.over_ideal, 8.0 / 9);
  EXPECT_DOUBLE_EQ(bubble.fraction, 1 - 15.0 / 34);
}

TEST(Bubble, IsNoneWithoutAPass) {
  Drawing draw;
  draw.other(draw.stream(0), 3s, Category::kOther);
  const Program program = draw.build();
  EXPECT_EQ(measure_bubble(program, run(program)).over_ideal, 0);
  EXPECT_EQ(measure_bubble(Program{}, Timeline{}), Bubble{});
}

// 100,000 replicas whose ranks work for a year: 3e12 seconds of work are more nanoseconds than are counted.
TEST(Bubble, IsRoundedWhereItsWorkIsTooMuchToCount) {
  constexpr Duration kYear = std::chrono::hours(8760);
  const std::vector<RankPasses> ranks = {
      {.work = kYear}, {.work = kYear / 2}, {.work = kYear}, {.work = kYear / 2}};
  EXPECT_DOUBLE_EQ(idle_share(ranks, std::vector<int>{99'999, 1}, kYear), 0.25);
  EXPECT_DOUBLE_EQ(idle_share(ranks, std::vector<int>{1, 1}, kYear), 0.25);
}

// Two replicas of a rank that idles a third of the time are idle a third of the time; so are three, and
// seven.
TEST(Bubble, HasTheSameBitsForAnyNumberOfReplicas) {
  const auto fraction = [](int replicas) {
    Drawing draw;
    for (int rank = 0; rank < replicas; ++rank) {
      const ResourceId compute = draw.stream(rank);
      draw.other(compute, 1s, Category::kPipelineComm);
      draw.pass(compute, 2s, Category::kForward);
    }
    const Program program = draw.build();
    return measure_bubble(program, run(program)).fraction;
  };
  for (int replicas = 2; replicas < 60; ++replicas) EXPECT_EQ(fraction(replicas), fraction(1)) << replicas;
  EXPECT_DOUBLE_EQ(fraction(1), 1.0 / 3);
}

TEST(CriticalPath, IsAChainFromZeroToTheEnd) {
  const Program program = two_ranks();
  const Timeline timeline = run(program);
  const std::vector<TaskId> path = critical_path(program, timeline);
  ASSERT_EQ(path.size(), 8u);  // every task of it
  Duration at{};
  for (const TaskId task : path) {
    EXPECT_EQ(timeline.start[task], at);
    at = timeline.end[task];
  }
  EXPECT_EQ(at, timeline.makespan);
  EXPECT_TRUE(critical_path(Program{}, Timeline{}).empty());
}

// System: two equal ranks; their tasks 0 and 1 end together at 2 s, and a third waits for both.
// Expectations: the path goes through the first of them.
TEST(CriticalPath, TakesTheLowestTaskAmongEquals) {
  Drawing draw;
  const ResourceId first = draw.stream(0), second = draw.stream(1), third = draw.stream(2);
  const auto a = draw.pass(first, 2s, Category::kForward);
  const auto b = draw.pass(second, 2s, Category::kForward);
  const auto c = draw.pass(third, 1s, Category::kForward);
  draw.edge(b, c);
  draw.edge(a, c);
  const Program program = draw.build();
  EXPECT_EQ(critical_path(program, run(program)), (std::vector<TaskId>{TaskId(0), TaskId(2)}));
}

Duration part(const Breakdown& breakdown, Category category) {
  return breakdown[static_cast<std::size_t>(category)];
}

// Expectations: rank 1 is the busiest, F 3 and B 6. Up to the last pass, at 17 s, it idles 8 s: 2 s of
// messages on the way, 6 s of bubble. What follows is as it is: 5 s of reduction, 3 s of optimizer.
TEST(Breakdown, TellsWorkExposedMessagesBubbleAndTail) {
  const Program program = two_ranks();
  const auto breakdown = measure_breakdown(program, run(program));
  EXPECT_EQ(part(breakdown, Category::kForward), 3s);
  EXPECT_EQ(part(breakdown, Category::kBackward), 6s);
  EXPECT_EQ(part(breakdown, Category::kPipelineComm), 2s);
  EXPECT_EQ(part(breakdown, Category::kBubble), 6s);
  EXPECT_EQ(part(breakdown, Category::kDataComm), 5s);
  EXPECT_EQ(part(breakdown, Category::kOptimizer), 3s);
}

// System: one rank, passes of 1 and 3 s; after the first a reduction of 6 s runs beside the second.
// Expectations: it ends at 7 s, 3 s after the last pass.
TEST(Breakdown, CountsAReductionOnlyWhereItSticksOut) {
  Drawing draw;
  const ResourceId compute = draw.stream(0), data = draw.stream(0);
  const auto head = draw.pass(compute, 1s, Category::kBackward);
  draw.pass(compute, 3s, Category::kBackward);
  const auto reduce = draw.other(data, 6s, Category::kDataComm);
  draw.edge(head, reduce);
  const Program program = draw.build();
  const auto breakdown = measure_breakdown(program, run(program));
  EXPECT_EQ(part(breakdown, Category::kBackward), 4s);
  EXPECT_EQ(part(breakdown, Category::kDataComm), 3s);
  EXPECT_EQ(part(breakdown, Category::kBubble), 0s);
}

TEST(Breakdown, OfNothingIsNothing) {
  EXPECT_EQ(measure_breakdown(Program{}, Timeline{}), Breakdown{});
}

// System: 4 GPUs, 2 s an iteration of 8 samples of 1,000 tokens; 16 TFLOP of model work, 20 with recompute,
// at a peak of 10 TFLOP/s. Expectations: 2 TFLOP/s a GPU, a fifth of the peak; a quarter of it with what is
// recomputed.
// System: three iterations of one rank and its neighbour, whose passes take 6 s of rank 0 and 4 s of rank 1; an
// optimizer step of 2 s ends each.
Program three_iterations() {
  Drawing draw;
  const ResourceId compute0 = draw.stream(0), compute1 = draw.stream(1), joint = draw.link(0);
  std::optional<Drawing::Handle> before;
  for (int i = 0; i < 3; ++i) {
    draw.pass(compute0, 6s, Category::kForward);
    const auto step0 = draw.other(compute0, 2s, Category::kOptimizer);
    const auto pass1 = draw.pass(compute1, 4s, Category::kForward);
    if (before) draw.edge(*before, pass1);
    before = step0;
    const auto step1 = draw.other(compute1, 2s, Category::kOptimizer);
    const auto end = draw.end_of_iteration(joint);
    draw.edge(step0, end);
    draw.edge(step1, end);
  }
  return draw.build();
}

// The step of the busiest rank is no bubble: neither in the breakdown nor in the makespan.
TEST(SteadyBubble, LeavesOutTheStep) {
  const Program program = three_iterations();
  const Timeline timeline = run(program);
  const Window window = iteration_window(program, timeline);
  EXPECT_EQ(window.length(), 8s);
  const Bubble bubble = measure_steady_bubble(program, timeline, window);
  EXPECT_EQ(bubble.ideal, 6s);
  EXPECT_EQ(bubble.makespan, 6s);
  EXPECT_EQ(bubble.span, 6s);
  EXPECT_EQ(bubble.over_ideal, 0);
  EXPECT_DOUBLE_EQ(bubble.fraction, 2.0 / 12);  // of rank 1
  const auto breakdown = measure_steady_breakdown(program, timeline, window);
  EXPECT_EQ(breakdown[static_cast<std::size_t>(Category::kOptimizer)], 2s);
  EXPECT_EQ(breakdown[static_cast<std::size_t>(Category::kBubble)], 0s);
}

TEST(Rates, AreWorkOverTimeAndGpus) {
  Report report;
  report.gpus = 4;
  report.samples = 8;
  report.tokens = 8000;
  report.iteration_time = 2s;
  report.model_flops = Flops(16e12);
  report.hardware_flops = Flops(20e12);
  report.peak = FlopRate(10e12);
  EXPECT_DOUBLE_EQ(report.samples_per_s(), 4);
  EXPECT_DOUBLE_EQ(report.tokens_per_s(), 4000);
  EXPECT_DOUBLE_EQ(report.model_flops_per_gpu_s(), 2e12);
  EXPECT_DOUBLE_EQ(report.hardware_flops_per_gpu_s(), 2.5e12);
  EXPECT_DOUBLE_EQ(report.mfu(), 0.2);
  EXPECT_DOUBLE_EQ(report.hfu(), 0.25);
  report.peak = FlopRate(0);
  EXPECT_EQ(report.mfu(), 0);
}

}  // namespace
}  // namespace stagecraft
