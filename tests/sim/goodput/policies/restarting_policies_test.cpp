// Checkpoint-restart, hot spares and elastic data parallelism on incidents that a person can follow.
#include <gtest/gtest.h>

#include "base/check.hpp"
#include "sim/goodput/job.hpp"
#include "sim/goodput/policies/checkpoint_restart.hpp"
#include "sim/goodput/policies/elastic.hpp"
#include "sim/goodput/policies/hot_spares.hpp"
#include "sim/goodput/restart_time.hpp"
#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft {
namespace {

using made::addition;
using made::fault;
using made::history;
using made::removal;
using made::seconds;

// n nodes train n samples in a step of 10 s.
ShapeOf shrinking() {
  return [](int nodes) -> std::optional<ShapedStep> {
    if (nodes < 1) return std::nullopt;
    return ShapedStep{.duration = seconds(10), .samples = nodes, .nodes = nodes};
  };
}
JobSpec job(std::int64_t horizon, int nodes) {
  JobSpec spec = made::job(horizon, 10, Checkpointing{.every_steps = 1, .load = seconds(2)});
  spec.ideal.samples = nodes;
  return spec;
}
std::int64_t in_seconds(const Account& account, Bucket bucket) {
  return account[bucket] / seconds(1);
}

TEST(RestartTime, IsLinearInTheLogarithmOfGpus) {
  const std::vector<std::pair<int, Duration>> rows = {
      {16, seconds(20)}, {64, seconds(40)}, {256, seconds(100)}};
  EXPECT_EQ(restart_time(rows, 8), seconds(20));
  EXPECT_EQ(restart_time(rows, 16), seconds(20));
  EXPECT_EQ(restart_time(rows, 32), seconds(30));
  EXPECT_EQ(restart_time(rows, 128), seconds(70));
  EXPECT_EQ(restart_time(rows, 1024), seconds(100));
  EXPECT_THROW((void)restart_time({}, 1), InternalError);
}

CheckpointRestart restarting(LostNode lost, Duration between_failures = {}) {
  return CheckpointRestart({.nodes = 4,
                            .lost = lost,
                            .restart = {{1, seconds(5)}},
                            .shape = shrinking(),
                            .between_failures = between_failures});
}

TEST(CheckpointRestart, AReplacedNodeCostsTheRestartAlone) {
  CheckpointRestart policy = restarting(LostNode::kReplaced);
  const Account account = run_job(job(100, 4), history(4, {removal(23, 1, 3)}), policy);
  EXPECT_EQ(account.samples, 4 * 8);  // 20 s; 3 lost, 3 to detect, 5 + 2 to restart: 33, and six more steps
  EXPECT_EQ(in_seconds(account, Bucket::kIdle), 0);
  EXPECT_EQ(in_seconds(account, Bucket::kReconfigure), 5);
  EXPECT_EQ(in_seconds(account, Bucket::kStateTransfer), 2);
}

TEST(CheckpointRestart, ItMayWaitForARepair) {
  CheckpointRestart policy = restarting(LostNode::kWaitedFor);
  const Account account = run_job(job(100, 4), history(4, {removal(23, 1, 3), addition(43, 1)}), policy);
  EXPECT_EQ(in_seconds(account, Bucket::kIdle), 43 - 26);
  EXPECT_EQ(account.samples, 4 * 7);  // from 50
  EXPECT_EQ(account.recovering, seconds(50 - 23));
}

TEST(CheckpointRestart, ItMayGoOnWithFewerNodesUntilMorePay) {
  const std::vector<Incident> incidents = {removal(23, 1, 3), addition(43, 1)};
  // 3 of 4 nodes from 33; steps end at 43, 53, …. The node is back at 43; a restart costs 7 s, a quarter is
  // gained.
  CheckpointRestart soon = restarting(LostNode::kDoneWithout, seconds(20));
  const Account stays = run_job(job(103, 4), history(4, incidents), soon);
  EXPECT_EQ(stays.samples, 2 * 4 + 7 * 3);
  EXPECT_EQ(stays.changes, 0);
  CheckpointRestart late = restarting(LostNode::kDoneWithout, seconds(1000));
  const Account grows = run_job(job(100, 4), history(4, incidents), late);
  EXPECT_EQ(grows.samples, 2 * 4 + 3 + 5 * 4);  // checkpoint at 43, four nodes from 50
  EXPECT_EQ(grows.changes, 1);
  EXPECT_EQ(grows.undone_steps, 0);
  EXPECT_EQ(in_seconds(grows, Bucket::kDegraded), 2);  // a quarter of 10 s, rounded down by the second
}

TEST(CheckpointRestart, ANewcomerIsUsedWhenItIsReady) {
  CheckpointRestart policy = restarting(LostNode::kWaitedFor);
  Incident slow_start = addition(43, 1);
  slow_start.due = seconds(60);
  const Account account = run_job(job(107, 4), history(4, {removal(23, 1, 3), slow_start}), policy);
  EXPECT_EQ(in_seconds(account, Bucket::kIdle), 60 - 26);
  EXPECT_EQ(account.samples, 4 * 6);  // from 67
}

// 3 of 4 nodes from 33; the step that ends at 63 is the first one behind its creation. Four nodes from 70.
TEST(CheckpointRestart, ThreeNodesTrainWhileTheFourthIsCreated) {
  Incident slow_start = addition(43, 1);
  slow_start.due = seconds(60);
  CheckpointRestart grows = restarting(LostNode::kDoneWithout, seconds(1000));
  const Account account = run_job(job(100, 4), history(4, {removal(23, 1, 3), slow_start}), grows);
  EXPECT_EQ(account.samples, 2 * 4 + 3 * 3 + 3 * 4);
  EXPECT_EQ(in_seconds(account, Bucket::kIdle), 0);

  CheckpointRestart stays = restarting(LostNode::kDoneWithout, seconds(1000));
  const Account without =
      run_job(job(103, 4), history(4, {removal(23, 1, 3), slow_start, removal(55, 1)}), stays);
  EXPECT_EQ(without.samples, 2 * 4 + 7 * 3);
  EXPECT_EQ(in_seconds(without, Bucket::kReconfigure), 5);
}

// Places 0, 2, 4, … hold one state, and 1, 3, 5, … the other.
std::vector<std::vector<int>> every_other(int places) {
  std::vector<std::vector<int>> holders(2);
  for (int place = 0; place < places; ++place) holders[static_cast<std::size_t>(place % 2)].push_back(place);
  return holders;
}

HotSparesSpec with_spares() {
  return {.nodes = 4,
          .step = seconds(10),
          .samples = 4,
          .swap = seconds(6),
          .restart = {{1, seconds(15)}},
          .holders = every_other,
          .peer_transfer = seconds(1)};
}

// System: 4 nodes and a spare. Expectations: the first loss takes it (swap 6, load 2: from 28); the second
// stops the job until the first node is repaired, and then it restarts cold (15 + 2: from 117).
TEST(HotSpares, ThePoolAnswersUntilItIsEmpty) {
  HotSpares policy(with_spares());
  const Account account = run_job(
      job(200, 4), history(5, {removal(20, 1), removal(60, 2), addition(100, 1), addition(110, 2)}), policy);
  EXPECT_EQ(account.failures, 2);
  EXPECT_EQ(in_seconds(account, Bucket::kReconfigure), 6 + 15);
  EXPECT_EQ(in_seconds(account, Bucket::kIdle), 40);
  // 10 (the step that ends at 20 is cut); 28..58; 117..197.
  EXPECT_EQ(account.samples, 4 * (1 + 3 + 8));
}

TEST(HotSpares, AProcessFaultIsAnsweredInPlace) {
  HotSpares policy(with_spares());
  const Account account = run_job(job(100, 4), history(5, {fault(25, 1)}), policy);
  EXPECT_EQ(in_seconds(account, Bucket::kReconfigure), 6);
}

TEST(HotSpares, ARestartThatIsStruckStaysCold) {
  // Stopped at 25, node 1 is back at 40; the cold restart of 40..55 is struck at 50 and begins again.
  HotSpares policy(with_spares());
  const Account account =
      run_job(job(100, 4), history(4, {removal(25, 1), addition(40, 1), fault(50, 0)}), policy);
  EXPECT_EQ(in_seconds(account, Bucket::kReconfigure), 10 + 15);
}

TEST(HotSpares, ASpareThatFailsIsNoFailureOfTheJob) {
  HotSpares policy(with_spares());
  const Account account = run_job(job(100, 4), history(5, {removal(25, 4), fault(30, 0)}), policy);
  EXPECT_EQ(account.failures, 1);
}

TEST(HotSpares, StateFromPeersLosesTheStepInFlightOnly) {
  HotSparesSpec spec = with_spares();
  spec.state = StateSource::kPeer;
  JobSpec without_checkpoints = job(100, 4);
  without_checkpoints.checkpointing.reset();
  HotSpares one(spec);  // place 1's state is at place 3 as well
  const Account kept = run_job(without_checkpoints, history(6, {removal(25, 1)}), one);
  EXPECT_EQ(kept.undone_steps, 0);
  EXPECT_EQ(in_seconds(kept, Bucket::kStateTransfer), 1);
  HotSpares both(spec);
  const Account gone = run_job(without_checkpoints, history(6, {removal(25, 1), removal(25, 3)}), both);
  EXPECT_EQ(gone.undone_steps, 2);
  HotSpares later(spec);  // the stall that would have restored place 1 is struck: both are gone
  const Account struck = run_job(without_checkpoints, history(6, {removal(25, 1), removal(30, 3)}), later);
  EXPECT_EQ(struck.undone_steps, 2);
  HotSpares restored(spec);  // 25 + 6 + 5 + 1: place 1 is whole again
  const Account apart = run_job(without_checkpoints, history(6, {removal(25, 1), removal(38, 3)}), restored);
  EXPECT_EQ(apart.undone_steps, 0);
}

// System: 3 replicas of 2 nodes; the copy of place i's shard is at place i + 2. Expectations: places 1 and 2
// have theirs at 3 and 4; of 1 and 3 the first's copy went with the second, though place 5 does the same
// work.
TEST(HotSpares, ABackupIsLostWithItsHolder) {
  HotSparesSpec spec = with_spares();
  spec.nodes = 6;
  spec.samples = 6;
  spec.state = StateSource::kPeer;
  JobSpec without_checkpoints = job(100, 6);
  without_checkpoints.checkpointing.reset();
  const auto undone = [&](bool backups, int second) {
    spec.backup_distance = backups ? 2 : 0;
    HotSpares policy(spec);
    return run_job(without_checkpoints, history(8, {removal(25, 1), removal(25, second)}), policy)
        .undone_steps;
  };
  EXPECT_EQ(undone(true, 2), 0);
  EXPECT_EQ(undone(true, 3), 2);
  EXPECT_EQ(undone(false, 3), 0);
}

ElasticSpec elastic() {
  return {.replicas = 4,
          .replica_nodes = 1,
          .min_replicas = 2,
          .stall = seconds(6),
          .reload = seconds(30),
          .rejoin = seconds(4),
          .restart = {{1, seconds(20)}},
          .shape = shrinking()};
}

// Expectations: cut at 25, stall to 31 (of which 2 to detect); three replicas, steps end at 41, 51, 61; the
// fourth has its state at 61; all wait to 65; steps of four end at 75, 85, 95.
TEST(Elastic, TheOthersGoOnWhileAReplicaReloads) {
  ElasticDataParallel policy(elastic());
  const Account account = run_job(job(95, 4), history(4, {fault(25, 1, 2)}), policy);
  EXPECT_EQ(account.samples, 2 * 4 + 3 * 3 + 3 * 4);
  EXPECT_EQ(account.undone_steps, 0);
  EXPECT_EQ(in_seconds(account, Bucket::kDetect), 2);
  EXPECT_EQ(in_seconds(account, Bucket::kReconfigure), 4 + 4);
  EXPECT_EQ(in_seconds(account, Bucket::kLostWork), 5);
  EXPECT_EQ(account.changes, 1);
}

// The same where the node is lost, and back at 28: what is left of the stall stays.
TEST(Elastic, AnArrivalInTheStallDoesNotEndIt) {
  ElasticDataParallel policy(elastic());
  const Account account = run_job(job(95, 4), history(4, {removal(25, 1, 2), addition(28, 1)}), policy);
  EXPECT_EQ(account.samples, 2 * 4 + 3 * 3 + 3 * 4);
  EXPECT_EQ(in_seconds(account, Bucket::kReconfigure), 4 + 4);
}

// Lost at 25 and at 26: however long it takes to notice, the stall lasts to 32, and two replicas end steps at 42,
// 52 and 62.
TEST(Elastic, AFailureInTheDetectionOfAnotherBeginsTheStallAgain) {
  for (const int detect : {0, 2, 6}) {
    SCOPED_TRACE(detect);
    ElasticDataParallel policy(elastic());
    const Account account =
        run_job(job(65, 4), history(4, {fault(25, 1, detect), fault(26, 2, detect)}), policy);
    EXPECT_EQ(account.samples, 2 * 4 + 3 * 2);
    EXPECT_EQ(in_seconds(account, Bucket::kDetect) + in_seconds(account, Bucket::kReconfigure), 7 + 3);
  }
}

// One replica reloads to 61 when a second is lost at 58: nobody reloads while all stall to 64, however long of it
// nobody knows. Two replicas end steps at 74, 84 and 94.
TEST(Elastic, AReloadThatAFailureInterruptsIsMadeAfterTheStall) {
  for (const int detect : {0, 6}) {
    SCOPED_TRACE(detect);
    ElasticDataParallel policy(elastic());
    const Account account = run_job(job(100, 4), history(4, {fault(25, 1, 2), fault(58, 2, detect)}), policy);
    EXPECT_EQ(account.samples, 2 * 4 + 2 * 3 + 3 * 2);
  }
}

// It reloads for 1 s after the stall, not while nobody knows: at 32. Three replicas to 41, rejoined at 45;
// steps of four end at 55 and 65.
TEST(Elastic, AReloadShorterThanTheDetectionIsMadeAfterTheStall) {
  ElasticSpec spec = elastic();
  spec.reload = seconds(1);
  ElasticDataParallel policy(spec);
  const Account account = run_job(job(65, 4), history(4, {fault(25, 1, 2)}), policy);
  EXPECT_EQ(account.samples, 2 * 4 + 3 + 2 * 4);
  EXPECT_EQ(in_seconds(account, Bucket::kReconfigure), 4 + 4);
}

TEST(Elastic, AReplicaReloadsWhenItsNodeIsBack) {
  // Back at 50, asked at the step end at 51; reloaded at 80; at the step end at 81 it rejoins: from 85.
  ElasticDataParallel policy(elastic());
  const Account account = run_job(job(105, 4), history(4, {removal(25, 1, 2), addition(50, 1)}), policy);
  EXPECT_EQ(account.samples, 2 * 4 + 5 * 3 + 2 * 4);
}

TEST(Elastic, ASpareTakesThePlaceOfALostNode) {
  ElasticDataParallel policy(elastic());
  const Account account = run_job(job(95, 4), history(5, {removal(25, 1, 2)}), policy);
  EXPECT_EQ(account.samples, 2 * 4 + 3 * 3 + 3 * 4);
}

TEST(Elastic, BelowItsLeastReplicasTheJobWaits) {
  // One of four is left: it waits, idle, until 51, when a second has reloaded (from 21); 4 s to rejoin: 55.
  ElasticDataParallel policy(elastic());
  const Account account =
      run_job(job(75, 4), history(4, {removal(5, 0), removal(5, 1), removal(5, 2), addition(21, 1)}), policy);
  EXPECT_EQ(in_seconds(account, Bucket::kIdle), 51 - 5);
  EXPECT_EQ(account.samples, 2 * 2);
}

TEST(Elastic, WithNoReplicaLeftItGoesBackToTheCheckpoint) {
  ElasticDataParallel policy(elastic());
  const Account account =
      run_job(job(67, 4), history(4, {fault(25, 0), fault(25, 1), fault(25, 2), fault(25, 3)}), policy);
  EXPECT_EQ(in_seconds(account, Bucket::kReconfigure), 20);
  EXPECT_EQ(in_seconds(account, Bucket::kStateTransfer), 2);
  EXPECT_EQ(account.samples, 4 * 4);  // 10, 20; 57, 67
}

}  // namespace
}  // namespace stagecraft
