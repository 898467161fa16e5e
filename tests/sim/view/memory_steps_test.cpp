#include "sim/view/memory_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

// System: a forward of 1 ns takes 10 bytes and gives 4 back at its end; the backward behind it, 2 ns, takes 3
// and
//         frees 9.
// Expectations: 10 from 0, 6 and then 9 at 1 ns, 0 at 3 ns.
TEST(MemorySteps, FreesBeforeItTakesAtOneInstant) {
  ProgramBuilder builder;
  const ResourceId compute = builder.add_resource({ResourceKind::kStream, 0, "compute"});
  const LabelId label = builder.add_label({.name = "F", .stage = 0, .parts = {}});
  builder.add_memory(builder.add_task(compute, 1ns, label), Bytes(10), Bytes(-4));
  builder.add_memory(builder.add_task(compute, 2ns, label), Bytes(3), Bytes(-9));
  const Program program = std::move(builder).build();
  EXPECT_THAT(
      memory_steps(program, run(program)),
      testing::ElementsAre(testing::ElementsAre(MemoryStep{0ns, Bytes(10)}, MemoryStep{1ns, Bytes(6)},
                                                MemoryStep{1ns, Bytes(9)}, MemoryStep{3ns, Bytes(0)})));
}

}  // namespace
}  // namespace stagecraft
