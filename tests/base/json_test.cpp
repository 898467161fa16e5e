#include "base/json.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"

namespace stagecraft {
namespace {

std::string written(auto value) {
  JsonWriter json;
  json.value(value);
  return json.str();
}

TEST(JsonWriter, KeepsTheOrderOfKeys) {
  JsonWriter json;
  json.begin_object().field("z", 1).field("a", true).key("list").begin_array();
  json.value(1.5)
      .null()
      .value("x")
      .begin_object()
      .end_object()
      .end_array()
      .field("last", std::size_t{7})
      .end_object();
  EXPECT_EQ(json.str(), R"({"z":1,"a":true,"list":[1.5,null,"x",{}],"last":7})");
}

TEST(JsonWriter, WritesAVectorAsAnArray) {
  JsonWriter json;
  json.begin_object().field("words", std::vector<std::string>{"a", "b"}).field("none", std::vector<int>());
  json.field("rows", std::vector<std::vector<Bytes>>{{Bytes(1), Bytes(2)}, {}}).end_object();
  EXPECT_EQ(json.str(), R"({"words":["a","b"],"none":[],"rows":[[1,2],[]]})");
}

TEST(JsonWriter, WritesTimesInSecondsAndBytesAsCounts) {
  JsonWriter json;
  json.begin_object().field("t_s", Duration(1'500'000'000)).field("n_bytes", Bytes(42)).end_object();
  EXPECT_EQ(json.str(), R"({"t_s":1.5,"n_bytes":42})");
}

TEST(JsonWriter, EscapesWhatJsonDemands) {
  EXPECT_EQ(written("a\"b\\c\n\t\r"), R"("a\"b\\c\n\t\r")");
  EXPECT_EQ(written(std::string_view("\x00\x1b", 2)), R"("\u0000\u001b")");
  EXPECT_EQ(written("µs"), "\"µs\"");
}

TEST(JsonWriter, EscapesEveryEndOfALine) {
  EXPECT_EQ(written("a\u2028b\u2029c\xc2\x85"), R"("a\u2028b\u2029c\u0085")");
  EXPECT_EQ(written("\u2027\u202a"), "\"\u2027\u202a\"");
}

TEST(JsonWriter, ReplacesBytesThatAreNoText) {
  EXPECT_EQ(written("a\xff"
                    "b"),
            "\"a\xef\xbf\xbd"
            "b\"");
}

// Property: a double reads back to the same bits.
TEST(JsonWriter, DoublesReadBackToTheSameBits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(nlohmann::json::parse(written(number)).get<double>()),
              std::bit_cast<std::uint64_t>(number));
  }
  EXPECT_EQ(written(0.1), "0.1");
}

// Property: any bytes make a document that another parser takes.
TEST(JsonWriter, AnyTextMakesAValidDocument) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 20, ' ');
    for (char& c : text) c = static_cast<char>(random());
    EXPECT_TRUE(nlohmann::json::accept(written(text))) << i;
  }
}

TEST(JsonWriter, NothingIsNull) {
  EXPECT_EQ(written(std::optional<double>()), "null");
  EXPECT_EQ(written(std::optional<double>(0.5)), "0.5");
}

TEST(JsonWriter, IntegersAreExact) {
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
}

TEST(JsonWriter, RefusesWhatIsNoJson) {
  EXPECT_THROW((void)written(std::nan("")), InternalError);
  EXPECT_THROW((void)written(std::numeric_limits<double>::infinity()), InternalError);
  JsonWriter json;
  json.begin_object();
  EXPECT_THROW(json.value(1), InternalError);     // a value without a key
  EXPECT_THROW(json.end_array(), InternalError);  // the wrong bracket
  EXPECT_THROW((void)json.str(), InternalError);  // not finished
  json.key("a");
  EXPECT_THROW(json.end_object(), InternalError);  // a key without a value
  json.value(1).end_object();
  EXPECT_THROW(json.begin_array(), InternalError);  // a second document
  EXPECT_EQ(json.str(), R"({"a":1})");
}

}  // namespace
}  // namespace stagecraft
