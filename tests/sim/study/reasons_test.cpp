#include "sim/study/reasons.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/study/compare.hpp"

namespace stagecraft {
namespace {

// System: 4 stages, 8 micro-batches in 1F1B order: 11 times the three passes of a chunk, 33 ms of 1 ms each;
// 576 MiB; 8 samples an iteration.
std::string missed(const std::string& assertion, const std::string& pass = "1 ms") {
  const std::vector<std::string> overrides = {"model.forward=" + pass, "model.input_gradient=" + pass,
                                              "model.weight_gradient=" + pass, "assert={" + assertion + "}"};
  const DataDirectory data{STAGECRAFT_SOURCE_DIR};
  const std::string file = STAGECRAFT_SOURCE_DIR "/scenarios/pipeline-4x8.yaml";
  const std::vector<Outcome> outcomes = simulate_variants(variants_of({file}, overrides, {}), data, 1);
  EXPECT_TRUE(outcomes.front().report.has_value());
  const std::vector<Diagnostic>& all = outcomes.front().missed;
  return all.empty() ? "" : all.front().message;
}

TEST(MissedAssertion, PrintsWhatAReportPrintsWhereThatMisses) {
  EXPECT_EQ(missed("iteration_time: '< 1 ms'"), "33.0 ms is not < 1 ms");
  EXPECT_EQ(missed("peak_memory: '<= 500 MiB'"), "576 MiB is not <= 500 MiB");
  EXPECT_EQ(missed("bubble_over_ideal: '<= 0.3'"), "0.375 is not <= 0.3");
  EXPECT_EQ(missed("samples_per_s: '>= 300000'", "1 us"), "242424 is not >= 300000");
}

// 11 * 3 * 1.0004 ms = 33.0132 ms, and 8 of these 242.33 times a second.
TEST(MissedAssertion, PrintsAsManyDigitsAsShowThatItMisses) {
  EXPECT_EQ(missed("iteration_time: '<= 33 ms'", "1.0004 ms"), "33.01 ms is not <= 33 ms");
  EXPECT_EQ(missed("iteration_time: '<= 33.01 ms'", "1.0004 ms"), "33.013 ms is not <= 33.01 ms");
  EXPECT_EQ(missed("iteration_time: '<= 33.013199 ms'", "1.0004 ms"), "33.013200 ms is not <= 33.013199 ms");
  EXPECT_EQ(missed("iteration_time: '== 33 ms'", "1.0004 ms"), "33.01 ms is not == 33 ms");
  EXPECT_EQ(missed("samples_per_s: '>= 242.4243'"), "242.4242 is not >= 242.4243");
  EXPECT_EQ(missed("samples_per_s: '<= 242424'", "1 us"), "242424.2 is not <= 242424");
}

TEST(MissedAssertion, SpeaksTheUnitOfItsLimitWhereThatFits) {
  EXPECT_EQ(missed("peak_memory: '< 0.5625 GiB'"), "0.5625 GiB is not < 0.5625 GiB");
  EXPECT_EQ(missed("peak_memory: '<= 600 MB'"), "604 MB is not <= 600 MB");
  EXPECT_EQ(missed("iteration_time: '<=33000us'", "1.0004 ms"), "33013 us is not <=33000us");
  EXPECT_EQ(missed("iteration_time: '>= 1 h'"), "33.0 ms is not >= 1 h");
  EXPECT_EQ(missed("iteration_time: '<= 0'"), "33.0 ms is not <= 0");
}

TEST(AnIterationThatNeverEnds, IsSaidWhereTheFaultsAreWritten) {
  Scenario scenario;
  scenario.source = "s.yaml";
  EXPECT_EQ(never_ends(scenario).where, (SourceLocation{.file = "s.yaml"}));
  scenario.origins["faults"] = {.file = "s.yaml", .line = 7, .column = 9};
  EXPECT_EQ(never_ends(scenario).where, (SourceLocation{.file = "s.yaml", .line = 7, .column = 9}));
}

}  // namespace
}  // namespace stagecraft
