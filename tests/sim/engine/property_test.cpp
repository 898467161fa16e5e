#include <gtest/gtest.h>

#include <algorithm>

#include "sim/engine/engine.hpp"
#include "tests/sim/engine/random_program.hpp"

namespace stagecraft {
namespace {

constexpr std::uint64_t kSeeds = 500;

// Oracle: the event loop and one topological sweep give the same answer.
TEST(Engine, AgreesWithTheLongestPath) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    const Program program = random_program(seed);
    ASSERT_EQ(run(program), longest_path(program));
  }
}

// When the task before it on its stream ends; zero for the first one and on concurrent resources.
Duration stream_is_free(const Program& program, const Timeline& timeline, TaskId task) {
  const ResourceId resource = program.resource_of(task);
  const bool first = task.value() == program.resource_begin[resource.index()];
  if (first || program.resources[resource].kind == ResourceKind::kConcurrent) return Duration::zero();
  return timeline.end[TaskId(task.value() - 1)];
}

// Property: no task starts before its predecessors and its stream allow it, and none idles once they do.
TEST(Engine, StartsEachTaskAtTheFirstInstantThatItsPredecessorsAndItsStreamAllow) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    const Program program = random_program(seed);
    const Timeline timeline = run(program);
    IdVector<TaskId, Duration> allowed(program.task_count());
    for (std::uint32_t i = 0; i < program.task_count(); ++i)
      for (const TaskId after : program.successors_of(TaskId(i)))
        allowed[after] = std::max(allowed[after], timeline.end[TaskId(i)]);
    for (std::uint32_t i = 0; i < program.task_count(); ++i) {
      const TaskId task(i);
      ASSERT_EQ(timeline.start[task], std::max(allowed[task], stream_is_free(program, timeline, task)));
      ASSERT_EQ(timeline.end[task], timeline.start[task] + program.duration[task]);
    }
  }
}

}  // namespace
}  // namespace stagecraft
