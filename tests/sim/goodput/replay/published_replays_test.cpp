// Every row of the published replays, and of our corrected ones.
//
//   System        the simulators with which the Oobleck paper was evaluated (30 nodes, one removal
//                 every 6 h, 1 h, 10 min, for 15 removals) and Bamboo's own (six models on an AWS g4dn
//                 spot trace, 12 h), with their throughput tables.
//   Expectations  published rules with the storage order of a heap: what the authors' unmodified
//                 programs print; published rules with ties in trace order, and corrected rules: values
//                 of a separate implementation of docs/resilience.md, section 7. Rates to 1e-6 relative
//                 (the files' six decimals), counts equal.
//   source        calibrate/published/data/resilience_*.yaml, sources on top of each file.
#include "tests/sim/goodput/replay/published_replays.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace stagecraft {
namespace {

using published::at;
using published::count;
using published::expect_published;
using published::number;
using published::samples_per_second;
using published::seconds;

// One model of the Oobleck artifact.
struct Artifact {
  YamlNode inputs = published::table("resilience_oobleck_artifact_inputs");
  YamlNode results = published::table("resilience_oobleck_artifact_results_dev");

  [[nodiscard]] const YamlNode& model(const std::string& name) const {
    return published::named(at(inputs, "models"), name);
  }
  [[nodiscard]] Duration creation() const { return seconds(at(at(inputs, "common"), "instance_creation_s")); }
  [[nodiscard]] int pipeline_nodes() const {
    return static_cast<int>(count(at(at(inputs, "common"), "stages_target")));
  }
};

std::int64_t samples_of(const YamlNode& model) {
  return count(at(model, "samples_per_step"));
}

// List entry 0 is 30 nodes, entry 15 is 15 nodes.
Duration artifact_step(const YamlNode& model, const std::string& policy, int nodes) {
  const YamlNode& list = at(at(model, "throughput_samples_per_s"), policy);
  const std::size_t row = static_cast<std::size_t>(30 - std::clamp(nodes, 15, 30));
  return published_step(samples_of(model), number(list.items[row]));
}

GlobalRestart oobleck(const Artifact& artifact, const YamlNode& model) {
  return {.pipeline_nodes = artifact.pipeline_nodes(),
          .step = [&model](int nodes) { return artifact_step(model, "oobleck", nodes); },
          .rendezvous = seconds(at(at(model, "oobleck"), "reconfiguration_s"))};
}

GlobalRestart varuna(const Artifact& artifact, const YamlNode& model) {
  const YamlNode& costs = at(model, "varuna");
  const Duration write = seconds(at(costs, "checkpoint_write_s"));
  return {.pipeline_nodes = artifact.pipeline_nodes(),
          .step = [&model](int nodes) { return artifact_step(model, "varuna", nodes); },
          .rendezvous = seconds(at(costs, "restart_including_checkpoint_load_s")) - write,
          .checkpoint_every = count(at(costs, "checkpoint_every_steps")),
          .checkpoint_write = write};
}

std::map<int, Duration> bert_rendezvous(Duration write) {
  const YamlNode file = published::table("resilience_varuna_bert_restart");
  std::map<int, Duration> rendezvous;
  for (const YamlEntry& row : at(file, "restart_including_checkpoint_load_s").entries)
    rendezvous[static_cast<int>(parse_integer(row.key).value())] = seconds(row.value) - write;
  return rendezvous;
}

RedundantPipelines artifact_bamboo(const Artifact& artifact, const YamlNode& model, double threshold) {
  const YamlNode& costs = at(model, "bamboo");
  return {.stages = artifact.pipeline_nodes(),
          .step = [&model](int, int nodes) { return artifact_step(model, "bamboo", nodes); },
          .global_rendezvous = seconds(at(costs, "global_rendezvous_s")),
          .local_rendezvous = seconds(at(costs, "local_rebalance_s")),
          .slowdown = number(at(costs, "fallback_slowdown")),
          .rebalance_threshold = threshold};
}

double rebalance_threshold() {
  return number(at(at(published::table("resilience_bamboo_sim_dev"), "parameters"), "rebalance_threshold"));
}

// Runs `check(row, model, changes, end)` for all rows of the artifact's results; events at the last trace
// time do not happen.
template <class Check>
void for_each_artifact_row(const Artifact& artifact, Check check) {
  const YamlNode& rows = at(artifact.results, "results");
  ASSERT_EQ(rows.items.size(), 6u);
  for (const YamlNode& row : rows.items) {
    SCOPED_TRACE(at(row, "model").text + " on " + at(row, "trace").text);
    const std::vector<NodeChange> changes =
        published::changes_of(published::trace(at(row, "trace").text), artifact.creation());
    check(row, artifact.model(at(row, "model").text), changes, changes.back().time);
  }
}

TEST(PublishedReplays, OobleckUnderPublishedRulesIsWhatTheArtifactPrints) {
  const Artifact artifact;
  for_each_artifact_row(
      artifact, [&](const YamlNode& row, const YamlNode& model, const auto& changes, Duration end) {
        for (const Ties ties : {Ties::kTraceOrder, Ties::kHeapRebuilt}) {
          const Replay replay = replay_global_restart(
              changes, {.rules = Rules::kPublished, .ties = ties, .end = end}, oobleck(artifact, model));
          const YamlNode& expected = at(row, "published");
          EXPECT_EQ(replay.kept_steps(), count(at(expected, "oobleck_steps")));
          expect_published(samples_per_second(replay, Rules::kPublished, samples_of(model)),
                           number(at(expected, "oobleck")));
        }
      });
}

TEST(PublishedReplays, OobleckUnderCorrectedRules) {
  const Artifact artifact;
  for_each_artifact_row(
      artifact, [&](const YamlNode& row, const YamlNode& model, const auto& changes, Duration end) {
        const Replay replay = replay_global_restart(changes, {.end = end}, oobleck(artifact, model));
        const YamlNode& expected = at(row, "corrected");
        EXPECT_EQ(replay.kept_steps(), count(at(expected, "oobleck_steps")));
        expect_published(samples_per_second(replay, Rules::kCorrected, samples_of(model)),
                         number(at(expected, "oobleck")));
      });
}

TEST(PublishedReplays, VarunaUnderPublishedRulesIsWhatTheArtifactPrints) {
  const Artifact artifact;
  for_each_artifact_row(
      artifact, [&](const YamlNode& row, const YamlNode& model, const auto& changes, Duration end) {
        GlobalRestart policy = varuna(artifact, model);
        if (at(model, "name").text == "BERT-large")
          policy.rendezvous_by_nodes = bert_rendezvous(policy.checkpoint_write);
        const Replay replay = replay_global_restart(
            changes, {.rules = Rules::kPublished, .ties = Ties::kHeapRebuilt, .end = end}, policy);
        expect_published(samples_per_second(replay, Rules::kPublished, samples_of(model)),
                         number(at(at(row, "published"), "varuna")));
      });
}

TEST(PublishedReplays, VarunaUnderCorrectedRules) {
  const Artifact artifact;
  for_each_artifact_row(
      artifact, [&](const YamlNode& row, const YamlNode& model, const auto& changes, Duration end) {
        const Replay replay = replay_global_restart(changes, {.end = end}, varuna(artifact, model));
        const YamlNode& expected = at(row, "corrected");
        EXPECT_EQ(replay.kept_steps(), count(at(expected, "varuna_steps")));
        expect_published(samples_per_second(replay, Rules::kCorrected, samples_of(model)),
                         number(at(expected, "varuna")));
      });
}

TEST(PublishedReplays, BambooInTheArtifactUnderPublishedRulesWithEitherOrderOfTies) {
  const Artifact artifact;
  const double threshold = rebalance_threshold();
  for_each_artifact_row(
      artifact, [&](const YamlNode& row, const YamlNode& model, const auto& changes, Duration end) {
        const RedundantPipelines policy = artifact_bamboo(artifact, model, threshold);
        const auto rate = [&](Ties ties) {
          const Replay replay =
              replay_bamboo(changes, {.rules = Rules::kPublished, .ties = ties, .end = end}, policy);
          return samples_per_second(replay, Rules::kPublished, samples_of(model));
        };
        expect_published(rate(Ties::kHeapRebuilt), number(at(at(row, "published"), "bamboo")));
        expect_published(rate(Ties::kTraceOrder), number(at(at(row, "published_fifo"), "bamboo")));
      });
}

TEST(PublishedReplays, BambooInTheArtifactUnderCorrectedRules) {
  const Artifact artifact;
  const double threshold = rebalance_threshold();
  for_each_artifact_row(artifact, [&](const YamlNode& row, const YamlNode& model, const auto& changes,
                                      Duration end) {
    const Replay replay = replay_bamboo(changes, {.end = end}, artifact_bamboo(artifact, model, threshold));
    const YamlNode& expected = at(row, "corrected");
    EXPECT_EQ(replay.kept_steps(), count(at(expected, "bamboo_steps")));
    EXPECT_EQ(replay.fatal, count(at(expected, "bamboo_fatal")));
    expect_published(samples_per_second(replay, Rules::kCorrected, samples_of(model)),
                     number(at(expected, "bamboo")));
  });
}

// Bamboo's own simulator.
struct OwnBamboo {
  YamlNode file = published::table("resilience_bamboo_sim_dev");
  std::vector<NodeChange> changes = published::changes_of(
      published::trace("bamboo_g4dn_spot"), seconds(at(at(file, "parameters"), "instance_creation_s")));

  [[nodiscard]] const YamlNode& parameter(const std::string& key) const {
    return at(at(file, "parameters"), key);
  }

  [[nodiscard]] Duration step(const std::string& model, int pipelines, int stages) const {
    for (const YamlNode& row : at(at(file, "step_ms"), model).items)
      if (count(row.items[0]) == pipelines && count(row.items[1]) == stages)
        return std::chrono::milliseconds(count(row.items[2]));
    SC_CHECK(false, "a shape without a step time");
    return Duration{};
  }

  [[nodiscard]] RedundantPipelines policy(const std::string& model) const {
    const int stages = static_cast<int>(count(at(parameter("stages"), model)));
    return {.stages = stages,
            .step = [this, model, stages](int pipelines, int) { return step(model, pipelines, stages); },
            .global_rendezvous = seconds(parameter("global_rendezvous_s")),
            .local_rendezvous = seconds(at(parameter("local_rendezvous_s"), model)),
            .slowdown = number(parameter("fallback_slowdown")),
            .rebalance_threshold = number(parameter("rebalance_threshold"))};
  }
};

// Nodes that exist, on average. Corrected: from 0 to `end`. Published: the first number counts from 0 on, and
// all is divided by the end of the last step; what changed after that is counted first and taken off again,
// at the last number.
double average_nodes(const Replay& replay, Rules rules) {
  const bool published = rules == Rules::kPublished;
  const Duration last = replay.steps.empty() ? Duration{} : replay.steps.back().end;
  const Duration end = published ? last : replay.end;
  if (end <= Duration{} || replay.counts.empty()) return 0;
  double node_seconds = published ? replay.counts.front().nodes * to_seconds(replay.counts.front().time) : 0;
  for (std::size_t i = 0; i < replay.counts.size(); ++i) {
    const Duration until = i + 1 < replay.counts.size() ? replay.counts[i + 1].time : end;
    const double length = to_seconds(until - replay.counts[i].time);  // may be < 0
    node_seconds += replay.counts[i].nodes * length;
  }
  return node_seconds / to_seconds(end);
}

// Compares what the row has: counts, start, rate, nodes, and cost = nodes × the spot price.
void expect_row(const OwnBamboo& bamboo, const YamlNode& row, const YamlNode& expected,
                const ReplayRules& rules) {
  const std::string& model = at(row, "model").text;
  const Replay replay = replay_bamboo(bamboo.changes, rules, bamboo.policy(model));
  EXPECT_EQ(replay.start, seconds(at(row, "start_s")));
  EXPECT_EQ(replay.removals, count(at(row, "preemptions")));
  EXPECT_EQ(replay.kept_steps(), count(at(expected, "steps")));
  EXPECT_EQ(replay.fatal, count(at(expected, "fatal_failures")));
  EXPECT_EQ(replay.rendezvous, count(at(expected, "rendezvous")));
  const std::int64_t samples = count(at(bamboo.parameter("samples_per_step"), model));
  expect_published(samples_per_second(replay, rules.rules, samples),
                   number(at(expected, "avg_samples_per_s")));
  const double nodes = average_nodes(replay, rules.rules);
  if (const YamlNode* average = expected.find("avg_instances")) expect_published(nodes, number(*average));
  if (const YamlNode* cost = expected.find("avg_usd_per_h"))
    expect_published(nodes * number(at(bamboo.parameter("usd_per_hour"), "spot")), number(*cost));
}

TEST(PublishedReplays, BamboosOwnSimulatorOnTheSpotTrace) {
  const OwnBamboo bamboo;
  const Duration end = std::chrono::seconds(43'200);
  const YamlNode& rows = at(bamboo.file, "trace_results");
  ASSERT_EQ(rows.items.size(), 6u);
  for (const YamlNode& row : rows.items) {
    SCOPED_TRACE(at(row, "model").text);
    expect_row(bamboo, row, at(row, "published"),
               {.rules = Rules::kPublished, .ties = Ties::kHeap, .end = end});
    expect_row(bamboo, row, at(row, "published_fifo"),
               {.rules = Rules::kPublished, .ties = Ties::kTraceOrder, .end = end});
    expect_row(bamboo, row, at(row, "corrected"), {.end = end});
  }
}

}  // namespace
}  // namespace stagecraft
