// Several jobs on one fabric, with a pencil, and what a job costs that meets nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scenario/load_jobs.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Two nodes below each of two leaves, and one uplink of 10 GB/s a leaf for both (2:1). Our job has a node of
// each leaf. F 0-10, B -30, then 400 MB of gradients, 40 ms alone: 70 ms.
std::string host(const std::string& network) {
  return "stagecraft: 1\n"
         "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms,"
         " activation: 1 MB, gradient: 400 MB}\n"
         "cluster:\n"
         "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
         "  nodes: 6\n"
         "  fabric: {kind: fat-tree, nodes_per_leaf: 2, oversubscription: 2}\n"
         "parallelism: {data: 2}\n"
         "overlap: {gradients: false}\n"
         "training: {global_batch_size: 2}\n"
         "network:\n"
         "  mode: flow\n" +
         network;
}

const std::string kTwin = "{scenario: ../tests/sim/simulate/jobs/two-nodes.yaml, ";

std::string ours(const std::string& jobs) {
  return host("  placement: {nodes: [0, 2]}\n  jobs: [" + jobs + "]\n");
}

TEST(Jobs, AloneOnItsNodesAJobTakesWhatItTakes) {
  const Report report = simulate(scenario_of(host("  placement: {nodes: [0, 2]}\n")));
  EXPECT_EQ(report.iteration_time, 70ms);
  EXPECT_EQ(report.gpus, 2);
  EXPECT_FALSE(report.network.alone_time.has_value());
}

// Both reduce from 30 ms on and have half an uplink each: 80 ms, until 110.
TEST(Jobs, ShareAnUplinkInHalves) {
  const Report report = simulate(scenario_of(ours(kTwin + "nodes: [1, 3]}")));
  EXPECT_EQ(report.iteration_time, 110ms);
  EXPECT_EQ(report.network.alone_time, 70ms);
  EXPECT_EQ(report.network.idle_time, 70ms);
  ASSERT_EQ(report.network.jobs.size(), 1);
  const OtherJobReport& job = report.network.jobs.front();
  EXPECT_EQ(job.name, "two-nodes");
  EXPECT_EQ(job.nodes, "1,3");
  EXPECT_EQ(job.alone_time, 70ms);
  EXPECT_EQ(job.shared_time, 110ms);
  EXPECT_EQ(job.iterations, 1);
  EXPECT_EQ(job.cost, 40ms);
}

// The other one starts at 20 ms and reduces from 50 ms on. By then 200 of our 400 MB are through; the rest
// takes 40 ms at half the rate, until 90, when the other one has 200 MB left: alone, until 110 ms. It would
// have been done at 90.
TEST(Jobs, MeetAsTheirStartsHaveIt) {
  const Report report = simulate(scenario_of(ours(kTwin + "nodes: [1, 3], start: 20 ms}")));
  EXPECT_EQ(report.iteration_time, 90ms);
  EXPECT_EQ(report.network.jobs.front().iterations, 0);
  EXPECT_EQ(report.network.jobs.front().cost, 20ms);
}

// What it costs ours is known all the same.
TEST(Jobs, ThatEndNoIterationBesideOursHaveNoTimeBesideIt) {
  const Report none = simulate(scenario_of(ours(kTwin + "nodes: [1, 3], start: 20 ms}")));
  EXPECT_THAT(render_json(none), HasSubstr(R"("iterations":0,"shared_iteration_time_s":null,"cost_s":0.02)"));
  EXPECT_THAT(render_text(none, false), HasSubstr("costs 20.0 ms; its own iteration 70.0 ms, and\n"));
  EXPECT_THAT(render_text(none, false), HasSubstr(" none ends beside ours\n"));
  const Report one = simulate(scenario_of(ours(kTwin + "nodes: [1, 3]}")));
  EXPECT_THAT(render_json(one), HasSubstr(R"("iterations":1,"shared_iteration_time_s":0.11,"cost_s":0.04)"));
}

TEST(Jobs, ThatStartWhenOursIsOverCostNothing) {
  const Report report = simulate(scenario_of(ours(kTwin + "nodes: [1, 3], start: 70 ms}")));
  EXPECT_EQ(report.iteration_time, 70ms);
  EXPECT_EQ(report.network.jobs.front().cost, 0ms);
}

// Ours with 4,000 MB takes 430 ms alone. The other one reduces from 30 to 110 ms at half rate, computes until
// 140, reduces until 220, and so on: of every 110 ms, ours moves 40 + 30 = 70 ms' worth. From 30 on it has
// 350 of its 400 by 580; 80 ms at half rate bring 40 more, and the last 10 are alone: 670 ms.
TEST(Jobs, RepeatTheirIterationsForAsLongAsOursRuns) {
  Scenario scenario = scenario_of(ours(kTwin + "nodes: [1, 3]}"));
  std::get<StagesSpec>(scenario.model).gradient = {Bytes(4'000'000'000)};
  const Report report = simulate(scenario);
  EXPECT_EQ(*report.network.alone_time, 430ms);
  EXPECT_EQ(report.iteration_time, 670ms);
  EXPECT_EQ(report.network.jobs.front().iterations, 6);
  EXPECT_EQ(report.network.jobs.front().shared_time, 110ms);
}

// Ours reduces for 40 ms of its 70, the other one starts at 20 ms. Ours first takes 90 ms, as above; at 90 it
// begins again and reduces from 120, when the other one, which had 200 MB left then, has just begun its
// second iteration at 110 and reduces from 140: ours has 200 MB left then, for 40 ms at half the rate, until
// 180. The other one has 200 MB left: so it goes on, 90 ms each.
TEST(Jobs, InARowTakeWhatTheyTakeOnAverage) {
  const std::string jobs = kTwin + "nodes: [1, 3], start: 20 ms}";
  const Report report =
      simulate(scenario_of(host("  placement: {nodes: [0, 2]}\n  iterations: 4\n  jobs: [" + jobs + "]\n")));
  EXPECT_EQ(report.iteration_time, 90ms);
  ASSERT_TRUE(report.network.repeated.has_value());
  EXPECT_EQ(*report.network.repeated,
            (RepeatedReport{.iterations = 4, .mean = 90ms, .least = 90ms, .most = 90ms}));
}

// All iterations take no time where the first takes none.
TEST(Jobs, InARowTakeNoTimeWhereOneTakesNone) {
  Scenario scenario = scenario_of(
      host("  iterations: 3\n  placement: {nodes: [0, 2]}\n  jobs: [" + kTwin + "nodes: [1, 3]}]\n"));
  auto& stages = std::get<StagesSpec>(scenario.model);
  for (std::vector<Duration>* cost : {&stages.forward, &stages.input_gradient, &stages.weight_gradient})
    for (Duration& time : *cost) time = Duration::zero();
  for (Bytes& gradient : stages.gradient) gradient = Bytes(0);
  const Report report = simulate(scenario);
  EXPECT_EQ(report.iteration_time, 0ms);
  ASSERT_TRUE(report.network.repeated);
  EXPECT_EQ(report.network.repeated->iterations, 3);
  EXPECT_EQ(report.network.repeated->most, 0ms);
}

// Ours with 4,000 MB, as above, takes 670 ms in its first iteration. The other one is then in the 10th of the
// 30 ms that it computes: the second meets it in another phase.
TEST(Jobs, InARowMeetInOtherPhases) {
  Scenario scenario = scenario_of(
      host("  placement: {nodes: [0, 2]}\n  iterations: 2\n  jobs: [" + kTwin + "nodes: [1, 3]}]\n"));
  std::get<StagesSpec>(scenario.model).gradient = {Bytes(4'000'000'000)};
  const RepeatedReport repeated = simulate(scenario).network.repeated.value();
  EXPECT_EQ(repeated.most, 670ms);
  EXPECT_EQ(repeated.least, 660ms);
  EXPECT_EQ(repeated.mean, 665ms);
}

// The time of a job alone, where links are what the faults leave of them.
struct JobsAlone {
  Duration ours, other;
  friend bool operator==(const JobsAlone&, const JobsAlone&) = default;
};

JobsAlone alone_with(const std::string& jobs, const std::string& faults) {
  const NetworkReport network = simulate(scenario_of(ours(jobs) + "faults: [" + faults + "]\n")).network;
  return {.ours = network.alone_time.value(), .other = network.jobs.at(0).alone_time};
}

// 400 MB over the half of an uplink take 80 ms. What is over when the other job starts is nothing to it: ours
// has 70 of 80 ms behind it at 100 ms, and the last 5 of 40 to go.
TEST(Jobs, AreTimedAloneOnTheLinksThatFaultsLeave) {
  const std::string half = "{kind: degraded-link, link: leaf * -> spine *, factor: 0.5";
  EXPECT_EQ(alone_with(kTwin + "nodes: [1, 3]}", half + "}"), (JobsAlone{110ms, 110ms}));
  EXPECT_EQ(alone_with(kTwin + "nodes: [1, 3], start: 100 ms}", half + ", for: 100 ms}"),
            (JobsAlone{105ms, 70ms}));
  EXPECT_EQ(alone_with(kTwin + "nodes: [1, 3], start: 20 ms}", half + ", for: 100 ms}"),
            (JobsAlone{105ms, 95ms}));
}

// On leaf 2 alone, which has an uplink of its own that nobody needs.
TEST(Jobs, OnOtherLinksCostNothingToTheBit) {
  const Simulation alone = simulate_in_full(scenario_of(host("  placement: {nodes: [0, 2]}\n")));
  const Simulation beside = simulate_in_full(scenario_of(ours(kTwin + "nodes: [4, 5]}")));
  EXPECT_EQ(beside.timeline.start, alone.timeline.start);
  EXPECT_EQ(beside.timeline.end, alone.timeline.end);
  EXPECT_EQ(beside.report.breakdown, alone.report.breakdown);
  EXPECT_EQ(beside.report.timeline_hash, alone.report.timeline_hash);
  EXPECT_EQ(beside.report.network.jobs.front().cost, 0ms);
}

// Each costs its share: two others on the same uplinks leave a third of them.
TEST(Jobs, CostTogetherMoreThanEachAlone) {
  const std::string text =
      "stagecraft: 1\n"
      "model: {family: stages, forward: 10 ms, input_gradient: 10 ms, weight_gradient: 10 ms,"
      " activation: 1 MB, gradient: 400 MB}\n"
      "cluster:\n"
      "  node: {device: toy, gpus: 1, nics: 1, nic_bandwidth: 10 GB/s, pcie: 100 GB/s}\n"
      "  nodes: 6\n"
      "  fabric: {kind: fat-tree, nodes_per_leaf: 3, oversubscription: 3}\n"
      "parallelism: {data: 2}\n"
      "overlap: {gradients: false}\n"
      "training: {global_batch_size: 2}\n"
      "network: {mode: flow, placement: {nodes: [0, 3]}, jobs: [" +
      kTwin + "nodes: [1, 4]}, " + kTwin + "nodes: [2, 5]}]}\n";
  const Report report = simulate(scenario_of(text));
  EXPECT_EQ(report.iteration_time, 150ms);
  ASSERT_EQ(report.network.jobs.size(), 2);
  EXPECT_EQ(report.network.jobs[0].cost, 40ms);
  EXPECT_EQ(report.network.jobs[1].cost, 40ms);
  EXPECT_EQ(report.network.jobs[1].name, "two-nodes 2");
}

TEST(Jobs, FoldedEqualsUnfolded) {
  const Scenario scenario = scenario_of(ours(kTwin + "nodes: [1, 3]}"));
  EXPECT_EQ(simulate(scenario).iteration_time, simulate(scenario, {.unfold = true}).iteration_time);
}

// What is on all nodes in order is what is not placed at all.
TEST(Jobs, PlacedOnAllNodesAreNotPlaced) {
  Scenario placed = shipped("llama3-70b-128xH100-shared-links");
  const Report whole = simulate(placed);
  placed.fabric = placed.cluster;
  for (int node = 0; node < 16; ++node) placed.network.placement.push_back(node);
  EXPECT_EQ(simulate(placed).timeline_hash, whole.timeline_hash);
  EXPECT_EQ(simulate(placed).network.links, whole.network.links);
}

// Nodes 1 to 4 belong to two twins: 0 and 5 are left.
TEST(Jobs, LeaveTheOtherNodesToOurs) {
  const Scenario scenario =
      scenario_of(host("  jobs: [" + kTwin + "nodes: 1-2}, " + kTwin + "nodes: 3-4}]\n"));
  EXPECT_EQ(scenario.network.placement, (std::vector<int>{0, 5}));
  EXPECT_EQ(scenario.cluster->gpu_count(), 2);
  EXPECT_EQ(scenario.fabric->gpu_count(), 6);
}

TEST(NodeLists, AreRangesThatAscend) {
  EXPECT_EQ(parse_node_list("0-2,7"), (std::vector<int>{0, 1, 2, 7}));
  EXPECT_EQ(parse_node_list("3, 1"), (std::vector<int>{3, 1}));
  for (const char* wrong : {"", "a", "1-", "-1", "3-1", "1,", "1 2", "1.5", "99999999999"})
    EXPECT_FALSE(parse_node_list(wrong).has_value()) << wrong;
  EXPECT_EQ(node_list_text({0, 1, 2, 7, 9, 10}), "0-2,7,9-10");
}

}  // namespace
}  // namespace stagecraft
