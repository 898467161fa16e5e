// Groups that do not divide an NVLink domain, on whole scenarios: Qwen3 30B-A3B on 32 trays of GB200, a
// domain of 72 GPUs and one of 56, with one sequence of 4096 tokens a GPU and no gradients beside the experts.
#include "sim/uneven_groups.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

Scenario qwen(int expert, const std::string& more = "") {
  return scenario_of(
      "stagecraft: 1\n"
      "model: qwen3-30b-a3b\n"
      "cluster: {node: gb200-nvl72, nodes: 32}\n"
      "parallelism: {data: 128, expert: " +
      std::to_string(expert) +
      "}\noverlap: {gradients: false, parameters: false}\n"
      "training: {global_batch_size: 128, sequence_length: 4096}\n" +
      more);
}

double expert_seconds(const Scenario& scenario) {
  return to_seconds(part_of(simulate(scenario), Category::kExpertComm));
}

// Each rank exchanges 4096 tokens with 8 experts, 4100 bytes each: 134.3 MB. By its own NIC of 50 GB/s, of
// which collectives get 0.85, goes what is for the other domain: (n - k)/n for the k ranks of the smaller
// part, 4 times in each of 48 layers, and 37.5 us each time.
double by_hand(int expert, int fewest) {
  const double bytes = 4096 * 8 * 4100.0 * (expert - fewest) / expert;
  return 4 * 48 * (bytes / (50e9 * 0.85) + 37.5e-6);
}

// 8 + 8 is even; 8 + 24, 8 + 56 and 72 + 56 are not. The fuller domain takes over more and more of the
// others' tokens, until both are in one group: 0.31, 0.46, 0.54 and 0.35 s.
TEST(UnevenExperts, WaitForTheRanksOfTheSmallestPart) {
  EXPECT_NEAR(by_hand(64, 8), 0.538, 0.001);
  EXPECT_NEAR(expert_seconds(qwen(16)) / by_hand(16, 8), 1, 0.05);
  EXPECT_NEAR(expert_seconds(qwen(32)) / by_hand(32, 8), 1, 0.05);
  EXPECT_NEAR(expert_seconds(qwen(64)) / by_hand(64, 8), 1, 0.05);
  EXPECT_NEAR(expert_seconds(qwen(128)) / by_hand(128, 56), 1, 0.05);
  EXPECT_LT(expert_seconds(qwen(8)), expert_seconds(qwen(16)) / 5);  // inside domains
}

// Property: alone on shared links, no gradients beside them, the groups take what the closed form says, also
// where 7 ranks of the larger part send by one of the smaller.
TEST(UnevenExperts, TakeAsLongOnSharedLinks) {
  for (const int expert : {16, 32, 64, 128})
    for (const std::string dispatcher : {"all-to-all", "node-aware"}) {
      Scenario scenario = qwen(expert, "options: {expert_dispatcher: " + dispatcher + "}\n");
      const double closed = expert_seconds(scenario);
      scenario.network.mode = NetworkMode::kFlow;
      EXPECT_NEAR(expert_seconds(scenario) / closed, 1, 1e-6) << expert << ", " << dispatcher;
    }
}

// Property: a smaller part serves more ranks of the larger with each NIC.
TEST(UnevenExperts, SentByNodeShareTheNicsOfTheSmallestPart) {
  const auto seconds = [](int expert) {
    return expert_seconds(qwen(expert, "options: {expert_dispatcher: node-aware}\n"));
  };
  EXPECT_GT(seconds(32), 2.5 * seconds(16));  // 24 and 8 beside 8
  EXPECT_GT(seconds(64), 2 * seconds(32));
}

std::string note_of(const Scenario& scenario) {
  for (const std::string& warning : simulate(scenario).warnings)
    if (warning.find("unevenly") != std::string::npos) return warning;
  return "";
}

// 16 trays of 4 are a group of 64, or two of 32; 17 would be 68 GPUs.
TEST(UnevenExperts, AreNamedWithTheDomainThatMakesThemEven) {
  EXPECT_EQ(
      note_of(qwen(64)),
      "parallelism.expert: groups of 64 lie unevenly over NVLink domains of 72 GPUs, 8 beside 56 at worst, "
      "and wait for the NICs of the fewest; 16 of the 18 nodes of a domain (cluster.node.nvlink_domain: "
      "16) make them even");
  EXPECT_EQ(note_of(qwen(16)), "");  // nor are 128 replicas that lie 72 + 56
  EXPECT_EQ(note_of(qwen(8)), "");
  const Scenario sixteen = [] {
    Scenario scenario = qwen(64);
    scenario.cluster->groups.front().node.nvlink_domain = 16;
    return scenario;
  }();
  EXPECT_EQ(note_of(sixteen), "");
  EXPECT_LT(expert_seconds(sixteen), expert_seconds(qwen(64)) / 5);
}

// The replicas of the second of two stages lie 8 + 56, and reduce their gradients by 8 NICs.
TEST(UnevenReplicas, AreNamedWhereTheyAreFewInADomain) {
  Scenario scenario = qwen(8);
  scenario.parallelism.data = 64;
  scenario.parallelism.pipeline = 2;
  EXPECT_NE(
      note_of(scenario).find("parallelism.data: groups of 64 lie unevenly over NVLink domains of 72 GPUs, "
                             "8 beside 56"),
      std::string::npos);
  const Duration uneven = simulate(scenario).iteration_time;
  scenario.cluster->groups.front().node.nvlink_domain = 16;
  EXPECT_EQ(note_of(scenario), "");
  EXPECT_LT(simulate(scenario).iteration_time, uneven);
}

// Nodes without a domain have no size to choose.
TEST(UnevenGroups, OnServersAreNotNamed) {
  EXPECT_EQ(note_of(scenario_of("stagecraft: 1\n"
                                "model: {family: gpt, layers: 8, hidden: 1536, heads: 12, vocab: 51200, "
                                "max_sequence_length: 1024}\n"
                                "cluster: {node: dgx-a100-80gb, nodes: 3}\n"
                                "parallelism: {tensor: 3}\n"
                                "training: {global_batch_size: 48}\n")),
            "");
}

}  // namespace
}  // namespace stagecraft
