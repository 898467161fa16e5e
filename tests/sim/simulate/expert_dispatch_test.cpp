// What sending tokens by node, and in fp8, is worth on the links of a cluster.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sim/lower/price_layers.hpp"
#include "sim/lower/price_operators.hpp"
#include "sim/price_iteration.hpp"
#include "sim/simulate_parts.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

// Four layers of 32 experts, two for each token, on 32 GPUs of 4 nodes.
Scenario sparse(int expert, ExpertDispatcher dispatcher, std::int64_t top_groups = 8) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: llama, layers: 4, hidden: 2048, heads: 16, kv_heads: 8, ffn_hidden: 5632, vocab: "
      "32000, max_sequence_length: 4096,\n"
      "        experts: {count: 32, top_k: 4, groups: 8, top_groups: 8, ffn_hidden: 2048}}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 4}\n"
      "parallelism: {data: 32}\n"
      "training: {global_batch_size: 64, sequence_length: 4096}\n");
  std::get<TransformerSpec>(scenario.model).experts->top_groups = top_groups;
  scenario.parallelism.expert = expert;
  scenario.options.expert_dispatcher = dispatcher;
  return scenario;
}

std::string note_on_routing(const Scenario& scenario) {
  for (const std::string& warning : simulate(scenario).warnings)
    if (warning.find("routing") != std::string::npos) return warning;
  return "";
}

// Even routing is an assumption where tokens choose freely and ranks wait for the busiest: not of one expert
// rank, nor of experts that a capacity levels, nor where the scenario says an imbalance.
TEST(FreeRouting, IsNamedWhereItIsTakenAsEven) {
  const Scenario free = sparse(8, ExpertDispatcher::kAllToAll);
  EXPECT_TRUE(note_on_routing(free).starts_with("model.experts.imbalance: routing is taken as even; "));
  EXPECT_EQ(note_on_routing(sparse(1, ExpertDispatcher::kAllToAll)), "");
  Scenario said = free, full = free, padded = free, roomy = free, uneven = free;
  said.origins["model.experts.imbalance"] = {};
  EXPECT_EQ(note_on_routing(said), "");
  std::get<TransformerSpec>(full.model).experts->capacity_factor = 1;
  EXPECT_EQ(note_on_routing(full), "");
  std::get<TransformerSpec>(roomy.model).experts->capacity_factor = 1.25;
  EXPECT_EQ(note_on_routing(roomy), note_on_routing(free));
  std::get<TransformerSpec>(padded.model).experts->capacity_factor = 1.25;
  std::get<TransformerSpec>(padded.model).experts->pad_to_capacity = true;
  EXPECT_EQ(note_on_routing(padded), "");
  std::get<TransformerSpec>(uneven.model).experts->imbalance = 1.2;
  EXPECT_EQ(note_on_routing(uneven), "");
}

// Of MXFP8 they are part of a fused block.
TEST(BiasedExperts, AreSaidToBeTooFast) {
  const auto note = [](const Scenario& scenario) {
    for (const std::string& warning : simulate(scenario).warnings)
      if (warning.starts_with("model.biases: ")) return warning;
    return std::string();
  };
  Scenario scenario = sparse(1, ExpertDispatcher::kAllToAll);
  EXPECT_EQ(note(scenario), "");
  std::get<TransformerSpec>(scenario.model).biases = true;
  EXPECT_NE(note(scenario), "");
  const auto in_fp8 = [](const std::string& recipe) {
    return scenario_of(
        "stagecraft: 1\nmodel: gpt-oss-20b\ncluster: {node: dgx-b200, nodes: 1}\n"
        "training: {global_batch_size: 64, sequence_length: 4096, precision: fp8}\n"
        "options: {fp8_recipe: " +
        recipe + "}\n");
  };
  EXPECT_NE(note(in_fp8("current")), "");
  EXPECT_NE(note(in_fp8("mxfp8")), "");
  EXPECT_EQ(note(in_fp8("mxfp8, fused_experts: true")), "");
  EXPECT_NE(note(in_fp8("mxfp8, fused_experts: true, fused_kernels: false")), "");
}

ParallelPlan plan_of(const Scenario& scenario) {
  Diagnostics diagnostics;
  const std::optional<ParallelPlan> plan = place(scenario, diagnostics);
  diagnostics.throw_if_errors();
  return *plan;
}

PricingRequest request_of(const Scenario& scenario, const ParallelPlan& plan, bool shared) {
  PricingRequest request = pricing_request(scenario, plan);
  request.shared_links = shared;
  return request;
}

// Bytes of capacity that a forward pass of the first stage takes, link by link.
std::map<EdgeId, double> forward_loads(const Scenario& scenario) {
  const ParallelPlan plan = plan_of(scenario);
  const IterationPrices prices =
      price_transformer(std::get<TransformerSpec>(scenario.model), *scenario.profile,
                        Cluster(*scenario.cluster), request_of(scenario, plan, true));
  std::map<EdgeId, double> loads;
  for (const Exchanges& exchanges : prices.stages.front().traffic.forward)
    for (const Traffic::Part& part : exchanges.traffic.parts())
      for (const LinkLoad& load : prices.patterns[part.pattern].loads)
        loads[load.link] += part.bytes * load.bytes;
  return loads;
}

double between_nodes(const Scenario& scenario) {
  const Cluster cluster(*scenario.cluster);
  double sum = 0;
  for (const auto& [link, bytes] : forward_loads(scenario))
    if (cluster.between_nodes(link)) sum += bytes;
  return sum;
}

Duration exchange_time(const Scenario& scenario) {
  const ParallelPlan plan = plan_of(scenario);
  return price_transformer(std::get<TransformerSpec>(scenario.model), *scenario.profile,
                           Cluster(*scenario.cluster), request_of(scenario, plan, false))
      .stages.front()
      .forward.of(Category::kExpertComm);
}

// Property: between nodes goes at most what an all-to-all sends, the less the fewer groups a token chooses,
// and inside one node nothing at all.
TEST(NodeAwareDispatch, NeverSendsMoreBetweenNodesThanAnAllToAll) {
  for (const int expert : {8, 16, 32}) {
    double fewer = 0;
    for (const std::int64_t top_groups : {1, 2, 4, 8}) {
      SCOPED_TRACE(testing::Message() << "expert " << expert << ", groups " << top_groups);
      const double node = between_nodes(sparse(expert, ExpertDispatcher::kNodeAware, top_groups));
      const double plain = between_nodes(sparse(expert, ExpertDispatcher::kAllToAll, top_groups));
      if (expert == 8) {
        EXPECT_EQ(node, plain);  // of messages that are not the experts'
        continue;
      }
      EXPECT_LT(node, plain);
      EXPECT_GT(node, fewer);
      fewer = node;
    }
  }
}

// With each expert on a rank of its own on one node: the same copies over the same links. A copy carries 40
// bytes forward and 8 back beside 4096, in place of 4 and none.
TEST(NodeAwareDispatch, IsAnAllToAllOnOneNode) {
  const auto on_one_node = [](ExpertDispatcher dispatcher) {
    Scenario scenario = sparse(8, dispatcher);
    auto& experts = *std::get<TransformerSpec>(scenario.model).experts;
    experts.count = 8;
    return scenario;
  };
  const auto plain = forward_loads(on_one_node(ExpertDispatcher::kAllToAll));
  const auto node = forward_loads(on_one_node(ExpertDispatcher::kNodeAware));
  ASSERT_EQ(plain.size(), node.size());
  ASSERT_FALSE(plain.empty());
  const double beside = (2 * 4096 + 40.0 + 8) / (2 * 4096 + 4.0);
  for (const auto& [link, bytes] : plain) EXPECT_NEAR(node.at(link) / bytes, beside, 1e-4);
}

// One node for a token's experts, the fewest copies; the plain exchange does not know.
TEST(NodeAwareDispatch, TakesLessTimeTheFewerGroupsATokenChooses) {
  const auto time = [](ExpertDispatcher dispatcher, std::int64_t groups) {
    return exchange_time(sparse(32, dispatcher, groups));
  };
  EXPECT_LT(time(ExpertDispatcher::kNodeAware, 1), time(ExpertDispatcher::kNodeAware, 4));
  EXPECT_LT(time(ExpertDispatcher::kNodeAware, 4), time(ExpertDispatcher::kNodeAware, 8));
  EXPECT_LT(time(ExpertDispatcher::kNodeAware, 8), time(ExpertDispatcher::kAllToAll, 8));
  EXPECT_EQ(time(ExpertDispatcher::kAllToAll, 1), time(ExpertDispatcher::kAllToAll, 8));
}

TEST(NodeAwareDispatch, RunsOnSharedLinksAsLongAsAloneAtMost) {
  Scenario scenario = sparse(32, ExpertDispatcher::kNodeAware, 2);
  const Report closed = simulate(scenario);
  scenario.network.mode = NetworkMode::kFlow;
  const Report shared = simulate(scenario);
  EXPECT_LE(shared.network.idle_time, closed.iteration_time);
  EXPECT_GE(shared.iteration_time, shared.network.idle_time);
}

TEST(Fp8Dispatch, TakesLessTime) {
  for (const ExpertDispatcher dispatcher : {ExpertDispatcher::kAllToAll, ExpertDispatcher::kNodeAware}) {
    Scenario scenario = sparse(32, dispatcher);
    const Duration sixteen = exchange_time(scenario);
    scenario.options.fp8_dispatch = true;
    EXPECT_LT(exchange_time(scenario), sixteen);
    EXPECT_GT(exchange_time(scenario), sixteen / 2);  // the combine stays in 16 bit
  }
}

// DeepSeek-V3 over 64 ranks of 8 nodes: 4096 tokens of a rank go to 3.62901 nodes each, 7/8 of them others,
// as 7168 bytes, 56 scales of 4, 8 choices of 8 and 8 more: 7464 bytes. 8 ranks share the 8 NICs of a node.
//   4096 * 3.62901 * 7464 * 7/8 = 97.08 MB a rank over 50 GB/s times the fabric's efficiency.
// An all-to-all sends 8 copies of 14,340 bytes: 411.2 MB, 4.24 times as long.
TEST(NodeAwareDispatch, OfDeepSeekV3IsThatOfAPencil) {
  const Scenario scenario = shipped("deepseek-v3-2048xH200-dualpipe");
  const ParallelPlan plan = plan_of(scenario);
  const Cluster cluster(*scenario.cluster);
  PlacementMemo memo;
  const Network network{.cluster = cluster, .profile = *scenario.profile, .plan = plan, .memo = memo};
  const auto& model = std::get<TransformerSpec>(scenario.model);
  const auto exchange = [&](const Shard& shard) {
    const LayerOps layer = layer_operators(model, shard, LayerKind::kExperts);
    const LayerGroups groups = layer_groups_of(network, 1).front();
    for (const Op& op : layer.forward)
      if (op.name == "expert dispatch") return layer_collective_cost(network, groups, op);
    return CollectiveCost{};
  };
  Shard shard = request_of(scenario, plan, false).shard;
  ASSERT_TRUE(shard.sends_by_node() && shard.sends_fp8());
  const double rate = 50e9 * scenario.cluster->fabric.collective_efficiency;
  const double bytes = 4096 * 3.6290109244257005 * 7464 * 7 / 8;
  EXPECT_NEAR(bytes, 97.08e6, 0.01e6);
  const double mine = to_seconds(exchange(shard).transfer);
  EXPECT_NEAR(mine, bytes / rate, 1e-8);
  shard.expert_dispatcher = ExpertDispatcher::kAllToAll;
  shard.fp8_dispatch = false;
  EXPECT_NEAR(to_seconds(exchange(shard).transfer) / mine, 411.2 / 97.08, 0.002);
}

}  // namespace
}  // namespace stagecraft
