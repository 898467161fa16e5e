// Output of nccl-tests, with its traps. Sources of the files: tests/data/nccl_tests/README.md.
#include "calibrate/fit/nccl_tests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/yaml.hpp"
#include "calibrate/fit/nccl_tests_reader.hpp"
#include "tests/file_content.hpp"

namespace stagecraft {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const std::string& name) {
  return content_of(STAGECRAFT_SOURCE_DIR "/tests/data/nccl_tests/" + name);
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
}

TEST(NcclTests, TagsOfMpirunBlankLinesAndEmptyMessagesAreNoRows) {
  const NcclRun run = run_of("made_alltoall_tagged.txt");
  EXPECT_EQ(run.ranks, 16);
  EXPECT_EQ(run.nodes, 2);
  ASSERT_EQ(run.rows.size(), 3u);
  EXPECT_DOUBLE_EQ(run.launch_seconds.value(), 15.50e-6);
  EXPECT_DOUBLE_EQ(run.rows[2].seconds, 0.15);
}

// Output of before 2022: no group, no root, an error in place of wrong results; of all-gather no operation
// either.
TEST(NcclTests, TablesOfBefore2022AreRead) {
  const std::string ranks =
      "# nThread 1 nGpus 2 minBytes 8 maxBytes 1024 step: 2(factor)\n# Using devices\n"
      "#   Rank  0 Pid  35810 on server1 device  0 [0x07] A100-SXM4-40GB\n"
      "#   Rank  1 Pid  35810 on server1 device  1 [0x0f] A100-SXM4-40GB\n";
  const std::string halves = " time   algbw   busbw  error     time   algbw   busbw  error\n";
  const std::string times = " 38.01    0.03    0.05  2e-07    37.53    0.03    0.05  2e-07\n";
  const std::string reduce = ranks + "#  size  count  type  redop" + halves + "1024  256  float  sum" + times;
  const std::string gather = ranks + "#  size  count  type" + halves + "1024  128  float" + times;
  for (const std::string& text : {reduce, gather}) {
    Diagnostics diagnostics;
    const std::optional<NcclRun> run =
        read_nccl_tests(text + "# Avg bus bandwidth : 5\n", "old.txt", diagnostics);
    ASSERT_TRUE(run.has_value()) << render_json(diagnostics.items());
    EXPECT_EQ(run->ranks, 2);
    EXPECT_EQ(run->device, "A100-SXM4-40GB");
    ASSERT_EQ(run->rows.size(), 1u);
    EXPECT_DOUBLE_EQ(run->rows[0].seconds, 38.01e-6);
  }
  EXPECT_THAT(refusal(reduce.substr(0, reduce.size() - 10) + "\n"), HasSubstr("a row that is cut off"));
}

TEST(NcclTests, LabelsOfSrunAreNoColumns) {
  std::string labelled = "0: ";
  for (const char c : text_of("made_all_reduce_2x2.txt")) {
    labelled += c;
    if (c == '\n') labelled += " 0: ";
  }
  Diagnostics diagnostics;
  const std::optional<NcclRun> run = read_nccl_tests(labelled, "run.txt", diagnostics);
  ASSERT_TRUE(run.has_value()) << render_json(diagnostics.items());
  EXPECT_EQ(run->rows.size(), run_of("made_all_reduce_2x2.txt").rows.size());
  EXPECT_EQ(run->ranks, 4);
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

NcclRun made_run(int nodes, std::vector<NcclRow> rows) {
  NcclRun run;
  run.kind = CollectiveKind::kAllReduce;
  run.ranks = 8;
  run.nodes = nodes;
  run.rows = std::move(rows);
  return run;
}

TEST(NcclTests, OfFewSizesTheTimesAreKept) {
  // The bus moves 2 * 7 / 8 of the buffer: 1 GiB in 10 ms is 187.9 GB/s.
  const std::vector<NcclRow> rows = {{.bytes = 1 << 20, .seconds = 40e-6},
                                     {.bytes = 1 << 30, .seconds = 10e-3}};
  const std::string inside = to_fragment(made_run(1, rows), "two");
  EXPECT_THAT(inside, HasSubstr("# 2 sizes, and 4 are needed to fit"));
  EXPECT_THAT(inside, HasSubstr("# the bus reaches 188 GB/s at the largest size: inside one node"));
  EXPECT_THAT(inside, HasSubstr("#   1.00 MiB in 40.0 us\n#   1.00 GiB in 10.0 ms\n"));
  EXPECT_THAT(inside, HasSubstr("collective_points:\n"));
  EXPECT_THAT(inside, Not(HasSubstr("collectives:")));
  EXPECT_THAT(to_fragment(made_run(2, rows), "two"),
              Not(HasSubstr("collective_points:")));  // as of every fit
}

// System: a ring of 16 ranks on 2 nodes whose bus reaches 100 GB/s; the same time of an all-to-all.
// Expectations: the ring leaves a node with the bytes of the bus, 100 GB/s. In an all-to-all 8 ranks send 8 of
// 16 parts each, and the bus counts 15 of 16 parts once: 8 * 8 / 15 times as much leaves a node.
TEST(NcclTests, ACurveOverNodesIsNoPriceAndSaysWhatTheFabricReaches) {
  NcclRun run = made_run(2, {});
  run.ranks = 16;
  for (double bytes = 1024; bytes <= 1 << 30; bytes *= 4)
    run.rows.push_back({.bytes = bytes, .seconds = 30e-6 + bytes * 1.875 / 1e11});
  const std::optional<Diagnostic> warning = curve_without_effect(run);
  ASSERT_TRUE(warning.has_value());
  EXPECT_EQ(warning->severity, Severity::kWarning);
  EXPECT_EQ(warning->message,
            "no price uses a curve over several nodes: between nodes the fabric counts, by nic_bandwidth, "
            "collective_efficiency and step_latency of cluster.fabric");
  EXPECT_EQ(warning->hint,
            "its plateau says cluster.fabric.collective_efficiency = 100 GB/s / (nics x nic_bandwidth of a "
            "node)");
  EXPECT_THAT(to_fragment(run, "over"), HasSubstr("# no price uses a curve over several nodes"));
  run.kind = CollectiveKind::kAllToAll;
  EXPECT_THAT(
      curve_without_effect(run)->hint,
      HasSubstr("collective_efficiency = 213 GB/s / (nics x"));  // its bus is half the ring's: 50 GB/s
  run.kind = CollectiveKind::kSendReceive;
  EXPECT_THAT(curve_without_effect(run)->hint,
              HasSubstr("point_to_point_efficiency = 53.3 GB/s / nic_bandwidth"));
  EXPECT_FALSE(curve_without_effect(made_run(1, run.rows)).has_value());
}

TEST(NcclTests, OfFewSizesOverNodesTheFabricIsNamedToo) {
  EXPECT_THAT(
      to_fragment(made_run(2, {{.bytes = 1 << 20, .seconds = 40e-6}, {.bytes = 1 << 30, .seconds = 10e-3}}),
                  "two"),
      HasSubstr("collective_efficiency = 188 GB/s / (nics"));
  EXPECT_THAT(curve_without_effect(made_run(2, {{.bytes = 1 << 10, .seconds = 40e-6}}))->hint,
              HasSubstr("measure up to 1 GiB"));
}

// One time of 10 ms is no launch.
TEST(NcclTests, OneSizeSaysNothingOfLaunches) {
  const std::vector<Diagnostic> missing =
      missing_for_a_fit(made_run(2, {{.bytes = 1 << 30, .seconds = 10e-3}}));
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].code, "too-few-sizes");
}

TEST(NcclTests, OfLaunchesAloneNoBandwidthIsFitted) {
  std::vector<NcclRow> rows;
  for (double bytes = 8; bytes <= 65536; bytes *= 2)
    rows.push_back({.bytes = bytes, .seconds = 10e-6 + bytes * 5e-11});
  const std::string fragment = to_fragment(made_run(1, rows), "small");
  EXPECT_THAT(fragment,
              HasSubstr("# no size takes much longer than the smallest: launches are what was timed"));
  for (const char* absent : {"PCIe", "GB/s", "MB/s", "collectives:", "collective_points:"})
    EXPECT_THAT(fragment, Not(HasSubstr(absent)));
  ASSERT_EQ(missing_for_a_fit(made_run(1, rows)).size(), 1u);
  EXPECT_EQ(missing_for_a_fit(made_run(1, rows))[0].code, "no-bandwidth");
}

// 20 us of launch and 80 GB/s: 1 MiB takes 43 us, which is 43 GB/s with the launch.
TEST(NcclTests, TheVerdictIsOfTheBusWithoutLaunches) {
  std::vector<NcclRow> rows;
  for (double bytes = 1024; bytes <= 1 << 20; bytes *= 2)
    rows.push_back({.bytes = bytes, .seconds = 20e-6 + bytes * 1.75 / 8e10});
  EXPECT_THAT(to_fragment(made_run(1, rows), "made"), HasSubstr("inside one node"));
  for (NcclRow& row : rows) row.seconds = 20e-6 + row.bytes * 1.75 / 2e10;
  EXPECT_THAT(to_fragment(made_run(1, rows), "made"), HasSubstr("PCIe"));
}

TEST(NcclTests, VersionsOfNcclAreWrittenWithDots) {
  EXPECT_EQ(run_of("made_all_reduce_2x2.txt").nccl_version, "2.28.9");
  EXPECT_EQ(run_of("made_all_reduce_2x2.json").nccl_version, "2.28.9");
  EXPECT_EQ(detail::nccl_version_text(2708), "2.7.8");
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
  EXPECT_THAT(refusal("   1024   256  float  sum  -1  20.0  0.1  0.1  0  20.0  0.1  0.1  0\n"),
              HasSubstr("run.txt:1: error: a row before the header"));
}

// All that is said of a file.
std::string refusals(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_nccl_tests(text, "out.json", diagnostics).has_value()) << text;
  std::string said;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) said += render(diagnostic) + '\n';
  return said;
}

std::string damaged(const std::string& from, const std::string& to) {
  std::string text = text_of("made_all_reduce_2x2.json");
  expect_replaced(text, from, to);
  return refusals(text);
}

// A header with its times further on than the row is long.
TEST(NcclTests, ARowThatEndsBeforeItsTimeIsRefused) {
  std::string text = text_of("made_all_reduce_2x2.txt");
  expect_replaced(text, " root     time", " root  a b c d e f g h i j     time");
  EXPECT_THAT(refusal(text), HasSubstr("run.txt:14: error: a row that is cut off"));
}

TEST(NcclTests, AFileOfTwoRunsIsRefused) {
  const std::string run = text_of("made_all_reduce_2x2.txt");
  EXPECT_THAT(
      refusal(run + run),
      HasSubstr("run.txt:25: error: all_reduce_perf starts: the file holds a second run from here on\n"
                "  hint: one run a file: split it where the second one begins"));
  // Older text has no heading: the ranks come again.
  const std::string old = text_of("all_gather_b200_2x8.txt");
  EXPECT_EQ(refusals(old + "\n" + old),
            "out.json:55: error: rank 0 is listed again: the file holds a second run from here on\n"
            "  hint: one run a file: split it where the second one begins\n");
}

TEST(NcclTests, ResultsOutOfBoundsAreRefused) {
  std::string text = text_of("made_all_reduce_2x2.txt");
  expect_replaced(text, "values : 0 OK", "values : 12 FAILED");
  EXPECT_THAT(refusal(text), HasSubstr("run.txt:20: error: 'Out of bounds values : 12 FAILED': such times"));
}

TEST(NcclTests, SizesThatNoMemoryHoldsAreRefused) {
  std::string text = text_of("made_all_reduce_2x2.txt");
  expect_replaced(text, "  1073741824     2684", " -1073741824     2684");
  EXPECT_THAT(refusal(text), HasSubstr("run.txt:19: error: -1073741824 bytes are no size of a message"));
}

TEST(NcclTests, AByteOrderMarkAndOtherLineEndsAreRead) {
  for (const char* name : {"made_all_reduce_2x2.txt", "made_all_reduce_2x2.json"}) {
    std::string text = "\xef\xbb\xbf";
    for (const char c : text_of(name)) text += c == '\n' ? "\r\n" : std::string(1, c);
    Diagnostics diagnostics;
    const std::optional<NcclRun> run = read_nccl_tests(text, name, diagnostics);
    ASSERT_TRUE(run.has_value()) << render_json(diagnostics.items());
    EXPECT_EQ(run->program.substr(run->program.rfind('/') + 1), "all_reduce_perf");
    EXPECT_EQ(run->rows.size(), 6u);
  }
}

TEST(NcclTests, DamagedResultsOfJsonAreRefusedByKeyAndSize) {
  EXPECT_EQ(damaged("\"size\": 16384", "\"size\": 1e30"),
            "out.json:97:12: error: results[1].size: '1e30' does not fit into 64 bits\n");
  EXPECT_THAT(damaged("\"size\": 16384", "\"size\": 10000000000000000000"),
              HasSubstr("results[1].size: '10000000000000000000' does not fit into 64 bits"));
  EXPECT_THAT(damaged("\"size\": 16384", "\"size\": 9000000000000000000"),
              HasSubstr("results[1].size: 9000000000000000000 is more than 1125899906842624"));
  EXPECT_THAT(damaged("\"size\": 16384", "\"size\": -1"), HasSubstr("results[1].size: -1 is less than 0"));
  EXPECT_THAT(damaged("\"size\": 16384,", ""), HasSubstr("results[1].size: is required, but not given"));
  EXPECT_EQ(damaged("\"time\": 20.16384", "\"time\": \"nan\""),
            "out.json:103:13: error: results[1].out_of_place.time: 'nan' is no time of size 16384\n");
  EXPECT_THAT(damaged("\"time\": 20.16384", "\"time\": -3"), HasSubstr("'-3' is no time of size 16384"));
  EXPECT_THAT(damaged("\"time\": 20.16384", "\"time\": 1e-308"),
              HasSubstr("'1e-308' is no time of size 16384"));
  EXPECT_THAT(damaged("\"time\": 20.16384", "\"time\": 1e300"),
              HasSubstr("'1e300' is no time of size 16384"));
  EXPECT_THAT(damaged("\"time\": 20.16384,", ""), HasSubstr("size 16384 has no time"));
  EXPECT_THAT(damaged("\"nwrong\": 0.0", "\"nwrong\": 3.0"),
              HasSubstr("results[0].out_of_place.nwrong: size 1024 has wrong results"));
  EXPECT_THAT(damaged("\"time\": 20.16384", "\"cpu_time\": 20.16384"), HasSubstr("these are host times"));
}

TEST(NcclTests, DamagedHeadsOfJsonAreRefusedByKey) {
  EXPECT_THAT(damaged("\"./build/all_reduce_perf\",", "[],"),
              HasSubstr("args.0: expected a text, found a list"));
  EXPECT_THAT(damaged("\"args\": [", "\"args\": [], \"words\": ["),
              HasSubstr("args: does not name the program"));
  EXPECT_THAT(damaged("\"nccl_version\": 22809", "\"nccl_version\": null"),
              HasSubstr("nccl_version: expected"));
  EXPECT_THAT(damaged("\"rank\": 1,", "\"rank\": 0,"),
              HasSubstr("config.devices[1].rank: rank 0 of group 0 is listed again"));
  EXPECT_THAT(refusals("{\"version\": 3}"),
              HasSubstr("results: a list is required, as nccl-tests -J writes it"));
  EXPECT_THAT(refusals("{\"args\": "), HasSubstr("out.json:1:10: error: expected a value"));
  const std::string run = text_of("made_all_reduce_2x2.json");
  EXPECT_THAT(refusals(run + run), HasSubstr("stands after the end of the document"));
}

TEST(NcclTests, WhatTheProgramFoundWrongItselfIsRefused) {
  EXPECT_THAT(damaged("\"okay\": \"true\"", "\"okay\": \"false\""),
              HasSubstr("out_of_bounds.okay: results are out of bounds: such times say nothing"));
  EXPECT_THAT(damaged("\"errors\": [\n  \"\"", "\"errors\": [\n  \"unhandled cuda error\""),
              HasSubstr("errors: 'unhandled cuda error': such times say nothing"));
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
