#include "calibrate/fit/curve_fits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/check.hpp"
#include "tests/calibrate/fit/published_tables.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;

// System: an all-reduce over 2 ranks (bus factor 1): 10 us + S / 100 GB/s + 10 ns * sqrt(S).
std::vector<CurvePoint> made_curve() {
  std::vector<CurvePoint> points;
  for (double bytes = 1024; bytes <= 1 << 30; bytes *= 4)
    points.push_back({.size = bytes, .seconds = 10e-6 + bytes / 100e9 + 1e-8 * std::sqrt(bytes)});
  return points;
}

TEST(CollectiveFit, FindsTheConstantsThatMadeTheTimes) {
  const FittedCollective fitted = fit_collective({}, made_curve());
  EXPECT_EQ(fitted.fit.latency, std::chrono::microseconds(10));
  EXPECT_NEAR(fitted.fit.bus_bandwidth.count() / 1e9, 100, 1e-6);
  EXPECT_NEAR(fitted.fit.sqrt_seconds, 1e-8, 1e-13);
  EXPECT_LT(fitted.left_out.quantile(1), 5e-5);  // points are whole nanoseconds, of 13 us and more
}

// 64 KiB and more; 30 and 20 us are pooled to 20, off by a third at one point, the second 0.1 % above the
// first.
TEST(CollectiveFit, KeepsThePointsOfACurveWithoutFalls) {
  const std::vector<CollectivePoint> points = rising_points(
      {{1024, 90e-6}, {65536, 10e-6}, {131072, 30e-6}, {262144, 20e-6}, {524288, 40e-6}, {1048576, 50e-6}});
  using std::chrono::nanoseconds;
  EXPECT_THAT(points, testing::ElementsAre(CollectivePoint{64_KiB, nanoseconds(10'000)},
                                           CollectivePoint{128_KiB, nanoseconds(20'000)},
                                           CollectivePoint{256_KiB, nanoseconds(20'020)},
                                           CollectivePoint{512_KiB, nanoseconds(40'000)},
                                           CollectivePoint{1_MiB, nanoseconds(50'000)}));
}

// Over nodes the fabric of the scenario decides, and no point of another is kept.
TEST(CollectiveFit, KeepsNoPointsOverNodes) {
  EXPECT_EQ(fit_collective({}, made_curve()).fit.points.size(), 8u);
  EXPECT_TRUE(fit_collective({.ranks = 4, .nodes = 2}, made_curve()).fit.points.empty());
}

TEST(CollectiveFit, CountsTheBusAsNcclTestsDoes) {
  // 1 s per 1.75 GB... an all-reduce over 8 ranks moves 7/4 of the buffer over the bus, an all-gather 7/8.
  std::vector<CurvePoint> points;
  for (const double bytes : {1e9, 2e9, 4e9, 8e9}) points.push_back({.size = bytes, .seconds = bytes / 1e9});
  const auto bus = [&](CollectiveKind kind) {
    return fit_collective({.kind = kind, .ranks = 8}, points).fit.bus_bandwidth.count() / 1e9;
  };
  EXPECT_NEAR(bus(CollectiveKind::kAllReduce), 1.75, 1e-9);
  EXPECT_NEAR(bus(CollectiveKind::kAllGather), 0.875, 1e-9);
  EXPECT_NEAR(bus(CollectiveKind::kReduceScatter), 0.875, 1e-9);
  EXPECT_NEAR(bus(CollectiveKind::kAllToAll), 0.875, 1e-9);
  EXPECT_NEAR(bus(CollectiveKind::kBroadcast), 1, 1e-9);
  EXPECT_NEAR(bus(CollectiveKind::kSendReceive), 1, 1e-9);
}

TEST(CollectiveFit, HasABusAlsoWhereEverySizeTakesTheSameTime) {
  std::vector<CurvePoint> points;
  for (const double bytes : {8.0, 64.0, 512.0, 4096.0}) points.push_back({.size = bytes, .seconds = 20e-6});
  const FittedCollective fitted = fit_collective({}, points);
  EXPECT_EQ(fitted.fit.latency, std::chrono::microseconds(20));
  EXPECT_NEAR(4096 / fitted.fit.bus_bandwidth.count(), 20e-9, 1e-12);
}

// System: 10 us + 100 ns * sqrt(S) up to 64 MiB: no line in it. Expectations: 64 MiB less 1 KiB took 816 us
// longer than 1 KiB, 82.2 GB/s, and no larger buffer is faster than that by more than a quarter.
TEST(CollectiveFit, IsHardlyFasterBeyondTheMeasuredSizesThanWhatWasSeen) {
  std::vector<CurvePoint> points;
  for (double bytes = 1024; bytes <= 1 << 26; bytes *= 4)
    points.push_back({.size = bytes, .seconds = 10e-6 + 1e-7 * std::sqrt(bytes)});
  for (const int nodes : {1, 2}) {
    const CollectiveFit fit = fit_collective({.ranks = 2, .nodes = nodes}, points).fit;
    EXPECT_NEAR(fit.bus_bandwidth.count() / 1e9, kMostOverSeen * (67108864 - 1024) / 816e3, 1e-6);
    EXPECT_GT(fit.sqrt_seconds, 0) << "the others are fitted beside it";
    EXPECT_LT(1e12 / formula_seconds(fit, 1e12), kMostOverSeen * 82.3e9);
  }
}

// System: 20 us + S / 100 GB/s up to 64 KiB, of which launches are most. Expectation: the line, which is far
// faster than any size was.
TEST(CollectiveFit, IsAsFastAsSmallSizesLetExpect) {
  std::vector<CurvePoint> points;
  for (double bytes = 1024; bytes <= 65536; bytes *= 2)
    points.push_back({.size = bytes, .seconds = 20e-6 + bytes / 100e9});
  EXPECT_NEAR(fit_collective({}, points).fit.bus_bandwidth.count() / 1e9, 100, 0.1);
}

// Launches are what small sizes show; of large ones it does not matter how near they are to each other.
TEST(CollectiveFit, KnowsWhetherABandwidthShows) {
  EXPECT_TRUE(shows_bus(made_curve()));
  EXPECT_FALSE(shows_bus({{.size = 1024, .seconds = 20e-6}}));
  EXPECT_FALSE(shows_bus({{.size = 8, .seconds = 20e-6}, {.size = 65536, .seconds = 26e-6}}));
  EXPECT_FALSE(shows_bus({{.size = 8, .seconds = 30e-6}, {.size = 65536, .seconds = 20e-6}}));
  EXPECT_TRUE(shows_bus({{.size = 1e9, .seconds = 10e-3}, {.size = 1.5e9, .seconds = 15e-3}}));
}

TEST(CollectiveFit, NeedsFourSizes) {
  std::vector<CurvePoint> points = made_curve();
  points.resize(3);
  EXPECT_THROW((void)fit_collective({}, points), InternalError);
}

// Property: a larger buffer never takes less time, whatever the noise of the curve was.
TEST(CollectiveFit, NeverFallsWithSize) {
  for (const std::vector<NamedCurve>& set : {nccl_curves(), xla_h100_curves(), vtrain_a100_curves()})
    for (const NamedCurve& curve : set) {
      const CollectiveFit fit = fit_collective(curve.group, curve.points).fit;
      for (double bytes = 1; bytes < 1e11; bytes *= 1.1)
        EXPECT_LT(predict_seconds(fit, bytes), predict_seconds(fit, 1.1 * bytes)) << curve.id << " " << bytes;
    }
}

TEST(AttentionFit, FindsTheRateAndTheHalfLength) {
  // 600 TFLOP/s * L / (L + 400).
  std::vector<AttentionPoint> points;
  for (const double length : {400.0, 1200.0, 3600.0})
    points.push_back({.length = length, .rate = FlopRate(600e12 * length / (length + 400))});
  const AttentionFit fit = fit_attention("toy", points).value();
  EXPECT_NEAR(fit.rate.count(), 600e12, 1e6);
  EXPECT_NEAR(fit.half_length, 400, 1e-6);
  EXPECT_NEAR(fit.at(400).count(), 300e12, 1e6);
}

TEST(AttentionFit, AskedForALongerSequenceItNeverSlowsDown) {
  for (const AttentionCurve& curve : attention_curves()) {
    const AttentionFit fit = fit_attention(curve.name, curve.points).value();
    for (double length = 128; length < 1e6; length *= 2)
      EXPECT_LE(fit.at(length), fit.at(2 * length)) << curve.name;
  }
}

TEST(MemoryFit, FindsLaunchAndBandwidth) {
  // 3 us + bytes / 2 TB/s.
  std::vector<CurvePoint> points;
  for (const double bytes : {1e6, 1e7, 1e8})
    points.push_back({.size = bytes, .seconds = 3e-6 + bytes / 2e12});
  const MemoryFit fit = fit_memory("copy", points).value();
  EXPECT_NEAR(fit.t0_seconds, 3e-6, 1e-12);
  EXPECT_NEAR(fit.bandwidth.count(), 2e12, 1e3);
  EXPECT_LT(fit.left_out.quantile(1), 1e-9);
}

}  // namespace
}  // namespace stagecraft
