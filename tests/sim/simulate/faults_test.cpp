// What goes wrong inside an iteration: small systems with a pencil, and what holds of every scenario.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

// Two stages, one micro-batch, messages for nothing: F 0-10 and 10-20, B 20-40 and 40-60 ms. GPU 1 is
// stage 1.
Report two_stages(const std::string& faults) {
  return simulate(
      scenario_of("stagecraft: 1\n"
                  "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms}\n"
                  "parallelism: {pipeline: 2}\n"
                  "training: {global_batch_size: 1}\n"
                  "faults: [" +
                  faults + "]\n"));
}

TEST(Faults, OfAFactorOfOneAreNone) {
  const Report report = two_stages("{kind: slow-gpu, gpu: 1, factor: 1}");
  EXPECT_EQ(report.iteration_time, 60ms);
  EXPECT_EQ(report.faults->without, 60ms);
  EXPECT_TRUE(report.finishes());
}

// B of stage 1 from 20 ms on takes 40: 20-60; stage 0 to 80.
TEST(Faults, SlowTheComputeOfAGpu) {
  EXPECT_EQ(two_stages("{at: 20 ms, kind: slow-gpu, gpu: 1, factor: 2}").iteration_time, 80ms);
}

// From 20 to 40 ms at half speed: 10 of 20 ms are done, so B ends at 50 and the iteration at 70.
TEST(Faults, LastAsLongAsTheySay) {
  EXPECT_EQ(two_stages("{at: 20 ms, kind: slow-gpu, gpu: 1, factor: 2, for: 20 ms}").iteration_time, 70ms);
}

// Twice and three times as long: six times, B from 20 to 140.
TEST(Faults, OfOneGpuMultiply) {
  EXPECT_EQ(two_stages("{at: 20 ms, kind: slow-gpu, gpu: 1, factor: 2},"
                       "{at: 20 ms, kind: slow-gpu, gpu: 1, factor: 3}")
                .iteration_time,
            160ms);
}

TEST(Faults, AfterTheEndChangeNothing) {
  EXPECT_EQ(two_stages("{at: 60 ms, kind: slow-gpu, gpu: 1, factor: 9}").iteration_time, 60ms);
}

// Two nodes of a GPU each, replicas of one stage: F 0-10, B -30, gradients of 400 MB over 10 GB/s -70 ms.
Report two_replicas(const std::string& network, const std::string& faults) {
  return simulate(
      scenario_of("stagecraft: 1\n"
                  "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms,"
                  " activation: 1 MB, gradient: 400 MB}\n"
                  "cluster:\n"
                  "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
                  "  nodes: 2\n"
                  "  fabric: {kind: single-switch}\n"
                  "parallelism: {data: 2}\n"
                  "overlap: {gradients: false}\n"
                  "training: {global_batch_size: 2}\n"
                  "network: " +
                  network + "\nfaults: [" + faults + "]\n"));
}

// The slow replica's B ends at 50 and the reduction waits for it.
TEST(Faults, HoldUpTheCollectivesThatWaitForASlowNode) {
  for (const char* network : {"closed-form", "flow"})
    EXPECT_EQ(two_replicas(network, "{at: 10 ms, kind: slow-node, node: 1, factor: 2}").iteration_time, 90ms);
}

// By 15 ms B of replica 1 has run 5 ms and never ends. Replica 0 ends its own at 30 and waits.
TEST(Faults, OfADeadNodeStallTheOthersWhenTheyNeedIt) {
  for (const char* network : {"closed-form", "flow"}) {
    const Report report = two_replicas(network, "{at: 15 ms, kind: dead-node, node: 1}");
    EXPECT_FALSE(report.finishes());
    EXPECT_EQ(report.faults->stall, 30ms);
    EXPECT_EQ(report.faults->without, 70ms);
    EXPECT_EQ(report.samples_per_s(), 0);
    const StalledRank dead{
        .rank = "pipeline 0, data 1", .since = 10ms, .task = "B0", .stuck = true, .begun = true};
    const StalledRank idle{.rank = "pipeline 0, data 0",
                           .since = 30ms,
                           .task = "gradient reduction",
                           .waits_for = "B0",
                           .waits_for_rank = "pipeline 0, data 1"};
    EXPECT_THAT(report.faults->ranks, ElementsAre(dead, idle));
  }
}

// Replica 0 takes twice as long, to 60 ms. The B under which replica 1 dies is no work of 50 ms.
TEST(Faults, OfADeadNodeDoNotMakeItTheBusiest) {
  for (const int dead : {0, 1}) {
    const Report report = two_replicas(
        "closed-form", "{at: 15 ms, kind: dead-node, node: " + std::to_string(dead) +
                           "}, {kind: slow-node, factor: 2, node: " + std::to_string(1 - dead) + "}");
    EXPECT_EQ(report.faults->stall, 60ms);
    EXPECT_EQ(part_of(report, Category::kForward), 20ms);
    EXPECT_EQ(part_of(report, Category::kBackward), 40ms);
    EXPECT_EQ(sum_of(report.breakdown), 60ms);
    EXPECT_EQ(report.bubble.ideal, 60ms);
    EXPECT_DOUBLE_EQ(report.bubble.fraction, 1 - 70.0 / 120);
  }
}

// Two nodes of a GPU each, a stage each: the F of stage 0 ends at 10 ms.
Report two_nodes(const std::string& faults) {
  return simulate(
      scenario_of("stagecraft: 1\n"
                  "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms}\n"
                  "cluster:\n"
                  "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
                  "  nodes: 2\n"
                  "  fabric: {kind: single-switch}\n"
                  "parallelism: {pipeline: 2}\n"
                  "training: {global_batch_size: 1}\n"
                  "faults: [" +
                  faults + "]\n"));
}

// Stage 1 dies before the F that stage 0 sends it at 10 ms.
TEST(Faults, OfANodeThatDiesWhileItIsIdleBeginNothing) {
  const Report report = two_nodes("{at: 5 ms, kind: dead-node, node: 1}");
  const StalledRank idle{.rank = "pipeline 0, data 0",
                         .since = 10ms,
                         .task = "B0",
                         .waits_for = "F0",
                         .waits_for_rank = "pipeline 1, data 0"};
  const StalledRank dead{.rank = "pipeline 1, data 0", .since = 5ms, .task = "F0", .stuck = true};
  EXPECT_THAT(report.faults->ranks, ElementsAre(idle, dead));
  EXPECT_THAT(render_text(report, false),
              testing::HasSubstr("pipeline 1, data 0: dead from 5.00 ms on, before F0\n"));
}

// Stage 1 waits for nobody any more when stage 0 dies as well.
TEST(Faults, OfANodeThatDiesWaitingForOneThatDiesLeaveBothDead) {
  const Report report =
      two_nodes("{at: 2 ms, kind: dead-node, node: 1}, {at: 5 ms, kind: dead-node, node: 0}");
  const StalledRank in_a_pass{
      .rank = "pipeline 0, data 0", .since = 0ms, .task = "F0", .stuck = true, .begun = true};
  const StalledRank before_one{.rank = "pipeline 1, data 0", .since = 2ms, .task = "F0", .stuck = true};
  EXPECT_THAT(report.faults->ranks, ElementsAre(in_a_pass, before_one));
}

// A collective that has lost a member does not end for anybody.
TEST(Faults, OfANodeThatDiesInACollectiveHoldAllOfIt) {
  const Report report = two_replicas("flow", "{at: 35 ms, kind: dead-node, node: 1}");
  EXPECT_EQ(report.faults->stall, 35ms);
  for (const StalledRank& rank : report.faults->ranks) {
    EXPECT_EQ(rank.task, "gradient reduction");
    EXPECT_TRUE(rank.stuck);
  }
  EXPECT_EQ(report.faults->ranks.size(), 2);
}

TEST(Faults, OfANodeThatDiesAfterTheEndAreNone) {
  EXPECT_TRUE(two_replicas("flow", "{at: 70 ms, kind: dead-node, node: 1}").finishes());
}

// 20 of 40 ms are through by 50; the rest takes twice as long.
TEST(Faults, TakeCapacityFromALink) {
  EXPECT_EQ(
      two_replicas("flow", "{at: 50 ms, kind: degraded-link, link: node 0 nic 0 -> leaf 0, factor: 0.5}")
          .iteration_time,
      90ms);
}

// Half of it from 50 to 70: 10 ms' worth, and the last 10 as usual.
TEST(Faults, GiveALinkItsCapacityBack) {
  EXPECT_EQ(two_replicas("flow",
                         "{at: 50 ms, kind: degraded-link, link: node 0 nic 0 -> leaf 0, factor: 0.5,"
                         " for: 20 ms}")
                .iteration_time,
            80ms);
}

// Each alone may leave a millionth of a link; what all leave together may not be less.
TEST(Faults, ThatLeaveALinkNextToNothingAreRefused) {
  const auto message = [](const std::string& faults, const std::string& network = "flow") -> std::string {
    try {
      (void)two_replicas(network, faults);
      return "";
    } catch (const ScenarioError& error) {
      return error.diagnostics().front().message;
    }
  };
  const std::string thousandth = "{kind: degraded-link, link: node 0 nic 0 -> leaf 0, factor: 1e-3}";
  EXPECT_EQ(message(thousandth + ", " + thousandth), "");
  EXPECT_EQ(message(thousandth + ", " + thousandth + ", " + thousandth),
            "leave 1e-08 GB/s of the 10 GB/s of node 0 nic 0 -> leaf 0");
  EXPECT_EQ(
      message(thousandth, "{mode: flow, background: [{from: node 0, to: node 1, rate: 9.9999999 MB/s}]}"),
      "leave 0.01 GB/s of the 10 GB/s of node 0 nic 0 -> leaf 0, and background traffic asks "
      "0.0099999999 GB/s");
}

// Two nodes that lack every link have no way to each other, fault or not; one node alone needs none, and has
// no link that could degrade.
TEST(Faults, OfLinksThatAreAllMissingAreRefused) {
  const auto refusal = [](const std::string& nodes, const std::string& faults) {
    try {
      (void)simulate(scenario_of(
          "stagecraft: 1\n"
          "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms}\n"
          "cluster:\n"
          "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
          "  nodes: " +
          nodes +
          "\n"
          "  fabric: {kind: single-switch}\n"
          "  links: [{name: \"*\", missing: true}]\n"
          "training: {global_batch_size: 2}\n"
          "network: flow\n" +
          faults));
      return std::string("none");
    } catch (const ScenarioError& error) {
      return error.diagnostics().front().path + ": " + error.diagnostics().front().message;
    }
  };
  const std::string fault = "faults: [{kind: degraded-link, link: \"*\", factor: 0.1}]\n";
  EXPECT_EQ(refusal("2", ""),
            "cluster.links.0.missing: no way is left from node 0 gpu 0 to node 1 gpu 0 without '*'");
  EXPECT_EQ(refusal("2", fault), refusal("2", ""));
  EXPECT_EQ(refusal("1", ""), "none");
  EXPECT_EQ(refusal("1", fault), "faults.0.link: the cluster has no link");
}

TEST(Faults, OfALinkThatHasRoomAreNone) {
  EXPECT_EQ(
      two_replicas("flow", "{kind: degraded-link, link: \"node 0 gpu 0 -> *\", factor: 0.5}").iteration_time,
      70ms);
}

const char* const kShipped[] = {"llama3-8b-64xA100", "llama3-8b-fsdp-64xH100", "mixtral-8x7b-64xH100",
                                "sc21-7.5b-128xA100", "llama3-70b-128xH100-shared-links"};

Scenario with_slow_gpu(const char* name, NetworkMode network, double factor) {
  Scenario scenario = shipped(name);
  scenario.network.mode = network;
  scenario.faults = {{.kind = FaultKind::kSlowGpu, .at = 200ms, .gpu = 9, .factor = factor, .ranks = {9}}};
  return scenario;
}

// Property: nothing is faster for a slower GPU, and one that is not slower changes nothing. On shared links
// that holds of an idle network only: who comes late may meet fewer others there (Mixtral is 0.2 per mille
// faster for a GPU that is 1 % slower).
TEST(Faults, OfASlowerGpuNeverMakeItFaster) {
  for (const char* name : kShipped)
    for (const NetworkMode network : {NetworkMode::kClosedForm, NetworkMode::kFlow}) {
      SCOPED_TRACE(name);
      Duration last{};
      for (const double factor : {1.0, 1.01, 1.2, 2.0, 7.0}) {
        const Report report = simulate(with_slow_gpu(name, network, factor));
        EXPECT_TRUE(factor > 1 || report.iteration_time == report.faults->without);
        const bool shared = report.network.shared;
        const Duration time = shared ? report.network.idle_time : report.iteration_time;
        EXPECT_GE(time, last);
        last = time;
      }
    }
}

// Property: a copy that stands for the healthy replicas is those replicas.
TEST(Faults, FoldedEqualUnfolded) {
  for (const char* name : {"llama3-8b-64xA100", "llama3-8b-fsdp-64xH100", "sc21-7.5b-128xA100"})
    for (const NetworkMode network : {NetworkMode::kClosedForm, NetworkMode::kFlow}) {
      SCOPED_TRACE(name);
      const Scenario scenario = with_slow_gpu(name, network, 1.5);
      const Report folded = simulate(scenario), unfolded = simulate(scenario, {.unfold = true});
      EXPECT_EQ(folded.iteration_time, unfolded.iteration_time);
      EXPECT_EQ(folded.bubble, unfolded.bubble);
      EXPECT_LT(folded.simulated_ranks, unfolded.simulated_ranks);
    }
}

// Property: the faultless copies are what one copy is.
TEST(Faults, ThatChangeNothingKeepTheIteration) {
  for (const char* name : kShipped) {
    SCOPED_TRACE(name);
    Scenario scenario = with_slow_gpu(name, NetworkMode::kFlow, 1);
    const Duration with = simulate(scenario).iteration_time;
    scenario.faults.clear();
    EXPECT_EQ(with, simulate(scenario).iteration_time);
  }
}

}  // namespace
}  // namespace stagecraft
