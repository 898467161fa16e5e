#include "sim/study/sweep_row.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sim/study/ordered_pool.hpp"
#include "sim/study/row_columns.hpp"

namespace stagecraft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const DataDirectory kData{STAGECRAFT_SOURCE_DIR};

class SweepRowTest : public testing::Test {
 protected:
  Sweep sweep(const std::string& lines, const RowOptions& options = {},
              const std::string& base = "pipeline-4x8.yaml") {
    std::ofstream(file_) << "stagecraft: 1\nbase: " STAGECRAFT_SOURCE_DIR "/scenarios/" << base << "\n"
                         << lines;
    Library library(kData);
    Diagnostics diagnostics;
    auto prepared = prepare_sweep(file_, {}, options, library, diagnostics);
    std::filesystem::remove(file_);
    for (const Diagnostic& diagnostic : diagnostics.items()) ADD_FAILURE() << render(diagnostic);
    return *std::move(prepared);
  }
  static std::vector<RowDocument> rows(const Sweep& sweep, int threads = 1) {
    PayloadCache cache;
    std::vector<std::size_t> all(sweep.points.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::vector<RowDocument> documents;
    OrderedPool pool;
    pool.threads = threads;
    pool.make_work = [&] {
      auto runner = std::make_shared<PointRunner>(sweep, kData, cache);
      return [runner](std::size_t point) { return runner->row(point); };
    };
    pool.accept = [&](std::size_t, const std::string& line) {
      Diagnostics diagnostics;
      documents.push_back(read_row(line, {}, diagnostics).value());
      return true;
    };
    pool.run(all);
    return documents;
  }

  std::string file_ =
      testing::TempDir() + "row_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
};

// System: 4 stages, 8 micro-batches of 1 + 2 ms. Expectations: 33 ms for GPipe and 1F1B, (8 + 3) * 3.
TEST_F(SweepRowTest, HasWhatRunHas) {
  const auto all = rows(sweep("vary:\n  schedule: [gpipe, 1f1b]\n"));
  ASSERT_EQ(all.size(), 2u);
  for (const RowDocument& row : all) {
    EXPECT_TRUE(row.feasible());
    EXPECT_EQ(row.text("iteration_time_s"), "0.033");
    EXPECT_EQ(row.text("memory.verdict"), "fits");
  }
  EXPECT_EQ(all[1].text("vary.schedule"), "1f1b");
}

TEST_F(SweepRowTest, APointThatCannotRunIsARowWithItsReason) {
  const auto all = rows(
      sweep("vary:\n  schedule: [1f1b, interleaved-1f1b, nonsense]\n  parallelism.virtual_stages: [1]\n"));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0].feasible());
  EXPECT_FALSE(all[1].feasible());
  const RowColumn reason{.name = "reason", .kind = RowColumn::Kind::kReason};
  EXPECT_THAT(cell_of(all[1], reason).text, StartsWith("schedule-constraint: "));
  EXPECT_THAT(cell_of(all[2], reason).text, HasSubstr("nonsense"));
  EXPECT_EQ(all[2].at("hash")->kind, YamlNode::Kind::kNull);
}

TEST_F(SweepRowTest, AMissedAssertionIsAReason) {
  const auto all = rows(sweep("vary:\n  assert.iteration_time: ['<= 33 ms', '< 33 ms']\n"));
  EXPECT_TRUE(all[0].feasible());
  EXPECT_FALSE(all[1].feasible());
  EXPECT_EQ(all[1].text("iteration_time_s"), "0.033");
}

// One value said in two ways is one scenario: the point is another, the hash and the result are the same.
TEST_F(SweepRowTest, IdenticalScenariosAreSimulatedOnce) {
  const Sweep twice = sweep("vary:\n  model.forward: [1 ms, 0.001 s, 2 ms]\n");
  PayloadCache cache;
  PointRunner runner(twice, kData, cache);
  std::vector<std::string> lines;
  for (std::size_t point = 0; point < 3; ++point) lines.push_back(runner.row(point));
  EXPECT_EQ(cache.reused(), 1u);
  EXPECT_EQ(runner.hash(0), runner.hash(1));
  EXPECT_NE(runner.hash(0), runner.hash(2));
  EXPECT_EQ(lines[0].substr(row_head(twice, 0).size()), lines[1].substr(row_head(twice, 1).size()));
}

TEST_F(SweepRowTest, RowsBeginWithTheirHead) {
  const Sweep some = sweep("vary:\n  schedule: [1f1b]\n");
  PayloadCache cache;
  EXPECT_THAT(PointRunner(some, kData, cache).row(0), StartsWith(row_head(some, 0) + ",\"hash\":\""));
  EXPECT_EQ(row_head(some, 0), R"({"schema":"stagecraft.sweep/1","sweep":")" + some.hash +
                                   R"(","point":0,"points":1,"vary":{"schedule":"1f1b"})");
}

TEST_F(SweepRowTest, TheSweepsHashKnowsAllThatDecidesTheRows) {
  const std::string one = sweep("vary:\n  schedule: [gpipe, 1f1b]\n").hash;
  EXPECT_EQ(one, sweep("name: other words\nvary: {schedule: [gpipe, 1f1b]}\n").hash);
  EXPECT_NE(one, sweep("vary:\n  schedule: [1f1b, gpipe]\n").hash);
  EXPECT_NE(one, sweep("vary:\n  schedule: [gpipe, 1f1b]\n", {.seed = 2}).hash);
  EXPECT_NE(one, sweep("vary:\n  schedule: [gpipe, 1f1b]\n", {.detail = ResultDetail::kWhole}).hash);
}

TEST_F(SweepRowTest, AreTheSameOnAnyNumberOfThreads) {
  const Sweep grid = sweep(
      "vary:\n  schedule: [gpipe, 1f1b, zb-h1, interleaved-1f1b]\n  training.global_batch_size: [4, 8, 16, "
      "8]\n"
      "  parallelism.virtual_stages: [1, 2]\n");
  const auto one = rows(grid, 1);
  ASSERT_EQ(one.size(), 32u);
  for (const int threads : {2, 8}) {
    const auto many = rows(grid, threads);
    ASSERT_EQ(many.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(many[i].line, one[i].line) << i;
  }
}

// Property: points on hardware, with memory and with weeks of failures, are the same lines on any number of
// threads.
TEST_F(SweepRowTest, WholePointsAreTheSameOnAnyNumberOfThreads) {
  const std::string plans =
      "vary:\n  parallelism.tensor: [1, 2, 4]\n  training.recompute: [none, full]\n"
      "  schedule: [1f1b, zb-h1]\n";
  const std::string rates =
      "vary:\n  failures.process.rate_per_node_day: [0.01, 0.1]\n  failures.policy: [hot-spares, recycle]\n"
      "  failures.repeats: [2]\n";
  for (const auto& [lines, base] :
       {std::pair{plans, "llama3-8b-64xA100.yaml"}, std::pair{rates, "goodput/checkpoint-restart.yaml"}}) {
    const Sweep points = sweep(lines, {}, base);
    const std::vector<RowDocument> alone = rows(points, 1), together = rows(points, 4);
    ASSERT_EQ(alone.size(), together.size());
    for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(alone[i].line, together[i].line);
  }
}

}  // namespace
}  // namespace stagecraft
