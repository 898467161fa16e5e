#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/engine/system.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

// Both ways to the answer must give what the pencil gives.
void expect_starts(const Program& program, const std::vector<Duration>& starts) {
  for (const Timeline& timeline : {run(program), longest_path(program)}) {
    EXPECT_EQ(timeline.start.raw(), starts);
    Duration makespan{};
    for (std::uint32_t i = 0; i < program.task_count(); ++i) {
      EXPECT_EQ(timeline.end[TaskId(i)], timeline.start[TaskId(i)] + program.duration[TaskId(i)]);
      makespan = std::max(makespan, timeline.end[TaskId(i)]);
    }
    EXPECT_EQ(timeline.makespan, makespan);
  }
}

TEST(Run, OfNothingTakesNoTime) {
  const Timeline timeline = run(ProgramBuilder().build());
  EXPECT_EQ(timeline.makespan, 0ns);
  EXPECT_EQ(timeline, longest_path(ProgramBuilder().build()));
}

TEST(Run, AStreamRunsItsTasksOneAfterTheOther) {
  // System: one stream, a = 3, b = 4, no edges.   Expectations: a [0, 3), b [3, 7).
  System system;
  const ResourceId x = system.stream("x");
  system.task(x, 3ns, "a");
  system.task(x, 4ns, "b");
  expect_starts(system.build(), {0ns, 3ns});
}

TEST(Run, ALinkRunsItsTasksTogether) {
  // System: one link, a = 3, b = 4, no edges.   Expectations: a [0, 3), b [0, 4).
  System system;
  const ResourceId x = system.concurrent("x");
  system.task(x, 3ns, "a");
  system.task(x, 4ns, "b");
  expect_starts(system.build(), {0ns, 0ns});
}

TEST(Run, AReadyTaskDoesNotOvertakeOnItsStream) {
  // System: x: a = 1 (after c), b = 1; y: c = 5.
  // Expectations: b is ready at 0 but stands behind a: c [0, 5), a [5, 6), b [6, 7).
  System system;
  const ResourceId x = system.stream("x");
  const ResourceId y = system.stream("y");
  const TaskId a = system.task(x, 1ns, "a");
  system.task(x, 1ns, "b");
  const TaskId c = system.task(y, 5ns, "c");
  system.edge(c, a);
  expect_starts(system.build(), {5ns, 6ns, 0ns});
}

TEST(Run, ATaskWaitsForTheLatestOfItsPredecessors) {
  // System: streams x: a = 2; y: b = 5; z: c = 1 after a and b.   Expectation: c [5, 6).
  System system;
  const TaskId a = system.task(system.stream("x"), 2ns, "a");
  const TaskId b = system.task(system.stream("y"), 5ns, "b");
  const TaskId c = system.task(system.stream("z"), 1ns, "c");
  system.edge(a, c);
  system.edge(b, c);
  expect_starts(system.build(), {0ns, 0ns, 5ns});
}

TEST(Run, ADoubledEdgeCountsOnce) {
  System system;
  const TaskId a = system.task(system.stream("x"), 2ns, "a");
  const TaskId b = system.task(system.stream("y"), 1ns, "b");
  system.edge(a, b);
  system.edge(a, b);
  expect_starts(system.build(), {0ns, 2ns});
}

TEST(Run, TasksWithoutDurationPassInOneInstant) {
  // System: x: a = 0, b = 0 (after d), c = 2; y: d = 0 (after a), e = 0 (after c).
  // Expectations: a, d, b at 0 although they hand over to each other; c [0, 2); e at 2.
  System system;
  const ResourceId x = system.stream("x");
  const ResourceId y = system.stream("y");
  const TaskId a = system.task(x, 0ns, "a");
  const TaskId b = system.task(x, 0ns, "b");
  const TaskId c = system.task(x, 2ns, "c");
  const TaskId d = system.task(y, 0ns, "d");
  const TaskId e = system.task(y, 0ns, "e");
  system.edge(a, d);
  system.edge(d, b);
  system.edge(c, e);
  expect_starts(system.build(), {0ns, 0ns, 0ns, 0ns, 2ns});
}

TEST(Run, WhoEndsFreesItsStreamAndItsSuccessorsInTheSameInstant) {
  // System: x: a = 3, b = 1 (after c); y: c = 3.   Expectation: a and c end at 3 and b starts at 3.
  System system;
  const ResourceId x = system.stream("x");
  const ResourceId y = system.stream("y");
  system.task(x, 3ns, "a");
  const TaskId b = system.task(x, 1ns, "b");
  const TaskId c = system.task(y, 3ns, "c");
  system.edge(c, b);
  expect_starts(system.build(), {0ns, 3ns, 0ns});
}

TEST(Run, AMessageOverALinkJoinsTwoStreams) {
  // System: two stages with two micro-batches: stage 0: F0 = 2, F1 = 2; link: m0 = 3, m1 = 3; stage 1: F0 =
  // 2, F1 = 2. Expectations: stage 0 at 0, 2; messages at 2, 4, overlapping in [4, 5); stage 1 at 5, 7.
  System system;
  const ResourceId stage0 = system.stream("stage 0");
  const ResourceId stage1 = system.stream("stage 1");
  const ResourceId link = system.concurrent("link");
  const TaskId f00 = system.task(stage0, 2ns, "F0");
  const TaskId f01 = system.task(stage0, 2ns, "F1");
  const TaskId f10 = system.task(stage1, 2ns, "F0");
  const TaskId f11 = system.task(stage1, 2ns, "F1");
  const TaskId m0 = system.task(link, 3ns, "m0");
  const TaskId m1 = system.task(link, 3ns, "m1");
  system.edge(f00, m0);
  system.edge(f01, m1);
  system.edge(m0, f10);
  system.edge(m1, f11);
  expect_starts(system.build(), {0ns, 2ns, 5ns, 7ns, 2ns, 4ns});
}

TEST(Run, HashTellsTimelinesApart) {
  System one, two;
  one.task(one.stream("x"), 1ns, "a");
  two.task(two.stream("x"), 2ns, "a");
  EXPECT_NE(hash(run(one.build())), hash(run(two.build())));
}

}  // namespace
}  // namespace stagecraft
