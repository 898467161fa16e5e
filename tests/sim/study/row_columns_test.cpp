#include "sim/study/row_columns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace stagecraft {
namespace {

const std::string kRow =
    R"({"schema":"stagecraft.sweep/1","sweep":"00000000000000aa","point":3,"points":4,"vary":{"schedule":"1f1b",)"
    R"("parallelism.stage_layers":[2,1],"a.b":null},"hash":"00000000000000bb","feasible":false,)"
    R"("reasons":[{"code":"out-of-memory","path":"memory","message":"stage 0 needs 91.3 GiB, \"of\" 80","hint":""}],)"
    R"("gpus":8,"iteration_time_s":0.1,"memory":{"verdict":"out-of-memory","peak_bytes":98032877568}})";

RowDocument row() {
  Diagnostics diagnostics;
  return read_row(kRow, {}, diagnostics).value();
}

TEST(Rows, ReadBack) {
  EXPECT_EQ(row().point, 3u);
  EXPECT_EQ(row().points, 4u);
  EXPECT_EQ(row().sweep, "00000000000000aa");
  EXPECT_FALSE(row().feasible());
  EXPECT_EQ(row().number("memory.peak_bytes"), 98032877568.0);
  EXPECT_EQ(row().number("memory.nothing"), std::nullopt);
  EXPECT_THAT(varied_paths(row()), testing::ElementsAre("schedule", "parallelism.stage_layers", "a.b"));
}

TEST(Rows, OtherLinesAreNone) {
  for (const char* line : {"", "{}", "[1]", R"({"schema":"stagecraft.result/1","point":0,"points":1})",
                           R"({"schema":"stagecraft.sweep/1","point":4,"points":4})"}) {
    Diagnostics diagnostics;
    EXPECT_FALSE(read_row(line, {.file = "f", .line = 2}, diagnostics)) << line;
    EXPECT_EQ(diagnostics.items().at(0).code, "not-a-row");
  }
}

TEST(Csv, QuotesWhatNeedsIt) {
  const std::vector<RowColumn> columns = {
      {.name = "point"},
      {.name = "schedule", .kind = RowColumn::Kind::kVaried},
      {.name = "parallelism.stage_layers", .kind = RowColumn::Kind::kVaried},
      {.name = "a.b", .kind = RowColumn::Kind::kVaried},
      {.name = "feasible"},
      {.name = "reason", .kind = RowColumn::Kind::kReason},
      {.name = "iteration_time_s"},
      {.name = "goodput.ettr"}};
  EXPECT_EQ(csv_header(columns),
            "point,schedule,parallelism.stage_layers,a.b,feasible,reason,iteration_time_s,goodput.ettr");
  EXPECT_EQ(csv_line(row(), columns),
            R"(3,1f1b,"[2,1]",,false,"out-of-memory: memory: stage 0 needs 91.3 GiB, ""of"" 80",0.1,)");
}

// Whoever reads the file by number finds them there.
TEST(Csv, HasTheBucketsInTheirPlaces) {
  std::vector<std::string> names;
  for (const RowColumn& column : row_columns({}, true)) names.push_back(column.name);
  const auto first = std::find(names.begin(), names.end(), "goodput.restarts");
  ASSERT_NE(first, names.end());
  EXPECT_THAT(
      std::vector(first + 1, first + 10),
      testing::ElementsAre("goodput.buckets_s.productive", "goodput.buckets_s.lost_work",
                           "goodput.buckets_s.checkpoint", "goodput.buckets_s.detect",
                           "goodput.buckets_s.reconfigure", "goodput.buckets_s.state_transfer",
                           "goodput.buckets_s.degraded", "goodput.buckets_s.idle", "interval_90_s.0"));
}

TEST(Csv, HasGoodputWhereAskedFor) {
  const auto without = row_columns({"x"}, false), with = row_columns({"x"}, true);
  EXPECT_EQ(without[1].name, "x");
  EXPECT_EQ(with.back().name, "goodput.ci95.1");
  EXPECT_EQ(with.size(), without.size() + 16);
}

// Who reads columns by their number finds each where it was.
TEST(Csv, PutsLaterColumnsBehindAllOthers) {
  const auto place = [](const std::vector<RowColumn>& columns, const char* name) {
    return std::ranges::find(columns, name, &RowColumn::name) - columns.begin();
  };
  EXPECT_EQ(place(row_columns({"x"}, false), "interval_90_s.0"), 31);
  EXPECT_EQ(place(row_columns({"x"}, true), "goodput.policy"), 31);
  EXPECT_EQ(place(row_columns({"x"}, true), "interval_90_s.0"), 31 + 14);
}

TEST(Rows, HaveItemsOfListsByNumber) {
  EXPECT_EQ(row().number("vary.parallelism.stage_layers.0"), std::nullopt);  // a key with dots
  EXPECT_EQ(row().text("reasons.0.code"), "out-of-memory");
  for (const char* none : {"reasons.1.code", "reasons.-1.code", "reasons.x"})
    EXPECT_EQ(row().at(none), nullptr) << none;
}

}  // namespace
}  // namespace stagecraft
