// Numbers and quantities as people write them.
#include <gtest/gtest.h>

#include <random>

#include "base/yaml.hpp"
#include "base/yaml_units.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;

TEST(ParseNumber, ReadsDecimalsUnderscoresAndExponents) {
  EXPECT_EQ(parse_number("8"), 8.0);
  EXPECT_EQ(parse_number("-0.5"), -0.5);
  EXPECT_EQ(parse_number("+.5"), 0.5);
  EXPECT_EQ(parse_number("1_000_000"), 1e6);
  EXPECT_EQ(parse_number("2.5e-3"), 2.5e-3);
  EXPECT_EQ(parse_number(" 0.0065 "), 0.0065);
}

TEST(ParseNumber, RefusesWhatOtherReadersGuess) {
  for (const char* text :
       {"",    " ",    ".",   "-",     "+",  "e3",  "0x10",   "010",   "08",  "1__0", "_1", "1_",
        "nan", ".nan", "inf", "-.inf", "1e", "1 2", "8 GPUs", "1e999", "--1", "+-1",  "1,5"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(ParseInteger, ReadsWholeNumbersHoweverWritten) {
  EXPECT_EQ(parse_integer("8"), 8);
  EXPECT_EQ(parse_integer("8.0"), 8);
  EXPECT_EQ(parse_integer("1e3"), 1000);
  EXPECT_EQ(parse_integer("1_024"), 1024);
  EXPECT_EQ(parse_integer("-3"), -3);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
}

TEST(ParseInteger, RefusesFractionsAndWhatDoesNotFit) {
  EXPECT_EQ(parse_integer("3.5"), std::nullopt);
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_integer("-9223372036854775809e3"), std::nullopt);
  EXPECT_EQ(parse_integer("1e19"), std::nullopt);
}

// Property: what we print, we read.
TEST(ParseInteger, ReadsEveryPrintedInteger) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto number = static_cast<std::int64_t>(random()) >> (random() % 64);
    EXPECT_EQ(parse_integer(std::to_string(number)), number);
  }
}

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("3 ns"), 3ns);
  EXPECT_EQ(parse_duration("1.5 us"), 1500ns);
  EXPECT_EQ(parse_duration("1.5 \u00b5s"), 1500ns);  // the micro sign
  EXPECT_EQ(parse_duration("1.5 \u03bcs"), 1500ns);  // the Greek letter
  EXPECT_EQ(parse_duration("1ms"), 1ms);
  EXPECT_EQ(parse_duration("1e3 ms"), 1s);
  EXPECT_EQ(parse_duration("2 min"), 120s);
  EXPECT_EQ(parse_duration("2 h"), 2h);
  EXPECT_EQ(parse_duration("30 days"), 720h);
  EXPECT_EQ(parse_duration("1 day"), 24h);
}

TEST(ParseDuration, NeedsAUnitExceptForZero) {
  EXPECT_EQ(parse_duration("0"), 0ns);
  EXPECT_EQ(parse_duration("400"), std::nullopt);
  EXPECT_EQ(parse_duration("ms"), std::nullopt);
  EXPECT_EQ(parse_duration("1 fortnight"), std::nullopt);
  EXPECT_EQ(parse_duration("1 MS"), std::nullopt);
}

TEST(ParseDuration, RefusesNegativeAndEndless) {
  EXPECT_EQ(parse_duration("-1 ms"), std::nullopt);
  EXPECT_EQ(parse_duration("1e300 days"), std::nullopt);
  EXPECT_EQ(parse_duration("200000 days"), std::nullopt);  // 547 years; int64 nanoseconds end at 292
}

// Property: every whole number of milliseconds up to 1000 s is exact.
TEST(ParseDuration, WholeMillisecondsAreExact) {
  for (int n = 0; n <= 1'000'000; n += 37) EXPECT_EQ(parse_duration(std::to_string(n) + " ms"), n * 1ms);
}

TEST(ParseBytes, KeepsDecimalAndBinaryApart) {
  EXPECT_EQ(parse_bytes("80 GiB"), 80_GiB);
  EXPECT_EQ(parse_bytes("80 GB"), 80_GB);
  EXPECT_EQ(parse_bytes("16MiB"), 16_MiB);
  EXPECT_EQ(parse_bytes("1.5 KiB"), 1536_B);
  EXPECT_EQ(parse_bytes("2 kB"), 2000_B);
  EXPECT_EQ(parse_bytes("2 KB"), 2000_B);
  EXPECT_EQ(parse_bytes("2 TB"), 2000_GB);
  EXPECT_EQ(parse_bytes("1 TiB"), 1024_GiB);
}

TEST(ParseBytes, RefusesBits) {
  EXPECT_EQ(parse_bytes("80 Gb"), std::nullopt);
}

TEST(ParseBandwidth, ReadsBytesAndBitsPerSecond) {
  EXPECT_EQ(parse_bandwidth("900 GB/s"), 900_GBps);
  EXPECT_EQ(parse_bandwidth("200 Gb/s"), 25_GBps);
  EXPECT_EQ(parse_bandwidth("100Mb/s"), Bandwidth(12.5e6));
  EXPECT_EQ(parse_bandwidth("1 GiB/s"), Bandwidth(0x1p30));
  EXPECT_EQ(parse_bandwidth("400"), std::nullopt);
  EXPECT_EQ(parse_bandwidth("400 GB"), std::nullopt);
  EXPECT_EQ(parse_bandwidth("400 Gbps"), std::nullopt);
  EXPECT_EQ(parse_bandwidth("400 /s"), std::nullopt);
}

TEST(ParseFlopRate, ReadsItsThreeUnits) {
  EXPECT_EQ(parse_flop_rate("312 TFLOP/s"), 312_TFLOPps);
  EXPECT_EQ(parse_flop_rate("0.5 PFLOP/s"), 500_TFLOPps);
  EXPECT_EQ(parse_flop_rate("1000 GFLOP/s"), 1_TFLOPps);
  EXPECT_EQ(parse_flop_rate("312 TFLOPS"), std::nullopt);
}

// The message of user-experience in full: what is wrong and what it probably means.
TEST(ExplainBadQuantity, ConvertsThePlausibleReading) {
  const auto bandwidth = explain_bad_quantity(QuantityKind::kBandwidth, "400");
  EXPECT_EQ(bandwidth.message, "'400' has no unit");
  EXPECT_EQ(bandwidth.hint, "400 Gb/s is 50 GB/s; bandwidths are per direction");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kDuration, "400").hint,
            "400 ms is 0.4 s; units are ns us ms s min h days");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kBytes, "80").hint, "80 GiB is 85.9 GB");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kFlopRate, "312").hint, "312 TFLOP/s is 0.312 PFLOP/s");
}

TEST(ExplainBadQuantity, TakesALargeNumberForTheSmallestUnit) {
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kBytes, "85899345920").hint, "85899345920 B is 80.0 GiB");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kFlopRate, "312e12").hint, "312e12 FLOP/s is 312 TFLOP/s");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kDuration, "5000000").hint, "5000000 ns is 5.00 ms");
}

TEST(ExplainBadQuantity, TellsTheMistakesApart) {
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kDuration, "soon").code, "bad-quantity");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kDuration, "3").code, "no-unit");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kDuration, "3 GiB").code, "unknown-unit");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kDuration, "-3 ms").code, "negative-quantity");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kDuration, "1e99 days").code, "quantity-too-large");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kBandwidth, "1 B/s").code, "quantity-too-small");
  EXPECT_EQ(explain_bad_quantity(QuantityKind::kFlopRate, "1e-9 TFLOP/s").code, "quantity-too-small");
}

TEST(ParseRate, IsNoneOrWhatCanBeCountedWith) {
  EXPECT_EQ(parse_bandwidth("0 B/s"), Bandwidth(0));
  EXPECT_EQ(parse_bandwidth("10 kB/s"), Bandwidth(1e4));
  EXPECT_EQ(parse_bandwidth("9 kB/s"), std::nullopt);
  EXPECT_EQ(parse_flop_rate("1e-6 TFLOP/s"), FlopRate(1e6));
  EXPECT_EQ(parse_flop_rate("9e-7 TFLOP/s"), std::nullopt);
}

}  // namespace
}  // namespace stagecraft
