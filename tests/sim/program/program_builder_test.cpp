#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/program/program.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;
using testing::ElementsAre;
using testing::IsEmpty;

Resource stream(const char* name, std::int32_t rank = 0) {
  return {.kind = ResourceKind::kStream, .rank = rank, .name = name};
}

Label named(const char* name) {
  return {.name = name, .parts = {}};
}

TEST(ProgramBuilder, NumbersTasksByResourceThenByOrderOfAdding) {
  // System: resources x and y; tasks added y:1 ns, x:2 ns, y:3 ns, x:4 ns.
  // Expectation: x's tasks first, each resource in its own order: 2, 4, 1, 3.
  ProgramBuilder builder;
  const ResourceId x = builder.add_resource(stream("x"));
  const ResourceId y = builder.add_resource(stream("y"));
  const LabelId label = builder.add_label(named("t"));
  builder.add_task(y, 1ns, label);
  builder.add_task(x, 2ns, label);
  builder.add_task(y, 3ns, label);
  builder.add_task(x, 4ns, label);
  const Program program = std::move(builder).build();

  EXPECT_THAT(program.duration.raw(), ElementsAre(2ns, 4ns, 1ns, 3ns));
  EXPECT_THAT(program.resource_begin, ElementsAre(0u, 2u, 4u));
}

// Three tasks a, b on x and c on y with edges c->a and c->b and memory on all, added in one of two orders.
Program small_program(bool other_order) {
  ProgramBuilder builder;
  const ResourceId x = builder.add_resource(stream("x"));
  const ResourceId y = builder.add_resource(stream("y"));
  const LabelId label = builder.add_label(named("t"));
  ProgramBuilder::Handle a, b, c;
  if (other_order) c = builder.add_task(y, 30ns, label, 3);
  a = builder.add_task(x, 10ns, label, 1);
  b = builder.add_task(x, 20ns, label, 2);
  if (!other_order) c = builder.add_task(y, 30ns, label, 3);
  builder.add_dependency(c, other_order ? b : a);
  builder.add_dependency(c, other_order ? a : b);
  builder.add_memory(other_order ? c : a, other_order ? 3_B : 1_B, 0_B);
  builder.add_memory(other_order ? a : c, other_order ? 1_B : 3_B, 0_B);
  return std::move(builder).build();
}

TEST(ProgramBuilder, GivesTheSameProgramInWhateverOrderResourcesWereFilled) {
  const Program one = small_program(false);
  const Program two = small_program(true);

  EXPECT_EQ(one.resource_begin, two.resource_begin);
  EXPECT_EQ(one.duration, two.duration);
  EXPECT_EQ(one.label, two.label);
  EXPECT_EQ(one.micro_batch, two.micro_batch);
  EXPECT_EQ(one.successor_begin, two.successor_begin);
  EXPECT_EQ(one.successors, two.successors);
  ASSERT_EQ(one.memory.size(), two.memory.size());
  for (std::size_t i = 0; i < one.memory.size(); ++i) {
    EXPECT_EQ(one.memory[i].task, two.memory[i].task);
    EXPECT_EQ(one.memory[i].at_start, two.memory[i].at_start);
  }
}

TEST(ProgramBuilder, StoresSuccessorsInAscendingOrder) {
  const Program program = small_program(true);  // adds c->b before c->a
  EXPECT_THAT(program.successors_of(TaskId(2)), ElementsAre(TaskId(0), TaskId(1)));
  EXPECT_THAT(program.successors_of(TaskId(0)), IsEmpty());
}

TEST(ProgramBuilder, KeepsSeveralMemoryDeltasOfOneTaskInOrder) {
  ProgramBuilder builder;
  const ResourceId x = builder.add_resource(stream("x"));
  const auto task = builder.add_task(x, 1ns, builder.add_label(named("t")));
  builder.add_memory(task, 5_B, 0_B);
  builder.add_memory(task, 7_B, 0_B);
  const Program program = std::move(builder).build();
  ASSERT_EQ(program.memory.size(), 2u);
  EXPECT_EQ(program.memory[0].at_start, 5_B);
  EXPECT_EQ(program.memory[1].at_start, 7_B);
}

TEST(ProgramBuilder, BuildsAnEmptyProgram) {
  const Program program = ProgramBuilder().build();
  EXPECT_EQ(program.task_count(), 0u);
  EXPECT_THAT(program.resource_begin, ElementsAre(0u));
  EXPECT_THAT(program.successor_begin, ElementsAre(0u));
}

TEST(ProgramBuilder, RefusesNegativeTimeAndWhatItDoesNotKnow) {
  ProgramBuilder builder;
  const ResourceId x = builder.add_resource(stream("x"));
  const LabelId label = builder.add_label(named("t"));
  const auto task = builder.add_task(x, 0ns, label);
  const ProgramBuilder::Handle unknown(1);

  EXPECT_THROW(builder.add_task(x, -1ns, label), InternalError);
  EXPECT_THROW(builder.add_task(ResourceId(1), 1ns, label), InternalError);
  EXPECT_THROW(builder.add_task(x, 1ns, LabelId(1)), InternalError);
  EXPECT_THROW(builder.add_dependency(task, unknown), InternalError);
  EXPECT_THROW(builder.add_dependency(unknown, task), InternalError);
  EXPECT_THROW(builder.add_memory(unknown, 1_B, 0_B), InternalError);
}

// System: b is added to y before a is added to x, and its flow before a's.
// Expectation: flows and loads in the order of tasks, which is a, b; the route by link.
TEST(ProgramBuilder, OrdersFlowsAndLoadsByTaskAndRoutesByLink) {
  ProgramBuilder builder;
  const ResourceId x = builder.add_resource(stream("x"));
  const ResourceId y = builder.add_resource(stream("y"));
  const LabelId label = builder.add_label(named("t"));
  const auto b = builder.add_task(y, 2ns, label);
  const auto a = builder.add_task(x, 1ns, label);
  const LinkId first = builder.add_link({.name = "first", .capacity = 1_GBps});
  const LinkId second = builder.add_link({.name = "second", .capacity = 2_GBps});
  const RouteId route = builder.add_route({{.link = second, .flows = 0.5}, {.link = first, .flows = 3}});
  builder.add_flow(b, 2ns, 7_GBps, route);
  builder.add_flow(a, 1ns, 8_GBps, route);
  builder.add_load(b, 0.25);
  builder.add_load(a, 0.5);
  const Program program = std::move(builder).build();

  ASSERT_EQ(program.flows.size(), 2u);
  EXPECT_EQ(program.flows[0].task, TaskId(0));
  EXPECT_EQ(program.flows[0].rate, 8_GBps);
  EXPECT_EQ(program.flows[1].task, TaskId(1));
  EXPECT_EQ(program.flows[1].transfer, 2ns);
  EXPECT_THAT(program.uses_of(route), ElementsAre(LinkUse{first, 3}, LinkUse{second, 0.5}));
  EXPECT_EQ(program.links[second].name, "second");
  ASSERT_EQ(program.loads.size(), 2u);
  EXPECT_EQ(program.loads[0].share, 0.5);
  EXPECT_EQ(program.loads[1].task, TaskId(1));
}

TEST(ProgramBuilder, RefusesFlowsLinksAndLoadsOutOfTheirRange) {
  ProgramBuilder builder;
  const auto task = builder.add_task(builder.add_resource(stream("x")), 5ns, builder.add_label(named("t")));
  const LinkId link = builder.add_link({.name = "link", .capacity = 1_GBps});
  const RouteId route = builder.add_route({{.link = link, .flows = 1}});
  const ProgramBuilder::Handle unknown(1);

  EXPECT_THROW(builder.add_link({.name = "none", .capacity = Bandwidth(0)}), InternalError);
  EXPECT_THROW(builder.add_route({{.link = LinkId(1), .flows = 1}}), InternalError);
  EXPECT_THROW(builder.add_route({{.link = link, .flows = 0}}), InternalError);
  EXPECT_THROW(builder.add_route({{.link = link, .flows = 2 * kMostFlows}}), InternalError);
  EXPECT_THROW(builder.add_route({{.link = link, .flows = 1}, {.link = link, .flows = 1}}), InternalError);
  EXPECT_THROW(builder.add_flow(unknown, 1ns, 1_GBps, route), InternalError);
  EXPECT_THROW(builder.add_flow(task, 6ns, 1_GBps, route), InternalError);
  EXPECT_THROW(builder.add_flow(task, -1ns, 1_GBps, route), InternalError);
  EXPECT_THROW(builder.add_flow(task, 1ns, Bandwidth(0), route), InternalError);
  EXPECT_THROW(builder.add_flow(task, 1ns, 1_GBps, RouteId(1)), InternalError);
  EXPECT_THROW(builder.add_load(unknown, 0.5), InternalError);
  EXPECT_THROW(builder.add_load(task, 1.5), InternalError);
}

TEST(ProgramBuilder, RefusesASecondFlowASecondLoadAndALoadThatYields) {
  const auto build = [](bool flows, bool loads, bool yields) {
    ProgramBuilder builder;
    const ResourceId x =
        builder.add_resource({.kind = ResourceKind::kStream, .rank = 0, .name = "x", .yields = yields});
    const auto task = builder.add_task(x, 5ns, builder.add_label(named("t")));
    const RouteId route = builder.add_route({});
    for (int i = 0; i < (flows ? 2 : 1); ++i) builder.add_flow(task, 1ns, 1_GBps, route);
    for (int i = 0; i < (loads ? 2 : 1); ++i) builder.add_load(task, 0.5);
    return std::move(builder).build();
  };
  EXPECT_EQ(build(false, false, false).flows.size(), 1u);
  EXPECT_THROW(static_cast<void>(build(true, false, false)), InternalError);
  EXPECT_THROW(static_cast<void>(build(false, true, false)), InternalError);
  EXPECT_THROW(static_cast<void>(build(false, false, true)), InternalError);
}

TEST(Program, FindsTheResourceOfATaskPastEmptyResources) {
  // System: 5 resources, of which only 1 (two tasks) and 3 (one task) have tasks.
  ProgramBuilder builder;
  for (int i = 0; i < 5; ++i) builder.add_resource(stream("r"));
  const LabelId label = builder.add_label(named("t"));
  builder.add_task(ResourceId(1), 1ns, label);
  builder.add_task(ResourceId(1), 1ns, label);
  builder.add_task(ResourceId(3), 1ns, label);
  const Program program = std::move(builder).build();

  EXPECT_EQ(program.resource_of(TaskId(0)), ResourceId(1));
  EXPECT_EQ(program.resource_of(TaskId(1)), ResourceId(1));
  EXPECT_EQ(program.resource_of(TaskId(2)), ResourceId(3));
  EXPECT_THROW(static_cast<void>(program.resource_of(TaskId(3))), InternalError);
}

TEST(Program, DescribesATaskByRankResourceLabelAndMicroBatch) {
  ProgramBuilder builder;
  const ResourceId compute = builder.add_resource(stream("compute", 5));
  builder.add_task(compute, 1ns, builder.add_label(named("B")), 7);
  builder.add_task(compute, 1ns, builder.add_label(named("optimizer step")));
  const Program program = std::move(builder).build();

  EXPECT_EQ(program.describe(TaskId(0)), "rank 5 compute B7");
  EXPECT_EQ(program.describe(TaskId(1)), "rank 5 compute optimizer step");
}

}  // namespace
}  // namespace stagecraft
