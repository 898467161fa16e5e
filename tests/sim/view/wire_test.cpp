#include "sim/view/wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/sim/view/wire_reader.hpp"

namespace stagecraft {
namespace {

// The example of the description of the encoding: field 1 is 150.
TEST(WireMessage, WritesTheExampleOfTheDescription) {
  EXPECT_EQ(WireMessage().number(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(WireMessage().text(2, "testing").bytes(), "\x12\x07testing");
}

TEST(WireMessage, ReadsBackAtTheEdgesOfSixtyFourBits) {
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, std::uint64_t{1} << 32,
        std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()}) {
    WireMessage written;
    written.number(60, value);
    const std::vector<test::WireField> fields = test::read_message(written.bytes());
    ASSERT_EQ(fields.size(), 1u);
    EXPECT_EQ(fields[0].number, 60u);
    EXPECT_EQ(fields[0].value, value);
  }
}

TEST(WireMessage, ReadsBackMessagesWithinMessages) {
  WireMessage inner;
  inner.text(5, "inner").number(2, 1);
  WireMessage outer;
  outer.message(7, inner);
  const auto fields = test::read_message(test::first_of(test::read_message(outer.bytes()), 7).bytes);
  EXPECT_EQ(test::first_of(fields, 5).bytes, "inner");
  EXPECT_EQ(test::first_of(fields, 2).value, 1u);
}

TEST(WireMessage, StandsBehindItsLengthInAFileOfSeveral) {
  WireMessage file;
  file.delimited(WireMessage().number(1, 1)).delimited(WireMessage().number(1, 2));
  EXPECT_EQ(file.bytes(), std::string("\x02\x08\x01\x02\x08\x02", 6));
}

}  // namespace
}  // namespace stagecraft
