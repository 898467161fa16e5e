#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/engine/system.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;
using testing::ElementsAre;

// System: compute yields, a runs 10 s; beside it b (4 s) takes a quarter of the device.
// Expectation: 3 s of work in the first 4 s; the other 7 s at full speed: 11 s. b itself takes its 4 s.
TEST(Device, SlowsTheTaskThatYieldsWhileALoadRuns) {
  System system;
  const TaskId a = system.task(system.yielding("compute"), 10s, "a");
  const TaskId b = system.task(system.stream("data"), 4s, "b");
  system.load(b, 0.25);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.end[a], 11s);
  EXPECT_EQ(timeline.end[b], 4s);
}

// System: a runs 10 s; b comes at 2 s for 4 s and takes half; a's successor on the stream runs 1 s.
// Expectation: 2 + 2 s of work by 6 s; a ends at 12 s, the next one at 13 s.
TEST(Device, SlowsATaskThatRunsAlready) {
  System system;
  const ResourceId compute = system.yielding("compute");
  const TaskId a = system.task(compute, 10s, "a"), next = system.task(compute, 1s, "next");
  const ResourceId data = system.stream("data");
  system.task(data, 2s, "wait");
  system.load(system.task(data, 4s, "b"), 0.5);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.end[a], 12s);
  EXPECT_EQ(timeline.end[next], 13s);
}

// Two loads of 0.25: half speed, 2 s become 4 s.
TEST(Device, AddsUpLoads) {
  System system;
  const TaskId a = system.task(system.yielding("compute"), 2s, "a");
  const ResourceId data = system.concurrent("data");
  for (int i = 0; i < 2; ++i) system.load(system.task(data, 100s, "b"), 0.25);
  EXPECT_EQ(run(system.build()).end[a], 4s);
}

// Loads of the whole device, or more, stop it while they last: 2 s from 5 s on, when the second load ends.
TEST(Device, StandsStillBesideALoadOfAllOfIt) {
  System system;
  const TaskId a = system.task(system.yielding("compute"), 2s, "a");
  const ResourceId data = system.concurrent("data");
  system.load(system.task(data, 5s, "b"), 1);
  system.load(system.task(data, 3s, "c"), 0.5);
  EXPECT_EQ(run(system.build()).end[a], 7s);
}

TEST(Device, LeavesOtherRanksAndStreamsThatDoNotYieldAlone) {
  ProgramBuilder builder;
  const LabelId label = builder.add_label({.name = "t", .parts = {}});
  const auto add = [&](std::int32_t rank, bool yields) {
    const ResourceId stream =
        builder.add_resource({.kind = ResourceKind::kStream, .rank = rank, .name = "s", .yields = yields});
    return builder.add_task(stream, 2s, label);
  };
  add(0, false);
  add(1, true);
  builder.add_load(add(0, false), 0.5);
  EXPECT_THAT(run(std::move(builder).build()).end.raw(), ElementsAre(2s, 2s, 2s));
}

// System: pass transfers 50 GB/s for its whole 4 s and yields to b (half of the device for 4 s); other wants
// the same link of 50 GB/s for 4 s. Expectation: both at 25 GB/s, which is all that the pass asks for on half
// a device: both through at 8 s when b lasts as long, because the link is the bottleneck afterwards.
TEST(Device, AndLinkTogetherSlowAsMuchAsTheSlowerOfThem) {
  System system;
  const TaskId pass = system.task(system.yielding("compute"), 4s, "pass");
  const ResourceId data = system.concurrent("data");
  const TaskId b = system.task(data, 4s, "b"), other = system.task(data, 4s, "other");
  const RouteId route = system.route({{.link = system.link("link", 50_GBps), .flows = 1}});
  system.flow(pass, 4s, 50_GBps, route);
  system.flow(other, 4s, 50_GBps, route);
  system.load(b, 0.5);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.end[pass], 8s);
  EXPECT_EQ(timeline.end[other], 8s);
}

// System: pass alone on its link, 4 s, of which the first 1 s is latency; half of the device is gone for 4 s.
// Expectation: latency takes 2 s; by 4 s one of 3 s is transferred; two more at full speed: 6 s.
TEST(Device, SlowsLatencyAndTransferOfATaskThatYields) {
  System system;
  const TaskId pass = system.task(system.yielding("compute"), 4s, "pass");
  system.load(system.task(system.stream("data"), 4s, "b"), 0.5);
  const LinkId link = system.link("link", 50_GBps);
  system.flow(pass, 3s, 50_GBps, system.route({{.link = link, .flows = 1}}));
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.end[pass], 6s);
  EXPECT_EQ(timeline.links[link].bytes, 150e9);
  EXPECT_EQ(timeline.links[link].delay, 0s);  // it was the device, not the link
}

}  // namespace
}  // namespace stagecraft
