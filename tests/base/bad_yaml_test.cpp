// Error messages are goldens: bad_yaml/NAME.yaml and, beside it, what is said about it, word by word.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/yaml.hpp"
#include "tests/file_content.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// The keys that these files may use, one of each kind.
void read(YamlMap in) {
  const std::vector<std::string> schedules{"gpipe", "1f1b", "interleaved-1f1b"};
  (void)in.integer("stagecraft", {.min = 1, .max = 1});
  (void)in.integer("tensor", {.min = 1, .max = 64, .fallback = 1});
  (void)in.number("share", {.min = 0, .max = 1, .fallback = 0});
  (void)in.boolean("sequence_parallel", false);
  (void)in.text("name", "");
  (void)in.choice("schedule", schedules, 0);
  (void)in.duration("latency", Duration::zero());
  (void)in.bytes("memory", Bytes(0));
  (void)in.bandwidth("bandwidth", Bandwidth(1));
  (void)in.flop_rate("peak", FlopRate(1));
  (void)in.integers("stage_layers");
  YamlMap cluster = in.map("cluster");
  (void)cluster.integer("nodes", {.min = 1, .fallback = 1});
  (void)cluster.text("fabric", "");
  cluster.finish();
  in.finish();
}

std::string said_about(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string text = content_of(file);
  Diagnostics diagnostics;
  const auto root = parse_yaml(text, name, diagnostics);
  if (root) read(YamlMap(&*root, "", {.file = name, .line = 1, .column = 1}, diagnostics));
  std::string said;
  for (const Diagnostic& item : diagnostics.sorted()) said += "[" + item.code + "] " + render(item) + "\n";
  return said;
}

class BadYaml : public testing::TestWithParam<fs::path> {};

TEST_P(BadYaml, IsRefusedInTheseWords) {
  const std::string expected = content_of(fs::path(GetParam()).replace_extension(".expected"));
  ASSERT_NE(expected, "") << "no golden beside " << GetParam();
  EXPECT_EQ(said_about(GetParam()), expected);
}

std::vector<fs::path> bad_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(STAGECRAFT_SOURCE_DIR "/tests/base/bad_yaml"))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(Goldens, BadYaml, testing::ValuesIn(bad_files()), [](const auto& test_case) {
  std::string name = test_case.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace stagecraft
