// From a text to a tree, and what never becomes one.
#include "base/yaml.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

YamlNode parsed(std::string_view text) {
  Diagnostics diagnostics;
  auto root = parse_yaml(text, "t.yaml", diagnostics);
  EXPECT_EQ(diagnostics.items(), std::vector<Diagnostic>{}) << text;
  return root.value_or(YamlNode{});
}

// The code of the first mistake, or "" when there is none.
std::string mistake_in(std::string_view text) {
  Diagnostics diagnostics;
  const bool read = parse_yaml(text, "t.yaml", diagnostics).has_value();
  EXPECT_NE(read, diagnostics.has_errors()) << text.substr(0, 200);
  return diagnostics.items().empty() ? "" : diagnostics.items()[0].code;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Yaml, KeepsOrderTextAndQuotes) {
  const YamlNode root = parsed("b: 8\na: \"8\"\nc: [x, ~]\n");
  ASSERT_EQ(root.entries.size(), 3u);
  EXPECT_EQ(root.entries[0].key, "b");
  EXPECT_FALSE(root.find("b")->quoted);
  EXPECT_TRUE(root.find("a")->quoted);
  EXPECT_EQ(root.find("c")->items[0].text, "x");
  EXPECT_EQ(root.find("c")->items[1].kind, YamlNode::Kind::kNull);
  EXPECT_EQ(root.find("d"), nullptr);
}

TEST(Yaml, CountsLinesAndColumnsFromOne) {
  const YamlNode root = parsed("a: 1\nb:\n  c: [10, 20]\n");
  EXPECT_EQ(root.entries[1].where, (SourceLocation{"t.yaml", 2, 1}));
  EXPECT_EQ(root.find("b")->find("c")->items[1].where, (SourceLocation{"t.yaml", 3, 11}));
}

TEST(Yaml, ReadsWindowsLineEndsAndByteOrderMark) {
  const YamlNode root = parsed(
      "\xef\xbb\xbf"
      "a: 1\r\nb: 2\r\n");
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_EQ(root.find("b")->where, (SourceLocation{"t.yaml", 2, 4}));
}

TEST(Yaml, ReadsJson) {
  EXPECT_EQ(parsed("{\"a\": {\"b\": [1, 2]}}").find("a")->find("b")->items[1].text, "2");
}

// Python's json writes U+1F680 so.
TEST(Yaml, ReadsCharactersThatJsonWritesAsTwoEscapes) {
  const YamlNode root = parsed("{\"name\": \"run \\ud83d\\ude80\",\n \"b\": [1, null]}");
  EXPECT_EQ(root.find("name")->text, "run \xf0\x9f\x9a\x80");
  EXPECT_TRUE(root.find("name")->quoted);
  EXPECT_EQ(root.find("b")->where, (SourceLocation{"t.yaml", 2, 7}));
  EXPECT_EQ(root.find("b")->items[1].kind, YamlNode::Kind::kNull);
  EXPECT_EQ(parsed("\"\\ud83d\\ude80\"").text, "\xf0\x9f\x9a\x80");
}

TEST(Yaml, RefusesHalfACharacter) {
  for (const char* text : {"{\"name\": \"\\ud83d\"}", "{\"name\": \"\\ude80\\ud83d\"}",
                           "name: \"\\ud83d\\ude80\"", "{\"a\": 1, \"a\": 2, \"b\": \"\\ud83d\\ude80\"}"}) {
    SCOPED_TRACE(text);
    EXPECT_NE(mistake_in(text), "");
  }
  Diagnostics diagnostics;
  EXPECT_FALSE(parse_yaml("name: \"\\ud83d\"", "t.yaml", diagnostics).has_value());
  EXPECT_EQ(diagnostics.items().at(0).message, "the escape that ends here stands for no character");
}

TEST(Yaml, AnAliasStandsWhereItIsWrittenAndRemembersItsValue) {
  const YamlNode root = parsed("a: &n {x: 1}\nb: *n\n");
  const YamlNode& alias = *root.find("b");
  EXPECT_EQ(alias.where, (SourceLocation{"t.yaml", 2, 4}));
  EXPECT_EQ(alias.defined_at, (SourceLocation{"t.yaml", 1, 4}));
  EXPECT_EQ(alias.find("x")->text, "1");
  EXPECT_EQ(root.find("a")->defined_at, std::nullopt);
}

TEST(Yaml, StopsAnAliasBombWhileItGrows) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i <= 20; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before +
            repeated(", " + before, 9) + "]\n";
  }
  EXPECT_EQ(mistake_in(bomb), "too-many-values");
}

TEST(Yaml, StopsABombMadeOfOneLongText) {
  EXPECT_EQ(mistake_in("a: &a " + std::string(1 << 20, 'x') + "\nb: [*a" + repeated(", *a", 100) + "]\n"),
            "too-many-values");
}

TEST(Yaml, RefusesAnAliasInsideItsOwnValue) {
  EXPECT_EQ(mistake_in("a: &a [*a]\n"), "alias-loop");
}

// The first of two values stays, and a value without its tag; what a merge key would bring is not there.
TEST(Yaml, KeepsAFlawedTreeForWhatElseIsWrongInIt) {
  Diagnostics diagnostics;
  const auto tree = parse_flawed_yaml("a: 1\na: 2\nb: !half 3\n", "t.yaml", diagnostics);
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->find("a")->text, "1");
  EXPECT_EQ(tree->find("b")->text, "3");
  EXPECT_EQ(diagnostics.items().size(), 2u);
  EXPECT_FALSE(parse_yaml("a: 1\na: 2\n", "t.yaml", diagnostics).has_value());
  EXPECT_FALSE(parse_flawed_yaml("x: &x {a: 1}\n<<: *x\n", "t.yaml", diagnostics).has_value());
  EXPECT_FALSE(parse_flawed_yaml("a: [1\n", "t.yaml", diagnostics).has_value());
}

TEST(Yaml, NestsAsDeepAsTheLimitAndNoDeeper) {
  const auto lists = [](int depth) { return repeated("[", depth) + repeated("]", depth); };
  EXPECT_EQ(mistake_in(lists(kMaxYamlDepth)), "");
  EXPECT_EQ(mistake_in(lists(kMaxYamlDepth + 1)), "too-deep");
}

TEST(Yaml, SurvivesBottomlessNestingOfEveryKind) {
  for (const char* opening : {"[", "{", "{a: ", "- ", "? ", "[a: ", "&a [", "[[]", "\"", "!"}) {
    EXPECT_NE(mistake_in(repeated(opening, 200'000)), "") << opening;
  }
  std::string stairs;
  for (int i = 0; i < 500; ++i) stairs += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_EQ(mistake_in(stairs), "too-deep");
}

TEST(Yaml, CountsTheDepthOfWhatAnAliasBringsAlong) {
  std::string chain = "- &a0 [x]\n";
  for (int i = 1; i < 100; ++i) chain += "- &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  EXPECT_EQ(mistake_in(chain), "too-deep");
}

TEST(Yaml, RefusesWhatIsNoText) {
  EXPECT_EQ(mistake_in(std::string_view("a: \0", 4)), "not-text");
  EXPECT_EQ(mistake_in("a: 1\n\x04"
                       "b: 2\n"),
            "not-text");  // yaml-cpp takes it for the end of the file
  EXPECT_EQ(mistake_in("\x7f"
                       "ELF"),
            "not-text");
  EXPECT_EQ(mistake_in("a: \xff\n"), "not-utf8");
  EXPECT_EQ(mistake_in(std::string_view("\xff\xfe"
                                        "a\0:\0",
                                        6)),
            "not-utf8");  // UTF-16
  EXPECT_EQ(mistake_in("a: \"x\\0y\"\n"), "not-text");
}

TEST(Yaml, SeesWhetherAQuoteIsClosed) {
  EXPECT_EQ(parsed("a: &x 'it''s'\n").find("a")->text, "it's");
  EXPECT_EQ(parsed("a: \"x\\\"\"\n").find("a")->text, "x\"");
  EXPECT_EQ(mistake_in("a: 'it''s\n"), "yaml-syntax");  // yaml-cpp closes it at the end of the file
  EXPECT_EQ(mistake_in("a: &x \"x\\\"\n"), "yaml-syntax");
}

TEST(Yaml, ReportsAtMostAHundredMistakes) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parse_yaml(repeated("a: 1\n", 1000), "t.yaml", diagnostics).has_value());
  EXPECT_EQ(diagnostics.error_count(), 101u);
  EXPECT_EQ(diagnostics.items().back().code, "too-many-errors");
}

// Property: any rubbish made of YAML's own characters gives a tree or a message, never both and never an
// exception.
TEST(Yaml, TakesAnyRubbish) {
  constexpr std::string_view kAlphabet = "ab:-? []{}&*!|>'\"%#,\n\n  \t~<1.\\";
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random() % 40, ' ');
    for (char& c : text) c = kAlphabet[random() % kAlphabet.size()];
    (void)mistake_in(text);
  }
}

class YamlFile : public testing::Test {
 protected:
  YamlFile() : folder_(fs::path(testing::TempDir()) / ("stagecraft_yaml_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~YamlFile() override { fs::remove_all(folder_); }

  fs::path write(const char* name, std::string_view text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  static Diagnostic mistake_of(const fs::path& file) {
    Diagnostics diagnostics;
    EXPECT_FALSE(load_yaml_file(file, diagnostics).has_value());
    return diagnostics.items().empty() ? Diagnostic{} : diagnostics.items()[0];
  }

  fs::path folder_;
};

TEST_F(YamlFile, IsNamedInEveryPlace) {
  Diagnostics diagnostics;
  const fs::path file = write("a.yaml", "a: 1\n");
  const auto root = load_yaml_file(file, diagnostics);
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(root->find("a")->where, (SourceLocation{file.string(), 1, 4}));
}

TEST_F(YamlFile, ThatIsMissingSuggestsItsNeighbour) {
  const fs::path there = write("gpt3-175b.yaml", "a: 1\n");
  const Diagnostic mistake = mistake_of(folder_ / "gpt3-175.yaml");
  EXPECT_EQ(mistake.code, "no-such-file");
  EXPECT_EQ(mistake.hint, "did you mean '" + there.string() + "'?");
  EXPECT_EQ(mistake_of(folder_ / "gpt3-175b").hint, "did you mean '" + there.string() + "'?");
  EXPECT_EQ(mistake_of(folder_ / "sub" / "a.yaml").hint,
            "the folder '" + (folder_ / "sub").string() + "' does not exist");
}

TEST_F(YamlFile, ThatIsADirectoryIsSaidToBeOne) {
  EXPECT_EQ(mistake_of(folder_).code, "is-a-directory");
}

TEST_F(YamlFile, ThatCannotBeOpenedSaysWhy) {
  const Diagnostic mistake = mistake_of(folder_ / std::string(5000, 'x'));
  EXPECT_EQ(mistake.code, "unreadable-file");
  EXPECT_EQ(mistake.message, "cannot be read: File name too long");
}

TEST_F(YamlFile, ThatIsHugeIsRefusedUnread) {
  const fs::path file = write("huge.yaml", "a: 1\n");
  fs::resize_file(file, std::uintmax_t{1} << 30);  // a hole: no disk is used
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(mistake_of(file).code, "file-too-large");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
}

TEST_F(YamlFile, ThatNeverEndsIsRefused) {
  EXPECT_EQ(mistake_of("/dev/zero").code, "file-too-large");
}

TEST_F(YamlFile, ThatIsEmptyIsRefused) {
  EXPECT_EQ(mistake_of(write("empty.yaml", "")).code, "empty-file");
  EXPECT_EQ(mistake_of("/dev/null").code, "empty-file");
}

// The value at a path after one --set, or the code of the mistake.
std::string after(std::string_view text, const std::string& assignment,
                  const std::vector<const char*>& keys) {
  YamlNode root = parsed(text);
  Diagnostics diagnostics;
  apply_override(root, assignment, diagnostics);
  if (!diagnostics.items().empty()) return render(diagnostics.items()[0]);
  const YamlNode* at = &root;
  for (const char* key : keys) {
    const bool list = at->kind == YamlNode::Kind::kSequence;
    at = list ? &at->items.at(static_cast<std::size_t>(*parse_integer(key))) : at->find(key);
    if (at == nullptr) return "absent";
  }
  EXPECT_EQ(at->where, (SourceLocation{"--set " + assignment, 0, 0}));
  return at->text;
}

TEST(Override, ReplacesMakesAndReachesIntoLists) {
  EXPECT_EQ(after("a: {b: 1}", "a.b=2", {"a", "b"}), "2");
  EXPECT_EQ(after("a: {b: 1}", "c.d.e=4", {"c", "d", "e"}), "4");
  EXPECT_EQ(after("a:", "a.b=4", {"a", "b"}), "4");
  EXPECT_EQ(after("a: x", "a={name: y}", {"a", "name"}), "y");
  EXPECT_EQ(after("n: [{c: 1}, {c: 2}]", "n.1.c=8", {"n", "1", "c"}), "8");
  EXPECT_EQ(after("a: 1", "a=[1, 2]", {"a", "1"}), "2");
  EXPECT_EQ(after("a: 1", "a=x=y", {"a"}), "x=y");
}

TEST(Override, NullTakesKeyAway) {
  EXPECT_EQ(after("a: {b: 1, c: 2}", "a.b=null", {"a", "b"}), "absent");
  EXPECT_EQ(after("a: 1", "b.c=null", {"b"}), "absent");
  EXPECT_EQ(after("a: [{b: 1}, {b: 2, c: 3}]", "a.1.b=null", {"a", "1", "b"}), "absent");
  EXPECT_EQ(
      after("a: [{b: 1}]", "a.1.b=null", {}),
      "--set a.1.b=null: error: a: is a list of 1: there is no entry '1'\n  hint: entries count from 0");
  EXPECT_EQ(after("a: [1]", "a.0=null", {}),
            "--set a.0=null: error: a.0: nothing can be taken out of a list\n  hint: give the whole list");
}

TEST(Override, SaysWhatIsWrongWithIt) {
  EXPECT_EQ(after("a: 1", "a", {}), "--set a: error: there is no '=' in it\n  hint: write path.to.key=value");
  EXPECT_EQ(after("a: x", "a.b=1", {}), "--set a.b=1: error: a: is no mapping: it is 'x'");
  EXPECT_EQ(after("a: [1]", "a.1=2", {}),
            "--set a.1=2: error: a: is a list of 1: there is no entry '1'\n  hint: entries count from 0");
  EXPECT_EQ(
      after("a: {b: [{c: 1}, {c: 2}]}", "a.b.c=2", {}),
      "--set a.b.c=2: error: a.b: is a list of 2: there is no entry 'c'\n  hint: say of which entry: a.b.0.c "
      "is the first one's");
  EXPECT_EQ(after("a: 1", "a..b=2", {}),
            "--set a..b=2: error: a..b: the path has an empty key\n  hint: write path.to.key=value");
  EXPECT_EQ(after("a: 1", "a=", {}),
            "--set a=: error: a: there is no value after '='\n  hint: null takes a value away, \"\" is the "
            "empty text");
  EXPECT_EQ(after("a: 1", "a=\"x", {}),
            "--set a=\"x: error: a: the text ends inside a quoted value\n  hint: close the quote");
  EXPECT_EQ(after("a: 1", "a={b: 4", {}),
            "--set a={b: 4: error: a: this '{' is never closed\n  hint: add the '}'");
  EXPECT_EQ(after("a: 1", "a=[b, c", {}),
            "--set a=[b, c: error: a: this '[' is never closed\n  hint: add the ']'");
}

TEST(Override, LeavesTheTreeAloneWhenItCannotBeRead) {
  YamlNode root = parsed("a: 1");
  Diagnostics diagnostics;
  apply_override(root, "a=[1", diagnostics);
  EXPECT_EQ(root.find("a")->text, "1");
}

}  // namespace
}  // namespace stagecraft
