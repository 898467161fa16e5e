// One pipeline of any stages, simulated.
#include "sim/resilience/pipeline_times.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "sim/goodput/oobleck/partition.hpp"
#include "sim/resilience/job_costs.hpp"
#include "sim/resilience/memo.hpp"
#include "sim/resilience/plain_pipeline.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

const Scenario& gpt() {
  static const Scenario scenario = shipped("sc21-39.1b-512xA100");
  return scenario;
}

std::vector<int> evenly(int layers, int stages) {
  std::vector<int> out(static_cast<std::size_t>(stages), layers / stages);
  for (int stage = 0; stage < layers % stages; ++stage) ++out[static_cast<std::size_t>(stage)];
  return out;
}

// Property: more micro-batches never take less, and an uneven cut takes longer than an even one.
TEST(PipelineTimes, GrowWithMicroBatchesAndTheSlowestStage) {
  const PipelineTimes times(gpt());
  const int layers = static_cast<int>(std::get<TransformerSpec>(gpt().model).layers) + 2;
  Duration last{};
  for (const int micro_batches : {1, 2, 3, 4, 6, 8}) {
    const Duration time = times.time(evenly(layers, 4), {4}, micro_batches);
    EXPECT_GT(time, last);
    last = time;
  }
  std::vector<int> uneven = evenly(layers, 4);
  uneven[0] -= 4;
  uneven[1] += 4;
  EXPECT_GT(times.time(uneven, {4}, 8), last);
}

// The equations know neither messages nor the optimizer: for even stages simulation is longer, but not by a
// tenth.
TEST(PipelineTimes, AreCloseToTheEquations) {
  const PipelineTimes times(gpt());
  const JobCosts costs = job_costs(gpt(), simulate_in_full(gpt()));
  std::vector<Duration> work;
  for (const JobLayer& layer : costs.layers) work.push_back(layer.forward + layer.backward);
  const PartitionSearch search(work);
  for (const int stages : {1, 4, 7}) {
    SCOPED_TRACE(stages);
    const Partition cut = search.best(stages, 4 * stages, PipelineRule::kCorrected).value();
    const double equations = to_seconds(pipeline_line(cut.work, PipelineRule::kCorrected).time(4 * stages));
    const double simulated =
        to_seconds(times.time(layers_per_stage(cut, search.layers()), {stages}, 4 * stages));
    EXPECT_GE(simulated, equations);
    EXPECT_LT(simulated, 1.1 * equations);
  }
}

// System: GPT 22B over 2 nodes of H100 and 4 of A100, a stage a node.
TEST(PipelineTimes, KnowWhichNodesTheStagesAreOn) {
  const Scenario scenario = shipped("goodput/oobleck-mixed");
  const PipelineTimes times(scenario);
  const std::vector<int> even = evenly(48 + 2, 2);
  const Duration fast = times.time(even, {2, 0}, 16), slow = times.time(even, {0, 2}, 16);
  const Duration mixed = times.time(even, {1, 1}, 16);
  EXPECT_LT(fast, mixed);
  EXPECT_LE(mixed, slow);
  // The H100 takes on what the A100 has too much of.
  EXPECT_LT(times.time({34, 16}, {1, 1}, 16), mixed);
  EXPECT_GT(times.time({16, 34}, {1, 1}, 16), mixed);
}

// Two pipelines reduce their gradients, which one has not to; without a network that takes no time.
TEST(PipelineTimes, OfSeveralPipelinesHaveTheirReductions) {
  const PipelineTimes times(gpt());
  const int layers = static_cast<int>(std::get<TransformerSpec>(gpt().model).layers) + 2;
  const Duration one = times.time(evenly(layers, 4), {4}, 8);
  EXPECT_GT(times.time(evenly(layers, 4), {4}, 8, 2), one);
  EXPECT_EQ(times.time(evenly(layers, 4), {4}, 8, 1), one);
}

// System: four abstract stages of 3, 6, 6, 3 ms: m micro-batches take (m + 1) · 9 ms on two ranks.
TEST(PipelineTimes, OfAbstractStagesAddUpThoseOfARank) {
  using std::chrono::milliseconds;
  const PipelineTimes times(
      scenario_of("stagecraft: 1\n"
                  "model: {family: stages, forward: [1 ms, 2 ms, 2 ms, 1 ms],"
                  " input_gradient: [1 ms, 2 ms, 2 ms, 1 ms], weight_gradient: [1 ms, 2 ms, 2 ms, 1 ms]}\n"
                  "parallelism: {pipeline: 4}\n"
                  "training: {global_batch_size: 8, micro_batch_size: 1}\n"));
  EXPECT_EQ(times.time({4}, {1}, 3), milliseconds(54));
  EXPECT_EQ(times.time({2, 2}, {2}, 1), milliseconds(18));
  EXPECT_EQ(times.time({2, 2}, {2}, 2), milliseconds(27));
  EXPECT_EQ(times.time({2, 2}, {2}, 2, 3), milliseconds(27));
}

// Work that asks another question would wait for itself if one lock held for all of them.
TEST(Memo, WorksOutEachAnswerOnceAlsoWithinAnother) {
  Memo<int, int> memo;
  int worked = 0;
  const auto twice = [&](int question) {
    return memo.answer(question, [&] {
      ++worked;
      return 2 * question;
    });
  };
  const auto sum = [&] { return memo.answer(0, [&] { return twice(1) + twice(2) + twice(1); }); };
  EXPECT_EQ(sum(), 8);
  EXPECT_EQ(sum(), 8);
  EXPECT_EQ(worked, 2);
}

// A thread that works out one answer keeps nobody from another, and who asks the same waits for it.
TEST(Memo, LetsThreadsWorkOutDifferentAnswersAtATime) {
  Memo<int, int> memo;
  std::atomic<int> worked = 0;
  std::latch second(1);
  std::thread first([&] {
    EXPECT_EQ(memo.answer(1,
                          [&] {
                            second.wait();
                            ++worked;
                            return 10;
                          }),
              10);
  });
  EXPECT_EQ(memo.answer(2, [&] { return 20; }), 20);
  second.count_down();
  EXPECT_EQ(memo.answer(1, [&] { return ++worked, 10; }), 10);
  first.join();
  EXPECT_EQ(worked, 1);
}

TEST(Memo, WorksAnewWhereWorkHasThrown) {
  Memo<int, int> memo;
  EXPECT_THROW((void)memo.answer(1, []() -> int { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(memo.answer(1, [] { return 3; }), 3);
}

// Expert ranks are those of one pipeline: of 8 the 4 that it has, whatever lies on them.
TEST(PlainPipeline, KeepsItsExpertsToItself) {
  const auto experts_of = [](const std::string& degrees) {
    const Scenario scenario = scenario_of(
        "stagecraft: 1\n"
        "model: mixtral-8x7b\n"
        "cluster: {node: dgx-h100, nodes: 8}\n"
        "parallelism: {sequence_parallel: true, " +
        degrees + "}\ntraining: {global_batch_size: 64, sequence_length: 4096}\n");
    const ParallelSpec plain = plain_pipeline(scenario, simulate_in_full(scenario).prepared.plan).parallelism;
    return std::pair(plain.expert, plain.expert_tensor);
  };
  EXPECT_EQ(experts_of("tensor: 4, pipeline: 4, expert: 8"), std::pair(4, 1));
  EXPECT_EQ(experts_of("tensor: 4, pipeline: 4, expert: 4, expert_tensor: 4"), std::pair(1, 4));
  EXPECT_EQ(experts_of("tensor: 1, pipeline: 4, expert: 8"), std::pair(1, 1));
  EXPECT_EQ(experts_of("tensor: 4, pipeline: 4, expert: 2"), std::pair(2, 1));
}

TEST(PipelineTimes, TakeStagesOfTheEndsAlone) {
  const PipelineTimes times(gpt());
  const int layers = static_cast<int>(std::get<TransformerSpec>(gpt().model).layers);
  EXPECT_GT(times.time({1, layers, 1}, {3}, 2), Duration{});
}

}  // namespace
}  // namespace stagecraft
