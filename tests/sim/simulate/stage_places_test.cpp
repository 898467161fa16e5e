// Weights, ends of the model and what is summed over ranks are where the schedule has the stages.
//
// System: 8 layers on 4 pipeline ranks of one A100 node each in 2 GPUs of data parallelism.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/lower/stage_parameters.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

std::string job(const std::string& schedule, const std::string& more = {}, const std::string& model = {}) {
  return "stagecraft: 1\n"
         "model: {family: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 51200, max_sequence_length: 1024" +
         model +
         "}\n"
         "cluster: {node: dgx-a100-80gb, nodes: 1}\n"
         "parallelism: {pipeline: 4" +
         more + "}\nschedule: " + schedule + "\ntraining: {global_batch_size: 16}\n";
}

std::vector<Bytes> weights_of(const std::string& yaml) {
  std::vector<Bytes> weights;
  for (const StageMemory& stage : memory_of(scenario_of(yaml)).stages)
    weights.push_back(stage.of(MemoryClass::kWeights));
  return weights;
}

int count(const Simulation& simulation, const std::string& name) {
  int tasks = 0;
  for (std::uint32_t t = 0; t < simulation.program.task_count(); ++t)
    tasks += simulation.program.labels[simulation.program.label[TaskId(t)]].name == name ? 1 : 0;
  return tasks;
}

// A rank holds its own stage and that of the rank at the other end.
TEST(BothWays, DoubleTheWeights) {
  const std::string untied = ", tied_embeddings: false";
  const std::vector<Bytes> once = weights_of(job("1f1b", "", untied));
  for (const char* schedule : {"dualpipe", "chimera"}) {
    const std::vector<Bytes> twice = weights_of(job(schedule, "", untied));
    for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(twice[rank], once[rank] + once[3 - rank]);
  }
}

// Both ends on one rank hold one matrix, ends apart two: 51200 words of 1024 numbers in 16 bit.
TEST(TiedWords, AreHeldOnceByARankThatHasBothEnds) {
  const auto sum = [](const std::vector<Bytes>& weights) {
    Bytes all{};
    for (const Bytes rank : weights) all += rank;
    return all;
  };
  const Bytes matrix(std::int64_t{51200} * 1024 * 2);
  const Bytes loop = sum(weights_of(job("interleaved-1f1b", ", virtual_stages: 2")));
  for (const char* schedule : {"zb-v", "v-half", "v-min", "1f1b-v", "dualpipe-v", "hanayo"})
    EXPECT_EQ(sum(weights_of(job(schedule))), loop - matrix) << schedule;
  // Two copies of the model: each has a matrix at one end, and its head's is the other's.
  EXPECT_EQ(sum(weights_of(job("dualpipe"))), (loop - matrix) * 2);
}

TEST(TiedWords, AreSummedOnlyBetweenEndsThatAreApart) {
  EXPECT_EQ(count(simulate_in_full(scenario_of(job("1f1b"))), "embedding all-reduce"), 2);
  for (const char* schedule : {"zb-v", "hanayo", "dualpipe", "chimera"})
    EXPECT_EQ(count(simulate_in_full(scenario_of(job(schedule))), "embedding all-reduce"), 0) << schedule;
}

// Four stages, each on two ranks.
TEST(BothWays, SumTheGradientsOfTheirCopies) {
  for (const char* schedule : {"dualpipe", "chimera"}) {
    const Simulation simulation = simulate_in_full(scenario_of(job(schedule)));
    EXPECT_EQ(count(simulation, "sum of both copies"), 8) << schedule;
    EXPECT_GT(part_of(simulation.report, Category::kDataComm), Duration::zero());
    EXPECT_EQ(sum_of(simulation.report.breakdown), simulation.report.iteration_time);
  }
  EXPECT_EQ(count(simulate_in_full(scenario_of(job("1f1b"))), "sum of both copies"), 0);
}

// The lookup and the loss are on rank 0, which makes its neighbour's work lighter by both.
TEST(V, HasBothEndsOnRankZero) {
  const Simulation simulation = simulate_in_full(scenario_of(job("zb-v")));
  const StagePlaces places = simulation.prepared.plan.places();
  EXPECT_EQ(places.rank_of(0), 0);
  EXPECT_EQ(places.rank_of(7), 0);
  EXPECT_EQ(places.held_by(0), (std::vector<HeldStage>{{.stage = 0}, {.stage = 7}}));
  EXPECT_EQ(places.held_by(3), (std::vector<HeldStage>{{.stage = 3}, {.stage = 4}}));
  // Where the V turns the message stays on its rank.
  EXPECT_EQ(simulation.prices.edges[3].forward.total(), Duration::zero());
  EXPECT_GT(simulation.prices.edges[2].forward.total(), Duration::zero());
}

// Every replica by itself, and one that stands for all.
TEST(EveryPlacement, FoldsWithoutMovingATime) {
  for (const char* schedule :
       {"zb-v", "dualpipe", "dualpipe-v", "chimera", "hanayo", "pipedream-2bw", "pipemare",
        "{name: zb-h2, global_step: false}", "{name: 1f1b, iterations: 3}"}) {
    const Scenario scenario = scenario_of(job(schedule));
    const Report folded = simulate(scenario), unfolded = simulate(scenario, {.unfold = true});
    EXPECT_EQ(folded.iteration_time, unfolded.iteration_time) << schedule;
    EXPECT_EQ(folded.breakdown, unfolded.breakdown) << schedule;
    EXPECT_EQ(folded.bubble, unfolded.bubble) << schedule;
  }
}

// 4 bytes of every parameter: a second version, or a running average.
TEST(OrdersThatNeverDrain, KeepOneMoreCopyOfTheirWeights) {
  const MemoryLedger plain = memory_of(scenario_of(job("1f1b")));
  for (const char* schedule : {"pipedream-2bw", "pipemare"}) {
    const MemoryLedger ledger = memory_of(scenario_of(job(schedule)));
    for (std::size_t rank = 0; rank < 4; ++rank)
      EXPECT_EQ(ledger.stages[rank].of(MemoryClass::kWeights),
                plain.stages[rank].of(MemoryClass::kWeights) * 3)
          << schedule;  // 2 and 4 bytes
  }
}

std::string abstract(const std::string& schedule, int micro_batches = 8) {
  return "stagecraft: 1\n"
         "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}\n"
         "parallelism: {pipeline: 4}\nschedule: " +
         schedule + "\ntraining: {global_batch_size: " + std::to_string(micro_batches) + "}\n";
}

constexpr Duration kMs = std::chrono::milliseconds(1);

// p=4 m=16 F=I=W=1 (the published case): 51 with a barrier, 48 without, whose bubble was the fill of rank 3.
TEST(PostValidation, LetsZbH2ShowItsSpan) {
  EXPECT_EQ(simulate(scenario_of(abstract("zb-h2", 16))).iteration_time, 51 * kMs);
  EXPECT_EQ(simulate(scenario_of(abstract("{name: zb-h2, global_step: false}", 16))).iteration_time,
            48 * kMs);
}

// Rank 0 of 1f1b runs four forwards before it hears of the last rank: 4 ms, and half of the time for nothing.
TEST(PostValidation, PaysForRollBacksWhatTheyLose) {
  const Report never = simulate(scenario_of(abstract("{name: 1f1b, global_step: false}")));
  const Report half = simulate(scenario_of(abstract("{name: 1f1b, global_step: false, rollback: 0.5}")));
  EXPECT_EQ(half.iteration_time - never.iteration_time, 2 * kMs);
  EXPECT_EQ(part_of(half, Category::kOther), 2 * kMs);
  EXPECT_EQ(sum_of(half.breakdown), half.iteration_time);
}

// Behind a barrier nothing runs into anything: each of them takes what one does.
TEST(IterationsInARow, TakeWhatOneTakesBehindABarrier) {
  const Duration one = simulate(scenario_of(abstract("1f1b"))).iteration_time;
  EXPECT_EQ(one, 33 * kMs);
  EXPECT_EQ(simulate(scenario_of(abstract("{name: 1f1b, iterations: 5}"))).iteration_time, one);
}

// The busiest rank works all the time: 8 x 3 ms.
TEST(OrdersThatNeverDrain, HaveNoBubble) {
  for (const char* schedule : {"pipedream-2bw", "pipemare"}) {
    const Report report = simulate(scenario_of(abstract(schedule)));
    EXPECT_EQ(report.iteration_time, 24 * kMs) << schedule;
    EXPECT_EQ(part_of(report, Category::kBubble), Duration::zero()) << schedule;
    EXPECT_EQ(report.bubble.over_ideal, 0) << schedule;
  }
}

// Stages that do not say what a forward again takes take as long as for a forward.
TEST(Abstract, StagesRunForwardsAgainAsForwards) {
  const auto varuna = [](const std::string& more) {
    std::string yaml = abstract("varuna");
    return simulate(scenario_of(yaml.replace(yaml.find("1 ms}"), 5, "1 ms" + more + "}"))).iteration_time;
  };
  EXPECT_EQ(varuna(""), varuna(", recompute: 1 ms"));
  EXPECT_LT(varuna(""), varuna(", recompute: 2 ms"));
}

// An order that needs more than the scenario says is refused with what is missing.
TEST(Refused, IsWhatAnOrderCannotDoWithout) {
  const auto path_of = [](const std::string& yaml) -> std::string {
    try {
      (void)simulate(scenario_of(yaml));
    } catch (const ScenarioError& error) {
      return error.diagnostics().front().path;
    }
    return "";
  };
  EXPECT_EQ(path_of(job("varuna")), "training.recompute");
  EXPECT_EQ(path_of(job("pipemare", ", zero_stage: 1")), "parallelism.zero_stage");
  EXPECT_EQ(path_of(job("pipemare") + "network: flow\n"), "network");
  EXPECT_EQ(path_of(job("dualpipe", ", virtual_stages: 2")), "parallelism.virtual_stages");
  EXPECT_EQ(path_of(job("{name: 1f1b, global_step: false, iterations: 2}")), "schedule.iterations");
}

}  // namespace
}  // namespace stagecraft
