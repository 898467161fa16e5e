#include "calibrate/samples/sample_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/file_content.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

Sample a_copy(std::int64_t bytes) {
  Sample sample;
  sample.family = "system";
  sample.op = "copy";
  sample.shape = {{"bytes", bytes}};
  sample.median_s = 2;
  sample.min_s = 1;
  sample.repeats = 10;
  sample.setup.device = "NVIDIA H200";
  sample.setup.driver = "580.1";
  return sample;
}

class SampleLogTest : public testing::Test {
 protected:
  SampleLogTest()
      : path_(testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".jsonl") {
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + ".failed");
  }
  std::string text() const { return content_of(path_); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  std::string path_;
};

TEST_F(SampleLogTest, IsEmptyBeforeItsFirstSample) {
  const SampleLog log(path_);
  EXPECT_THAT(log.keys(), IsEmpty());
  EXPECT_FALSE(log.setup().has_value());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "reading writes nothing";
}

TEST_F(SampleLogTest, HoldsASampleAsSoonAsItIsAppended) {
  SampleLog log(path_);
  log.append(a_copy(1));
  EXPECT_EQ(text(), to_json_line(a_copy(1)) + "\n");
  log.append(a_copy(2));
  EXPECT_EQ(parse_samples(text()).samples.size(), 2U);
}

TEST_F(SampleLogTest, IsTakenUpWhereItWasLeft) {
  SampleLog(path_).append(a_copy(1));
  SampleLog again(path_);
  EXPECT_THAT(again.keys(), ElementsAre("system/copy bytes=1"));
  again.append(a_copy(2));
  EXPECT_EQ(text(), to_json_line(a_copy(1)) + "\n" + to_json_line(a_copy(2)) + "\n");
}

TEST_F(SampleLogTest, CutsOffALineThatWasInterrupted) {
  const std::string whole = to_json_line(a_copy(1)) + "\n";
  write(whole + whole.substr(0, 40));
  SampleLog log(path_);
  EXPECT_EQ(text(), whole + whole.substr(0, 40)) << "reading writes nothing";
  log.append(a_copy(2));
  EXPECT_EQ(text(), whole + to_json_line(a_copy(2)) + "\n");
}

TEST_F(SampleLogTest, RefusesAFileItCannotReadAndLeavesItAlone) {
  const std::string spoilt = to_json_line(a_copy(1)) + "\n{}\n";
  write(spoilt);
  EXPECT_THAT([&] { SampleLog log(path_); },
              ThrowsMessage<SampleLogError>(HasSubstr(path_ + ":2: a sample has no key \"schema\"")));
  EXPECT_EQ(text(), spoilt);
}

TEST_F(SampleLogTest, RefusesAFolder) {
  EXPECT_THAT([&] { SampleLog log(testing::TempDir()); },
              ThrowsMessage<SampleLogError>(HasSubstr(testing::TempDir() + ": cannot be read")));
}

TEST_F(SampleLogTest, RefusesSamplesOfAnotherDevice) {
  SampleLog log(path_);
  log.append(a_copy(1));
  Sample other = a_copy(2);
  other.setup.device = "NVIDIA H100";
  EXPECT_THAT([&] { log.append(other); },
              ThrowsMessage<SampleLogError>(HasSubstr("device: NVIDIA H200 there, NVIDIA H100 here")));
  EXPECT_EQ(text(), to_json_line(a_copy(1)) + "\n");

  write(to_json_line(a_copy(1)) + "\n" + to_json_line(other) + "\n");
  EXPECT_THAT([&] { SampleLog mixed(path_); },
              ThrowsMessage<SampleLogError>(HasSubstr(path_ + ":2: another setup than line 1")));
}

TEST_F(SampleLogTest, RemembersWhatTookTheProcessDown) {
  EXPECT_THAT(SampleLog(path_).failed(), IsEmpty());
  SampleLog(path_).append_failed("gemm/gemm k=1");
  SampleLog(path_).append_failed("gemm/gemm k=2");
  EXPECT_THAT(SampleLog(path_).failed(), ElementsAre("gemm/gemm k=1", "gemm/gemm k=2"));
}

TEST(SetupDifference, NamesWhatDiffersAndOnlyThat) {
  SampleSetup there = a_copy(1).setup, here = there;
  EXPECT_EQ(setup_difference(there, here), "");
  here.driver = "590.2";
  here.power_limit_w = 700;
  EXPECT_EQ(setup_difference(there, here),
            "driver: 580.1 there, 590.2 here, power limit: 0 W there, 700 W here");
}

}  // namespace
}  // namespace stagecraft
