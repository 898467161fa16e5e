// `failures:` in: defaults, every kind and policy, --set; and out again. What is wrong with one is in
// bad/failures*.yaml.
#include "sim/scenario/load_failures.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;
namespace fs = std::filesystem;

const fs::path kRoot = STAGECRAFT_SOURCE_DIR;
struct Result {
  std::optional<Scenario> scenario;
  std::string messages;
};

const std::string kJob =
    "stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, nodes: 16}\ntraining: {global_batch_size: "
    "128}\n"
    "parallelism: {tensor: 8}\n";

Result read(const std::string& text, std::vector<std::string> overrides = {}) {
  Diagnostics diagnostics;
  auto root = parse_yaml(text, "s.yaml", diagnostics);
  for (const std::string& assignment : overrides) apply_override(*root, assignment, diagnostics);
  Result result;
  if (root)
    result.scenario = read_scenario({.root = *root, .source = "some/s.yaml", .folder = kRoot / "scenarios"},
                                    repository_files(), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.sorted()) result.messages += render(diagnostic) + "\n";
  return result;
}

FailureSpec failures_of(const std::string& section, std::vector<std::string> overrides = {}) {
  const Result result = read(kJob + section, std::move(overrides));
  if (!result.scenario || !result.scenario->failures) {
    ADD_FAILURE() << result.messages;
    return {};
  }
  return *result.scenario->failures;
}

FailureProcess only_process(const std::string& process) {
  const FailureSpec spec = failures_of("failures:\n  process: " + process + "\n");
  if (spec.processes.size() != 1) return {};
  return spec.processes.front();
}

TEST(Failures, AreAbsentWhereTheScenarioHasNone) {
  const Result result = read(kJob);
  ASSERT_TRUE(result.scenario) << result.messages;
  EXPECT_FALSE(result.scenario->failures);
}

// A key that another kind has is known, and not of this one.
TEST(FailureProcess, RefusesKeysOfOtherKinds) {
  const auto said = [](const std::string& process) {
    return read(kJob + "failures: {process: " + process + "}\n").messages;
  };
  EXPECT_EQ(said("{shape: 0.7}"),
            "s.yaml:6:29: error: failures.process.shape: is for weibull, weibull-cluster, and the kind is "
            "exponential\n  hint: leave it out\n");
  EXPECT_THAT(said("{kind: maintenance, notice: 1 h, duration: 2 h, severity: node}"),
              HasSubstr("severity: is for exponential, components, weibull, weibull-cluster, bursts, and"));
  EXPECT_THAT(said("{kind: weibull-cluster, lemon_factor: 2}"), HasSubstr("and the kind is weibull-cluster"));
  EXPECT_THAT(said("{kind: weibull, shpae: 2}"),
              HasSubstr("is not a known key\n  hint: did you mean 'shape'?"));
  // Whose keys these are is not known, but one is nobody's.
  const std::string other = said("{kind: weibul, shape: 2, scael: 3}");
  EXPECT_THAT(other, HasSubstr("scael: is not a known key\n  hint: did you mean 'scale'?"));
  EXPECT_THAT(other, Not(HasSubstr("shape: is")));
}

// 16 nodes. (16 / 1)^5 is a million times the rate; 2^19 are half a million incidents a day of a lemon, of which
// there are some within a day. SuperBench's fleet has 1.085.
TEST(FailureProcess, RefusesMoreIncidentsThanARunHolds) {
  const auto said = [](const std::string& process, const std::string& horizon) {
    return read(kJob + "failures: {horizon: " + horizon + ", process: " + process + "}\n").messages;
  };
  const auto endless = HasSubstr("incidents within the horizon are more than");
  EXPECT_THAT(said("{rate_per_node_day: 1, exponent: 5, reference_nodes: 1}", "1 day"), endless);
  EXPECT_EQ(said("{rate_per_node_day: 1, exponent: 1, reference_nodes: 1}", "1 day"), "");
  EXPECT_THAT(said("{rate_per_node_day: 1, lemon_factor: 2}", "5 days"), endless);
  EXPECT_THAT(said("{rate_per_node_day: 1, lemon_factor: 10}", "1 day"), endless);
  EXPECT_THAT(said("[{rate_per_node_day: 1e-3, lemon_factor: 3}, {rate_per_node_day: 100}]", "1 day"),
              endless);
  EXPECT_EQ(said("{rate_per_node_day: 1e-6, lemon_factor: 10}", "1 day"), "");
  EXPECT_EQ(said("{rate_per_node_day: 1, lemon_factor: 1.085}", "1000 days"), "");
}

// The defaults of scenarios/failures/defaults.yaml.
TEST(Failures, TakeEveryDefaultAndSayWhereItIsFrom) {
  const Result result = read(kJob + "failures: {}\n");
  ASSERT_TRUE(result.scenario) << result.messages;
  const FailureSpec& spec = *result.scenario->failures;
  ASSERT_THAT(spec.processes, SizeIs(1));
  EXPECT_EQ(std::get<ExponentialFailures>(spec.processes[0].law).rate_per_node_day, 0.0038);
  EXPECT_THAT(spec.processes[0].causes, SizeIs(12));
  EXPECT_EQ(spec.processes[0].causes[2].name, "software bug");
  EXPECT_EQ(spec.processes[0].causes[2].severity, FailureSeverity::kProcess);
  EXPECT_EQ(spec.policy.kind, PolicyKind::kCheckpointRestart);
  EXPECT_THAT(spec.policy.restart, ElementsAre(Pair(1, Duration(seconds(600)))));
  EXPECT_EQ(spec.repair.kind, RepairKind::kEmpirical);
  EXPECT_THAT(spec.repair.times, SizeIs(584));
  EXPECT_EQ(spec.checkpoint.rule, IntervalRule::kOptimal);
  EXPECT_EQ(spec.horizon, hours(24 * 30));
  EXPECT_EQ(spec.repeats, 100);
  const auto restart =
      std::ranges::find(result.scenario->assumed, "failures.policy.restart", &AssumedInput::path);
  ASSERT_NE(restart, result.scenario->assumed.end());
  EXPECT_EQ(restart->value, "600 s");
  EXPECT_EQ(restart->low, "300 s");
  EXPECT_EQ(restart->high, "1200 s");
  EXPECT_THAT(restart->source, HasSubstr("2410.21680"));
}

TEST(Failures, AssumeNothingThatIsGiven) {
  const Result result =
      read(kJob + "failures: {process: {rate_per_node_day: 0.0065}, policy: {name: none, restart: 1 s}}\n");
  ASSERT_TRUE(result.scenario) << result.messages;
  for (const AssumedInput& input : result.scenario->assumed) {
    EXPECT_NE(input.path, "failures.process.rate_per_node_day");
    EXPECT_NE(input.path, "failures.policy.restart");
  }
}

// One process under checkpoint-restart, as in docs/failures.md.
TEST(Failures, OfOneProcessTakeFewLines) {
  const FailureSpec spec = failures_of(
      "failures:\n"
      "  process: {kind: exponential, rate_per_node_day: 0.0065}\n"
      "  policy: checkpoint-restart\n"
      "  checkpoint: {mode: sync, interval: optimal}\n"
      "  horizon: 30 days\n"
      "  repeats: 100\n");
  EXPECT_EQ(std::get<ExponentialFailures>(spec.processes.at(0).law).rate_per_node_day, 0.0065);
}

TEST(Failures, MayComeFromSeveralProcesses) {
  const FailureSpec spec = failures_of(
      "failures:\n"
      "  process:\n"
      "    - {kind: exponential, rate_per_node_day: 0.002}\n"
      "    - {kind: fail-slow, slowdown: [1.1, 2]}\n");
  ASSERT_THAT(spec.processes, SizeIs(2));
  EXPECT_EQ(std::get<FailSlow>(spec.processes[1].law).high_factor, 2);
}

TEST(Failures, AreVariedByTheirPaths) {
  const std::string job = kJob + "failures: {process: {kind: weibull}, policy: {name: bamboo}}\n";
  const auto rate = [&](const std::vector<std::string>& overrides, const std::string& text) {
    const Result result = read(text, overrides);
    if (!result.scenario) ADD_FAILURE() << result.messages;
    return result.scenario ? std::get<WeibullNodeFailures>(result.scenario->failures->processes.at(0).law)
                                 .rate_per_node_day
                           : 0;
  };
  EXPECT_EQ(rate({"failures.process.rate_per_node_day=0.02"}, job), 0.02);
  EXPECT_EQ(
      rate({"failures.process.0.rate_per_node_day=0.03"}, kJob + "failures: {process: [{kind: weibull}]}\n"),
      0.03);
  const Result none = read(kJob, {"failures.process.rate_per_node_day=0.02"});
  ASSERT_TRUE(none.scenario) << none.messages;
  EXPECT_EQ(std::get<ExponentialFailures>(none.scenario->failures->processes.at(0).law).rate_per_node_day,
            0.02);
}

// A named policy becomes the mapping that the name stands for.
TEST(Failures, TakeAKeyOfThePolicyBesideItsName) {
  Diagnostics diagnostics;
  const std::vector<std::string> overrides{"failures.policy=oobleck", "failures.policy.max_failures=2"};
  const auto scenario =
      load_scenario(kRoot / "scenarios/llama3-70b-256xA100.yaml", overrides, repository_files(), diagnostics);
  ASSERT_TRUE(scenario && scenario->failures);
  EXPECT_EQ(scenario->failures->policy.kind, PolicyKind::kOobleck);
  EXPECT_EQ(scenario->failures->policy.max_failures, 2);
}

TEST(Failures, TakeAKeyOfTheProcessBesideItsKind) {
  Diagnostics diagnostics;
  const std::vector<std::string> overrides{"failures.process=weibull", "failures.process.shape=2"};
  const auto scenario =
      load_scenario(kRoot / "scenarios/llama3-70b-256xA100.yaml", overrides, repository_files(), diagnostics);
  ASSERT_TRUE(scenario && scenario->failures);
  EXPECT_EQ(std::get<WeibullNodeFailures>(scenario->failures->processes.at(0).law).shape, 2);
}

TEST(Failures, HaveAHorizonAboveZero) {
  const std::string job = kJob + "failures: {process: {rate_per_node_day: 0.01}, policy: none, horizon: ";
  EXPECT_THAT(read(job + "0 s}\n").messages, HasSubstr("0 s is not above 0 and at most 100 years"));
  EXPECT_THAT(
      read(job + "30}\n").messages,
      HasSubstr("failures.horizon: '30' has no unit\n  hint: 30 days? units are ns us ms s min h days"));
}

std::string warnings_of(const std::string& section) {
  const Result result = read(kJob + section);
  if (!result.scenario) return result.messages;
  std::string text;
  for (const Diagnostic& warning : result.scenario->warnings)
    text += warning.path + ": " + warning.message + "\n";
  return text;
}

TEST(Failures, SayWhichOfTheirKeysHadNoEffect) {
  EXPECT_EQ(
      warnings_of(
          "failures: {process: {rate_per_node_day: 0.01}, policy: none, repair: 24 h, horizon: 1 days}\n"),
      "");
  EXPECT_EQ(warnings_of("failures: {process: {severity: process}, repair: 24 h}\n"),
            "failures.repair: had no effect: no process breaks a node that this repair is for\n");
  EXPECT_EQ(warnings_of("failures: {policy: none, checkpoint: {interval: daly}}\n"),
            "failures.checkpoint: had no effect: policy none writes no checkpoints\n");
  EXPECT_EQ(warnings_of("failures: {process: {cause: gpu, detect: 1 s}, detect: 2 s}\n"),
            "failures.process.detect: had no effect: failures.detect is for every cause\n");
}

TEST(Failures, SayWhatOfACheckpointIsGivenTwice) {
  const auto warnings = [](const std::string& keys) {
    return warnings_of("failures: {checkpoint: {" + keys + "}}\n");
  };
  EXPECT_EQ(warnings("block: 10 s, node_read: 1 GB/s"), "");
  EXPECT_EQ(
      warnings("block: 10 s, node_write: 1 GB/s"),
      "failures.checkpoint.node_write: had no effect: failures.checkpoint.block says how long it takes\n");
  EXPECT_EQ(warnings("mode: async, block: 10 s, node_write: 1 GB/s"), "");
  EXPECT_EQ(warnings("mode: async, persist: 10 s, storage_write: 1 GB/s"),
            "failures.checkpoint.storage_write: had no effect: failures.checkpoint.persist says how long it "
            "takes\n");
  EXPECT_EQ(
      warnings("load: 10 s, storage_read: 1 GB/s"),
      "failures.checkpoint.storage_read: had no effect: failures.checkpoint.load says how long it takes\n");
}

TEST(Failures, SayWhichKeysOfAPolicyHadNoEffect) {
  EXPECT_EQ(warnings_of("failures: {policy: {name: oobleck, reconfigure: 2 s, swap: 1 s}}\n"),
            "failures.policy.swap: had no effect: failures.policy.reconfigure is all of it\n");
  EXPECT_EQ(warnings_of("failures: {policy: {name: oobleck, swap: 1 s}}\n"), "");
  EXPECT_EQ(warnings_of("failures: {policy: {name: varuna, checkpoint_every: 5}}\n"), "");
  EXPECT_EQ(
      warnings_of("failures: {policy: {name: varuna, checkpoint_every: 5, reconfigure: 1 s}, checkpoint: "
                  "{interval: 10 steps}}\n"),
      "failures.policy.reconfigure: had no effect: without a table of throughput varuna takes "
      "failures.policy.restart\n"
      "failures.policy.checkpoint_every: had no effect: failures.checkpoint.interval says how often\n");
  EXPECT_EQ(
      warnings_of("failures: {policy: {name: varuna, samples_per_step: 128, throughput: {16: 10}}, "
                  "checkpoint: {interval: 10 steps, block: 1 s}, detect: 1 min}\n"),
      "failures.checkpoint.interval: had no effect: a replay of a table of throughput takes it from the "
      "policy\n"
      "failures.detect: had no effect: a replay of a table of throughput takes it from the policy\n");
}

TEST(Failures, SayThatBambooCountsItsPipelinesItself) {
  const std::string policy = "failures: {policy: {name: bamboo, pipelines: 4, stages: 12";
  EXPECT_EQ(warnings_of(policy + ", samples_per_step: 128, throughput: {16: 10}}}\n"),
            "failures.policy.pipelines: had no effect: a replay has as many as nodes fill, of "
            "failures.policy.stages each\n");
  EXPECT_THAT(warnings_of(policy + "}}\n"),
              HasSubstr("failures.policy.pipelines: had no effect: without a table of throughput"));
}

// Of a replay; the policies themselves cut their own.
TEST(Failures, SayThatOnlyAReplayHasStagesOfItsOwn) {
  for (const char* name : {"oobleck", "varuna"}) {
    const std::string policy = "failures: {policy: {name: " + std::string(name) + ", stages: 12";
    EXPECT_EQ(warnings_of(policy + ", samples_per_step: 128, throughput: {16: 10}}}\n"), "");
    EXPECT_EQ(
        warnings_of(policy + "}}\n"),
        "failures.policy.stages: had no effect: without a table of throughput the policy cuts its own\n");
  }
}

TEST(Failures, SayWhereThereIsNothingToDetect) {
  const std::string maintenance =
      "failures: {process: {kind: maintenance, duration: 1 h, detect: 3 s, notice: ";
  EXPECT_EQ(warnings_of(maintenance + "0 s}}\n"), "");
  EXPECT_EQ(warnings_of(maintenance + "1 h}}\n"),
            "failures.process.detect: had no effect: an announced removal needs no detection\n");
  EXPECT_EQ(warnings_of("failures: {process: [{kind: exponential}, {kind: fail-slow, detect: 3 s}]}\n"),
            "failures.process.1.detect: had no effect: a slow node does not stop the job\n");
  EXPECT_EQ(warnings_of("failures: {process: [{kind: exponential}, {kind: fail-slow}], detect: 3 s}\n"), "");
  EXPECT_EQ(warnings_of("failures: {process: fail-slow, detect: 3 s}\n"),
            "failures.detect: had no effect: nothing that happens has to be detected\n");
}

TEST(Failures, SayWhereVarunaWaitsForNoAnnouncement) {
  const std::string job = "failures: {policy: {name: varuna, announced_wait: 60 s";
  EXPECT_EQ(warnings_of(job + "}}\n"),
            "failures.policy.announced_wait: had no effect: nothing is announced: neither by "
            "failures.policy.notice nor by maintenance with a notice\n");
  EXPECT_EQ(warnings_of(job + ", notice: 2 min}}\n"), "");
  const std::string maintenance =
      "}, process: [{kind: exponential, rate_per_node_day: 0.01}, {kind: maintenance, period: 24 h, "
      "duration: "
      "1 h, notice: ";
  EXPECT_EQ(warnings_of(job + maintenance + "10 min}]}\n"), "");
  EXPECT_THAT(warnings_of(job + maintenance + "0 s}]}\n"), HasSubstr("nothing is announced"));
  EXPECT_THAT(warnings_of(job + ", notice: 2 min, samples_per_step: 128, throughput: {16: 10}}}\n"),
              AllOf(HasSubstr("announced_wait: had no effect: a replay of a table"),
                    HasSubstr("notice: had no effect: a replay of a table")));
}

TEST(Failures, SayWhereElasticDetectsWithinItsStall) {
  const auto warnings = [](const std::string& keys) {
    return warnings_of("failures: {policy: {name: elastic, stall: 60 s}, " + keys + "}\n");
  };
  const std::string counts = ": counts as 60.0 s where a replica fails: failures.policy.stall has it in it\n";
  EXPECT_EQ(warnings("detect: 60 s"), "");
  EXPECT_EQ(warnings("detect: 61 s"), "failures.detect" + counts);
  EXPECT_EQ(warnings("process: {cause: gpu, detect: 2 min}"), "failures.process.detect" + counts);
  EXPECT_EQ(warnings("process: [{cause: gpu, detect: 1 s}, {cause: host, detect: 2 min}]"),
            "failures.process.1.detect" + counts);
  EXPECT_EQ(warnings("process: {causes: [{name: gpu, share: 0.5, detect: 2 min}, {name: host, share: 0.5}]}"),
            "failures.process.causes.0.detect" + counts);
  // Wrong results are found out for as long as that takes.
  EXPECT_EQ(
      warnings("process: {kind: silent-corruption, rate_per_node_day: 0.01, discovery: 1 h, detect: 2 min}"),
      "");
  EXPECT_EQ(warnings_of("failures: {policy: hot-spares, detect: 1 h}\n"), "");
}

TEST(Failures, SayWhenATraceHasMoreNodesThanTheCluster) {
  EXPECT_EQ(warnings_of("failures: {process: {kind: trace, file: bamboo_p3_spot}}\n"),
            "failures.process.file: up to 32 nodes are there at once, and the cluster has 16: additions "
            "beyond them are "
            "skipped\n");
  EXPECT_EQ(warnings_of("failures: {process: {kind: trace, file: sailor_gcp_a100_counts}}\n"), "");
}

TEST(Failures, HaveNoTimesThatDoNotAddUp) {
  const Result result =
      read(kJob + "failures:\n  policy: {name: hot-spares, swap: 8000 days}\n  detect: 7301 days\n");
  EXPECT_THAT(result.messages, HasSubstr("failures.policy: swap: 8000 days is more than 20 years"));
  EXPECT_THAT(result.messages, HasSubstr("failures.detect: detect: 7301 days is more than 20 years"));
}

TEST(Failures, HaveNoRepairsAndNoLawsThatDoNotAddUp) {
  const auto messages = [](const std::string& section) {
    return read(kJob + "failures:\n" + section).messages;
  };
  EXPECT_THAT(messages("  repair: 54000 days\n"),
              HasSubstr("failures.repair: repair: 54000 days is more than 20 years"));
  EXPECT_THAT(messages("  process: {cause: gpu, repair: 54000 days}\n"),
              HasSubstr("failures.process: repair: 54000 days is more than 20 years"));
  EXPECT_THAT(messages("  process: {kind: maintenance, notice: 1 h, duration: 54000 days}\n"),
              HasSubstr("failures.process: duration: 54000 days is more than 20 years"));
  EXPECT_THAT(messages("  process: {kind: fail-slow, longest: 54000 days}\n"),
              HasSubstr("failures.process: longest: 54000 days is more than 20 years"));
}

TEST(Failures, HaveNoThroughputThatMakesNoStep) {
  const auto messages = [](const std::string& rate) {
    return read(kJob + "failures:\n  policy: {name: oobleck, throughput: {16: " + rate + "}}\n").messages;
  };
  EXPECT_THAT(messages("1e13"), HasSubstr("1e13 is more than 1000000000"));
  EXPECT_THAT(messages("1e-12"), HasSubstr("1e-12 samples per second are too few"));
  EXPECT_EQ(messages("0"), "");
}

TEST(FailureProcess, NamesItsCauses) {
  const FailureProcess process = only_process(
      "{causes: [{name: gpu, share: 0.7, detect: 1 s, repair: 2 h}, {name: software, share: 0.3, severity: "
      "process}]}");
  ASSERT_THAT(process.causes, SizeIs(2));
  EXPECT_EQ(process.causes[0].detect, seconds(1));
  ASSERT_TRUE(process.causes[0].repair);
  EXPECT_EQ(process.causes[0].repair->time, hours(2));
  EXPECT_EQ(process.causes[1].detect, seconds(10));
  EXPECT_EQ(process.causes[1].severity, FailureSeverity::kProcess);
}

TEST(FailureProcess, MayHaveOneCause) {
  const FailureProcess process = only_process("{cause: gpu, severity: process, detect: 2 s}");
  EXPECT_THAT(process.causes,
              ElementsAre(Cause{.name = "gpu", .severity = FailureSeverity::kProcess, .detect = seconds(2)}));
}

TEST(FailureProcess, ListsComponentsWithARateEach) {
  const FailureProcess process = only_process(
      "{kind: components, causes: [{name: gpu, rate_per_node_day: 0.002}, {name: disk, rate_per_node_day: "
      "0.0001}]}");
  EXPECT_THAT(std::get<ComponentFailures>(process.law).rates_per_node_day, ElementsAre(0.002, 0.0001));
  EXPECT_EQ(process.causes.at(1).name, "disk");
}

// Nodes under one leaf of the fabric fail together; sizes as they were counted in a real cluster.
TEST(FailureProcess, TakesALeafOfTheFabricForADomainOfBursts) {
  const Result result = read(kJob + "failures: {process: bursts}\n");
  ASSERT_TRUE(result.scenario) << result.messages;
  const auto& bursts = std::get<BurstFailures>(result.scenario->failures->processes.at(0).law);
  EXPECT_EQ(bursts.domain_nodes, result.scenario->cluster->fabric.nodes_per_leaf);
  EXPECT_EQ(bursts.sizes.front(), std::pair(1, 499.0));
}

TEST(FailureProcess, TakesAllNodesForADomainOfBurstsWhereThereAreNoLeaves) {
  for (const char* fabric :
       {"{kind: single-switch}", "{kind: torus, dims: [4, 4], link_bandwidth: 25 GB/s}"}) {
    const FailureSpec spec =
        failures_of("failures: {process: bursts}\n", {std::string("cluster.fabric=") + fabric});
    EXPECT_EQ(std::get<BurstFailures>(spec.processes.at(0).law).domain_nodes, 16) << fabric;
  }
}

TEST(FailureProcess, FindsTracesBesideTheScenarioAndAmongOurs) {
  for (const char* file : {"bamboo_p3_spot", "bamboo_p3_spot.csv", "traces/bamboo_p3_spot.csv"}) {
    const FailureProcess process = only_process(std::string("{kind: trace, file: ") + file + "}");
    const auto& replay = std::get<TraceReplay>(process.law);
    EXPECT_THAT(replay.trace.rows, SizeIs(344)) << file;
    EXPECT_EQ(replay.creation, seconds(45)) << file;
    EXPECT_EQ(process.causes.at(0).name, "preemption") << file;
  }
}

TEST(FailureProcess, NamesTheCausesOfATraceByItsClasses) {
  const FailureProcess process =
      only_process("{kind: trace, file: infinitehbd_faults, servers: 400, leave_out: [Test, Change]}");
  const auto& replay = std::get<TraceReplay>(process.law);
  EXPECT_THAT(replay.trace.causes, SizeIs(21));
  EXPECT_THAT(process.causes, SizeIs(19));
  EXPECT_EQ(replay.creation, Duration(0));
}

TEST(Checkpoint, IsWrittenAtAnIntervalOfManyForms) {
  const auto checkpoint = [](const std::string& interval) {
    return failures_of("failures: {checkpoint: {interval: " + interval + "}}\n").checkpoint;
  };
  EXPECT_EQ(checkpoint("young").rule, IntervalRule::kYoung);
  EXPECT_EQ(checkpoint("daly").rule, IntervalRule::kDaly);
  EXPECT_EQ(checkpoint("30 min").interval, minutes(30));
  EXPECT_EQ(checkpoint("30 min").rule, IntervalRule::kTime);
  EXPECT_EQ(checkpoint("10 steps").every_steps, 10);
  EXPECT_EQ(checkpoint("10 steps").rule, IntervalRule::kSteps);
}

// A node alone gets more of a storage system than one of a thousand; whoever has more nodes has a larger one.
TEST(Checkpoint, IsWrittenToAStorageThatAllNodesShare) {
  const auto checkpoint = [](const std::string& keys, std::vector<std::string> overrides = {}) {
    return failures_of("failures: {checkpoint: {" + keys + "}}\n", std::move(overrides)).checkpoint;
  };
  const CheckpointSpec usual = checkpoint("mode: sync");
  EXPECT_EQ(usual.node_write, Bandwidth(4e9));
  EXPECT_EQ(usual.node_read, Bandwidth(8e9));
  EXPECT_EQ(usual.storage_write, Bandwidth(111e9));
  EXPECT_EQ(usual.storage_read, Bandwidth(43.8e9));
  EXPECT_EQ(checkpoint("mode: sync", {"cluster.nodes=1120"}), usual);
  EXPECT_EQ(checkpoint("mode: sync", {"cluster.nodes=2240"}).storage_write, Bandwidth(222e9));

  const CheckpointSpec given = checkpoint("node_write: 10 GB/s");
  EXPECT_EQ(given.node_write, Bandwidth(10e9));
  EXPECT_EQ(given.storage_write, Bandwidth(0)) << "what a scenario says of a node holds for any number";
  EXPECT_EQ(given.storage_read, usual.storage_read);
  EXPECT_EQ(checkpoint("node_write: 10 GB/s, storage_write: 20 GB/s").storage_write, Bandwidth(20e9));
  EXPECT_DOUBLE_EQ(checkpoint("mode: async").snapshot.count(), 1.07e9) << "as training was seen to wait";
  EXPECT_EQ(checkpoint("mode: in-memory").snapshot, Bandwidth(0)) << "the profile's PCIe";
  EXPECT_EQ(checkpoint("storage_read: 1 GB/s").storage_read, Bandwidth(1e9));
}

TEST(Policy, RestartsByATableOverGpus) {
  const FailureSpec spec =
      failures_of("failures: {policy: {name: checkpoint-restart, restart: {98000: 900 s, 16000: 200 s}}}\n");
  EXPECT_THAT(spec.policy.restart,
              ElementsAre(Pair(16000, Duration(seconds(200))), Pair(98000, Duration(seconds(900)))));
}

TEST(Policy, TakesThePublishedRulesByBothOfTheirNames) {
  const auto rules = [](const std::string& name) {
    return failures_of("failures: {policy: {name: oobleck, rules: " + name + "}}\n").policy.rules;
  };
  EXPECT_EQ(rules("artifact"), Rules::kPublished);
  EXPECT_EQ(rules("published"), Rules::kPublished);
  EXPECT_EQ(rules("corrected"), Rules::kCorrected);
  EXPECT_EQ(failures_of("failures: {policy: oobleck}\n").policy.rules, Rules::kCorrected);
}

TEST(Policy, ClimbsTheRungsThatAreNamed) {
  const auto slow = [](const std::string& value) {
    return failures_of("failures: {policy: {name: hot-spares, slow_nodes: " + value + "}}\n").policy.slow;
  };
  EXPECT_FALSE(failures_of("failures: {policy: hot-spares}\n").policy.slow.any());
  EXPECT_FALSE(slow("ignore").any());
  EXPECT_EQ(slow("ladder"), (SlowRungs{.rebalance = true, .exchange = true, .restart = true, .notice = 1.1}));
  EXPECT_EQ(slow("{rungs: [exchange], notice: 1.5, lasts: 1 h}"),
            (SlowRungs{.exchange = true, .notice = 1.5, .lasts = hours(1)}));
}

// Every kind and policy, with keys that are not the defaults: out and in again.
// Who says which nodes there are leaves nobody to replace a lost one. A trace of faults does not say it.
TEST(Failures, WaitForALostNodeWhereAProcessSaysWhichNodesThereAre) {
  const std::vector<std::string> policies{"checkpoint-restart", "none"};
  const auto lost = [](const std::string& process, const std::string& policy) {
    return failures_of("failures:\n  process: " + process + "\n  policy: " + policy + "\n").policy.lost;
  };
  const std::string counts = "{kind: trace, file: bamboo_gcp_a100x1-east1b_counts}";
  for (const std::string& policy : policies) {
    SCOPED_TRACE(policy);
    EXPECT_EQ(lost("{kind: trace, file: bamboo_p3_spot}", policy), LostNode::kWaitedFor);
    EXPECT_EQ(lost(counts, policy), LostNode::kWaitedFor);
    EXPECT_EQ(lost("[{kind: exponential}, {kind: spot}]", policy), LostNode::kWaitedFor);
    EXPECT_EQ(lost("{kind: trace, file: infinitehbd_faults, servers: 400}", policy), LostNode::kReplaced);
    EXPECT_EQ(lost("exponential", policy), LostNode::kReplaced);
  }
  EXPECT_EQ(lost(counts, "{name: checkpoint-restart, lost: done-without}"), LostNode::kDoneWithout);
}

TEST(Failures, AreReadBackFromWhatTheyArePrintedAs) {
  const std::vector<std::string> processes{
      "exponential",
      "{kind: exponential, rate_per_node_day: 0.1, exponent: 0.5, reference_nodes: 8, lemon_factor: 1.085}",
      "{kind: components, causes: [{name: gpu, rate_per_node_day: 0.002, repair: none}, {name: disk, "
      "rate_per_node_day: 1e-5}]}",
      "{kind: weibull, shape: 0.7, cause: gpu, repair: {kind: constant, time: 90 min}}",
      "{kind: weibull-cluster, severity: process}",
      "{kind: bursts, bursts_per_day: 0.5, mean_size: 2.1, domain_nodes: 4}",
      "{kind: bursts, sizes: {1: 3, 2: 0.5}}",
      "{kind: trace, file: bamboo_p3_spot, scale: 0.5, offset: 1 h, repeat: true, creation: 1 s}",
      "{kind: trace, file: bamboo_gcp_a100x1-east1b_counts, count_scale: 0.125}",
      "{kind: trace, file: infinitehbd_faults, servers: 400, leave_out: [Test, Change]}",
      "{kind: spot, start_hour: 5}",
      "{kind: spot, removal: 0.1, random_additions: true}",
      "{kind: fail-slow, share: 0.01, slowdown: [1.1, 3.7], longest: 1 h, part: traffic}",
      "{kind: fail-slow, rate_per_node_day: 0.2}",
      "{kind: silent-corruption, discovery: 2 h}",
      "{kind: maintenance, jitter: 1 h, notice: 2 min, duration: 30 min}",
      "[{kind: exponential}, {kind: maintenance, notice: 0 s, duration: 1 h}]",
      "[]"};
  const std::vector<std::string> policies{
      "checkpoint-restart",
      "{name: checkpoint-restart, lost: waited-for, restart: {8: 1 s, 16: 2 s}}",
      "{name: hot-spares, spares: 3, swap: 1 s, state: peer}",
      "{name: oobleck, max_failures: 2, cost: simulated, recompose_on_join: false, reconfigure: 2 s, stages: "
      "3}",
      "{name: bamboo, rules: artifact, pipelines: 4, stages: 12, throughput: {12: 3.5, 24: 7}, "
      "samples_per_step: 32}",
      "{name: varuna, notice: 30 s, stages: 12}",
      "recycle",
      "{name: elastic, min_replicas: 2, keep_batch: true}",
      "{name: elastic, spares: 2, quorum: 0.7 s}",
      "{name: hot-spares, state: peer, backup: 0.009, slow_nodes: ladder}",
      "{name: hot-spares, slow_nodes: {rungs: [restart, rebalance], notice: 1.25, lasts: 2 h}}",
      "none"};
  const std::vector<std::string> checkpoints{
      "{}",
      "{mode: async, interval: 10 steps, block: 6.3 s, persist: 1 min, slowdown: 1.05, snapshot: 20 GB/s}",
      "{mode: in-memory, interval: daly, copies: 3, bytes: 2 TB, storage_write: 0.3 TB/s, load: 7 s}"};
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const std::string section = "failures:\n  process: " + processes[i] +
                                "\n  policy: " + policies[i % policies.size()] +
                                "\n  checkpoint: " + checkpoints[i % checkpoints.size()] +
                                (i % 2 == 0 ? "\n" : "\n  repair: 24 h\n  detect: 3 s\n");
    SCOPED_TRACE(section);
    const Result first = read(kJob + section);
    ASSERT_TRUE(first.scenario) << first.messages;
    const Result second = read(to_yaml(*first.scenario));
    ASSERT_TRUE(second.scenario) << second.messages << to_yaml(*first.scenario);
    EXPECT_TRUE(second.scenario->failures == first.scenario->failures) << to_yaml(*first.scenario);
    EXPECT_EQ(to_yaml(*second.scenario), to_yaml(*first.scenario));
    EXPECT_TRUE(second.scenario->assumed.empty()) << second.scenario->assumed.front().path;
  }
}

}  // namespace
}  // namespace stagecraft
