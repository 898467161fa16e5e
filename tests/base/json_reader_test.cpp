// JSON as other programs write it, and what is no JSON.
#include "base/json_reader.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace stagecraft {
namespace {

YamlNode parsed(std::string_view text) {
  Diagnostics diagnostics;
  auto root = parse_json(text, "t.json", diagnostics);
  EXPECT_EQ(diagnostics.items(), std::vector<Diagnostic>{}) << text;
  return root.value_or(YamlNode{});
}

// The first mistake as the user reads it; "" when there is none.
std::string mistake_in(std::string_view text) {
  Diagnostics diagnostics;
  const bool read = parse_json(text, "t.json", diagnostics).has_value();
  EXPECT_NE(read, diagnostics.has_errors()) << text.substr(0, 200);
  return diagnostics.items().empty() ? "" : render(diagnostics.items()[0]);
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(JsonReader, GivesTheTreeThatYamlGives) {
  const YamlNode root = parsed(R"({"b": 8, "a": "8", "c": [true, null, 1e-05], "d": {}, "e": []})");
  ASSERT_EQ(root.entries.size(), 5u);
  EXPECT_EQ(root.entries[0].key, "b");
  EXPECT_EQ(root.find("b")->text, "8");
  EXPECT_FALSE(root.find("b")->quoted);
  EXPECT_TRUE(root.find("a")->quoted);
  EXPECT_EQ(root.find("c")->items[0].text, "true");
  EXPECT_EQ(root.find("c")->items[1].kind, YamlNode::Kind::kNull);
  EXPECT_EQ(root.find("c")->items[2].text, "1e-05");
  EXPECT_EQ(root.find("d")->kind, YamlNode::Kind::kMap);
  EXPECT_EQ(root.find("e")->kind, YamlNode::Kind::kSequence);
}

TEST(JsonReader, CountsLinesAndColumnsFromOne) {
  const YamlNode root = parsed("{\n\t\"a\": 1,\r\n  \"b\":\n    [10, 20]}\n");
  EXPECT_EQ(root.entries[0].where, (SourceLocation{"t.json", 2, 2}));
  EXPECT_EQ(root.entries[1].where, (SourceLocation{"t.json", 3, 3}));
  EXPECT_EQ(root.find("b")->items[1].where, (SourceLocation{"t.json", 4, 10}));
}

TEST(JsonReader, TakesWhatProgramsPutAroundJson) {
  EXPECT_EQ(parsed("\xef\xbb\xbf{\"a\":1}\r\n").find("a")->text, "1");
  EXPECT_EQ(parsed("\t[Infinity, -Infinity, NaN]").items[1].text, "-Infinity");
}

TEST(JsonReader, ReadsEscapesToUtf8) {
  EXPECT_EQ(parsed(R"("\"\\\/\b\f\n\r\t")").text, "\"\\/\b\f\n\r\t");
  EXPECT_EQ(parsed(R"("\u0041\u00e9\u20AC\ud83d\ude00")").text, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(parsed("\"\xc3\xa9\"").text, "\xc3\xa9");
}

TEST(JsonReader, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(mistake_in(""), "t.json:1:1: error: the file is empty");
  EXPECT_EQ(mistake_in("{\"a\": 1,\n \"a\": 2}"),
            "t.json:2:2: error: a: is given twice\n  note: t.json:1:2: first given here\n  hint: keep one of "
            "the two");
  EXPECT_EQ(
      mistake_in("{\"a\": 1,\n}"),
      "t.json:2:1: error: expected a key in double quotes, found '}'\n  hint: remove the comma before it");
  EXPECT_EQ(mistake_in("[1,]"),
            "t.json:1:4: error: expected a value, found ']'\n  hint: remove the comma before it");
  EXPECT_EQ(mistake_in("{\"a\": 1 \"b\": 2}"), "t.json:1:9: error: expected ',' or '}', found '\"'");
  EXPECT_EQ(mistake_in("{\"a\" 1}"), "t.json:1:6: error: expected ':' after the key 'a', found '1'");
  EXPECT_EQ(mistake_in("{\"a\": True}"),
            "t.json:1:7: error: 'True' is no JSON value\n  hint: JSON writes true, false and null");
  EXPECT_EQ(mistake_in("[silu]"),
            "t.json:1:2: error: 'silu' is no JSON value\n  hint: text stands in double quotes");
  EXPECT_EQ(mistake_in("{\n\"a\": [1"), "t.json:2:6: error: this '[' is never closed\n  hint: add the ']'");
  EXPECT_EQ(mistake_in("{\"a\": 1"), "t.json:1:1: error: this '{' is never closed\n  hint: add the '}'");
  EXPECT_EQ(mistake_in("[\"a"),
            "t.json:1:2: error: the text ends inside a quoted value\n  hint: close the quote");
  EXPECT_EQ(mistake_in("[\"a\n\"]"),
            "t.json:1:2: error: the line ends inside a quoted value\n  hint: close the quote");
  EXPECT_EQ(mistake_in("{} x"), "t.json:1:4: error: 'x' stands after the end of the document");
  EXPECT_EQ(mistake_in("{} // done"), "t.json:1:4: error: JSON has no comments\n  hint: remove it");
  EXPECT_EQ(
      mistake_in("[\"\\ud83d\"]"),
      "t.json:1:3: error: half of a surrogate pair\n  hint: a character beyond U+FFFF takes two \\u escapes");
  EXPECT_EQ(mistake_in("[\"\\u0000\"]"), "t.json:1:3: error: a text cannot hold the character \\0");
  EXPECT_EQ(mistake_in("[\"\xff\"]"),
            "t.json:1:3: error: byte 0xff is not UTF-8\n  hint: save the file as UTF-8 text");
  EXPECT_EQ(mistake_in("[\xff]"), "t.json:1:2: error: expected a value, found byte 0xff, which is not UTF-8");
  EXPECT_EQ(
      mistake_in(std::string_view("\x1f\x8b\x08\x00", 4)),
      "t.json: error: is compressed with gzip, which is not read\n  hint: gunzip -c FILE | stagecraft … -");
}

TEST(JsonReader, RefusesNumbersThatJsonDoesNotHave) {
  for (const char* word : {"01", "+1", ".5", "1.", "1e", "0x10", "1_000", "--1", "-"})
    EXPECT_NE(mistake_in(word), "") << word;
  for (const char* word : {"0", "-0", "0.5", "1E+10", "1e-05", "123456789012345678901234567890"})
    EXPECT_EQ(parsed(word).text, word);
}

TEST(JsonReader, StaysWithinItsLimits) {
  EXPECT_EQ(mistake_in(repeated("[", kMaxYamlDepth) + repeated("]", kMaxYamlDepth)), "");
  EXPECT_EQ(mistake_in(repeated("[", 1'000'000)), "t.json:1:65: error: values are nested deeper than 64");
  EXPECT_EQ(mistake_in("[" + repeated("0,", kMaxYamlNodes) + "0]"),
            "t.json:1:2000000: error: more than 1000000 values");
  EXPECT_NE(mistake_in("{" + repeated("\"a\":1,", 1000) + "\"a\":1}"), "");
}

// Property: what nlohmann-json takes is taken, and nothing else; duplicate keys are refused by us alone. The
// seed has no exponent of two digits: a number beyond a double is kept as text here, and refused there.
TEST(JsonReader, TakesWhatAnotherReaderTakes) {
  const std::string seed =
      R"({"layers": 32, "eps": 1e-5, "x": [null, true, "\u00e9\n"], "y": {"z": -0.5}, "s": "a\\b"})";
  constexpr std::string_view kBytes = "{}[]\",:\\ \t\n019.eE+-utrflna#/\x01\xc3\xa9\xff";
  std::mt19937 random(1);
  int taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seed;
    for (unsigned change = 0; change <= random() % 3; ++change)
      text[random() % text.size()] = kBytes[random() % kBytes.size()];
    Diagnostics diagnostics;
    const bool ours = parse_json(text, "t.json", diagnostics).has_value();
    const bool duplicate = !ours && diagnostics.items().front().code == "duplicate-key";
    if (duplicate) continue;
    EXPECT_EQ(ours, nlohmann::json::accept(text)) << text;
    taken += ours;
  }
  EXPECT_GT(taken, 1000);  // neither all nor nothing
}

}  // namespace
}  // namespace stagecraft
