#include "calibrate/fit/gemm_fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/check.hpp"
#include "tests/calibrate/fit/published_tables.hpp"

namespace stagecraft {
namespace {

// System: a device of 100 SMs, 100 TFLOP/s, memory too fast to matter, one tile rate for all, prologue 100,
// no split-k, efficiencies 0.8, 0.7 and 0.6 by layout and 4 us of launch. Times are what the tile model says.
GemmDevice made_device() {
  return {.sms = 100, .peak = FlopRate(1e14), .memory_bandwidth = Bandwidth(1e16)};
}

GemmModel made_model() {
  GemmModel model;
  model.efficiency_tn.value = 0.8;
  model.efficiency_nn.value = 0.7;
  model.efficiency_nt.value = 0.6;
  model.tiles = {{128, 256, 1},  {256, 128, 1},  {128, 128, 0.9}, {64, 256, 0.8},
                 {256, 64, 0.8}, {128, 64, 0.7}, {64, 128, 0.7},  {64, 64, 0.5}};
  model.split_k_max = 1;
  model.prologue_k = 100;
  return model;
}

std::vector<GemmPoint> made_points() {
  std::vector<GemmPoint> points;
  const GemmModel model = made_model();
  for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT})
    for (const std::int64_t m : {256, 1000, 4096})
      for (const std::int64_t n : {384, 2048, 5120})
        for (const std::int64_t k : {512, 1536, 4096}) {
          const GemmSize size{.m = m, .n = n, .k = k};
          const double share = model.efficiency(layout).value * tile_quantisation(model, 100, size);
          const double flops = 2.0 * static_cast<double>(m * n * k);
          points.push_back({.size = size, .layout = layout, .seconds = 4e-6 + flops / (1e14 * share)});
        }
  return points;
}

TEST(GemmFit, FindsTheConstantsThatMadeTheTimes) {
  const GemmFit fit = fit_gemm(made_points(), made_device(), {});
  EXPECT_NEAR(fit.t0_seconds, 4e-6, 0.04e-6);
  EXPECT_EQ(fit.model.prologue_k, 100);
  EXPECT_NEAR(fit.model.efficiency_tn.value, 0.8, 0.004);
  EXPECT_NEAR(fit.model.efficiency_nn.value, 0.7, 0.004);
  EXPECT_NEAR(fit.model.efficiency_nt.value, 0.6, 0.004);
  EXPECT_LT(fit.formula.p95(), 0.005);
  EXPECT_LT(fit.left_out.p95(), 0.005);
}

TEST(GemmFit, NamesTheOddRowAndIsNotBentByIt) {
  std::vector<GemmPoint> points = made_points();
  points[40].seconds *= 3;
  const GemmFit fit = fit_gemm(points, made_device(), {});
  EXPECT_EQ(fit.left_out.worst(1).front().row, row_name(points[40]));
  EXPECT_NEAR(fit.model.efficiency_tn.value, 0.8, 0.02);
}

TEST(GemmFit, PutsTheKernelWithoutItsLaunchIntoTheTable) {
  const std::vector<GemmPoint> points = made_points();
  const GemmFit fit = fit_gemm(points, made_device(), {});
  const GemmRow& row = fit.model.table.rows.back();  // 4096 x 5120, k 4096, NT
  const double flops = 2.0 * 4096 * 5120 * 4096;
  EXPECT_NEAR(row.efficiency, flops / (1e14 * (points.back().seconds - 4e-6)), 1e-3);
}

TEST(GemmFit, LeavesRowsThatAreMostlyLaunchOutOfTheTable) {
  const GemmFit fit = fit_gemm(xla_h100_gemms(), h100(), {});  // 256^3 takes 5 us, which is the launch
  for (const GemmRow& row : fit.model.table.rows) EXPECT_FALSE(row.m == 256 && row.n == 256 && row.k == 256);
  EXPECT_LT(fit.model.table.rows.size(), 125u);
  EXPECT_EQ(fit.points.size(), fit.model.table.rows.size());
}

TEST(GemmFit, TakesTheForwardConstantForALayoutThatNobodyTimed) {
  const GemmFit fit = fit_gemm(xla_h100_gemms(), h100(), {});
  EXPECT_EQ(fit.model.efficiency_nt.value, fit.model.efficiency_tn.value);
}

TEST(GemmFit, RefusesTooFewPoints) {
  std::vector<GemmPoint> points = made_points();
  points.resize(kMinGemmPoints - 1);
  EXPECT_THROW((void)fit_gemm(points, made_device(), {}), InternalError);
}

// Property: twice a dimension never costs less off the table, to half a percent, which is how well a sample
// is known. Rows of the table are as they were measured.
TEST(GemmFit, TwiceADimensionNeverCostsLessOffTheTable) {
  const std::pair<std::vector<GemmPoint>, GemmDevice> tables[] = {{xla_h100_gemms(), h100()},
                                                                  {simumax_a100_gemms(), a100_pcie()}};
  for (const auto& [points, device] : tables) {
    const GemmFit fit = fit_gemm(points, device, {});
    const auto seconds = [&fit, &on = device](std::int64_t m, std::int64_t n, std::int64_t k) {
      return predict_seconds(fit, on, {.size = {.m = m, .n = n, .k = k}});
    };
    for (std::int64_t m = 160; m <= 40960; m *= 2)
      for (std::int64_t n = 240; n <= 61440; n *= 2)
        for (std::int64_t k = 72; k <= 36864; k *= 2) {
          SCOPED_TRACE(testing::Message() << m << " x " << n << ", k " << k);
          const double least = seconds(m, n, k) / 1.005;
          EXPECT_LE(least, seconds(2 * m, n, k));
          EXPECT_LE(least, seconds(m, 2 * n, k));
          EXPECT_LE(least, seconds(m, n, 2 * k));
        }
  }
}

// 200 TFLOP/s of peak, 0.75 of the efficiencies of 16 bit, and a prologue six times as long. The third of each
// pass is odd: it moves neither, and is foretold by the formula.
TEST(Fp8Gemms, HaveAFactorAndAPrologueOfTheirOwn) {
  GemmModel model = made_model();
  model.fp8_prologue = Sourced<double>{.value = 600};
  std::vector<GemmPoint> points;
  for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT})
    for (const std::int64_t m : {1024, 4096})
      for (const std::int64_t k : {512, 2048, 8192}) {
        const GemmSize size{.m = m, .n = 2048, .k = k};
        const double q = tile_quantisation(model, 100, size, Precision::kFp8);
        EXPECT_LT(q, tile_quantisation(model, 100, size)) << "a longer prologue fills worse";
        const double rate = 2e14 * model.efficiency(layout).value * 0.75 * q;
        points.push_back({.size = size,
                          .layout = layout,
                          .seconds = 4e-6 + 2.0 * static_cast<double>(m * 2048 * k) / rate});
      }
  for (const std::size_t odd : {2U, 8U, 14U}) points[odd].seconds *= 1.3;
  GemmDevice device = made_device();
  device.peak = FlopRate(2e14);
  device.element_bytes = 1;
  const Fp8Fit fit = fit_fp8(made_model(), device, 4e-6, points);
  EXPECT_NEAR(fit.factor, 0.75, 1e-9);
  EXPECT_EQ(fit.prologue, 600);
  EXPECT_NEAR(fit.left_out.worst(1).front().error, 1 / 1.3 - 1, 0.05);
  ASSERT_EQ(fit.table.rows.size(), points.size());
  const double seconds = points[2].seconds - 4e-6, work = 2.0 * 1024 * 2048 * 8192;
  EXPECT_NEAR(fit.table.rows[2].efficiency, work / (2e14 * seconds), 1e-9);
}

TEST(BatchedGemms, AreJudgedByTheirMedian) {
  const GemmModel model = made_model();
  std::vector<GemmPoint> points;
  for (const double share : {0.3, 0.4, 0.9}) {
    const GemmSize size{.m = 2048, .n = 2048, .k = 128, .batch = 16};
    const double q = tile_quantisation(model, 100, size);
    points.push_back({.size = size, .seconds = 2.0 * 2048 * 2048 * 128 * 16 / (1e14 * share * q)});
  }
  EXPECT_NEAR(fit_batched_efficiency(model, made_device(), points), 0.4, 1e-12);
}

TEST(FitErrors, QuantilesLieBetweenRows) {
  FitErrors errors;
  errors.add("a", 1.1, 1);
  errors.add("b", 0.8, 1);
  errors.add("c", 3, 2);
  EXPECT_NEAR(errors.median(), 0.2, 1e-12);         // of 0.1, 0.2, 0.5
  EXPECT_NEAR(errors.quantile(0.75), 0.35, 1e-12);  // half-way between 0.2 and 0.5
  EXPECT_EQ(errors.worst(1).front().row, "c");
  EXPECT_THAT(errors.summary(), testing::HasSubstr("worst +50.0 % (c), 3 rows"));
}

// Shares of the measured time are -90 and +150 %.
TEST(FitErrors, ATimeTenTimesTooLongIsWorseThanAPredictionTwiceAndAHalfTooLong) {
  FitErrors errors;
  errors.add("neighbour", 2.5, 1);
  errors.add("slip", 1, 10);
  EXPECT_EQ(errors.worst(1).front().row, "slip");
}

}  // namespace
}  // namespace stagecraft
