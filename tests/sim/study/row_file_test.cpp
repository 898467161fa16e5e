#include "sim/study/row_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/file_content.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RowFileTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(file_); }
  void TearDown() override { std::filesystem::remove(file_); }

  void write(const std::string& text) { std::ofstream(file_) << text; }
  [[nodiscard]] std::string content() const { return content_of(file_); }
  std::optional<RowFile> resume(std::vector<std::string>& lines) {
    return RowFile::resume(
        file_,
        [&](const std::string& line) -> std::optional<std::string> {
          lines.push_back(line);
          return std::nullopt;
        },
        diagnostics_);
  }

  std::string file_ =
      testing::TempDir() + "rows_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".jsonl";
  Diagnostics diagnostics_;
};

TEST_F(RowFileTest, GrowsByLines) {
  {
    auto rows = RowFile::create(file_, false, diagnostics_);
    EXPECT_EQ(rows->append("a"), std::nullopt);
    EXPECT_EQ(rows->append("b"), std::nullopt);
    EXPECT_EQ(rows->sync(), std::nullopt);
  }
  EXPECT_EQ(content(), "a\nb\n");
}

TEST_F(RowFileTest, AnExistingFileIsReplacedOnlyWhenAsked) {
  write("precious");
  EXPECT_FALSE(RowFile::create(file_, false, diagnostics_));
  EXPECT_EQ(diagnostics_.items().at(0).code, "exists");
  EXPECT_EQ(content(), "precious");
  EXPECT_TRUE(RowFile::create(file_, true, diagnostics_));
  EXPECT_EQ(content(), "");
}

TEST_F(RowFileTest, ATornLineIsCutOff) {
  write("one\ntwo\nthr");
  std::vector<std::string> lines;
  auto rows = resume(lines);
  EXPECT_THAT(lines, ElementsAre("one", "two"));
  EXPECT_EQ(rows->append("three"), std::nullopt);
  EXPECT_EQ(content(), "one\ntwo\nthree\n");
}

TEST_F(RowFileTest, WhatIsNotThereBegins) {
  std::vector<std::string> lines;
  auto rows = resume(lines);
  EXPECT_THAT(lines, IsEmpty());
  EXPECT_EQ(rows->append("one"), std::nullopt);
  EXPECT_EQ(content(), "one\n");
}

TEST_F(RowFileTest, ALineThatDoesNotBelongLeavesTheFileAsItIs) {
  write("one\nother\nto");
  EXPECT_FALSE(RowFile::resume(
      file_,
      [](const std::string& line) {
        return line == "one" ? std::nullopt : std::optional<std::string>("is strange");
      },
      diagnostics_));
  EXPECT_EQ(diagnostics_.items().at(0).where, (SourceLocation{.file = file_, .line = 2}));
  EXPECT_EQ(content(), "one\nother\nto");
}

// System: files may have 10 bytes at most. Expectations: the third line of four bytes finds no room, and
// nothing of it stays.
TEST_F(RowFileTest, AFullDiskLosesNoFinishedRow) {
  auto rows = RowFile::create(file_, false, diagnostics_);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 10, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const auto first = rows->append("one"), second = rows->append("two"), third = rows->append("six");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(first, std::nullopt);
  EXPECT_EQ(second, std::nullopt);
  EXPECT_EQ(third, "File too large");
  EXPECT_EQ(content(), "one\ntwo\n");
  EXPECT_EQ(rows->append("six"), std::nullopt);
  EXPECT_EQ(content(), "one\ntwo\nsix\n");
}

}  // namespace
}  // namespace stagecraft
