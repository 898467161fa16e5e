// What is true of time and memory on every axis: context, experts, ZeRO, sequence parallelism, recompute and
// offload.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "tests/sampling.hpp"
#include "tests/sim/simulate/axes_grid.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

std::int64_t item_of(const StageMemory& stage, MemoryClass kind, std::string_view name) {
  for (const MemoryItem& item : stage.items)
    if (item.kind == kind && item.name == name) return item.size.count();
  return 0;
}

// No stage needs more than before.
void expect_no_more(const MemoryLedger& most, const MemoryLedger& ledger) {
  ASSERT_EQ(most.stages.size(), ledger.stages.size());
  for (std::size_t i = 0; i < most.stages.size(); ++i)
    EXPECT_LE(ledger.stages[i].peak(), most.stages[i].peak()) << "stage " << i;
}

TEST(Axes, AreManyScenarios) {
  int count = 0;
  std::array<int, 4> zero{};
  std::array<int, 3> exchanges{}, recompute{};
  for_each_in_axes([&](const std::string&, const Scenario& scenario) {
    ++count;
    ++zero[static_cast<std::size_t>(scenario.parallelism.zero_stage)];
    ++exchanges[static_cast<std::size_t>(scenario.parallelism.context_exchange)];
    ++recompute[static_cast<std::size_t>(scenario.training.recompute.granularity)];
  });
  EXPECT_GT(count, sampled_count(300));
  for (const int n : zero) EXPECT_GT(n, count / 8);
  for (const int n : exchanges) EXPECT_GT(n, count / 8);
  for (const int n : recompute) EXPECT_GT(n, count / 8);
}

TEST(Axes, GiveFiniteTimesThatAddUp) {
  for_each_in_axes([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    const Report report = simulate(scenario);
    EXPECT_GT(report.iteration_time, Duration::zero());
    EXPECT_LT(report.iteration_time, std::chrono::hours(1));
    EXPECT_EQ(sum_of(report.breakdown), report.iteration_time);
    for (const Duration part : report.breakdown) EXPECT_GE(part, Duration::zero());
    EXPECT_GT(report.mfu(), 0);
    EXPECT_LE(report.mfu(), report.hfu());
    EXPECT_LT(report.hfu(), 1);
    EXPECT_TRUE(std::isfinite(report.bubble.fraction));
  });
}

TEST(Axes, GiveLedgersThatAddUp) {
  for_each_in_axes([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    for (const StageMemory& stage : memory_of(scenario).stages) {
      std::array<Bytes, kMemoryClasses.size()> sums{};
      for (const MemoryItem& item : stage.items) {
        EXPECT_GT(item.size, Bytes(0)) << item.name;
        sums[static_cast<std::size_t>(item.kind)] += item.size;
      }
      EXPECT_EQ(sums, stage.sums);
      EXPECT_GT(stage.of(MemoryClass::kWeights) + stage.of(MemoryClass::kGradients), Bytes(0));
      EXPECT_GT(stage.of(MemoryClass::kActivations), Bytes(0));
    }
  });
}

TEST(Axes, FoldedEqualUnfolded) {
  for_each_in_axes([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    if (scenario.cluster->gpu_count() > 16) return;
    const Report folded = simulate(scenario);
    const Report unfolded = simulate(scenario, {.unfold = true});
    EXPECT_EQ(folded.iteration_time, unfolded.iteration_time);
    EXPECT_EQ(folded.breakdown, unfolded.breakdown);
    EXPECT_EQ(folded.memory.heaviest().peak(), unfolded.memory.heaviest().peak());
  });
}

// Parameters of a model by who holds them.
struct Held {
  std::int64_t once = 0;        // dense, split over tensor ranks
  std::int64_t everywhere = 0;  // dense, whole on each tensor rank: norms, router, MLA's down projections
  std::int64_t experts = 0;     // routed
};

Held held_of(const TransformerSpec& model, bool piped) {
  const std::int64_t h = model.hidden, layers = model.layers + model.mtp_layers;
  Held held{.everywhere = layers * 2 * h + h + model.mtp_layers * 3 * h};
  if (model.experts) {
    const std::int64_t with = model.numbers().with_experts() + model.mtp_layers;
    held.everywhere += with * h * model.experts->count;
    held.experts = with * model.experts->count * 3 * h * model.experts->ffn_hidden;
  }
  if (model.latent_attention) {
    const LatentAttentionSpec& latent = *model.latent_attention;
    held.everywhere += layers * ((h + 1) * (latent.query_rank + latent.kv_rank) + h * latent.rope_head_size);
  }
  held.once = parameter_count(model) - held.everywhere - held.experts;
  if (piped && model.mtp_layers > 0) held.once += model.vocab * h;  // the last stage looks tokens up
  return held;
}

// What all GPUs hold is the model as often as there are replicas of it, or of its shards: 2 bytes of weights,
// 4 of gradients and 12 of optimizer a parameter (bf16); 4, 4 and 8 under autocast.
TEST(AxesMemory, OfAllRanksIsTheModelAndItsReplicas) {
  for_each_in_axes([](const std::string& name, Scenario scenario) {
    SCOPED_TRACE(name);
    scenario.offload = {};
    const ParallelSpec& spec = scenario.parallelism;
    const Held held = held_of(std::get<TransformerSpec>(scenario.model), spec.pipeline > 1);
    const std::int64_t t = spec.tensor, replicas = *spec.data * spec.context, gpus = t * replicas;
    const std::int64_t copies = gpus / (spec.expert * spec.expert_tensor);  // of an expert
    const std::int64_t group = spec.zero_group.value_or(replicas);
    const std::int64_t expert_group = copies / (replicas / group);
    const std::int64_t dense = (held.once + t * held.everywhere) * replicas;
    const std::int64_t experts = held.experts * copies;
    const MemoryLedger memory = memory_of(scenario);
    const auto expect = [&](MemoryClass kind, int first_stage, std::int64_t bytes) {
      const std::string word(name_of(kind));
      const bool sharded = spec.zero_stage >= first_stage;
      const std::int64_t n = sharded ? group : 1, expert_n = sharded ? expert_group : 1;
      std::int64_t sum = 0, expert_sum = 0;
      for (const StageMemory& stage : memory.stages) {
        sum += item_of(stage, kind, word) * gpus * n;
        expert_sum += item_of(stage, kind, "experts' " + word) * gpus * expert_n;
      }
      const std::int64_t most_rounded = gpus * spec.pipeline;  // each share is rounded up to a byte
      EXPECT_GE(sum, bytes * dense) << word;
      EXPECT_LE(sum, bytes * dense + most_rounded * (n - 1)) << word;
      EXPECT_GE(expert_sum, bytes * experts) << word;
      EXPECT_LE(expert_sum, bytes * experts + most_rounded * (expert_n - 1)) << word;
    };
    const bool fp32 = scenario.training.autocast;
    expect(MemoryClass::kWeights, 3, fp32 ? 4 : 2);
    expect(MemoryClass::kGradients, 2, 4);
    expect(MemoryClass::kOptimizer, 1, fp32 ? 8 : 12);
  });
}

TEST(AxesMemory, NeverFallsWhenTheJobGrows) {
  for_each_in_axes([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    const MemoryLedger before = memory_of(scenario);
    const auto expect_more = [&](const char* what, const auto& change) {
      SCOPED_TRACE(what);
      Scenario more = scenario;
      change(more);
      expect_no_more(memory_of(more), before);
    };
    expect_more("micro-batch", [](Scenario& s) {  // of as many micro-batches
      s.training.micro_batch_size *= 2;
      s.training.global_batch_size *= 2;
    });
    expect_more("micro-batches", [](Scenario& s) { s.training.global_batch_size *= 2; });
    expect_more("sequence", [](Scenario& s) { s.training.sequence_length *= 2; });
    expect_more("layers", [](Scenario& s) { std::get<TransformerSpec>(s.model).layers += 8; });
    expect_more("vocabulary", [](Scenario& s) { std::get<TransformerSpec>(s.model).vocab *= 2; });
    expect_more("hidden", [](Scenario& s) { std::get<TransformerSpec>(s.model).hidden *= 2; });
  });
}

std::string words_of(const RecomputeSpec& way) {
  return fmt::format("granularity {}, method {}, layers {}", static_cast<int>(way.granularity),
                     static_cast<int>(way.method), way.layers);
}

std::string words_of(const OffloadSpec& way) {
  return fmt::format("optimizer {}, activations {}, weights {}", way.optimizer, way.activations, way.weights);
}

// `spec` is a part of the scenario, and saves nothing as it is: with none of the ways is there more memory.
template <class Spec>
void expect_no_more_with(Scenario& scenario, Spec& spec, const std::vector<Spec>& ways) {
  const MemoryLedger none = memory_of(scenario);
  for (const Spec& way : ways) {
    SCOPED_TRACE(words_of(way));
    spec = way;
    expect_no_more(none, memory_of(scenario));
  }
}

TEST(AxesMemory, NeverRisesWithRecompute) {
  for_each_in_axes([](const std::string& name, Scenario scenario) {
    SCOPED_TRACE(name);
    scenario.training.recompute = {};
    scenario.offload.activations = 0;  // what is in host memory is made again on the GPU
    expect_no_more_with(scenario, scenario.training.recompute, ways_to_recompute(scenario));
  });
}

TEST(AxesMemory, NeverRisesWithOffload) {
  for_each_in_axes([](const std::string& name, Scenario scenario) {
    SCOPED_TRACE(name);
    scenario.offload = {};
    expect_no_more_with(scenario, scenario.offload,
                        {{.optimizer = 0.5},
                         {.optimizer = 1},
                         {.activations = 0.5},
                         {.activations = 1},
                         {.weights = 0.5},
                         {.weights = 1}});
  });
}

// From one to the next, none first.
template <class Visit>
void for_each_zero_stage(Scenario scenario, const Visit& visit) {
  for (const int zero : {0, 1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "zero " << zero);
    scenario.parallelism.zero_stage = zero;
    visit(scenario);
  }
}

using States = std::array<std::int64_t, 3>;

// Weights, gradients and optimizer of each stage.
std::vector<States> states_of(const MemoryLedger& memory) {
  std::vector<States> states;
  for (const StageMemory& stage : memory.stages) {
    States own{};
    for (const MemoryClass kind : {MemoryClass::kWeights, MemoryClass::kGradients, MemoryClass::kOptimizer}) {
      const std::string word(name_of(kind));
      own[static_cast<std::size_t>(kind)] =
          item_of(stage, kind, word) + item_of(stage, kind, "experts' " + word);
    }
    states.push_back(own);
  }
  return states;
}

// Buffers apart: a bucket may be larger than what a small model saves.
TEST(AxesMemory, OfStatesFallsFromOneZeroStageToTheNext) {
  for_each_in_axes([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    std::vector<States> before;
    for_each_zero_stage(scenario, [&](const Scenario& sharded) {
      const std::vector<States> states = states_of(memory_of(sharded));
      for (std::size_t i = 0; i < before.size(); ++i)
        for (std::size_t k = 0; k < states[i].size(); ++k)
          EXPECT_LE(states[i][k], before[i][k]) << "stage " << i << ", " << k;
      before = states;
    });
  });
}

// The peak of a model that is large for its buckets and units falls too: 7B on 64 ranks.
TEST(AxesMemory, FallsFromOneZeroStageToTheNext) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: llama-2-7b\n"
      "cluster: {node: dgx-a100-80gb, nodes: 8}\n"
      "training: {global_batch_size: 64, sequence_length: 4096}\n");
  for (const int group : {8, 64}) {
    SCOPED_TRACE(testing::Message() << "over " << group);
    scenario.parallelism.zero_group = group;
    std::optional<Bytes> before;
    for_each_zero_stage(scenario, [&](const Scenario& sharded) {
      const Bytes peak = memory_of(sharded).heaviest().peak();
      if (before) {
        EXPECT_LT(peak, *before);
      }
      before = peak;
    });
  }
}

// What is split one way is not split: the same report, to the bit.
TEST(AxesOfDegreeOne, AreTheModelWithoutThem) {
  for_each_in_axes([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    const Report report = simulate(scenario);
    const auto expect_same = [&](const char* what, const auto& change) {
      SCOPED_TRACE(what);
      Scenario other = scenario;
      change(other);
      const Report same = simulate(other);
      EXPECT_EQ(same.iteration_time, report.iteration_time);
      EXPECT_EQ(same.breakdown, report.breakdown);
      for (std::size_t i = 0; i < report.memory.stages.size(); ++i)
        EXPECT_EQ(same.memory.stages[i].peak(), report.memory.stages[i].peak()) << "stage " << i;
    };
    const ParallelSpec& spec = scenario.parallelism;
    if (spec.context == 1) {
      for (const auto exchange :
           {ContextExchange::kRing, ContextExchange::kAllGather, ContextExchange::kAllToAll})
        expect_same("exchange", [&](Scenario& s) { s.parallelism.context_exchange = exchange; });
      expect_same("context overlap", [](Scenario& s) { s.overlap.context = !s.overlap.context; });
    }
    if (spec.tensor == 1) {
      expect_same("sequence parallel",
                  [](Scenario& s) { s.parallelism.sequence_parallel = !s.parallelism.sequence_parallel; });
      expect_same("scatter-gather", [](Scenario& s) { s.options.scatter_gather = false; });
    }
    const int holders = spec.expert * spec.expert_tensor;  // of one copy of the experts
    if (*spec.data * spec.context == 1 && spec.tensor <= holders) {
      expect_same("no gradient overlap", [](Scenario& s) { s.overlap.gradients = !s.overlap.gradients; });
    }
    if (spec.expert == 1)
      expect_same("expert overlap", [](Scenario& s) { s.overlap.expert = !s.overlap.expert; });
    if (spec.pipeline == 1)
      expect_same("message overlap", [](Scenario& s) { s.overlap.pipeline = !s.overlap.pipeline; });
    if (spec.zero_stage == 0)
      expect_same("parameter overlap", [](Scenario& s) { s.overlap.parameters = !s.overlap.parameters; });
  });
}

// With nobody to shard over, and no pipeline that orders passes around units, every ZeRO stage is none.
TEST(AxesOfDegreeOne, ShardNothing) {
  for_each_in_axes([](const std::string& name, const Scenario& scenario) {
    const ParallelSpec& spec = scenario.parallelism;
    if (*spec.data * spec.context > 1 ||
        spec.tensor * *spec.data * spec.context > spec.expert * spec.expert_tensor)
      return;
    SCOPED_TRACE(name);
    std::optional<Report> none;
    for_each_zero_stage(scenario, [&](const Scenario& sharded) {
      const Report same = simulate(sharded);
      if (!none) none = same;
      EXPECT_EQ(same.iteration_time, none->iteration_time);
      EXPECT_EQ(same.memory.heaviest().peak(), none->memory.heaviest().peak());
    });
  });
}

}  // namespace
}  // namespace stagecraft
