#include "base/text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/check.hpp"
#include "base/utf8.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("nodes", "nodes"), 0u);
  EXPECT_EQ(edit_distance("nodez", "nodes"), 1u);
  EXPECT_EQ(edit_distance("node", "nodes"), 1u);
  EXPECT_EQ(edit_distance("ndoes", "nodes"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(EditDistance, DoesNotSeeUpperCase) {
  EXPECT_EQ(edit_distance("GPipe", "gpipe"), 0u);
}

// Property: symmetric, and between the difference of the lengths and the longer length.
TEST(EditDistance, IsSymmetricAndBounded) {
  std::mt19937 random(1);
  const auto word = [&] {
    std::string text(random() % 7, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string a = word(), b = word();
    SCOPED_TRACE(a + "|" + b);
    const std::size_t shorter = std::min(a.size(), b.size()), longer = std::max(a.size(), b.size());
    EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
    EXPECT_GE(edit_distance(a, b), longer - shorter);
    EXPECT_LE(edit_distance(a, b), longer);
  }
}

const std::vector<std::string> kNames{"nodes", "node", "tp", "fabric"};

TEST(NearestName, IsTheClosestWithinTwoEdits) {
  EXPECT_EQ(nearest_name("nodez", kNames), "nodes");
  EXPECT_EQ(nearest_name("fabrik", kNames), "fabric");
  EXPECT_EQ(nearest_name("fabbrik", kNames), "fabric");
  EXPECT_EQ(nearest_name("network", kNames), std::nullopt);
}

TEST(NearestName, OfAShortWordIsWithinOneEdit) {
  EXPECT_EQ(nearest_name("tq", kNames), "tp");
  EXPECT_EQ(nearest_name("xy", kNames), std::nullopt);
}

TEST(NearestName, IsTheFirstOnATie) {
  EXPECT_EQ(nearest_name("nodex", kNames), "nodes");
}

TEST(Suggest, NamesTheNearestOrListsAFewOrSaysNothing) {
  EXPECT_EQ(suggest("nodez", kNames), "did you mean 'nodes'?");
  EXPECT_EQ(suggest("network", kNames), "one of nodes, node, tp, fabric");
  EXPECT_EQ(suggest("network", kNames, 3), "");
  EXPECT_EQ(suggest("network", {}), "");
  const std::vector<std::string> nodes{"dgx-h100", "dgx-a100-40gb", "dgx-a100-80gb", "dgx-a1000"};
  EXPECT_EQ(suggest("dgx-a100", nodes), "did you mean 'dgx-a100-40gb' or 'dgx-a100-80gb'?");
  EXPECT_EQ(suggest("h100", nodes), "did you mean 'dgx-h100'?");
  EXPECT_EQ(suggest("100", nodes), "one of dgx-h100, dgx-a100-40gb, dgx-a100-80gb, dgx-a1000");
  EXPECT_EQ(suggest("dgx", nodes), "one of dgx-h100, dgx-a100-40gb, dgx-a100-80gb, dgx-a1000");  // too many
}

TEST(ShellQuoted, IsTheWordThatAShellReadsBack) {
  EXPECT_EQ(shell_quoted("a/b-1.yaml"), "a/b-1.yaml");
  EXPECT_EQ(shell_quoted("parallelism.tensor=4"), "parallelism.tensor=4");
  EXPECT_EQ(shell_quoted("my rows.jsonl"), "'my rows.jsonl'");
  EXPECT_EQ(shell_quoted("model={layers: 4}"), "'model={layers: 4}'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

TEST(Counted, HasTheNounInItsNumber) {
  EXPECT_EQ(counted(1, "micro-batch"), "1 micro-batch");
  EXPECT_EQ(counted(0, "micro-batch"), "0 micro-batches");
  EXPECT_EQ(counted(8, "stage"), "8 stages");
  EXPECT_EQ(counted_thousands(1024, "GPU"), "1,024 GPUs");
  EXPECT_EQ(counted_thousands(1, "GPU"), "1 GPU");
  EXPECT_EQ(plural(2, "switch"), "switches");
}

TEST(Trimmed, LosesBlanksAtEitherEnd) {
  EXPECT_EQ(trimmed(" \ta b\t "), "a b");
  EXPECT_EQ(trimmed(" \ta", " "), "\ta");
  EXPECT_EQ(trimmed(" \t"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Split, HasOnePartMoreThanSeparators) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("a,b c", ','), (Parts{"a", "b c"}));
  EXPECT_EQ(split(",a,", ','), (Parts{"", "a", ""}));
  EXPECT_EQ(split("", ','), (Parts{""}));
}

TEST(MarkdownCell, IsNotEndedByABar) {
  EXPECT_EQ(markdown_cell("text|csv|"), "text\\|csv\\|");
}

TEST(InQuotes, CutsWhatIsLongButNeverInsideACharacter) {
  EXPECT_EQ(in_quotes("400"), "'400'");
  EXPECT_EQ(in_quotes(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(in_quotes(std::string(61, 'x')), "'" + std::string(60, 'x') + "…'");
  EXPECT_EQ(in_quotes(std::string(59, 'x') + "éé"), "'" + std::string(59, 'x') + "é…'");
}

TEST(Human, TimesHaveThreeDigitsAndAUnitThatFits) {
  EXPECT_EQ(human(Duration(0)), "0 s");
  EXPECT_EQ(human(Duration(999)), "999 ns");
  EXPECT_EQ(human(Duration(1'250)), "1.25 us");
  EXPECT_EQ(human(Duration(314'000'000)), "314 ms");
  EXPECT_EQ(human(Duration(999'600'000)), "1.00 s");  // not "1000 ms"
  EXPECT_EQ(human(Duration(10'000'000'000)), "10.0 s");
  EXPECT_EQ(human(std::chrono::minutes(20)), "20.0 min");
  EXPECT_EQ(human(std::chrono::hours(12)), "12.0 h");
  EXPECT_EQ(human(std::chrono::hours(720)), "30.0 days");
  EXPECT_EQ(human(Duration(-1'500'000)), "-1.50 ms");
}

TEST(Human, BytesAreBinary) {
  EXPECT_EQ(human(Bytes(0)), "0 B");
  EXPECT_EQ(human(Bytes(1023)), "1023 B");
  EXPECT_EQ(human(1536_KiB), "1.50 MiB");
  EXPECT_EQ(human(Bytes(77'738'907'238)), "72.4 GiB");  // 72.4 * 2^30
  EXPECT_EQ(human(1000_GiB), "1000 GiB");
}

TEST(Human, RatesDropZeros) {
  EXPECT_EQ(human(50_GBps), "50 GB/s");
  EXPECT_EQ(human(12.5_GBps), "12.5 GB/s");
  EXPECT_EQ(human(312_TFLOPps), "312 TFLOP/s");
  EXPECT_EQ(human(FlopRate(0)), "0 FLOP/s");
  EXPECT_EQ(human(Flops(4.5e21)), "4.5 ZFLOP");
}

TEST(Human, SharesAndCounts) {
  EXPECT_EQ(percent(0.375), "37.5 %");
  EXPECT_EQ(percent(0.5, 0), "50 %");
  EXPECT_EQ(with_thousands(314573), "314,573");
  EXPECT_EQ(with_thousands(-1000), "-1,000");
  EXPECT_EQ(mean_count(0.25), "0.25");
  EXPECT_EQ(mean_count(999.4), "999");
  EXPECT_EQ(mean_count(999.6), "1,000");
  EXPECT_EQ(mean_count(1083209.6), "1,083,210");
  EXPECT_EQ(four_digits(1.0 / 3), "0.3333");
  EXPECT_EQ(four_digits(9999.4), "9999");
  EXPECT_EQ(four_digits(9999.6), "10,000");
  EXPECT_EQ(four_digits(16077.9), "16,078");
  EXPECT_EQ(four_digits(1e18), "1e+18");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(TextTable, LinesUpByCharactersNotBytes) {
  TextTable table({Align::kLeft, Align::kRight});
  table.row({"schedule", "bubble"});
  table.row({"π", "37.5 %"});
  table.row({"1f1b", "1"});
  EXPECT_EQ(table.str(),
            "schedule  bubble\n"
            "π         37.5 %\n"
            "1f1b           1\n");
}

TEST(TextTable, LeavesNoBlanksAtTheEnd) {
  TextTable table({Align::kLeft, Align::kLeft});
  table.row({"a", "bb"});
  table.row({"aa", ""});
  EXPECT_EQ(table.str(2), "  a   bb\n  aa\n");
}

TEST(TextTable, RefusesARowOfAnotherLength) {
  TextTable table({Align::kLeft});
  EXPECT_THROW(table.row({"a", "b"}), InternalError);
}

TEST(Utf8, KnowsWhatIsNoCharacter) {
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length("é"), 2u);
  EXPECT_EQ(utf8_length("€"), 3u);
  EXPECT_EQ(utf8_length("😀"), 4u);
  EXPECT_EQ(utf8_length(""), 0u);
  EXPECT_EQ(utf8_length("\x80"), 0u);              // a continuation alone
  EXPECT_EQ(utf8_length("\xc3"), 0u);              // cut short
  EXPECT_EQ(utf8_length("\xc0\xaf"), 0u);          // overlong
  EXPECT_EQ(utf8_length("\xe0\x80\xaf"), 0u);      // overlong
  EXPECT_EQ(utf8_length("\xed\xa0\x80"), 0u);      // a surrogate
  EXPECT_EQ(utf8_length("\xf4\x90\x80\x80"), 0u);  // beyond U+10FFFF
}

TEST(Printable, ShowsControlCharactersAndMarksOfDirectionAsEscapes) {
  EXPECT_EQ(printable("a\n\x1b[31m\tb\x7f"), "a\\n\\x1b[31m\\x09b\\x7f");
  EXPECT_EQ(printable("4 × π"), "4 × π");
  EXPECT_EQ(printable("a\u202eb\u2066\u200f\xc2\x9b"), "a\\u202eb\\u2066\\u200f\\u009b");
  EXPECT_EQ(printable("\u2065… \xe2\x80"), "\u2065… \xe2\x80") << "neither, and no character";
}

}  // namespace
}  // namespace stagecraft
