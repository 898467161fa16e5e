#include "base/units.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/check.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;

TEST(Units, SecondsBecomeTheNearestNanosecond) {
  EXPECT_EQ(from_seconds(0), Duration(0));
  EXPECT_EQ(from_seconds(1.5), Duration(1'500'000'000));
  EXPECT_EQ(from_seconds(0.4e-9), Duration(0));
  EXPECT_EQ(from_seconds(0.6e-9), Duration(1));
  EXPECT_EQ(from_seconds(0.5e-9), Duration(1));  // halves away from zero
}

TEST(Units, SecondsThatAreNoTimeAreOurBug) {
  EXPECT_THROW((void)from_seconds(-1e-9), InternalError);
  EXPECT_THROW((void)from_seconds(std::nan("")), InternalError);
  EXPECT_THROW((void)from_seconds(std::numeric_limits<double>::infinity()), InternalError);
  EXPECT_THROW((void)from_seconds(9223372036.854775808), InternalError);  // 2^63 ns, the first beyond int64
  EXPECT_EQ(from_seconds(9223372036.0), Duration(9'223'372'036'000'000'000));
}

TEST(Units, ATimeIsScaledToTheNearestNanosecond) {
  EXPECT_EQ(scaled(Duration(10), 1.5), Duration(15));
  EXPECT_EQ(scaled(Duration(3), 0.5), Duration(2));  // halves away from zero
  EXPECT_EQ(scaled(Duration(10), 0), Duration(0));
  EXPECT_EQ(scaled(Duration::max(), 2), Duration(4'000'000'000'000'000'000));  // two of them can be added
  EXPECT_THROW((void)scaled(Duration(10), -1), InternalError);
  EXPECT_THROW((void)scaled(Duration(10), std::nan("")), InternalError);
}

// Property: what is a whole number of nanoseconds below 2^50 (13 days) survives the way through seconds.
TEST(Units, WholeNanosecondsSurviveSeconds) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const Duration time(static_cast<std::int64_t>(random() >> (14 + random() % 50)));
    EXPECT_EQ(from_seconds(to_seconds(time)), time);
  }
}

TEST(Units, GibibytesAndGigabytesDiffer) {
  EXPECT_EQ(1_GiB, Bytes(1'073'741'824));
  EXPECT_EQ(1_GB, Bytes(1'000'000'000));
  EXPECT_EQ(3_MiB, 3072_KiB);
}

TEST(Units, BytesOverBandwidthIsATime) {
  EXPECT_EQ(50_GB / 50_GBps, Duration(1'000'000'000));
  EXPECT_EQ(1_B / 3_GBps, Duration(0));  // a third of a nanosecond
  EXPECT_EQ(2_B / 3_GBps, Duration(1));  // two thirds
  EXPECT_EQ(0_B / 1_GBps, Duration(0));
  EXPECT_THROW((void)(1_B / Bandwidth(0)), InternalError);
  EXPECT_THROW((void)(1_B / Bandwidth(std::nan(""))), InternalError);
}

TEST(Units, FlopsOverFlopRateIsATime) {
  EXPECT_EQ(Flops(312e12) / 312_TFLOPps, Duration(1'000'000'000));
  EXPECT_THROW((void)(Flops(1) / FlopRate(-1)), InternalError);
}

TEST(Units, RatioOfOneKindIsABareNumber) {
  EXPECT_EQ(1_GiB / 256_MiB, 4.0);
  EXPECT_EQ(Flops(1) / Flops(4), 0.25);
}

TEST(Units, FractionsOfBytesRound) {
  EXPECT_EQ(to_bytes(0.5), Bytes(1));
  EXPECT_EQ(to_bytes(1.49), Bytes(1));
  EXPECT_THROW((void)to_bytes(-1), InternalError);
  EXPECT_THROW((void)to_bytes(std::nan("")), InternalError);
  EXPECT_THROW((void)to_bytes(0x1p63), InternalError);
}

}  // namespace
}  // namespace stagecraft
