#include "sim/study/sweep_points.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace stagecraft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SweepPointsTest : public testing::Test {
 protected:
  std::optional<SweepPoints> find(const std::string& lines, const std::string& base = "pipeline-4x8.yaml") {
    std::ofstream(file_) << "stagecraft: 1\nbase: " STAGECRAFT_SOURCE_DIR "/scenarios/" << base << "\n"
                         << lines;
    diagnostics_ = {};
    const auto spec = load_sweep(file_, overrides_, library_, diagnostics_);
    std::filesystem::remove(file_);
    return spec ? SweepPoints::of(*spec, library_, diagnostics_) : std::nullopt;
  }
  // Each point's values, with blanks between.
  std::vector<std::string> values(const std::string& lines, const std::string& base = "pipeline-4x8.yaml") {
    const auto points = find(lines, base);
    std::vector<std::string> all;
    if (!points) return {diagnostics_.items().at(0).message};
    for (std::size_t i = 0; i < points->size(); ++i) {
      std::string& text = all.emplace_back();
      for (const Assignment& assignment : points->assignments(i))
        text += (text.empty() ? "" : " ") + assignment.value.text;
    }
    return all;
  }

  std::string file_ = testing::TempDir() + "points_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
  std::vector<std::string> overrides_;
  Library library_{DataDirectory{STAGECRAFT_SOURCE_DIR}};
  Diagnostics diagnostics_;
};

TEST_F(SweepPointsTest, TheLastPathChangesFastest) {
  EXPECT_THAT(values("vary:\n  a: [1, 2]\n  b, c: [[3, x], [4, y]]\n"),
              ElementsAre("1 3 x", "1 4 y", "2 3 x", "2 4 y"));
}

TEST_F(SweepPointsTest, WhereKeepsTheOrderAndMayNameWhatDoesNotVary) {
  // The base has 4 stages.
  EXPECT_THAT(values("vary:\n  parallelism.tensor: [1, 2, 4]\nwhere: tensor * pipeline <= 8\n"),
              ElementsAre("1", "2"));
  EXPECT_THAT(values("vary:\n  parallelism.tensor: [1, 2, 4]\nwhere: [tensor > 1, parallelism.tensor < 4]\n"),
              ElementsAre("2"));
}

// A model's numbers and all defaults are names as well: GPT-3 175B has 96 layers and is not sharded.
TEST_F(SweepPointsTest, WhereSeesTheResolvedBase) {
  EXPECT_THAT(
      values("vary:\n  parallelism.pipeline: [5, 6, 8]\nwhere: layers % pipeline == 0 and expert == 1\n",
             "gpt3-175b-1024xA100.yaml"),
      ElementsAre("6", "8"));
}

// One cost for all stages is a list of one in the resolved base; several have no single value.
TEST_F(SweepPointsTest, ACostThatAllStagesShareIsAValue) {
  const std::string vary = "vary:\n  training.global_batch_size: [4, 8]\n";
  for (const char* where :
       {"model.forward < '1.5 ms'", "weight_gradient == '1 ms'", "input_gradient <= '1 ms'",
        "activation == '16 MiB'", "model.gradient > '256 MiB'"})
    EXPECT_THAT(values(vary + "where: \"" + where + "\"\n"), ElementsAre("4", "8")) << where;
  EXPECT_THAT(values(vary + "where: \"model.forward > '1.5 ms'\"\n"), ElementsAre("no point is left"));
  EXPECT_THAT(values("vary:\n  model.forward: [[1 ms, 2 ms]]\nwhere: \"forward < '1.5 ms'\"\n"),
              ElementsAre(HasSubstr("'forward' has no single value")));
}

TEST_F(SweepPointsTest, ANamedMappingIsItsName) {
  EXPECT_THAT(values("vary:\n  schedule: [gpipe, {name: interleaved-1f1b, micro_batch_group: 8}]\n"
                     "where: schedule == 'gpipe'\n"),
              ElementsAre("gpipe"));
}

TEST_F(SweepPointsTest, MistakesInNamesAreToldWithAWayOut) {
  EXPECT_FALSE(find("vary:\n  parallelism.tensor: [1]\nwhere: tensro == 1\n"));
  EXPECT_EQ(diagnostics_.items().at(0).message, "'tensro' is neither varied nor a key of the base");
  EXPECT_EQ(diagnostics_.items().at(0).hint, "did you mean 'tensor'?");
  EXPECT_EQ(diagnostics_.items().at(0).where.line, 5);
  EXPECT_FALSE(
      find("vary:\n  model: [gpt3-175b, gpt3-13b]\nwhere: hidden > 1\n", "gpt3-175b-1024xA100.yaml"));
  EXPECT_THAT(diagnostics_.items().at(0).message, HasSubstr("model varies"));
  EXPECT_FALSE(find("vary:\n  a.x: [1]\n  b.x: [2]\nwhere: x == 1\n"));
  EXPECT_EQ(diagnostics_.items().at(0).message, "'x' may be a.x or b.x");
}

// The replicas of a base that leaves them out are what other degrees leave of its GPUs.
TEST_F(SweepPointsTest, AKeyThatTheBaseLeavesOutIsNamed) {
  EXPECT_THAT(values("vary:\n  parallelism.tensor: [4, 8]\nwhere: data == 8\n"),
              ElementsAre("parallelism.data is neither varied nor given in the base"));
  EXPECT_EQ(diagnostics_.items().at(0).code, "not-given");
  EXPECT_THAT(diagnostics_.items().at(0).hint, HasSubstr("vary it, or give it"));
}

// What nobody wrote and a varied value changes is no constant: the base's would let wrong points through.
TEST_F(SweepPointsTest, ADefaultThatFollowsFromWhatVariesIsRefused) {
  const std::string gpt = "gpt3-175b-1024xA100.yaml";
  EXPECT_THAT(
      values("vary:\n  schedule: [1f1b, zb-v]\nwhere: virtual_stages == 1\n"),
      ElementsAre("parallelism.virtual_stages is not known before a point runs: it follows from schedule, "
                  "which varies"));
  EXPECT_EQ(diagnostics_.items().at(0).code, "not-constant");
  EXPECT_EQ(diagnostics_.items().at(0).hint, "vary it, or give it");
  EXPECT_THAT(values("vary:\n  training.precision: [bf16, fp16]\nwhere: gradient_dtype == 'fp32'\n", gpt),
              ElementsAre(HasSubstr("training.gradient_dtype is not known before a point runs")));
  EXPECT_THAT(
      values("vary:\n  cluster.node: [dgx-a100-80gb, dgx-h100]\nwhere: collective_efficiency > 0.8\n", gpt),
      ElementsAre(HasSubstr("it follows from cluster.node, which varies")));
  // The same with each value, and what is written: constants.
  EXPECT_THAT(values("vary:\n  schedule: [1f1b, gpipe]\nwhere: virtual_stages == 1\n"),
              ElementsAre("1f1b", "gpipe"));
  EXPECT_THAT(values("vary:\n  schedule: [1f1b, zb-v]\nwhere: pipeline == 4\n"), ElementsAre("1f1b", "zb-v"));
}

// Under ZeRO 3 both nodes run one software in bf16, and the H100 runs it in fp16, too; the A100 runs another there.
TEST_F(SweepPointsTest, ADefaultThatFollowsFromSeveralVariedKeysTogetherIsRefused) {
  const std::string llama = "llama3-8b-64xA100.yaml";
  const std::string nodes = "vary:\n  cluster.node: [dgx-h100, dgx-a100-80gb]\n";
  const std::string precisions = "  training.precision: [bf16, fp16]\n";
  const std::string where = "where: software == 'fsdp2'\n";
  overrides_ = {"cluster.node=dgx-h100", "parallelism.tensor=1", "parallelism.sequence_parallel=false",
                "parallelism.data=64", "parallelism.zero_stage=3"};
  EXPECT_THAT(values(nodes + precisions + where, llama),
              ElementsAre("options.software is not known before a point runs: it follows from cluster.node "
                          "together with training.precision, which vary"));
  EXPECT_EQ(diagnostics_.items().at(0).code, "not-constant");
  // The other key has no part in it, and the grid is too large to try each point.
  const std::string lengths = "  training.sequence_length: {from: 8, to: 4096, step: 8}\n";
  EXPECT_THAT(values(nodes + lengths + precisions + where, llama),
              ElementsAre(HasSubstr("it follows from cluster.node together with training.precision, which")));
  // Of a node that runs the same in both, and of one precision, it is a constant.
  EXPECT_THAT(values("vary:\n  cluster.node: [dgx-h100]\n" + precisions + where, llama),
              ElementsAre("dgx-h100 bf16", "dgx-h100 fp16"));
  EXPECT_THAT(values(nodes + "  training.precision: [bf16]\n" + where, llama),
              ElementsAre("dgx-h100 bf16", "dgx-a100-80gb bf16"));
}

// Nodes of 8 GPUs each, or a part of one.
TEST_F(SweepPointsTest, GpusAreThoseOfTheJob) {
  const std::string gpt = "gpt3-175b-1024xA100.yaml";
  EXPECT_THAT(values("vary:\n  cluster.nodes: [16, 64, 128]\nwhere: gpus <= 512\n", gpt),
              ElementsAre("16", "64"));
  EXPECT_THAT(values("vary:\n  parallelism.tensor: [4, 8]\nwhere: gpus == 1024\n", gpt),
              ElementsAre("4", "8"));
  EXPECT_THAT(values("vary:\n  cluster: [{node: dgx-a100-80gb, gpus: 4}]\nwhere: gpus == 4\n", gpt),
              ElementsAre(HasSubstr("cluster varies")));
  EXPECT_THAT(values("vary:\n  cluster.gpus: [2, 4]\n  cluster.nodes: [null]\nwhere: gpus > 2\n", gpt),
              ElementsAre("4 "));
  EXPECT_THAT(values("vary:\n  cluster.node: [dgx-h100, dgx-a100-80gb]\nwhere: gpus <= 512\n", gpt),
              ElementsAre(HasSubstr("cluster.node.gpus is not known before a point runs")));
  EXPECT_THAT(values("vary:\n  cluster.nodes: [16, 64]\nwhere: cluster.node.gpus == 8\n", gpt),
              ElementsAre("16", "64"));
}

// Without a cluster they are the ranks: 4 stages, one replica unless there are more.
TEST_F(SweepPointsTest, GpusOfAJobWithoutAClusterAreItsRanks) {
  EXPECT_THAT(values("vary:\n  parallelism.pipeline: [1, 2, 4, 8]\nwhere: gpus == 4\n"), ElementsAre("4"));
  EXPECT_THAT(values("vary:\n  parallelism.pipeline: [2, 4]\n  parallelism.data: [1, 2]\nwhere: gpus == 4\n"),
              ElementsAre("2 2", "4 1"));
  EXPECT_THAT(values("vary:\n  schedule: [gpipe, 1f1b]\nwhere: gpus == 4\n"), ElementsAre("gpipe", "1f1b"));
  EXPECT_THAT(values("vary:\n  parallelism: [{pipeline: 4}]\nwhere: gpus == 4\n"),
              ElementsAre(HasSubstr("parallelism varies")));
}

// Two nodes of 8 GPUs each of two kinds.
TEST_F(SweepPointsTest, GpusOfGroupsOfNodesAreCounted) {
  const std::string groups = "[{node: dgx-h100, nodes: 2}, {node: dgx-a100-80gb, nodes: 2}]";
  overrides_ = {"cluster={nodes: " + groups + "}"};
  EXPECT_THAT(values("vary:\n  schedule: [gpipe, 1f1b]\nwhere: gpus == 32\n"), ElementsAre("gpipe", "1f1b"));
  EXPECT_THAT(values("vary:\n  schedule: [gpipe, 1f1b]\nwhere: gpus == 16\n"),
              ElementsAre("no point is left"));
  EXPECT_THAT(
      values("vary:\n  cluster.nodes: [" + groups + ", [{node: dgx-h100, nodes: 1}, " +
             "{node: dgx-a100-80gb, nodes: 1}]]\nwhere: gpus == 32\n"),
      ElementsAre("gpus is not known before a point runs: it follows from cluster.nodes, which varies"));
  overrides_.push_back("schedule=nowhere");
  EXPECT_THAT(values("vary:\n  schedule: [1f1b]\nwhere: gpus == 32\n"),
              ElementsAre(HasSubstr("the base does not load without what varies")));
}

// Neither loads alone: the H100's profile lacks the base's kernel, the A100's lacks fa3.
TEST_F(SweepPointsTest, AValueThatDoesNotLoadAloneIsTriedBesideOthers) {
  overrides_ = {"options.attention_kernel=triton-2023"};
  EXPECT_THAT(
      values("vary:\n  cluster.node: [dgx-h100]\n  options.attention_kernel: [fa3]\n"
             "where: profile == 'a100-sxm4-80gb'\n",
             "gpt3-175b-1024xA100.yaml"),
      ElementsAre(HasSubstr("profile is not known before a point runs: it follows from cluster.node")));
}

TEST_F(SweepPointsTest, AnExpressionWithoutAnAnswerSaysAtWhichPoint) {
  EXPECT_THAT(values("vary:\n  a.x: [1, 0]\nwhere: 4 / x > 1\n"), ElementsAre("it divides by 0 (at x = 0)"));
}

TEST_F(SweepPointsTest, AKeyThatAPointTakesAwayIsNamedAsSuch) {
  EXPECT_THAT(
      values("vary:\n  parallelism.zero_stage: [1, null]\n  parallelism.virtual_stages: [1]\n"
             "where: zero_stage * virtual_stages == 1\n"),
      ElementsAre("the point takes 'zero_stage' away, and its default is not known before the point is "
                  "loaded (at virtual_stages = 1)"));
  // Where the other part decides, nobody asks.
  EXPECT_THAT(values("vary:\n  a: [1, 2]\n  b: [null]\nwhere: a == 2 or b == 1\n"),
              ElementsAre(HasSubstr("the point takes 'b' away")));
  EXPECT_THAT(values("vary:\n  a: [2]\n  b: [null]\nwhere: a == 2 or b == 1\n"), ElementsAre("2 "));
}

TEST_F(SweepPointsTest, NoPointLeftIsAMistake) {
  EXPECT_THAT(values("vary:\n  a.x: [1, 2]\nwhere: x > 2\n"), ElementsAre("no point is left"));
}

TEST_F(SweepPointsTest, TooManyPointsAreAMistakeBeforeTheyAreMade) {
  const std::string range = "{from: 1, to: 2000, step: 1}";
  EXPECT_THAT(values("vary:\n  a: " + range + "\n  b: " + range + "\n"),
              ElementsAre(HasSubstr("more than 1,000,000 points")));
}

TEST_F(SweepPointsTest, ASampleIsTheSameForTheSameSeed) {
  const std::string vary = "vary:\n  a: {from: 0.001, to: 0.1, scale: log}\n  b: [x, y, z]\n";
  const auto one = values(vary + "sample: {method: random, points: 50, seed: 7}\n");
  EXPECT_EQ(one, values(vary + "sample: {method: random, points: 50, seed: 7}\n"));
  EXPECT_NE(one, values(vary + "sample: {method: random, points: 50, seed: 8}\n"));
  EXPECT_EQ(one.size(), 50u);
}

// A larger random sample begins with the smaller one: nothing that was simulated is lost.
TEST_F(SweepPointsTest, ARandomSampleGrowsAtItsEnd) {
  const std::string vary = "vary:\n  a: {from: 1, to: 1000}\n";
  const auto few = values(vary + "sample: {method: random, points: 5}\n");
  auto many = values(vary + "sample: {method: random, points: 50}\n");
  many.resize(5);
  EXPECT_EQ(few, many);
}

TEST_F(SweepPointsTest, ARandomSampleDrawsUntilWhereHasEnough) {
  const auto all =
      values("vary:\n  a.x: {from: 0, to: 100}\nsample: {method: random, points: 40}\nwhere: x < 10\n");
  EXPECT_EQ(all.size(), 40u);
  for (const std::string& x : all) EXPECT_LT(std::stod(x), 10) << x;
}

// System: 10 points over [0, 1) and a list of 5. Expectations: one in each tenth, two of each value.
TEST_F(SweepPointsTest, ALatinHypercubeMeetsEachSliceOnce) {
  const auto points = find(
      "vary:\n  a: {from: 0.0001, to: 1.0001}\n  b: [p, q, r, s, t]\nsample: {method: latin-hypercube, "
      "points: 10}\n");
  ASSERT_TRUE(points);
  std::set<int> slices;
  std::multiset<std::string> letters;
  for (std::size_t i = 0; i < points->size(); ++i) {
    const auto values = points->assignments(i);
    slices.insert(static_cast<int>(std::floor((std::stod(values[0].value.text) - 0.0001) * 10)));
    letters.insert(values[1].value.text);
  }
  EXPECT_EQ(slices.size(), 10u);
  for (const char* letter : {"p", "q", "r", "s", "t"}) EXPECT_EQ(letters.count(letter), 2u) << letter;
}

// System: 60 points over 1 to 6. Expectations: each number ten times, the ends too.
TEST_F(SweepPointsTest, ALatinHypercubeMeetsEachWholeNumberEquallyOften) {
  const auto all = values("vary:\n  a: {from: 1, to: 6}\nsample: {method: latin-hypercube, points: 60}\n");
  for (const char* number : {"1", "2", "3", "4", "5", "6"})
    EXPECT_EQ(std::ranges::count(all, number), 10) << number;
}

// System: 3,000 draws of 1 to 3. Expectations: 1,000 of each; seven standard deviations of 26 are 180. Ends
// of half a weight would have 750.
TEST_F(SweepPointsTest, ARandomSampleDrawsEachWholeNumberEquallyOften) {
  const auto all = values("vary:\n  a: {from: 1, to: 3}\nsample: {method: random, points: 3000}\n");
  for (const char* number : {"1", "2", "3"})
    EXPECT_NEAR(static_cast<double>(std::ranges::count(all, number)), 1000, 180) << number;
}

// System: 1 to 4, logarithmic, 1,000 slices. Expectations: a number has the slices between the halves beside
// it, of log(4.5 / 0.5) in all: log 3, log(5 / 3), log(7 / 5) and log(9 / 7).
TEST_F(SweepPointsTest, ALogarithmicSampleGivesEachWholeNumberItsPlace) {
  const auto all =
      values("vary:\n  a: {from: 1, to: 4, scale: log}\nsample: {method: latin-hypercube, points: 1000}\n");
  for (int n = 1; n <= 4; ++n) {
    const double share = std::log((n + 0.5) / (n - 0.5)) / std::log(9.0);
    EXPECT_NEAR(static_cast<double>(std::ranges::count(all, std::to_string(n))), 1000 * share, 2) << n;
  }
}

}  // namespace
}  // namespace stagecraft
