#include "sim/goodput/job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "sim/goodput/checkpoint_store.hpp"
#include "sim/goodput/policies/checkpoint_restart.hpp"
#include "sim/goodput/policies/elastic.hpp"
#include "sim/goodput/policies/hot_spares.hpp"
#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft {
namespace {

using made::addition;
using made::fault;
using made::history;
using made::job;
using made::removal;
using made::seconds;

Account run(const JobSpec& spec, const History& history, CheckpointRestart policy) {
  return run_job(spec, history, policy);
}

Checkpointing sync_every(std::int64_t steps, std::int64_t block, std::int64_t load = 0) {
  return {.every_steps = steps, .block = seconds(block), .load = seconds(load)};
}

// The eight buckets in seconds, in the order of Bucket.
std::vector<std::int64_t> in_seconds(const Account& account) {
  std::vector<std::int64_t> result;
  for (const Duration bucket : account.buckets) result.push_back(bucket / seconds(1));
  return result;
}
using testing::ElementsAre;

TEST(Bucket, OfAPhaseIsCalledAsItIs) {
  EXPECT_EQ(bucket_of(Phase::kTraining), Bucket::kProductive);
  EXPECT_EQ(words_of(bucket_of(Phase::kCheckpoint)), "checkpoint");
  EXPECT_EQ(words_of(bucket_of(Phase::kDetect)), "detect");
  EXPECT_EQ(words_of(bucket_of(Phase::kReconfigure)), "reconfigure");
  EXPECT_EQ(words_of(bucket_of(Phase::kStateTransfer)), "state transfer");
  EXPECT_EQ(words_of(bucket_of(Phase::kIdle)), "idle");
}

TEST(Job, WithoutFailuresAllWholeStepsCount) {
  const Account account = run(job(35), history(1, {}), made::restarted({}));
  EXPECT_EQ(account.samples, 3);
  EXPECT_THAT(in_seconds(account), ElementsAre(30, 5, 0, 0, 0, 0, 0, 0));  // the step in flight is lost
}

TEST(Job, AStepThatEndsAtTheHorizonCounts) {
  const Account account = run(job(30), history(1, {}), made::restarted({}));
  EXPECT_EQ(account.samples, 3);
  EXPECT_EQ(account[Bucket::kLostWork], Duration::zero());
}

// System: steps of 10 s, a checkpoint of 2 s after every second step, a fault at 30, found at 33, 5 s to
// restart, 1 s to load. Expectations: steps end at 10, 20; the checkpoint covers 20..22; a step ends at 32?
// No: cut at 30 after 8 s. Detection to 33, restart to 38, load to 39; steps end at 49, 59; checkpoint to
// 61; 61..65 is unfinished.
TEST(Job, AFaultCostsTheStepInFlightAndTheRestart) {
  const Account account =
      run(job(65, 10, sync_every(2, 2, 1)), history(1, {fault(30, 0, 3)}), made::restarted({.restart = 5}));
  EXPECT_EQ(account.samples, 4);
  EXPECT_THAT(in_seconds(account), ElementsAre(40, 8 + 4, 4, 3, 5, 1, 0, 0));
  EXPECT_EQ(account.failures, 1);
  EXPECT_EQ(account.restarts, 1);
  EXPECT_EQ(account.recovering, seconds(9));
  EXPECT_EQ(account.checkpoints, 2);
  ASSERT_EQ(account.causes.size(), 1u);
  EXPECT_EQ(account.causes[0], (CauseAccount{.failures = 1, .lost_work = seconds(8), .down = seconds(9)}));
}

TEST(Job, StepsSinceTheLastCheckpointAreUndone) {
  // Steps end at 10, 20, (checkpoint 20..22), 32; cut at 35 after 3 s: the step of 22..32 is undone.
  const Account account = run(job(40, 10, sync_every(2, 2)), history(1, {fault(35)}), made::restarted({}));
  EXPECT_EQ(account.samples, 2);
  EXPECT_EQ(account.undone_steps, 1);
  EXPECT_EQ(account[Bucket::kLostWork], seconds(10 + 3 + 5));
}

TEST(Job, WithoutCheckpointsItStartsOver) {
  const Account account = run(job(60), history(1, {fault(35)}), made::restarted({}));
  EXPECT_EQ(account.samples, 2);  // 35..45, 45..55
  EXPECT_EQ(account.undone_steps, 3);
}

// Order at equal times: a node lost at the instant a step or a checkpoint ends takes it along.
TEST(Job, AFaultAtTheEndOfAStepTakesItAlong) {
  const Account account = run(job(30, 10, sync_every(1, 0)), history(1, {fault(10)}), made::restarted({}));
  EXPECT_EQ(account.samples, 2);
  EXPECT_EQ(account[Bucket::kLostWork], seconds(10));
}

TEST(Job, AFaultAtTheEndOfACheckpointTakesItAlong) {
  const Account account = run(job(32, 10, sync_every(1, 2)), history(1, {fault(12)}), made::restarted({}));
  EXPECT_EQ(account.undone_steps, 1);  // of 0..10; again 12..22, checkpoint to 24, 24..32 unfinished
  EXPECT_EQ(account.samples, 1);
  EXPECT_EQ(account[Bucket::kCheckpoint], seconds(4));
}

TEST(Job, AFailureDuringDetectionIsNoneButOneDuringARestartStartsItAgain) {
  // 5 fails, found at 15; 12 is not heard; restart 15..25 struck at 20, found at 20; restart 20..30.
  const Account account = run(job(40), history(1, {fault(5, 0, 10), fault(12, 0, 10), fault(20)}),
                              made::restarted({.restart = 10}));
  EXPECT_EQ(account.failures, 2);
  EXPECT_EQ(account.restarts, 1);
  EXPECT_EQ(account[Bucket::kDetect], seconds(10));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(5 + 10));
  EXPECT_EQ(account.samples, 1);
}

// System: async, snapshot of 1 s after every second step, written in 15 s, φ = 2. Steps of 10 s.
// Expectations: 20..21 blocks; until 36 steps take 20 s: 21..41 would be whole at half speed; at 36 it
// has 7.5 of its 10 s done: the rest takes 2.5 s: 38.5. Then 48.5: two steps, snapshot 48.5..49.5.
TEST(Job, AnAsynchronousCheckpointSlowsTrainingUntilItIsUsable) {
  const Checkpointing how = {.mode = CheckpointMode::kAsync,
                             .every_steps = 2,
                             .block = seconds(1),
                             .persist = seconds(15),
                             .slowdown = 2};
  const Account account = run(job(49, 10, how), history(1, {}), made::restarted({}));
  EXPECT_EQ(account.samples, 4);
  EXPECT_EQ(account[Bucket::kProductive], seconds(40));
  EXPECT_EQ(account[Bucket::kDegraded], std::chrono::milliseconds(7500));
  EXPECT_EQ(account[Bucket::kCheckpoint], std::chrono::milliseconds(1500));
  EXPECT_EQ(account.checkpoints, 1);
}

// System: the same every 40 s. The first is at 40..41; beside its persist, to 56, 7.5 s of work are done in 15,
// so that the fifth step ends at 58.5 and the eighth at 88.5.
TEST(Job, AnIntervalCountsTheWorkThatIsDoneBesideAPersist) {
  const Checkpointing how = {.mode = CheckpointMode::kAsync,
                             .interval = seconds(40),
                             .block = seconds(1),
                             .persist = seconds(15),
                             .slowdown = 2};
  const auto blocked = [&](std::int64_t horizon) {
    return run(job(horizon, 10, how), history(1, {}), made::restarted({}))[Bucket::kCheckpoint];
  };
  EXPECT_EQ(blocked(88), seconds(1));
  EXPECT_EQ(blocked(90), seconds(2));
  EXPECT_EQ(how.slowed_by(), std::chrono::milliseconds(7500));
}

TEST(Job, AnAsynchronousCheckpointIsUsableWhenItIsWrittenNotBefore) {
  const Checkpointing how = {
      .mode = CheckpointMode::kAsync, .every_steps = 1, .block = seconds(1), .persist = seconds(5)};
  // Snapshot of the first step at 10..11, usable at 16.
  EXPECT_EQ(run(job(20, 10, how), history(1, {fault(16)}), made::restarted({})).undone_steps, 1);
  EXPECT_EQ(run(job(20, 10, how), history(1, {fault(17)}), made::restarted({})).undone_steps, 0);
}

TEST(Job, ANewSnapshotWaitsForTheRunningPersist) {
  const Checkpointing how = {
      .mode = CheckpointMode::kAsync, .every_steps = 1, .block = seconds(1), .persist = seconds(25)};
  // Snapshot 10..11, persist to 36; steps end at 21, 31, 41: only there is the next one.
  const Account account = run(job(42, 10, how), history(1, {}), made::restarted({}));
  EXPECT_EQ(account.samples, 4);
  EXPECT_EQ(account[Bucket::kCheckpoint], seconds(2));
}

TEST(Job, AnIntervalIsRoundedToWholeStepsAtLeastOne) {
  const auto checkpoints = [](std::int64_t interval) {
    const Checkpointing how = {.interval = seconds(interval)};
    return run(job(120, 10, how), history(1, {}), made::restarted({})).checkpoints;
  };
  EXPECT_EQ(checkpoints(1), 11);   // every step; the one at the horizon is not begun
  EXPECT_EQ(checkpoints(14), 11);  // every step
  EXPECT_EQ(checkpoints(16), 5);   // every second: 20, 40, …, 100
  EXPECT_EQ(checkpoints(30), 3);   // 30, 60, 90
}

// System: in memory, a copy every 2 steps of 10 s. Snapshots at 20, 40, …; usable 20 s later.
TEST(Job, AMemoryCopyIsUsableOneIntervalLater) {
  const Checkpointing how = {
      .mode = CheckpointMode::kInMemory, .copies = 2, .copy_every = 2, .copy_load = seconds(3)};
  const auto undone = [&](std::int64_t at) {
    return run(job(100, 10, how), history(2, {fault(at)}), made::restarted({.nodes = 2})).undone_steps;
  };
  EXPECT_EQ(undone(35), 3);  // the copies of 20 are on their way: back to the start
  EXPECT_EQ(undone(41), 2);  // to 20
  EXPECT_EQ(undone(60), 3);  // the step that ends at 60 is cut: still to 20
  EXPECT_EQ(undone(61), 2);  // to 40
}

// System: 4 nodes in groups of 2. Nodes 0 and 1 are one group.
// Expectations: 0 and 2 may go at once; 0 and 1 may not, and then nothing else is there.
TEST(Job, AGroupWithoutSurvivorFallsBackToStorage) {
  Checkpointing how = {.mode = CheckpointMode::kInMemory, .every_steps = 3, .load = seconds(7)};
  how.copies = 2;
  how.copy_load = seconds(1);
  const auto after = [&](int other) {
    return run(job(100, 10, how), history(4, {removal(55, 0), removal(55, other)}),
               made::restarted({.nodes = 4}));
  };
  EXPECT_EQ(after(2).undone_steps, 1);  // 5 steps by 50; memory holds 4
  EXPECT_EQ(after(2)[Bucket::kStateTransfer], seconds(1));
  EXPECT_EQ(after(1).undone_steps, 2);  // storage holds 3
  EXPECT_EQ(after(1)[Bucket::kStateTransfer], seconds(7));
}

// System: storage has step 5, memory step 4 of 10 s each.
// Expectations: memory saves more than a step where storage takes 30 s to load, and less where it takes 9 s.
TEST(Job, GoesBackToWhatIsThereSoonest) {
  Checkpointing how = {.mode = CheckpointMode::kInMemory, .every_steps = 5};
  how.copy_load = seconds(1);
  const auto after = [&](std::int64_t load, std::vector<Incident> incidents) {
    how.load = seconds(load);
    return run(job(100, 10, how), history(4, std::move(incidents)), made::restarted({.nodes = 4}));
  };
  const Account memory = after(30, {fault(55)}), storage = after(9, {fault(55)});
  EXPECT_EQ(memory.undone_steps, 1);
  EXPECT_EQ(memory[Bucket::kStateTransfer], seconds(1));
  EXPECT_EQ(storage.undone_steps, 0);
  EXPECT_EQ(storage[Bucket::kStateTransfer], seconds(9));

  // Without memory from 57 on: what storage has is no worse than what memory had.
  const Account twice = after(30, {fault(55), removal(57, 0), removal(57, 1)});
  EXPECT_EQ(twice.undone_steps, 1);
  EXPECT_EQ(twice[Bucket::kStateTransfer], seconds(31));
  EXPECT_EQ(twice.samples, 5);  // step 5 once more, from 87 to 97
}

// System: in storage every 5 steps of 10 s. At 35 the job goes back to step 2, so that step 5 ends at 65.
TEST(Job, GoingBackToMemoryDoesNotPutOffStorage) {
  Checkpointing how = {.mode = CheckpointMode::kInMemory, .every_steps = 5};
  const auto checkpoints = [&](std::int64_t horizon) {
    return run(job(horizon, 10, how), history(2, {fault(35)}), made::restarted({.nodes = 2})).checkpoints;
  };
  EXPECT_EQ(checkpoints(65), 0);
  EXPECT_EQ(checkpoints(66), 1);
  how.every_steps = 0;
  how.interval = seconds(50);
  EXPECT_EQ(checkpoints(66), 1);
}

TEST(Recoverable, RingOfTheLastGroup) {
  // 7 places, 2 copies: groups {0,1}, {2,3}, ring {4,5,6} in which each copies to the next one.
  const auto lost = [](std::vector<int> places) {
    std::vector<bool> result(7);
    for (const int place : places) result[static_cast<std::size_t>(place)] = true;
    return recoverable_from_memory(result, 2);
  };
  EXPECT_TRUE(lost({}));
  EXPECT_TRUE(lost({0, 2, 4}));
  EXPECT_FALSE(lost({0, 1}));
  EXPECT_TRUE(lost({1, 2}));
  EXPECT_FALSE(lost({4, 5}));
  EXPECT_FALSE(lost({4, 6}));  // 6 copies to 4
}

TEST(Job, CorruptionGoesBackBeforeItsOnset) {
  // Checkpoints at 10, 20, 30, 40; found out at 45, wrong since 25: only those of 10 and 20 are good.
  const Incident corruption = {.time = seconds(45), .kind = IncidentKind::kCorruption, .onset = seconds(25)};
  const Account account = run(job(100, 10, sync_every(1, 0)), history(1, {corruption}), made::restarted({}));
  EXPECT_EQ(account.undone_steps, 2);
  EXPECT_EQ(account.samples, 2 + 5);  // 45..95
  EXPECT_EQ(account[Bucket::kLostWork], seconds(20 + 5 + 5));
}

// Node 1 is away until 30. The job waits for it from the beginning: there is nothing to detect or to restart.
TEST(Job, ANodeThatIsAwayAtTheStartIsNoFailure) {
  CheckpointRestart policy(
      {.nodes = 2, .lost = LostNode::kWaitedFor, .restart = {{1, seconds(5)}}, .shape = made::always(10, 2)});
  const Account account = run_job(job(65), history(2, {removal(0, 1, 7), addition(30, 1)}), policy);
  EXPECT_EQ(account.failures, 0);
  EXPECT_THAT(in_seconds(account), ElementsAre(30, 5, 0, 0, 0, 0, 0, 30));
}

// Found out at 50, while the job waits for node 0 from 45 to 60. Wrong since 25: the checkpoints of 30 and 40 are
// bad. From 60 on four steps of the two that are good. Wrong since 48: nothing was trained since.
TEST(Job, CorruptionThatIsFoundWhileTheJobIsStoppedGoesBackBeforeItsOnset) {
  const auto policies = [] {
    std::vector<std::unique_ptr<Policy>> all;
    const std::vector<std::pair<int, Duration>> restart = {{1, seconds(0)}};
    all.push_back(std::make_unique<CheckpointRestart>(CheckpointRestartSpec{
        .nodes = 2, .lost = LostNode::kWaitedFor, .restart = restart, .shape = made::always(10, 2)}));
    all.push_back(std::make_unique<HotSpares>(
        HotSparesSpec{.nodes = 2, .step = seconds(10), .samples = 1, .restart = restart}));
    all.push_back(std::make_unique<ElasticDataParallel>(
        ElasticSpec{.replicas = 2, .min_replicas = 2, .restart = restart, .shape = made::always(10, 2)}));
    return all;
  };
  const auto found_at_50 = [](std::int64_t onset) {
    return history(2, {removal(45, 0),
                       {.time = seconds(50),
                        .kind = IncidentKind::kCorruption,
                        .id = 1,
                        .node = 1,
                        .onset = seconds(onset)},
                       addition(60, 0)});
  };
  for (const auto& policy : policies()) {
    const Account account = run_job(job(100, 10, sync_every(1, 0)), found_at_50(25), *policy);
    EXPECT_EQ(account.failures, 2);
    EXPECT_EQ(account.undone_steps, 2);
    EXPECT_EQ(account.samples, 2 + 4);
    EXPECT_EQ(account[Bucket::kIdle], seconds(15));
  }
  for (const auto& policy : policies()) {
    const Account account = run_job(job(100, 10, sync_every(1, 0)), found_at_50(48), *policy);
    EXPECT_EQ(account.failures, 1);
    EXPECT_EQ(account.undone_steps, 0);
    EXPECT_EQ(account.samples, 4 + 4);
  }
}

// Node 0 is wrong since 25 and is replaced at 45 from the checkpoint of 40; node 1 ends a step at 55. At 58 all of it
// turns out to be wrong. Wrong since 41: what node 0 trained since then was lost with it.
TEST(Job, CorruptionOfANodeThatHasLeftGoesBackBeforeItsOnset) {
  const auto found_at_58 = [](std::int64_t onset) {
    return history(
        2, {removal(45, 0),
            {.time = seconds(58), .kind = IncidentKind::kCorruption, .node = 0, .onset = seconds(onset)}});
  };
  const Account wrong = run(job(100, 10, sync_every(1, 0)), found_at_58(25), made::restarted({}));
  EXPECT_EQ(wrong.failures, 2);
  EXPECT_EQ(wrong.undone_steps, 3);
  EXPECT_EQ(wrong.samples, 2 + 4);  // 68, 78, 88, 98
  const Account right = run(job(100, 10, sync_every(1, 0)), found_at_58(41), made::restarted({}));
  EXPECT_EQ(right.failures, 1);
  EXPECT_EQ(right.samples, 4 + 5);  // 55, 65, 75, 85, 95
}

TEST(Job, AnnouncedMaintenanceLosesNothing) {
  const Incident announced = {.time = seconds(30), .kind = IncidentKind::kAnnounced, .due = seconds(57)};
  // Checkpoints take 3 s: that of 50..53 is usable before 57, then the job waits.
  const Account account =
      run(job(90, 10, sync_every(100, 3, 2)), history(1, {announced, removal(57, 0), addition(60, 0)}),
          made::restarted({.restart = 1}));
  EXPECT_EQ(account.undone_steps, 0);
  EXPECT_EQ(account[Bucket::kCheckpoint], seconds(3));
  EXPECT_EQ(account[Bucket::kIdle], seconds(4));
  EXPECT_EQ(account.samples, 5 + 3);  // 60, 70, 80, 90
  EXPECT_EQ(account[Bucket::kLostWork], Duration::zero());
}

// Node 1 is announced while node 0 trains, which is lost at 35. Its successor's first step ends at 46: a checkpoint
// of 3 s, and the job waits for 57. Node 1 is replaced: 1 s to start and 2 s to load.
TEST(Job, AnnouncedMaintenanceOfANodeThatTrainsLaterLosesNothing) {
  const Incident announced = {
      .time = seconds(30), .kind = IncidentKind::kAnnounced, .node = 1, .due = seconds(57)};
  const Account account = run(job(90, 10, sync_every(100, 3, 2)),
                              history(2, {announced, removal(35, 0), removal(57, 1), addition(60, 1)}),
                              made::restarted({.restart = 1}));
  EXPECT_EQ(account.undone_steps, 3) << "of node 0, without a checkpoint";
  EXPECT_EQ(account.went_back, 1);
  EXPECT_EQ(account[Bucket::kCheckpoint], seconds(3));
  EXPECT_EQ(account.samples, 1 + 3);  // 46, 70, 80, 90
}

// Nobody trains on node 1: its maintenance is nothing to the job.
TEST(Job, AnnouncedMaintenanceOfASpareCostsNothing) {
  const Incident announced = {
      .time = seconds(30), .kind = IncidentKind::kAnnounced, .node = 1, .due = seconds(57)};
  const Account account = run(job(90, 10, sync_every(100, 3, 2)), history(2, {announced, removal(57, 1)}),
                              made::restarted({.restart = 1}));
  EXPECT_EQ(account.samples, 9);
  EXPECT_EQ(account[Bucket::kCheckpoint], Duration::zero());
}

TEST(Job, TheSlowestNodeSetsThePace) {
  const auto slow = [](std::int64_t at, int node, double factor) {
    return Incident{.time = seconds(at), .kind = IncidentKind::kSlow, .node = node, .factor = factor};
  };
  const Incident normal = {.time = seconds(45), .kind = IncidentKind::kNormal, .node = 1};
  // From 15 on 2 × as long: the step of 10..20 ends at 25, the next at 45, where node 1 recovers (node 0
  // stays at 1.5): 60.
  const Account account =
      run(job(75), history(2, {slow(15, 0, 1.5), slow(15, 1, 2.0), normal}), made::restarted({.nodes = 2}));
  EXPECT_EQ(account.samples, 5);  // 10, 25, 45, 60, 75
  EXPECT_EQ(account[Bucket::kDegraded], seconds(25));
  EXPECT_EQ(account[Bucket::kLostWork], Duration::zero());
}

TEST(Job, TheTimelineCoversTheHorizonWithoutGaps) {
  const Account account =
      run(job(65, 10, sync_every(2, 2, 1)), history(1, {fault(30, 0, 3)}), made::restarted({.restart = 5}));
  std::vector<std::pair<Phase, std::int64_t>> rows;
  Duration end{};
  for (const TimelineRow& row : account.timeline) {
    EXPECT_EQ(row.start, end);
    end = row.end;
    rows.emplace_back(row.phase, row.end / seconds(1));
  }
  using P = Phase;
  EXPECT_THAT(
      rows,
      ElementsAre(std::pair(P::kTraining, 20), std::pair(P::kCheckpoint, 22), std::pair(P::kTraining, 30),
                  std::pair(P::kDetect, 33), std::pair(P::kReconfigure, 38), std::pair(P::kStateTransfer, 39),
                  std::pair(P::kTraining, 59), std::pair(P::kCheckpoint, 61), std::pair(P::kTraining, 65)));
  EXPECT_EQ(account.timeline[6].samples, 4);
}

TEST(Job, NoPlanBeatsTheIdeal) {
  EXPECT_THROW((void)run(job(30, 11), history(1, {}), made::restarted({})), InternalError);
}

TEST(Job, NodesThatComeTogetherArePlannedForOnce) {
  CheckpointRestart policy(
      {.nodes = 2, .lost = LostNode::kWaitedFor, .restart = {{1, seconds(5)}}, .shape = made::always(10, 2)});
  const Account account =
      run_job(job(60), history(2, {removal(5, 0), removal(5, 1), addition(20, 0), addition(20, 1)}), policy);
  EXPECT_EQ(account[Bucket::kIdle], seconds(15));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(5));
  EXPECT_EQ(account.samples, 3);
  EXPECT_EQ(account.failures, 1);
}

}  // namespace
}  // namespace stagecraft
