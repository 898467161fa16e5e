#include "sim/study/sweep_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A sweep over the pipeline of 4 stages, written beside the shipped scenarios' paths.
class SweepSpecTest : public testing::Test {
 protected:
  std::optional<SweepSpec> load(const std::string& lines) {
    std::ofstream(file_) << "stagecraft: 1\nbase: " STAGECRAFT_SOURCE_DIR "/scenarios/pipeline-4x8.yaml\n"
                         << lines;
    diagnostics_ = {};
    auto spec = load_sweep(file_, {}, library_, diagnostics_);
    std::filesystem::remove(file_);
    return spec;
  }
  // The values of the only axis.
  std::vector<std::string> values(const std::string& range) {
    const auto spec = load("vary:\n  a.b: " + range + "\n");
    std::vector<std::string> texts;
    if (!spec) return {diagnostics_.items().at(0).message};
    for (const auto& choice : spec->axes.at(0).choices) texts.push_back(choice.at(0).text);
    return texts;
  }
  // "line:column path: message" of the only mistake.
  std::string mistake(const std::string& lines) {
    EXPECT_FALSE(load(lines));
    if (diagnostics_.items().size() != 1) return "there are " + std::to_string(diagnostics_.items().size());
    const Diagnostic& only = diagnostics_.items()[0];
    return std::to_string(only.where.line) + ":" + std::to_string(only.where.column) + " " + only.path +
           ": " + only.message;
  }

  std::string file_ =
      testing::TempDir() + "sweep_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
  Library library_{DataDirectory{STAGECRAFT_SOURCE_DIR}};
  Diagnostics diagnostics_;
};

TEST_F(SweepSpecTest, RangesAreLinearLogarithmicByStepsOrByFactors) {
  EXPECT_THAT(values("{from: 1, to: 9, points: 5}"), ElementsAre("1", "3", "5", "7", "9"));
  EXPECT_THAT(values("{from: 1, to: 2, points: 3}"), ElementsAre("1", "1.5", "2"));
  EXPECT_THAT(values("{from: 0.001, to: 0.1, points: 3, scale: log}"), ElementsAre("0.001", "0.01", "0.1"));
  EXPECT_THAT(values("{from: 1, to: 8, points: 9, scale: log}"),
              ElementsAre("1", "2", "3", "4", "5", "6", "8"));
  EXPECT_THAT(values("{from: 8, to: 32, step: 8}"), ElementsAre("8", "16", "24", "32"));
  EXPECT_THAT(values("{from: 1, to: 9, factor: 2}"), ElementsAre("1", "2", "4", "8"));
}

TEST_F(SweepSpecTest, RangesKeepTheirUnit) {
  EXPECT_THAT(values("{from: 1 ms, to: 100 ms, points: 3, scale: log}"),
              ElementsAre("1 ms", "10 ms", "100 ms"));
  for (const char* step : {"100", "100 Gb/s"})
    EXPECT_THAT(values(std::string("{from: 100 Gb/s, to: 300 Gb/s, step: ") + step + "}"),
                ElementsAre("100 Gb/s", "200 Gb/s", "300 Gb/s"))
        << step;
  EXPECT_THAT(values("{from: 100 Gb/s, to: 300Gb/s, step: 100Gb/s}"),
              ElementsAre("100 Gb/s", "200 Gb/s", "300 Gb/s"));
}

TEST_F(SweepSpecTest, PathsWithACommaChangeTogether) {
  const auto spec = load("vary:\n  a, b.c: [[1, x], [2, y]]\n  d: [3]\n");
  ASSERT_TRUE(spec);
  EXPECT_THAT(spec->paths(), ElementsAre("a", "b.c", "d"));
  EXPECT_EQ(spec->axes[0].choices[1][1].text, "y");
}

TEST_F(SweepSpecTest, MistakesSayWhereTheyAre) {
  EXPECT_EQ(mistake("vary:\n  a: 4\n"), "4:6 vary.a: expected a list of values, found '4'");
  EXPECT_EQ(mistake("vary:\n  a: []\n"), "4:6 vary.a: the list is empty");
  EXPECT_EQ(mistake("vary:\n  a, b: [[1, 2], [3]]\n"), "4:18 vary.a, b: 1 values for 2 paths");
  EXPECT_EQ(mistake("vary:\n  a, b: [[1, 2], 3]\n"),
            "4:18 vary.a, b: expected a list of 2 values, one for each path");
  EXPECT_EQ(mistake("vary:\n  a: [1]\n  b, a: [[1, 2]]\n"), "5:3 vary.b, a: a is varied twice");
  EXPECT_EQ(mistake("vary:\n  a.c: [1]\n  a: [{c: 1}]\n"), "5:3 vary.a: a.c is varied twice, by a as well");
  EXPECT_EQ(mistake("vary:\n  a,: [[1, 2]]\n"), "4:3 vary.a,: a path is empty");
  EXPECT_EQ(mistake("vary:\n  a: {from: 4, to: 1, points: 3}\n"), "4:20 vary.a.to: 1 is less than 4");
  EXPECT_EQ(mistake("vary:\n  a: {from: 1 ms, to: 1 s, points: 3}\n"),
            "4:23 vary.a.to: '1 ms' and '1 s' have different units");
  EXPECT_EQ(mistake("vary:\n  a: {from: 0, to: 1, points: 3, scale: log}\n"),
            "4:13 vary.a.from: a logarithmic range has ends above 0");
  EXPECT_EQ(mistake("vary:\n  a: {from: 0, to: 1}\n"), "4:6 vary.a: does not say which values of the range");
  EXPECT_EQ(mistake("vary:\n  a: {from: 1 ms, to: 9 ms, step: 1 s}\n"),
            "4:35 vary.a.step: has another unit than the ends of the range");
  EXPECT_EQ(mistake("vary:\n  a: {from: 1, to: 9, step: one}\n"), "4:29 vary.a.step: 'one' is not a number");
  EXPECT_EQ(mistake("vary:\n  a: {from: 0, to: 1, step: 0.1, points: 3}\n"),
            "4:6 vary.a: has several of points, step and factor");
  EXPECT_EQ(mistake("vary:\n  a: {from: 1, to: 4, points: 3, scale: lgo}\n"),
            "4:41 vary.a.scale: 'lgo' is not known here");
  EXPECT_EQ(mistake("vary:\n  a: [1]\nwhere: a <\n"),
            "5:8 where: 'a <' is no expression: something is missing at the end");
  EXPECT_EQ(mistake("vary:\n  a: [1]\nsample: {method: dice, points: 3}\n"),
            "5:18 sample.method: 'dice' is not known here");
  EXPECT_EQ(mistake("vary:\n  a: [1]\nwheer: x\n"), "5:1 wheer: is not a known key");
  EXPECT_EQ(mistake("name: x\n"), "1:1 vary: is required, but not given");
}

TEST_F(SweepSpecTest, AllMistakesComeOutAtOnce) {
  EXPECT_FALSE(load("vary:\n  a: 4\n  b: []\nwhere: (\nsample: {method: random}\n"));
  EXPECT_EQ(diagnostics_.error_count(), 4u);
}

TEST_F(SweepSpecTest, AMissingBaseIsTheSweepsMistake) {
  std::ofstream(file_) << "stagecraft: 1\nbase: nowhere.yaml\nvary: {a: [1]}\n";
  EXPECT_FALSE(load_sweep(file_, {}, library_, diagnostics_));
  std::filesystem::remove(file_);
  ASSERT_EQ(diagnostics_.items().size(), 1u);
  EXPECT_EQ(diagnostics_.items()[0].where.line, 2);
  EXPECT_THAT(diagnostics_.items()[0].message, HasSubstr("nowhere.yaml': no such file"));
}

TEST_F(SweepSpecTest, InstalledOnesGoByTheirNames) {
  const auto sweep = load_sweep("goodput/policies-by-rate", {}, library_, diagnostics_);
  ASSERT_TRUE(sweep) << render_json(diagnostics_.items());
  EXPECT_EQ(sweep->source, STAGECRAFT_SOURCE_DIR "/scenarios/goodput/policies-by-rate.yaml");
  EXPECT_TRUE(load_sweep("sweeps/schedules", {}, library_, diagnostics_));
  std::ofstream(file_) << "stagecraft: 1\nbase: gpt3-175b-1024xA100\nvary: {a: [1]}\n";
  const auto of_named = load_sweep(file_, {}, library_, diagnostics_);
  std::filesystem::remove(file_);
  ASSERT_TRUE(of_named) << render_json(diagnostics_.items());
  EXPECT_EQ(of_named->base.source, STAGECRAFT_SOURCE_DIR "/scenarios/gpt3-175b-1024xA100.yaml");
}

TEST_F(SweepSpecTest, ASweepIsNoBase) {
  std::ofstream(file_) << "stagecraft: 1\nbase: " STAGECRAFT_SOURCE_DIR
                          "/scenarios/sweeps/schedules.yaml\nvary: {a: [1]}\n";
  EXPECT_FALSE(load_sweep(file_, {}, library_, diagnostics_));
  std::filesystem::remove(file_);
  ASSERT_EQ(diagnostics_.items().size(), 1u);
  EXPECT_EQ(diagnostics_.items()[0].code, "not-a-scenario");
  EXPECT_EQ(diagnostics_.items()[0].where.line, 2);
  EXPECT_THAT(diagnostics_.items()[0].message, HasSubstr("is a sweep, not a scenario"));
}

TEST_F(SweepSpecTest, AScenarioIsNoSweep) {
  EXPECT_FALSE(load_sweep(STAGECRAFT_SOURCE_DIR "/scenarios/pipeline-4x8.yaml", {}, library_, diagnostics_));
  EXPECT_EQ(diagnostics_.items().at(0).code, "not-a-sweep");
}

}  // namespace
}  // namespace stagecraft
