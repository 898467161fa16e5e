#include "sim/accuracy/measurement_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

Scenario small_job(const std::string& training = "attention: flash") {
  return scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 4, hidden: 2048, heads: 16, vocab: 51200, max_sequence_length: 2048}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 2}\n"
      "parallelism: {tensor: 4, pipeline: 2}\n"
      "training: {global_batch_size: 8, micro_batch_size: 1, " +
      training + "}\n");
}

std::vector<WantedPoint> points_of(const std::vector<Scenario>& scenarios) {
  MeasurementPlan plan;
  Diagnostics diagnostics;
  for (const Scenario& scenario : scenarios) plan.add(scenario, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors());
  return plan.points();
}

TEST(MeasurementPlan, AsksForTheShapesOfTheModelOncePerShape) {
  const std::vector<WantedPoint> points = points_of({small_job()});
  // The first matrix of the MLP over 4 tensor ranks, forwards: 2,048 tokens, 2,048 to 8,192 / 4.
  const auto up = std::ranges::count_if(points, [](const WantedPoint& wanted) {
    const Sample& at = wanted.point;
    return at.family == "gemm" && at.tags.at("layout") == "TN" &&
           at.shape.at("m") * at.shape.at("n") == 2048 * 2048 && at.shape.at("k") == 2048;
  });
  EXPECT_EQ(up, 1);
  std::set<std::string> keys;
  for (const WantedPoint& wanted : points) EXPECT_TRUE(keys.insert(sample_key(wanted.point)).second);
}

TEST(MeasurementPlan, ValuesAreSharesMostValuableFirst) {
  const std::vector<WantedPoint> points = points_of({small_job()});
  ASSERT_GT(points.size(), 2U);
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    sum += points[i].value;
    if (i == 0) continue;
    EXPECT_LE(points[i].value, points[i - 1].value);
  }
  EXPECT_NEAR(sum, 100, 1e-9);
}

TEST(MeasurementPlan, TheSameScenarioTwiceAsksForNothingMore) {
  const std::vector<WantedPoint> once = points_of({small_job()}),
                                 twice = points_of({small_job(), small_job()});
  ASSERT_EQ(once.size(), twice.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(sample_key(once[i].point), sample_key(twice[i].point));
    EXPECT_DOUBLE_EQ(once[i].value, twice[i].value);
  }
}

// Whichever group comes first.
TEST(MeasurementPlan, OfSeveralDevicesAsksForAll) {
  const auto on = [](const std::string& first, const std::string& second) {
    return points_of({scenario_of(
        "stagecraft: 1\n"
        "model: {family: gpt, layers: 4, hidden: 2048, heads: 16, vocab: 51200, max_sequence_length: 2048}\n"
        "cluster: {nodes: [{node: " +
        first + ", nodes: 1}, {node: " + second +
        ", nodes: 1}], fabric: hdr-fat-tree}\n"
        "parallelism: {tensor: 4, pipeline: 2}\noptions: {software: megatron-core}\n"
        "training: {global_batch_size: 8, micro_batch_size: 1}\n")});
  };
  std::map<std::string, double> values, other_way;
  for (const WantedPoint& point : on("dgx-h100", "dgx-a100-80gb"))
    values[sample_key(point.point)] = point.value;
  for (const WantedPoint& point : on("dgx-a100-80gb", "dgx-h100"))
    other_way[sample_key(point.point)] = point.value;
  ASSERT_FALSE(values.empty());
  ASSERT_EQ(values.size(), other_way.size());
  for (const auto& [key, value] : values) EXPECT_NEAR(other_way[key], value, 1e-9) << key;
}

TEST(MeasurementPlan, FlashAttentionIsAskedForAtThreeLengths) {
  std::set<std::int64_t> lengths;
  for (const WantedPoint& wanted : points_of({small_job()}))
    if (wanted.point.family == "attention") lengths.insert(wanted.point.shape.at("sequence"));
  EXPECT_EQ(lengths, (std::set<std::int64_t>{512, 1024, 2048}));
  for (const WantedPoint& wanted : points_of({small_job("attention: unfused")}))
    EXPECT_NE(wanted.point.family, "attention");
}

TEST(MeasurementPlan, ReportsAScenarioThatCannotBe) {
  Scenario scenario = small_job();
  scenario.parallelism.pipeline = 3;
  MeasurementPlan plan;
  Diagnostics diagnostics;
  plan.add(scenario, diagnostics);
  EXPECT_TRUE(diagnostics.has_errors());
  EXPECT_TRUE(plan.points().empty());
}

}  // namespace
}  // namespace stagecraft
