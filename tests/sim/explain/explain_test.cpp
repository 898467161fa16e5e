#include "sim/explain/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/report/report.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

Scenario load(const std::string& name, const std::vector<std::string>& overrides = {}) {
  Diagnostics diagnostics;
  auto scenario =
      load_scenario(STAGECRAFT_SOURCE_DIR "/scenarios/" + name, overrides, repository_files(), diagnostics);
  diagnostics.throw_if_errors();
  return *std::move(scenario);
}

struct Explained {
  Scenario scenario;
  Simulation simulation;
  std::vector<Figure> figures;

  explicit Explained(Scenario given)
      : scenario(std::move(given)),
        simulation(simulate_in_full(scenario)),
        figures(figures_of(simulation.report)) {}
  [[nodiscard]] Explanation of(const std::string& path) const {
    return Explainer(scenario, simulation).of(*figure_at(figures, path));
  }
};

// Every formula below gives its value, to the last bit. Returns how many there are.
int expect_formulas_hold(const Explanation& node) {
  int formulas = 0;
  if (node.operation != Operation::kNone) {
    ++formulas;
    EXPECT_EQ(evaluate(node), node.value) << node.name << " = " << formula_text(node);
    EXPECT_EQ(node.origin.kind, OriginKind::kFormula) << node.name;
  } else {
    EXPECT_NE(node.origin.kind, OriginKind::kFormula) << node.name;
    EXPECT_TRUE(node.inputs.empty()) << node.name;
  }
  for (const Explanation& input : node.inputs) formulas += expect_formulas_hold(input);
  return formulas;
}

const Explanation* find(const Explanation& node, const std::string& name) {
  if (node.name == name) return &node;
  for (const Explanation& input : node.inputs)
    if (const Explanation* found = find(input, name)) return found;
  return nullptr;
}

const std::pair<const char*, std::vector<std::string>> kScenarios[] = {
    {"pipeline-4x8.yaml", {}},
    {"pipeline-4x8.yaml", {"schedule=zb-h1"}},
    {"llama3-8b-64xA100.yaml", {}},
    {"llama3-8b-64xA100.yaml", {"training.recompute=full"}},
    {"gpt3-175b-1024xA100.yaml", {"training.global_batch_size=256"}},
    {"mixtral-8x7b-64xH100.yaml", {}},
};

// Property: the value of every figure is that of the run, and so is that of every formula below it.
TEST(Explain, EveryFormulaGivesItsValue) {
  for (const auto& [name, overrides] : kScenarios) {
    SCOPED_TRACE(testing::Message() << name << " " << testing::PrintToString(overrides));
    const Explained explained(load(name, overrides));
    Explainer explainer(explained.scenario, explained.simulation);
    for (const Figure& figure : explained.figures) {
      SCOPED_TRACE(figure.path);
      const Explanation tree = explainer.of(figure);
      EXPECT_EQ(tree.value.value(), figure.value.value());
      EXPECT_EQ(tree.name, figure.path);
      expect_formulas_hold(tree);
    }
  }
}

// What people ask for has a formula, not a sentence.
TEST(Explain, FiguresPeopleAskForHaveFormulas) {
  const Explained explained(load("gpt3-175b-1024xA100.yaml", {"training.global_batch_size=256"}));
  Explainer explainer(explained.scenario, explained.simulation);
  for (const char* path :
       {"iteration_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "samples_per_s", "model_tflops_per_gpu",
        "hardware_tflops_per_gpu", "mfu", "hfu", "bubble.over_ideal", "bubble.ideal_s", "breakdown_s.forward",
        "breakdown_s.backward", "breakdown_s.tensor_comm", "breakdown_s.bubble", "breakdown_s.data_comm",
        "memory.peak_bytes", "memory.stages.0.activations_bytes", "memory.stages.7.peak_bytes", "gpus"})
    EXPECT_GT(expect_formulas_hold(explainer.of(*figure_at(explained.figures, path))), 0) << path;
}

// A profile that was scored, one that was not, and costs that are given.
TEST(Explain, AnIntervalSaysWhatItsSpreadIsTakenFrom) {
  Scenario scenario = load("llama3-8b-64xA100.yaml");
  ASSERT_TRUE(scenario.profile->residuals);
  EXPECT_THAT(Explained(scenario).of("interval_90_s.0").origin.text, HasSubstr("its residuals"));
  scenario.profile->residuals.reset();
  EXPECT_THAT(Explained(scenario).of("interval_90_s.1").origin.text, HasSubstr("by how they are known"));
  const Explained stages(load("pipeline-4x8.yaml"));
  EXPECT_THAT(stages.of("interval_90_s.0").origin.text, HasSubstr("no spread"));
}

// With several devices a peak is the mean over the cluster's GPUs, and each part names its own device.
TEST(Explain, AUtilizationOfSeveralDevicesNamesAllOfThem) {
  const Explained explained(load("goodput/oobleck-mixed.yaml"));
  ASSERT_GT(explained.scenario.group_profiles.size(), 1u);
  const Explanation mfu = explained.of("mfu");
  EXPECT_GT(expect_formulas_hold(mfu), 3);
  const Explanation* mean = find(mfu, "mean peak of the cluster's GPUs");
  ASSERT_NE(mean, nullptr);
  EXPECT_EQ(mean->value, Amount(explained.simulation.report.peak));
  EXPECT_EQ(find(mfu, "peaks of all GPUs")->inputs.size(), explained.scenario.group_profiles.size());
}

// System: 4 ranks, 8 micro-batches, F 1 ms, B 2 ms, so 8 forwards on each rank and 9 ms of bubble.
TEST(Explain, AnAbstractPipelineIsCountsTimesCosts) {
  const Explained explained(load("pipeline-4x8.yaml", {"schedule=1f1b"}));
  const Explanation forward = explained.of("breakdown_s.forward");
  EXPECT_EQ(forward.value, Amount(8ms));
  ASSERT_NE(find(forward, "passes"), nullptr);
  EXPECT_EQ(find(forward, "passes")->value, Amount::count(8));
  const Explanation* cost = find(forward, "forward of stage 0");
  ASSERT_NE(cost, nullptr);
  EXPECT_EQ(cost->value, Amount(1ms));
  EXPECT_EQ(cost->origin.kind, OriginKind::kScenario);
  EXPECT_GT(cost->origin.where.line, 0);
  const Explanation bubble = explained.of("breakdown_s.bubble");
  EXPECT_EQ(bubble.value, Amount(9ms));
  EXPECT_EQ(find(bubble, "end of the last pass")->value, Amount(33ms));
}

// A forward goes down to GEMMs: rows of the profile, and no rest that nobody explains.
TEST(Explain, AForwardGoesDownToTheProfile) {
  const Explained explained(load("llama3-8b-64xA100.yaml", {"options.software=null"}));
  const Explanation forward = explained.of("breakdown_s.forward");
  const Explanation* qkv = find(forward, "qkv");
  ASSERT_NE(qkv, nullptr);
  const Explanation* efficiency = find(*qkv, "efficiency");
  ASSERT_NE(efficiency, nullptr);
  EXPECT_EQ(efficiency->origin.kind, OriginKind::kProfile);
  EXPECT_THAT(efficiency->origin.text, HasSubstr("a100-sxm4-80gb"));
  const Explanation* layer = find(forward, "one layer");
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(find(*layer, "beyond that"), nullptr);
}

// Layers of multi-token prediction too. The slowest of 64 GPUs takes 2.34 standard deviations of 2 % longer.
TEST(Explain, AForwardLeavesNoLayerUnexplained) {
  const Explained explained(load("llama3-8b-64xA100.yaml", {"options.software=null", "model.mtp_layers=1"}));
  const Explanation tree = explained.of("breakdown_s.forward");
  const Explanation* forward = find(tree, "forward of stage 0");
  ASSERT_NE(forward, nullptr);
  EXPECT_EQ(find(*forward, "beyond that"), nullptr);
  const Explanation* layer = find(*forward, "one layer");
  ASSERT_NE(layer, nullptr);
  const Explanation* slowest = find(*layer, "the slowest of 64 GPUs");
  ASSERT_NE(slowest, nullptr);
  EXPECT_NEAR(to_seconds(slowest->value.time()) / to_seconds(layer->value.time()), 0.0468 / 1.0468, 1e-4);
  EXPECT_EQ(find(*forward, "heads")->inputs.front().value, Amount::count(2));
}

TEST(Explain, OneGpuWaitsForNoOther) {
  const Explained explained(
      load("llama3-8b-64xA100.yaml", {"cluster={node: dgx-a100-80gb, gpus: 1}", "parallelism={tensor: 1}"}));
  const Explanation tree = explained.of("breakdown_s.forward");
  EXPECT_NE(find(tree, "one layer"), nullptr);
  EXPECT_EQ(find(tree, "the slowest of 1 GPUs"), nullptr);
}

TEST(Explain, KeysSayTheirLineOrThatTheyAreDefaults) {
  const Explained explained(load("gpt3-175b-1024xA100.yaml"));
  const Explanation gpus = explained.of("gpus");
  const Explanation* tensor = find(gpus, "parallelism.tensor");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->origin.kind, OriginKind::kScenario);
  EXPECT_THAT(tensor->origin.where.file, HasSubstr("gpt3-175b-1024xA100.yaml"));
  EXPECT_GT(tensor->origin.where.line, 1);
  EXPECT_EQ(find(gpus, "parallelism.context")->origin.kind, OriginKind::kDefault);
}

TEST(Figures, APartOfTheDocumentIsAllBelowIt) {
  const Explained explained(load("pipeline-4x8.yaml"));
  EXPECT_EQ(figures_at(explained.figures, "bubble").size(), 5u);
  EXPECT_EQ(figures_at(explained.figures, "bubble.ideal_s").size(), 1u);
  EXPECT_TRUE(figures_at(explained.figures, "bub").empty());
}

TEST(Explanation, ALongSumIsCountedAndALongProductIsNot) {
  std::vector<Explanation> seven;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    seven.push_back(leaf(name, Amount::number(1), {}));
  EXPECT_EQ(formula_text(formula("all", Operation::kSum, seven)), "the sum of 7");
  EXPECT_EQ(formula_text(formula("all", Operation::kProduct, seven)), "a * b * c * d * e * f * g");
}

TEST(Explanation, PrintsSoManyLevels) {
  const Explanation tree =
      formula("a", Operation::kSum,
              {formula("b", Operation::kProduct,
                       {leaf("n", Amount::count(2), {.kind = OriginKind::kConstant}),
                        leaf("t", Amount(3ms), {.kind = OriginKind::kSimulation, .text = "read off"})}),
               leaf("c", Amount(1ms), {.kind = OriginKind::kPrice})});
  EXPECT_EQ(tree.value, Amount(7ms));
  EXPECT_EQ(render_text(tree, 1),
            "a = 7.00 ms   = b + c\n"
            "  b = 6.00 ms   = n * t\n"
            "    … 2 below: --depth 2\n"
            "  c = 1.00 ms   [price]\n");
  EXPECT_THAT(render_text(tree, 2), HasSubstr("    t = 3.00 ms   [simulation: read off]\n"));
}

TEST(Explanation, FitsEightyColumns) {
  const std::string words = "on the critical path of the iteration: send forward, then send backward";
  EXPECT_EQ(render_text(leaf("breakdown_s.pipeline_comm before the last pass ends", Amount(7ms),
                             {.kind = OriginKind::kSimulation, .text = words + ", many a time"}),
                        1),
            "breakdown_s.pipeline_comm before the last pass ends = 7.00 ms\n"
            "    [simulation: on the critical path of the iteration: send forward, then send\n"
            "    backward, many a time]\n");
}

}  // namespace
}  // namespace stagecraft
