// Links and resources that are no longer what they were from some time on, and programs that come to rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/engine/system.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;
using testing::ElementsAre;

// System: a takes 10 s; from 4 s on its stream does half its work.   Expectation: 6 s are left, 12 s long.
TEST(SpeedChange, StretchesWhatRunsFromThenOn) {
  System system;
  const ResourceId compute = system.stream("compute");
  const TaskId a = system.task(compute, 10s, "a"), next = system.task(compute, 1s, "next");
  system.speed(4s, compute, 0.5);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.end[a], 16s);
  EXPECT_EQ(timeline.end[next], 18s);
}

// From 8 s on the speed is as before: 4 + 2 s of work by then, 4 s left.
TEST(SpeedChange, LastsUntilTheNext) {
  System system;
  const ResourceId compute = system.stream("compute");
  const TaskId a = system.task(compute, 10s, "a");
  system.speed(4s, compute, 0.5);
  system.speed(8s, compute, 1);
  EXPECT_EQ(run(system.build()).end[a], 12s);
}

TEST(SpeedChange, AtZeroHoldsFromTheBeginning) {
  System system;
  const ResourceId compute = system.stream("compute");
  const TaskId a = system.task(compute, 10s, "a");
  system.speed(0s, compute, 0.25);
  EXPECT_EQ(run(system.build()).end[a], 40s);
}

TEST(SpeedChange, IsNothingAfterTheEnd) {
  System system;
  const ResourceId compute = system.stream("compute");
  system.task(compute, 10s, "a");
  system.speed(10s, compute, 0);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.makespan, 10s);
  EXPECT_FALSE(timeline.stall.has_value());
}

TEST(SpeedChange, LeavesOtherResourcesOfTheRankAlone) {
  System system;
  const ResourceId compute = system.stream("compute"), data = system.stream("data");
  system.task(compute, 10s, "a");
  const TaskId b = system.task(data, 10s, "b");
  system.speed(0s, compute, 0.5);
  EXPECT_EQ(run(system.build()).end[b], 10s);
}

// System: a yields 10 s; a load of a half beside it for 4 s, and half speed from 2 s on.
// Expectation: 1 s of work by 2 s, 0.5 by 4 s, then half speed: 8.5 s take 17.
TEST(SpeedChange, AndLoadsMultiply) {
  System system;
  const ResourceId compute = system.yielding("compute");
  const TaskId a = system.task(compute, 10s, "a");
  system.load(system.task(system.stream("data"), 4s, "b"), 0.5);
  system.speed(2s, compute, 0.5);
  EXPECT_EQ(run(system.build()).end[a], 21s);
}

// System: a sends for 4 s at 50 GB/s, b as well, on a link of 50: both at half speed. From 2 s on a's stream
// does a tenth of its work and asks for 5 GB/s.
// Expectation: b has 3 s left at 45 GB/s: ends at 2 + 3 / 0.9 s. a has 3 s left, 30 s long.
TEST(SpeedChange, OfASenderLeavesTheLinkToOthers) {
  System system;
  const ResourceId one = system.stream("one"), other = system.stream("other");
  const TaskId a = system.task(one, 4s, "a"), b = system.task(other, 4s, "b");
  const RouteId route = system.route({{system.link("link", 50_GBps), 1}});
  system.flow(a, 4s, 50_GBps, route);
  system.flow(b, 4s, 50_GBps, route);
  system.speed(2s, one, 0.1);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.end[b], 2s + 3333333333ns);
  EXPECT_EQ(timeline.end[a], 32s);
}

// System: a sends for 10 s at 50 GB/s; from 4 s on the link has 30.   Expectation: 6 s are left, 10 s long.
TEST(LinkChange, StretchesWhatCrossesIt) {
  System system;
  const TaskId a = system.task(system.stream("a"), 10s, "a");
  const LinkId link = system.link("link", 50_GBps);
  system.flow(a, 10s, 50_GBps, system.route({{link, 1}}));
  system.capacity(4s, link, 30_GBps);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.end[a], 14s);
  EXPECT_EQ(timeline.links[link].saturated, 14s);
  EXPECT_DOUBLE_EQ(timeline.links[link].bytes, 500e9);
}

// System: a and b share link x (50), c is on link y (50) with b. Each 10 s at 50 GB/s. From 4 s on x has 10.
// Expectation: 25 each until 4 s. Then a and b have 5, c 45: c has 8 s left, 80/9 s long, until 12.889 s; a
// and b 8 s at a tenth, until 84 s.
TEST(LinkChange, GivesToOthersWhatItsUsersNoLongerTake) {
  System system;
  const ResourceId network = system.concurrent("network");
  const LinkId x = system.link("x", 50_GBps), y = system.link("y", 50_GBps);
  const TaskId a = system.task(network, 10s, "a"), b = system.task(network, 10s, "b"),
               c = system.task(network, 10s, "c");
  system.flow(a, 10s, 50_GBps, system.route({{x, 1}}));
  system.flow(b, 10s, 50_GBps, system.route({{x, 1}, {y, 1}}));
  system.flow(c, 10s, 50_GBps, system.route({{y, 1}}));
  system.capacity(4s, x, 10_GBps);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.end[c], 12888888889ns);
  EXPECT_EQ(timeline.end[a], 84s);
  EXPECT_EQ(timeline.end[b], 84s);
}

// The link recovers at 8 s: 4 + 2 s by then, 4 s left.
TEST(LinkChange, MayGiveBackWhatTheLinkHad) {
  System system;
  const TaskId a = system.task(system.stream("a"), 10s, "a");
  const LinkId link = system.link("link", 50_GBps);
  system.flow(a, 10s, 50_GBps, system.route({{link, 1}}));
  system.capacity(4s, link, 25_GBps);
  system.capacity(8s, link, 50_GBps);
  EXPECT_EQ(run(system.build()).end[a], 12s);
}

TEST(LinkChange, IsNothingOnAnIdleNetwork) {
  System system;
  const TaskId a = system.task(system.stream("a"), 10s, "a");
  const LinkId link = system.link("link", 50_GBps);
  system.flow(a, 10s, 50_GBps, system.route({{link, 1}}));
  system.capacity(4s, link, 1_GBps);
  EXPECT_EQ(run(system.build(), {.idle_network = true}).end[a], 10s);
}

// System: stream x runs a (4 s), b; stream y runs c (1 s), d, which waits for a. x stops at 2 s.
// Expectation: at rest from 2 s on; a is stuck, b and d wait; c ended.
TEST(Stall, NamesWhoIsStuckAndWhoWaits) {
  System system;
  const ResourceId x = system.stream("x");
  const TaskId a = system.task(x, 4s, "a"), b = system.task(x, 4s, "b");
  const ResourceId y = system.stream("y");
  const TaskId c = system.task(y, 1s, "c"), d = system.task(y, 1s, "d");
  system.edge(a, d);
  system.speed(2s, x, 0);
  const Timeline timeline = run(system.build());
  ASSERT_TRUE(timeline.stall.has_value());
  EXPECT_EQ(timeline.stall->time, 2s);
  EXPECT_THAT(timeline.stall->stuck, ElementsAre(a));
  EXPECT_THAT(timeline.stall->waiting, ElementsAre(b, d));
  EXPECT_EQ(timeline.end[c], 1s);
  EXPECT_EQ(timeline.start[a], 0s);
  EXPECT_EQ(timeline.makespan, 2s);
}

// c ends after the stop: the rest is from then on. What changes later is no event.
TEST(Stall, IsWhenTheLastTaskEnds) {
  System system;
  const ResourceId x = system.stream("x"), y = system.stream("y");
  system.task(x, 4s, "a");
  system.task(y, 7s, "c");
  system.speed(2s, x, 0);
  system.speed(20s, y, 0.5);
  EXPECT_EQ(run(system.build()).stall->time, 7s);
}

// A stopped sender holds nothing of its link: b has all of it from 2 s on.
TEST(Stall, OfASenderFreesItsLinks) {
  System system;
  const ResourceId x = system.stream("x"), y = system.stream("y");
  const TaskId a = system.task(x, 4s, "a"), b = system.task(y, 4s, "b");
  const RouteId route = system.route({{system.link("link", 50_GBps), 1}});
  system.flow(a, 4s, 50_GBps, route);
  system.flow(b, 4s, 50_GBps, route);
  system.speed(2s, x, 0);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.end[b], 5s);
  EXPECT_THAT(timeline.stall->stuck, ElementsAre(a));
  EXPECT_DOUBLE_EQ(timeline.links[LinkId(0)].bytes, 50e9 + 200e9);
}

// Stopped from 2 to 5 s: 3 s late, and no stall.
TEST(Stall, IsNoneWhenTheResourceGoesOn) {
  System system;
  const ResourceId x = system.stream("x");
  const TaskId a = system.task(x, 4s, "a");
  system.speed(2s, x, 0);
  system.speed(5s, x, 1);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.end[a], 7s);
  EXPECT_FALSE(timeline.stall.has_value());
}

// System: the measured task takes 10 s; a loop of 2 s and 1 s one after the other, from 0 s.
// Expectation: rounds end at 3, 6, 9 s; the columns have the first.
TEST(Loop, GoesRoundForAsLongAsTheRestRuns) {
  System system;
  system.task(system.stream("measured"), 10s, "m");
  const ResourceId other = system.stream("other");
  const TaskId a = system.task(other, 2s, "a"), b = system.task(other, 1s, "b");
  Program program = system.build();
  program.loops.push_back({.first = other, .end = ResourceId(2)});
  const Timeline timeline = run(program);
  EXPECT_EQ(timeline.makespan, 10s);
  EXPECT_THAT(timeline.rounds, ElementsAre(ElementsAre(3s, 6s, 9s)));
  EXPECT_EQ(timeline.end[a], 2s);
  EXPECT_EQ(timeline.end[b], 3s);
}

// From 4 s on: at 7 and 10 s. What ends at the instant of the last task counts.
TEST(Loop, BeginsAtItsStart) {
  System system;
  system.task(system.stream("measured"), 10s, "m");
  const ResourceId other = system.stream("other");
  const TaskId a = system.task(other, 3s, "a");
  Program program = system.build();
  program.loops.push_back({.first = other, .end = ResourceId(2), .start = 4s});
  const Timeline timeline = run(program);
  EXPECT_EQ(timeline.start[a], 4s);
  EXPECT_THAT(timeline.rounds, ElementsAre(ElementsAre(7s, 10s)));
}

// System: m sends for 10 s at 50 GB/s over a link of 50; the loop sends for 1 s at 50, then computes 1 s.
// Expectation: together 2 s for 1 s of each, alone 1 s: 2 s of m every 3 s. After 4 rounds, 12 s, m has 2 s
// left; in the fifth it moves 1 s in 2 s, and the last 1 s alone: 15 s. The link carries 500 GB of m and 5 x
// 50.
TEST(Loop, SharesLinksInEveryRound) {
  System system;
  const TaskId m = system.task(system.stream("measured"), 10s, "m");
  const ResourceId other = system.stream("other");
  const TaskId a = system.task(other, 1s, "a");
  system.task(other, 1s, "b");
  const RouteId route = system.route({{system.link("link", 50_GBps), 1}});
  system.flow(m, 10s, 50_GBps, route);
  system.flow(a, 1s, 50_GBps, route);
  Program program = system.build();
  program.loops.push_back({.first = other, .end = ResourceId(2)});
  const Timeline timeline = run(program);
  EXPECT_EQ(timeline.end[m], 15s);
  EXPECT_DOUBLE_EQ(timeline.links[LinkId(0)].bytes, 750e9);
  EXPECT_EQ(timeline.links[LinkId(0)].busy, 15s);
  EXPECT_EQ(timeline.links[LinkId(0)].saturated, 15s);
}

// Cut off in the middle: m ends at 2 s, when the loop has moved half of its 2 s.
TEST(Loop, CountsTheBytesThatItMovedUntilTheEnd) {
  System system;
  const TaskId m = system.task(system.stream("measured"), 1s, "m");
  const ResourceId other = system.stream("other");
  const TaskId a = system.task(other, 2s, "a");
  const RouteId route = system.route({{system.link("link", 50_GBps), 1}});
  system.flow(m, 1s, 50_GBps, route);
  system.flow(a, 2s, 50_GBps, route);
  Program program = system.build();
  program.loops.push_back({.first = other, .end = ResourceId(2)});
  const Timeline timeline = run(program);
  EXPECT_EQ(timeline.makespan, 2s);
  EXPECT_EQ(timeline.end[a], 2s);
  EXPECT_THAT(timeline.rounds, ElementsAre(ElementsAre()));
  EXPECT_DOUBLE_EQ(timeline.links[LinkId(0)].bytes, 100e9);
}

}  // namespace
}  // namespace stagecraft
