#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/sim/engine/system.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Deadlock, NamesTheCircleAndLeavesOutTheBystanders) {
  // System: x: a, b; y: c, d, with b -> c and d -> a, so a waits for d, d for c (its stream), c for b, b for
  // a; z: e runs. Expectation: a circle of four; e has ended and is not mentioned.
  System system;
  const ResourceId x = system.stream("x");
  const ResourceId y = system.stream("y");
  const ResourceId z = system.stream("z");
  const TaskId a = system.task(x, 1ns, "a");
  const TaskId b = system.task(x, 1ns, "b");
  const TaskId c = system.task(y, 1ns, "c");
  const TaskId d = system.task(y, 1ns, "d");
  system.task(z, 1ns, "e");
  system.edge(b, c);
  system.edge(d, a);
  const Program program = system.build();

  const auto names_the_circle = HasSubstr(
      "deadlock, 4 of 5 tasks wait: rank 0 x a waits for rank 0 y d; rank 0 y d waits for rank 0 y c; "
      "rank 0 y c waits for rank 0 x b; rank 0 x b waits for rank 0 x a");
  EXPECT_THAT(message_of([&] { std::ignore = run(program); }), names_the_circle);
  EXPECT_THAT(message_of([&] { std::ignore = longest_path(program); }), names_the_circle);
}

TEST(Deadlock, OfOneTaskThatWaitsForItselfIsFoundOnAConcurrentResource) {
  System system;
  const TaskId a = system.task(system.concurrent("x"), 1ns, "a");
  system.edge(a, a);
  const Program program = system.build();
  EXPECT_THAT(message_of([&] { std::ignore = run(program); }), HasSubstr("rank 0 x a waits for rank 0 x a"));
}

TEST(Deadlock, NamesFiveTasksOfALongCircleAndCountsTheRest) {
  // System: concurrent tasks t0 -> t1 -> ... -> t7 -> t0.   Expectation: five named, beginning with the
  // smallest; 3 more.
  System system;
  const ResourceId x = system.concurrent("x");
  std::vector<TaskId> tasks;
  for (int i = 0; i < 8; ++i) tasks.push_back(system.task(x, 1ns, "t" + std::to_string(i)));
  for (std::size_t i = 0; i < 8; ++i) system.edge(tasks[i], tasks[(i + 1) % 8]);
  const Program program = system.build();
  EXPECT_THAT(message_of([&] { std::ignore = run(program); }),
              AllOf(HasSubstr("t0 waits for rank 0 x t7"), HasSubstr("t4 waits for rank 0 x t3"),
                    HasSubstr("and 3 more"), Not(HasSubstr("t3 waits"))));
}

TEST(Deadlock, IsFoundWhenFlowsHaveRun) {
  // System: a transfers, then b and c wait for each other.   Expectation: a has ended, b and c are named.
  System system;
  const ResourceId x = system.concurrent("x");
  const TaskId a = system.task(x, 1ns, "a"), b = system.task(x, 1ns, "b"), c = system.task(x, 1ns, "c");
  system.flow(a, 1ns, Bandwidth(1), system.route({{.link = system.link("link", Bandwidth(1)), .flows = 2}}));
  system.edge(a, b);
  system.edge(b, c);
  system.edge(c, b);
  const Program program = system.build();
  EXPECT_THAT(message_of([&] { std::ignore = run(program); }),
              HasSubstr("deadlock, 2 of 3 tasks wait: rank 0 x b waits for"));
}

}  // namespace
}  // namespace stagecraft
