// ReCycle as a policy of a job.
//
//   System  three pipelines of two stages, 4 micro-batches of 10 s on each: 50 s a step. A dead worker
//           adds (6 − 4)·10 s on the last stage and, unoptimised, on any. 5 s to re-plan, 3 s to fetch
//           a state, 8 s to restart, 7 s to load.
#include "sim/goodput/policies/recycle.hpp"

#include <gtest/gtest.h>

#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft {
namespace {

using made::addition;
using made::fault;
using made::removal;
using made::seconds;

RecycleSpec three_by_two(RecycleForm form) {
  return {.shape = {.stage_times = {seconds(10), seconds(10)},
                    .micro_batches = 4,
                    .pipelines = 3,
                    .fault_free = seconds(50)},
          .form = form,
          .samples = 1,
          .reconfigure = seconds(5),
          .restart = seconds(8),
          .peer_transfer = seconds(3)};
}

Account run(const History& history, std::int64_t horizon, RecycleForm form = RecycleForm::kUnoptimised) {
  Recycle policy(three_by_two(form));
  JobSpec job = made::job(horizon, 50);
  job.checkpointing = Checkpointing{.every_steps = 2, .load = seconds(7)};
  return run_job(job, history, policy);
}

TEST(Recycle, OthersDoTheWorkOfADeadWorker) {
  // 50; cut at 60 after 10 s; 65, then 70 s a step: 135, 205.
  const Account account = run(made::history(6, {removal(60, 3)}), 205);
  EXPECT_EQ(account.steps, 3);
  EXPECT_EQ(account.undone_steps, 0);
  EXPECT_EQ(account[Bucket::kLostWork], seconds(10));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(5));
  EXPECT_EQ(account[Bucket::kDegraded], seconds(40));
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(0));
}

TEST(Recycle, BubblesOfTheFirstStageTakeSomeOfIt) {
  // Node 2 is of stage 0 (pipeline 1): 6·10 instead of max(4·10, 4·10 + 10): 10 s more, not 20.
  const Account account = run(made::history(6, {removal(60, 2)}), 185, RecycleForm::kLowerBound);
  EXPECT_EQ(account.steps, 3);
  EXPECT_EQ(account[Bucket::kDegraded], seconds(20));
}

TEST(Recycle, AReturningNodeTakesTheDeadWorkersPlace) {
  // 65..135 degraded; node 3 is back at 100: at 135 re-planning and a state, 143; then 193.
  const Account account = run(made::history(6, {removal(60, 3), addition(100, 3)}), 193);
  EXPECT_EQ(account.steps, 3);
  EXPECT_EQ(account[Bucket::kDegraded], seconds(20));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(10));
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(3));
}

TEST(Recycle, ANodeThatReturnsInTheStallRejoinsAfterOneStep) {
  const Account account = run(made::history(6, {removal(60, 3), addition(62, 3)}), 193);
  EXPECT_EQ(account.steps, 3);
  EXPECT_EQ(account[Bucket::kDegraded], seconds(20));
}

TEST(Recycle, ANodeReturnsWhereReplanningTakesNoTime) {
  // A step of 70 from 60; at 130 node 3 gets its state, 133; then 50.
  RecycleSpec spec = three_by_two(RecycleForm::kUnoptimised);
  spec.reconfigure = {};
  Recycle policy(spec);
  const Account account =
      run_job(made::job(183, 50), made::history(6, {removal(60, 3), addition(100, 3)}), policy);
  EXPECT_EQ(account.steps, 3);
  EXPECT_EQ(account[Bucket::kDegraded], seconds(20));
}

TEST(Recycle, AProcessFaultRejoinsAtOnce) {
  // 60 + 5 + 3 = 68, and full steps again.
  const Account account = run(made::history(6, {fault(60, 3)}), 118);
  EXPECT_EQ(account.steps, 2);
  EXPECT_EQ(account[Bucket::kDegraded], seconds(0));
}

TEST(Recycle, AStageWithoutAWorkerGoesBackToTheCheckpoint) {
  // Stage 1 is nodes 1, 3, 5. Checkpoint at 100; a step to 150; all lost at 160. Restart 168, load 175, on
  // nodes 0, 2, 4 as two workers of stage 0 and one of stage 1: 12 micro-batches on that one, (12 + 1)·10 =
  // 130 s.
  const Account account = run(made::history(6, {removal(160, 1), removal(160, 3), removal(160, 5)}), 305);
  EXPECT_EQ(account.undone_steps, 1);
  EXPECT_EQ(account.steps, 2 + 1);
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(7));
}

TEST(Recycle, FewerNodesThanStagesAreStopped) {
  std::vector<Incident> incidents;
  for (int node = 0; node < 5; ++node) incidents.push_back(removal(60, node));
  incidents.push_back(addition(200, 0));
  const Account account = run(made::history(6, incidents), 400);
  EXPECT_EQ(account[Bucket::kIdle], seconds(140));
  EXPECT_EQ(account.undone_steps, 1);  // there was no checkpoint yet
  EXPECT_EQ(account.steps, 1);         // 200 + 8, nothing to load: (12 + 1)·10 s
}

// A worker that was given a place but lost its peers before the state came has none.
TEST(Recycle, AStateOnItsWayIsNoState) {
  // Checkpoint at 100; nodes 3 and 5 lost at 110, 3 back at 120. The step of 115 ends at 245 (12
  // micro-batches on node 1); re-planning to 250, the state of node 3 to 253. At 252 node 1, its only source,
  // goes: back to the checkpoint.
  const Account account =
      run(made::history(6, {removal(110, 3), removal(110, 5), addition(120, 3), removal(252, 1)}), 300);
  EXPECT_EQ(account.undone_steps, 1);
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(2 + 7));
}

}  // namespace
}  // namespace stagecraft
