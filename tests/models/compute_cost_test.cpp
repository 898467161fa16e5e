#include "models/compute_cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/check.hpp"
#include "calibrate/profile/tile_model.hpp"
#include "tests/calibrate/shipped_profiles.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;

// 50 TFLOP/s forward and 25 backward where nothing limits; under a causal mask 40 and 20.
FlashKernel toy_flash() {
  FlashKernel kernel{.name = "toy", .forward = {}, .backward = {}};
  kernel.forward.dense = {.rate = 50_TFLOPps, .provenance = Provenance::kPublished};
  kernel.forward.causal = {.rate = 40_TFLOPps, .provenance = Provenance::kInterpolated};
  kernel.backward.dense = {.rate = 25_TFLOPps, .provenance = Provenance::kPublished};
  kernel.backward.causal = {.rate = 20_TFLOPps, .provenance = Provenance::kInterpolated};
  return kernel;
}

// A device to reckon with: 4 SMs, 100 TFLOP/s at 16 bit, 1 TB/s of which half is reached, one tile of 128 x
// 128 without prologue, layout efficiencies 0.5, no gaps. A GEMM of 256 x 256 fills it: 50 TFLOP/s.
HardwareProfile toy() {
  HardwareProfile profile;
  profile.device = {.name = "toy",
                    .sms = 4,
                    .memory_bandwidth = 1000_GBps,
                    .peak_fp32 = 10_TFLOPps,
                    .peak_bf16 = 100_TFLOPps};
  profile.memory_efficiency = {.value = 0.5, .provenance = Provenance::kMeasured};
  profile.gemm.scale.value = 1;
  for (Sourced<double>* e :
       {&profile.gemm.efficiency_tn, &profile.gemm.efficiency_nn, &profile.gemm.efficiency_nt}) {
    e->value = 0.5;
  }
  profile.gemm.batched_efficiency = {.value = 0.25, .provenance = Provenance::kAnalytic};
  profile.gemm.misaligned_factor.value = 0.1;
  profile.gemm.tiles = {{.m = 128, .n = 128, .rate = 1}};
  profile.gemm.prologue_k = 0;
  profile.gemm.split_k_max = 1;
  profile.gemm.table.radius = 0.5;
  profile.gemm.table_precisions = {Precision::kBf16};
  profile.attention.kernels = {toy_flash()};
  profile.relative_spread = {0.01, 0.02, 0.03, 0.04, 0.05};
  return profile;
}

Op gemm(GemmShape shape, Bytes bytes = {}) {
  const double flops =
      2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k * shape.batch);
  return {.kind = OpKind::kGemm, .name = "op", .gemm = shape, .flops = Flops(flops), .bytes = bytes};
}

// 100 TFLOP/s at 8 bit.
HardwareProfile toy_with_fp8() {
  HardwareProfile profile = toy();
  profile.device.peak_fp8 = 100_TFLOPps;
  return profile;
}

Op batched(GemmShape shape) {
  Op op = gemm(shape);
  op.kind = OpKind::kBatchedGemm;
  return op;
}

GemmShape shape_of(const GemmRow& row) {
  return {.m = row.m, .n = row.n, .k = row.k, .layout = row.layout};
}

Duration time_of(const HardwareProfile& profile, const Op& op) {
  return compute_cost(profile, Precision::kBf16, op).time;
}

// 2 * 256 * 256 * 50000 FLOPs = 6.5536e9 at 100e12 * 0.5.
TEST(ComputeCost, OfAGemmIsItsFlopsAtTheEfficiencyOfItsLayout) {
  HardwareProfile profile = toy();
  EXPECT_EQ(time_of(profile, gemm({.m = 256, .n = 256, .k = 50'000})), 131'072ns);
  profile.gemm.efficiency_nt.value = 0.25;
  EXPECT_EQ(time_of(profile, gemm({.m = 256, .n = 256, .k = 50'000, .layout = GemmLayout::kNT})), 262'144ns);
  profile.gemm.scale.value = 2;
  EXPECT_EQ(time_of(profile, gemm({.m = 256, .n = 256, .k = 50'000})), 65'536ns);
}

// 3 x 2 tiles on 4 SMs take two waves, as 4 x 2 would.
TEST(ComputeCost, OfAGemmCountsWholeWaves) {
  EXPECT_EQ(time_of(toy(), gemm({.m = 384, .n = 256, .k = 50'000})),
            time_of(toy(), gemm({.m = 512, .n = 256, .k = 50'000})));
}

// 1 GB at 1000 GB/s * 0.5.
TEST(ComputeCost, OfAGemmIsNeverBelowItsBytes) {
  EXPECT_EQ(time_of(toy(), gemm({.m = 256, .n = 256, .k = 50'000}, 1_GB)), 2ms);
}

TEST(ComputeCost, AddsAGapForEachKernel) {
  HardwareProfile profile = toy();
  profile.host.kernel_gap.value = 3us;
  Op op{.kind = OpKind::kMemory, .name = "op", .bytes = 1_GB};
  op.kernels = 4;
  EXPECT_EQ(time_of(profile, op), 2ms + 12us);
  EXPECT_EQ(time_of(profile, gemm({.m = 256, .n = 256, .k = 50'000})), 131'072ns + 3us);
}

TEST(ComputeCost, OfMemoryBoundWorkIsItsBytesAndTellsWhereTheRateIsFrom) {
  const Cost cost =
      compute_cost(toy(), Precision::kBf16, {.kind = OpKind::kMemory, .name = "op", .bytes = 5_GB});
  EXPECT_EQ(cost.time, 10ms);
  EXPECT_EQ(cost.provenance, Provenance::kMeasured);
  EXPECT_EQ(cost.relative_spread, 0.01);
}

// `flops` of the full square, one head of 128 x 1024.
Op flash(OpKind kind, double flops, bool causal = false) {
  return {
      .kind = kind,
      .name = "op",
      .attention =
          {.batch = 1, .queries = 1024, .keys = 1024, .query_size = 128, .value_size = 128, .causal = causal},
      .flops = Flops(flops)};
}

TEST(ComputeCost, OfFlashAttentionHasARateForEachDirection) {
  EXPECT_EQ(time_of(toy(), flash(OpKind::kFlashForward, 1e12)), 20ms);
  EXPECT_EQ(time_of(toy(), flash(OpKind::kFlashBackward, 1e12)), 40ms);
  EXPECT_EQ(compute_cost(toy(), Precision::kBf16, flash(OpKind::kFlashForward, 1e12)).provenance,
            Provenance::kPublished);
}

// Half of 1e12 FLOPs at 40 TFLOP/s.
TEST(ComputeCost, OfCausalFlashAttentionDoesHalfOfTheSquareAtARateOfItsOwn) {
  const Cost cost = compute_cost(toy(), Precision::kBf16, flash(OpKind::kFlashForward, 1e12, true));
  EXPECT_EQ(cost.time, 12'500us);
  EXPECT_EQ(cost.provenance, Provenance::kInterpolated);
}

// At as many keys as the half length the rate is half.
TEST(ComputeCost, OfFlashAttentionRisesWithTheLength) {
  HardwareProfile profile = toy();
  profile.attention.kernels[0].forward.dense.half_length = 1024;
  EXPECT_EQ(time_of(profile, flash(OpKind::kFlashForward, 1e12)), 40ms);
  Op longer = flash(OpKind::kFlashForward, 1e12);
  longer.attention.keys = 3072;
  EXPECT_EQ(time_of(profile, longer), from_seconds(0.02 * 4 / 3));
}

// 4 SMs and 256 a SM: half of the rate at 1024 blocks, two thirds at the 2048 of the benchmark, where the
// curve holds. 8 blocks of one head reach 8/1032 over 2/3.
TEST(ComputeCost, OfFlashAttentionFallsWhereBlocksAreFew) {
  HardwareProfile profile = toy();
  profile.attention.kernels[0].forward.dense.rate = 50_TFLOPps;
  profile.attention.kernels[0].forward.half_blocks.value = 256;
  EXPECT_EQ(time_of(profile, flash(OpKind::kFlashForward, 1e12)), from_seconds(0.02 * 1032 / 8 * 2 / 3));
  Op many = flash(OpKind::kFlashForward, 1e12);
  many.attention.batch = 256;
  EXPECT_EQ(time_of(profile, many), 20ms);
}

// d/(d + 128): half at the benchmarks' 128, a third at 64.
TEST(ComputeCost, OfFlashAttentionFallsWithSmallHeads) {
  HardwareProfile profile = toy();
  profile.attention.half_head_size.value = 128;
  EXPECT_EQ(time_of(profile, flash(OpKind::kFlashForward, 1e12)), 20ms);
  Op small = flash(OpKind::kFlashForward, 1e12);
  small.attention.query_size = small.attention.value_size = 64;
  EXPECT_EQ(time_of(profile, small), 30ms);
}

// 192 and 128 are counted as 320, and done as 384.
TEST(ComputeCost, OfFlashAttentionBackwardPadsTheValuesToTheQueries) {
  Op latent = flash(OpKind::kFlashBackward, 1e12);
  latent.attention.query_size = 192;
  EXPECT_EQ(time_of(toy(), latent), 48ms);
  latent.kind = OpKind::kFlashForward;
  EXPECT_EQ(time_of(toy(), latent), 20ms);
}

// 1 GB at 500 GB/s against 1 GFLOP.
TEST(ComputeCost, OfFlashAttentionIsNeverBelowItsBytesAndAddsWhatIsFixed) {
  HardwareProfile profile = toy();
  profile.attention.fixed.value = 4us;
  Op thin = flash(OpKind::kFlashForward, 1e9);
  thin.bytes = 1_GB;
  EXPECT_EQ(time_of(profile, thin), 2ms + 4us);
}

// fp32 has a tenth of the peak.
TEST(ComputeCost, OfFlashAttentionInFp32IsAssumedToScaleWithThePeak) {
  const Cost cost = compute_cost(toy(), Precision::kFp32, flash(OpKind::kFlashForward, 1e12));
  EXPECT_EQ(cost.time, 200ms);
  EXPECT_EQ(cost.provenance, Provenance::kAssumed);
}

// 2 groups of 256 x 256: 8 tiles, two waves of 4 SMs, 13.1072e9 FLOPs at 50 TFLOP/s; 65.536 MB at 500 GB/s
// take as long as half of that. A gap for each group.
TEST(ComputeCost, OfAGroupedGemmCountsTheTilesOfAllGroupsAndHalfHidesItsTraffic) {
  HardwareProfile profile = toy();
  Op op = gemm({.m = 256, .n = 256, .k = 50'000, .batch = 2});
  op.kind = OpKind::kGroupedGemm;
  EXPECT_EQ(time_of(profile, op), 262'144ns);
  op.bytes = Bytes(65'536'000);
  EXPECT_EQ(time_of(profile, op), from_seconds(131.072e-6 * std::sqrt(5.0)));
  op.bytes = {};
  profile.experts.grouped_factor.value = 0.5;
  profile.experts.group_gap.value = 3us;
  EXPECT_EQ(time_of(profile, op), 524'288ns + 6us);
}

// One tile a group: 3 groups on 4 SMs are one wave, as one group is.
TEST(ComputeCost, OfAGroupedGemmFillsAWaveWithSeveralGroups) {
  Op one = gemm({.m = 128, .n = 128, .k = 50'000});
  Op three = gemm({.m = 128, .n = 128, .k = 50'000, .batch = 3});
  one.kind = three.kind = OpKind::kGroupedGemm;
  EXPECT_EQ(time_of(toy(), three), time_of(toy(), one));
}

// 1 GB at a fifth of 1000 GB/s, where a copy reaches half.
TEST(ComputeCost, OfAPermutationHasAShareOfTheBandwidthOfItsOwn) {
  HardwareProfile profile = toy();
  profile.experts.permutation_efficiency = {.value = 0.2, .provenance = Provenance::kPublished};
  const Cost cost =
      compute_cost(profile, Precision::kBf16, {.kind = OpKind::kPermutation, .name = "op", .bytes = 1_GB});
  EXPECT_EQ(cost.time, 5ms);
  EXPECT_EQ(cost.provenance, Provenance::kPublished);
}

// The formula of 16 bit at the peak of fp8, 200 TFLOP/s, times the factor: 65.536 us / 0.8.
TEST(ComputeCost, OfAGemmInFp8TakesItsFactor) {
  HardwareProfile profile = toy();
  profile.device.peak_fp8 = 200_TFLOPps;
  profile.gemm.fp8_factor.value = 0.8;
  const Cost cost = compute_cost(profile, Precision::kFp8, gemm({.m = 256, .n = 256, .k = 50'000}));
  EXPECT_EQ(cost.time, 81'920ns);
  EXPECT_EQ(cost.provenance, Provenance::kAssumed);
}

// The row of the pass at the scale of fp8, in place of formula, factor and scale: 65.536 us * 0.5 / (0.8 * 0.4).
TEST(ComputeCost, OfAGemmInFp8TakesTheRowOfItsTable) {
  HardwareProfile profile = toy();
  profile.device.peak_fp8 = 200_TFLOPps;
  profile.gemm.fp8_factor.value = 0.8;
  profile.gemm.fp8_scale = Sourced<double>{.value = 0.4};
  profile.gemm.fp8_table = GemmTable{.radius = 0.5,
                                     .prior = 1,
                                     .source = "made",
                                     .rows = {{.m = 256,
                                               .n = 256,
                                               .k = 50'000,
                                               .layout = GemmLayout::kNT,
                                               .efficiency = 0.8,
                                               .provenance = Provenance::kMeasured}}};
  compare_with_formula(profile.gemm, profile.device.sms);
  const GemmShape shape{.m = 256, .n = 256, .k = 50'000, .layout = GemmLayout::kNT};
  const Cost cost = compute_cost(profile, Precision::kFp8, gemm(shape));
  EXPECT_EQ(cost.time, 102'400ns);
  EXPECT_EQ(cost.provenance, Provenance::kMeasured);
  // Beside the row the formula is pulled towards it, in fp8 and in this pass alone.
  const auto of = [&](Precision precision, GemmLayout layout, std::int64_t k) {
    return gemm_efficiency(profile, precision, {.m = 256, .n = 256, .k = k, .layout = layout}).value;
  };
  const double formula = of(Precision::kBf16, GemmLayout::kNT, 60'000) * 0.8;
  EXPECT_GT(of(Precision::kFp8, GemmLayout::kNT, 60'000), formula);
  EXPECT_EQ(of(Precision::kFp8, GemmLayout::kNN, 60'000),
            of(Precision::kBf16, GemmLayout::kNN, 60'000) * 0.8);
}

// A prologue of 25,000 in fp8 makes 75,000 of 50,000; 16 bit has none.
TEST(ComputeCost, OfAGemmInFp8TakesItsPrologue) {
  HardwareProfile profile = toy();
  profile.device.peak_fp8 = 100_TFLOPps;
  profile.gemm.fp8_prologue = Sourced<double>{.value = 25'000};
  const Op op = gemm({.m = 256, .n = 256, .k = 50'000});
  EXPECT_EQ(compute_cost(profile, Precision::kBf16, op).time, 131'072ns);
  EXPECT_EQ(compute_cost(profile, Precision::kFp8, op).time, 196'608ns);
}

// 4 tiles of one batch entry each: 2 * 128 * 128 * 4096 * 4 FLOPs at 100e12 * 0.25 = 21.47 us; a head size of
// 60 pads nothing in k, but breaks alignment.
TEST(ComputeCost, OfABatchedGemmFallsByTheMisalignedFactor) {
  EXPECT_EQ(time_of(toy(), batched({.m = 128, .n = 128, .k = 4096, .batch = 4})), 21'475ns);
  EXPECT_EQ(time_of(toy(), batched({.m = 128, .n = 128, .k = 64, .batch = 4})), 336ns);
  EXPECT_EQ(time_of(toy(), batched({.m = 128, .n = 128, .k = 60, .batch = 4})), 3'146ns);
  EXPECT_EQ(
      compute_cost(toy(), Precision::kBf16, batched({.m = 128, .n = 128, .k = 64, .batch = 4})).provenance,
      Provenance::kAnalytic);
}

TEST(ComputeCost, TakesTheRowOfTheTableForItsShapeAndLayout) {
  HardwareProfile profile = toy();
  profile.gemm.table.rows = {{.m = 256, .n = 256, .k = 50'000, .layout = GemmLayout::kTN, .efficiency = 1}};
  compare_with_formula(profile.gemm, profile.device.sms);
  const Cost cost = compute_cost(profile, Precision::kBf16, gemm({.m = 256, .n = 256, .k = 50'000}));
  EXPECT_EQ(cost.time, 65'536ns);
  EXPECT_EQ(cost.provenance, Provenance::kPublished);
  EXPECT_EQ(cost.relative_spread, 0.02);
}

// One row twice as fast as the formula. At its own place the weight would be 1, at distance ln 2 in k it is
// exp(-(ln 2 / 0.5)^2); the prior of 1 stands against it.
TEST(ComputeCost, CarriesTheRatioOfANearRowOver) {
  HardwareProfile profile = toy();
  profile.gemm.table.rows = {{.m = 256, .n = 256, .k = 4096, .layout = GemmLayout::kTN, .efficiency = 1}};
  compare_with_formula(profile.gemm, profile.device.sms);
  const double weight = std::exp(-std::pow(std::log(2.0) / 0.5, 2));
  const GemmEfficiency near = gemm_efficiency(profile, Precision::kBf16, {.m = 256, .n = 256, .k = 8192});
  EXPECT_DOUBLE_EQ(near.value, 0.5 * std::pow(2.0, weight / (weight + 1)));
  EXPECT_EQ(near.provenance, Provenance::kAnalytic);
  profile.gemm.table.prior = weight / 2;
  EXPECT_EQ(gemm_efficiency(profile, Precision::kBf16, {.m = 256, .n = 256, .k = 8192}).provenance,
            Provenance::kInterpolated);
  const GemmShape other_layout{.m = 256, .n = 256, .k = 8192, .layout = GemmLayout::kNN};
  EXPECT_EQ(gemm_efficiency(profile, Precision::kBf16, other_layout).value, 0.5);
}

// One wave of tiles at 128 rows and two from 129 on, where times hardly grow: all read the weights. The row
// of 128, four times the formula, would make 136 rows cost eight waves, and 256 cost 4.1.
TEST(ComputeCost, OfAGemmLiesBetweenRowsThatItHoldsAndRowsThatHoldIt) {
  HardwareProfile profile = toy();
  const auto row = [](std::int64_t m, double waves) {
    return GemmRow{.m = m,
                   .n = 512,
                   .k = 8192,
                   .layout = GemmLayout::kTN,
                   .efficiency = 0.5 * static_cast<double>(m) / 128 / waves};
  };
  profile.gemm.table.rows = {row(128, 4), row(256, 4.1)};
  profile.gemm.table.radius = 1;
  profile.gemm.table.prior = 0.01;
  compare_with_formula(profile.gemm, profile.device.sms);
  const auto seconds = [&](std::int64_t m) {
    return to_seconds(time_of(profile, gemm({.m = m, .n = 512, .k = 8192})));
  };
  EXPECT_EQ(seconds(136), seconds(256));
  for (std::int64_t m = 128; m < 256; m += 8) EXPECT_LE(seconds(m), seconds(m + 8)) << m;
  // A row of 256 that is faster than that of 128 contradicts it: what is between lies between.
  profile.gemm.table.rows[1] = row(256, 3);
  compare_with_formula(profile.gemm, profile.device.sms);
  EXPECT_LE(seconds(136), seconds(128));
  EXPECT_GE(seconds(136), seconds(256));
}

TEST(ComputeCost, UsesTheTableForItsOwnPrecisionsOnly) {
  HardwareProfile profile = toy();
  profile.gemm.table.rows = {{.m = 256, .n = 256, .k = 50'000, .layout = GemmLayout::kTN, .efficiency = 1}};
  compare_with_formula(profile.gemm, profile.device.sms);
  const Cost cost = compute_cost(profile, Precision::kFp32, gemm({.m = 256, .n = 256, .k = 50'000}));
  EXPECT_EQ(cost.time, 1'310'720ns);
  EXPECT_EQ(cost.provenance, Provenance::kAssumed);
}

TEST(ComputeCost, RefusesWhatItCannotPrice) {
  EXPECT_THROW(
      static_cast<void>(compute_cost(toy(), Precision::kBf16, {.kind = OpKind::kCollective, .name = "op"})),
      InternalError);
  EXPECT_THROW(static_cast<void>(compute_cost(toy(), Precision::kBf16, gemm({.m = 0, .n = 1, .k = 1}))),
               InternalError);
  EXPECT_THROW(
      static_cast<void>(compute_cost(toy(), Precision::kBf16, {.kind = OpKind::kFlashForward, .name = "op"})),
      InternalError);
  EXPECT_THROW(static_cast<void>(compute_cost(toy(), Precision::kFp8, gemm({.m = 8, .n = 8, .k = 8}))),
               InternalError);
}

TEST(A100ComputeCost, ReproducesEveryRowOfTheTable) {
  const HardwareProfile profile = a100();
  for (const GemmRow& row : profile.gemm.table.rows) {
    SCOPED_TRACE(testing::Message() << row.m << " " << row.n << " " << row.k);
    const Cost cost = compute_cost(profile, Precision::kBf16, gemm(shape_of(row)));
    const double flops = 2.0 * static_cast<double>(row.m * row.n) * static_cast<double>(row.k);
    EXPECT_EQ(cost.time, from_seconds(flops / (312e12 * profile.gemm.scale.value * row.efficiency)) +
                             profile.host.kernel_gap.value);
    EXPECT_EQ(cost.provenance, Provenance::kPublished);
  }
}

// Each row priced as if the table did not have it, from the formula and all other rows.
TEST(A100ComputeCost, MeetsARowThatTheTableDoesNotHave) {
  const HardwareProfile full = a100();
  std::vector<double> errors;
  double sum = 0;
  for (std::size_t i = 0; i < full.gemm.table.rows.size(); ++i) {
    HardwareProfile rest = full;
    rest.gemm.table.rows.erase(rest.gemm.table.rows.begin() + static_cast<std::ptrdiff_t>(i));
    const GemmRow& row = full.gemm.table.rows[i];
    const GemmEfficiency predicted = gemm_efficiency(rest, Precision::kBf16, shape_of(row));
    EXPECT_NE(predicted.provenance, Provenance::kPublished);
    errors.push_back(std::abs(row.efficiency / predicted.value - 1));
    sum += errors.back();
  }
  std::ranges::sort(errors);
  EXPECT_LT(sum / static_cast<double>(errors.size()), 0.035);
  EXPECT_LT(errors[errors.size() / 2], 0.02);
}

// Property: a GEMM of twice the size in one dimension is never cheaper, by table, near it or far from it.
TEST(A100ComputeCost, TwiceADimensionIsNeverCheaper) {
  const HardwareProfile profile = a100();
  std::vector<GemmShape> shapes;
  for (const GemmRow& row : profile.gemm.table.rows) {
    shapes.push_back(shape_of(row));
    shapes.push_back(
        {.m = row.m, .n = row.n, .k = std::max<std::int64_t>(row.k / 2, 1), .layout = row.layout});
    shapes.push_back(
        {.m = std::max<std::int64_t>(row.m / 2, 1), .n = row.n, .k = row.k, .layout = row.layout});
    shapes.push_back(
        {.m = row.m, .n = std::max<std::int64_t>(row.n / 2, 1), .k = row.k, .layout = row.layout});
  }
  for (std::int64_t m = 16; m <= 65536; m *= 4) {
    for (std::int64_t n = 24; n <= 65536; n *= 3) {
      for (std::int64_t k = 8; k <= 65536; k *= 2) {
        for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT}) {
          shapes.push_back({.m = m, .n = n, .k = k, .layout = layout});
        }
      }
    }
  }
  for (const GemmShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.m << " " << shape.n << " " << shape.k << " "
                                    << kGemmLayoutNames[static_cast<std::size_t>(shape.layout)]);
    const Duration once = time_of(profile, gemm(shape));
    for (std::int64_t GemmShape::*dimension : {&GemmShape::m, &GemmShape::n, &GemmShape::k}) {
      GemmShape twice = shape;
      twice.*dimension *= 2;
      EXPECT_GE(time_of(profile, gemm(twice)), once);
    }
  }
}

// System: tiles take as long to fill as 500 of k in fp8; operands of 4 bits pass twice as fast.
// Expectations: k = 4,500 takes 2,250 + 500 for 4,500 + 500. Deeper products come nearer to twice the rate.
TEST(GemmCost, OfFourBitsFillsTilesAsSlowlyAsOfEight) {
  HardwareProfile profile = toy_with_fp8();
  profile.gemm.fp8_prologue = {.value = 500};
  profile.gemm.nvfp4_factor = {.value = 2};
  const auto gain = [&](std::int64_t k) {
    Op op = gemm({.m = 1024, .n = 1024, .k = k});
    op.fp8_recipe = Fp8Recipe::kCurrent;
    const double eight = to_seconds(compute_cost(profile, Precision::kFp8, op).time);
    op.fp8_recipe = Fp8Recipe::kNvfp4;
    EXPECT_NEAR(recipe_rate(profile, Precision::kFp8, op).value(),
                eight / to_seconds(compute_cost(profile, Precision::kFp8, op).time), 1e-3);
    return recipe_rate(profile, Precision::kFp8, op).value();
  };
  EXPECT_NEAR(gain(4'500), 5'000.0 / 2'750, 1e-12);
  EXPECT_LT(gain(4'500), gain(45'000));
  EXPECT_LT(gain(45'000), 2);
}

// A kernel in fp8 has curves of its own. With heads of two sizes it is another one, whose rate is of the FLOPs that are
// done: 0.5 of 2 x 4,096^2 x (192 + 128) each head, at 3 TFLOP/s.
TEST(FlashCost, InFp8HasACurveOfItsOwn) {
  HardwareProfile profile = toy_with_fp8();
  profile.attention.fixed = {};
  profile.host.kernel_gap = {};
  const FlashCurve flat{.rate = FlopRate(1e12)};
  const FlashPass pass{.causal = flat, .dense = flat, .half_blocks = {}};
  const auto twice = [](FlashPass of, double times) {
    of.causal.rate = FlopRate(of.causal.rate.count() * times);
    return of;
  };
  profile.attention.kernels = {
      {.name = "sixteen", .forward = pass, .backward = pass, .half_head_size = Sourced<double>{}}};
  profile.attention.in_use = 0;
  profile.attention.narrow = {
      {FlashOperands::kFp8,
       false,
       {.name = "fp8", .forward = twice(pass, 2), .backward = pass, .half_head_size = Sourced<double>{}}},
      {FlashOperands::kFp8,
       true,
       {.name = "fp8_two_sizes", .forward = twice(pass, 3), .backward = twice(pass, 3)}}};
  const auto seconds = [&](OpKind kind, FlashOperands operands, std::int64_t query_size) {
    const AttentionShape shape{.batch = 64,
                               .queries = 4096,
                               .keys = 4096,
                               .query_size = query_size,
                               .value_size = 128,
                               .operands = operands};
    const double flops = 2.0 * 64 * 4096 * 4096 * static_cast<double>(query_size + 128);
    const Op op{.kind = kind,
                .name = "flash",
                .attention = shape,
                .flops = Flops(kind == OpKind::kFlashForward ? flops : 2.5 * flops)};
    return to_seconds(compute_cost(profile, Precision::kFp8, op).time);
  };
  const double one = 0.5 * 2.0 * 64 * 4096 * 4096 * 256 / 1e12;
  EXPECT_NEAR(seconds(OpKind::kFlashForward, FlashOperands::kSixteenBit, 128), one, 1e-8);
  EXPECT_NEAR(seconds(OpKind::kFlashForward, FlashOperands::kFp8, 128), one / 2, 1e-8);
  EXPECT_NEAR(seconds(OpKind::kFlashBackward, FlashOperands::kFp8, 192), one * 2.5 * 320 / 256 / 3, 1e-8);
  EXPECT_THROW((void)seconds(OpKind::kFlashForward, FlashOperands::kMxfp8, 128), InternalError);
}

TEST(GemmCost, HasTheRateOfItsRecipe) {
  HardwareProfile profile = toy_with_fp8();
  profile.gemm.mxfp8_factor = {.value = 0.5};
  Op op = gemm({.m = 256, .n = 256, .k = 4096});
  const Duration whole = compute_cost(profile, Precision::kFp8, op).time;
  op.fp8_recipe = Fp8Recipe::kCurrent;
  EXPECT_EQ(compute_cost(profile, Precision::kFp8, op).time, whole);
  op.fp8_recipe = Fp8Recipe::kMxfp8;
  const auto expect_twice = [&] {
    EXPECT_NEAR(to_seconds(compute_cost(profile, Precision::kFp8, op).time), 2 * to_seconds(whole), 2e-9);
  };
  expect_twice();
  EXPECT_EQ(compute_cost(profile, Precision::kBf16, op).time, whole);  // 16 bit has no scales
  op.kind = OpKind::kGroupedGemm;
  profile.experts.grouped_factor.value = 1;
  expect_twice();
}

}  // namespace
}  // namespace stagecraft
