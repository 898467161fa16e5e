// Who sends which layers to whom, and when the last node is done.
#include "sim/goodput/oobleck/state_copy.hpp"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

using namespace literals;
using std::chrono::microseconds;
using std::chrono::seconds;

constexpr CopyLinks kLinks{.in = 1_GBps, .out = 1_GBps, .latency = microseconds(5)};

// Two pipelines of four layers: node 0 holds 0-1, node 1 (gone) 2-3; node 2 holds 0-1, node 3 2-3. Node 0
// takes all four layers: 2 and 3 come from node 3.
TEST(CopyState, SendsWhatANodeDidNotHave) {
  const std::vector<NodeLayers> before{{0, 0, 2}, {2, 0, 2}, {3, 2, 4}};
  const std::vector<NodeLayers> after{{0, 0, 4}, {2, 0, 2}, {3, 2, 4}};
  const StateCopy copy = copy_state(before, after, std::vector{1_GB, 1_GB, 2_GB, 3_GB}, kLinks);
  ASSERT_EQ(copy.transfers.size(), 2u);
  EXPECT_EQ(copy.transfers[0].layer, 2);
  EXPECT_EQ(copy.transfers[0].source, 3);
  EXPECT_EQ(copy.transfers[0].receivers, std::vector{0});
  EXPECT_EQ(copy.nodes.at(0).in, 5_GB);
  EXPECT_EQ(copy.nodes.at(3).out, 5_GB);
  EXPECT_EQ(copy.moved, 5_GB);
  EXPECT_EQ(copy.time, seconds(5) + 2 * microseconds(5));
  EXPECT_TRUE(copy.lost_layers.empty());
}

// Node 0 alone holds the layer, and nodes 1, 2 and 3 want it: a tree sends it once, a star three times.
TEST(CopyState, SendsOnceInATreeAndOftenWithoutOne) {
  const std::vector<NodeLayers> before{{0, 0, 1}};
  const std::vector<NodeLayers> after{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}, {3, 0, 1}};
  const StateCopy tree = copy_state(before, after, std::vector{2_GB}, kLinks);
  EXPECT_EQ(tree.nodes.at(0).out, 2_GB);
  EXPECT_EQ(tree.nodes.at(1).out, 2_GB);
  EXPECT_EQ(tree.nodes.at(3).out, 0_GB);
  EXPECT_EQ(tree.time, seconds(2) + microseconds(5));
  CopyLinks star = kLinks;
  star.broadcast_tree = false;
  const StateCopy often = copy_state(before, after, std::vector{2_GB}, star);
  EXPECT_EQ(often.nodes.at(0).out, 6_GB);
  EXPECT_EQ(often.time, seconds(6) + 3 * microseconds(5));
}

TEST(CopyState, TakesTheFirstSurvivorAsTheSource) {
  const std::vector<NodeLayers> before{{7, 0, 1}, {4, 0, 1}};
  const StateCopy copy =
      copy_state(before, std::vector<NodeLayers>{{4, 0, 1}, {7, 0, 1}, {2, 0, 1}}, std::vector{1_GB}, kLinks);
  EXPECT_EQ(copy.transfers.at(0).source, 4);
}

TEST(CopyState, SaysWhichLayersNobodyHas) {
  const std::vector<NodeLayers> before{{0, 0, 1}};
  const StateCopy copy =
      copy_state(before, std::vector<NodeLayers>{{0, 0, 3}}, std::vector{1_GB, 1_GB, 1_GB}, kLinks);
  EXPECT_EQ(copy.lost_layers, (std::vector{1, 2}));
  EXPECT_EQ(copy.moved, 0_GB);
}

TEST(CopyState, TakesNoTimeWhereNothingMoves) {
  const std::vector<NodeLayers> same{{0, 0, 1}, {1, 1, 2}};
  const StateCopy copy = copy_state(same, same, std::vector{1_GB, 1_GB}, kLinks);
  EXPECT_EQ(copy.time, Duration{});
}

// Property: what goes out comes in.
TEST(CopyState, LosesNoByte) {
  const std::vector<NodeLayers> before{{0, 0, 2}, {1, 2, 5}, {2, 0, 5}};
  const std::vector<NodeLayers> after{{0, 0, 4}, {1, 1, 5}, {2, 4, 5}, {3, 0, 5}, {4, 2, 3}};
  for (const bool tree : {true, false}) {
    CopyLinks links = kLinks;
    links.broadcast_tree = tree;
    const StateCopy copy = copy_state(before, after, std::vector{1_GB, 2_GB, 3_GB, 4_GB, 5_GB}, links);
    Bytes in{};
    Bytes out{};
    for (const auto& [node, traffic] : copy.nodes) {
      in += traffic.in;
      out += traffic.out;
    }
    EXPECT_EQ(in, out);
    EXPECT_EQ(in, copy.moved);
  }
}

}  // namespace
}  // namespace stagecraft
