#include "sim/view/memory_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/simulate.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

Scenario load(const std::vector<std::string>& overrides) {
  Diagnostics diagnostics;
  auto scenario = load_scenario(STAGECRAFT_SOURCE_DIR "/scenarios/llama3-8b-fsdp-64xH100.yaml", overrides,
                                repository_files(), diagnostics);
  diagnostics.throw_if_errors();
  return *std::move(scenario);
}

// System: a forward of 1 ns takes 10 bytes and gives 4 back at its end; the backward behind it, 2 ns, takes 3
// and
//         frees 9.
// Expectations: 10 from 0, 6 and then 9 at 1 ns, 0 at 3 ns.
TEST(MemorySteps, FreesBeforeItTakesAtOneInstant) {
  ProgramBuilder builder;
  const ResourceId compute = builder.add_resource({ResourceKind::kStream, 0, "compute"});
  const LabelId label = builder.add_label({.name = "F", .stage = 0, .parts = {}});
  builder.add_memory(builder.add_task(compute, 1ns, label), Bytes(10), Bytes(-4));
  builder.add_memory(builder.add_task(compute, 2ns, label), Bytes(3), Bytes(-9));
  const Program program = std::move(builder).build();
  EXPECT_THAT(
      memory_steps(program, run(program)),
      testing::ElementsAre(testing::ElementsAre(MemoryStep{0ns, Bytes(10)}, MemoryStep{1ns, Bytes(6)},
                                                MemoryStep{1ns, Bytes(9)}, MemoryStep{3ns, Bytes(0)})));
}

// Property: where a pass is the peak, what passes hold at most, what is there beside them, and overheads are the
// peak; and the step never holds more than that. Gradients that are whole for a while are in the first of these.
TEST(MemorySteps, AreHeldOnWhatTheLedgerHasBesidePasses) {
  const std::vector<std::string> jobs[] = {
      {"parallelism={data: 64, zero_stage: 3, zero_group: 8}"},
      {"parallelism={pipeline: 4, zero_stage: 2}"},
      {"parallelism={pipeline: 4, zero_stage: 3}"},
      {"parallelism={tensor: 2, pipeline: 2, zero_stage: 1}", "training.recompute=full"},
      {"parallelism={pipeline: 2, zero_stage: 1}", "schedule=interleaved-1f1b"},
      {"parallelism={pipeline: 4, zero_stage: 1}", "schedule=zb-h1"}};
  for (std::vector<std::string> job : jobs) {
    job.emplace_back("options=null");
    const Scenario scenario = load(job);
    const Simulation simulation = simulate_in_full(scenario);
    const auto steps = memory_steps(simulation.program, simulation.timeline);
    for (std::size_t rank = 0; rank < simulation.report.memory.stages.size(); ++rank) {
      SCOPED_TRACE(testing::Message() << job.front() << " rank " << rank);
      const StageMemory& stage = simulation.report.memory.stages[rank];
      const auto sum = [](const MemorySums& sums) {
        return std::accumulate(sums.begin(), sums.end(), Bytes(0));
      };
      const Bytes most = std::ranges::max_element(steps[rank], {}, &MemoryStep::held)->held;
      ASSERT_TRUE(stage.moment.action);
      EXPECT_EQ(sum(stage.beside_passes) + most, stage.allocated());
      EXPECT_LE(sum(stage.in_step), stage.reserved());
    }
  }
}

}  // namespace
}  // namespace stagecraft
