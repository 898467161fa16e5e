// What is true of every report, whatever the scenario.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>

#include "models/operators.hpp"
#include "tests/sim/simulate/grid.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

// Of a scenario of the grid, simulated once.
const Report& report_of(const std::string& name, const Scenario& scenario) {
  static std::map<std::string, Report> known;
  const auto [at, is_new] = known.try_emplace(name);
  if (is_new) at->second = simulate(scenario);
  return at->second;
}

TEST(Report, TimesAddUpAndLieInOrder) {
  for_each_in_grid([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    const Report& report = report_of(name, scenario);
    EXPECT_EQ(sum_of(report.breakdown), report.iteration_time);
    for (const Duration part : report.breakdown) EXPECT_GE(part, Duration::zero());
    EXPECT_GT(report.bubble.ideal, Duration::zero());
    EXPECT_LE(report.bubble.ideal, report.bubble.span);
    EXPECT_LE(report.bubble.span, report.bubble.makespan);
    EXPECT_LE(report.bubble.makespan, report.iteration_time);
    EXPECT_GE(report.bubble.fraction, 0);
    EXPECT_LT(report.bubble.fraction, 1);
    EXPECT_LT(report.interval_90[0], report.iteration_time);
    EXPECT_GT(report.interval_90[1], report.iteration_time);
  });
}

TEST(Report, RatesTimesTimeGiveTheWorkBack) {
  for_each_in_grid([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    const Report& report = report_of(name, scenario);
    const auto& model = std::get<TransformerSpec>(scenario.model);
    const double seconds = to_seconds(report.iteration_time);
    const double flops = model_flops(model, 48, scenario.training.sequence_length).count();
    EXPECT_DOUBLE_EQ(report.model_flops_per_gpu_s() * report.gpus * seconds, flops);
    EXPECT_DOUBLE_EQ(report.mfu() * 312e12 * report.gpus * seconds, flops);  // A100, data sheet
    EXPECT_GE(report.hfu(), report.mfu());
    EXPECT_LT(report.hfu(), 1);
    EXPECT_DOUBLE_EQ(report.samples_per_s() * seconds, 48);
    EXPECT_DOUBLE_EQ(report.tokens_per_s() * seconds,
                     static_cast<double>(48 * scenario.training.sequence_length));
  });
}

TEST(Report, SharesOfProvenanceAddUpToOne) {
  for_each_in_grid([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    const Report& report = report_of(name, scenario);
    for (const double share : report.provenance) EXPECT_GE(share, 0);
    EXPECT_NEAR(std::accumulate(report.provenance.begin(), report.provenance.end(), 0.0), 1, 1e-9);
  });
}

TEST(Simulation, FoldedEqualsUnfoldedBitForBit) {
  for_each_in_grid([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    const Report& folded = report_of(name, scenario);
    const Report unfolded = simulate(scenario, {.unfold = true});
    EXPECT_EQ(unfolded.simulated_ranks, unfolded.gpus);
    EXPECT_EQ(folded.simulated_ranks, scenario.parallelism.pipeline);
    EXPECT_EQ(folded.iteration_time, unfolded.iteration_time);
    EXPECT_EQ(folded.interval_90, unfolded.interval_90);
    EXPECT_EQ(folded.breakdown, unfolded.breakdown);
    EXPECT_EQ(folded.bubble, unfolded.bubble);
    EXPECT_EQ(folded.memory.heaviest().peak(), unfolded.memory.heaviest().peak());
  });
}

// Where traffic beside passes takes nothing from them, neither of their compute nor of the links of their rank: how
// long they last does not depend on when they run.
TEST(Simulation, RunsAsTheLongestPathOfItsProgram) {
  for_each_in_grid([](const std::string& name, Scenario scenario) {
    SCOPED_TRACE(name);
    scenario.profile->gradient_overlap_slowdown.value = 1;
    Program program = simulate_in_full(scenario).program;
    program.flows.clear();
    program.links = {};
    EXPECT_EQ(run(program), longest_path(program));
  });
}

// A tensor rank holds all of what is not split (norms, some biases), so weights are exact for t = 1 alone:
// two bytes a parameter. A tied matrix is there twice when first and last stage are two ranks.
TEST(Memory, WeightsOfAllStagesAreTheModel) {
  for_each_in_grid([](const std::string& name, const Scenario& scenario) {
    if (scenario.parallelism.tensor > 1) return;
    SCOPED_TRACE(name);
    const auto& model = std::get<TransformerSpec>(scenario.model);
    const bool twice = model.tied_embeddings && scenario.parallelism.pipeline > 1;
    const std::int64_t parameters = parameter_count(model) + (twice ? model.vocab * model.hidden : 0);
    const std::int64_t shards = scenario.parallelism.zero_stage > 0 ? *scenario.parallelism.data : 1;
    std::int64_t weights = 0, gradients = 0, optimizer = 0;
    const MemoryLedger memory = memory_of(scenario);
    for (const StageMemory& stage : memory.stages) {
      weights += stage.of(MemoryClass::kWeights).count();
      gradients += stage.of(MemoryClass::kGradients).count();
      optimizer += stage.of(MemoryClass::kOptimizer).count() * shards;
    }
    EXPECT_EQ(memory.stages.size(), static_cast<std::size_t>(scenario.parallelism.pipeline));
    EXPECT_EQ(weights, 2 * parameters);
    EXPECT_EQ(gradients, 4 * parameters);
    EXPECT_GE(optimizer, 12 * parameters);  // each shard is rounded up to a byte
    EXPECT_LE(optimizer, 12 * parameters + shards * scenario.parallelism.pipeline);
  });
}

TEST(Memory, IsThatOfTheReport) {
  for_each_in_grid([](const std::string& name, const Scenario& scenario) {
    SCOPED_TRACE(name);
    const MemoryLedger alone = memory_of(scenario);
    const MemoryLedger& reported = report_of(name, scenario).memory;
    ASSERT_EQ(alone.stages.size(), reported.stages.size());
    for (std::size_t i = 0; i < alone.stages.size(); ++i)
      EXPECT_EQ(alone.stages[i].peak(), reported.stages[i].peak());
    EXPECT_EQ(alone.verdict(), reported.verdict());
  });
}

}  // namespace
}  // namespace stagecraft
