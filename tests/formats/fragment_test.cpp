// What importers write: YAML that reads back as what was meant, whatever stood in the stranger's file.
#include "formats/fragment.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace stagecraft {
namespace {

FragmentEntry entry(std::string key, YamlNode value, std::string comment = {}) {
  return {.key = std::move(key), .value = std::move(value), .comment = std::move(comment)};
}

YamlNode parsed(const std::string& text) {
  Diagnostics diagnostics;
  auto root = parse_yaml(text, "fragment.yaml", diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << text;
  return root.value_or(YamlNode{});
}

TEST(Fragment, SaysOfEveryValueWhereItCameFrom) {
  const Fragment fragment{
      .head = {"two lines of a model"},
      .entries = {{.key = "model",
                   .entries = {entry("layers", fragment_number(2), "num_hidden_layers"),
                               entry("experts", {}, {}),
                               entry("dense", fragment_numbers({0, 1}, {}), "mlp_only_layers"),
                               entry("tied_embeddings", fragment_flag(true))}}},
      .assumed = {"no dropout"},
      .ignored = {"rope_theta: an angle"},
      .missing = {"cluster: {node: …}"}};
  EXPECT_EQ(to_yaml(fragment),
            "# two lines of a model\n"
            "model:\n"
            "  layers: 2  # num_hidden_layers\n"
            "  experts: null\n"
            "  dense: [0, 1]  # mlp_only_layers\n"
            "  tied_embeddings: true\n"
            "#\n# Assumed:\n#   no dropout\n"
            "#\n# Left aside, since it changes neither time nor memory:\n#   rope_theta: an angle\n"
            "#\n# Missing before this is a scenario:\n#   cluster: {node: …}\n");
}

TEST(Fragment, ReadsBackAsTheTreeThatItGives) {
  const std::vector<FragmentEntry> entries = {
      entry("name", fragment_text("a \"name\"")),
      {.key = "model", .entries = {entry("layers", fragment_number(2))}}};
  const YamlNode read = parsed(to_yaml({.entries = entries}));
  const YamlNode made = to_tree(entries, {"config.json", 1, 1});
  EXPECT_EQ(read.find("name")->text, made.find("name")->text);
  EXPECT_EQ(read.find("model")->find("layers")->text, "2");
  EXPECT_EQ(made.find("model")->find("layers")->text, "2");
  EXPECT_EQ(made.where, (SourceLocation{"config.json", 1, 1}));
}

// A text of the stranger's file can neither become a key of ours nor an escape sequence on a terminal.
TEST(Fragment, KeepsEveryTextInsideItsLine) {
  const std::string evil = "x\ncluster: {nodes: 9}\x1b[2J";
  const std::string text = to_yaml({.head = {evil},
                                    .entries = {entry("name", fragment_text(evil), evil)},
                                    .assumed = {evil},
                                    .ignored = {evil},
                                    .missing = {evil}});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  const YamlNode root = parsed(text);
  ASSERT_EQ(root.entries.size(), 1u);
  EXPECT_EQ(root.find("name")->text, "x?cluster: {nodes: 9}?[2J");
}

// Found by fuzz_megatron: an unknown flag with the byte 0xf4 in it, repeated in a comment.
TEST(Fragment, PutsAMarkWhereBytesAreNoUtf8) {
  const std::string torn = "--pre-sof\xf4max \xc3\xa9";
  const YamlNode root =
      parsed(to_yaml({.entries = {entry("name", fragment_text(torn), torn)}, .ignored = {torn}}));
  EXPECT_EQ(root.find("name")->text, "--pre-sof?max \xc3\xa9");
}

TEST(Fragment, QuotesWordsThatYamlWouldReadAsSomethingElse) {
  EXPECT_FALSE(fragment_text("deepseek_v3").quoted);
  for (const char* word : {"true", "No", "null", "1e3", "", "-", "a b", "a: b", "#", "é"})
    EXPECT_TRUE(fragment_text(word).quoted) << word;
}

TEST(Fragment, CountsParametersForPeople) {
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(124'439'808), "124.4 M");
  EXPECT_EQ(human_count(999'949'999), "999.9 M");
  EXPECT_EQ(human_count(999'950'000), "1.0 B");
  EXPECT_EQ(human_count(671'026'404'352), "671.0 B");
}

}  // namespace
}  // namespace stagecraft
