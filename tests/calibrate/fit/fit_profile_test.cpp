// From samples to a profile file and back. System: made samples of a made device of 108 SMs.
#include "calibrate/fit/fit_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>

#include "calibrate/fit/attention_samples.hpp"
#include "calibrate/profile/tile_model.hpp"
#include "tests/calibrate/fit/made_samples.hpp"
#include "tests/calibrate/shipped_profiles.hpp"

namespace stagecraft {
namespace {

using testing::HasSubstr;

// What load_profile() makes of a text; fails the test where it refuses.
HardwareProfile read_back(const std::string& text) {
  const auto file =
      std::filesystem::temp_directory_path() /
      (std::string("stagecraft_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml");
  std::ofstream(file) << text;
  Diagnostics diagnostics;
  std::optional<HardwareProfile> profile = load_profile(file, diagnostics);
  std::filesystem::remove(file);
  EXPECT_TRUE(profile.has_value()) << render_json(diagnostics.items());
  return profile.value();
}

FittedProfile fitted(std::vector<Sample> samples, const HardwareProfile& base) {
  Diagnostics diagnostics;
  const SampleSet set{.setup = samples.front().setup, .samples = std::move(samples), .date = "2026-11-20"};
  std::optional<FittedProfile> result = fit_profile(set, base, "made", diagnostics);
  EXPECT_TRUE(result.has_value()) << render_json(diagnostics.items());
  return result.value();
}

TEST(WriteProfile, WhatIsWrittenReadsBackAsTheSameProfile) {
  const HardwareProfile base = a100();
  const HardwareProfile again =
      read_back(write_profile(base, {.heading = "A copy.", .gemm_rows = {}, .fp8_rows = {}}));
  EXPECT_EQ(again.name, base.name);
  EXPECT_EQ(again.device.peak_bf16, base.device.peak_bf16);
  EXPECT_EQ(again.device.memory, base.device.memory);
  EXPECT_EQ(again.device.nvlink, base.device.nvlink);
  EXPECT_EQ(again.gemm.efficiency_nt.value, base.gemm.efficiency_nt.value);
  EXPECT_EQ(again.gemm.efficiency_nt.source, base.gemm.efficiency_nt.source);
  EXPECT_EQ(again.gemm.tiles.size(), base.gemm.tiles.size());
  ASSERT_EQ(again.gemm.table.rows.size(), base.gemm.table.rows.size());
  for (std::size_t i = 0; i < base.gemm.table.rows.size(); ++i) {
    EXPECT_EQ(again.gemm.table.rows[i].efficiency, base.gemm.table.rows[i].efficiency);
    EXPECT_EQ(again.gemm.table.rows[i].log_ratio, base.gemm.table.rows[i].log_ratio);
  }
  ASSERT_EQ(again.collectives.size(), base.collectives.size());
  for (std::size_t i = 0; i < base.collectives.size(); ++i) {
    EXPECT_EQ(again.collectives[i].latency, base.collectives[i].latency);
    EXPECT_EQ(again.collectives[i].bus_bandwidth, base.collectives[i].bus_bandwidth);
    EXPECT_EQ(again.collectives[i].sqrt_seconds, base.collectives[i].sqrt_seconds);
  }
  EXPECT_EQ(again.memory.context.value, base.memory.context.value);
  EXPECT_EQ(again.relative_spread, base.relative_spread);
  // A second writing is the same text: nothing drifts.
  EXPECT_EQ(write_profile(again, {}), write_profile(base, {}));
}

TEST(WriteProfile, KernelsInFp8ReadBackAsTheyWere) {
  HardwareProfile base = a100();
  base.attention.narrow = profile_called("gb300-288gb").attention.narrow;
  const HardwareProfile again = read_back(write_profile(base, {}));
  ASSERT_EQ(again.attention.narrow.size(), 4U);
  for (const NarrowFlashKernel& narrow : base.attention.narrow) {
    const FlashKernel* kernel = again.attention.kernel_for(narrow.operands, narrow.two_sizes);
    ASSERT_NE(kernel, nullptr) << narrow.kernel.name;
    EXPECT_EQ(kernel->backward.causal.rate, narrow.kernel.backward.causal.rate);
    EXPECT_EQ(kernel->half_head_size.has_value(), !narrow.two_sizes);
  }
}

TEST(FitProfile, MeasuredGemmsReplaceTheTableAndSayWhereTheyAreFrom) {
  const HardwareProfile base = a100();
  const FittedProfile fit = fitted(gemm_samples(base), base);
  const std::string yaml = to_yaml(fit);
  const HardwareProfile profile = read_back(yaml);
  EXPECT_EQ(profile.name, "made");
  EXPECT_EQ(profile.date, std::max<std::string>("2026-11-20", base.date));
  EXPECT_EQ(profile.gemm.table.rows.size(), 36u);
  EXPECT_EQ(profile.gemm.table.rows.front().provenance, Provenance::kMeasured);
  EXPECT_EQ(profile.gemm.table_precisions, std::vector<Precision>{Precision::kBf16});
  EXPECT_THAT(profile.gemm.table.source, HasSubstr("36 samples on NVIDIA A100-SXM4-80GB, driver 550.54"));
  EXPECT_THAT(yaml, HasSubstr("# 40 repeats, spread 0.40 %, 2026-11-20"));
  EXPECT_LT(fit.families.at(0).left_out.median(), 0.03);
  // What was not measured stays the base's word.
  EXPECT_EQ(profile.memory_efficiency.value, base.memory_efficiency.value);
  EXPECT_EQ(profile.attention.kernel().forward.causal.source, base.attention.kernel().forward.causal.source);
  // No sustained samples: the clocks of bursts, and the file says so.
  EXPECT_EQ(profile.gemm.scale.value, 1);
  EXPECT_EQ(profile.gemm.scale.provenance, Provenance::kAssumed);
}

// Ten times as slow, and without weight: the fit has not seen it, and says so.
TEST(FitProfile, ProductsOfATrainingRunMakeTheTableWhereNoBenchmarkDid) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = gemm_samples(base);
  for (Sample& sample : samples)
    sample.tags = {{"layout", sample.tags.at("layout")},
                   {"dtype", "bf16"},
                   {"load", "training"},
                   {"source", "profile of a training run"}};
  const HardwareProfile profile = read_back(to_yaml(fitted(samples, base)));
  EXPECT_EQ(profile.gemm.table.rows.size(), 36u);
  EXPECT_EQ(profile.gemm.scale.value, 1);
  EXPECT_EQ(profile.gemm.scale.provenance, Provenance::kMeasured);
  EXPECT_THAT(profile.gemm.scale.source, HasSubstr("of a training run"));
  // Beside a benchmark they are no points: their clocks are other ones.
  std::vector<Sample> both = gemm_samples(base);
  samples.front().shape["m"] = 100;
  both.push_back(samples.front());
  EXPECT_EQ(fitted(both, base).profile.gemm.table.rows.size(), 36u);
  EXPECT_EQ(fitted(both, base).unused, 1u);
}

TEST(FitProfile, ABurstAtALimitedClockIsLeftOutAndListed) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = gemm_samples(base);
  const FittedProfile before = fitted(samples, base);
  Sample limited = made_sample("gemm", "gemm");
  limited.shape = {{"m", 3072}, {"n", 3072}, {"k", 3072}, {"batch", 1}};
  limited.tags = {
      {"layout", "TN"}, {"dtype", "bf16"}, {"load", "burst"}, {"cache", "cold"}, {"seen_clock", "limited"}};
  limited.median_s = limited.min_s = 10 * 2.0 * 3072 * 3072 * 3072 / 250e12;
  samples.push_back(limited);
  const FittedProfile after = fitted(samples, base);
  EXPECT_EQ(after.profile.gemm.table.rows.size(), before.profile.gemm.table.rows.size());
  EXPECT_EQ(after.profile.gemm.efficiency_tn.value, before.profile.gemm.efficiency_tn.value);
  EXPECT_EQ(after.families.front().outcome, "1 left out of the burst fit: TN batch 1 k 3072 m 3072 n 3072");
  for (const std::int64_t m : {1024, 2048}) {
    samples.back().shape["m"] = m;
    samples.push_back(samples.back());
  }
  samples.back().shape["m"] = 4096;
  EXPECT_EQ(
      fitted(samples, base).families.front().outcome,
      "3 left out of the burst fit: TN batch 1 k 3072 m 1024 n 3072; TN batch 1 k 3072 m 2048 n 3072; and "
      "others with the tag seen_clock:limited");
}

void add_empty_kernels(std::vector<Sample>& samples, double busy_seconds, double alone_seconds) {
  for (const auto& [stream, seconds] : {std::pair("busy", busy_seconds), std::pair("alone", alone_seconds)}) {
    Sample sample = made_sample("system", "empty_kernel");
    sample.tags = {{"clock", "device"}, {"stream", stream}};
    sample.median_s = sample.min_s = seconds;
    samples.push_back(sample);
  }
}

TEST(FitProfile, AnEmptyKernelInABusyStreamIsTheKernelGap) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = all_reduce_samples();
  add_empty_kernels(samples, 1.5e-6, 4e-6);
  const HardwareProfile profile = read_back(to_yaml(fitted(samples, base)));
  EXPECT_EQ(profile.host.kernel_gap.value, std::chrono::nanoseconds(1500));
  EXPECT_EQ(profile.host.kernel_gap.provenance, Provenance::kMeasured);
}

// Products hold 2 us of launch and drain in a burst, an empty kernel alone 1.2: 0.8 us are the products' own and
// stay behind the 0.5 of a busy stream.
TEST(FitProfile, WhatFillsAndDrainsInAProductIsInTheKernelGap) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = gemm_samples(base);
  const double launch = to_seconds(fitted(samples, base).profile.host.kernel_gap.value);
  EXPECT_EQ(launch, to_seconds(base.host.kernel_gap.value)) << "no empty kernel was measured";
  add_empty_kernels(samples, 0.5e-6, 1.2e-6);
  const HardwareProfile profile = read_back(to_yaml(fitted(samples, base)));
  EXPECT_NEAR(to_seconds(profile.host.kernel_gap.value), 0.5e-6 + 2e-6 - 1.2e-6, 0.1e-6);
  EXPECT_THAT(profile.host.kernel_gap.source, HasSubstr("fills and drains"));
}

// Launches of 5 us in a burst, and a gap of 2 us in the base: without empty kernels nobody knows that a busy
// stream hides the other 3.
TEST(FitProfile, ARowCostsWhatItsSampleTookWhereNoLaunchWasTimed) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = gemm_samples(base);
  for (Sample& sample : samples) sample.median_s += 3e-6;
  const auto seconds = [](const HardwareProfile& profile, std::size_t i) {
    const GemmRow& row = profile.gemm.table.rows.at(i);
    const double work = 2.0 * static_cast<double>(row.m * row.n * row.k);
    return to_seconds(profile.host.kernel_gap.value) + work / (312e12 * row.efficiency);
  };
  const auto sample_of = [&](const GemmRow& row) {
    const auto is_of = [&](const Sample& sample) {
      return sample.shape.at("m") == row.m && sample.shape.at("n") == row.n && sample.shape.at("k") == row.k;
    };
    return *std::ranges::find_if(samples, is_of);  // made alike in all layouts
  };
  const auto expect_rows_cost_their_samples = [&](const HardwareProfile& profile) {
    ASSERT_EQ(profile.gemm.table.rows.size(), samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Sample sample = sample_of(profile.gemm.table.rows[i]);
      EXPECT_NEAR(seconds(profile, i) / sample.median_s, 1, 1e-3);
    }
  };
  expect_rows_cost_their_samples(fitted(samples, base).profile);
  // The launch alone says nothing of a busy stream, and a busy stream nothing of a launch.
  std::vector<Sample> with_busy = samples;
  add_empty_kernels(with_busy, 1e-6, 4e-6);
  with_busy.pop_back();
  expect_rows_cost_their_samples(fitted(with_busy, base).profile);
}

// 64 x 64, k 16 and 1 x 8, k 8 in 1 us beyond the gap: 0.42 and 0.0004 thousandths of the peak.
TEST(FitProfile, SmallProductsAreRowsThatAProfileHolds) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = gemm_samples(base);
  for (const auto& [m, n, k] : {std::tuple(64, 64, 16), std::tuple(1, 8, 8)}) {
    Sample& small = samples.emplace_back(samples.front());
    small.shape = {{"m", m}, {"n", n}, {"k", k}, {"batch", 1}};
    small.median_s = small.min_s = to_seconds(base.host.kernel_gap.value) + 1e-6;
  }
  const HardwareProfile profile = read_back(to_yaml(fitted(samples, base)));
  const auto efficiency_of = [&](std::int64_t n) {
    return std::ranges::find(profile.gemm.table.rows, n, &GemmRow::n)->efficiency;
  };
  EXPECT_NEAR(efficiency_of(64), 2.0 * 64 * 64 * 16 / 1e-6 / 312e12, 1e-6);
  EXPECT_EQ(efficiency_of(8), 1e-6);
}

// System: batched products at half the peak of the base's tile model.
// Expectations: three shapes, one of them twice, leave the base's share, and the report says so; four set it.
TEST(FitProfile, AFewBatchedProductsLeaveTheBasesShare) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = gemm_samples(base);
  const auto add = [&](std::int64_t batch) {
    Sample& sample = samples.emplace_back(made_sample("gemm", "gemm"));
    sample.shape = {{"m", 2048}, {"n", 2048}, {"k", 128}, {"batch", batch}};
    sample.tags = {{"layout", "TN"}, {"dtype", "bf16"}, {"load", "burst"}, {"cache", "cold"}};
    sample.median_s = sample.min_s = 2.0 * 2048 * 2048 * 128 * static_cast<double>(batch) / 156e12;
  };
  for (const std::int64_t batch : {8, 16, 32, 32}) add(batch);
  const FittedProfile few = fitted(samples, base);
  EXPECT_EQ(few.profile.gemm.batched_efficiency.value, base.gemm.batched_efficiency.value);
  const auto told = std::ranges::find(few.families, "gemm, batched", &FamilyFit::family);
  ASSERT_NE(told, few.families.end());
  EXPECT_EQ(told->outcome, "3 of 4 shapes that are needed: the base's share stays");
  add(64);
  EXPECT_EQ(fitted(samples, base).profile.gemm.batched_efficiency.provenance, Provenance::kMeasured);
}

// Beside 16 and 24 multiprocessors that add: 1.2 and 1.3 times; neither fewer of them nor copies count.
TEST(FitProfile, ProductsBesideACollectivesMultiprocessorsAreTheOverlapSlowdown) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = all_reduce_samples();
  const auto add = [&](const char* op, std::int64_t sms, double slowdown) {
    Sample sample = made_sample("interference", op);
    sample.shape = {{"m", 4096}, {"n", 4096}, {"k", 14336}, {"sms", sms}};
    sample.tags = {{"layout", "TN"}, {"dtype", "bf16"}};
    sample.median_s = sample.min_s = 1e-3 * slowdown;
    samples.push_back(sample);
  };
  add("gemm_beside_copy", 0, 1);
  add("gemm_beside_copy", 16, 1.9);
  add("gemm_beside_reduce", 8, 1.05);
  EXPECT_EQ(fitted(samples, base).profile.gradient_overlap_slowdown.value,
            base.gradient_overlap_slowdown.value);
  add("gemm_beside_reduce", 16, 1.2);
  add("gemm_beside_reduce", 24, 1.3);
  const HardwareProfile profile = read_back(to_yaml(fitted(samples, base)));
  EXPECT_NEAR(profile.gradient_overlap_slowdown.value, 1.25, 1e-9);
  EXPECT_EQ(profile.gradient_overlap_slowdown.provenance, Provenance::kMeasured);
}

TEST(FitProfile, SustainedOverBurstIsTheScale) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = gemm_samples(base);
  Sample loaded = samples[5];
  loaded.tags["load"] = "sustained";
  loaded.median_s /= 0.8;
  samples.push_back(loaded);
  const HardwareProfile profile = read_back(to_yaml(fitted(samples, base)));
  EXPECT_NEAR(profile.gemm.scale.value, 0.8, 1e-9);
  EXPECT_EQ(profile.gemm.scale.provenance, Provenance::kMeasured);
}

// What long runs hold of bursts is the device's: new bursts do not change it. A scale above 1 is of a table
// of a slower device, which the samples replace.
TEST(FitProfile, WithoutLongRunsTheBaseSaysWhatTheyHold) {
  HardwareProfile base = a100();
  EXPECT_GT(base.gemm.scale.value, 1);
  const std::vector<Sample> samples = gemm_samples(base);
  const FittedProfile of_slower = fitted(samples, base);
  EXPECT_EQ(of_slower.profile.gemm.scale.value, 1);
  EXPECT_EQ(of_slower.families.at(1).outcome, "no samples: 1.000 of the burst rate, assumed");
  base.gemm.scale = {.value = 0.9, .provenance = Provenance::kMeasured, .source = "a long run"};
  const FittedProfile fit = fitted(samples, base);
  EXPECT_EQ(fit.profile.gemm.scale.value, 0.9);
  EXPECT_EQ(fit.profile.gemm.scale.source, "a long run");
  EXPECT_EQ(fit.families.at(1).family, "gemm, sustained");
  EXPECT_EQ(fit.families.at(1).outcome, "no samples: 0.900 of the burst rate, as the base has it");
}

// A layer's mix has attention and copies, beside which products have more power than alone.
TEST(FitProfile, TheMixOfALayerIsTheScaleWhereItWasMeasured) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = gemm_samples(base);
  for (const auto& [mix, holds] : {std::pair("gemm", 0.8), std::pair("layer", 0.86)}) {
    Sample loaded = samples[5];
    loaded.tags["load"] = "sustained";
    loaded.tags["mix"] = mix;
    loaded.median_s /= holds;
    samples.push_back(loaded);
    Sample pass = made_sample("gemm", "gemm_mix");  // of several products, so without extents of one
    pass.shape = {{"tokens", 8192}, {"hidden", 4096}};
    pass.tags = {{"dtype", "bf16"}, {"load", "sustained"}, {"mix", mix}};
    pass.median_s = pass.min_s = 1e-2;
    samples.push_back(pass);
  }
  const HardwareProfile profile = read_back(to_yaml(fitted(samples, base)));
  EXPECT_NEAR(profile.gemm.scale.value, 0.86, 1e-9);
  EXPECT_THAT(profile.gemm.scale.source, HasSubstr("as in a layer"));
}

// Products in fp8: 0.7 of the efficiency of 16 bit behind a prologue of 400. In a long run fp8 holds 0.72 of
// its burst where 16 bit holds 0.8.
TEST(FitProfile, Fp8ProductsHaveTheirFactorPrologueTableAndScale) {
  HardwareProfile base = a100();
  base.device.peak_fp8 = FlopRate(624e12);
  base.gemm.fp8_prologue = Sourced<double>{.value = 400};
  std::vector<Sample> samples = gemm_samples(base);
  const std::size_t products = samples.size();
  for (std::size_t i = 0; i < products / 3; ++i) {
    Sample sample = samples[i];
    const GemmLayout pass = static_cast<GemmLayout>(i % 3);
    sample.tags["dtype"] = pass == GemmLayout::kTN ? "e4m3" : "e5m2";
    sample.tags["layout"] = "TN";
    sample.tags["output"] = pass == GemmLayout::kNT ? "fp32_accumulate" : "bf16";
    const GemmSize size{.m = sample.shape["m"], .n = sample.shape["n"], .k = sample.shape["k"]};
    const double q = tile_quantisation(base.gemm, base.device.sms, size, Precision::kFp8);
    const double rate = 624e12 * 0.8 * 0.7 * q;
    sample.median_s = 2e-6 + 2.0 * static_cast<double>(size.m * size.n * size.k) / rate;
    samples.push_back(sample);
  }
  for (const auto& [of, share] : {std::pair{std::size_t{5}, 0.8}, std::pair{products + 5, 0.72}}) {
    Sample loaded = samples[of];
    loaded.tags["load"] = "sustained";
    loaded.median_s /= share;
    samples.push_back(loaded);
  }
  base.gemm.fp8_prologue.reset();
  const HardwareProfile profile = read_back(to_yaml(fitted(samples, base)));
  EXPECT_NEAR(profile.gemm.fp8_factor.value, 0.7, 0.01);
  EXPECT_EQ(profile.gemm.fp8_factor.provenance, Provenance::kMeasured);
  ASSERT_TRUE(profile.gemm.fp8_prologue.has_value());
  EXPECT_EQ(profile.gemm.fp8_prologue->value, 400);
  ASSERT_TRUE(profile.gemm.fp8_scale.has_value());
  EXPECT_NEAR(profile.gemm.fp8_scale->value, profile.gemm.scale.value * 0.72 / 0.8, 1e-4);
  ASSERT_TRUE(profile.gemm.fp8_table.has_value());
  EXPECT_EQ(profile.gemm.fp8_table->rows.size(), products / 3);
  for (const GemmRow& row : profile.gemm.fp8_table->rows) {
    EXPECT_EQ(row.provenance, Provenance::kMeasured);
    EXPECT_NEAR(row.log_ratio, 0, 0.02);
  }
}

TEST(FitProfile, MeasuredCollectivesReplaceTheRowOfTheirGroupOnly) {
  const HardwareProfile base = a100();
  const HardwareProfile profile = read_back(to_yaml(fitted(all_reduce_samples(), base)));
  ASSERT_EQ(profile.collectives.size(), base.collectives.size());
  const auto of = [](const HardwareProfile& in, int ranks) {
    return *std::ranges::find_if(in.collectives, [&](const CollectiveFit& fit) {
      return fit.kind == CollectiveKind::kAllReduce && fit.ranks == ranks;
    });
  };
  EXPECT_EQ(of(profile, 8).latency, std::chrono::microseconds(15));
  EXPECT_NEAR(of(profile, 8).bus_bandwidth.count(), 200e9, 1e7);
  EXPECT_EQ(of(profile, 8).provenance, Provenance::kMeasured);
  EXPECT_EQ(of(profile, 4).bus_bandwidth, of(base, 4).bus_bandwidth);
  EXPECT_EQ(profile.gemm.table.rows.size(), base.gemm.table.rows.size());
}

// Gigabit Ethernet moves 117.48 MB/s, and what it shares 3.
TEST(FitProfile, SlowNetworksKeepTheirDigits) {
  for (const double bus : {117.48e6, 3e6}) {
    std::vector<Sample> samples = all_reduce_samples();
    for (Sample& sample : samples)
      sample.median_s = sample.min_s = 15e-6 + static_cast<double>(sample.shape.at("bytes")) * 1.75 / bus;
    const HardwareProfile profile = read_back(to_yaml(fitted(samples, a100())));
    const auto measured =
        std::ranges::find(profile.collectives, Provenance::kMeasured, &CollectiveFit::provenance);
    ASSERT_NE(measured, profile.collectives.end());
    EXPECT_NEAR(measured->bus_bandwidth.count(), bus, 1e4);
  }
}

TEST(FitProfile, CollectivesOfLaunchesAloneAreNotFitted) {
  std::vector<Sample> samples = all_reduce_samples();
  for (Sample& sample : samples) sample.median_s = 15e-6 + 1e-9 * sample.median_s;
  const SampleSet set{.setup = samples.front().setup, .samples = std::move(samples), .date = "2026-11-20"};
  Diagnostics diagnostics;
  EXPECT_FALSE(fit_profile(set, a100(), "made", diagnostics));
  EXPECT_THAT(render_json(diagnostics.items()),
              HasSubstr("all-reduce, 8 ranks, 1 node: launches are what was timed"));
}

// A time without an algorithm is of whatever the library ran: no row of an algorithm may speak beside it. One
// of an algorithm replaces its own.
TEST(FitProfile, CollectivesOfNoAlgorithmReplaceThoseOfAll) {
  HardwareProfile base = a100();
  const auto rows = [](const HardwareProfile& in) {
    std::vector<std::string> algorithms;
    for (const CollectiveFit& fit : in.collectives)
      if (fit.kind == CollectiveKind::kAllReduce && fit.ranks == 8 && fit.nodes == 1)
        algorithms.push_back(fit.algorithm);
    return algorithms;
  };
  std::erase_if(base.collectives, [](const CollectiveFit& fit) {
    return fit.kind == CollectiveKind::kAllReduce && fit.ranks == 8;
  });
  for (const char* algorithm : {"ring", "tree"})
    base.collectives.push_back({.kind = CollectiveKind::kAllReduce,
                                .ranks = 8,
                                .nodes = 1,
                                .algorithm = algorithm,
                                .latency = std::chrono::microseconds(20),
                                .bus_bandwidth = Bandwidth(230e9),
                                .provenance = Provenance::kPublished,
                                .source = "a test"});
  EXPECT_EQ(rows(read_back(to_yaml(fitted(all_reduce_samples(), base)))), std::vector<std::string>{"any"});
  std::vector<Sample> of_rings = all_reduce_samples();
  for (Sample& sample : of_rings) sample.tags["algorithm"] = "ring";
  EXPECT_EQ(rows(read_back(to_yaml(fitted(of_rings, base)))), (std::vector<std::string>{"tree", "ring"}));
}

// What NCCL takes by itself is what training calls.
TEST(FitProfile, CollectivesOfAnAlgorithmAreLeftOutBesideNcclsOwnChoice) {
  std::vector<Sample> samples = all_reduce_samples();
  const std::size_t count = samples.size();
  for (std::size_t i = 0; i < count; ++i) {
    samples.push_back(samples[i]);
    samples.back().tags["algorithm"] = "ring";
    samples.back().median_s *= 1.5;
  }
  const FittedProfile profile = fitted(samples, a100());
  EXPECT_EQ(profile.unused, count);
  const auto row = std::ranges::find_if(profile.profile.collectives, [](const CollectiveFit& fit) {
    return fit.kind == CollectiveKind::kAllReduce && fit.ranks == 8 && fit.nodes == 1;
  });
  ASSERT_NE(row, profile.profile.collectives.end());
  EXPECT_EQ(row->algorithm, "any");
  EXPECT_NEAR(row->bus_bandwidth.count(), 200e9, 1e7);
  EXPECT_EQ(profile.families.back().family, "all-reduce, 8 ranks, 1 node, ring");
  EXPECT_THAT(profile.families.back().outcome, HasSubstr("left out"));
}

// The base was scored on published iterations, and the new profile was not.
TEST(FitProfile, TheResidualsOfTheBaseAreAssumed) {
  const HardwareProfile base = a100();
  const HardwareProfile profile = read_back(to_yaml(fitted(all_reduce_samples(), base)));
  ASSERT_TRUE(base.residuals && profile.residuals);
  const auto expect_assumed = [](const Sourced<double>& now, const Sourced<double>& of_base) {
    EXPECT_EQ(now.value, of_base.value);
    EXPECT_EQ(now.provenance, Provenance::kAssumed);
    EXPECT_EQ(now.source, "of the base a100-sxm4-80gb, this profile was not scored: " + of_base.source);
  };
  expect_assumed(profile.residuals->run, base.residuals->run);
  expect_assumed(profile.residuals->correlation, base.residuals->correlation);
  for (std::size_t i = 0; i < kUnnamedNames.size(); ++i)
    expect_assumed(profile.residuals->unnamed[i], base.residuals->unnamed[i]);
  for (std::size_t i = 0; i < kOpFamilyCount; ++i)
    expect_assumed(profile.residuals->families[i], base.residuals->families[i]);
}

// The newest ingredient of a profile may be its base.
TEST(FitProfile, IsAsNewAsTheNewerOfSamplesAndBase) {
  HardwareProfile base = a100();
  base.date = "2026-11-22";
  EXPECT_EQ(fitted(all_reduce_samples(), base).profile.date, "2026-11-22");
  base.date = "2026-01-01";
  EXPECT_EQ(fitted(all_reduce_samples(), base).profile.date, "2026-11-20");
}

// The profile prices what it was fitted on: 250 TFLOP/s L/(L + 1024) of what is done, at the blocks of the
// benchmark (32 heads of 8192: 2048), and 6 us beside it.
TEST(FitProfile, AttentionIsACurveOverTheLengthsForEachPassAndMask) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples;
  for (const std::int64_t length : {1024, 2048, 8192}) {
    Sample sample = made_sample("attention", "flash_backward");
    const std::int64_t heads = 2048 * 128 / length;
    sample.shape = {{"batch", 1}, {"heads", heads}, {"head_size", 128}, {"sequence", length}};
    sample.tags = {{"causal", "true"}, {"dtype", "bf16"}};
    const auto l = static_cast<double>(length);
    const double done = 0.5 * 2.5 * 4 * l * l * static_cast<double>(heads) * 128;
    sample.median_s = 6e-6 + done / (250e12 * l / (l + 1024));
    sample.min_s = sample.median_s;
    samples.push_back(sample);
  }
  const HardwareProfile profile = read_back(to_yaml(fitted(samples, base)));
  const FlashPass& pass = profile.attention.kernel().backward;
  EXPECT_NEAR(pass.causal.rate.count(), 250e12, 1e9);
  EXPECT_NEAR(pass.causal.half_length, 1024, 1);
  EXPECT_EQ(pass.causal.provenance, Provenance::kMeasured);
  EXPECT_EQ(pass.dense.source, base.attention.kernel().backward.dense.source);
  EXPECT_EQ(profile.attention.kernel().forward.causal.rate, base.attention.kernel().forward.causal.rate);
}

// 200 TFLOP/s L/(L + 400), half of it at 1.2 blocks a multiprocessor, and with heads of 30.
Sample flash_sample(const HardwareProfile& base, const char* op, std::int64_t heads, std::int64_t head_size,
                    std::int64_t length) {
  Sample sample = made_sample("attention", op);
  sample.shape = {{"batch", 1}, {"heads", heads}, {"head_size", head_size}, {"sequence", length}};
  sample.tags = {{"causal", "true"}, {"dtype", "bf16"}, {"implementation", "cudnn"}};
  const auto l = static_cast<double>(length);
  const double blocks = static_cast<double>(heads) * l / 128;
  const double share =
      flash_occupancy(1.2 * base.device.sms, blocks) * flash_head_share(30, static_cast<double>(head_size));
  const double constant = to_seconds(base.attention.fixed.value) + to_seconds(base.host.kernel_gap.value);
  sample.median_s = constant + attention_flops(sample) / (200e12 * l / (l + 400) * share);
  sample.min_s = sample.median_s;
  return sample;
}

TEST(FitProfile, AttentionOfSeveralHeadsTellsItsOccupancyAndHeadSize) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples;
  for (const char* op : {"flash_forward", "flash_backward"})
    for (const std::int64_t length : {512, 2048, 8192})
      for (const std::int64_t heads : {1, 4, 32})
        for (const std::int64_t head_size : {64, 128})
          samples.push_back(flash_sample(base, op, heads, head_size, length));
  Sample loaded = samples[4];  // a forward one
  loaded.tags["load"] = "sustained";
  loaded.tags["mix"] = "layer";
  loaded.median_s /= 0.8;
  samples.push_back(loaded);
  const FittedProfile fit = fitted(samples, base);
  EXPECT_EQ(fit.unused, 0U) << "a sample of a curve and of its occupancy is one sample";
  EXPECT_EQ(fit.remarks.heading,
            "Fitted by stagecraft from 37 samples on NVIDIA A100-SXM4-80GB, driver 550.54.");
  const HardwareProfile profile = read_back(to_yaml(fit));
  const FlashKernel& kernel = profile.attention.kernel();
  EXPECT_EQ(kernel.name, "cudnn");
  ASSERT_TRUE(kernel.half_head_size.has_value());
  EXPECT_EQ(kernel.half_head_size->value, 30);
  for (const FlashPass* pass : {&kernel.forward, &kernel.backward}) {
    EXPECT_NEAR(pass->half_blocks.value, 1.2, 1e-9);
    EXPECT_NEAR(pass->causal.half_length, 400, 1);
  }
  EXPECT_NEAR(kernel.forward.causal.rate.count(), 0.8 * 200e12, 1e9);
  EXPECT_NEAR(kernel.backward.causal.rate.count(), 200e12, 1e9) << "no long run of it was measured";
}

// With 4 heads alone, or as many heads as keep the blocks alike, occupancy is no other thing than the length.
TEST(FitProfile, AttentionOfOneNumberOfHeadsKeepsTheBasesHalfBlocks) {
  const HardwareProfile base = a100();
  const double kept = base.attention.kernel().forward.half_blocks.value;
  EXPECT_NE(kept, 1.2);
  std::vector<Sample> one, alike;
  for (std::int64_t length = 128; length <= 16384; length *= 2) {
    one.push_back(flash_sample(base, "flash_forward", 4, 128, length));
    alike.push_back(flash_sample(base, "flash_forward", 16384 / length, 128, length));
  }
  for (const std::vector<Sample>& samples : {one, alike}) {
    const HardwareProfile profile = fitted(samples, base).profile;
    EXPECT_EQ(profile.attention.kernel().name, "cudnn");
    EXPECT_EQ(profile.attention.kernel().forward.half_blocks.value, kept);
    EXPECT_EQ(profile.attention.kernel().forward.causal.provenance, Provenance::kMeasured);
  }
}

TEST(FitProfile, BackendsOfPytorchAreTheKernelsThatTheyCall) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples;
  for (const std::int64_t length : {512, 2048, 8192}) {
    samples.push_back(flash_sample(base, "flash_forward", 32, 128, length));
    for (const char* backend : {"pytorch_cudnn", "pytorch_flash"}) {
      samples.push_back(flash_sample(base, "flash_forward", 32, 128, length));
      samples.back().tags["implementation"] = backend;
      samples.back().median_s *= 2;
    }
  }
  const HardwareProfile profile = fitted(samples, base).profile;
  const auto kernel = [&](const char* name) {
    return std::ranges::find(profile.attention.kernels, name, &FlashKernel::name);
  };
  EXPECT_EQ(kernel("pytorch_cudnn"), profile.attention.kernels.end());
  EXPECT_EQ(kernel("pytorch_flash"), profile.attention.kernels.end());
  ASSERT_NE(kernel("cudnn"), profile.attention.kernels.end());
  ASSERT_NE(kernel("fa2"), profile.attention.kernels.end());
  EXPECT_GT(kernel("cudnn")->forward.causal.rate, 1.5 * kernel("fa2")->forward.causal.rate)
      << "cuDNN was measured by itself";
}

TEST(FitProfile, MemoryKernelsGiveTheirShareOfTheDataSheet) {
  // 3 us + bytes / 1835.1 GB/s, which is 0.9 of 2039.
  std::vector<Sample> samples;
  for (const std::int64_t tokens : {1024, 8192, 65536}) {
    Sample sample = made_sample("kernel", "layernorm_forward");
    sample.shape = {{"tokens", tokens}, {"hidden", 4096}};
    sample.bytes = 4.0 * 4096 * static_cast<double>(tokens);
    sample.median_s = 3e-6 + sample.bytes / (0.9 * 2039e9);
    sample.min_s = sample.median_s;
    samples.push_back(sample);
  }
  const HardwareProfile profile = read_back(to_yaml(fitted(samples, a100())));
  EXPECT_NEAR(profile.memory_efficiency.value, 0.9, 1e-4);
}

// The benchmark says 0.9 of the data sheet, a training run 0.5.
TEST(FitProfile, KernelsOfATrainingRunSpeakOnlyWithoutABenchmark) {
  std::vector<Sample> benchmark, training;
  for (const std::int64_t tokens : {1024, 8192, 65536}) {
    for (const bool trained : {false, true}) {
      Sample sample = made_sample("kernel", "layernorm_forward");
      sample.shape = {{"tokens", tokens}, {"hidden", 4096}};
      if (trained) sample.tags = {{"load", "training"}};
      sample.bytes = 4.0 * 4096 * static_cast<double>(tokens);
      sample.median_s = 3e-6 + sample.bytes / ((trained ? 0.5 : 0.9) * 2039e9);
      sample.min_s = sample.median_s;
      (trained ? training : benchmark).push_back(sample);
    }
  }
  EXPECT_NEAR(fitted(training, a100()).profile.memory_efficiency.value, 0.5, 1e-4);
  benchmark.insert(benchmark.end(), training.begin(), training.end());
  EXPECT_NEAR(fitted(benchmark, a100()).profile.memory_efficiency.value, 0.9, 1e-4);
}

TEST(FitProfile, SamplesOfAnotherDeviceAreRefused) {
  Sample sample = all_reduce_samples().front();
  sample.setup.device = "NVIDIA H200";
  const SampleSet set{.setup = sample.setup, .samples = {sample}, .date = sample.date};
  Diagnostics diagnostics;
  EXPECT_FALSE(fit_profile(set, a100(), "made", diagnostics).has_value());
  EXPECT_THAT(render(diagnostics.items().at(0)),
              HasSubstr("of 'NVIDIA H200', the base profile is of 'NVIDIA A100"));
}

TEST(FitProfile, SamplesFasterThanTheDeviceAreRefusedWithTheirPlace) {
  std::vector<Sample> samples = gemm_samples(a100());
  samples[1].median_s /= 1000;
  samples[1].min_s = samples[1].median_s;
  std::string text;
  for (const Sample& sample : samples) text += to_json_line(sample) + "\n";
  Diagnostics diagnostics;
  const std::optional<SampleSet> set = read_sample_set({{.name = "a.jsonl", .text = text}}, diagnostics);
  ASSERT_TRUE(set.has_value());
  EXPECT_FALSE(fit_profile(*set, a100(), "made", diagnostics).has_value());
  ASSERT_EQ(diagnostics.items().size(), 1U);
  EXPECT_THAT(render(diagnostics.items().front()), HasSubstr("a.jsonl:2: error: "));
  EXPECT_THAT(render(diagnostics.items().front()), HasSubstr("whose data sheet ends at 312 TFLOP/s"));
}

// Milliseconds or microseconds for seconds.
TEST(FitProfile, SamplesInAnotherUnitAreRefused) {
  const HardwareProfile base = a100();
  Sample memory = made_sample("kernel", "layernorm_forward");
  memory.bytes = 1e6;
  memory.median_s = 3e-6;
  std::vector<Sample> busy;
  add_empty_kernels(busy, 1.5e-6, 4e-6);
  for (const Sample& good :
       {gemm_samples(base).front(), flash_sample(base, "flash_backward", 1, 64, 512), memory, busy.front()})
    for (const double unit : {1e3, 1e6}) {
      Sample bad = good;
      bad.median_s *= unit;
      const SampleSet set{.setup = bad.setup, .samples = {bad}, .date = bad.date};
      Diagnostics diagnostics;
      EXPECT_FALSE(fit_profile(set, base, "made", diagnostics).has_value());
      EXPECT_EQ(diagnostics.items().at(0).code, "impossible-sample") << bad.family << ' ' << unit;
      EXPECT_THAT(diagnostics.items().at(0).message, HasSubstr("whose data sheet gives the work"));
    }
}

// A device of before bf16.
TEST(FitProfile, ProductsAreHeldAgainstThePeaksThatTheBaseHas) {
  HardwareProfile base = a100();
  base.device.peak_bf16 = FlopRate(0);
  std::vector<Sample> samples = gemm_samples(base);
  const SampleSet in_bf16{.setup = samples[0].setup, .samples = samples, .date = "2026-11-20"};
  Diagnostics diagnostics;
  EXPECT_FALSE(fit_profile(in_bf16, base, "made", diagnostics).has_value());
  EXPECT_THAT(
      render(diagnostics.items().at(0)),
      HasSubstr("none of 36 samples serves a constant of a profile; gemm: the base has no peak in bf16"));
  for (Sample& sample : samples) sample.tags["dtype"] = "fp16";
  EXPECT_EQ(fitted(samples, base).profile.gemm.table_precisions, std::vector<Precision>{Precision::kFp16});
}

TEST(FitProfile, TooFewSamplesGiveNoProfile) {
  std::vector<Sample> samples = all_reduce_samples();
  samples.resize(3);
  const SampleSet set{.setup = samples[0].setup, .samples = samples, .date = "2026-11-20"};
  Diagnostics diagnostics;
  EXPECT_FALSE(fit_profile(set, a100(), "made", diagnostics).has_value());
  EXPECT_THAT(render(diagnostics.items().at(0)), HasSubstr("none of 3 samples"));
}

// --- reading samples ---------------------------------------------------------------------------------------

// One time of 36 is several times too long: it is named, and none of its neighbours.
TEST(FitProfile, ADoubtfulGemmIsNamedWithItsPlace) {
  const HardwareProfile base = a100();
  for (const double slip : {10.0, 3.0, 1.0}) {
    std::vector<Sample> samples = gemm_samples(base);
    samples[17].min_s = samples[17].median_s *= slip;
    Diagnostics diagnostics;
    const std::optional<SampleSet> set =
        read_sample_set({{.name = "a.jsonl", .text = lines(samples)}}, diagnostics);
    const std::optional<FittedProfile> fit = fit_profile(set.value(), base, "made", diagnostics);
    ASSERT_TRUE(fit.has_value()) << slip;
    ASSERT_EQ(diagnostics.items().size(), slip == 1 ? 0u : 1u) << slip << render_json(diagnostics.items());
    if (slip == 1) continue;
    EXPECT_EQ(diagnostics.items()[0].code, "doubtful-sample");
    EXPECT_EQ(diagnostics.items()[0].where.line, 18);
    EXPECT_THAT(diagnostics.items()[0].message, HasSubstr("2048 x 1024, k 4096, NN took "));
    EXPECT_THAT(diagnostics.items()[0].message, HasSubstr(fit->families[0].left_out.worst(1)[0].row));
  }
}

// Such a time is no row of the profile.
TEST(FitProfile, AGemmThatIsMostlyLaunchIsNotDoubted) {
  const HardwareProfile base = a100();
  std::vector<Sample> samples = gemm_samples(base);
  for (const std::int64_t k : {256, 512}) {
    Sample& small = samples.emplace_back(samples.front());
    small.shape = {{"m", 8}, {"n", 8}, {"k", k}, {"batch", 1}};
    small.median_s = small.min_s = 0.5 * to_seconds(base.host.kernel_gap.value);
  }
  const SampleSet set{.setup = samples.front().setup, .samples = samples, .date = "2026-11-20"};
  Diagnostics diagnostics;
  const std::optional<FittedProfile> fit = fit_profile(set, base, "made", diagnostics);
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->profile.gemm.table.rows.size(), 36u);
  EXPECT_TRUE(diagnostics.items().empty()) << render_json(diagnostics.items());
}

}  // namespace
}  // namespace stagecraft
