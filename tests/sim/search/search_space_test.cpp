#include "sim/search/search_space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/scenario_tree.hpp"
#include "sim/search/check_section.hpp"
#include "tests/sim/repository_files.hpp"
#include "tests/sim/search/spaces.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing_spaces::load;
using testing_spaces::mistakes_of;
using testing_spaces::small_gpt;
using testing_spaces::SmallSpace;

TEST(GpuCounts, DoubleFromTheFirstToTheLast) {
  EXPECT_THAT(parse_gpu_counts("256..4096"), ElementsAre(256, 512, 1024, 2048, 4096));
  EXPECT_THAT(parse_gpu_counts("24..100"), ElementsAre(24, 48, 96, 100));
  EXPECT_THAT(parse_gpu_counts("8..8"), ElementsAre(8));
}

TEST(GpuCounts, MayBeListedInAnyOrder) {
  EXPECT_THAT(parse_gpu_counts("40, 8,16,8"), ElementsAre(8, 16, 40));
}

TEST(GpuCounts, AreWholeNumbersAboveZero) {
  for (const char* text : {"", "0", "-8", "8..4", "8..", "..8", "eight", "8,,16", "1.5"})
    EXPECT_THAT(parse_gpu_counts(text), IsEmpty()) << text;
}

TEST(GpuPrice, IsANumberACurrencyAndAnHour) {
  const auto price = parse_gpu_price("1.5 EUR/h");
  ASSERT_TRUE(price.has_value());
  EXPECT_EQ(price->per_hour, 1.5);
  EXPECT_EQ(price->currency, "EUR");
  EXPECT_EQ(parse_gpu_price("2USD/h")->currency, "USD");
  for (const char* text :
       {"", "2", "2 USD", "USD/h", "0 USD/h", "-1 USD/h", "2 /h", "2 US$/h", "1e3 USD/h", "/h"})
    EXPECT_FALSE(parse_gpu_price(text).has_value()) << text;
}

// check and run say what is wrong with a section that they do not use.
TEST(SearchSection, IsCheckedWithoutASearch) {
  const auto mistakes = [](const std::string& section) {
    Diagnostics diagnostics;
    const auto root = parse_yaml(small_gpt("search: " + section + "\n"), "small.yaml", diagnostics);
    check_search_section({.root = root.value(), .source = "small.yaml", .folder = "."}, repository_files(),
                         diagnostics);
    std::vector<std::string> lines;
    for (const Diagnostic& mistake : diagnostics.sorted()) lines.push_back(one_line(mistake));
    return lines;
  };
  EXPECT_THAT(mistakes("{fixx: [schedule], gpus: 256...4096, vary: {parallelism.tenso: [1]}}"),
              ElementsAre("search.fixx: is not a known key", "search.gpus: is no list of GPU counts",
                          "parallelism.tenso: is not a known key"));
  EXPECT_THAT(mistakes("[schedule]"), ElementsAre(HasSubstr("expected a mapping")));
  // A degree that does not divide is a plan that cannot be, and no mistake of the section.
  EXPECT_THAT(
      mistakes("{fix: [schedule], vary: {parallelism.tensor: [1, 2, 3], training.recompute: [none, full]}}"),
      IsEmpty());
}

TEST(SearchSpace, HasTheDefaultsWhereNobodySaysOtherwise) {
  const SearchSpace space = load(small_gpt()).space;
  ASSERT_NE(space.find("parallelism.tensor"), nullptr);
  EXPECT_TRUE(space.find("parallelism.tensor")->all());
  EXPECT_EQ(space.find("parallelism.zero_stage")->values.size(), 4u);
  EXPECT_FALSE(space.batch_at_most);
}

TEST(SearchSpace, TakesTheScenarioOverTheDefaultsAndTheCommandLineOverBoth) {
  const std::string yaml = small_gpt(
      "search: {vary: {parallelism.tensor: [1, 2], parallelism.zero_stage: [0, 1]}, fix: [schedule], price: "
      "2 "
      "USD/h}\n");
  const SearchSpace space =
      load(yaml,
           {.vary = {"parallelism.tensor=4"}, .fix = {"training.recompute"}, .gpus = {}, .price = "3 EUR/h"})
          .space;
  ASSERT_EQ(space.find("parallelism.tensor")->values.size(), 1u);
  EXPECT_EQ(space.find("parallelism.tensor")->values[0].text, "4");
  EXPECT_EQ(space.find("parallelism.zero_stage")->values.size(), 2u);
  EXPECT_EQ(space.find("schedule"), nullptr);
  EXPECT_EQ(space.find("training.recompute"), nullptr);
  EXPECT_EQ(space.price->currency, "EUR");
}

// What the command line says of a path of the file is as documented.
TEST(SearchSpace, IsNotToldTwoThingsOfOnePath) {
  const auto mistakes = [](const SearchWords& words) { return mistakes_of(small_gpt(), words); };
  EXPECT_THAT(mistakes({.vary = {"parallelism.tensor=1", "parallelism.tensor=2"}}),
              HasSubstr("parallelism.tensor: is varied twice"));
  EXPECT_THAT(mistakes({.vary = {"schedule.name=1f1b", "schedule=gpipe"}}),
              HasSubstr("schedule.name: is varied twice, by schedule as well"));
  EXPECT_THAT(mistakes({.vary = {"parallelism.tensor=1"}, .fix = {"parallelism.tensor"}}),
              HasSubstr("parallelism.tensor: is varied as well"));
  const SmallSpace two =
      load(small_gpt("search: {vary: {parallelism.tensor: [1]}, fix: [parallelism.pipeline]}\n"),
           {.vary = {"parallelism.tensor=2"}, .fix = {"schedule"}});
  EXPECT_EQ(two.space.find("parallelism.tensor")->values.front().text, "2");
  EXPECT_EQ(two.space.find("schedule"), nullptr);
}

// A listed path says all of the paths below it, and a part of one says what the whole is.
TEST(SearchSpace, LetsThePathsOfADefaultGiveWayToItsPartsAndItsWhole) {
  for (const std::string vary :
       {"training.recompute.granularity=none,full", "training.recompute=none,full"}) {
    const SmallSpace small = load(small_gpt(), {.vary = {vary}});
    std::vector<std::string> below;
    for (const SearchAxis& axis : small.space.axes)
      if (axis.path.starts_with("training.recompute")) below.push_back(axis.path);
    EXPECT_THAT(below, ElementsAre(vary.substr(0, vary.find('='))));
  }
  const SmallSpace whole =
      load(small_gpt(), {.vary = {"parallelism={tensor: 2},{tensor: 4}"}, .fix = {"schedule"}});
  for (const SearchAxis& axis : whole.space.axes) EXPECT_FALSE(axis.path.starts_with("parallelism."));
  for (const SearchPoint& point : whole.plans.points)
    EXPECT_EQ(point.tensor, whole.plans.frames[point.frame].scenario.parallelism.tensor);
  EXPECT_THAT(mistakes_of(small_gpt("search: {vary: {training: [{}], training.recompute: [full]}}\n")),
              HasSubstr("training.recompute: is varied twice, by training as well"));
}

TEST(SearchSpace, TakesAMappingForAValueWhereNothingDivides) {
  const SmallSpace one =
      load(small_gpt(), {.vary = {"schedule={name: interleaved-1f1b, micro_batch_group: 8}"}});
  for (const SearchFrame& frame : one.plans.frames) EXPECT_EQ(frame.scenario.schedule.micro_batch_group, 8);
  EXPECT_EQ(load(small_gpt("search: {vary: {cluster.fabric: {kind: single-switch}}}\n"))
                .space.find("cluster.fabric")
                ->values.size(),
            1u);
}

TEST(SearchSpace, MayBeToldTwiceWhatItFixes) {
  EXPECT_EQ(load(small_gpt(), {.fix = {"schedule", "schedule"}}).space.find("schedule"), nullptr);
  EXPECT_EQ(load(small_gpt("search: {fix: [schedule]}\n"), {.fix = {"schedule"}}).space.find("schedule"),
            nullptr);
  // What it fixes has given way to a part of it.
  EXPECT_EQ(
      load(small_gpt(), {.vary = {"training.recompute.granularity=none,full"}, .fix = {"training.recompute"}})
          .space.find("training.recompute"),
      nullptr);
  EXPECT_THAT(mistakes_of(small_gpt("search: {vary: {schedule: [1f1b]}, fix: [schedule]}\n")),
              HasSubstr("schedule: is varied as well"));
  EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {"parallelism={tensor: 2}"}, .fix = {"parallelism.tensor"}}),
              HasSubstr("parallelism.tensor: is varied as well"));
}

TEST(SearchSpace, HasNumbersOfGpusOrVariesTheirNodes) {
  for (const std::string path : {"cluster.nodes", "cluster.gpus"})
    EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {path + "=1,2"}, .gpus = "8,16"}),
                StartsWith("--gpus 8,16: error: " + path + ": varies, and the search has numbers of GPUs"));
  EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {"cluster={node: dgx-h100, nodes: 1}"}, .gpus = "8"}),
              HasSubstr("cluster: varies"));
}

TEST(SearchSpace, VariesNoSettingOfItsOwn) {
  for (const std::string path : {"search.gpus", "search"})
    EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {path + "=4"}}),
                HasSubstr(path + ": is a setting of the whole search"));
}

TEST(SearchSpace, SaysWhatIsWrongWithIt) {
  EXPECT_THAT(mistakes_of(small_gpt("search: {very: {}}\n")), HasSubstr("did you mean 'vary'?"));
  EXPECT_THAT(mistakes_of(small_gpt("search: {fix: [schedul]}\n")), HasSubstr("did you mean 'schedule'?"));
  EXPECT_THAT(mistakes_of(small_gpt("search: {vary: {schedule: all}}\n")), HasSubstr("list the values"));
  EXPECT_THAT(mistakes_of(small_gpt("search: {vary: {parallelism.tensor: []}}\n")),
              HasSubstr("has no value"));
  EXPECT_THAT(mistakes_of(small_gpt("search: {price: 2}\n")), HasSubstr("2 USD/h"));
  EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {"parallelism.tensor=two"}}),
              HasSubstr("'two' is no whole number"));
  EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {"overlap.gradients=yes"}}),
              HasSubstr("neither true nor false"));
  EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {"schedule=1f2b"}}), HasSubstr("not a known schedule"));
  EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {"training.nonsense=1"}}), HasSubstr("not a known key"));
  EXPECT_THAT(mistakes_of(small_gpt(), {.gpus = "12"}), HasSubstr("no whole nodes of 8"));
  EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {"parallelism.tensor=3"}}),
              HasSubstr("has no plan: parallelism.tensor 3 does not divide 8 GPUs"));
  EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {"parallelism.tensor=3,8", "parallelism.pipeline=4"}}),
              HasSubstr("has no plan: no choice of its degrees multiplies to 8 GPUs"));
}

// An option has no lines.
TEST(SearchSpace, AMistakeOfTheCommandLineStandsInItsOption) {
  for (const auto& [vary, mistake] :
       {std::pair("schedule=all", "schedule: has no numbers that divide"),
        std::pair("parallelism.tensor=two", "parallelism.tensor: 'two' is no"),
        std::pair("parallelism.tensor=[1", "parallelism.tensor: this '[' is never closed"),
        std::pair("training.none=1", "training.none: is not a known key"),
        std::pair("parallelism.tensor=3,5", "search: the space has no plan")})
    EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {vary}}),
                StartsWith(std::string("--vary ") + vary + ": error: " + mistake));
  EXPECT_THAT(mistakes_of(small_gpt(), {.gpus = "12"}),
              StartsWith("--gpus 12: error: search.gpus: 12 GPUs are no whole nodes of 8"));
  EXPECT_THAT(mistakes_of(small_gpt(), {.vary = {"parallelism.tensor=3"}, .gpus = "16"}),
              StartsWith("--gpus 16 --vary parallelism.tensor=3: error: search: the space has no plan"));
}

TEST(SearchSpace, AMistakeOfTheScenarioStandsInIt) {
  EXPECT_THAT(mistakes_of(small_gpt("search: {gpus: 12}\n")),
              StartsWith("small.yaml:5:16: error: search.gpus: 12 GPUs are no whole nodes of 8"));
  EXPECT_THAT(mistakes_of(small_gpt("search: {vary: {parallelism.tensor: [3]}}\n")),
              StartsWith("small.yaml: error: search: the space has no plan"));
}

}  // namespace
}  // namespace stagecraft
