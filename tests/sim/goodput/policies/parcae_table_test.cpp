// The form in which our degraded shapes are timed, against measured iterations of many shapes.
//
//   System        Parcae's tables (NSDI 2024): every (data, pipeline) shape of up to 32 p3.2xlarge, one
//                 V100 each, 10 Gb/s. GPT 1.5B: 48 layers, 1.64·10⁹ parameters, 128 samples in micro-
//                 batches of 1. BERT-large: 24 layers, 0.34·10⁹, 1,024 in micro-batches of 8.
//   Expectations  stages of l layers take l·w + c for a micro-batch, pipeline_time() of them, and a
//                 ring all-reduce of half precision gradients of a stage at 1.25 GB/s. w and c are
//                 fitted to the shapes with one pipeline (27 of 47, 11 of 62), nothing to the others.
//                 Bounds stand a little above what was measured, which is beside each. The tables are
//                 single measurements; some of BERT's are twice their neighbours.
//   source        calibrate/published/data/resilience_parcae_v100_dev.yaml; GPT's parameters from its
//                 layer profiles, BERT-large's: Devlin et al., NAACL 2019.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/ceil_div.hpp"
#include "sim/goodput/policies/degraded_steps.hpp"
#include "tests/sim/goodput/replay/published_replays.hpp"

namespace stagecraft {
namespace {

using published::at;
using published::count;
using published::number;

struct Shape {
  std::int64_t data = 1, pipeline = 1;
  double measured = 0;  // seconds
};

struct Measured {
  std::int64_t layers = 1, batch = 1, micro_batch = 1;
  double parameters = 0;
  std::vector<Shape> shapes;
};

// Seconds a layer and a stage take for a micro-batch.
struct Costs {
  double layer = 0, stage = 0;
};

Measured measured(const std::string& name, std::int64_t layers, double parameters) {
  const YamlNode file = published::table("resilience_parcae_v100_dev");
  const YamlNode& model = published::named(at(file, "models"), name);
  Measured measured{.layers = layers,
                    .batch = count(at(model, "global_batch")),
                    .micro_batch = count(at(model, "micro_batch")),
                    .parameters = parameters,
                    .shapes = {}};
  for (const YamlNode& row : at(model, "strategies").items)
    measured.shapes.push_back({count(row.items[0]), count(row.items[1]), number(row.items[2]) / 1e3});
  return measured;
}

// The first stages have one layer more where the pipeline does not divide.
double predicted(const Measured& job, const Shape& shape, const Costs& costs) {
  const std::int64_t samples = ceil_div(job.batch, shape.data);
  const std::int64_t micro_batches = ceil_div(samples, job.micro_batch);
  std::vector<Duration> stages;
  for (std::int64_t stage = 0; stage < shape.pipeline; ++stage) {
    const std::int64_t layers = job.layers / shape.pipeline + (stage < job.layers % shape.pipeline ? 1 : 0);
    stages.push_back(from_seconds(static_cast<double>(layers) * costs.layer + costs.stage));
  }
  const double ring = 2.0 * static_cast<double>(shape.data - 1) / static_cast<double>(shape.data);
  const double reduction = ring * 2 * job.parameters / static_cast<double>(shape.pipeline) / 1.25e9;
  return to_seconds(pipeline_time(stages, micro_batches)) + reduction;
}

// Least squares of relative errors over the shapes with one pipeline: pipeline_time() is linear in both
// costs.
Costs fitted(const Measured& job) {
  double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
  for (const Shape& shape : job.shapes) {
    if (shape.data != 1) continue;
    const double x = predicted(job, shape, {.layer = 1, .stage = 0}) / shape.measured;
    const double y = predicted(job, shape, {.layer = 0, .stage = 1}) / shape.measured;
    xx += x * x, xy += x * y, yy += y * y, x1 += x, y1 += y;
  }
  const double determinant = xx * yy - xy * xy;
  return {.layer = (x1 * yy - y1 * xy) / determinant, .stage = (y1 * xx - x1 * xy) / determinant};
}

std::vector<double> errors(const Measured& job) {
  const Costs costs = fitted(job);
  std::vector<double> errors;
  for (const Shape& shape : job.shapes)
    errors.push_back(std::abs(predicted(job, shape, costs) / shape.measured - 1));
  std::sort(errors.begin(), errors.end());
  return errors;
}

TEST(ParcaeTable, Gpt15bOfAllShapesFollowsThePipelineForm) {
  const std::vector<double> sorted = errors(measured("gpt-1.5b", 48, 1.64e9));
  ASSERT_EQ(sorted.size(), 47u);
  EXPECT_LT(sorted[23], 0.045);  // median 3.9 %
  EXPECT_LT(sorted[42], 0.15);   // 91 % of the shapes within 15 %
  EXPECT_LT(sorted[46], 0.20);   // 19.3 %
}

TEST(ParcaeTable, BertLargeOfMostShapesFollowsThePipelineForm) {
  const std::vector<double> sorted = errors(measured("bert", 24, 0.34e9));
  ASSERT_EQ(sorted.size(), 62u);
  EXPECT_LT(sorted[31], 0.08);  // 7.3 %
  EXPECT_LT(sorted[50], 0.15);  // 82 % of the shapes within 15 %
}

// What a policy does with it: the shape that is best by prediction, among those on at most so many nodes.
TEST(ParcaeTable, TheShapeChosenForAnyNumberOfNodesIsNearlyTheBest) {
  const Measured job = measured("gpt-1.5b", 48, 1.64e9);
  const Costs costs = fitted(job);
  for (std::int64_t nodes = 6; nodes <= 32; ++nodes) {
    SCOPED_TRACE(nodes);
    double best = 1e9, chosen = 0, least = 1e9;
    for (const Shape& shape : job.shapes) {
      if (shape.data * shape.pipeline > nodes) continue;
      best = std::min(best, shape.measured);
      const double prediction = predicted(job, shape, costs);
      if (prediction < least) chosen = shape.measured;
      least = std::min(least, prediction);
    }
    EXPECT_LE(chosen, 1.12 * best);  // at worst 11.7 %, on 9 nodes
  }
}

}  // namespace
}  // namespace stagecraft
