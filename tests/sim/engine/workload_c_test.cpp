#include "bench/workload_c.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/engine/engine.hpp"

namespace stagecraft {
namespace {

constexpr WorkloadC kSmall{.hosts = 64, .messages = 20, .outstanding = 4};

TEST(WorkloadC, SendsMessagesOfOneTo64MegabytesToOtherHosts) {
  const Program program = build(kSmall);
  ASSERT_EQ(program.flows.size(), 1280u);
  EXPECT_EQ(task_count(kSmall), 1280u);
  double total = 0;
  for (const Flow& flow : program.flows) {
    const double bytes = flow.rate.count() * to_seconds(flow.transfer);
    EXPECT_GE(bytes, 1e6 - 25);  // transfers are whole nanoseconds of 50 bytes
    EXPECT_LE(bytes, 64e6 + 25);
    const std::size_t links = program.uses_of(flow.route).size();
    EXPECT_TRUE(links == 2 || links == 4);
    total += bytes;
  }
  // The mean of 1280 uniform sizes: 32.5 MB, standard error 0.51 MB.
  EXPECT_NEAR(total / 1280, 32.5e6, 4 * 0.51e6);
}

// Property: no host has more than W messages under way, and W of them until it has started its last.
TEST(WorkloadC, KeepsTheWindowOfEachHostFull) {
  const Program program = build(kSmall);
  const Timeline timeline = run(program);
  for (std::uint32_t host = 0; host < 64; ++host)
    for (std::uint32_t message = 0; message < 20; ++message) {
      const TaskId task(host * 20 + message);
      const Duration free = message < 4 ? Duration::zero() : timeline.end[TaskId(task.value() - 4)];
      ASSERT_EQ(timeline.start[task], free);
    }
}

// Property: nothing beats the busiest link, and a host's own link is the least that it takes.
TEST(WorkloadC, TakesAtLeastWhatItsBusiestLinkTakes) {
  const Program program = build(kSmall);
  const Timeline timeline = run(program);
  double most = 0;
  for (std::uint32_t l = 0; l < program.links.size(); ++l)
    most = std::max(most, timeline.links[LinkId(l)].bytes / program.links[LinkId(l)].capacity.count());
  EXPECT_GE(to_seconds(timeline.makespan), most);
  EXPECT_LE(to_seconds(timeline.makespan), 3 * most);
  EXPECT_GT(timeline.makespan, run(program, {.idle_network = true}).makespan);
}

}  // namespace
}  // namespace stagecraft
