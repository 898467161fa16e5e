// Whole scenarios small enough for a pencil.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;

// System: two nodes of one GPU each, a pipeline of two ranks over them, one micro-batch. Stages take F 10, I
// 10, W 10 ms and send 80 MB. A NIC gives 10 GB/s, of which messages get 0.8; 1 ms a message and 0.5 ms a
// switch. Expectations: a message takes 1 + 0.5 + 80 MB / 8 GB/s = 11.5 ms.
//   rank 0  F 0-10                                     B 63-83
//   rank 1          F 21.5-31.5, B 31.5-51.5
// The busiest rank works 30 ms; the rest is two messages, 23 ms, and a bubble of 30 ms.
const char* const kTwoNodes =
    "stagecraft: 1\n"
    "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms, activation: 80 "
    "MB}\n"
    "cluster:\n"
    "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
    "  nodes: 2\n"
    "  fabric: {kind: single-switch, switch_latency: 0.5 ms, point_to_point_efficiency: 0.8,"
    " point_to_point_latency: 1 ms}\n"
    "parallelism: {pipeline: 2}\n"
    "training: {global_batch_size: 1}\n";

TEST(TwoNodes, WaitForTwoMessages) {
  const Report report = simulate(scenario_of(kTwoNodes));
  EXPECT_EQ(report.iteration_time, 83ms);
  EXPECT_EQ(part_of(report, Category::kForward), 10ms);
  EXPECT_EQ(part_of(report, Category::kBackward), 20ms);
  EXPECT_EQ(part_of(report, Category::kPipelineComm), 23ms);
  EXPECT_EQ(part_of(report, Category::kBubble), 30ms);
  EXPECT_EQ(report.bubble.ideal, 30ms);
  EXPECT_EQ(report.bubble.makespan, 83ms);
  EXPECT_DOUBLE_EQ(report.bubble.fraction, 1 - 60.0 / 166.0);
}

// With two micro-batches and messages that the sender waits for:
//   rank 0  F0 0-10, send -21.5, F1 -31.5, send -43            B0 63-83        B1 104.5-124.5
//   rank 1  F0 21.5-31.5, B0 -51.5, send -63, F1 -73, B1 -93, send -104.5
TEST(TwoNodes, WithBlockingMessagesSendBeforeTheyGoOn) {
  Scenario scenario = scenario_of(kTwoNodes);
  scenario.training.global_batch_size = 2;
  scenario.overlap.pipeline = false;
  EXPECT_EQ(simulate(scenario).iteration_time, 124500us);
}

// System: two nodes of two GPUs; each node is one replica of a pipeline of two ranks (pipeline innermost), so
// messages stay on NVLink and gradients cross. Stages as above with messages of 87 MB and gradients of 400
// MB, four micro-batches for each replica. NVLink 100 GB/s, of which a copy between peers gets 0.87, 0.5 ms a
// hop. Two NICs of 10 GB/s a node, of which collectives get 0.5; 1 ms a collective, 2 ms a step.
// Expectations: a message takes 2 * 0.5 + 87 MB / 87 GB/s = 2 ms.
//   rank 0  F0 0-10, F1 -20, B0 44-64, F2 -74, B1 -94, F3 -104, B2 108-128, B3 138-158
//   rank 1  F0 12-22, B0 -42, F1 -52, B1 -72, F2 76-86, B2 -106, F3 -116, B3 -136
// A node's 10 GB/s of usable network serve two groups: 5 GB/s each. A ring of two nodes sends 2(2-1)/2 * 400
// MB in 80 ms, plus 1 ms and two steps of 2 ms: 85 ms. Rank 0 is the last to start: 158 + 85 = 243 ms. The
// path to its last pass has four messages, 8 ms; it worked 4 * 30 of the 158 ms.
const char* const kTwoReplicas =
    "stagecraft: 1\n"
    "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms, activation: 87 "
    "MB,"
    " gradient: 400 MB}\n"
    "cluster:\n"
    "  node: {device: toy, gpus: 2, nvlink: 100 GB/s, nvlink_latency: 0.5 ms, nics: 2, nic_bandwidth: 10 "
    "GB/s,"
    " pcie: 100 GB/s}\n"
    "  nodes: 2\n"
    "  fabric: {kind: single-switch, collective_efficiency: 0.5, collective_latency: 1 ms, step_latency: 2 "
    "ms}\n"
    "parallelism: {pipeline: 2, data: 2, order: [pipeline, tensor, context, expert, data]}\n"
    "training: {global_batch_size: 8}\n";

TEST(TwoReplicas, ReduceTheirGradientsWhenTheLastRankIsDone) {
  for (const bool unfold : {false, true}) {
    const Report report = simulate(scenario_of(kTwoReplicas), {.unfold = unfold});
    EXPECT_EQ(report.iteration_time, 243ms);
    EXPECT_EQ(part_of(report, Category::kForward), 40ms);
    EXPECT_EQ(part_of(report, Category::kBackward), 80ms);
    EXPECT_EQ(part_of(report, Category::kPipelineComm), 8ms);
    EXPECT_EQ(part_of(report, Category::kBubble), 30ms);
    EXPECT_EQ(part_of(report, Category::kDataComm), 85ms);
    EXPECT_EQ(sum_of(report.breakdown), 243ms);
  }
}

// System: a pipeline of two uneven ranks without a cluster, two micro-batches: rank 0 takes 1 ms for each
// third of the work, rank 1 3 ms. Expectations:
//   rank 0  F0 0-1, F1 1-2, B0 10-12, B1 19-21
//   rank 1  F0 1-4, B0 4-10, F1 10-13, B1 13-19
// Rank 0 holds two activations of 4 MiB, rank 1 one of 2 MiB.
TEST(UnevenStages, TakeTheirOwnTimesAndMemory) {
  const Report report =
      simulate(scenario_of("stagecraft: 1\n"
                           "model: {family: stages, forward: [1 ms, 3 ms], input_gradient: [1 ms, 3 ms], "
                           "weight_gradient: [1 ms, 3 ms],"
                           " activation: [4 MiB, 2 MiB], gradient: [5 MiB, 7 MiB]}\n"
                           "parallelism: {pipeline: 2}\n"
                           "training: {global_batch_size: 2}\n"));
  EXPECT_EQ(report.iteration_time, 21ms);
  EXPECT_EQ(report.bubble.ideal, 18ms);
  EXPECT_EQ(report.bubble.span, 21ms);
  EXPECT_DOUBLE_EQ(report.bubble.over_ideal, 3.0 / 18);
  EXPECT_DOUBLE_EQ(report.bubble.fraction, 1 - 24.0 / 42);
  EXPECT_EQ(report.interval_90, (std::array<Duration, 2>{21ms, 21ms}));
  ASSERT_EQ(report.memory.stages.size(), 2u);
  EXPECT_EQ(report.memory.stages[0].of(MemoryClass::kActivations), 8_MiB);
  EXPECT_EQ(report.memory.stages[1].of(MemoryClass::kActivations), 2_MiB);
  EXPECT_EQ(report.memory.stages[0].of(MemoryClass::kGradients), 5_MiB);
  EXPECT_EQ(report.memory.stages[1].of(MemoryClass::kGradients), 7_MiB);
  EXPECT_EQ(report.memory.verdict(), Verdict::kFits);  // no capacity was given
  EXPECT_EQ(report.mfu(), 0);
}

// System: two ranks with two chunks each, two micro-batches; global stages 0 and 2 are on rank 0. Stage 2
// alone is slow: its forward takes 2 ms, all other thirds 1 ms. Expectations:
//   rank 0  F0.0 0-1, F0.1 1-2, F2.0 2-4, F2.1 4-6, B2.0 7-9, B2.1 10-12, B0.0 12-14, B0.1 14-16
//   rank 1  F1.0 1-2, F1.1 2-3, F3.0 4-5, B3.0 5-7, F3.1 7-8, B3.1 8-10, B1.0 10-12, B1.1 12-14
TEST(UnevenStages, AreInModelOrderAndLoopOverTheRanks) {
  const Report report =
      simulate(scenario_of("stagecraft: 1\n"
                           "model: {family: stages, forward: [1 ms, 1 ms, 2 ms, 1 ms], input_gradient: 1 ms, "
                           "weight_gradient: 1 ms,"
                           " gradient: [1 MiB, 2 MiB, 4 MiB, 8 MiB]}\n"
                           "parallelism: {pipeline: 2, virtual_stages: 2}\n"
                           "schedule: interleaved-1f1b\n"
                           "training: {global_batch_size: 2}\n"));
  EXPECT_EQ(report.iteration_time, 16ms);
  EXPECT_EQ(report.bubble.ideal, 14ms);
  EXPECT_EQ(report.memory.stages[0].of(MemoryClass::kGradients), 5_MiB);
  EXPECT_EQ(report.memory.stages[1].of(MemoryClass::kGradients), 10_MiB);
}

// System: four ranks whose stage takes 1 ms for each third, eight micro-batches. Two chunks a rank, which nobody said,
// take half of it each: 24 ms of work, and 3 forwards and backwards of half a stage to fill. Two chunks that are said
// take 1 ms each.
TEST(AbstractStages, AreSharedByTheChunksThatNobodySaid) {
  const std::string job =
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms, activation: 16 "
      "MiB}\n"
      "schedule: interleaved-1f1b\n"
      "training: {global_batch_size: 8}\n";
  const Report report = simulate(scenario_of(job + "parallelism: {pipeline: 4}\n"));
  EXPECT_EQ(report.iteration_time, 28500us);
  EXPECT_EQ(report.bubble.ideal, 24ms);
  EXPECT_EQ(report.memory.stages[0].of(MemoryClass::kActivations), 88_MiB);  // 11 of 8 MiB
  EXPECT_EQ(simulate(scenario_of(job + "parallelism: {pipeline: 4, virtual_stages: 2}\n")).iteration_time,
            57ms);
}

TEST(FreeStages, TakeNoTimeAndGiveNoInfinity) {
  const Report report = simulate(
      scenario_of("stagecraft: 1\n"
                  "model: {family: stages, forward: 0 ms, input_gradient: 0 ms, weight_gradient: 0 ms}\n"
                  "parallelism: {pipeline: 2}\n"
                  "training: {global_batch_size: 4}\n"));
  EXPECT_EQ(report.iteration_time, 0ms);
  EXPECT_EQ(report.bubble.fraction, 0);
  EXPECT_EQ(report.samples_per_s(), 0);
  EXPECT_NE(render_json(report).find("\"samples_per_s\":0"), std::string::npos);
}

// System: 8 GPUs, tensor 2; who says no more gets 4 replicas and sequences as long as the model's.
TEST(Assumptions, NameTheSplitTheMicroBatchAndTheSequenceWhereTheyAreLeftOut) {
  const auto assumptions = [](const std::string& parallelism, const std::string& training) {
    return simulate(scenario_of("stagecraft: 1\n"
                                "model: {family: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 50257, "
                                "max_sequence_length: 1024}\n"
                                "cluster: {node: dgx-a100-80gb, gpus: 8}\n"
                                "parallelism: {tensor: 2" +
                                parallelism + "}\ntraining: {global_batch_size: 8" + training + "}\n"))
        .assumptions;
  };
  const auto left_out = assumptions("", "");
  const auto given = assumptions(", data: 4, zero_stage: 0, sequence_parallel: false",
                                 ", micro_batch_size: 1, sequence_length: 1024");
  for (const char* line :
       {"parallelism.data: 4", "parallelism.zero_stage: 0", "parallelism.sequence_parallel: false",
        "training.micro_batch_size: 1", "training.sequence_length: 1024"}) {
    EXPECT_EQ(std::ranges::count(left_out, line), 1) << line;
    EXPECT_EQ(std::ranges::count(given, line), 0) << line;
  }
}

TEST(HardwareFlops, CountTheCoreAgainOnlyWhereItsScoresAreKeptOrItsKernelRunsAgain) {
  const auto report_of = [](const std::string& attention, bool repeats_flash = false) {
    Scenario scenario = scenario_of(
        "stagecraft: 1\nmodel: gpt-1.7b\ncluster: {node: dgx-a100-80gb, nodes: 1}\n"
        "training: {global_batch_size: 8, sequence_length: 2048, recompute: selective, attention: " +
        attention + "}\n");
    scenario.options.rules.repeats_flash = repeats_flash;
    return simulate(scenario);
  };
  const Report flash = report_of("flash"), unfused = report_of("unfused"), twice = report_of("flash", true);
  EXPECT_EQ(flash.hardware_flops.count(), flash.model_flops.count());
  EXPECT_GT(unfused.hardware_flops.count(), unfused.model_flops.count());
  EXPECT_DOUBLE_EQ(3 * (twice.hardware_flops - twice.model_flops).count(),
                   (unfused.hardware_flops - unfused.model_flops).count());
}

// An order from a file runs as the named one that it is, on the sizes that it was written for.
TEST(GivenOrder, RunsAsTheNamedOne) {
  const std::string yaml =
      "stagecraft: 1\nmodel: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 "
      "ms}\n"
      "parallelism: {pipeline: 4}\nschedule: zb-h1\ntraining: {global_batch_size: 8}\n";
  Scenario scenario = scenario_of(yaml);
  const Duration named = simulate(scenario).iteration_time;
  scenario.order = PipelineOrder{
      .file = "z.csv", .schedule = generate(*find_schedule("zb-h1"), {.ranks = 4, .micro_batches = 8})};
  scenario.schedule.name = "custom";
  EXPECT_EQ(simulate(scenario).iteration_time, named);

  scenario.training.global_batch_size = 9;
  Diagnostics diagnostics;
  EXPECT_FALSE(prepare(scenario, diagnostics));
  ASSERT_EQ(diagnostics.error_count(), 1u);
  EXPECT_EQ(diagnostics.items().front().message, "the order is for micro-batches 8, and the scenario has 9");
}

// System: 4 ranks, 12 micro-batches, W 4 ms where F and I take 10; 1 ms = 10^6 ns.
// Expectations: the order is the generator's for these nanoseconds, and shorter than the one for equal
// passes.
TEST(MadeToMeasure, IsForTheCostsOfTheScenario) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 4 ms}\n"
      "parallelism: {pipeline: 4}\nschedule: zb-2p\ntraining: {global_batch_size: 12}\n");
  const Simulation simulation = simulate_in_full(scenario);
  const ScheduleKind& kind = *find_schedule("zb-2p");
  const PipelineShape shape{.ranks = 4, .micro_batches = 12};
  const StageCosts stage{.forward = 10'000'000, .input_gradient = 10'000'000, .weight_gradient = 4'000'000};
  const ScheduleCosts costs{.stages = {stage}};  // what an input gradient frees is the schedule's own measure
  EXPECT_EQ(simulation.prepared.schedule, generate(kind, shape, costs));
  EXPECT_NE(simulation.prepared.schedule, generate(kind, shape));
  const Timeline for_equal_passes = run(lower(generate(kind, shape), simulation.prices, {}));
  EXPECT_LT(simulation.timeline.makespan, for_equal_passes.makespan);
}

// System: GPT on 16 A100, two stages of a node each, under megatron-lm-2021, whose blocking exchange costs
// the hosts 0.7 ms. Expectations: a message that the sender waits for takes so much longer than one that it
// does not; where a call of the interleaved order carries two, half as much. Latency and bytes are the same.
TEST(BlockingMessages, CostTheHostsOfAnExchangeTheirTime) {
  const auto message = [](const std::string& chunks, const std::string& overlapped) {
    const Scenario scenario = scenario_of(
        "stagecraft: 1\n"
        "model: {family: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 51200, max_sequence_length: 2048}\n"
        "cluster: {node: dgx-a100-80gb, nodes: 2}\n"
        "parallelism: {tensor: 8, pipeline: 2, virtual_stages: " +
        chunks + "}\nschedule: " + (chunks == "1" ? "1f1b" : "interleaved-1f1b") +
        "\noverlap: {pipeline: " + overlapped + "}\ntraining: {global_batch_size: 4, micro_batch_size: 1}\n");
    return simulate_in_full(scenario).prices.edges.front().forward.total();
  };
  EXPECT_EQ(message("1", "false") - message("1", "true"), 900us);
  EXPECT_EQ(message("2", "false") - message("2", "true"), 450us);
}

}  // namespace
}  // namespace stagecraft
