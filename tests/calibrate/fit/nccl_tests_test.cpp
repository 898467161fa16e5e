// Output of nccl-tests, with its traps. Sources of the files: tests/data/nccl_tests/README.md.
#include "calibrate/fit/nccl_tests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/yaml.hpp"

namespace stagecraft {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const std::string& name) {
  std::ifstream file(STAGECRAFT_SOURCE_DIR "/tests/data/nccl_tests/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

NcclRun run_of(const std::string& name) {
  Diagnostics diagnostics;
  const std::optional<NcclRun> run = read_nccl_tests(text_of(name), name, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << render_json(diagnostics.items());
  return run.value();
}

std::string refusal(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_nccl_tests(text, "run.txt", diagnostics).has_value());
  EXPECT_TRUE(diagnostics.has_errors());
  return diagnostics.items().empty() ? "" : render(diagnostics.items().front());
}

void expect_replaced(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

TEST(NcclTests, NameGroupAndSizesComeFromTheText) {
  const NcclRun run = run_of("all_reduce_gh200_2x4_fast.txt");
  EXPECT_EQ(run.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(run.ranks, 8);
  EXPECT_EQ(run.nodes, 2);
  EXPECT_EQ(run.device, "NVIDIA GH200 120GB");
  ASSERT_EQ(run.rows.size(), 25u);
  EXPECT_EQ(run.rows.back().bytes, 134217728);
  EXPECT_DOUBLE_EQ(run.rows.back().seconds, 1916.4e-6);
  EXPECT_DOUBLE_EQ(run.rows.back().in_place_seconds, 1907.8e-6);
}

TEST(NcclTests, OlderTextDoesNotSayWhichCollective) {
  const NcclRun run = run_of("all_gather_b200_2x8.txt");
  EXPECT_EQ(run.kind, std::nullopt);
  EXPECT_EQ(run.ranks, 16);
  EXPECT_EQ(run.nodes, 2);
  EXPECT_EQ(run.nccl_version, "2.26.6+cuda12.8");
  EXPECT_EQ(run.rows.size(), 24u);
}

TEST(NcclTests, ExtraColumnsDoNotShiftTheTimes) {
  const NcclRun run = run_of("made_all_gather_periter_timestamps.txt");
  EXPECT_EQ(run.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(run.ranks, 2);
  EXPECT_EQ(run.nodes, 1);
  ASSERT_EQ(run.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(run.rows[1].seconds, 120e-6);
  EXPECT_DOUBLE_EQ(run.rows[1].in_place_seconds, 120e-6);
}

TEST(NcclTests, TagsOfMpirunBlankLinesAndEmptyMessagesAreNoRows) {
  const NcclRun run = run_of("made_alltoall_tagged.txt");
  EXPECT_EQ(run.ranks, 16);
  EXPECT_EQ(run.nodes, 2);
  ASSERT_EQ(run.rows.size(), 3u);
  EXPECT_DOUBLE_EQ(run.launch_seconds.value(), 15.50e-6);
  EXPECT_DOUBLE_EQ(run.rows[2].seconds, 0.15);
  EXPECT_DOUBLE_EQ(run.rows[2].in_place_seconds, 15);  // 1.5e+07 us
}

TEST(NcclTests, TextAndJsonOfOneRunAgree) {
  const NcclRun text = run_of("made_all_reduce_2x2.txt");
  const NcclRun json = run_of("made_all_reduce_2x2.json");
  EXPECT_EQ(text.kind, json.kind);
  EXPECT_EQ(text.ranks, json.ranks);
  EXPECT_EQ(text.nodes, json.nodes);
  EXPECT_EQ(text.device, json.device);
  ASSERT_EQ(text.rows.size(), json.rows.size());
  for (std::size_t i = 0; i < text.rows.size(); ++i) {
    EXPECT_EQ(text.rows[i].bytes, json.rows[i].bytes);
    // Text keeps four digits.
    EXPECT_NEAR(text.rows[i].seconds / json.rows[i].seconds, 1, 5e-4);
  }
}

TEST(NcclTests, NothingOfTheEnvironmentIsTold) {
  const std::string text = text_of("made_all_reduce_2x2.json");
  ASSERT_THAT(text, HasSubstr("SECRET_TOKEN"));
  EXPECT_THAT(to_fragment(run_of("made_all_reduce_2x2.json"), "out.json"), Not(HasSubstr("SECRET")));
  // Cut inside the secret, the parser's own message would quote it.
  EXPECT_THAT(refusal(text.substr(0, text.find("must-not-be-stored"))), Not(HasSubstr("made-up-secret")));
}

TEST(NcclTests, TheFragmentIsAListOfFitsForAProfile) {
  // 20 us and 100 GB/s of algorithm bandwidth over 4 ranks: 150 GB/s on the bus.
  const std::string fragment = to_fragment(run_of("made_all_reduce_2x2.txt"), "made.txt");
  Diagnostics diagnostics;
  const std::optional<YamlNode> node = parse_yaml(fragment, "fragment", diagnostics);
  ASSERT_TRUE(node.has_value()) << fragment;
  const YamlNode& row = node->find("collectives")->items.at(0).find("rows")->items.at(0);
  EXPECT_EQ(row.items[0].text, "all-reduce");
  EXPECT_EQ(row.items[1].text, "4");
  EXPECT_EQ(row.items[2].text, "2");
  EXPECT_NEAR(to_seconds(parse_duration(row.items[4].text).value()), 20e-6, 0.1e-6);
  EXPECT_NEAR(parse_bandwidth(row.items[5].text)->count(), 150e9, 0.5e9);
  EXPECT_THAT(fragment, HasSubstr("# latency "));
  EXPECT_THAT(fragment, HasSubstr("# bus_bandwidth "));
  EXPECT_THAT(fragment, HasSubstr("# sqrt_seconds "));
}

// 122.57 GB/s were seen at the largest of these sizes, 128 MiB.
TEST(NcclTests, TheFragmentIsHardlyFasterThanWhatWasSeen) {
  Diagnostics diagnostics;
  const std::string fragment = to_fragment(run_of("all_reduce_gh200_2x4_fast.txt"), "fast");
  const std::optional<YamlNode> node = parse_yaml(fragment, "fragment", diagnostics);
  ASSERT_TRUE(node.has_value()) << fragment;
  const YamlNode& row = node->find("collectives")->items.at(0).find("rows")->items.at(0);
  const double bandwidth = parse_bandwidth(row.items[5].text)->count() / 1e9;
  EXPECT_GT(bandwidth, 122);
  EXPECT_LT(bandwidth, 160);
}

TEST(NcclTests, TheSlowNetworkIsCalledSlow) {
  EXPECT_THAT(to_fragment(run_of("all_reduce_gh200_2x4_slow_tcp.txt"), "slow"), HasSubstr("TCP"));
  const std::string fast = to_fragment(run_of("all_reduce_gh200_2x4_fast.txt"), "fast");
  EXPECT_THAT(fast, Not(HasSubstr("TCP")));
  EXPECT_THAT(fast, HasSubstr("a larger message was faster"));  // 170.3 us at 512 KiB, 164.3 us at 1 MiB
}

TEST(NcclTests, TimesThatDoNotFollowTheFormulaAreSaidNotTo) {
  // 1.75 ms at 2 MiB, 0.93 ms at 4 MiB and 31 ms at 8 GiB: no root of the size goes through these.
  NcclRun run = run_of("all_gather_b200_2x8.txt");
  run.kind = CollectiveKind::kAllGather;
  const std::string fragment = to_fragment(run, "b200");
  EXPECT_THAT(fragment, HasSubstr("260 GB/s at the largest size"));
  EXPECT_THAT(fragment, HasSubstr("do not follow the formula"));
  EXPECT_THAT(to_fragment(run_of("made_all_reduce_2x2.txt"), "made"), Not(HasSubstr("do not follow")));
}

TEST(NcclTests, HostTimesAreRefused) {
  std::string text = text_of("made_all_reduce_2x2.txt");
  expect_replaced(text, " time  ", " cputime");
  EXPECT_THAT(refusal(text), HasSubstr("run.txt:12: error: these are host times"));
}

TEST(NcclTests, WrongResultsAreRefusedWithTheirLine) {
  std::string text = text_of("made_all_reduce_2x2.txt");
  expect_replaced(text, "0.08       0    20.21", "0.08       3    20.21");
  EXPECT_THAT(refusal(text), HasSubstr("run.txt:14: error: 3 wrong results"));
}

TEST(NcclTests, ARunThatDiedIsUsedWithAWarning) {
  std::string text = text_of("made_all_reduce_2x2.txt");
  text.resize(text.find("# Out of bounds"));
  Diagnostics diagnostics;
  EXPECT_EQ(read_nccl_tests(text, "run.txt", diagnostics)->rows.size(), 6u);
  ASSERT_EQ(diagnostics.items().size(), 1u);
  EXPECT_EQ(diagnostics.items()[0].code, "run-without-end");
}

TEST(NcclTests, WhatIsNoOutputOfNcclTestsIsRefused) {
  EXPECT_THAT(refusal(""), HasSubstr("fewer than two ranks"));
  EXPECT_THAT(refusal("hello\nworld\n"), HasSubstr("fewer than two ranks"));
  EXPECT_THAT(refusal("{}"), HasSubstr("is not what nccl-tests -J writes"));
  EXPECT_THAT(refusal("{\"args\": "), HasSubstr("is no JSON from byte"));
  EXPECT_THAT(refusal("   1024   256  float  sum  -1  20.0  0.1  0.1  0  20.0  0.1  0.1  0\n"),
              HasSubstr("run.txt:1: error: a row before the header"));
}

TEST(NcclTests, NamesOfTheToolsAreNamesOfCollectives) {
  EXPECT_EQ(nccl_collective("./build/all_reduce_perf"), CollectiveKind::kAllReduce);
  EXPECT_EQ(nccl_collective("alltoall_perf"), CollectiveKind::kAllToAll);
  EXPECT_EQ(nccl_collective("sendrecv_perf"), CollectiveKind::kSendReceive);
  EXPECT_EQ(nccl_collective("reduce-scatter"), CollectiveKind::kReduceScatter);
  EXPECT_EQ(nccl_collective("gather_perf"), std::nullopt);
}

}  // namespace
}  // namespace stagecraft
