// The rest of the suite on the emulated device: matrix products over a library that does what cuBLASLt's
// manual says, the kernels of `system`, and the way a time is taken.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "calibrate/bench/gemm.hpp"
#include "calibrate/bench/harness.hpp"
#include "tests/calibrate/bench/emulation/device.hpp"

namespace stagecraft {
namespace {

class EmulatedSuite : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    checks_ = new Harness({.check_only = true});
    times_ = new Harness({.effort = 0.1});
  }
  static void TearDownTestSuite() {
    delete checks_;
    delete times_;
  }
  static void expect_right(const GemmPoint& point) {
    SCOPED_TRACE(sample_key(gemm_prototype(point)));
    double error = -1;
    ASSERT_NO_THROW(error = GemmRun(*checks_, point).check(*checks_));
    EXPECT_GE(error, 0);
    EXPECT_LE(error, 1);
  }
  static Harness *checks_, *times_;
};
Harness *EmulatedSuite::checks_ = nullptr, *EmulatedSuite::times_ = nullptr;

// No two extents are equal, so that a layout for another is seen.
TEST_F(EmulatedSuite, MultipliesInEveryLayoutAndType) {
  for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT})
    for (const char* dtype : {"bf16", "fp16", "tf32"})
      for (const bool accumulate : {false, true})
        expect_right({.m = 24,
                      .n = 40,
                      .k = 72,
                      .batch = 3,
                      .dtype = dtype,
                      .layout = layout,
                      .accumulate = accumulate});
}

TEST_F(EmulatedSuite, MultipliesInEightBitsWithScales) {
  expect_right({.m = 32, .n = 48, .k = 80, .dtype = "e4m3"});
  expect_right({.m = 32, .n = 48, .k = 80, .dtype = "e5m2"});
  expect_right({.m = 32, .n = 48, .k = 80, .dtype = "e5m2", .accumulate = true});
  EXPECT_THROW(GemmRun(*checks_, {.m = 32, .n = 48, .k = 80, .dtype = "e4m3", .layout = GemmLayout::kNN}),
               Unmeasurable);
}

TEST_F(EmulatedSuite, MultipliesInChunks) {
  for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN})
    expect_right({.m = 96, .n = 40, .k = 72, .layout = layout, .chunks = 4});
}

TEST_F(EmulatedSuite, SeesAProductThatIsWrong) {
  GemmRun run(*checks_, {.m = 24, .n = 40, .k = 72});
  (void)run.check(*checks_);
  emulation::machine().fault_of_products = 1.1;
  EXPECT_THROW((void)run.check(*checks_), WrongResult);
  emulation::machine().fault_of_products = 1;
}

TEST(GemmPoint, IsTheOneThatWasAskedForOrNone) {
  const auto wanted = [](const std::map<std::string, std::string>& tags) {
    Sample sample;
    sample.family = sample.op = "gemm";
    sample.shape = {{"m", 64}, {"n", 48}, {"k", 32}};
    sample.tags = tags;
    return gemm_point_of(sample);
  };
  ASSERT_TRUE(wanted({}));
  EXPECT_EQ(gemm_prototype(*wanted({})).shape.at("batch"), 1);
  EXPECT_TRUE(wanted({{"layout", "NT"}})->accumulate);
  EXPECT_FALSE(wanted({{"layout", "NT"}, {"output", "bf16"}})->accumulate);
  EXPECT_TRUE(wanted({{"grouped", "strided"}})->grouped);
  EXPECT_EQ(wanted({{"chunks", "4"}})->chunks, 4);
  EXPECT_EQ(wanted({{"chunks", "1"}})->chunks, 1);
  EXPECT_TRUE(wanted({{"dtype", "tf32"}, {"output", "fp32"}, {"load", "burst"}, {"cache", "hot"}})->hot);
  for (const auto& [tag, value] : std::map<std::string, std::string>{{"layout", "TT"},
                                                                     {"dtype", "int8"},
                                                                     {"output", "fp16"},
                                                                     {"cache", "warm"},
                                                                     {"load", "sustained"},
                                                                     {"chunks", "5"},
                                                                     {"grouped", "pointers"},
                                                                     {"mix", "layer"}})
    EXPECT_FALSE(wanted({{tag, value}})) << tag;
}

// What fits into the little memory that there is.
TEST_F(EmulatedSuite, RunsWhatItMeasuresOfTheSystem) {
  int measured = 0;
  for (const WorkItem& item : system_items(times_->device())) {
    if (item.prototype.shape.contains("bytes") && item.prototype.shape.at("bytes") > (1 << 20)) continue;
    SCOPED_TRACE(sample_key(item.prototype));
    Measured got;
    ASSERT_NO_THROW(got = item.run(*times_));
    EXPECT_GT(got.repeats, 0);
    EXPECT_GT(got.median_s, 0);
    ++measured;
  }
  EXPECT_GT(measured, 20);
}

TEST_F(EmulatedSuite, TimesAnOperatorBehindAGate) {
  int runs = 0;
  const Enqueue op = [&](cudaStream_t stream) {
    ++runs;
    times_->spin(stream, 20e-6);
  };
  const Measured measured = times_->time(op);
  EXPECT_GE(measured.repeats, 10);
  EXPECT_GE(runs, measured.repeats);
  EXPECT_NEAR(measured.median_s, 22e-6, 2e-6);  // the spin and what a launch takes there
  EXPECT_NEAR(measured.sm_mhz, 1500, 1);
  EXPECT_TRUE(measured.observed.empty());
}

TEST_F(EmulatedSuite, FillsWithNormalNumbersOfEveryType) {
  constexpr std::int64_t kCount = 20000;
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16, Dtype::kFp32, Dtype::kE4m3, Dtype::kE5m2}) {
    SCOPED_TRACE(static_cast<int>(dtype));
    const DeviceMemory memory = checks_->allocate(kCount * static_cast<std::int64_t>(size_of(dtype)));
    checks_->poison(memory);
    for (const double value : checks_->read_all(memory.data(), dtype, 3)) EXPECT_TRUE(std::isnan(value));
    checks_->fill_normal(memory.data(), kCount, dtype, 5, 0.5);
    double sum = 0, squares = 0;
    for (const double value : checks_->read_all(memory.data(), dtype, kCount)) {
      sum += value;
      squares += value * value;
    }
    // Standard deviation 1/2 of one, 0.0035 of the mean, 0.0025 of the mean square: four of each, and a
    // rounding of the type.
    EXPECT_NEAR(sum / kCount, 0, 0.015);
    EXPECT_NEAR(squares / kCount, 0.25, 0.012);
  }
}

TEST_F(EmulatedSuite, FillsWithIntegersBelowTheLimit) {
  const DeviceMemory memory = checks_->allocate(4000);
  checks_->fill_integers(memory.as<std::int32_t>(), 1000, 7, 5);
  std::vector<int> seen(7);
  for (const double value : checks_->read_all(memory.data(), Dtype::kInt32, 1000))
    ++seen.at(static_cast<std::size_t>(value));
  for (const int count : seen) EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace stagecraft
