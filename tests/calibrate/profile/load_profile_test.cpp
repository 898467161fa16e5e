// The format of a profile, and what is said about a bad one. kGood has every key; a test changes one thing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;

constexpr std::string_view kGood = R"(stagecraft_profile: 1
name: toy
date: '2024-02-29'
made_by: by hand
device:
  name: Toy 1
  sms: 4
  memory: 1 GiB
  memory_bandwidth: 100 GB/s
  peak_fp16: 10 TFLOP/s
  provenance: published
  source: data sheet
gemm:
  scale: {value: 1, provenance: assumed, source: same device}
  efficiency_tn: {value: 0.8, provenance: analytic, source: fit}
  efficiency_nn: {value: 0.7, provenance: analytic, source: fit}
  efficiency_nt: {value: 0.6, provenance: analytic, source: fit}
  batched_efficiency: {value: 0.4, provenance: analytic, source: fit}
  misaligned_factor: {value: 0.1, provenance: assumed, source: guess}
  tiles:
    provenance: published
    source: library
    columns: [m, n, rate]
    rows: [[128, 128, 1]]
  split_k: {max: 1, min_depth: 1024, prologue: 0, provenance: assumed, source: guess}
  correction: {radius: 0.5, prior: 1, provenance: analytic, source: leave one out}
  table:
    provenance: measured
    source: our suite
    precisions: [fp16]
    columns: [m, n, k, layout, efficiency]
    rows:
    - [128, 256, 512, TN, 0.75]
    - [256, 256, 512, NT, 0.5]
memory_efficiency: {value: 0.9, provenance: measured, source: our suite}
loss_traffic: {value: 1, provenance: assumed, source: unfused}
attention: {kernel: fa2, fixed: {value: 4 us, provenance: assumed, source: guess}, half_head_size: {value: 32, provenance: assumed, source: guess}, kernels: {
  fa2: {forward: {causal: {rate: 5 TFLOP/s, half_length: 300, provenance: measured, source: our suite}, dense: {rate: 6 TFLOP/s, half_length: 100, provenance: measured, source: our suite}, half_blocks: {value: 1.7, provenance: assumed, source: guess}},
        backward: {causal: {rate: 4 TFLOP/s, half_length: 0, provenance: measured, source: our suite}, dense: {rate: 4 TFLOP/s, half_length: 0, provenance: analytic, source: fit}, half_blocks: {value: 0, provenance: assumed, source: guess}}}}}
host:
  kernel_gap: {value: 2 us, provenance: assumed, source: guess}
  launch: {value: 5 us, provenance: assumed, source: guess}
  per_iteration: {value: 1 ms, provenance: assumed, source: guess}
tensor_overlap: {value: 0.5, provenance: assumed, source: guess}
gradient_overlap_slowdown: {value: 1.02, provenance: assumed, source: guess}
sharded_overlap_slowdown: {value: 1.3, provenance: assumed, source: guess}
software: {replicated: megatron-core, sharded: fsdp2}
collectives:
- provenance: published
  source: a curve
  columns: [kind, ranks, nodes, algorithm, latency, bus_bandwidth, sqrt_seconds]
  rows:
  - [all-reduce, 8, 2, ring, 20 us, 50 GB/s, 1e-9]
memory:
  context: {value: 1 GiB, provenance: assumed, source: guess}
  communicators: {value: 512 MiB, provenance: assumed, source: guess}
  workspace: {value: 8 MiB, provenance: assumed, source: guess}
  fragmentation: {value: 0, provenance: assumed, source: guess}
relative_spread: {measured: 0.01, published: 0.02, interpolated: 0.03, analytic: 0.04, assumed: 0.5, provenance: assumed, source: guess}
experts:
  grouped_factor: {value: 0.9, provenance: analytic, source: fit}
  group_gap: {value: 1 us, provenance: analytic, source: fit}
  permutation_efficiency: {value: 0.5, provenance: published, source: a fit}
)";

std::string with(std::string_view old_text, std::string_view new_text) {
  std::string text(kGood);
  const std::size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  EXPECT_EQ(text.find(old_text, at + 1), std::string::npos) << "not unique: " << old_text;
  return text.replace(at, old_text.size(), new_text);
}

// What load_profile says, with the file called "toy.yaml"; "" when it has nothing to say.
struct Loaded {
  std::optional<HardwareProfile> profile;
  std::string said;
};

Loaded load(const std::string& text) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) /
                                       testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / "toy.yaml";
  std::ofstream(file) << text;
  Diagnostics diagnostics;
  Loaded loaded{.profile = load_profile(file, diagnostics), .said = {}};
  for (Diagnostic diagnostic : diagnostics.sorted()) {
    diagnostic.where.file = "toy.yaml";
    loaded.said += render(diagnostic) + '\n';
  }
  std::filesystem::remove_all(folder);
  return loaded;
}

std::string complaint(std::string_view old_text, std::string_view new_text) {
  const Loaded loaded = load(with(old_text, new_text));
  EXPECT_FALSE(loaded.profile.has_value());
  return loaded.said;
}

TEST(LoadProfile, ReadsEveryKey) {
  const auto [profile, said] = load(std::string(kGood));
  ASSERT_EQ(said, "");
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->name, "toy");
  EXPECT_EQ(profile->date, "2024-02-29");
  EXPECT_EQ(profile->made_by, "by hand");
  EXPECT_EQ(profile->device.memory, 1_GiB);
  EXPECT_EQ(profile->device.provenance, Provenance::kPublished);
  EXPECT_EQ(profile->gemm.efficiency_nt.value, 0.6);
  EXPECT_EQ(profile->gemm.misaligned_factor.source, "guess");
  EXPECT_EQ(profile->gemm.tiles.size(), 1u);
  EXPECT_EQ(profile->gemm.table.prior, 1);
  EXPECT_THAT(profile->gemm.table_precisions, testing::ElementsAre(Precision::kFp16));
  EXPECT_EQ(profile->host.kernel_gap.value, std::chrono::microseconds(2));
  EXPECT_EQ(profile->host.per_iteration.provenance, Provenance::kAssumed);
  EXPECT_EQ(profile->attention.kernel().name, "fa2");
  EXPECT_EQ(profile->attention.kernel().forward.dense.rate, 6_TFLOPps);
  EXPECT_EQ(profile->attention.kernel().forward.causal.half_length, 300);
  EXPECT_EQ(profile->attention.kernel().forward.half_blocks.value, 1.7);
  EXPECT_EQ(profile->attention.kernel().backward.dense.provenance, Provenance::kAnalytic);
  EXPECT_EQ(profile->attention.half_head_size.value, 32);
  EXPECT_EQ(profile->attention.fixed.value, std::chrono::microseconds(4));
  EXPECT_EQ(profile->experts.grouped_factor.value, 0.9);
  EXPECT_EQ(profile->experts.group_gap.value, std::chrono::microseconds(1));
  EXPECT_EQ(profile->experts.permutation_efficiency.value, 0.5);
  EXPECT_FALSE(profile->gpu_variability);
  EXPECT_EQ(profile->memory.communicators.value, 512_MiB);
  EXPECT_EQ(profile->spread(Provenance::kAssumed), 0.5);
  EXPECT_EQ(profile->spread_source, "guess");
}

// The largest of n standard normals: n = 2 is 1/sqrt(pi), the others as tabulated (Harter, Biometrika 48, 1961).
TEST(LoadProfile, KnowsTheSlowestOfSoManyGpus) {
  EXPECT_EQ(load(std::string(kGood)).profile->slowest_of(1024), 0);
  const auto varied = [](const std::string& value) {
    return with("tensor_overlap:", "gpu_variability: {value: " + value +
                                       ", provenance: assumed, source: guess}\ntensor_overlap:");
  };
  const auto [profile, said] = load(varied("0.02"));
  ASSERT_TRUE(profile) << said;
  EXPECT_EQ(profile->slowest_of(1), 0);
  EXPECT_NEAR(profile->slowest_of(2) / 0.02, 0.56419, 0.03);
  EXPECT_NEAR(profile->slowest_of(8) / 0.02, 1.42360, 0.015);
  EXPECT_NEAR(profile->slowest_of(100) / 0.02, 2.50759, 0.015);
  EXPECT_NEAR(profile->slowest_of(400) / 0.02, 2.96818, 0.015);
  for (int gpus = 1; gpus < 200'000; gpus *= 2)
    EXPECT_LT(profile->slowest_of(gpus), profile->slowest_of(gpus + 1)) << gpus;
  EXPECT_NE(load(varied("0.2")).said.find("gpu_variability.value"), std::string::npos);
}

TEST(LoadProfile, GivesARowTheStoryOfItsTable) {
  const auto [profile, said] = load(std::string(kGood));
  ASSERT_TRUE(profile) << said;
  EXPECT_EQ(profile->gemm.table.rows[1].layout, GemmLayout::kNT);
  EXPECT_EQ(profile->gemm.table.rows[1].provenance, Provenance::kMeasured);
  EXPECT_EQ(profile->gemm.table.source, "our suite");
  const CollectiveFit& fit = profile->collectives.at(0);
  EXPECT_EQ(fit.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(fit.nodes, 2);
  EXPECT_EQ(fit.algorithm, "ring");
  EXPECT_EQ(fit.latency, std::chrono::microseconds(20));
  EXPECT_EQ(fit.bus_bandwidth, 50_GBps);
  EXPECT_EQ(fit.sqrt_seconds, 1e-9);
  EXPECT_EQ(fit.provenance, Provenance::kPublished);
  EXPECT_EQ(fit.source, "a curve");
}

// (128, 256) is 2 tiles on 4 SMs: the formula says 0.8 * 0.5. (256, 256) is 4 tiles: 0.6.
TEST(LoadProfile, ComparesTheTableWithTheFormula) {
  const auto [profile, said] = load(std::string(kGood));
  ASSERT_TRUE(profile) << said;
  EXPECT_DOUBLE_EQ(profile->gemm.table.rows[0].log_ratio, std::log(0.75 / 0.4));
  EXPECT_DOUBLE_EQ(profile->gemm.table.rows[1].log_ratio, std::log(0.5 / 0.6));
}

TEST(LoadProfile, APeakThatIsAbsentIsAModeThatTheDeviceHasNot) {
  const auto [profile, said] = load(std::string(kGood));
  ASSERT_TRUE(profile) << said;
  EXPECT_TRUE(profile->supports(Precision::kFp16));
  EXPECT_FALSE(profile->supports(Precision::kFp8));
}

TEST(LoadProfile, ADeviceWithFp8SaysWhatItsKernelsReach) {
  EXPECT_EQ(complaint("  peak_fp16: 10 TFLOP/s\n", "  peak_fp16: 10 TFLOP/s\n  peak_fp8: 20 TFLOP/s\n"),
            R"(toy.yaml:15:3: error: gemm.fp8_factor: is required, but not given
  hint: a constant is a mapping {value, provenance, source}
)");
}

TEST(LoadProfile, TheFlashKernelInUseIsOneOfThoseThatAreGiven) {
  EXPECT_THAT(complaint("{kernel: fa2,", "{kernel: fa3,"),
              testing::HasSubstr("attention.kernel: 'fa3' is not known here\n  hint: did you mean 'fa2'?"));
}

TEST(LoadProfile, TheKernelOfPyTorchIsOneOfThoseThatAreGiven) {
  EXPECT_THAT(complaint("{kernel: fa2,", "{kernel: fa2, sdpa: cudnn,"),
              testing::HasSubstr("attention.sdpa: 'cudnn' is not known here"));
}

// Kernels in fp8 have fixed names; a device may have some of them.
TEST(LoadProfile, FlashKernelsInFp8AreReadByTheirNames) {
  const std::string_view end = "half_blocks: {value: 0, provenance: assumed, source: guess}}}}}";
  const std::string curve = "{rate: 7 TFLOP/s, half_length: 9, provenance: analytic, source: fit}";
  const std::string pass = "{causal: " + curve + ", dense: " + curve +
                           ", half_blocks: {value: 1, provenance: assumed, source: guess}}";
  const auto kernels = [&](const std::string& name) {
    return "half_blocks: {value: 0, provenance: assumed, source: guess}}}}, fp8_kernels: {" + name +
           ": {forward: " + pass + ", backward: " + pass + "}}}";
  };
  const auto [profile, said] = load(with(end, kernels("mxfp8_two_sizes")));
  ASSERT_EQ(said, "");
  ASSERT_TRUE(profile);
  const AttentionModel& attention = profile->attention;
  const FlashKernel* kernel = attention.kernel_for(FlashOperands::kMxfp8, true);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->name, "mxfp8_two_sizes");
  EXPECT_EQ(kernel->backward.dense.half_length, 9);
  EXPECT_EQ(attention.kernel_for(FlashOperands::kMxfp8, false), nullptr);
  EXPECT_EQ(attention.kernel_for(FlashOperands::kFp8, true), nullptr);
  EXPECT_EQ(attention.kernel_for(FlashOperands::kSixteenBit, true), &attention.kernel());
  EXPECT_THAT(complaint(end, kernels("fp9")), testing::HasSubstr("attention.fp8_kernels.fp9"));
}

TEST(LoadProfile, ARateOfAFlashKernelIsAboveZero) {
  EXPECT_THAT(
      complaint("{rate: 6 TFLOP/s,", "{rate: 0 TFLOP/s,"),
      testing::HasSubstr(
          "attention.kernels.fa2.forward.dense.rate: 0 FLOP/s does not lie in [1 TFLOP/s, 1 EFLOP/s]"));
}

TEST(LoadProfile, AFlashKernelHasAllItsCurves) {
  EXPECT_THAT(complaint("dense: {rate: 4 TFLOP/s, half_length: 0, provenance: analytic, source: fit}, ", ""),
              testing::HasSubstr("attention.kernels.fa2.backward.dense: is required, but not given\n"
                                 "  hint: {rate, half_length, provenance, source}"));
}

TEST(LoadProfile, AConstantNeedsAProvenance) {
  EXPECT_EQ(complaint(R"(loss_traffic: {value: 1, provenance: assumed, source: unfused})",
                      R"(loss_traffic: {value: 1, source: unfused})"),
            R"(toy.yaml:36:15: error: loss_traffic.provenance: is required, but not given
)");
}

TEST(LoadProfile, AConstantNeedsASource) {
  EXPECT_EQ(complaint(R"(loss_traffic: {value: 1, provenance: assumed, source: unfused})",
                      R"(loss_traffic: {value: 1, provenance: assumed})"),
            R"(toy.yaml:36:15: error: loss_traffic.source: is required, but not given
)");
}

TEST(LoadProfile, ASourceSaysSomething) {
  EXPECT_EQ(complaint(R"(source: unfused)", R"(source: ' ')"),
            R"(toy.yaml:36:55: error: loss_traffic.source: says nothing
  hint: a citation, or how it was fitted and on what
)");
}

TEST(LoadProfile, ABareNumberIsNoConstant) {
  EXPECT_EQ(
      complaint(R"(loss_traffic: {value: 1, provenance: assumed, source: unfused})", R"(loss_traffic: 1)"),
      R"(toy.yaml:36:15: error: loss_traffic: expected a mapping
  hint: a constant is a mapping {value, provenance, source}
)");
}

TEST(LoadProfile, AConstantMayNotBeAbsent) {
  EXPECT_EQ(complaint(R"(loss_traffic: {value: 1, provenance: assumed, source: unfused}
)",
                      R"()"),
            R"(toy.yaml:1:1: error: loss_traffic: is required, but not given
  hint: a constant is a mapping {value, provenance, source}
)");
}

TEST(LoadProfile, AProvenanceIsOneOfFive) {
  EXPECT_EQ(complaint(R"({value: 0.5, provenance: assumed,)", R"({value: 0.5, provenance: asumed,)"),
            R"(toy.yaml:44:42: error: tensor_overlap.provenance: 'asumed' is not known here
  hint: did you mean 'assumed'?
)");
}

TEST(LoadProfile, AnEfficiencyIsAboveZero) {
  EXPECT_EQ(complaint(R"(efficiency_nn: {value: 0.7,)", R"(efficiency_nn: {value: 0,)"),
            R"(toy.yaml:16:26: error: gemm.efficiency_nn.value: 0 does not lie in [0.001, 1.2]
)");
}

TEST(LoadProfile, AnEfficiencyIsAtMostOnePointTwo) {
  EXPECT_EQ(complaint(R"(memory_efficiency: {value: 0.9,)", R"(memory_efficiency: {value: 1.21,)"),
            R"(toy.yaml:35:28: error: memory_efficiency.value: 1.21 does not lie in [0.001, 1.2]
)");
}

TEST(LoadProfile, NotANumberIsNoNumber) {
  EXPECT_EQ(complaint(R"(efficiency_tn: {value: 0.8,)", R"(efficiency_tn: {value: .nan,)"),
            R"(toy.yaml:15:26: error: gemm.efficiency_tn.value: '.nan' is not a number
)");
}

TEST(LoadProfile, AnEfficiencyOfARowLiesInTheSameRange) {
  EXPECT_EQ(complaint(R"([128, 256, 512, TN, 0.75])", R"([128, 256, 512, TN, 75])"),
            R"(toy.yaml:33:27: error: gemm.table.rows[0].efficiency: 75 does not lie in [1e-06, 1.2]
)");
}

TEST(LoadProfile, ARowOfNotANumberIsRefused) {
  EXPECT_EQ(complaint(R"([128, 256, 512, TN, 0.75])", R"([128, 256, 512, TN, nan])"),
            R"(toy.yaml:33:27: error: gemm.table.rows[0].efficiency: 'nan' is not a number
)");
}

TEST(LoadProfile, ARowHasAValueForEachColumn) {
  EXPECT_EQ(complaint(R"([128, 256, 512, TN, 0.75])", R"([128, 256, 512, 0.75])"),
            R"(toy.yaml:33:7: error: gemm.table.rows[0]: 4 values for 5 columns
)");
}

TEST(LoadProfile, ADimensionIsPositive) {
  EXPECT_EQ(complaint(R"([128, 256, 512, TN, 0.75])", R"([128, 0, 512, TN, 0.75])"),
            R"(toy.yaml:33:13: error: gemm.table.rows[0].n: 0 does not lie in [1, 2147483647]
)");
}

TEST(LoadProfile, ALayoutIsOneOfThree) {
  EXPECT_EQ(complaint(R"([128, 256, 512, TN, 0.75])", R"([128, 256, 512, TT, 0.75])"),
            R"(toy.yaml:33:23: error: gemm.table.rows[0].layout: unknown layout 'TT'
  hint: did you mean 'TN'?
)");
}

TEST(LoadProfile, AShapeStandsInTheTableOnce) {
  EXPECT_EQ(complaint(R"([256, 256, 512, NT, 0.5])", R"([128, 256, 512, TN, 0.5])"),
            R"(toy.yaml:34:7: error: gemm.table.rows[1]: the shape and layout of an earlier row again
)");
}

TEST(LoadProfile, ATileStandsInItsTableOnce) {
  EXPECT_EQ(complaint("[[128, 128, 1]]", "[[128, 128, 1], [128, 128, 0.5]]"),
            "toy.yaml:24:27: error: gemm.tiles.rows[1]: the tile of an earlier row again\n");
}

// What no device has, and what would not fit into a time.
TEST(LoadProfile, AnExtremeValueIsRefusedWithItsRange) {
  const auto expect = [](std::string_view old_text, std::string_view new_text, std::string_view said) {
    EXPECT_THAT(complaint(old_text, new_text), testing::HasSubstr(std::string(said)));
  };
  expect("memory_efficiency: {value: 0.9", "memory_efficiency: {value: 1e-300",
         "toy.yaml:35:28: error: memory_efficiency.value: 1e-300 does not lie in [0.001, 1.2]");
  expect("  peak_fp16:", "  nvlink: 1e30 GB/s\n  peak_fp16:", "toy.yaml:10:11: error: device.nvlink: ");
  expect("  peak_fp16:", "  nvlink: 0 GB/s\n  peak_fp16:", "does not lie in [1 GB/s, ");
  expect("peak_fp16: 10 TFLOP/s", "peak_fp16: 10 GFLOP/s",
         "device.peak_fp16: 10 GFLOP/s does not lie in [1 TFLOP/s,");
  expect("memory: 1 GiB", "memory: 0 GiB", "device.memory: 0 B does not lie in [1 B, 1.00 PiB]");
  expect("memory_bandwidth: 100 GB/s", "memory_bandwidth: 1 MB/s",
         "device.memory_bandwidth: 1 MB/s does not lie in [1 GB/s,");
  expect("kernel_gap: {value: 2 us", "kernel_gap: {value: 9e15 us", "does not lie in [0 s, 1.00 s]");
  expect("per_iteration: {value: 1 ms", "per_iteration: {value: 2 h",
         "2.00 h does not lie in [0 s, 60.0 min]");
  expect("min_depth: 1024", "min_depth: 9000000000", "gemm.split_k.min_depth: ");
  expect("misaligned_factor: {value: 0.1", "misaligned_factor: {value: 1e-9", "does not lie in [0.001, 1]");
  expect("ring, 20 us,", "ring, 2 s,",
         "collectives[0].rows[0].latency: 2.00 s does not lie in [0 s, 1.00 s]");
  expect("50 GB/s, 1e-9]", "50 kB/s, 1e-9]",
         "collectives[0].rows[0].bus_bandwidth: 50 kB/s does not lie in [1 MB/s,");
  expect("[[128, 128, 1]]", "[[128, 1000000, 1]]",
         "gemm.tiles.rows[0].n: 1000000 does not lie in [1, 65536]");
}

TEST(LoadProfile, ATableNeedsRows) {
  EXPECT_EQ(complaint(R"(rows: [[128, 128, 1]])", R"(rows: [])"),
            R"(toy.yaml:24:11: error: gemm.tiles.rows: a table needs rows
)");
}

TEST(LoadProfile, ATableNeedsASource) {
  EXPECT_EQ(complaint(R"(    source: our suite
    precisions)",
                      R"(    precisions)"),
            R"(toy.yaml:28:5: error: gemm.table.source: is required, but not given
)");
}

TEST(LoadProfile, ColumnsStandInTheirOrder) {
  EXPECT_EQ(
      complaint(R"([m, n, k, layout, efficiency])", R"([m, k, n, layout, efficiency])"),
      R"(toy.yaml:31:14: error: gemm.table.columns: [m, k, n, layout, efficiency] are not the columns of this table
  hint: [m, n, k, layout, efficiency]
)");
}

TEST(LoadProfile, AnUnknownKeyIsRefused) {
  EXPECT_EQ(complaint(R"(memory_efficiency:)",
                      R"(memory_eficiency: 1
memory_efficiency:)"),
            R"(toy.yaml:35:1: error: memory_eficiency: is not a known key
  hint: did you mean 'memory_efficiency'?
)");
}

TEST(LoadProfile, AnUnknownKeyOfAConstantIsRefused) {
  EXPECT_EQ(complaint(R"({value: 0.4, provenance)", R"({value: 0.4, unit: none, provenance)"),
            R"(toy.yaml:18:36: error: gemm.batched_efficiency.unit: is not a known key
  hint: one of value, provenance, source
)");
}

TEST(LoadProfile, AHostIsThatOfADgxH100UnlessItSaysHowMuchSlower) {
  constexpr std::string_view kPerIteration = "  per_iteration: {value: 1 ms,";
  EXPECT_EQ(load(std::string(kGood)).profile->host.pace(), 1);
  const auto slower = [&](const std::string& value) {
    return with(kPerIteration, "  slowdown: {value: " + value + ", provenance: assumed, source: guess}\n" +
                                   std::string(kPerIteration));
  };
  const auto [profile, said] = load(slower("1.45"));
  ASSERT_EQ(said, "");
  EXPECT_EQ(profile->host.pace(), 1.45);
  EXPECT_NE(load(slower("0")).said.find("host.slowdown.value"), std::string::npos);
}

TEST(LoadProfile, AQuantityNeedsItsUnit) {
  EXPECT_EQ(complaint(R"({value: 2 us,)", R"({value: 2,)"),
            R"(toy.yaml:41:23: error: host.kernel_gap.value: '2' has no unit
  hint: 2 ms is 0.002 s; units are ns us ms s min h days
)");
}

TEST(LoadProfile, ALatencyInATableNeedsItsUnit) {
  EXPECT_EQ(complaint(R"(ring, 20 us, 50 GB/s)", R"(ring, 20, 50)"),
            R"(toy.yaml:53:30: error: collectives[0].rows[0].latency: '20' is no duration
  hint: for instance 23.2 us
toy.yaml:53:34: error: collectives[0].rows[0].bus_bandwidth: '50' is no bandwidth
  hint: for instance 230 GB/s
)");
}

TEST(LoadProfile, ACollectiveIsKnown) {
  EXPECT_EQ(complaint(R"(- [all-reduce, 8)", R"(- [allreduce, 8)"),
            R"(toy.yaml:53:6: error: collectives[0].rows[0].kind: unknown kind 'allreduce'
  hint: did you mean 'all-reduce'?
)");
}

TEST(LoadProfile, NodesDivideRanks) {
  EXPECT_EQ(complaint(R"(all-reduce, 8, 2)", R"(all-reduce, 8, 3)"),
            R"(toy.yaml:53:5: error: collectives[0].rows[0]: 3 nodes do not divide 8 ranks
)");
}

TEST(LoadProfile, AProfileNeedsCollectives) {
  EXPECT_EQ(complaint(R"(collectives:
- provenance: published
  source: a curve
  columns: [kind, ranks, nodes, algorithm, latency, bus_bandwidth, sqrt_seconds]
  rows:
  - [all-reduce, 8, 2, ring, 20 us, 50 GB/s, 1e-9]
)",
                      R"(collectives: []
)"),
            R"(toy.yaml:48:14: error: collectives: a list of at least one table is required
  hint: a table has provenance, source, columns and rows
)");
}

TEST(LoadProfile, AProfileWithoutADateIsNamedWithoutOne) {
  HardwareProfile profile = load(std::string(kGood)).profile.value();
  EXPECT_EQ(dated_name(profile), "toy of 2024-02-29");
  profile.date.clear();
  EXPECT_EQ(dated_name(profile), "toy");
}

constexpr const char* kKeepOne =
    "\n  hint: keep one: a curve that was imported stands in place of the rows and points of its kind, ranks "
    "and "
    "nodes\n";

TEST(LoadProfile, AGroupHasOneRowOfAnAlgorithm) {
  const std::string row = "  - [all-reduce, 8, 2, ring, 20 us, 50 GB/s, 1e-9]\n";
  EXPECT_EQ(complaint(row, row + row),
            "toy.yaml:54:5: error: collectives[0].rows[1]: the group and algorithm of an earlier row again" +
                std::string(kKeepOne));
}

TEST(LoadProfile, AnyStandsBesideNoNamedAlgorithmOfItsGroup) {
  const std::string row = "  - [all-reduce, 8, 2, ring, 20 us, 50 GB/s, 1e-9]\n";
  const std::string any = "  - [all-reduce, 8, 2, any, 20 us, 50 GB/s, 1e-9]\n";
  EXPECT_EQ(
      complaint(row, row + any),
      "toy.yaml:54:5: error: collectives[0].rows[1]: algorithm any beside ring of an earlier row of the "
      "group: `any` is all of them" +
          std::string(kKeepOne));
  EXPECT_THAT(complaint(row, any + row), testing::HasSubstr("algorithm ring beside any"));
  const std::string other_group = "  - [all-reduce, 8, 1, any, 20 us, 50 GB/s, 1e-9]\n";
  EXPECT_TRUE(load(with(row, row + other_group)).profile.has_value());
}

constexpr std::string_view kPoints = R"(  - [all-reduce, 8, 2, ring, 20 us, 50 GB/s, 1e-9]
  - [all-gather, 8, 1, any, 20 us, 50 GB/s, 0]
collective_points:
- provenance: published
  source: the curve
  columns: [kind, ranks, algorithm, size, time]
  rows:
  - [all-gather, 8, any, 64 KiB, 21 us]
  - [all-gather, 8, any, 1 MiB, 40 us]
)";

TEST(LoadProfile, ReadsThePointsOfACurve) {
  const auto [profile, said] = load(with("  - [all-reduce, 8, 2, ring, 20 us, 50 GB/s, 1e-9]\n", kPoints));
  ASSERT_TRUE(profile) << said;
  EXPECT_TRUE(profile->collectives.at(0).points.empty());
  const CollectiveFit& fit = profile->collectives.at(1);
  EXPECT_THAT(fit.points, testing::ElementsAre(CollectivePoint{64_KiB, std::chrono::microseconds(21)},
                                               CollectivePoint{1_MiB, std::chrono::microseconds(40)}));
  EXPECT_EQ(fit.points_source, "the curve");
}

// Points over two nodes are of no fit that is followed; then a size without a unit, and a time that falls.
TEST(LoadProfile, PointsBelongToAFitAndRise) {
  std::string points(kPoints);
  points +=
      "  - [all-reduce, 8, ring, 2 MiB, 90 us]\n  - [all-gather, 8, any, 2, 80 us]\n"
      "  - [all-gather, 8, any, 4 MiB, 40 us]\n";
  EXPECT_EQ(
      complaint("  - [all-reduce, 8, 2, ring, 20 us, 50 GB/s, 1e-9]\n", points),
      R"(toy.yaml:62:5: error: collective_points[0].rows[2]: no row of collectives is of all-reduce 8 ranks in a node, algorithm ring
  hint: points stretch the formula of a row
toy.yaml:63:5: error: collective_points[0].rows[3]: the points of a group rise in size and in time
  hint: noise that falls is pooled with its neighbours before it is written here
toy.yaml:63:26: error: collective_points[0].rows[3].size: '2' is no size
  hint: for instance 64 KiB
toy.yaml:64:5: error: collective_points[0].rows[4]: the points of a group rise in size and in time
  hint: noise that falls is pooled with its neighbours before it is written here
)");
}

// The points of a curve that stands there twice rise once, and then again.
TEST(LoadProfile, PointsOfARefusedRowAreNotBlamed) {
  std::string twice(kPoints);
  const std::string row = "  - [all-gather, 8, 1, any, 20 us, 50 GB/s, 0]\n";
  twice.insert(twice.find("collective_points"), row);
  twice += "  - [all-gather, 8, any, 64 KiB, 21 us]\n";
  const std::string said = complaint("  - [all-reduce, 8, 2, ring, 20 us, 50 GB/s, 1e-9]\n", twice);
  EXPECT_THAT(said, testing::HasSubstr("an earlier row again"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("rise")));
}

TEST(LoadProfile, AnotherSchemaIsRefused) {
  EXPECT_EQ(complaint(R"(stagecraft_profile: 1)", R"(stagecraft_profile: 2)"),
            R"(toy.yaml:1:21: error: stagecraft_profile: 2 is not a schema that this version reads
  hint: it reads 1
)");
}

TEST(LoadProfile, TheSchemaIsRequired) {
  EXPECT_EQ(complaint(R"(stagecraft_profile: 1
)",
                      R"()"),
            R"(toy.yaml:1:1: error: stagecraft_profile: is required, but not given
)");
}

TEST(LoadProfile, ASpreadIsAShare) {
  EXPECT_EQ(complaint(R"(measured: 0.01)", R"(measured: -0.01)"),
            R"(toy.yaml:59:29: error: relative_spread.measured: -0.01 does not lie in [0, 1]
)");
}

TEST(LoadProfile, ATableNeedsColumns) {
  EXPECT_EQ(complaint("    columns: [m, n, rate]\n", ""),
            "toy.yaml:21:5: error: gemm.tiles.columns: is required, but not given\n  hint: [m, n, rate]\n");
}

TEST(LoadProfile, ATableNamesThePrecisionsThatItSpeaksFor) {
  EXPECT_EQ(complaint("    precisions: [fp16]\n", ""),
            "toy.yaml:28:5: error: gemm.table.precisions: is required, but not given\n"
            "  hint: the precisions that the table speaks for\n");
  EXPECT_EQ(complaint("precisions: [fp16]", "precisions: [fp61]"),
            "toy.yaml:30:17: error: gemm.table.precisions: unknown precision 'fp61'\n"
            "  hint: did you mean 'fp16'?\n");
}

TEST(LoadProfile, SaysAllMistakesAtOnce) {
  std::string text = with("{value: 0.4,", "{value: 4,");
  const std::size_t at = text.find("[128, 128, 1]");
  text.replace(at, 13, "[128, 128, 2]");
  EXPECT_EQ(load(text).said,
            R"(toy.yaml:18:31: error: gemm.batched_efficiency.value: 4 does not lie in [0.001, 1.2]
toy.yaml:24:23: error: gemm.tiles.rows[0].rate: 2 does not lie in [0.001, 1]
)");
}

TEST(LoadProfile, AFileThatIsNotThereIsReported) {
  Diagnostics diagnostics;
  EXPECT_FALSE(load_profile("no/such/profile.yaml", diagnostics));
  EXPECT_EQ(diagnostics.error_count(), 1u);
}

}  // namespace
}  // namespace stagecraft
