// Every input moves the result the way it would move the machine.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "sim/price_iteration.hpp"
#include "tests/sim/simulate/grid.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;

// GPT 3.6B on two nodes: tensor 2, pipeline 2, data 4. Data groups lie in a node each, the pipeline crosses.
Scenario pipelined() {
  return scenario_of(
      "stagecraft: 1\n"
      "model: gpt-3.6b\n"
      "cluster: {node: dgx-a100-80gb, nodes: 2}\n"
      "parallelism: {tensor: 2, pipeline: 2, data: 4}\n"
      "training: {global_batch_size: 64, micro_batch_size: 2, attention: unfused}\n");
}

// pipelined() on four nodes without a pipeline: 16 replicas, whose gradients cross nodes.
Scenario replicated() {
  Scenario scenario = pipelined();
  scenario.cluster->groups.front().count = 4;
  scenario.parallelism.pipeline = 1;
  scenario.parallelism.data = 16;
  return scenario;
}

Duration time_of(const Scenario& scenario) {
  return simulate(scenario).iteration_time;
}

template <class Change>
Scenario with(Scenario scenario, const Change& change) {
  change(scenario);
  return scenario;
}

// Each of the changes makes an iteration strictly longer than the one before.
template <class T, class Change>
void expect_slower_and_slower(const Scenario& scenario, const std::vector<T>& values, const Change& change) {
  Duration before{};
  for (const T& value : values) {
    const Duration time = time_of(with(scenario, [&](Scenario& s) { change(s, value); }));
    EXPECT_GT(time, before);
    before = time;
  }
}

TEST(SlowerNetwork, MakesReductionsAndMessagesLonger) {
  const auto set = [](Scenario& s, Bandwidth rate) { s.cluster->fabric.nic_bandwidth = rate; };
  const std::vector<Bandwidth> rates = {25_GBps, 10_GBps, 5_GBps, 1_GBps};
  for (Scenario scenario : {pipelined(), replicated()}) {
    for (const bool overlapped : {true, false}) {
      scenario.overlap = {.gradients = overlapped, .parameters = overlapped, .pipeline = overlapped};
      expect_slower_and_slower(scenario, rates, set);
    }
  }
}

TEST(SlowerNetwork, IsWhatTheOverrideOnTheCommandLineGives) {
  const auto time = [](const char* rate) {
    return time_of(shipped("gpt3-175b-1024xA100", {std::string("cluster.fabric.nic_bandwidth=") + rate}));
  };
  EXPECT_EQ(time("200 Gb/s"), time_of(shipped("gpt3-175b-1024xA100")));  // what the node has
  EXPECT_GT(time("100 Gb/s"), time("200 Gb/s"));
  EXPECT_GT(time("50 Gb/s"), time("100 Gb/s"));
}

TEST(SlowerNetwork, IsOneWithMoreLatency) {
  const auto set = [](Scenario& s, Duration latency) {
    s.cluster->fabric.point_to_point_latency = latency;
    s.cluster->fabric.step_latency = latency;
  };
  for (const Scenario& scenario : {pipelined(), replicated()}) {
    expect_slower_and_slower<Duration>(
        scenario, {Duration(0), std::chrono::microseconds(50), std::chrono::milliseconds(1)}, set);
  }
}

// Messages in a node go at the NVLink rate; collectives as measured, scaled to the node's rate.
TEST(SlowerNvlink, MakesMessagesInANodeLonger) {
  Scenario scenario = pipelined();
  scenario.cluster->groups.front().count = 1;
  scenario.parallelism.data = 2;
  for (const bool overlapped : {true, false}) {
    scenario.overlap.pipeline = overlapped;
    expect_slower_and_slower<Bandwidth>(
        scenario, {300_GBps, 100_GBps, 10_GBps, 1_GBps},
        [](Scenario& s, Bandwidth rate) { s.cluster->groups.front().node.nvlink = rate; });
  }
}

TEST(MoreWork, TakesLonger) {
  for (const Scenario& scenario : {pipelined(), replicated()}) {
    expect_slower_and_slower<std::int64_t>(
        scenario, {256, 512, 1024, 2048},
        [](Scenario& s, std::int64_t length) { s.training.sequence_length = length; });
    expect_slower_and_slower<std::int64_t>(scenario, {2, 4, 8, 16, 32}, [](Scenario& s, std::int64_t layers) {
      std::get<TransformerSpec>(s.model).layers = layers;
    });
    expect_slower_and_slower<std::int64_t>(
        scenario, {32, 64, 96, 128, 256},
        [](Scenario& s, std::int64_t samples) { s.training.global_batch_size = samples; });
    expect_slower_and_slower<std::int64_t>(scenario, {1024, 2048, 4096, 8192},
                                           [](Scenario& s, std::int64_t hidden) {
                                             auto& model = std::get<TransformerSpec>(s.model);
                                             model.hidden = hidden;
                                             model.head_size = hidden / model.heads;
                                             model.ffn_hidden = 4 * hidden;
                                           });
  }
}

TEST(LessOverlap, TakesLonger) {
  const Scenario replicas = replicated(), pipeline = pipelined();
  EXPECT_GT(time_of(with(replicas, [](Scenario& s) { s.overlap.gradients = false; })), time_of(replicas));
  EXPECT_GT(time_of(with(pipeline, [](Scenario& s) { s.overlap.pipeline = false; })), time_of(pipeline));
  const Scenario zero = with(replicas, [](Scenario& s) { s.parallelism.zero_stage = 1; });
  EXPECT_GT(time_of(with(zero, [](Scenario& s) { s.overlap.parameters = false; })), time_of(zero));
}

// ZeRO 2 reduces after each pass and adds to nothing, unless gradients stay whole to the last micro-batch.
TEST(PoorerKernels, AddGradientsWhereTheyStay) {
  const auto added = [](Scenario& s) { s.options.gradient_accumulation_fusion = false; };
  const Scenario leave = with(replicated(), [](Scenario& s) { s.parallelism.zero_stage = 2; });
  EXPECT_EQ(time_of(with(leave, added)), time_of(leave));
  const Scenario stay = with(leave, [](Scenario& s) { s.options.memory.whole_gradients = true; });
  ASSERT_GT(stay.training.global_batch_size, stay.training.micro_batch_size * 2);
  EXPECT_GT(time_of(with(stay, added)), time_of(stay));
}

// Under a pipeline alone, and of gradients that stay whole. Where passes lose to traffic beside them, the
// last backwards of all stages do so one after another, and reductions behind them may cost less.
TEST(PoorerKernels, ReduceBehindTheBackward) {
  const auto behind = [](Scenario& s) { s.options.rules.reduces_behind_backward = true; };
  const auto free = [](Scenario& s) { s.options.rules.sharded_overlap_slowdown = 1; };
  const auto whole = [](Scenario& s) { s.options.memory.whole_gradients = true; };
  const auto reduced = [](Scenario& s) { s.options.memory.whole_gradients = false; };
  const Scenario flat = with(with(replicated(), free), [](Scenario& s) { s.parallelism.zero_stage = 2; });
  const Scenario split = with(flat, [](Scenario& s) {
    s.parallelism.pipeline = 2;
    s.parallelism.data = 8;
  });
  EXPECT_GT(time_of(with(with(split, whole), behind)), time_of(with(split, whole)));
  EXPECT_EQ(time_of(with(with(split, reduced), behind)), time_of(split));
  EXPECT_EQ(time_of(with(with(flat, whole), behind)), time_of(with(flat, whole)));
}

// Beside the reductions of an input gradient nothing of its own layer runs where the weight gradient is put
// aside. Gathers of inputs, which sequence parallelism adds, hide either way.
TEST(SplitBackwards, WaitForTheirTensorReductions) {
  const auto without_overlap = [](Scenario& s) { s.profile->tensor_overlap.value = 0; };
  const auto stage = [](const Scenario& s) { return simulate_in_full(s).prices.stages.front(); };
  const auto backward = [&](const Scenario& s) {
    return stage(s).input_gradient.total() + stage(s).weight_gradient.total();
  };
  const auto hidden = [&](const Scenario& s) { return backward(with(s, without_overlap)) - backward(s); };
  const auto unhidden = [&](const Scenario& s) { return stage(s).unhidden.total(); };
  const Scenario reduced = pipelined();
  const Scenario gathered = with(reduced, [](Scenario& s) { s.parallelism.sequence_parallel = true; });
  const Scenario alone = with(reduced, [](Scenario& s) {
    s.parallelism.tensor = 1;
    s.parallelism.data = 8;
  });
  EXPECT_GT(hidden(reduced), Duration::zero());
  EXPECT_EQ(unhidden(reduced), hidden(reduced));
  EXPECT_GT(unhidden(gathered), Duration::zero());
  EXPECT_LT(unhidden(gathered), hidden(gathered));
  EXPECT_EQ(unhidden(alone), Duration::zero());
  const Scenario split = with(reduced, [](Scenario& s) { s.schedule.name = "zb-h1"; });
  EXPECT_EQ(time_of(split), time_of(with(split, without_overlap)));
  EXPECT_LT(time_of(reduced), time_of(with(reduced, without_overlap)));
}

// What a GPU waits for its launches hides them as well.
TEST(SplitBackwards, DoNotWaitTwice) {
  const auto unhidden = [](double launch_us) {
    const Scenario scenario = with(
        pipelined(), [&](Scenario& s) { s.profile->host.launch.value = from_seconds(launch_us * 1e-6); });
    return simulate_in_full(scenario).prices.stages.front().unhidden.total();
  };
  EXPECT_GT(unhidden(0), Duration::zero());
  EXPECT_EQ(unhidden(1e4), Duration::zero());
}

// A whole backward is the sum of its parts less what it hides, and what runs is what provenance counts.
TEST(SplitBackwards, CountWhatTheyWaitFor) {
  const Scenario whole = pipelined();
  const Scenario split = with(whole, [](Scenario& s) { s.schedule.name = "zb-h1"; });
  const StagePrice stage = simulate_in_full(whole).prices.stages.front();
  const auto time = [&](Pass pass) { return pass_price(stage, pass, true).total(); };
  EXPECT_EQ(time(Pass::kInputGradient) + time(Pass::kWeightGradient),
            time(Pass::kBackward) + stage.unhidden.total());
  const auto known = static_cast<std::size_t>(whole.profile->tensor_overlap.provenance);
  EXPECT_GT(simulate(split).provenance[known], simulate(whole).provenance[known]);
}

// Copies of weights do not depend on the tokens, and a pass takes the longer of both.
TEST(OffloadedWeights, OfSplitBackwardsTakeNoLessForMoreTokens) {
  Duration before{};
  for (const char* tokens : {"256", "512", "1024", "2048", "4096", "8192"}) {
    const Duration time = time_of(scenario_of(
        std::string("stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\nschedule: zb-h1\n"
                    "parallelism: {tensor: 2, pipeline: 4}\noffload: {weights: 1}\n"
                    "training: {global_batch_size: 16, sequence_length: ") +
        tokens + "}\n"));
    EXPECT_GE(time, before) << tokens;
    before = time;
  }
}

// Exchanges hide behind a neighbouring pass, but no pass ends before its copies do: a slower link between GPUs
// gains nothing by making passes long enough for them.
TEST(OffloadedActivations, AreWaitedForWhereExchangesAreHidden) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: qwen3-30b-a3b\n"
      "cluster: {node: dgx-h100, nodes: 1}\n"
      "parallelism: {data: 8, expert: 8}\n"
      "overlap: {expert: true}\n"
      "offload: {activations: 0.5}\n"
      "training: {global_batch_size: 64, micro_batch_size: 2, sequence_length: 4096, precision: fp8}\n");
  expect_slower_and_slower<Bandwidth>(
      scenario, {1800_GBps, 900_GBps, 600_GBps, 450_GBps, 300_GBps},
      [](Scenario& s, Bandwidth rate) { s.cluster->groups.front().node.nvlink = rate; });
}

// Behind a reduction that the pass waits for, a gather slows no compute.
TEST(OverlappedGathers, CostNothingWhereReductionsAreNotOverlapped) {
  const auto time = [](const char* parameters) {
    return time_of(shipped("llama3-8b-fsdp-64xH100",
                           {"overlap.gradients=false", std::string("overlap.parameters=") + parameters}));
  };
  EXPECT_LT(time("true"), time("false"));
}

// The first micro-batch of a stage gathers weights that stay gathered for all, where the pipeline keeps them.
TEST(KeptWeights, AreGatheredOnceUnderAPipelineThatKeepsThem) {
  const auto keeps = [](Scenario& s) { s.options.rules.reduces_behind_backward = true; };
  const auto kept = [](Scenario& s) { s.options.reshard_after_forward = false; };
  const Scenario split = with(replicated(), [](Scenario& s) {
    s.parallelism.zero_stage = 3;
    s.parallelism.pipeline = 2;
    s.parallelism.data = 8;
    s.options.reshard_after_forward = true;
    s.options.memory.whole_gradients = false;
  });
  EXPECT_LT(time_of(with(with(split, kept), keeps)), time_of(with(split, kept)));
  EXPECT_EQ(time_of(with(split, keeps)), time_of(split));
}

TEST(PoorerKernels, TakeLonger) {
  for (const Scenario& scenario : {pipelined(), replicated()}) {
    const Duration time = time_of(scenario);
    EXPECT_GT(time_of(with(scenario, [](Scenario& s) { s.options.fused_kernels = false; })), time);
    EXPECT_GT(time_of(with(scenario, [](Scenario& s) { s.options.gradient_accumulation_fusion = false; })),
              time);
    EXPECT_LT(time_of(with(scenario, [](Scenario& s) { s.training.attention = Attention::kFlash; })), time);
    EXPECT_GT(time_of(with(scenario, [](Scenario& s) { s.training.precision = Precision::kFp32; })), time);
  }
}

// Without scatter/gather every tensor rank sends the whole activation (SC'21, section 4.1).
TEST(PoorerKernels, AreMessagesThatEveryTensorRankSendsWhole) {
  const Scenario scenario = with(pipelined(), [](Scenario& s) { s.overlap.pipeline = false; });
  EXPECT_GT(time_of(with(scenario, [](Scenario& s) { s.options.scatter_gather = false; })),
            time_of(scenario));
}

// 2 x 2,048 tokens of 3,072 numbers of 2 bytes: 24 MiB of two tensor ranks, which each of them sends whole, or
// half of it where it has, or sends, no more.
TEST(Messages, AreTheWholeActivationOrATensorRanksShareOfIt) {
  for (const bool sharded : {false, true})
    for (const bool scatters : {false, true}) {
      const Scenario scenario = with(pipelined(), [&](Scenario& s) {
        s.parallelism.sequence_parallel = sharded;
        s.options.scatter_gather = scatters;
      });
      Diagnostics diagnostics;
      const std::optional<Prepared> prepared = prepare(scenario, diagnostics);
      ASSERT_TRUE(prepared.has_value());
      EXPECT_EQ(message_bytes(scenario, prepared->plan),
                std::vector<Bytes>{sharded || scatters ? 12_MiB : 24_MiB})
          << sharded << ' ' << scatters;
    }
}

// The stage of multi-token prediction hands on the state for the next token and one for each further one.
TEST(Messages, OfMultiTokenPredictionAloneAreTheStatesOfAllHeads) {
  const Scenario scenario = with(pipelined(), [](Scenario& s) {
    auto& model = std::get<TransformerSpec>(s.model);
    model.mtp_layers = 2;
    model.tied_embeddings = false;
    s.parallelism.data = 2;
    s.parallelism.pipeline = 4;
    s.parallelism.stage_layers = {model.layers - 1, 1, 0, 0};
    s.parallelism.sequence_parallel = true;
  });
  Diagnostics diagnostics;
  const std::optional<Prepared> prepared = prepare(scenario, diagnostics);
  ASSERT_TRUE(prepared.has_value());
  EXPECT_EQ(message_bytes(scenario, prepared->plan), (std::vector{12_MiB, 12_MiB, 36_MiB}));
}

TEST(Messages, OfAbstractStagesAreTheActivationsOfTheirOwn) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms,"
      " activation: [1 MB, 2 MB, 3 MB]}\n"
      "parallelism: {pipeline: 3}\n"
      "training: {global_batch_size: 3}\n");
  Diagnostics diagnostics;
  const std::optional<Prepared> prepared = prepare(scenario, diagnostics);
  ASSERT_TRUE(prepared.has_value());
  EXPECT_EQ(message_bytes(scenario, prepared->plan), (std::vector{Bytes(1'000'000), Bytes(2'000'000)}));
}

// Unfused attention, so that selective recompute has scores to forget.
TEST(Recompute, BuysMemoryWithTime) {
  for (const Scenario& scenario : {pipelined(), replicated()}) {
    Report none, selective, full;
    for (const auto& [recompute, report] :
         {std::pair{Recompute::kNone, &none}, {Recompute::kSelective, &selective}, {Recompute::kFull, &full}})
      *report = simulate(
          with(scenario, [kind = recompute](Scenario& s) { s.training.recompute.granularity = kind; }));
    EXPECT_LT(none.iteration_time, selective.iteration_time);
    EXPECT_LT(selective.iteration_time, full.iteration_time);
    EXPECT_EQ(part_of(none, Category::kRecompute), Duration::zero());
    EXPECT_GT(part_of(full, Category::kRecompute), part_of(selective, Category::kRecompute));
    EXPECT_GT(none.memory.heaviest().peak(), selective.memory.heaviest().peak());
    EXPECT_GT(selective.memory.heaviest().peak(), full.memory.heaviest().peak());
    EXPECT_EQ(none.mfu(), none.hfu());
    EXPECT_GT(full.hfu(), full.mfu());
  }
}

TEST(Sharding, DividesTheOptimizerAndNothingElse) {
  const Report whole = simulate(replicated());
  const Report shared = simulate(with(replicated(), [](Scenario& s) { s.parallelism.zero_stage = 1; }));
  EXPECT_EQ(shared.memory.stages[0].of(MemoryClass::kOptimizer).count() * 16,
            whole.memory.stages[0].of(MemoryClass::kOptimizer).count());
  EXPECT_EQ(shared.memory.stages[0].of(MemoryClass::kWeights),
            whole.memory.stages[0].of(MemoryClass::kWeights));
  EXPECT_LT(part_of(shared, Category::kOptimizer), part_of(whole, Category::kOptimizer));
}

// d replicas of one pipeline share a fixed global batch: at best d times as fast.
TEST(DataParallelism, NeverScalesBetterThanIdeally) {
  for (const int zero_stage : {0, 1}) {
    Scenario scenario = with(pipelined(), [&](Scenario& s) { s.parallelism.zero_stage = zero_stage; });
    scenario.parallelism.tensor = 8;  // two nodes a replica, from a single replica on
    scenario.parallelism.data = 1;
    const Duration alone = time_of(scenario);
    Duration before = alone;
    for (const int data : {2, 4, 8, 16, 32}) {
      SCOPED_TRACE(data);
      scenario.cluster->groups.front().count = 2 * data;
      scenario.parallelism.data = data;
      const Duration time = time_of(scenario);
      EXPECT_GE(time * data, alone);
      EXPECT_LT(time, before);
      before = time;
    }
  }
}

TEST(Interleaving, CutsTheBubble) {
  Scenario scenario = shipped("gpt3-175b-1024xA100-1f1b");
  double before = simulate(scenario).bubble.over_ideal;
  scenario.schedule.name = "interleaved-1f1b";
  for (const int chunks : {2, 3, 4, 6}) {
    scenario.parallelism.virtual_stages = chunks;
    const double bubble = simulate(scenario).bubble.over_ideal;
    EXPECT_LT(bubble, before) << chunks;
    before = bubble;
  }
}

// The bubble of 1F1B is (p-1)/m of the work (SC'21, section 2.2), and messages only add to it.
TEST(MicroBatches, CutTheBubble) {
  Scenario scenario = pipelined();
  for (const std::int64_t m : {2, 4, 8, 16, 32}) {
    SCOPED_TRACE(m);
    scenario.training.global_batch_size = 4 * 2 * m;
    const double bubble = simulate(scenario).bubble.over_ideal;
    EXPECT_GE(bubble,
              0.5 / static_cast<double>(m));  // stages are not equal: the head makes the last one heavier
    EXPECT_LE(bubble, 1.2 / static_cast<double>(m));
  }
}

// Nowhere in the grid does overlap cost time.
TEST(Overlap, NeverHurts) {
  for_each_in_grid([](const std::string& name, Scenario scenario) {
    SCOPED_TRACE(name);
    scenario.overlap = {.gradients = true, .parameters = true, .pipeline = true};
    const Duration with_all = time_of(scenario);
    scenario.overlap = {.gradients = false, .parameters = false, .pipeline = false};
    EXPECT_LE(with_all, time_of(scenario));
  });
}

}  // namespace
}  // namespace stagecraft
