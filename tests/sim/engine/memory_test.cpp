#include <gtest/gtest.h>

#include "tests/sim/engine/system.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;

Bytes high_water(const Program& program, ResourceId resource) {
  EXPECT_EQ(run(program).memory_high_water, longest_path(program).memory_high_water);
  return run(program).memory_high_water[resource];
}

TEST(MemoryHighWater, OfAStreamFollowsProgramOrder) {
  // System: one stream; F0 takes 10, F1 takes 10, B0 takes 4 and leaves -14, B1 the same.
  // Expectation: 10, 20, 24, 10, 14, 0: the most is 24.
  System system;
  const ResourceId x = system.stream("x");
  for (const char* name : {"F0", "F1"}) system.memory(system.task(x, 1ns, name), 10_B, 0_B);
  for (const char* name : {"B0", "B1"}) system.memory(system.task(x, 1ns, name), 4_B, Bytes(-14));
  EXPECT_EQ(high_water(system.build(), x), 24_B);
}

TEST(MemoryHighWater, OfAConcurrentResourceAddsUpWhatIsThereAtOnce) {
  // System: concurrent tasks a = [0, 3) holding 5 and b = [0, 4) holding 7.   Expectation: 12.
  System system;
  const ResourceId x = system.concurrent("x");
  system.memory(system.task(x, 3ns, "a"), 5_B, Bytes(-5));
  system.memory(system.task(x, 4ns, "b"), 7_B, Bytes(-7));
  EXPECT_EQ(high_water(system.build(), x), 12_B);
}

TEST(MemoryHighWater, WhatIsFreedAtAnInstantCanBeTakenAtThatInstant) {
  // System: concurrent tasks b = [3, 4) after a = [0, 3), holding 7 and 5.
  // Expectation: 7, not 12, although b has the smaller TaskId.
  System system;
  const ResourceId x = system.concurrent("x");
  const TaskId b = system.task(x, 1ns, "b");
  const TaskId a = system.task(x, 3ns, "a");
  system.edge(a, b);
  system.memory(a, 7_B, Bytes(-7));
  system.memory(b, 5_B, Bytes(-5));
  EXPECT_EQ(high_water(system.build(), x), 7_B);
}

TEST(MemoryHighWater, CountsATaskWithoutDuration) {
  System system;
  const ResourceId x = system.concurrent("x");
  system.memory(system.task(x, 0ns, "a"), 5_B, Bytes(-5));
  EXPECT_EQ(high_water(system.build(), x), 5_B);
}

TEST(MemoryHighWater, IsEachResourcesOwn) {
  // System: streams x and z hold 5 and 7 at the same time, y in between has tasks but no memory.
  System system;
  const ResourceId x = system.stream("x");
  const ResourceId y = system.stream("y");
  const ResourceId z = system.stream("z");
  system.memory(system.task(x, 1ns, "a"), 5_B, 0_B);
  system.task(y, 1ns, "b");
  system.memory(system.task(z, 1ns, "c"), 7_B, 0_B);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.memory_high_water, (IdVector<ResourceId, Bytes>{5_B, 0_B, 7_B}));
}

// System: a (1 ns, holds 5) shares its link with b and so lasts until 2 ns; c (holds 7) comes at 1 ns.
// Expectation: 12, where on an idle network a has gone when c comes: 7.
TEST(MemoryHighWater, CountsTheTimeThatAFlowReallyTakes) {
  System system;
  const ResourceId x = system.concurrent("x");
  const TaskId a = system.task(x, 1ns, "a"), b = system.task(x, 1ns, "b"), c = system.task(x, 1ns, "c");
  const TaskId wait = system.task(system.stream("clock"), 1ns, "wait");
  system.edge(wait, c);
  const RouteId route = system.route({{.link = system.link("link", 1_GBps), .flows = 1}});
  system.flow(a, 1ns, 1_GBps, route);
  system.flow(b, 1ns, 1_GBps, route);
  system.memory(a, 5_B, Bytes(-5));
  system.memory(c, 7_B, Bytes(-7));
  const Program program = system.build();
  EXPECT_EQ(run(program).memory_high_water[x], 12_B);
  EXPECT_EQ(run(program, {.idle_network = true}).memory_high_water[x], 7_B);
}

TEST(MemoryHighWater, IsNeverBelowZero) {
  System system;
  const ResourceId x = system.stream("x");
  system.memory(system.task(x, 1ns, "a"), Bytes(-5), 0_B);
  EXPECT_EQ(high_water(system.build(), x), 0_B);
}

}  // namespace
}  // namespace stagecraft
