// The profiles of Hopper and Blackwell in the tree, and the bases of the former, say what the fits of their published grids say and
// what our samples do.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "calibrate/fit/gemm_fit.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/compute_cost.hpp"
#include "tests/calibrate/fit/published_tables.hpp"
#include "tests/calibrate/shipped_profiles.hpp"

namespace stagecraft {
namespace {

// What the profile of the H100 was before we had samples, and is where they say nothing.
HardwareProfile h100_base() {
  return profile_of("published/h100-published.yaml");
}

TEST(H100Base, ConstantsOfTheTileModelAreThoseOfTheFit) {
  const HardwareProfile profile = h100_base();
  const GemmFit fit = fit_gemm(xla_h100_gemms(), h100(), {});
  EXPECT_NEAR(profile.gemm.efficiency_tn.value, fit.model.efficiency_tn.value, 1e-3);
  EXPECT_EQ(profile.gemm.prologue_k, fit.model.prologue_k);
  EXPECT_EQ(profile.gemm.split_k_max, fit.model.split_k_max);
  EXPECT_EQ(profile.gemm.table.radius, fit.model.table.radius);
  EXPECT_EQ(profile.gemm.table.prior, fit.model.table.prior);
  ASSERT_EQ(profile.gemm.tiles.size(), fit.model.tiles.size());
  for (std::size_t i = 0; i < fit.model.tiles.size(); ++i) {
    EXPECT_EQ(profile.gemm.tiles[i].m, fit.model.tiles[i].m);
    EXPECT_EQ(profile.gemm.tiles[i].n, fit.model.tiles[i].n);
    EXPECT_NEAR(profile.gemm.tiles[i].rate, fit.model.tiles[i].rate, 1e-3);
  }
}

TEST(B200Profile, ConstantsOfTheTileModelAreThoseOfTheFit) {
  const HardwareProfile profile = profile_called("b200-sxm-180gb");
  const GemmFit fit = fit_gemm(xla_b200_gemms(), b200(), {});
  EXPECT_NEAR(profile.gemm.efficiency_tn.value, fit.model.efficiency_tn.value, 1e-3);
  EXPECT_EQ(profile.gemm.prologue_k, fit.model.prologue_k);
  EXPECT_EQ(profile.gemm.table.radius, fit.model.table.radius);
  EXPECT_EQ(profile.gemm.table.rows.size(), fit.model.table.rows.size());
  ASSERT_EQ(profile.gemm.tiles.size(), fit.model.tiles.size());
  for (std::size_t i = 0; i < fit.model.tiles.size(); ++i)
    EXPECT_NEAR(profile.gemm.tiles[i].rate, fit.model.tiles[i].rate, 1e-3);
}

// One chip, one power limit; copies at 4.01 and 2.90 TB/s. A thin GEMM is faster, a thick one is not.
TEST(H200Base, StandsOnTheH100WithAnotherMemory) {
  const HardwareProfile h100 = h100_base(), h200 = profile_of("published/h200-transferred.yaml");
  EXPECT_EQ(h200.gemm.scale.value, h100.gemm.scale.value);
  EXPECT_NEAR(
      h200.memory_efficiency.value / h100.memory_efficiency.value * h200.device.memory_bandwidth.count(),
      4.01 / 2.90 * h100.device.memory_bandwidth.count(), 1e-3 * h200.device.memory_bandwidth.count());
  // A row that is mostly launch with the faster memory says nothing any more.
  EXPECT_GE(h200.gemm.table.rows.size() + 5, h100.gemm.table.rows.size());
  for (const GemmRow& row : h200.gemm.table.rows) {
    SCOPED_TRACE(testing::Message() << row.m << " " << row.n << " " << row.k);
    const auto before = std::ranges::find_if(h100.gemm.table.rows, [&](const GemmRow& other) {
      return other.m == row.m && other.n == row.n && other.k == row.k;
    });
    ASSERT_NE(before, h100.gemm.table.rows.end());
    EXPECT_GE(row.efficiency, before->efficiency);
    EXPECT_LE(row.efficiency, 4.01 / 2.90 * before->efficiency);
    EXPECT_EQ(row.provenance, Provenance::kAnalytic);
  }
}

// Collectives and whatever one GPU cannot tell stay those of the base.
TEST(HopperProfiles, HaveTheirKernelsFromSamplesOfOurOwn) {
  for (const auto& [name, of_base, rows] : {std::tuple("h100-sxm5-80gb", "h100-published", 850U),
                                            std::tuple("h200-sxm-141gb", "h200-transferred", 900U)}) {
    SCOPED_TRACE(name);
    const HardwareProfile base = profile_of(std::string("published/") + of_base + ".yaml"),
                          profile = profile_called(name);
    EXPECT_GT(profile.gemm.table.rows.size(), rows);
    for (const GemmRow& row : profile.gemm.table.rows) ASSERT_EQ(row.provenance, Provenance::kMeasured);
    const FlashKernel& cudnn = profile.attention.kernel();
    EXPECT_EQ(cudnn.name, "cudnn");
    for (const FlashPass* pass : {&cudnn.forward, &cudnn.backward})
      for (const FlashCurve* curve : {&pass->causal, &pass->dense})
        EXPECT_EQ(curve->provenance, Provenance::kMeasured);
    EXPECT_GT(profile.gemm.fp8_table.value().rows.size(), 180U);
    for (const Sourced<double>* constant :
         {&profile.gemm.scale, &profile.gemm.fp8_factor, &profile.gemm.fp8_scale.value(),
          &profile.memory_efficiency, &profile.gradient_overlap_slowdown})
      EXPECT_EQ(constant->provenance, Provenance::kMeasured);
    EXPECT_EQ(profile.sharded_overlap_slowdown.source, base.sharded_overlap_slowdown.source);
    EXPECT_EQ(profile.gpu_variability->source, base.gpu_variability->source);
    EXPECT_EQ(profile.collectives.size(), base.collectives.size());
  }
}

TEST(H100Base, RowsAreTheGridWithoutItsLaunch) {
  const HardwareProfile profile = h100_base();
  const GemmFit fit = fit_gemm(xla_h100_gemms(), h100(), {});
  ASSERT_EQ(profile.gemm.table.rows.size(), fit.model.table.rows.size());
  for (std::size_t i = 0; i < fit.model.table.rows.size(); ++i) {
    SCOPED_TRACE(row_name(fit.points[i]));
    EXPECT_EQ(profile.gemm.table.rows[i].m, fit.model.table.rows[i].m);
    EXPECT_NEAR(profile.gemm.table.rows[i].efficiency / fit.model.table.rows[i].efficiency, 1, 1e-3);
  }
}

// The benchmark as an operator, 16 heads of 128 over 16 Ki tokens: the profile meets each point of the curve
// that it was fitted on.
TEST(H100Base, PricesTheBenchmarkOfItsAttentionKernel) {
  const HardwareProfile profile = h100_base();
  for (const AttentionCurve& curve : attention_curves()) {
    if (curve.name != "cuDNN H100-SXM5 fwd causal true") continue;
    for (const AttentionPoint& point : curve.points) {
      SCOPED_TRACE(point.length);
      const auto length = static_cast<std::int64_t>(point.length);
      const double square = 4.0 * 16384 * point.length * 2048;
      const Op op{.kind = OpKind::kFlashForward,
                  .name = "benchmark",
                  .attention = {.batch = 16 * 16384 / length,
                                .queries = length,
                                .keys = length,
                                .query_size = 128,
                                .value_size = 128,
                                .causal = true},
                  .flops = Flops(square)};
      const double published = square / 2 / point.rate.count();
      EXPECT_NEAR(to_seconds(compute_cost(profile, Precision::kBf16, op).time) / published, 1, 0.04);
    }
    return;
  }
  FAIL() << "the curve is not in the table";
}

}  // namespace
}  // namespace stagecraft
