// A scenario's policy with a table of throughputs says what the published replays say.
//
//   System        GPT-2 in the artifact of the Oobleck paper: 30 nodes, one removal every ten minutes,
//                 45 s until a node is usable; the trace comes in as a failure process.
//   Expectations  the counts of resilience_oobleck_artifact_results_dev.yaml; published ones by its
//                 rates.
#include "sim/goodput/replay/scenario_replay.hpp"

#include <gtest/gtest.h>

#include "sim/goodput/history.hpp"
#include "sim/goodput/run_repeats.hpp"
#include "tests/sim/goodput/replay/published_replays.hpp"

namespace stagecraft {
namespace {

using published::at;
using published::count;
using published::number;
using published::seconds;

constexpr Duration kHorizon = std::chrono::seconds(9018);  // the last removal of the trace

History ten_minutes() {
  FailureSpec spec;
  TraceReplay law;
  law.trace = published::trace("oobleck_periodic_10m");
  law.creation = std::chrono::seconds(45);
  spec.processes.push_back({.law = std::move(law), .causes = {Cause{.name = "removal"}}});
  spec.horizon = kHorizon;
  return history_of(spec, 30, 1, 0);
}

// GPT-2's row of the 10-minute trace.
struct Gpt2 {
  YamlNode inputs = published::table("resilience_oobleck_artifact_inputs");
  YamlNode results = published::table("resilience_oobleck_artifact_results_dev");

  [[nodiscard]] const YamlNode& model() const { return published::named(at(inputs, "models"), "GPT-2"); }
  [[nodiscard]] const YamlNode& row() const {
    for (const YamlNode& row : at(results, "results").items)
      if (at(row, "model").text == "GPT-2" && at(row, "trace").text == "oobleck_periodic_10m") return row;
    SC_CHECK(false, "no such row");
    return results;
  }
  [[nodiscard]] ScenarioReplay replay(PolicyKind kind, const std::string& policy, Rules rules) const {
    ScenarioReplay replay{.policy = {.kind = kind, .rules = rules},
                          .samples_per_step = count(at(model(), "samples_per_step")),
                          .stages = 12,
                          .horizon = kHorizon};
    const YamlNode& list = at(at(model(), "throughput_samples_per_s"), policy);
    for (int nodes = 15; nodes <= 30; ++nodes)
      replay.policy.throughput.emplace_back(nodes, number(list.items[static_cast<std::size_t>(30 - nodes)]));
    return replay;
  }
};

ScenarioReplay oobleck(const Gpt2& gpt, Rules rules) {
  ScenarioReplay replay = gpt.replay(PolicyKind::kOobleck, "oobleck", rules);
  replay.policy.reconfigure = seconds(at(at(gpt.model(), "oobleck"), "reconfiguration_s"));
  return replay;
}

ScenarioReplay varuna(const Gpt2& gpt, Rules rules) {
  ScenarioReplay replay = gpt.replay(PolicyKind::kVaruna, "varuna", rules);
  const YamlNode& costs = at(gpt.model(), "varuna");
  replay.checkpoint_write = seconds(at(costs, "checkpoint_write_s"));
  replay.policy.restart = {
      {1, seconds(at(costs, "restart_including_checkpoint_load_s")) - replay.checkpoint_write}};
  replay.policy.checkpoint_every = count(at(costs, "checkpoint_every_steps"));
  return replay;
}

ScenarioReplay bamboo(const Gpt2& gpt, Rules rules) {
  ScenarioReplay replay = gpt.replay(PolicyKind::kBamboo, "bamboo", rules);
  const YamlNode& costs = at(gpt.model(), "bamboo");
  replay.policy.global_rendezvous = seconds(at(costs, "global_rendezvous_s"));
  replay.policy.local_rendezvous = seconds(at(costs, "local_rebalance_s"));
  replay.policy.takeover_slowdown = number(at(costs, "fallback_slowdown"));
  replay.policy.rebalance_threshold = 0.05;
  return replay;
}

TEST(ScenarioReplay, CorrectedRulesAreTheDefaultAndGiveTheCorrectedCounts) {
  const Gpt2 gpt;
  const YamlNode& expected = at(gpt.row(), "corrected");
  const History history = ten_minutes();
  EXPECT_EQ(PolicySpec{}.rules, Rules::kCorrected);
  EXPECT_EQ(replayed(oobleck(gpt, Rules::kCorrected))(history, false).steps,
            count(at(expected, "oobleck_steps")));
  EXPECT_EQ(replayed(varuna(gpt, Rules::kCorrected))(history, false).steps,
            count(at(expected, "varuna_steps")));
  EXPECT_EQ(replayed(bamboo(gpt, Rules::kCorrected))(history, false).steps,
            count(at(expected, "bamboo_steps")));
}

TEST(ScenarioReplay, PublishedRulesGiveThePublishedCounts) {
  const Gpt2 gpt;
  const History history = ten_minutes();
  EXPECT_EQ(replayed(oobleck(gpt, Rules::kPublished))(history, false).steps,
            count(at(at(gpt.row(), "published"), "oobleck_steps")));
  // The file has no counts of these: 76.393973 and 16.0101 samples/s are 664 and 139 steps of 1,024.
  EXPECT_EQ(replayed(varuna(gpt, Rules::kPublished))(history, false).steps, 664);
  EXPECT_EQ(replayed(bamboo(gpt, Rules::kPublished))(history, false).steps, 139);
}

TEST(ScenarioReplay, TheAccountIsOfTheWholeHorizonAndItsTimelineHasNoGap) {
  const Gpt2 gpt;
  const History history = ten_minutes();
  for (const Rules rules : {Rules::kCorrected, Rules::kPublished})
    for (const ScenarioReplay& replay : {oobleck(gpt, rules), varuna(gpt, rules), bamboo(gpt, rules)}) {
      const Account account = replayed(replay)(history, true);
      EXPECT_EQ(account.total(), kHorizon);
      EXPECT_EQ(account[Bucket::kIdle], seconds(at(at(gpt.inputs, "common"), "instance_creation_s")));
      Duration end{};
      for (const TimelineRow& row : account.timeline) {
        EXPECT_EQ(row.start, end);
        end = row.end;
      }
      EXPECT_EQ(end, kHorizon);
    }
}

// Every rendezvous of Oobleck is for a loss, which also cuts the step in flight; Bamboo rebalances after some.
TEST(ScenarioReplay, TellsWhatStoppedTheJobAndWhatThatCost) {
  const Gpt2 gpt;
  const History history = ten_minutes();
  const Account with_oobleck = replayed(oobleck(gpt, Rules::kCorrected))(history, false);
  EXPECT_EQ(with_oobleck.failures, 14);  // of 15, the last one at the horizon
  EXPECT_EQ(with_oobleck.restarts, 14);
  EXPECT_EQ(with_oobleck.recovering, 14 * std::chrono::seconds(2));
  EXPECT_EQ(with_oobleck.causes.at(0).failures, 14);
  EXPECT_EQ(with_oobleck.causes.at(0).down, 14 * std::chrono::seconds(2));
  EXPECT_GT(with_oobleck.causes.at(0).lost_work, Duration::zero());
  EXPECT_LE(with_oobleck.causes.at(0).lost_work, with_oobleck[Bucket::kLostWork]);
  const Account with_varuna = replayed(varuna(gpt, Rules::kCorrected))(history, false);
  EXPECT_GT(with_varuna.causes.at(0).lost_work, with_oobleck.causes.at(0).lost_work);
  const Account with_bamboo = replayed(bamboo(gpt, Rules::kCorrected))(history, false);
  EXPECT_GT(with_bamboo.failures, 0);
  EXPECT_EQ(with_bamboo.causes.at(0).down, with_bamboo.recovering);
}

// System: pipelines of 12 nodes, a table from 15 on; 15 nodes become 12 after an hour, then 11.
// Expectations: 12 nodes train at the first row's pace, 11 do not. Without stages the first row is the pipeline.
TEST(ScenarioReplay, TrainsBelowItsTableWhileItsStagesHaveNodes) {
  const Gpt2 gpt;
  History history{.nodes = 15, .incidents = {}, .causes = {"removal"}};
  const auto lose = [&](int hour, int node) {
    history.incidents.push_back(
        {.time = std::chrono::hours(hour), .kind = IncidentKind::kRemove, .id = node, .node = node});
  };
  for (const int node : {12, 13, 14}) lose(1, node);
  lose(2, 11);
  for (ScenarioReplay replay : {oobleck(gpt, Rules::kCorrected), varuna(gpt, Rules::kCorrected)}) {
    replay.horizon = std::chrono::hours(3);
    const auto of_fifteen = static_cast<double>(replayed(replay)(history, false).steps);
    replay.policy.stages = 12;
    const Account account = replayed(replay)(history, false);
    EXPECT_GT(account.steps, 1.9 * of_fifteen);
    EXPECT_LT(account.steps, 2.1 * of_fifteen);
    EXPECT_GT(account[Bucket::kIdle], std::chrono::minutes(58));
  }
}

TEST(ScenarioReplay, RepeatsOfAReplayAreCountedLikeThoseOfAJob) {
  const Gpt2 gpt;
  const GoodputResult result =
      run_repeats(kHorizon, [](int) { return ten_minutes(); }, replayed(oobleck(gpt, Rules::kCorrected)),
                  {.repeats = 3, .threads = 2});
  EXPECT_EQ(result.failures, 14);
  EXPECT_DOUBLE_EQ(result.samples_per_s.mean, 738 * 1024 / 9018.0);
  EXPECT_EQ(result.samples_per_s.standard_error, 0);
}

TEST(ScenarioReplay, OnlyATableOfThroughputsMakesAReplay) {
  EXPECT_FALSE(is_replay({.kind = PolicyKind::kOobleck}));
  EXPECT_FALSE(is_replay({.kind = PolicyKind::kHotSpares, .throughput = {{1, 1.0}}}));
  EXPECT_TRUE(is_replay({.kind = PolicyKind::kBamboo, .throughput = {{1, 1.0}}}));
}

}  // namespace
}  // namespace stagecraft
