// The simulator against the closed forms: the oracle file's rows, and limits that a person can see.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "sim/goodput/checkpoint_store.hpp"
#include "sim/goodput/closed_forms.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/history.hpp"
#include "sim/goodput/policies/checkpoint_restart.hpp"
#include "sim/goodput/policies/elastic.hpp"
#include "sim/goodput/random.hpp"
#include "sim/goodput/run_repeats.hpp"
#include "tests/sampling.hpp"
#include "tests/sim/goodput/analytic_oracles.hpp"
#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft {
namespace {

using oracles::integer;
using oracles::number;

// Within three standard errors of the repeats, and within 1 %.
void expect_close(const Statistic& statistic, double expected) {
  EXPECT_NEAR(statistic.mean, expected, 3 * statistic.standard_error);
  EXPECT_NEAR(statistic.mean, expected, 0.01 * expected);
}

// Faults of one node at rate 1/mean.
HistoryFactory poisson(double mean_s, Duration horizon, Duration detect) {
  return [=](int repeat) {
    Stream stream({.seed = 7, .repeat = static_cast<std::uint32_t>(repeat)});
    History history = made::history(1, {});
    for (Duration at = stream.exponential(1 / mean_s); at < horizon; at += stream.exponential(1 / mean_s))
      history.incidents.push_back({.time = at, .detect = detect});
    return history;
  };
}

// A hundred thousand segments of each row, in 20 repeats; a segment is ten steps.
TEST(MonteCarlo, SegmentTimesOfTheOracleFile) {
  for (const YamlNode& row : oracles::rows("expected_segment_time")) {
    SCOPED_TRACE(testing::Message() << "line " << row.where.line);
    const double mean = number(row, "M");
    if (mean > 1e9) continue;  // nothing fails: below
    const Duration step = from_seconds(number(row, "W") / 10);
    const Duration horizon = from_seconds(number(row, "E") * 5000);
    const JobSpec spec{
        .horizon = horizon,
        .ideal = {.duration = step, .samples = 1, .nodes = 1},
        .checkpointing = Checkpointing{.every_steps = 10, .block = from_seconds(number(row, "C"))}};
    const PolicyFactory policies = [&] {
      return std::make_unique<CheckpointRestart>(CheckpointRestartSpec{
          .nodes = 1, .restart = {{1, from_seconds(number(row, "R"))}}, .shape = [step](int) {
            return ShapedStep{.duration = step, .samples = 1, .nodes = 1};
          }});
    };
    const GoodputResult result = run_repeats(spec, poisson(mean, horizon, from_seconds(number(row, "D"))),
                                             policies, {.repeats = 20, .threads = 2});
    expect_close(result.fraction_of_ideal, number(row, "goodput"));
    EXPECT_EQ(result.fraction_of_ideal.mean, result.ettr.mean);
  }
}

struct Loss {
  double mean = 0, standard_error = 0;
};
// Time lost by going back, of each of some 40,000 failures; rare enough that none meets another.
Loss loss_of(const Checkpointing& how, Duration step) {
  constexpr double kMean = 100'000;
  const Duration horizon = from_seconds(kMean * 2000);
  const JobSpec spec{
      .horizon = horizon, .ideal = {.duration = step, .samples = 1, .nodes = 1}, .checkpointing = how};
  std::vector<double> losses;
  for (int repeat = 0; repeat < 20; ++repeat) {
    CheckpointRestart policy({.nodes = 1, .restart = {{1, {}}}, .shape = [step](int) {
                                return ShapedStep{.duration = step, .samples = 1, .nodes = 1};
                              }});
    const Account account = run_job(spec, poisson(kMean, horizon, {})(repeat), policy);
    losses.push_back(to_seconds(account.causes[0].lost_work) / static_cast<double>(account.failures));
  }
  const Statistic statistic = statistic_of(losses);
  return {.mean = statistic.mean, .standard_error = statistic.standard_error};
}

// System: snapshots every 600 s that block nothing (s = 0) and are written in 200 s.
// Expectations: failures meet the cycle uniformly, so τ/2 + s + P is lost of an asynchronous checkpoint and
// τ/2 of a synchronous one (docs/resilience.md, section 4); the 1 s is for failures that meet another's
// recovery.
TEST(MonteCarlo, AnAsynchronousCheckpointLosesItsPersistAsWell) {
  Checkpointing how{.mode = CheckpointMode::kAsync, .every_steps = 60, .persist = made::seconds(200)};
  const Loss async = loss_of(how, made::seconds(10));
  EXPECT_NEAR(async.mean, 300 + 200, 3 * async.standard_error + 1);
  EXPECT_NEAR(async.mean, 500, 0.01 * 500);
  how.persist = {};
  how.mode = CheckpointMode::kSync;
  const Loss sync = loss_of(how, made::seconds(10));
  EXPECT_NEAR(sync.mean, 300, 3 * sync.standard_error + 1);
}

// Gemini: t_checkpoint + 1/(2f), here k iterations to copy and one snapshot every k.
TEST(MonteCarlo, AMemoryCopyLosesOneAndAHalfOfItsIntervals) {
  for (const std::int64_t every : {1, 4}) {
    const Loss loss =
        loss_of({.mode = CheckpointMode::kInMemory, .copies = 1, .copy_every = every}, made::seconds(10));
    EXPECT_NEAR(loss.mean, 15.0 * static_cast<double>(every), 3 * loss.standard_error + 0.1);
  }
}

TEST(MonteCarlo, WithoutFailuresOnlyCheckpointsCost) {
  const JobSpec spec =
      made::job(110 * 1000, 10, Checkpointing{.every_steps = 10, .block = made::seconds(10)});
  const GoodputResult result = run_repeats(
      spec, [](int) { return made::history(1, {}); },
      [] {
        return std::make_unique<CheckpointRestart>(
            CheckpointRestartSpec{.nodes = 1, .restart = {{1, {}}}, .shape = made::always(10, 1)});
      },
      {.repeats = 1});
  EXPECT_EQ(result.fraction_of_ideal.mean, 100.0 / 110);
}

// System: R replicas of one node each; every M seconds one replica fails, is found at once, all stall, it
// reloads, all wait. Expectations: with steps that are short against the stalls, 1 − (stall + degraded/R +
// rejoin)/M.
TEST(MonteCarlo, ElasticCyclesOfTheOracleFile) {
  for (const YamlNode& row : oracles::rows("elastic_data_parallel")) {
    SCOPED_TRACE(testing::Message() << "line " << row.where.line);
    const int replicas = integer(row, "R");
    const Duration cycle = from_seconds(number(row, "M"));
    const Duration step = std::chrono::milliseconds(100);
    const Duration horizon = cycle * 20;
    History history = made::history(replicas, {});
    for (int i = 0; i < 20; ++i)
      history.incidents.push_back({.time = cycle * i + made::seconds(1), .node = i % replicas});
    ElasticDataParallel policy({.replicas = replicas,
                                .stall = from_seconds(number(row, "stall")),
                                .reload = from_seconds(number(row, "degraded")),
                                .rejoin = from_seconds(number(row, "rejoin")),
                                .restart = {{1, {}}},
                                .shape = [step](int nodes) {
                                  return ShapedStep{.duration = step, .samples = nodes, .nodes = nodes};
                                }});
    const Account account =
        run_job({.horizon = horizon, .ideal = {.duration = step, .samples = replicas, .nodes = replicas}},
                history, policy);
    EXPECT_NEAR(to_seconds(account[Bucket::kProductive]) / to_seconds(horizon), number(row, "goodput"), 2e-4);
    EXPECT_EQ(account.failures, 20);
    EXPECT_EQ(account.undone_steps, 0);
  }
}

// Nodes lost at once, uniformly: how often a group of m survives.
TEST(MonteCarlo, RecoverableFromPeersOfTheOracleFile) {
  constexpr int kTrials = sampled_count(100'000);
  for (const YamlNode& row : oracles::rows("recoverable_from_peer_memory")) {
    SCOPED_TRACE(testing::Message() << "line " << row.where.line);
    const int nodes = integer(row, "N"), lost = integer(row, "k");
    Stream stream({.seed = 11, .entity = static_cast<std::uint32_t>(row.where.line)});
    int recovered = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<bool> gone(static_cast<std::size_t>(nodes));
      for (int left = lost; left > 0;) {
        const auto node = static_cast<std::size_t>(stream.below(nodes));
        if (gone[node]) continue;
        gone[node] = true;
        --left;
      }
      recovered += recoverable_from_memory(gone, integer(row, "m")) ? 1 : 0;
    }
    const double p = number(row, "P");
    EXPECT_NEAR(recovered / static_cast<double>(kTrials), p, 3 * std::sqrt(p * (1 - p) / kTrials) + 1e-12);
  }
}

// System: nodes that fail and are repaired independently; a job that trains on whoever is up, for nothing
// lost but the step. Expectations: Σ Binomial(n; N, a) X(n), whatever the law of repairs; X(n) = n here.
TEST(MonteCarlo, NodesUpByAvailability) {
  for (const YamlNode& row : oracles::rows("availability")) {
    SCOPED_TRACE(testing::Message() << "line " << row.where.line);
    const int nodes = integer(row, "N");
    FailureSpec failures;
    failures.processes.push_back({.law = ExponentialFailures{.rate_per_node_day = 24 / number(row, "mttf_h")},
                                  .causes = {{.name = "node", .severity = FailureSeverity::kNode}}});
    failures.repair = {.kind = RepairKind::kConstant, .time = from_seconds(3600 * number(row, "mttr_h"))};
    failures.horizon = from_seconds(3600 * (number(row, "mttf_h") + number(row, "mttr_h")) * 40);
    const int repeats = nodes > 1000 ? 4 : 40;
    std::vector<double> up;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      double node_seconds = 0;
      Duration last{};
      int here = nodes;
      for (const Incident& incident : history_of(failures, nodes, 3, repeat).incidents) {
        node_seconds += here * to_seconds(incident.time - last);
        last = incident.time;
        here += incident.kind == IncidentKind::kAdd ? 1 : -1;
      }
      node_seconds += here * to_seconds(failures.horizon - last);
      up.push_back(node_seconds / to_seconds(failures.horizon));
    }
    expect_close(statistic_of(up), number(row, "mean_up"));
  }
}

}  // namespace
}  // namespace stagecraft
