#include "sim/view/lanes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

// System: a concurrent resource with tasks [0, 4), [1, 2), [2, 3) and [2, 5); each begins when a task of a
// stream
//         of its own has ended.
// Expectations: the second row takes [1, 2) and, when it is free, [2, 3); the third row takes [2, 5).
TEST(Lanes, PutsATaskOnTheLowestFreeRow) {
  ProgramBuilder builder;
  const ResourceId send = builder.add_resource({ResourceKind::kConcurrent, 0, "send"});
  const LabelId label = builder.add_label({.name = "message", .stage = -1, .parts = {}});
  for (const auto& [start, length] : {std::pair{0ns, 4ns}, {1ns, 1ns}, {2ns, 1ns}, {2ns, 3ns}}) {
    const auto task = builder.add_task(send, length, label);
    const ResourceId clock = builder.add_resource({ResourceKind::kStream, 0, "clock"});
    builder.add_dependency(builder.add_task(clock, start, label), task);
  }
  const Program program = std::move(builder).build();
  const Timeline timeline = run(program);
  const std::vector<Lane> lanes = lanes_of(program, timeline);
  ASSERT_GE(lanes.size(), 3u);
  EXPECT_EQ(lanes[0].name, "send");
  EXPECT_EQ(lanes[1].name, "send 2");
  EXPECT_EQ(lanes[2].name, "send 3");
  EXPECT_THAT(lanes[0].tasks, testing::ElementsAre(TaskId(0)));
  EXPECT_THAT(lanes[1].tasks, testing::ElementsAre(TaskId(1), TaskId(2)));
  EXPECT_THAT(lanes[2].tasks, testing::ElementsAre(TaskId(3)));
}

TEST(RankNames, CountReplicasWhereAPipelineIsSimulatedSeveralTimes) {
  ProgramBuilder builder;
  for (int rank = 0; rank < 4; ++rank) (void)builder.add_resource({ResourceKind::kStream, rank, "compute"});
  const Program program = std::move(builder).build();
  EXPECT_THAT(rank_names(program, 4), testing::ElementsAre("rank 0", "rank 1", "rank 2", "rank 3"));
  EXPECT_EQ(rank_names(program, 2).back(), "replica 1 · rank 1");
}

}  // namespace
}  // namespace stagecraft
