// The ledger's replay without a clock and the engine's running sums find the same peak on every rank.
#include <gtest/gtest.h>

#include "sim/engine/memory_high_water.hpp"
#include "sim/lower/memory_replay.hpp"
#include "sim/schedule/unrolled.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

const std::string kModel =
    "stagecraft: 1\n"
    "model: {family: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 51200, max_sequence_length: 1024}\n"
    "cluster: {node: dgx-a100-80gb, nodes: 2}\n";

std::vector<PassMemory> memory_of_stages(const Simulation& simulation) {
  std::vector<PassMemory> memory;
  for (const StagePrice& stage : simulation.prices.stages) memory.push_back(stage.memory);
  return memory;
}

// The high water of the compute streams, in the order of the ranks.
std::vector<Bytes> high_water(const Simulation& simulation) {
  const auto all = memory_high_water(simulation.program, simulation.timeline);
  std::vector<Bytes> streams;
  for (std::uint32_t r = 0; r < simulation.program.resources.size(); ++r) {
    if (simulation.program.resources[ResourceId(r)].name == "compute") streams.push_back(all[ResourceId(r)]);
  }
  return streams;
}

class MemoryOverTime : public testing::TestWithParam<const char*> {};

TEST_P(MemoryOverTime, OfTheEngineIsThatOfTheReplay) {
  const Simulation simulation = simulate_in_full(scenario_of(kModel + GetParam()));
  const std::vector<PassMemory> memory = memory_of_stages(simulation);
  const std::vector<Bytes> peaks = high_water(simulation);
  const Schedule& given = simulation.prepared.schedule;
  const Schedule schedule = given.flush ? given : unrolled(given, 2);
  ASSERT_EQ(peaks.size(), schedule.ranks.size());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const ReplayPeak replay = replay_memory(schedule.ranks[rank], memory);
    EXPECT_GT(replay.live, Bytes(0));
    EXPECT_EQ(peaks[rank], replay.live + replay.transient) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, MemoryOverTime,
    testing::Values(
        "parallelism: {pipeline: 4}\ntraining: {global_batch_size: 32}\n",
        "parallelism: {pipeline: 4}\nschedule: gpipe\ntraining: {global_batch_size: 32}\n",
        "parallelism: {pipeline: 4, virtual_stages: 2, zero_stage: 1}\nschedule: interleaved-1f1b\n"
        "training: {global_batch_size: 32}\n",
        "parallelism: {pipeline: 4, tensor: 2, sequence_parallel: true}\n"
        "training: {global_batch_size: 32, recompute: full}\n",
        "parallelism: {pipeline: 2, zero_stage: 3}\ntraining: {global_batch_size: 32, recompute: "
        "{granularity: full, method: block, layers: 2}}\n",
        "parallelism: {pipeline: 4, virtual_stages: 2, zero_stage: 2}\nschedule: interleaved-1f1b\n"
        "training: {global_batch_size: 16}\noptions: {memory: {whole_gradients: true}}\n",
        "parallelism: {zero_stage: 2, context: 2}\ntraining: {global_batch_size: 32}\n"
        "offload: {activations: 0.5}\n",
        "parallelism: {pipeline: 4}\nschedule: zb-v\ntraining: {global_batch_size: 32}\n",
        "parallelism: {pipeline: 4}\nschedule: {name: zb-h2, global_step: false}\n"
        "training: {global_batch_size: 32}\n",
        "parallelism: {pipeline: 4, zero_stage: 3}\nschedule: dualpipe\ntraining: {global_batch_size: 32}\n",
        "parallelism: {pipeline: 4}\nschedule: {name: dualpipe-v, fused_share: 0.8}\n"
        "training: {global_batch_size: 32}\n",
        "parallelism: {pipeline: 4}\nschedule: chimera\ntraining: {global_batch_size: 32, recompute: full}\n",
        "parallelism: {pipeline: 4}\nschedule: hanayo\ntraining: {global_batch_size: 32}\n",
        "parallelism: {pipeline: 4}\nschedule: varuna\ntraining: {global_batch_size: 32, recompute: full}\n",
        "parallelism: {pipeline: 4}\nschedule: pipedream-2bw\ntraining: {global_batch_size: 32}\n"));

// 1F1B of 4 ranks: rank r holds the activations of 4 - r micro-batches at most.
TEST(AbstractStages, HoldTheirActivationsFromForwardToBackward) {
  using namespace literals;
  const Simulation simulation = simulate_in_full(shipped("pipeline-4x8"));
  const std::vector<Bytes> peaks = high_water(simulation);
  ASSERT_EQ(peaks.size(), 4);
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    const auto held = static_cast<std::int64_t>(4 - rank);
    EXPECT_EQ(peaks[rank], 16_MiB * held);
    EXPECT_EQ(simulation.report.memory.stages[rank].of(MemoryClass::kActivations), peaks[rank]);
  }
}

// A model of two trillion parameters on 100,000 GPUs, and one of ten million on one.
TEST(Sizes, OfBothEndsRun) {
  const Report largest = simulate(scenario_of(
      "stagecraft: 1\nmodel: {family: llama, layers: 120, hidden: 16384, heads: 128, kv_heads: 8, vocab: "
      "128256,\n"
      "  max_sequence_length: 8192, experts: {count: 128, top_k: 2, ffn_hidden: 2560, shared: 1}}\n"
      "cluster: {node: dgx-h100, nodes: 12500}\n"
      "parallelism: {tensor: 8, pipeline: 20, expert: 8, virtual_stages: 2, sequence_parallel: true, "
      "zero_stage: 1}\n"
      "schedule: interleaved-1f1b\ntraining: {global_batch_size: 25000}\n"));
  EXPECT_EQ(largest.gpus, 100'000);
  EXPECT_GT(largest.mfu(), 0.05);
  EXPECT_LT(largest.mfu(), 0.6);
  const Report smallest = simulate(scenario_of(
      "stagecraft: 1\nmodel: {family: gpt, layers: 4, hidden: 256, heads: 4, vocab: 26000, "
      "max_sequence_length: 512}\n"
      "cluster: {node: dgx-a100-80gb, gpus: 1}\ntraining: {global_batch_size: 8, micro_batch_size: 8}\n"));
  EXPECT_EQ(smallest.gpus, 1);
  EXPECT_EQ(smallest.memory.verdict(), Verdict::kFits);
}

}  // namespace
}  // namespace stagecraft
