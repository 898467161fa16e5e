#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "sim/engine/engine.hpp"
#include "tests/sim/engine/random_program.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSeeds = 1000;

// Oracle: on an idle network a program takes its longest path.
TEST(FlowProperty, IdleNetworkTakesTheLongestPath) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    const Program program = random_flow_program(seed, false);
    const Timeline idle = run(program, {.idle_network = true}), path = longest_path(program);
    ASSERT_EQ(idle.start, path.start);
    ASSERT_EQ(idle.end, path.end);
  }
}

// Property: nobody is faster than alone; whoever has neither flow nor a device that yields is exactly as
// fast.
TEST(FlowProperty, NobodyIsFasterThanAlone) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    const Program program = random_flow_program(seed);
    const Timeline timeline = run(program);
    IdVector<TaskId, bool> may_be_slowed(program.task_count());
    for (const Flow& flow : program.flows) may_be_slowed[flow.task] = true;
    for (std::uint32_t i = 0; i < program.task_count(); ++i) {
      const TaskId task(i);
      const Duration took = timeline.end[task] - timeline.start[task];
      ASSERT_GE(took, program.duration[task]);
      if (!may_be_slowed[task] && !program.resources[program.resource_of(task)].yields) {
        ASSERT_EQ(took, program.duration[task]);
      }
    }
  }
}

// Property: what the flows move is what the links carried, at most their capacity all the time that they were
// busy; a full link carried its capacity.
TEST(FlowProperty, LinksCarryWhatFlowsMove) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    const Program program = random_flow_program(seed);
    const Timeline timeline = run(program);
    IdVector<LinkId, double> bytes(program.links.size());
    for (const Flow& flow : program.flows)
      for (const LinkUse& use : program.uses_of(flow.route))
        bytes[use.link] += use.flows * flow.rate.count() * to_seconds(flow.transfer);
    for (std::uint32_t l = 0; l < program.links.size(); ++l) {
      const LinkUsage& usage = timeline.links[LinkId(l)];
      const double capacity = program.links[LinkId(l)].capacity.count();
      ASSERT_NEAR(usage.bytes, bytes[LinkId(l)], 0.1);  // of the sums' 2^-10 bytes
      // An end is rounded to half a nanosecond, and so is what a flow may seem to move too fast.
      const double rounding = 0.5e-9 * capacity * static_cast<double>(program.flows.size()) * 16;
      ASSERT_LE(usage.bytes, capacity * to_seconds(usage.busy) + rounding);
      ASSERT_GE(usage.bytes, capacity * to_seconds(usage.saturated) - rounding);
      ASSERT_LE(usage.saturated, usage.busy);
      ASSERT_LE(usage.busy, timeline.makespan);
    }
  }
}

struct Independent {
  Duration transfer;
  Bandwidth rate;
  Duration latency;
  std::vector<LinkUse> uses;
};

struct Scene {
  std::vector<double> capacities;
  std::vector<Independent> flows;
};

// Flows that all start at zero.
Scene random_scene(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  Scene scene;
  const std::uint64_t links = 1 + below(6), flows = 2 + below(12);
  for (std::uint64_t l = 0; l < links; ++l)
    scene.capacities.push_back(1e9 * static_cast<double>(1 + below(9)));
  for (std::uint64_t f = 0; f < flows; ++f) {
    Independent flow{.transfer = Duration(static_cast<std::int64_t>(1 + below(1'000'000))),
                     .rate = Bandwidth(1e9 * static_cast<double>(1 + below(9))),
                     .latency = below(3) == 0 ? Duration(static_cast<std::int64_t>(below(500'000))) : 0ns,
                     .uses = {}};
    for (std::uint32_t l = 0; l < links; ++l)
      if (below(2) == 0)
        flow.uses.push_back(
            {.link = LinkId(l), .flows = below(2) == 0 ? 1 : 0.3 * static_cast<double>(1 + below(9))});
    scene.flows.push_back(std::move(flow));
  }
  return scene;
}

// order[i]: which flow is added as the i-th.
Timeline play(const Scene& scene, const std::vector<std::size_t>& order) {
  ProgramBuilder builder;
  const ResourceId network =
      builder.add_resource({.kind = ResourceKind::kConcurrent, .rank = 0, .name = "network"});
  const LabelId label = builder.add_label({.name = "flow", .parts = {}});
  for (const double capacity : scene.capacities)
    builder.add_link({.name = "link", .capacity = Bandwidth(capacity)});
  for (const std::size_t i : order) {
    const Independent& flow = scene.flows[i];
    const auto task = builder.add_task(network, flow.latency + flow.transfer, label);
    builder.add_flow(task, flow.transfer, flow.rate, builder.add_route(flow.uses));
  }
  return run(std::move(builder).build());
}

std::vector<std::size_t> in_order(const Scene& scene) {
  std::vector<std::size_t> order(scene.flows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  return order;
}

// Property: the same times and the same usage, bit for bit, in whatever order flows are added.
TEST(FlowProperty, OrderOfFlowsOfOneInstantDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    const Scene scene = random_scene(seed);
    const Timeline expected = play(scene, in_order(scene));
    std::mt19937_64 random(seed);
    std::vector<std::size_t> order = in_order(scene);
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    const Timeline permuted = play(scene, order);
    for (std::uint32_t i = 0; i < order.size(); ++i)
      ASSERT_EQ(permuted.end[TaskId(i)], expected.end[TaskId(static_cast<std::uint32_t>(order[i]))]);
    ASSERT_EQ(permuted.links, expected.links);
    ASSERT_EQ(permuted.meetings, expected.meetings);
  }
}

// Property: a flow with twice the bytes ends later, and no flow that ended before it notices.
TEST(FlowProperty, TwiceTheBytesAlwaysTakeLonger) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Scene scene = random_scene(seed);
    const Timeline before = play(scene, in_order(scene));
    scene.flows[0].transfer *= 2;
    const Timeline after = play(scene, in_order(scene));
    ASSERT_GT(after.end[TaskId(0)], before.end[TaskId(0)]);
    for (std::uint32_t i = 1; i < scene.flows.size(); ++i)
      if (before.end[TaskId(i)] <= before.end[TaskId(0)]) {
        ASSERT_EQ(after.end[TaskId(i)], before.end[TaskId(i)]) << i;
      }
  }
}

// Property: flows that start at zero without caps or latency of their own are through in half the time on
// links of twice the capacity. (Widening single links may slow somebody down: who is freed on one link takes
// more of another.)
TEST(FlowProperty, TwiceTheCapacityOnEveryLinkHalvesTheTime) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Scene scene = random_scene(seed);
    for (Independent& flow : scene.flows) {
      flow.latency = 0ns;
      flow.transfer /= 50;
      flow.rate = Bandwidth(100e9);
      if (flow.uses.empty()) flow.uses.push_back({.link = LinkId(0), .flows = 1});
    }
    const Timeline narrow = play(scene, in_order(scene));
    for (double& capacity : scene.capacities) capacity *= 2;
    const Timeline wide = play(scene, in_order(scene));
    // Every end before it was rounded by up to half a nanosecond, and what follows starts from there.
    ASSERT_LE(std::abs((narrow.makespan - 2 * wide.makespan).count()),
              2 * static_cast<int>(scene.flows.size()));
  }
}

// Property: on one link, more of it delays nobody, whatever the caps, latencies and weights.
TEST(FlowProperty, MoreOfTheOnlyLinkDelaysNobody) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Scene scene = random_scene(seed);
    scene.capacities.resize(1);
    for (Independent& flow : scene.flows) {
      flow.uses.resize(1, {.link = LinkId(0), .flows = 1});
      flow.uses[0].link = LinkId(0);
    }
    const Timeline narrow = play(scene, in_order(scene));
    scene.capacities[0] *= 1.25;
    const Timeline wide = play(scene, in_order(scene));
    for (std::uint32_t i = 0; i < scene.flows.size(); ++i)
      ASSERT_LE(wide.end[TaskId(i)], narrow.end[TaskId(i)] + Duration(scene.flows.size())) << i;
  }
}

// Property: alone, over links that are wide enough, a flow takes its duration to the nanosecond.
TEST(FlowProperty, AloneItTakesItsDuration) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    Scene scene = random_scene(seed);
    scene.flows.resize(1);
    Independent& flow = scene.flows[0];
    for (const LinkUse& use : flow.uses)
      flow.rate = std::min(flow.rate, Bandwidth(scene.capacities[use.link.index()] / use.flows));
    EXPECT_EQ(play(scene, {0}).makespan, flow.latency + flow.transfer);
  }
}

}  // namespace
}  // namespace stagecraft
