#include "sim/study/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

const DataDirectory kData{STAGECRAFT_SOURCE_DIR};
const std::string kPipeline = STAGECRAFT_SOURCE_DIR "/scenarios/pipeline-4x8.yaml";

TEST(ParseVary, ValuesAreSeparatedByCommas) {
  EXPECT_EQ(parse_vary("a.b=1, 2,x").vary, (Vary{.path = "a.b", .values = {"1", "2", "x"}}));
}

TEST(ParseVary, CommasInsideBelongToTheValue) {
  EXPECT_THAT(parse_vary("schedule=1f1b,{name: x, micro_batch_group: 4},'a,b',[1,2]").vary.values,
              ElementsAre("1f1b", "{name: x, micro_batch_group: 4}", "'a,b'", "[1,2]"));
  EXPECT_THAT(parse_vary(R"(name="a\", b",c)").vary.values, ElementsAre(R"("a\", b")", "c"));
}

TEST(ParseVary, MistakesAreNamed) {
  EXPECT_EQ(parse_vary("schedule").mistake, "there is no '=' in it");
  EXPECT_EQ(parse_vary("=1").mistake, "the path is empty");
  EXPECT_EQ(parse_vary("a=").mistake, "a value is empty");
  EXPECT_EQ(parse_vary("a=1,,2").mistake, "a value is empty");
}

TEST(Vary, TellsAPathAndAPartOfItFromOtherPaths) {
  for (const auto& [one, other] : {std::pair("schedule", "schedule.name"), {"schedule.name", "schedule"}}) {
    const auto twice = varied_twice(one, other);
    ASSERT_TRUE(twice.has_value());
    EXPECT_EQ(twice->path + " " + twice->message, "schedule.name is varied twice, by schedule as well");
  }
  EXPECT_TRUE(varied_twice("schedule", "schedule"));
  EXPECT_FALSE(varied_twice("schedule", "schedules"));
  EXPECT_FALSE(varied_twice("schedule.name", "schedule.micro_batch_group"));
}

TEST(Variants, LastPathChangesFastest) {
  const std::vector<Variant> variants =
      variants_of({"f"}, {"x=0"}, {{.path = "a", .values = {"1", "2"}}, {.path = "b", .values = {"3", "4"}}});
  ASSERT_EQ(variants.size(), 4u);
  EXPECT_THAT(variants[0].values, ElementsAre("1", "3"));
  EXPECT_THAT(variants[1].values, ElementsAre("1", "4"));
  EXPECT_THAT(variants[2].values, ElementsAre("2", "3"));
  EXPECT_THAT(variants[1].overrides, ElementsAre("x=0", "a=1", "b=4"));
}

TEST(Variants, FilesWithoutPathsStandAlone) {
  EXPECT_EQ(variants_of({"f", "g"}, {}, {}).size(), 2u);
}

// System: 4 ranks, 8 micro-batches, F 1 ms, B 2 ms. GPipe and 1F1B take (8 + 4 - 1) * 3 = 33 ms; GPipe holds
// all 8 micro-batches, 1F1B the 4 of its pipeline.
TEST(Outcomes, TellTimeAndWhatIsLive) {
  const auto outcomes = simulate_variants(
      variants_of({kPipeline}, {}, {{.path = "schedule", .values = {"gpipe", "1f1b"}}}), kData, 1);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].report->iteration_time, 33ms);
  EXPECT_EQ(outcomes[1].report->iteration_time, 33ms);
  EXPECT_EQ(outcomes[0].live_chunks, 8);
  EXPECT_EQ(outcomes[1].live_chunks, 4);
}

TEST(Outcomes, VariantsThatCannotRunKeepTheirPlaceAndReason) {
  const auto outcomes = simulate_variants(
      variants_of({kPipeline}, {}, {{.path = "schedule", .values = {"1f1b", "2f2b", "gpipe"}}}), kData, 1);
  EXPECT_TRUE(outcomes[0].report);
  EXPECT_FALSE(outcomes[1].report);
  ASSERT_FALSE(outcomes[1].diagnostics.empty());
  EXPECT_THAT(outcomes[1].diagnostics.front().message, HasSubstr("2f2b"));
  EXPECT_TRUE(outcomes[2].report);
}

TEST(Outcomes, NameTheAssertionsThatTheyMiss) {
  const auto outcomes = simulate_variants(variants_of({kPipeline}, {"assert={iteration_time: '<= 30 ms'}"},
                                                      {{.path = "schedule", .values = {"gpipe", "zb-h1"}}}),
                                          kData, 1);
  ASSERT_EQ(outcomes[0].missed.size(), 1u);  // 33 ms
  EXPECT_EQ(outcomes[0].missed.front().path, "assert.iteration_time");
  EXPECT_TRUE(outcomes[0].report);
  EXPECT_TRUE(outcomes[1].missed.empty());  // 27 ms
}

TEST(Outcomes, AreTheSameBitsOnAnyNumberOfThreads) {
  const std::vector<Variant> variants =
      variants_of({kPipeline}, {},
                  {{.path = "schedule", .values = {"gpipe", "1f1b"}},
                   {.path = "training.global_batch_size", .values = {"4", "8", "12", "16"}}});
  const auto one = simulate_variants(variants, kData, 1);
  const auto four = simulate_variants(variants, kData, 4);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(render_json(*one[i].report), render_json(*four[i].report));
  }
}

// System: bubble 5 -> 2, optimizer 1 -> 2, data communication 1 -> 2, the rest alike.
TEST(MovedParts, ComeLargestFirstAndInTheOrderOfTheBreakdown) {
  Report first, here;
  const auto part = [](Report& report, Category category) -> Duration& {
    return report.breakdown[static_cast<std::size_t>(category)];
  };
  part(first, Category::kForward) = part(here, Category::kForward) = 7ms;
  part(first, Category::kBubble) = 5ms;
  part(here, Category::kBubble) = 2ms;
  part(first, Category::kOptimizer) = part(first, Category::kDataComm) = 1ms;
  part(here, Category::kOptimizer) = part(here, Category::kDataComm) = 2ms;
  EXPECT_THAT(moved_parts(first, here),
              ElementsAre(MovedPart{.part = Category::kBubble, .first = 5ms, .here = 2ms},
                          MovedPart{.part = Category::kDataComm, .first = 1ms, .here = 2ms},
                          MovedPart{.part = Category::kOptimizer, .first = 1ms, .here = 2ms}));
}

// Property: what moved is what explains the difference, to the nanosecond.
TEST(MovedParts, AddUpToTheDifference) {
  const auto outcomes = simulate_variants(
      variants_of({kPipeline}, {},
                  {{.path = "schedule", .values = {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v"}}}),
      kData, 1);
  for (const Outcome& outcome : outcomes) {
    Duration moved{};
    for (const MovedPart& part : moved_parts(*outcomes.front().report, *outcome.report))
      moved += part.difference();
    EXPECT_EQ(moved, outcome.report->iteration_time - outcomes.front().report->iteration_time);
  }
}

}  // namespace
}  // namespace stagecraft
