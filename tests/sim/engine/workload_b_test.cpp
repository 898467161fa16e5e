#include "bench/workload_b.hpp"

#include <gtest/gtest.h>

#include "sim/engine/engine.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

// 126 steps of 16 MiB / 50 GiB/s = 312.5 us plus 1 us on a ring, 2 us through a switch; nobody shares a link.
TEST(WorkloadB, TakesItsBoundOnARingAndThroughASwitch) {
  const WorkloadB ring{.ranks = 64, .network = RingNetwork::kRing};
  const WorkloadB through_switch{.ranks = 64, .network = RingNetwork::kSwitch};
  EXPECT_EQ(bound(ring), 126 * 313'500ns);
  EXPECT_EQ(bound(through_switch), 126 * 314'500ns);
  EXPECT_EQ(build(ring).task_count(), 8'064u);
  EXPECT_EQ(task_count(through_switch), 8'064u);
  EXPECT_EQ(run(build(ring)).makespan, bound(ring));
  EXPECT_EQ(run(build(through_switch)).makespan, bound(through_switch));
}

// Pieces of 16 MiB take whole nanoseconds, so that the formula and 8,064 messages agree to the last one; the
// two trees of 64 servers would move 2 GiB at 0.92 of the links.
TEST(WorkloadB, TakesInClosedFormWhatItsMessagesTake) {
  for (const RingNetwork network : {RingNetwork::kRing, RingNetwork::kSwitch}) {
    const WorkloadB workload{.ranks = 64, .network = network};
    EXPECT_EQ(closed_form(cluster_of(workload)), run(build(workload)).makespan);
  }
  const WorkloadB odd{.ranks = 48, .network = RingNetwork::kRing};
  EXPECT_NEAR(to_seconds(closed_form(cluster_of(odd))), to_seconds(bound(odd)), 94 * 1e-9);
}

// Store and forward would take 312.5 us more per message on a switch; cutting through costs its latency
// alone.
TEST(WorkloadB, IsSlowerThroughASwitchByTheLatencyAlone) {
  const Duration ring = run(build({.ranks = 16, .network = RingNetwork::kRing})).makespan;
  EXPECT_EQ(run(build({.ranks = 16, .network = RingNetwork::kSwitch})).makespan - ring, 30 * 1us);
}

// On the tree a message to another leaf crosses 4 links, and its rank sends nothing meanwhile: 126 steps of
// 16 MiB / 50 GB/s = 335'544 ns plus 4 us.
TEST(WorkloadB, TakesTheLatencyOfTheLongestPathOnAFatTree) {
  EXPECT_EQ(run(build({.ranks = 64, .network = RingNetwork::kFatTree})).makespan, 126 * 339'544ns);
}

}  // namespace
}  // namespace stagecraft
