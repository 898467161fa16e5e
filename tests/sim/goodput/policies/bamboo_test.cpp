// Bamboo as a policy of a job.
//
//   System  the hand-made cases of the replay: two stages, 300 s a step of two pipelines, 500 s of one,
//           rendezvous of 20 s (local) and 30 s (global), slowdown 1.5. The job's first step begins at
//           0, the replay's after 45 s of creation and a rendezvous of 30 s: everything here is 75 s
//           earlier.
#include "sim/goodput/policies/bamboo.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft {
namespace {

using made::fault;
using made::removal;
using made::seconds;

std::optional<ShapedStep> step_of(int pipelines) {
  return ShapedStep{.duration = seconds(pipelines == 2 ? 300 : 500), .samples = 1, .nodes = 2 * pipelines};
}

BambooSpec two_by_two() {
  return {.stages = 2,
          .pipelines = 2,
          .step = step_of,
          .global_rendezvous = seconds(30),
          .local_rendezvous = seconds(20),
          .slowdown = 1.5,
          .rebalance_threshold = 0.05,
          .peer_transfer = {}};
}

JobSpec job_of(std::int64_t horizon) {
  JobSpec job = made::job(horizon, 300);
  job.checkpointing = Checkpointing{.every_steps = 1, .load = seconds(7)};
  return job;
}

Account run(const History& history, BambooSpec spec = two_by_two(), std::int64_t horizon = 2925) {
  Bamboo policy(std::move(spec));
  return run_job(job_of(horizon), history, policy);
}

Incident joining(std::int64_t at, int node) {
  Incident incident = made::addition(at, node);
  incident.due = seconds(at + 45);
  return incident;
}

// So many nodes at the start, and one that is not there yet.
History starting_with(int nodes, std::vector<Incident> incidents) {
  for (int node = nodes; node-- > 0;) incidents.insert(incidents.begin(), made::addition(0, node));
  History history = made::history(nodes + 1, std::move(incidents));
  history.all_up_at_start = false;
  return history;
}

TEST(Bamboo, ALostNodeSlowsTheStepAndAPipelineGoesAtItsEnd) {
  // Steps end at 300, 325 + 275·1.5 = 737.5; rendezvous to 757.5; four of 500 s.
  const Account account = run(made::history(4, {removal(325, 1)}));
  EXPECT_EQ(account.steps, 6);
  EXPECT_EQ(account.failures, 1);  // training stopped for it, at that end
  EXPECT_EQ(account.restarts, 1);
  EXPECT_EQ(account.recovering, seconds(20));
  EXPECT_EQ(account.causes.at(0).down, seconds(20));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(20));
  EXPECT_EQ(account[Bucket::kLostWork], std::chrono::milliseconds(167'500));  // 2757.5..2925
}

// Everybody waits for node 1 until 365; the 275 s that were left of the step end at 777.5, the rendezvous at
// 797.5; four of 500 s.
TEST(Bamboo, DetectsALossBeforeTheShadowTakesOver) {
  const Account account = run(made::history(4, {removal(325, 1, 40)}));
  EXPECT_EQ(account.steps, 6);
  EXPECT_EQ(account[Bucket::kDetect], seconds(40));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(20));
  EXPECT_EQ(account[Bucket::kLostWork], std::chrono::milliseconds(127'500));  // 2797.5..2925
  EXPECT_EQ(account.failures, 1);
  EXPECT_EQ(account.restarts, 1);
  EXPECT_EQ(account.recovering, seconds(40 + 20));
  EXPECT_EQ(account.causes.at(0).down, seconds(40 + 20));
}

// Four nodes until 325, three from 365 on, and a pipeline of two from 797.5 on.
TEST(Bamboo, TheTimelineCountsNoLostNodeAmongThoseThatTrain) {
  JobSpec job = job_of(2925);
  job.timeline = true;
  Bamboo policy(two_by_two());
  std::vector<int> nodes;
  for (const TimelineRow& row : run_job(job, made::history(4, {removal(325, 1, 40)}), policy).timeline)
    if (row.phase == Phase::kTraining && (nodes.empty() || nodes.back() != row.nodes))
      nodes.push_back(row.nodes);
  EXPECT_THAT(nodes, testing::ElementsAre(4, 3, 2));
}

// Node 3, of the other pipeline, is known to be lost at 375, ten seconds after node 1.
TEST(Bamboo, GoesOnOnceItKnowsOfEveryLoss) {
  const Account account = run(made::history(4, {removal(325, 1, 40), removal(345, 3, 30)}));
  EXPECT_EQ(account[Bucket::kDetect], seconds(50));
  EXPECT_EQ(account.failures, 1);
  EXPECT_EQ(account.steps, 6);  // 375 + 412.5 + 20 = 807.5, and four of 500 s
}

// Node 0 has taken over from node 1: ten seconds into that, the step of 25 s is lost, and 30 s later known to
// be; rendezvous to 395, five of 500 s.
TEST(Bamboo, AFatalLossEndsTheWaitForAnother) {
  const Account account = run(made::history(4, {removal(325, 1, 40), removal(335, 0, 30)}));
  EXPECT_EQ(account[Bucket::kDetect], seconds(10 + 30));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(30));
  EXPECT_EQ(account[Bucket::kLostWork], seconds(25 + 30));
  EXPECT_EQ(account.failures, 1);
  EXPECT_EQ(account.steps, 6);
}

// Nodes 0 and 2 are in a rendezvous from 737.5 to 757.5. Node 2 goes at 747, which is known at 787; node 3 has
// its stage; the rendezvous begins again and ends at 807; four of 500 s.
TEST(Bamboo, DetectsALossInARendezvousBeforeItBeginsAgain) {
  BambooSpec spec = two_by_two();
  spec.peer_transfer = seconds(3);
  const Account account = run(made::history(4, {removal(325, 1), removal(747, 2, 40)}), std::move(spec));
  EXPECT_EQ(account[Bucket::kDetect], seconds(40));
  EXPECT_EQ(account[Bucket::kReconfigure], std::chrono::milliseconds(9'500 + 20'000));
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(0));
  EXPECT_EQ(account.steps, 6);
}

// A checkpoint after each step, of 10 s, in which the loss of node 1 is known after 4 of its 40 s are over.
TEST(Bamboo, EndsACheckpointBeforeItWaitsForALostNode) {
  JobSpec job = job_of(2925);
  job.checkpointing->block = seconds(10);
  Bamboo policy(two_by_two());
  const Account account = run_job(job, made::history(4, {removal(306, 1, 40)}), policy);
  // 300, checkpoint to 310, waits to 346, step of 450 s to 796, rendezvous to 816; one of 500 s, behind which the
  // plan is reviewed, and three of 510 s.
  EXPECT_EQ(account[Bucket::kCheckpoint], seconds(10 + 3 * 10));
  EXPECT_EQ(account[Bucket::kDetect], seconds(36));
  EXPECT_EQ(account.causes.at(0).down, seconds(36 + 20));
  EXPECT_EQ(account.steps, 6);
}

TEST(Bamboo, AWaitingNodeReplacesTheLostOne) {
  const Account account = run(made::history(5, {removal(325, 1)}));
  EXPECT_EQ(account.steps, 9);
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(20));
}

// Node 0 had the only other copy of node 1's own state. A pipeline of node 0 and of another gets the states
// of both pipelines.
TEST(Bamboo, HasAStateInEachPlaceWherePipelinesShareThemOut) {
  const History both = made::history(4, {removal(325, 1), removal(375, 0)});
  const History one = made::history(4, {removal(325, 1)});
  BambooSpec spec = two_by_two();
  spec.peer_transfer = seconds(3);
  EXPECT_EQ(run(both, spec)[Bucket::kStateTransfer], seconds(0));
  EXPECT_EQ(run(one, spec)[Bucket::kStateTransfer], seconds(0));
  spec.copies = false;
  EXPECT_EQ(run(both, spec)[Bucket::kStateTransfer], seconds(7)) << "from the checkpoint";
  EXPECT_EQ(run(one, spec)[Bucket::kStateTransfer], seconds(3));
}

TEST(Bamboo, TheLossOfAnOverloadedNodeIsFatal) {
  const Account account = run(made::history(4, {removal(325, 1), removal(375, 0)}));
  EXPECT_EQ(account.steps, 6);
  EXPECT_EQ(account.failures, 1);
  EXPECT_EQ(account.undone_steps, 0);  // nodes 2 and 3 have both stages
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(30));
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(0));
}

TEST(Bamboo, BothPipelinesMayBeHitInOneStep) {
  const Account account = run(made::history(4, {removal(325, 1), removal(375, 3)}));
  EXPECT_EQ(account.steps, 6);
  EXPECT_EQ(account.failures, 1);  // one stop for both
}

TEST(Bamboo, TheLastStageShadowsTheFirst) {
  EXPECT_EQ(run(made::history(4, {removal(325, 0)})).steps, 6);
}

TEST(Bamboo, AWaitingNodeThatGoesSlowsNobody) {
  const Account account = run(made::history(5, {removal(325, 4)}));
  EXPECT_EQ(account.steps, 9);
  EXPECT_EQ(account[Bucket::kDegraded], seconds(0));
}

TEST(Bamboo, ANewcomerMakesAPipelineAtAStepEnd) {
  // Three nodes train 500 s; node 3 asked for at 625, there at 670; rendezvous 1000..1020; six of 300 s.
  const History history = starting_with(3, {joining(625, 3)});
  const Account account = run(history);
  EXPECT_EQ(account.steps, 8);
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(20));
}

TEST(Bamboo, ANewcomerInTheStallIsSeenAfterTheNextStep) {
  // Node 1 lost at 325; rendezvous 737.5..757.5, node 4 there from 750 on: 500 s to 1257.5, rendezvous, 300 s
  // each.
  const History history = starting_with(4, {removal(325, 1), joining(705, 4)});
  const Account account = run(history);
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(40));
  EXPECT_EQ(account.steps, 3 + 5);
}

TEST(Bamboo, ANodeWhoseProcessesDiedWaitsAndIsPutBack) {
  // It goes as with a waiting node: 737.5, rendezvous, and its state comes from the other pipeline.
  BambooSpec spec = two_by_two();
  spec.peer_transfer = seconds(3);
  const Account account = run(made::history(4, {fault(325, 1)}), std::move(spec));
  EXPECT_EQ(account.steps, 9);
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(20));
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(3));
}

TEST(Bamboo, WhoTakesAPlaceThatHeShadowedNeedsNoState) {
  // Node 1 is lost; of the second pipeline node 2 takes its place, whose stage it had as a shadow.
  BambooSpec spec = two_by_two();
  spec.peer_transfer = seconds(3);
  EXPECT_EQ(run(made::history(4, {removal(325, 1)}), std::move(spec))[Bucket::kStateTransfer], seconds(0));
}

TEST(Bamboo, AStateThatNobodyHasComesFromTheCheckpoint) {
  // One pipeline of three stages: nodes 1 and 2 have stages 1, 2, 0. Node 0 alone has 0 and 1.
  BambooSpec spec = two_by_two();
  spec.stages = 3;
  spec.pipelines = 1;
  spec.step = [](int) { return ShapedStep{.duration = seconds(300), .samples = 1, .nodes = 3}; };
  // The loss of 1 is taken over by 0; that of 2, whose shadow is gone, is fatal; stage 2 has no owner left.
  const Account account = run(made::history(6, {removal(310, 1), removal(320, 2)}), std::move(spec));
  EXPECT_EQ(account.failures, 1);
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(7));
}

TEST(Bamboo, BelowOnePipelineItStops) {
  const Account account =
      run(made::history(4, {removal(310, 1), removal(320, 2), removal(330, 0), joining(1000, 0)}));
  // Node 3 had both stages, so that nothing is undone: step to 300, fatal at 330, stopped until 1045, 30 s, 3
  // steps of 500.
  EXPECT_EQ(account.steps, 1 + 3);
  EXPECT_EQ(account.undone_steps, 0);
  EXPECT_EQ(account[Bucket::kIdle], seconds(1045 - 330));
}

// 2·1/(P·S − 1) of 4 × 10 nodes is 0.0513, of 4 × 12 it is 0.0426: the first rebalances at the step end, the
// second goes on.
TEST(Bamboo, FewOverloadedNodesInALargeJobGoOn) {
  for (const int stages : {10, 12}) {
    BambooSpec spec = two_by_two();
    spec.stages = stages;
    spec.pipelines = 4;
    spec.step = [](int) { return ShapedStep{.duration = seconds(300), .samples = 1, .nodes = 4}; };
    const Account account = run(made::history(4 * stages, {removal(325, 1)}), std::move(spec));
    EXPECT_EQ(account[Bucket::kReconfigure], seconds(stages == 10 ? 20 : 0));
    // Steps end at 300, 737.5; then each 300 s after a rendezvous, or 450 s.
    EXPECT_EQ(account.steps, stages == 10 ? 2 + 7 : 2 + 4);
  }
}

}  // namespace
}  // namespace stagecraft
