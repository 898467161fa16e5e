#include "bench/workload_a.hpp"

#include <gtest/gtest.h>

#include "sim/engine/engine.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

struct Row {
  WorkloadA workload;
  std::size_t tasks;
  Duration simulated;
};

// Oracle: ASTRA-sim's analytical, congestion-unaware network (g++ 12, as shipped) printed 251.998, 513.286
// and 2081.014 ms for the same graphs, in which it counts the same tasks.
TEST(WorkloadA, TakesAsLongAsInAstraSim) {
  const std::vector<Row> rows = {
      {.workload = {.stages = 8, .micro_batches = 64}, .tasks = 2816, .simulated = 251'998us},
      {.workload = {.stages = 16, .micro_batches = 128}, .tasks = 11776, .simulated = 513'286us},
      {.workload = {.stages = 64, .micro_batches = 512}, .tasks = 194560, .simulated = 2'081'014us},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << "p=" << row.workload.stages << " m=" << row.workload.micro_batches);
    const Program program = build(row.workload);
    EXPECT_EQ(task_count(row.workload), row.tasks);
    EXPECT_EQ(program.task_count(), row.tasks);
    EXPECT_EQ(run(program).makespan, row.simulated);
    EXPECT_EQ(longest_path(program).makespan, row.simulated);
  }
}

// T = (m+p-1)(F+B) + K*c with K = 2(p + m - 2 - ceil(m/p)), F = 1 ms, B = 2 ms, c = 314.5 us: a fit to what
// ASTRA-sim gives.
TEST(WorkloadA, TakesTwoMessageDelaysPerMicroBatch) {
  for (const auto& [p, m] : {std::pair{4, 64}, {2, 64}, {16, 40}, {2, 2}, {8, 64}}) {
    SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m);
    const int delays = 2 * (p + m - 2 - (m + p - 1) / p);
    EXPECT_EQ(run(build({.stages = p, .micro_batches = m})).makespan,
              (m + p - 1) * 3000us + delays * Duration(314'500ns));
  }
}

TEST(WorkloadA, CountsOneAllReducePerRankWhenThereAreReplicas) {
  // 8 * (2*8*64 + 4*7*64) + 8*8 = 22592
  const WorkloadA workload{.stages = 8, .micro_batches = 64, .replicas = 8};
  EXPECT_EQ(task_count(workload), 22592u);
  EXPECT_EQ(build(workload).task_count(), 22592u);
}

TEST(WorkloadA, CountsThreeMillionTasksAtItsLargest) {
  EXPECT_EQ(task_count({.stages = 64, .micro_batches = 512, .replicas = 16}), 3'113'984u);
}

// Replicas do the same at the same time, so one of them tells the time of all. The ring of 8 adds 14 steps of
// 64 MiB / 50 GiB/s + 2 us = 1252 us to the 251.998 ms of one replica: 269.526 ms.
TEST(WorkloadA, FoldedTakesAsLongAsUnfolded) {
  const WorkloadA unfolded{.stages = 8, .micro_batches = 64, .replicas = 8};
  WorkloadA folded = unfolded;
  folded.folded = true;
  EXPECT_EQ(build(folded).task_count(), 2816u + 8u);
  EXPECT_EQ(run(build(folded)).makespan, 269'526us);
  EXPECT_EQ(run(build(unfolded)).makespan, 269'526us);
}

}  // namespace
}  // namespace stagecraft
