#include "sim/shaped_operators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/simulate.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

Scenario job_on(const std::string& cluster) {
  return scenario_of(
      "stagecraft: 1\n"
      "model: {family: llama, layers: 4, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, "
      "vocab: 128256, max_sequence_length: 8192}\n"
      "cluster: " +
      cluster +
      "\n"
      "parallelism: {tensor: 2, pipeline: 2}\n"
      "training: {global_batch_size: 16, micro_batch_size: 1}\n");
}

std::vector<ShapeReport> shapes_on(const std::string& cluster) {
  return simulate(job_on(cluster)).shapes;
}

const ShapeReport* find(const std::vector<ShapeReport>& shapes, const std::string& shape) {
  const auto found = std::ranges::find(shapes, shape, &ShapeReport::shape);
  return found == shapes.end() ? nullptr : &*found;
}

TEST(PricedShapes, AreTheDistinctOnesDearestFirst) {
  const std::vector<ShapeReport> shapes = shapes_on("{node: dgx-h100, nodes: 1}");
  std::set<std::string> names;
  double sum = 0;
  for (const ShapeReport& shape : shapes) {
    EXPECT_TRUE(names.insert(shape.shape).second) << shape.shape;
    sum += shape.share;
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_TRUE(std::ranges::is_sorted(shapes, std::ranges::greater(), &ShapeReport::share));
  // QKV, projection, gate and up, down, the head: three products each; two attention kernels.
  EXPECT_EQ(shapes.size(), 5U * 3 + 2);
  // Down: 8,192 tokens, 14,336 / 2 in, 4,096 out.
  EXPECT_NE(find(shapes, "8192 x 4096 x 7168 TN bf16"), nullptr);
  EXPECT_NE(find(shapes, "flash backward 16 x 8192 x 8192 of 128"), nullptr);
}

TEST(PricedShapes, RestOnTheRowsOfTheProfile) {
  Scenario job = job_on("{node: dgx-h100, nodes: 1}");
  const std::string down = "8192 x 4096 x 7168 TN bf16";
  std::vector<GemmRow>& rows = job.profile->gemm.table.rows;
  rows.clear();
  EXPECT_EQ(find(simulate(job).shapes, down)->provenance, Provenance::kAnalytic);
  rows = {{.m = 8192, .n = 4096, .k = 7168, .efficiency = 0.7, .provenance = Provenance::kMeasured}};
  EXPECT_EQ(find(simulate(job).shapes, down)->provenance, Provenance::kMeasured);
}

TEST(PricedShapes, AreListedForEachDevice) {
  const std::vector<ShapeReport> shapes =
      shapes_on("{nodes: [{node: dgx-h100, nodes: 1}, {node: dgx-a100-80gb, nodes: 1}]}");
  EXPECT_EQ(shapes.size(), 2 * (5U * 3 + 2));
  EXPECT_NE(find(shapes, "8192 x 4096 x 7168 TN bf16 on h100-sxm5-80gb"), nullptr);
  EXPECT_NE(find(shapes, "8192 x 4096 x 7168 TN bf16 on a100-sxm4-80gb"), nullptr);
}

TEST(PricedShapes, AnAbstractPipelineHasNone) {
  EXPECT_TRUE(simulate(scenario_of("stagecraft: 1\n"
                                   "model: {family: stages, forward: 1 ms, input_gradient: 1 ms, "
                                   "weight_gradient: 1 ms}\n"
                                   "parallelism: {pipeline: 4}\n"
                                   "training: {global_batch_size: 8, micro_batch_size: 1}\n"))
                  .shapes.empty());
}

}  // namespace
}  // namespace stagecraft
