// A mapping read key by key.
#include <gtest/gtest.h>

#include "base/yaml.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;

// A text, its root mapping, and what was said about it.
struct Reading {
  explicit Reading(std::string_view text)
      : root(parse_yaml(text, "t.yaml", said).value_or(YamlNode{})),
        map(&root, "", {"t.yaml", 1, 1}, said, &origins) {}

  [[nodiscard]] std::vector<std::string> messages() const {
    std::vector<std::string> lines;
    for (const Diagnostic& item : said.sorted()) lines.push_back(render(item));
    return lines;
  }

  Diagnostics said;
  Origins origins;
  YamlNode root;
  YamlMap map;
};

using Lines = std::vector<std::string>;

TEST(YamlMap, ReadsEveryKindOfValue) {
  Reading in("i: 8\nn: 0.5\nb: true\nt: GPT-3 175B\nd: 1 ms\ns: 16 MiB\nw: 200 Gb/s\nf: 312 TFLOP/s\n");
  EXPECT_EQ(in.map.integer("i"), 8);
  EXPECT_EQ(in.map.number("n"), 0.5);
  EXPECT_TRUE(in.map.boolean("b"));
  EXPECT_EQ(in.map.text("t"), "GPT-3 175B");
  EXPECT_EQ(in.map.duration("d"), 1ms);
  EXPECT_EQ(in.map.bytes("s"), 16_MiB);
  EXPECT_EQ(in.map.bandwidth("w"), 25_GBps);
  EXPECT_EQ(in.map.flop_rate("f"), 312_TFLOPps);
  in.map.finish();
  EXPECT_EQ(in.messages(), Lines{});
}

TEST(YamlMap, FallsBackSilentlyOnlyWhereThereIsAFallback) {
  Reading in("other: 1\n");
  EXPECT_EQ(in.map.integer("i", {.fallback = 4}), 4);
  EXPECT_EQ(in.map.duration("d", 3ms), 3ms);
  EXPECT_EQ(in.map.text("t", "x"), "x");
  EXPECT_EQ(in.messages(), Lines{});
  EXPECT_EQ(in.map.integer("required", {.min = 1}), 1);  // harmless: within its limits
  EXPECT_EQ(in.messages(), Lines{"t.yaml:1:1: error: required: is required, but not given"});
}

TEST(YamlMap, ReadsAListOrOneValueForIt) {
  Reading in("a: [1, 2]\nb: 3\nc: [1 ms, 2 ms]\nd: 4 KiB\ne: [x, y]\nf: [0.5]\n");
  EXPECT_EQ(in.map.integers("a"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(in.map.integers("b"), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(in.map.integers("absent"), std::vector<std::int64_t>{});
  EXPECT_EQ(in.map.integers("absent", {.fallback = 7}), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(in.map.durations("c"), (std::vector<Duration>{1ms, 2ms}));
  EXPECT_EQ(in.map.byte_sizes("d"), (std::vector<Bytes>{4_KiB}));
  EXPECT_EQ(in.map.texts("e"), (Lines{"x", "y"}));
  EXPECT_EQ(in.map.numbers("f"), (std::vector<double>{0.5}));
  EXPECT_EQ(in.messages(), Lines{});
}

TEST(YamlMap, NamesTheEntryOfAListThatIsWrong) {
  Reading in("a: [1, x]\n");
  (void)in.map.integers("a");
  EXPECT_EQ(in.messages(), Lines{"t.yaml:1:8: error: a.1: 'x' is not a whole number"});
}

TEST(YamlMap, AWrongValueReadsAsTheFallback) {
  Reading in("a: x\nb: 400\n");
  EXPECT_EQ(in.map.integer("a", {.min = 1, .fallback = 5}), 5);
  EXPECT_EQ(in.map.bandwidth("b"), Bandwidth(1));  // harmless: one may divide by it
  EXPECT_EQ(in.said.error_count(), 2u);
}

TEST(YamlMap, ReportsWhatNobodyAskedFor) {
  Reading in("nodez: 1\nnodes: 2\nzzz: 3\n");
  (void)in.map.integer("nodes");
  (void)in.map.has("fabric");
  in.map.finish();
  EXPECT_EQ(in.messages(),
            (Lines{"t.yaml:1:1: error: nodez: is not a known key\n  hint: did you mean 'nodes'?",
                   "t.yaml:3:1: error: zzz: is not a known key\n  hint: one of nodes, fabric"}));
}

TEST(YamlMap, KnowsWhatTheFieldCallsAKey) {
  Reading in("tp: 1\nSeq-Length: 2\nvpp: 3\n");
  (void)in.map.integer("tensor", {.fallback = 1});
  (void)in.map.integer("sequence_length", {.fallback = 1});
  in.map.finish();
  EXPECT_EQ(
      in.messages(),
      (Lines{"t.yaml:1:1: error: tp: is not a known key\n  hint: did you mean 'tensor'?",
             "t.yaml:2:1: error: Seq-Length: is not a known key\n  hint: did you mean 'sequence_length'?",
             "t.yaml:3:1: error: vpp: is not a known key\n  hint: one of tensor, sequence_length"}));
}

// A name that is two letters away is no slip where its file gives it as well.
TEST(YamlMap, OffersNoKeyThatIsThere) {
  Reading nodes("nodes: 1\nmodel: 2\n");
  (void)nodes.map.has("model");
  nodes.map.finish();
  EXPECT_TRUE(nodes.map.has_unasked());
  EXPECT_EQ(nodes.messages(), (Lines{"t.yaml:1:1: error: nodes: is not a known key\n  hint: only model"}));
  Reading alone("nodes: 1\n");
  (void)alone.map.has("model");
  alone.map.finish();
  EXPECT_EQ(alone.messages(),
            (Lines{"t.yaml:1:1: error: nodes: is not a known key\n  hint: did you mean 'model'?"}));
}

TEST(PlacesOfKey, ArePathsThatEndInIt) {
  const Lines paths{"model", "parallelism.pipeline", "parallelism.tensor", "overlap.tensor", "schedule"};
  EXPECT_EQ(places_of_key("pp", paths), "did you mean 'parallelism.pipeline'?");
  EXPECT_EQ(places_of_key("Tensor", paths), "did you mean 'parallelism.tensor' or 'overlap.tensor'?");
  EXPECT_EQ(places_of_key("schedule", paths), "did you mean 'schedule' at the top level?");
  EXPECT_EQ(places_of_key("nodes", paths), "");
}

TEST(YamlMap, ReportsAHundredUnknownKeysAndCountsTheRest) {
  std::string text;
  for (int i = 0; i < 150; ++i) text += "key" + std::to_string(i) + ": 1\n";
  Reading in(text);
  in.map.finish();
  EXPECT_EQ(in.said.error_count(), 101u);
  EXPECT_EQ(in.said.items().back().message, "50 more keys are not known");
}

TEST(YamlMap, ReadsSubMappingsWithTheirPaths) {
  Reading in("a:\n  b:\n    c: x\n");
  YamlMap a = in.map.map("a");
  YamlMap b = a.map("b");
  (void)b.integer("c");
  EXPECT_EQ(in.messages(), Lines{"t.yaml:3:8: error: a.b.c: 'x' is not a whole number"});
  EXPECT_FALSE(in.map.map("absent").present());
  EXPECT_EQ(in.map.map("absent").integer("x", {.fallback = 3}), 3);
}

TEST(YamlMap, RemembersWhereEachGivenValueStands) {
  Reading in("a: 1\nb:\n  c: 2\n");
  (void)in.map.integer("a");
  (void)in.map.integer("absent", {.fallback = 1});
  YamlMap b = in.map.map("b");
  (void)b.integer("c");
  EXPECT_EQ(in.origins,
            (Origins{{"a", {"t.yaml", 1, 4}}, {"b", {"t.yaml", 3, 3}}, {"b.c", {"t.yaml", 3, 6}}}));
}

TEST(YamlMap, KnowsItsChoices) {
  const std::vector<std::string> names{"flash", "unfused"};
  Reading in("a: unfused\nb: flsh\nc: eager\n");
  EXPECT_EQ(in.map.choice("a", names), 1u);
  EXPECT_EQ(in.map.choice("absent", names, 1), 1u);
  EXPECT_EQ(in.map.choice("b", names, 1), 1u);
  (void)in.map.choice("c", names);
  EXPECT_EQ(in.messages(),
            (Lines{"t.yaml:2:4: error: b: 'flsh' is not known here\n  hint: did you mean 'flash'?",
                   "t.yaml:3:4: error: c: 'eager' is not known here\n  hint: one of flash, unfused"}));
}

TEST(YamlMap, ReadsAnEnumerationByTheNamesOfItsValues) {
  enum class Attention { kFlash, kUnfused };
  constexpr std::string_view kNames[] = {"flash", "unfused"};
  Reading in("a: unfused\n");
  EXPECT_EQ(in.map.choose<Attention>("a", kNames), Attention::kUnfused);
  EXPECT_EQ(in.map.choose("absent", kNames, Attention::kUnfused), Attention::kUnfused);
  EXPECT_EQ(in.messages(), Lines());
}

TEST(YamlMap, SaysWhereAnAliasedValueComesFrom) {
  Reading in("a: &x fast\nb: *x\n");
  (void)in.map.text("a");
  (void)in.map.integer("b");
  EXPECT_EQ(in.messages(), Lines{"t.yaml:2:4: error: b: 'fast' is not a whole number\n"
                                 "  note: t.yaml:1:4: value defined here"});
}

TEST(YamlMap, LetsTheCallerReportInItsOwnWords) {
  Reading in("pipeline: 7\n");
  (void)in.map.integer("pipeline");
  in.map.error("pipeline", "not-divisible", "7 stages do not divide 96", "6 or 8 would");
  in.map.warning("absent", "no-effect", "has no effect");
  EXPECT_EQ(in.messages(),
            (Lines{"t.yaml:1:1: warning: absent: has no effect",
                   "t.yaml:1:11: error: pipeline: 7 stages do not divide 96\n  hint: 6 or 8 would"}));
}

TEST(YamlMap, OfWhatIsNoMappingBehavesAsEmpty) {
  Reading in("just a text\n");
  EXPECT_FALSE(in.map.present());
  in.map.finish();
  EXPECT_EQ(in.messages(), Lines{"t.yaml:1:1: error: expected a mapping, found 'just a text'"});
}

}  // namespace
}  // namespace stagecraft
