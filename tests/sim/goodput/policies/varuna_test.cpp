// Varuna as a policy of a job.
//
//   System  n nodes train a sample in 120/n s, one of them at least. A checkpoint after every second
//           step, which blocks for 4 s and is usable 6 s later; 10 s to restart, 7 s to load, 60 s for
//           what may pass, 120 s after an announced loss.
#include "sim/goodput/policies/varuna.hpp"

#include <gtest/gtest.h>

#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft {
namespace {

using made::fault;
using made::removal;
using made::seconds;

VarunaSpec four_nodes() {
  return {.nodes = 4,
          .shape = [](int nodes) -> std::optional<ShapedStep> {
            if (nodes == 0) return std::nullopt;
            return ShapedStep{.duration = seconds(120) / nodes, .samples = 1, .nodes = nodes};
          },
          .restart = {{1, seconds(10)}},
          .gpus_per_node = 1,
          .transient_wait = seconds(60),
          .announced_wait = seconds(120),
          .notice = {},
          .checkpoint_cost = seconds(10)};
}

Account run(const History& history, std::int64_t horizon, VarunaSpec spec = four_nodes()) {
  Varuna policy(std::move(spec));
  JobSpec job = made::job(horizon, 30);
  job.checkpointing = Checkpointing{.mode = CheckpointMode::kAsync,
                                    .every_steps = 2,
                                    .block = seconds(4),
                                    .persist = seconds(6),
                                    .load = seconds(7)};
  return run_job(job, history, policy);
}

TEST(Varuna, AnUnannouncedLossGoesBackAndMorphs) {
  // 30, 60, block to 64, usable at 70; a step to 94; cut at 100. 60 s of hope, 10 restart, 7 load: 177; three
  // nodes, 40 s.
  const Account account = run(made::history(4, {removal(100, 2, 1)}), 258);
  EXPECT_EQ(account.undone_steps, 1);
  EXPECT_EQ(account.steps, 2 + 2);
  EXPECT_EQ(account[Bucket::kDetect], seconds(61));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(10));
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(7));
  EXPECT_EQ(account[Bucket::kDegraded], seconds(20));
}

TEST(Varuna, ACheckpointWhosePartsAreNotAllThereIsNoCheckpoint) {
  // Lost at 69: parts would all have been there at 70.
  EXPECT_EQ(run(made::history(4, {removal(69, 2)}), 200).undone_steps, 2);
  EXPECT_EQ(run(made::history(4, {removal(71, 2)}), 200).undone_steps, 0);
}

TEST(Varuna, AProcessFaultRestartsOnAllNodes) {
  const Account account = run(made::history(4, {fault(100, 2)}), 207);  // 177 + 30
  EXPECT_EQ(account.steps, 3);
  EXPECT_EQ(account[Bucket::kDegraded], seconds(0));
}

TEST(Varuna, AnAnnouncedLossCostsNoStep) {
  Incident notice = removal(75, 2);
  notice.kind = IncidentKind::kAnnounced;
  notice.due = seconds(105);
  // The step of 64 ends at 94; a checkpoint of 10 s; 120 + 10 + 7 s; three nodes from 241 on. At 105 nobody
  // minds.
  const Account account = run(made::history(4, {notice, removal(105, 2)}), 281);
  EXPECT_EQ(account.undone_steps, 0);
  EXPECT_EQ(account.failures, 0);
  EXPECT_EQ(account.steps, 3 + 1);
  EXPECT_EQ(account[Bucket::kLostWork], seconds(0));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(130));
}

TEST(Varuna, WithNoticeOnlyTheStepInFlightIsLost) {
  VarunaSpec spec = four_nodes();
  spec.notice = seconds(30);
  // Cut at 100 after 6 s; a checkpoint of 10 s, 120, 10, 7: 247; 40 s.
  const Account account = run(made::history(4, {removal(100, 2, 1)}), 287, std::move(spec));
  EXPECT_EQ(account.undone_steps, 0);
  EXPECT_EQ(account.steps, 3 + 1);
  EXPECT_EQ(account[Bucket::kLostWork], seconds(6));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(140));
  EXPECT_EQ(account[Bucket::kDetect], seconds(0));
}

TEST(Varuna, ANoticeTooShortForACheckpointIsNone) {
  VarunaSpec spec = four_nodes();
  spec.notice = seconds(9);
  EXPECT_EQ(run(made::history(4, {removal(100, 2)}), 287, std::move(spec)).undone_steps, 1);
}

// Three nodes: 40, 80, block to 84, 124, 164; node 3 asked for at 100 and usable at 145.
History growing(const std::vector<Incident>& after) {
  Incident joins = made::addition(100, 3);
  joins.due = seconds(145);
  std::vector<Incident> incidents = {made::addition(0, 0), made::addition(0, 1), made::addition(0, 2), joins};
  incidents.insert(incidents.end(), after.begin(), after.end());
  History history = made::history(4, incidents);
  history.all_up_at_start = false;
  return history;
}

// A restart of 10 s at 124 would wait for it, one behind the checkpoint 164..174 does not; load to 191, 30 s.
TEST(Varuna, ANewcomerIsTakenInAfterACheckpoint) {
  const Account account = run(growing({}), 221);
  EXPECT_EQ(account.undone_steps, 0);
  EXPECT_EQ(account.steps, 4 + 1);
  EXPECT_EQ(account[Bucket::kIdle], seconds(0));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(10));
}

TEST(Varuna, ANewcomerThatHasLeftByThenCostsTheCheckpointAlone) {
  const Account account = run(growing({removal(150, 3)}), 214);
  EXPECT_EQ(account.steps, 4 + 1);
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(0));
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(0));
}

TEST(Varuna, WithoutNodesItStops) {
  std::vector<Incident> incidents;
  for (int node = 0; node < 4; ++node) incidents.push_back(removal(10, node));
  const Account account = run(made::history(4, incidents), 100);
  EXPECT_EQ(account.steps, 0);
  EXPECT_EQ(account[Bucket::kIdle], seconds(30));  // after 60 s of hope
}

}  // namespace
}  // namespace stagecraft
