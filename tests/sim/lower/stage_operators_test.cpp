#include "sim/lower/stage_operators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/lower/price_layers.hpp"
#include "sim/lower/price_operators.hpp"
#include "tests/sim/simulate/prices_of.hpp"

namespace stagecraft {
namespace {

// Six layers; no GPU waits for its host, and none is slower than another.
Scenario job(const std::string& model, const std::string& training, int pipeline) {
  Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: llama, layers: 6, hidden: 1024, heads: 8, kv_heads: 8, head_size: 128,"
      " ffn_hidden: 4096, vocab: 8192, max_sequence_length: 1024" +
      model +
      "}\ncluster: {node: dgx-a100-80gb, nodes: 1}\nparallelism: {tensor: 2, sequence_parallel: true, "
      "pipeline: " +
      std::to_string(pipeline) + "}\ntraining: {global_batch_size: 8" + training + "}\n");
  scenario.profile->gpu_variability.reset();
  scenario.options.rules.operator_overhead = scenario.options.rules.kernel_overhead = Duration::zero();
  scenario.profile->host.launch.value = Duration::zero();
  return scenario;
}

ParallelPlan plan_of(const Scenario& scenario) {
  Diagnostics diagnostics;
  return place(scenario, diagnostics).value();
}

std::vector<CountedOps> whole(const Scenario& scenario) {
  const ParallelPlan plan = plan_of(scenario);
  return stage_operators(std::get<TransformerSpec>(scenario.model), pricing_request(scenario, plan),
                         whole_content(plan));
}

std::int64_t count(const std::vector<CountedOps>& all, UnitKind unit, bool recomputed = false) {
  std::int64_t times = 0;
  for (const CountedOps& piece : all)
    if (piece.unit == unit && piece.recomputed == recomputed) times += piece.times;
  return times;
}

const LayerOps& prediction(const std::vector<CountedOps>& all) {
  return std::ranges::find(all, UnitKind::kMtp, &CountedOps::unit)->ops;
}

constexpr const char* kPredicts = ", mtp_layers: 1";
constexpr const char* kExperts = ", mtp_layers: 1, experts: {count: 8, top_k: 2, ffn_hidden: 1024}";
constexpr const char* kUniform = ", recompute: full";
constexpr const char* kBlock = ", recompute: {granularity: full, method: block, layers: 2}";

// Two stages of three layers; block repeats two of each, and no prediction.
TEST(StageOperators, OfLayersThatFullRecomputeLeavesAloneRunOnce) {
  const std::vector<CountedOps> block = whole(job(kPredicts, kBlock, 2));
  EXPECT_EQ(count(block, UnitKind::kLayer, true), 4);
  EXPECT_EQ(count(block, UnitKind::kLayer, false), 2 + 1);
  for (const CountedOps& piece : block)
    if (piece.unit == UnitKind::kLayer) {
      EXPECT_EQ(piece.ops.recompute.empty(), !piece.recomputed);
    }
  EXPECT_TRUE(prediction(block).recompute.empty());
  const std::vector<CountedOps> uniform = whole(job(kPredicts, kUniform, 2));
  EXPECT_FALSE(prediction(uniform).recompute.empty());
  EXPECT_EQ(count(uniform, UnitKind::kLayer, true), 6 + 1);
  EXPECT_EQ(count(uniform, UnitKind::kLayer, false), 0);
}

TEST(StageOperators, OfPredictionsHaveALayerAndAHeadOfTheirOwn) {
  const std::vector<CountedOps> with = whole(job(kExperts, "", 2)), without = whole(job("", "", 2));
  EXPECT_EQ(count(with, UnitKind::kLayer), 7);
  EXPECT_EQ(count(with, UnitKind::kMtp), 1);
  EXPECT_EQ(count(with, UnitKind::kHead), 2);
  EXPECT_EQ(count(with, UnitKind::kEmbedding), 1);
  EXPECT_EQ(count(without, UnitKind::kMtp), 0);
  EXPECT_EQ(count(without, UnitKind::kHead), 1);
}

// Property: on a stage of their own they take from the last what they cost there.
TEST(StageOperators, OfPredictionsCostTheSameOnAStageOfTheirOwn) {
  for (const char* training : {"", kUniform}) {
    const auto prices = [&](std::vector<std::int64_t> layers) {
      Scenario scenario = job(kExperts, training, 2);
      scenario.parallelism.pipeline = static_cast<int>(layers.size());
      scenario.parallelism.stage_layers = std::move(layers);
      return prices_of(scenario);
    };
    const StagePrice together = prices({6, 0}).stages[1];
    const IterationPrices apart = prices({3, 3, 0, 0});
    EXPECT_EQ(together.forward.total(), apart.stages[2].forward.total() + apart.stages[3].forward.total());
    EXPECT_EQ(together.backward(), apart.stages[2].backward() + apart.stages[3].backward());
  }
}

// Property: priced one by one they are what a stage costs.
TEST(StageOperators, AddUpToThePriceOfTheirStage) {
  for (const char* model : {"", kPredicts, kExperts}) {
    for (const char* training : {"", kUniform, kBlock, ", recompute: selective"}) {
      for (const int pipeline : {1, 2}) {
        SCOPED_TRACE(testing::Message() << model << training << " p=" << pipeline);
        const Scenario scenario = job(model, training, pipeline);
        const ParallelPlan plan = plan_of(scenario);
        const PricingRequest request = pricing_request(scenario, plan);
        const Cluster cluster(*scenario.cluster);
        PlacementMemo memo;
        const Network network{
            .cluster = cluster,
            .profile = *scenario.profile,
            .plan = plan,
            .memo = memo,
            .tensor_collective_overhead = scenario.options.rules.tensor_collective_overhead};
        const IterationPrices prices = prices_of(scenario);
        for (std::size_t s = 0; s < plan.stages.size(); ++s) {
          const LayerGroups groups = layer_groups_of(network, static_cast<int>(s)).front();
          Duration forward{}, again{}, input{}, weight{};
          for (const CountedOps& piece :
               stage_operators(std::get<TransformerSpec>(scenario.model), request, plan.stages[s])) {
            const StagePrice one = price_operators(piece.ops, network, request.shard, groups);
            forward += one.forward.total() * piece.times;
            again += one.recompute.total() * piece.times;
            input += one.input_gradient.total() * piece.times;
            weight += one.weight_gradient.total() * piece.times;
          }
          EXPECT_EQ(forward, prices.stages[s].forward.total());
          EXPECT_EQ(again, prices.stages[s].recompute.total());
          EXPECT_EQ(input, prices.stages[s].input_gradient.total());
          EXPECT_EQ(weight, prices.stages[s].weight_gradient.total());
        }
      }
    }
  }
}

}  // namespace
}  // namespace stagecraft
