// Links that are shared: small systems with a pencil, and what holds of every scenario that we ship.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

Report flow(Scenario scenario, const SimulateOptions& options = {}) {
  scenario.network.mode = NetworkMode::kFlow;
  return simulate(scenario, options);
}

// System: two nodes of two GPUs, one NIC of 10 GB/s a node and one switch, no latency at all. The pipeline's
// ranks alternate: GPUs 0 and 2 are replicas of rank 0, GPUs 1 and 3 of rank 1, so messages stay in the node,
// and gradients of both ranks cross. F 10, B 20 ms, one micro-batch for each replica, gradients of 400 MB,
// reduced beside nothing (overlap off).
// Closed form: two groups share the node's network, 5 GB/s each: 2(2-1)/2 * 400 MB in 80 ms. Messages take
// 87 MB / (0.87 * 100 GB/s) = 1 ms.
//   rank 0  F 0-10           B 42-62, reduction -142
//   rank 1  F 11-21, B -41, reduction -121
// Flow: the closed form counts both groups of a node, though they never reduce at the same time from 41 to
// 62: rank 1's group is of another pipeline rank. Their transfers take at most the 5 GB/s each that the
// closed form gives them, so nobody waits.
const char* const kTwoReplicas =
    "stagecraft: 1\n"
    "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms,"
    " activation: 87 MB, gradient: 400 MB}\n"
    "cluster:\n"
    "  node: {device: toy, gpus: 2, nvlink: 100 GB/s, nvlink_latency: 0 ms, nics: 1, nic_bandwidth: 10 GB/s,"
    " pcie: 100 GB/s}\n"
    "  nodes: 2\n"
    "  fabric: {kind: single-switch}\n"
    "parallelism: {pipeline: 2, data: 2, order: [pipeline, tensor, context, expert, data]}\n"
    "overlap: {gradients: false}\n"
    "training: {global_batch_size: 2}\n";

TEST(SharedLinks, SlowNobodyWhereTheClosedFormHasSharedThemAlready) {
  const Scenario scenario = scenario_of(kTwoReplicas);
  EXPECT_EQ(simulate(scenario).iteration_time, 142ms);
  const Report report = flow(scenario);
  EXPECT_EQ(report.iteration_time, 142ms);
  EXPECT_EQ(report.network.idle_time, 142ms);
}

// Bytes that leave a node pass the PCIe link between GPU and NIC as they pass the NIC, however much of the
// NVLink's rate collectives inside the node get: nobody else is there to wait for.
TEST(SharedLinks, OfAJobAloneCostWhatTheClosedFormSaysAtAnyRateOfNvlink) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 4, hidden: 2048, heads: 16, vocab: 51200, max_sequence_length: 1024}\n"
      "cluster: {node: dgx-h100, nodes: 4}\n"
      "parallelism: {tensor: 1}\n"
      "training: {global_batch_size: 64, sequence_length: 512}\n"
      "overlap: {gradients: false, parameters: false, pipeline: false}\n");
  for (const int tensor : {1, 2, 4, 8}) {
    for (const double rate : {300e9, 450e9, 600e9, 900e9, 1800e9}) {
      SCOPED_TRACE(testing::Message() << "tensor " << tensor << ", " << rate / 1e9 << " GB/s");
      scenario.parallelism.tensor = tensor;
      scenario.cluster->groups.front().node.nvlink = Bandwidth(rate);
      const Report report = flow(scenario);
      EXPECT_EQ(report.iteration_time, simulate(scenario).iteration_time);
      EXPECT_EQ(report.iteration_time, report.network.idle_time);
    }
  }
}

// System: GPipe of four micro-batches on two nodes, F 1, B 2 ms, and messages of 10 ms over one NIC of 10 GB/s.
// Expectations: they leave one after another, so the forwards of rank 1 end at 12, 22, 32, 42 ms. Its
// backwards end at 44, 46, …, whose messages are there at 54, 64, 74, 84, and a backward follows. Shared
// links know the same order.
TEST(Messages, OfOneRankToAnotherFollowEachOther) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms, activation: 100 "
      "MB}\n"
      "cluster:\n"
      "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
      "  nodes: 2\n"
      "  fabric: {kind: single-switch}\n"
      "parallelism: {pipeline: 2}\n"
      "schedule: gpipe\n"
      "training: {global_batch_size: 4}\n");
  EXPECT_EQ(simulate(scenario).iteration_time, 86ms);
  EXPECT_EQ(flow(scenario).iteration_time, 86ms);
}

// Four nodes with a NIC each: ranks in the middle send activations on and gradients back, which share it.
// That they also receive both at once is known on shared links only: 18 % of zb-h1.
TEST(Messages, ThroughOneNicTakeInTheClosedFormAboutWhatTheyTakeOnSharedLinks) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 2 ms, input_gradient: 2 ms, weight_gradient: 2 ms, activation: 100 "
      "MB}\n"
      "cluster:\n"
      "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
      "  nodes: 4\n"
      "  fabric: {kind: single-switch}\n"
      "parallelism: {pipeline: 4}\n"
      "training: {global_batch_size: 16}\n");
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    SCOPED_TRACE(schedule);
    scenario.schedule.name = schedule;
    const double closed = to_seconds(simulate(scenario).iteration_time);
    EXPECT_NEAR(to_seconds(flow(scenario).iteration_time) / closed, 1, 0.2);
  }
}

// System: four leaves of two nodes of one GPU, a stage of the pipeline below each; one NIC of 10 GB/s a node,
// and where uplinks are oversubscribed by 2, 10 GB/s a leaf for the messages of two replicas: 100 MB take 20
// ms in place of 10. One micro-batch: F and B of 10 and 20 ms through four stages, and three messages each
// way.
TEST(SharedLinks, OfALeafAreSharedByTheMessagesThatLeaveItInTheClosedFormAsWell) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms,"
      " activation: 100 MB}\n"
      "cluster:\n"
      "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
      "  nodes: 8\n"
      "  fabric: {kind: fat-tree, nodes_per_leaf: 2}\n"
      "parallelism: {pipeline: 4, data: 2}\n"
      "training: {global_batch_size: 2}\n");
  EXPECT_EQ(simulate(scenario).iteration_time, 4 * 30ms + 6 * 10ms);
  EXPECT_EQ(flow(scenario).iteration_time, 4 * 30ms + 6 * 10ms);
  scenario.cluster->fabric.oversubscription = 2;
  EXPECT_EQ(simulate(scenario).iteration_time, 4 * 30ms + 6 * 20ms);
  EXPECT_EQ(flow(scenario).iteration_time, 4 * 30ms + 6 * 20ms);
}

// System: the same leaves, and groups of four ranks: over every second node, and over the nodes at one place
// of each leaf. Expectations: two rings leave a leaf, whose uplinks carry 10 GB/s; all-reduces of 400 MB take
// 120 ms at 5 GB/s in place of 60.
TEST(SharedLinks, OfALeafAreSharedByTheRingsThatLeaveItInTheClosedFormAsWell) {
  for (const char* order :
       {"[pipeline, tensor, context, expert, data]", "[tensor, context, expert, data, pipeline]"}) {
    SCOPED_TRACE(order);
    Scenario scenario = scenario_of(
        "stagecraft: 1\n"
        "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms,"
        " gradient: 400 MB}\n"
        "cluster:\n"
        "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
        "  nodes: 8\n"
        "  fabric: {kind: fat-tree, nodes_per_leaf: 2}\n"
        "parallelism: {pipeline: 2, data: 4, order: " +
        std::string(order) +
        "}\n"
        "overlap: {gradients: false}\n"
        "training: {global_batch_size: 4}\n");
    const Duration wide = simulate(scenario).iteration_time;
    EXPECT_EQ(flow(scenario).iteration_time, wide);
    scenario.cluster->fabric.oversubscription = 2;
    const bool alternate = order[1] == 'p';
    const Report tight = simulate(scenario);
    EXPECT_EQ(tight.iteration_time, wide + (alternate ? 60ms : 0ms));
    const bool said = std::ranges::any_of(tight.warnings, [](const std::string& warning) {
      return warning.starts_with("cluster.fabric.oversubscription: had no effect");
    });
    EXPECT_EQ(said, !alternate);
  }
}

// System: two tensor ranks at one place of neighbouring nodes, so that rings of replicas lie on every second
// node; and pairs of experts 4 nodes apart. Uplinks are oversubscribed by 4. Expectations: 16 rings leave a
// leaf over 8 NICs' worth; all that a pair exchanges leaves one.
TEST(SharedLinks, OfALeafAreSharedByGroupsWhereverTheirMembersAre) {
  const auto job = [](const char* model, const char* parallelism, const char* oversubscription) {
    return scenario_of(
        "stagecraft: 1\nmodel: {family: llama, layers: 4, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: "
        "14336,"
        " vocab: 32000" +
        std::string(model) +
        "}\ncluster: {node: dgx-h100, nodes: 8, fabric: {kind: fat-tree, nodes_per_leaf: 4,"
        " oversubscription: " +
        oversubscription +
        "}}\n"
        "training: {global_batch_size: 64, sequence_length: 4096}\noverlap: {gradients: "
        "false}\nparallelism: " +
        parallelism + "\n");
  };
  const char* const experts = ", experts: {count: 8, top_k: 2, ffn_hidden: 14336}";
  for (const auto& [model, parallelism] :
       {std::pair("", "{tensor: 16, sequence_parallel: true}"),
        std::pair(experts, "{expert: 2, order: [tensor, context, data, expert, pipeline]}")}) {
    SCOPED_TRACE(parallelism);
    const Scenario tight = job(model, parallelism, "4");
    const Duration closed = simulate(tight).iteration_time;
    EXPECT_NEAR(to_seconds(flow(tight).iteration_time), to_seconds(closed), 2e-9);
    EXPECT_GT(closed, simulate(job(model, parallelism, "1")).iteration_time);
  }
}

// Somebody else takes 6 of the 10 GB/s from node 0 to node 1, which leaves 4 for two rings: 41 to 62 rank 1's
// group alone may use 4 GB/s, 84 MB; then both share, 2 GB/s each. Rank 1 has 316 MB left, which take 158 ms,
// until 220; rank 0 has moved 316 MB by then and moves the last 84 MB at 4 GB/s: 241 ms.
TEST(SharedLinks, LeaveWhatBackgroundTrafficDoesNotTake) {
  Scenario scenario = scenario_of(kTwoReplicas);
  scenario.network.background = {{.from = {.node = 0}, .to = {.node = 1}, .rate = Bandwidth(6e9)}};
  const Report report = flow(scenario);
  EXPECT_EQ(report.iteration_time, 241ms);
  EXPECT_EQ(report.network.idle_time, 142ms);
  ASSERT_FALSE(report.network.links.empty());
  EXPECT_EQ(report.network.links.front().name, "node 0 nic 0 -> leaf 0");
  EXPECT_DOUBLE_EQ(report.network.links.front().bytes, 800e6);
  EXPECT_EQ(report.network.links.front().capacity, Bandwidth(4e9));
  EXPECT_EQ(report.network.links.front().saturated, 200ms);
}

TEST(SharedLinks, ThatBackgroundTrafficFillsAreRefused) {
  Scenario scenario = scenario_of(kTwoReplicas);
  scenario.network.mode = NetworkMode::kFlow;
  scenario.network.background = {{.from = {.node = 0}, .to = {.node = 1}, .rate = Bandwidth(10e9)}};
  Diagnostics diagnostics;
  EXPECT_FALSE(prepare(scenario, diagnostics).has_value());
  EXPECT_EQ(diagnostics.error_count(), 1);
}

// From node 1 to node 0 another's 1 GB/s is not what fills a link of 10.
TEST(SharedLinks, ThatBackgroundTrafficFillsAreRefusedAtWhatTakesMost) {
  const Scenario scenario = scenario_of(std::string(kTwoReplicas) +
                                        "network: {mode: flow, background: [\n"
                                        "  {from: node 0, to: node 1, rate: 5 GB/s},\n"
                                        "  {from: node 1, to: node 0, rate: 1 GB/s},\n"
                                        "  {from: node 1, to: node 0, rate: 9 GB/s}]}\n");
  Diagnostics diagnostics;
  EXPECT_FALSE(prepare(scenario, diagnostics).has_value());
  ASSERT_EQ(diagnostics.error_count(), 1);
  EXPECT_EQ(diagnostics.items().front().where, place_of(scenario, "network.background.2.rate"));
  EXPECT_GT(diagnostics.items().front().where.line, 0);
}

// A link that has next to nothing left makes an iteration last for centuries, which nobody counts.
TEST(SharedLinks, ThatBackgroundTrafficAllButFillsAreRefused) {
  Scenario scenario = scenario_of(kTwoReplicas);
  scenario.network.mode = NetworkMode::kFlow;
  const auto refusals = [&](double rate) {
    scenario.network.background = {{.from = {.node = 0}, .to = {.node = 1}, .rate = Bandwidth(rate)}};
    Diagnostics diagnostics;
    (void)prepare(scenario, diagnostics);
    return diagnostics;
  };
  const Diagnostics refused = refusals(9.999999999e9);
  ASSERT_EQ(refused.error_count(), 1);
  EXPECT_EQ(refused.items().front().message,
            "the traffic asks 9.999999999 GB/s of node 0 nic 0 -> leaf 0, which has 10 GB/s");
  EXPECT_EQ(refusals(9.9999e9).error_count(), 0) << "10 of a million are left";
  // A millionth of the link as it would be: what is said about it does not add up to less.
  scenario.cluster->links = {{.name = "node 0 nic 0 -> leaf 0", .share = 1e-3}};
  EXPECT_EQ(refusals(9.9e6).error_count(), 0);
  EXPECT_EQ(refusals(9.9999e6).error_count(), 1);
}

// Nothing moves, so nothing meets.
// System: 4 nodes of 4 GPUs, two of them to an NVLink domain of 450 GB/s. Expectations: traffic between the
// nodes of a domain takes no NIC, and 440 GB/s of NVLink are plenty; what leaves the domain takes half of a
// NIC.
TEST(SharedLinks, OfNodesOfOneNvlinkDomainAreNvlinks) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms, gradient: 1 GB}\n"
      "cluster:\n"
      "  node: {device: toy, gpus: 4, nics: 4, nic_bandwidth: 100 Gb/s, pcie: 63 GB/s, nvlink: 450 GB/s,"
      " nvlink_latency: 1 us, nvlink_domain: 2}\n"
      "  nodes: 4\n"
      "  fabric: {kind: single-switch}\n"
      "training: {global_batch_size: 16}\n");
  const Duration alone = flow(scenario).iteration_time;
  const auto beside = [&](NodePlace from, NodePlace to) {
    scenario.network.background = {{.from = from, .to = to, .rate = Bandwidth(10e9)}};
    return flow(scenario).iteration_time;
  };
  EXPECT_EQ(beside({.node = 0, .gpu = 0}, {.node = 1, .gpu = 0}), alone);
  EXPECT_EQ(beside({.node = 2}, {.node = 3}), alone);
  EXPECT_GT(beside({.node = 1, .gpu = 3}, {.node = 2, .gpu = 0}), alone);
}

TEST(SharedLinks, AreNotThereWithoutACluster) {
  const Scenario scenario = shipped("pipeline-4x8");
  const Report report = flow(scenario);
  EXPECT_EQ(report.iteration_time, 33ms);
  EXPECT_FALSE(report.network.shared);
  EXPECT_EQ(report.timeline_hash, simulate(scenario).timeline_hash);
}

const char* const kShipped[] = {"gpt3-175b-1024xA100",    "gpt3-175b-1024xA100-1f1b-recompute",
                                "llama3-8b-64xA100",      "llama3-70b-256xA100",
                                "llama3-8b-fsdp-64xH100", "mixtral-8x7b-64xH100",
                                "sc21-7.5b-128xA100",     "sc21-39.1b-512xA100",
                                "seqsel-22b-8xA100-full"};

// Where nothing runs beside anything, everything takes what the closed form says.
TEST(Flow, OnAnIdleNetworkIsTheClosedFormWithoutOverlap) {
  for (const char* name : kShipped) {
    SCOPED_TRACE(name);
    Scenario scenario = shipped(name);
    scenario.overlap.gradients = scenario.overlap.parameters = false;
    EXPECT_EQ(flow(scenario).network.idle_time, simulate(scenario).iteration_time);
  }
}

// Contention only adds; a backward beside a reduction loses no more than one that is slower as a whole, but
// for the nanosecond by which each of its pieces ends late, and for traffic of shards that outlasts the
// segment beside it and goes on beside the next.
TEST(Flow, IsNeverFasterThanTheClosedFormWithoutItsSlowdown) {
  for (const char* name : kShipped) {
    SCOPED_TRACE(name);
    Scenario scenario = shipped(name);
    const Report shared = flow(scenario);
    const Report closed = simulate(scenario);
    scenario.profile->gradient_overlap_slowdown.value = 1;
    scenario.profile->sharded_overlap_slowdown.value = 1;
    EXPECT_GE(shared.iteration_time, simulate(scenario).iteration_time);
    EXPECT_GE(shared.iteration_time, shared.network.idle_time);
    EXPECT_LE(to_seconds(shared.network.idle_time), 1.001 * to_seconds(closed.iteration_time));
    EXPECT_EQ(sum_of(shared.breakdown), shared.iteration_time);
  }
}

// Passes lose as much to the traffic of sharded weights whether it is priced with them or moves beside them.
TEST(Flow, OfShardsLosesWhatTheClosedFormLoses) {
  for (const char* with :
       {"{zero_stage: 3}\noptions: {software: megatron-core}", "{zero_stage: 3}\noptions: {software: fsdp2}",
        "{zero_stage: 3, zero_group: 8}\noptions: {software: fsdp2}"}) {
    SCOPED_TRACE(with);
    const Scenario scenario = scenario_of(
        "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 8}\n"
        "training: {global_batch_size: 64, sequence_length: 4096}\nparallelism: " +
        std::string(with) + "\n");
    const double closed = to_seconds(simulate(scenario).iteration_time);
    EXPECT_NEAR(to_seconds(flow(scenario).network.idle_time), closed, 0.005 * closed);
  }
}

// Blocks of half a node and their replicas share its NVLinks, whichever way it is priced.
TEST(Flow, OfHalvesOfANodeLosesWhatTheClosedFormLoses) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-h100, nodes: 1}\n"
      "training: {global_batch_size: 16, micro_batch_size: 1, sequence_length: 2048, recompute: full}\n"
      "parallelism: {zero_stage: 3, zero_group: 4}\noptions: {software: fsdp2}\n");
  const double closed = to_seconds(simulate(scenario).iteration_time);
  EXPECT_NEAR(to_seconds(flow(scenario).network.idle_time), closed, 0.02 * closed);
}

// Matrix by matrix, with copies that the closed form counts among the traffic that slows passes.
TEST(Flow, OfShardsThatComeMatrixByMatrixIsNearTheClosedForm) {
  const Scenario scenario = shipped("llama3-8b-fsdp-64xH100", {"options.software=megatron-deepspeed-2021"});
  const double closed = to_seconds(simulate(scenario).iteration_time);
  EXPECT_NEAR(to_seconds(flow(scenario).network.idle_time), closed, 0.04 * closed);
}

Scenario on_h100(const std::string& model, const std::string& cluster, const std::string& parallelism,
                 const std::string& more) {
  return scenario_of("stagecraft: 1\nmodel: " + model + "\ncluster: {node: dgx-h100, " + cluster +
                     "}\nparallelism: {" + parallelism + "}\n" + more);
}

// What a pass waits for asks for the whole link while it does, not for the pass's average: half of every
// NIC's way into the fabric is as good as NICs of half the rate, and the closed form of those.
TEST(Flow, OfWhatAPassWaitsForFeelsLinksOfHalfTheirRate) {
  const std::string experts =
      "training: {global_batch_size: 64, sequence_length: 4096}\n"
      "overlap: {gradients: false, parameters: false}\n";
  const std::string tensor =
      "training: {global_batch_size: 8, sequence_length: 8192}\n"
      "overlap: {gradients: false, parameters: false}\n";
  // What weight gradients hide is spread over the pass, where slower links find more room than beside them.
  const auto expect = [](const auto& with, double beside_weight_gradients) {
    const Report half = flow(with("nodes: 4, links: [{name: node * nic * -> leaf *, share: 0.5}]"));
    Scenario slow = with("nodes: 4");
    NodeSpec& node = slow.cluster->groups.front().node;
    const double whole = to_seconds(simulate(slow).iteration_time);
    node.nic_bandwidth = 0.5 * node.nic_bandwidth;
    const double closed = to_seconds(simulate(slow).iteration_time);
    EXPECT_GT(closed, 1.3 * whole);
    EXPECT_NEAR(to_seconds(half.iteration_time), closed, beside_weight_gradients * closed);
    EXPECT_NEAR(to_seconds(flow(slow).iteration_time), closed, 0.005 * closed);
  };
  expect(
      [&](const char* cluster) {
        return on_h100("qwen3-30b-a3b", cluster, "expert: 32, zero_stage: 1", experts);
      },
      0.005);
  expect(
      [&](const char* cluster) {
        return on_h100("llama-3-70b", cluster, "tensor: 16, sequence_parallel: true, zero_stage: 1", tensor);
      },
      0.045);
}

// System: 16 layers over 16 tensor ranks of two nodes, whose GPUs wait for their hosts for half of the time.
// Expectations: at a quarter of its rate traffic still fits in what they wait; at a 16th it takes longer than
// the host, as with NICs of that rate (but for what weight gradients hide, as above).
TEST(Flow, OfAPassThatWaitsForItsHostTakesLongerOnlyWhereItsTrafficDoes) {
  const auto with = [](const char* links) {
    return on_h100("{family: llama, layers: 16, hidden: 4096, heads: 32, ffn_hidden: 14336, vocab: 32000}",
                   std::string("nodes: 2, links: [{name: node 0 nic * -> leaf *, share: ") + links + "}]",
                   "tensor: 16, sequence_parallel: true",
                   "training: {global_batch_size: 1, sequence_length: 2048}\n");
  };
  const Scenario whole = with("1");
  const Report alone = flow(whole), quarter = flow(with("0.25"));
  EXPECT_GT(part_of(alone, Category::kOther), alone.iteration_time / 2);
  EXPECT_EQ(alone.iteration_time, simulate(whole).iteration_time);
  EXPECT_EQ(quarter.iteration_time, alone.iteration_time);
  EXPECT_EQ(sum_of(quarter.breakdown), quarter.iteration_time);
  const Report least = flow(with("0.0625"));
  Scenario slow = with("1");
  NodeSpec& node = slow.cluster->groups.front().node;
  node.nic_bandwidth = 0.0625 * node.nic_bandwidth;
  const double closed = to_seconds(simulate(slow).iteration_time);
  EXPECT_GT(closed, 1.5 * to_seconds(alone.iteration_time));
  EXPECT_NEAR(to_seconds(least.iteration_time), closed, 0.045 * closed);
}

// Gradients that fill the NICs slow the context exchanges over them, not the tensor exchanges of the same
// pass inside the node.
TEST(Flow, OfTensorGroupsInANodeIsNotHeldUpByTheNics) {
  Scenario scenario =
      on_h100("llama-3-70b", "nodes: 4",
              "context: 2, tensor: 8, sequence_parallel: true, zero_stage: 1, context_exchange: all-gather",
              "training: {global_batch_size: 16, sequence_length: 16384}\n");
  NodeSpec& node = scenario.cluster->groups.front().node;
  node.nic_bandwidth = 0.5 * node.nic_bandwidth;
  const Report shared = flow(scenario), own_links = simulate(scenario);
  scenario.overlap.gradients = scenario.overlap.parameters = false;
  const Report alone = simulate(scenario);
  const auto tensor = [](const Report& report) { return part_of(report, Category::kTensorComm); };
  EXPECT_NEAR(to_seconds(tensor(shared)), to_seconds(tensor(own_links)), 0.01 * to_seconds(tensor(shared)));
  EXPECT_GT(part_of(shared, Category::kContextComm), part_of(alone, Category::kContextComm));
}

// Copies of a rank carry its traffic together.
TEST(Flow, FoldedEqualsUnfolded) {
  for (const char* name : {"llama3-8b-64xA100", "sc21-7.5b-128xA100"}) {
    SCOPED_TRACE(name);
    Scenario scenario = shipped(name);
    scenario.network.mode = NetworkMode::kFlow;
    const Report folded = simulate(scenario), unfolded = simulate(scenario, {.unfold = true});
    EXPECT_EQ(folded.iteration_time, unfolded.iteration_time);
    EXPECT_EQ(folded.breakdown, unfolded.breakdown);
  }
}

// A link is as busy, and holds as much up, whoever is simulated for whom. Sums of rounded times may differ by a
// few nanoseconds.
TEST(Flow, UsesLinksFoldedAsUnfolded) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: llama-3-8b\n"
      "cluster: {node: dgx-h200, gpus: 4}\n"
      "parallelism: {tensor: 2, pipeline: 2, zero_stage: 1}\n"
      "training: {global_batch_size: 16, micro_batch_size: 1, sequence_length: 1024}\n"
      "schedule: v-half\n"
      "overlap: {pipeline: false}\n");
  const NetworkReport folded = flow(scenario).network, unfolded = flow(scenario, {.unfold = true}).network;
  ASSERT_EQ(folded.links.size(), unfolded.links.size());
  ASSERT_GT(folded.links.front().delay, 0s);
  for (std::size_t i = 0; i < folded.links.size(); ++i) {
    const LinkReport &one = folded.links[i], &other = unfolded.links[i];
    SCOPED_TRACE(one.name);
    EXPECT_EQ(one.name, other.name);
    EXPECT_EQ(one.busy, other.busy);
    EXPECT_EQ(one.saturated, other.saturated);
    EXPECT_NEAR(one.bytes, other.bytes, 1);
    EXPECT_NEAR(to_seconds(one.delay), to_seconds(other.delay), 1e-8);
  }
}

// One all-reduce over 4 nodes, alone: as the closed form says, however GPUs share their NICs.
TEST(Flow, OfOneCollectiveAloneIsTheClosedFormOnAnyNumberOfNics) {
  for (const int gpus : {4, 8})
    for (int nics = 1; nics <= gpus; ++nics) {
      SCOPED_TRACE(testing::Message() << gpus << " GPUs, " << nics << " NICs");
      const std::string node = "gpus: " + std::to_string(gpus) + ", nics: " + std::to_string(nics);
      const Scenario scenario = scenario_of(
          "stagecraft: 1\n"
          "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms, gradient: 1 "
          "GB}\n"
          "cluster:\n"
          "  node: {device: toy, nic_bandwidth: 100 Gb/s, pcie: 63 GB/s, nvlink: 450 GB/s, nvlink_latency: 1 "
          "us, " +
          node +
          "}\n"
          "  nodes: 4\n"
          "  fabric: {kind: single-switch}\n"
          "training: {global_batch_size: " +
          std::to_string(4 * gpus) + "}\n");
      EXPECT_EQ(flow(scenario).iteration_time, simulate(scenario).iteration_time);
    }
}

// One reduction over 16 GPUs fills the NICs alone, also where some of its copies are simulated by themselves.
TEST(Meetings, AreNoneOfOneCollectiveWithItself) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms, gradient: 1 GB}\n"
      "cluster:\n"
      "  node: {device: toy, gpus: 8, nics: 8, nic_bandwidth: 100 Gb/s, pcie: 63 GB/s, nvlink: 450 GB/s,"
      " nvlink_latency: 1 us}\n"
      "  nodes: 2\n"
      "  fabric: {kind: single-switch}\n"
      "training: {global_batch_size: 16}\n");
  EXPECT_TRUE(flow(scenario).network.meetings.empty());
  EXPECT_TRUE(flow(scenario, {.unfold = true}).network.meetings.empty());
  scenario.faults.push_back(
      {.kind = FaultKind::kSlowNode, .factor = 2, .ranks = {8, 9, 10, 11, 12, 13, 14, 15}});
  EXPECT_TRUE(flow(scenario).network.meetings.empty());
}

// However many buckets, passes and copies there are.
TEST(Meetings, NeverLastLongerThanTheirLinkIsFull) {
  for (const bool unfold : {false, true}) {
    SCOPED_TRACE(unfold);
    const Report report = flow(shipped("sc21-7.5b-128xA100"), {.unfold = unfold});
    for (const MeetingReport& meeting : report.network.meetings) {
      const auto link = std::find_if(report.network.links.begin(), report.network.links.end(),
                                     [&](const LinkReport& some) { return some.name == meeting.link; });
      ASSERT_NE(link, report.network.links.end());
      EXPECT_LE(meeting.time, link->saturated) << meeting.first << " meets " << meeting.second;
    }
  }
}

// Property: context messages of a NIC in step with tensor traffic of NVLink are slowed on the NIC as what they meet
// there is, so hiding them is no loss.
TEST(FlowMode, HidesContextMessagesBesideReductions) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-a100-80gb, nodes: 2}\n"
      "parallelism: {tensor: 8, context: 2, zero_stage: 3, sequence_parallel: true}\n"
      "training: {global_batch_size: 8, micro_batch_size: 2, sequence_length: 8192}\n"
      "options: {software: megatron-core}\nnetwork: flow\n");
  for (const bool tensor : {false, true}) {
    scenario.overlap.tensor = tensor;
    scenario.overlap.context = true;
    const Duration hidden = simulate(scenario).iteration_time;
    scenario.overlap.context = false;
    EXPECT_LE(hidden, simulate(scenario).iteration_time) << tensor;
  }
}

}  // namespace
}  // namespace stagecraft
