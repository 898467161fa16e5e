// Steps from a table.
#include "sim/goodput/policies/throughput_table.hpp"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

using std::chrono::seconds;

const ThroughputTable kTable = {{2, 0}, {4, 1}, {8, 4}, {10, 2}};

TEST(ThroughputTable, ANumberBetweenTwoRowsHasTheThroughputOfTheLowerOne) {
  EXPECT_EQ(throughput_of(kTable, 1), 0);
  EXPECT_EQ(throughput_of(kTable, 3), 0);
  EXPECT_EQ(throughput_of(kTable, 7), 1);
  EXPECT_EQ(throughput_of(kTable, 8), 4);
  EXPECT_EQ(throughput_of(kTable, 99), 2);
}

TEST(ThroughputTable, AStepIsItsSamplesOverTheThroughput) {
  const ShapeOf shapes = shapes_of(kTable, 8);
  EXPECT_EQ(shapes(9), (ShapedStep{.duration = seconds(2), .samples = 8, .nodes = 8}));
  EXPECT_EQ(shapes(3), std::nullopt) << "a throughput of 0 does not train";
  EXPECT_EQ(shapes(1), std::nullopt) << "fewer nodes than the first row has";
}

TEST(ThroughputTable, TheBestRowOfAtMostSoManyNodesIsTheIdeal) {
  EXPECT_EQ(best_of(kTable, 8, 99)->nodes, 8);
  EXPECT_EQ(best_of(kTable, 8, 7)->nodes, 4);
  EXPECT_EQ(best_of(kTable, 8, 3), std::nullopt);
}

}  // namespace
}  // namespace stagecraft
