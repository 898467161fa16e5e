// Files of samples as one set, and what spoils one.
#include "calibrate/fit/sample_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/calibrate/fit/made_samples.hpp"
#include "tests/calibrate/shipped_profiles.hpp"

namespace stagecraft {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_sample_set({{.name = "a.jsonl", .text = text}}, diagnostics).has_value());
  return diagnostics.items().empty() ? "" : render(diagnostics.items().front());
}

TEST(SampleSet, APointMeasuredAgainCountsOnce) {
  std::vector<Sample> samples = all_reduce_samples();
  samples.push_back(samples[1]);
  samples.back().median_s *= 2;
  samples.back().date = "2026-11-21";
  Diagnostics diagnostics;
  const std::optional<SampleSet> set = read_sample_set({{.name = "a", .text = lines(samples)}}, diagnostics);
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->samples.size(), samples.size() - 1);
  EXPECT_EQ(set->samples[1].median_s, samples.back().median_s);
  EXPECT_EQ(set->again, 1U);
  EXPECT_EQ(set->places[1].line, static_cast<int>(samples.size()));
  EXPECT_EQ(set->date, "2026-11-21");
}

TEST(SampleSet, AByteOrderMarkIsNoPartOfTheFirstSample) {
  Diagnostics diagnostics;
  const std::string text = "\xef\xbb\xbf" + lines(all_reduce_samples());
  const std::optional<SampleSet> set = read_sample_set({{.name = "a", .text = text}}, diagnostics);
  ASSERT_TRUE(set.has_value()) << render_json(diagnostics.items());
  EXPECT_EQ(set->samples.size(), all_reduce_samples().size());
}

TEST(SampleSet, LinesMayEndAsOnWindowsAndEmptyOnesHoldNothing) {
  std::string text = "\n" + lines(all_reduce_samples()) + "\n \r\n";
  for (std::size_t at = text.find("}\n"); at != std::string::npos; at = text.find("}\n", at + 1))
    text.replace(at, 2, "}\r\n");
  Diagnostics diagnostics;
  const std::optional<SampleSet> set = read_sample_set({{.name = "a", .text = text}}, diagnostics);
  ASSERT_TRUE(set.has_value()) << render_json(diagnostics.items());
  EXPECT_EQ(set->samples.size(), all_reduce_samples().size());
  EXPECT_EQ(set->places.front().line, 2);
}

TEST(SampleSet, ALineThatIsCutOffIsRefusedWithItsPlace) {
  std::string text = lines(all_reduce_samples());
  text.resize(text.size() - 20);
  EXPECT_THAT(refusal(text), HasSubstr("a.jsonl:4: error: the last line is cut off"));
}

TEST(SampleSet, AFileOfAnotherKindIsRefusedOnceWithTheWayOut) {
  Diagnostics diagnostics;
  const std::string text = "\n# nThread 1 nGpus 1\n# Using devices\n  8  2  float\n";
  EXPECT_FALSE(read_sample_set({{.name = "run.txt", .text = text}}, diagnostics).has_value());
  ASSERT_EQ(diagnostics.items().size(), 1U);
  const std::string message = render(diagnostics.items().front());
  EXPECT_THAT(message, HasSubstr("run.txt:2: error: is no file of samples"));
  EXPECT_THAT(message, HasSubstr("`stagecraft import nccl-tests`"));
}

TEST(SampleSet, ATraceIsRefusedWithTheWayToSamples) {
  for (const char* text :
       {"{\"schemaVersion\": 1, \"traceEvents\": []}", "{\n  \"traceEvents\": [\n  ]\n}\n"})
    EXPECT_EQ(refusal(text),
              "a.jsonl: error: is a profiler's trace, no file of samples\n"
              "  hint: `stagecraft import kineto` makes samples of it");
}

TEST(SampleSet, AnotherDeviceAmongThemIsRefusedWithBothPlaces) {
  std::vector<Sample> samples = all_reduce_samples();
  samples[2].setup.device = "NVIDIA H200";
  const std::string message = refusal(lines(samples));
  EXPECT_THAT(message, HasSubstr("a.jsonl:3: error: measured on NVIDIA H200"));
  EXPECT_THAT(message, HasSubstr("a.jsonl:1 on NVIDIA A100"));
}

TEST(SampleSet, WhatNoProfileCanStandOnIsRefused) {
  const auto refused = [](const std::function<void(Sample&)>& change) {
    std::vector<Sample> samples = gemm_samples(a100());
    samples.resize(2);
    change(samples[1]);
    return refusal(lines(samples));
  };
  EXPECT_THAT(refused([](Sample& s) { s.shape.erase("k"); }),
              HasSubstr("a.jsonl:2: error: a sample of gemm has no \"k\" in its shape"));
  EXPECT_THAT(refused([](Sample& s) { s.shape["m"] = 0; }), HasSubstr("a.jsonl:2: error: \"m\" is 0"));
  EXPECT_THAT(refused([](Sample& s) { s.shape["n"] = std::int64_t{1} << 62; }),
              HasSubstr("from 1 to 1073741824 is right"));
  EXPECT_THAT(refused([](Sample& s) { s.max_error = 7; }),
              HasSubstr("a.jsonl:2: error: its result is wrong"));
  for (const char* date : {"yesterday", "2026-13-01", "2026-02-31", "2026-02-29", "2026-1-1", "20261120"})
    EXPECT_THAT(refused([&](Sample& s) { s.date = date; }), HasSubstr("2026-11-20 is how one is written"));
  EXPECT_THAT(refused([](Sample& s) {
                s.family = "attention";
                s.op = "flash_forward";
                s.shape = {{"sequence", 4096}, {"head_size", 128}};
              }),
              HasSubstr("a sample of attention has no \"heads\" in its shape"));
}

TEST(SampleSet, ForeignSchemaNegativeTimesAndNoNumbersAreRefusedWithTheirLine) {
  const std::string good = lines(all_reduce_samples());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from, text.find('\n'));  // in the second line
    return text.replace(at, from.size(), to);
  };
  EXPECT_THAT(refusal(changed("stagecraft.sample/1", "stagecraft.sample/9")),
              HasSubstr("a.jsonl:2: error: schema"));
  EXPECT_THAT(refusal(changed("\"median_s\":", "\"median_s\":-")), HasSubstr("a.jsonl:2: error: "));
  EXPECT_THAT(refusal(changed("\"spread\":0.004", "\"spread\":NaN")), HasSubstr("a.jsonl:2: error: "));
  for (const char* empty : {"", "\n", "\n \r\n\n", " "})
    EXPECT_EQ(refusal(empty), "a.jsonl: error: holds no samples");
}

}  // namespace
}  // namespace stagecraft
