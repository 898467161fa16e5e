// What must hold of every run, on some fifty thousand random ones; small whole seconds, so that ties are
// common.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>

#include "sim/goodput/history.hpp"
#include "sim/goodput/job.hpp"
#include "sim/goodput/policies/bamboo.hpp"
#include "sim/goodput/policies/checkpoint_restart.hpp"
#include "sim/goodput/policies/elastic.hpp"
#include "sim/goodput/policies/hot_spares.hpp"
#include "sim/goodput/policies/recycle.hpp"
#include "sim/goodput/policies/varuna.hpp"
#include "sim/goodput/run_repeats.hpp"
#include "tests/sampling.hpp"
#include "tests/sim/goodput/made_job.hpp"
#include "tests/sim/goodput/random_history.hpp"

namespace stagecraft {
namespace {

using made::Dice;
using made::seconds;

// A job on one node that fails; the same told step by step, with nothing skipped, as a second opinion.
struct Tale {
  std::int64_t horizon = 0, step = 1, every = 1, block = 0, persist = 0, restart = 0, load = 0;
  std::vector<Incident> faults;
};
struct Told {
  std::int64_t samples = 0, undone = 0, failures = 0, restarts = 0;
  std::int64_t productive = 0, lost = 0, checkpoint = 0, detect = 0, reconfigure = 0, transfer = 0;
};

class Narrator {
 public:
  explicit Narrator(const Tale& tale) : tale_(tale) {}

  Told tell() {
    while (now_ < tale_.horizon) one_step();
    told_.samples = committed_;
    told_.productive = committed_ * tale_.step;
    return told_;
  }

 private:
  [[nodiscard]] std::int64_t next_fault() const {
    return heard_ < tale_.faults.size() ? tale_.faults[heard_].time / seconds(1) : tale_.horizon;
  }
  // Time passes into a bucket; false: a fault or the horizon comes first. What ends with a fault is struck by
  // it.
  bool pass(std::int64_t time, std::int64_t& bucket) {
    const std::int64_t end = now_ + time, fault = next_fault();
    const bool whole = fault == tale_.horizon ? end <= fault : end < fault;
    const std::int64_t until = whole ? end : fault;
    bucket += until - now_;
    now_ = until;
    return whole;
  }
  void one_step() {
    std::int64_t took = 0;
    if (!pass(tale_.step, took)) {
      told_.lost += took;
      return fail();
    }
    ++committed_;
    const bool waits = written_at_ >= now_;  // the step ends first
    if (written_at_ >= 0 && !waits) arrive();
    if (++since_ < tale_.every || waits) return;
    since_ = 0;
    const std::int64_t snapshot = committed_;
    if (now_ == tale_.horizon) return;
    if (!pass(tale_.block, told_.checkpoint)) return fail();
    travelling_ = snapshot;
    written_at_ = now_ + tale_.persist;
    if (tale_.persist == 0) arrive();
  }
  void arrive() {
    usable_ = travelling_;
    written_at_ = -1;
  }
  void fail() {
    if (now_ == tale_.horizon) return;
    if (written_at_ >= 0 && written_at_ < now_) arrive();
    written_at_ = -1;
    while (true) {
      ++told_.failures;
      const std::int64_t found = now_ + tale_.faults[heard_].detect / seconds(1);
      while (heard_ < tale_.faults.size() && next_fault() <= found) ++heard_;
      const std::int64_t until = std::min(found, tale_.horizon);
      told_.detect += until - now_;
      now_ = until;
      if (now_ == tale_.horizon) return;
      told_.undone += committed_ - usable_;
      told_.lost += (committed_ - usable_) * tale_.step;
      committed_ = usable_;
      since_ = 0;
      if (pass(tale_.restart, told_.reconfigure) && pass(usable_ > 0 ? tale_.load : 0, told_.transfer)) break;
      if (now_ == tale_.horizon) return;
    }
    if (now_ < tale_.horizon) ++told_.restarts;
  }

  const Tale& tale_;
  Told told_;
  std::int64_t now_ = 0, committed_ = 0, since_ = 0, usable_ = 0, travelling_ = 0, written_at_ = -1;
  std::size_t heard_ = 0;
};

Tale random_tale(int seed) {
  Dice dice(seed);
  Tale tale{.horizon = dice.between(20, 400),
            .step = dice.between(1, 12),
            .every = dice.between(1, 6),
            .block = dice.between(0, 4),
            .persist = dice.chance(50) ? dice.between(0, 20) : 0,
            .restart = dice.between(0, 8),
            .load = dice.between(0, 3),
            .faults = {}};
  std::int64_t at = 0;
  while ((at += dice.between(1, 80)) < tale.horizon)
    tale.faults.push_back(made::fault(at, 0, dice.chance(50) ? 0 : dice.between(0, 9)));
  return tale;
}

TEST(JobProperty, SkippingStepsTellsTheSameTaleAsTellingThemAll) {
  for (int seed = 0; seed < sampled_count(20'000); ++seed) {
    const Tale tale = random_tale(seed);
    const Told told = Narrator(tale).tell();
    const Checkpointing how{.mode = tale.persist > 0 ? CheckpointMode::kAsync : CheckpointMode::kSync,
                            .every_steps = tale.every,
                            .block = seconds(tale.block),
                            .persist = seconds(tale.persist),
                            .load = seconds(tale.load)};
    CheckpointRestart policy = made::restarted({.step = tale.step, .restart = tale.restart});
    const Account account =
        run_job(made::job(tale.horizon, tale.step, how), made::history(1, tale.faults), policy);
    const auto in_seconds = [&](Bucket bucket) { return account[bucket] / seconds(1); };
    const std::vector<std::int64_t> expected = {told.samples,
                                                told.undone,
                                                told.failures,
                                                told.productive,
                                                told.lost,
                                                told.checkpoint,
                                                told.detect,
                                                told.reconfigure,
                                                told.transfer,
                                                0,
                                                0};
    const std::vector<std::int64_t> found = {account.samples,
                                             account.undone_steps,
                                             account.failures,
                                             in_seconds(Bucket::kProductive),
                                             in_seconds(Bucket::kLostWork),
                                             in_seconds(Bucket::kCheckpoint),
                                             in_seconds(Bucket::kDetect),
                                             in_seconds(Bucket::kReconfigure),
                                             in_seconds(Bucket::kStateTransfer),
                                             in_seconds(Bucket::kDegraded),
                                             in_seconds(Bucket::kIdle)};
    ASSERT_EQ(found, expected) << "seed " << seed;
  }
}

Checkpointing random_checkpointing(Dice& dice) {
  Checkpointing how{.mode = static_cast<CheckpointMode>(dice.between(0, 2)),
                    .block = seconds(dice.between(0, 3)),
                    .persist = seconds(dice.between(0, 20)),
                    .slowdown = 1 + dice.between(0, 4) / 4.0,
                    .load = seconds(dice.between(0, 5)),
                    .copies = dice.between(1, 3),
                    .copy_every = dice.between(1, 4),
                    .copy_load = seconds(dice.between(0, 2))};
  if (dice.chance(50))
    how.every_steps = dice.between(1, 8);
  else
    how.interval = seconds(dice.between(1, 60));
  return how;
}

// n nodes train n samples a step.
ShapeOf shrinking_by(std::int64_t step) {
  return [=](int n) -> std::optional<ShapedStep> {
    if (n < 1) return std::nullopt;
    return ShapedStep{.duration = seconds(step), .samples = n, .nodes = n};
  };
}

std::optional<SlowLadder> random_ladder(Dice& dice) {
  if (dice.chance(50)) return std::nullopt;
  return SlowLadder{.remaining = seconds(dice.between(0, 300)),
                    .undisturbed = seconds(dice.between(0, 300)),
                    .exchange = dice.chance(70),
                    .restart = dice.chance(50),
                    .replica_nodes = dice.between(0, 2),
                    .micro_batches = dice.between(1, 4)};
}

std::unique_ptr<Policy> random_policy(Dice& dice, int nodes, std::int64_t step) {
  const std::vector<std::pair<int, Duration>> restart = {{1, seconds(dice.between(0, 9))}};
  const ShapeOf shrinking = shrinking_by(step);
  const int stages = dice.between(1, nodes), pipelines = nodes / stages;
  switch (dice.between(0, 5)) {
    case 0:
      return std::make_unique<CheckpointRestart>(
          CheckpointRestartSpec{.nodes = nodes,
                                .lost = static_cast<LostNode>(dice.between(0, 2)),
                                .restart = restart,
                                .shape = shrinking,
                                .between_failures = seconds(dice.between(0, 300))});
    case 1: {
      const int busy = dice.between(1, nodes);
      return std::make_unique<HotSpares>(HotSparesSpec{
          .nodes = busy,
          .step = seconds(step),
          .samples = busy,
          .swap = seconds(dice.between(0, 5)),
          .restart = restart,
          .state = static_cast<StateSource>(dice.between(0, 1)),
          .holders =
              [](int places) {
                const std::size_t states = static_cast<std::size_t>(std::max(1, places / 2));
                std::vector<std::vector<int>> holders(states);
                for (int place = 0; place < places; ++place)
                  holders[static_cast<std::size_t>(place) % states].push_back(place);
                return holders;
              },
          .backup_distance = dice.chance(30) ? dice.between(1, busy) : 0,
          .peer_transfer = seconds(dice.between(0, 3)),
          .slow = random_ladder(dice),
          .smaller =
              [=](int left) {
                return ShapedStep{.duration = seconds(step) * busy / left, .samples = busy, .nodes = left};
              }});
    }
    case 2:
      return std::make_unique<Bamboo>(BambooSpec{.stages = stages,
                                                 .pipelines = pipelines,
                                                 .step = [=](int p) { return shrinking(p * stages); },
                                                 .global_rendezvous = seconds(dice.between(0, 9)),
                                                 .local_rendezvous = seconds(dice.between(0, 4)),
                                                 .slowdown = 1 + dice.between(0, 4) / 4.0,
                                                 .rebalance_threshold = dice.between(0, 10) / 10.0,
                                                 .peer_transfer = seconds(dice.between(0, 3))});
    case 3:
      return std::make_unique<Varuna>(VarunaSpec{.nodes = nodes,
                                                 .shape = shrinking,
                                                 .restart = restart,
                                                 .transient_wait = seconds(dice.between(0, 6)),
                                                 .announced_wait = seconds(dice.between(0, 12)),
                                                 .notice = seconds(dice.between(0, 3)),
                                                 .checkpoint_cost = seconds(dice.between(0, 4))});
    case 4:
      return std::make_unique<Recycle>(RecycleSpec{
          .shape = {.stage_times = std::vector<Duration>(static_cast<std::size_t>(stages), seconds(1)),
                    .micro_batches = dice.between(1, 8),
                    .pipelines = pipelines,
                    .fault_free = seconds(step)},
          .form = static_cast<RecycleForm>(dice.between(0, 1)),
          .samples = nodes,
          .reconfigure = seconds(dice.between(0, 4)),
          .restart = seconds(dice.between(0, 9)),
          .peer_transfer = seconds(dice.between(0, 3))});
    default:
      break;
  }
  const int replicas = dice.between(1, nodes);
  return std::make_unique<ElasticDataParallel>(ElasticSpec{.replicas = replicas,
                                                           .replica_nodes = nodes / replicas,
                                                           .min_replicas = dice.between(1, replicas),
                                                           .stall = seconds(dice.between(0, 9)),
                                                           .reload = seconds(dice.between(0, 60)),
                                                           .rejoin = seconds(dice.between(0, 5)),
                                                           .restart = restart,
                                                           .shape = shrinking});
}

// Every instant is in one bucket, and every sample comes from a step that was trained and never undone.
TEST(JobProperty, TimeAndSamplesAddUpWhateverHappens) {
  for (int seed = 0; seed < sampled_count(30'000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    const std::int64_t horizon = dice.between(1, 600), step = dice.between(1, 12);
    const History history = made::random_history(dice, dice.between(1, 9), horizon, 40);
    JobSpec spec = made::job(horizon, step);
    spec.ideal.samples = history.nodes;
    if (dice.chance(80)) spec.checkpointing = random_checkpointing(dice);
    const Account account = run_job(spec, history, *random_policy(dice, history.nodes, step));

    ASSERT_EQ(account.total(), spec.horizon);
    for (const Duration bucket : account.buckets) ASSERT_GE(bucket, Duration::zero());
    Duration trained{}, end{}, down{}, lost{};
    for (const TimelineRow& row : account.timeline) {
      ASSERT_EQ(row.start, end);
      end = row.end;
      if (row.phase == Phase::kTraining) trained += row.end - row.start;
    }
    ASSERT_EQ(end, spec.horizon);
    ASSERT_EQ(trained,
              account[Bucket::kProductive] + account[Bucket::kDegraded] + account[Bucket::kLostWork]);
    ASSERT_LE(account.samples, account.steps * spec.ideal.samples);
    ASSERT_GE(account.samples, account.steps);
    // Undone steps took at least their planned time; so did committed ones.
    ASSERT_GE(account[Bucket::kLostWork], account.undone_steps * seconds(step));
    ASSERT_GE(account[Bucket::kProductive] + account[Bucket::kDegraded], account.steps * seconds(step));
    ASSERT_EQ(account[Bucket::kProductive].count(),
              account.samples * seconds(step).count() / spec.ideal.samples);
    ASSERT_LE(account.restarts, account.failures);
    for (const CauseAccount& cause : account.causes) down += cause.down, lost += cause.lost_work;
    ASSERT_LE(down, spec.horizon);
    ASSERT_LE(lost, account[Bucket::kLostWork]);
    ASSERT_GE(down, account.recovering);
  }
}

// Nobody beats free instant recovery: the time average of X(n(t)), here of n nodes' n samples a step.
TEST(JobProperty, NobodyBeatsFreeInstantRecovery) {
  for (int seed = 0; seed < sampled_count(5'000); ++seed) {
    Dice dice(seed);
    const std::int64_t horizon = dice.between(100, 600), step = dice.between(1, 12);
    const History history = made::random_history(dice, dice.between(1, 9), horizon, 40);
    Duration node_time{}, last{};
    int up = history.nodes;
    for (const Incident& incident : history.incidents) {
      node_time += up * (incident.time - last);
      last = incident.time;
      if (incident.kind == IncidentKind::kAdd) ++up;
      if (incident.kind == IncidentKind::kRemove) --up;
    }
    node_time += up * (seconds(horizon) - last);
    JobSpec spec = made::job(horizon, step, random_checkpointing(dice));
    spec.ideal.samples = history.nodes;
    CheckpointRestart restarts({.nodes = history.nodes,
                                .lost = LostNode::kDoneWithout,
                                .restart = {{1, {}}},
                                .shape = shrinking_by(step)});
    ElasticDataParallel elastic(
        {.replicas = history.nodes, .restart = {{1, {}}}, .shape = shrinking_by(step)});
    for (Policy* policy : std::initializer_list<Policy*>{&restarts, &elastic}) {
      const Account account = run_job(spec, history, *policy);
      ASSERT_LE(account.samples * seconds(step), node_time) << "seed " << seed;
    }
  }
}

// Failures of a cluster of 64 nodes over ten days, with the same random numbers for every variant.
struct Variant {
  double rate = 0.05;  // per node and day
  int nodes = 64;
  std::int64_t block = 30, restart = 300, detect = 60;
};
GoodputResult goodput_of(const Variant& variant, int threads = 2) {
  FailureSpec failures;
  failures.processes.push_back(
      {.law = ExponentialFailures{.rate_per_node_day = variant.rate},
       .causes = {
           {.name = "process", .severity = FailureSeverity::kProcess, .detect = seconds(variant.detect)}}});
  failures.horizon = seconds(10 * 86400);
  const JobSpec spec =
      made::job(10 * 86400, 10, Checkpointing{.every_steps = 60, .block = seconds(variant.block)});
  return run_repeats(
      spec, [&](int repeat) { return history_of(failures, variant.nodes, 5, repeat); },
      [&] {
        return std::make_unique<CheckpointRestart>(
            CheckpointRestartSpec{.nodes = variant.nodes,
                                  .restart = {{1, seconds(variant.restart)}},
                                  .shape = made::always(10, variant.nodes)});
      },
      {.repeats = 20, .threads = threads});
}

TEST(JobProperty, GoodputDoesNotRiseWithRateCheckpointRestartOrDetection) {
  const auto falls = [](const std::vector<Variant>& variants) {
    double before = 1;
    for (const Variant& variant : variants) {
      const double here = goodput_of(variant).fraction_of_ideal.mean;
      EXPECT_LT(here, before);
      before = here;
    }
  };
  falls({{.rate = 0.01}, {.rate = 0.02}, {.rate = 0.05}, {.rate = 0.2}, {.rate = 1}});
  falls({{.block = 1}, {.block = 10}, {.block = 60}, {.block = 300}});
  falls({{.restart = 0}, {.restart = 60}, {.restart = 600}, {.restart = 3600}});
  falls({{.detect = 0}, {.detect = 60}, {.detect = 600}, {.detect = 3600}});
}

TEST(JobProperty, WithoutFailuresNothingIsLost) {
  const GoodputResult result = goodput_of({.rate = 0, .block = 0});
  EXPECT_EQ(result.fraction_of_ideal.mean, 1);
  EXPECT_EQ(result.failures, 0);
  EXPECT_EQ(result.mean_time_to_recover_s, 0);
}

TEST(JobProperty, TwiceTheNodesFailTwiceAsOften) {
  const double once = goodput_of({.nodes = 64, .restart = 0, .detect = 0}).failures;
  const double twice = goodput_of({.nodes = 128, .restart = 0, .detect = 0}).failures;
  EXPECT_NEAR(once, 0.05 * 64 * 10, 3 * std::sqrt(0.05 * 64 * 10 / 20));
  EXPECT_NEAR(twice, 0.05 * 128 * 10, 3 * std::sqrt(0.05 * 128 * 10 / 20));
}

TEST(JobProperty, TheSameBitsOnAnyNumberOfThreads) {
  const GoodputResult one = goodput_of({}, 1);
  for (const int threads : {2, 3, 8, 40}) EXPECT_EQ(goodput_of({}, threads), one);
}

}  // namespace
}  // namespace stagecraft
