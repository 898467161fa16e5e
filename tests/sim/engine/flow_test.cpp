#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/engine/system.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;
using testing::ElementsAre;

// Tasks that transfer from their start to their end, on one concurrent resource, over links of any capacity.
class Flows {
 public:
  Flows() : network(system.concurrent("network")) {}

  LinkId link(Bandwidth capacity) { return system.link("link", capacity); }
  TaskId task(Duration duration, Bandwidth rate, std::vector<LinkUse> uses, Duration latency = 0ns) {
    const TaskId id = system.task(network, duration, "t");
    system.flow(id, duration - latency, rate, system.route(std::move(uses)));
    return id;
  }

  System system;
  ResourceId network;
};

LinkUse on(LinkId link, double flows = 1) {
  return {.link = link, .flows = flows};
}

TEST(Flow, AloneOnItsLinkTakesItsDuration) {
  Flows flows;
  const LinkId link = flows.link(50_GBps);
  const TaskId a = flows.task(7ns, 50_GBps, {on(link)});
  EXPECT_EQ(run(flows.system.build()).end[a], 7ns);
}

// System: link of 50 GB/s; a and b would each take 1 s at 50 GB/s.   Expectation: both 2 s.
TEST(Flow, SharesItsLink) {
  Flows flows;
  const LinkId link = flows.link(50_GBps);
  flows.task(1s, 50_GBps, {on(link)});
  flows.task(1s, 50_GBps, {on(link)});
  const Timeline timeline = run(flows.system.build());
  EXPECT_THAT(timeline.end.raw(), ElementsAre(2s, 2s));
  EXPECT_EQ(timeline.makespan, 2s);
}

// System: a (10 s) and b (1 s) on one link.   Expectation: at half speed b takes 2 s; a has 9 s left, alone.
TEST(Flow, GoesOnAtFullSpeedWhenAShortOneIsThrough) {
  Flows flows;
  const LinkId link = flows.link(50_GBps);
  flows.task(10s, 50_GBps, {on(link)});
  flows.task(1s, 50_GBps, {on(link)});
  EXPECT_THAT(run(flows.system.build()).end.raw(), ElementsAre(11s, 2s));
}

// System: a (10 s) alone until b (2 s) starts at 4 s.   Expectation: b from 4 to 8; a has 10 - 4 - 2 = 4
// left.
TEST(Flow, IsSlowedWhenAnotherStarts) {
  Flows flows;
  const LinkId link = flows.link(50_GBps);
  const TaskId a = flows.task(10s, 50_GBps, {on(link)});
  const TaskId b = flows.task(2s, 50_GBps, {on(link)});
  const TaskId wait = flows.system.task(flows.system.stream("clock"), 4s, "wait");
  flows.system.edge(wait, b);
  const Timeline timeline = run(flows.system.build());
  EXPECT_EQ(timeline.end[b], 8s);
  EXPECT_EQ(timeline.end[a], 12s);
}

// System: a and b at 50 GB/s over one link of 100 GB/s.   Expectation: nobody is in anybody's way.
TEST(Flow, IsNotSlowedWhereThereIsRoomForAll) {
  Flows flows;
  const LinkId link = flows.link(100_GBps);
  flows.task(1s, 50_GBps, {on(link)});
  flows.task(3s, 50_GBps, {on(link)});
  EXPECT_THAT(run(flows.system.build()).end.raw(), ElementsAre(1s, 3s));
}

// System: links 0 and 1 of 10 GB/s, 2 of 4 GB/s. a over 0 and 1, b over 0, c over 1 and 2, d over 2; each
// would move 10 GB in 1 s at 10 GB/s. Expectation: link 2 fills first: c, d at 2 GB/s; then link 0: a, b at 5
// GB/s, ends at 2 s; c, d go on: 5 s.
TEST(Flow, StopsAtItsOwnBottleneck) {
  Flows flows;
  const LinkId zero = flows.link(10_GBps), one = flows.link(10_GBps), two = flows.link(4_GBps);
  flows.task(1s, 10_GBps, {on(zero), on(one)});
  flows.task(1s, 10_GBps, {on(zero)});
  flows.task(1s, 10_GBps, {on(one), on(two)});
  flows.task(1s, 10_GBps, {on(two)});
  EXPECT_THAT(run(flows.system.build()).end.raw(), ElementsAre(2s, 2s, 5s, 5s));
}

// System: a stands for three transfers that cross the link, b for one; 10 GB/s each, link of 20 GB/s.
// Expectation: 4 unit flows of 5 GB/s: half speed for both.
TEST(Flow, CountsAsManyFlowsAsItStandsFor) {
  Flows flows;
  const LinkId link = flows.link(20_GBps);
  flows.task(1s, 10_GBps, {on(link, 3)});
  flows.task(2s, 10_GBps, {on(link)});
  EXPECT_THAT(run(flows.system.build()).end.raw(), ElementsAre(2s, 3s));
}

// Its own unit flows are in each other's way: 2 x 10 GB/s over 10 GB/s.
TEST(Flow, AloneIsSlowedByALinkThatIsTooNarrowForIt) {
  Flows flows;
  const LinkId link = flows.link(10_GBps);
  flows.task(1s, 10_GBps, {on(link, 2)});
  EXPECT_THAT(run(flows.system.build()).end.raw(), ElementsAre(2s));
}

// System: a has 3 s of latency and 1 s of transfer, b 4 s of transfer, one link.
// Expectation: b alone for 3 s; then both at half speed: a and b would need 1 s each, and end at 5 s.
TEST(Flow, TakesItsLatencyFirstAndCrossesNoLinkMeanwhile) {
  Flows flows;
  const LinkId link = flows.link(50_GBps);
  flows.task(4s, 50_GBps, {on(link)}, 3s);
  flows.task(4s, 50_GBps, {on(link)});
  EXPECT_THAT(run(flows.system.build()).end.raw(), ElementsAre(5s, 5s));
}

TEST(Flow, WithoutTransferOrLinksTakesItsDuration) {
  Flows flows;
  const LinkId link = flows.link(1_GBps);
  flows.task(4s, 50_GBps, {on(link)}, 4s);
  flows.task(3s, 50_GBps, {});
  EXPECT_THAT(run(flows.system.build()).end.raw(), ElementsAre(4s, 3s));
}

// Streams: the next task of a stream waits for the flow, however long it takes.
TEST(Flow, HoldsItsStream) {
  System system;
  const ResourceId x = system.stream("x"), y = system.stream("y");
  const TaskId a = system.task(x, 1s, "a"), after = system.task(x, 1s, "after"), b = system.task(y, 1s, "b");
  const RouteId route = system.route({on(system.link("link", 50_GBps))});
  system.flow(a, 1s, 50_GBps, route);
  system.flow(b, 1s, 50_GBps, route);
  const Timeline timeline = run(system.build());
  EXPECT_EQ(timeline.start[after], 2s);
  EXPECT_EQ(timeline.end[after], 3s);
}

TEST(Flow, IsNeverSlowedOnAnIdleNetwork) {
  Flows flows;
  const LinkId link = flows.link(1_GBps);
  flows.task(1s, 50_GBps, {on(link)});
  flows.task(1s, 50_GBps, {on(link)});
  const Timeline timeline = run(flows.system.build(), {.idle_network = true});
  EXPECT_THAT(timeline.end.raw(), ElementsAre(1s, 1s));
  EXPECT_EQ(timeline.links[link].bytes, 100e9);
  EXPECT_EQ(timeline.links[link].delay, 0s);
  EXPECT_TRUE(timeline.meetings.empty());
}

// System: a (10 s) alone until b (2 s) comes at 4 s; both through at 12 s (see above).
// Expectation: 600 GB; busy and full all the time; a lost 2 s, b 2 s.
TEST(LinkUsage, TellsBytesTimeAndWhatTheLinkCost) {
  Flows flows;
  const LinkId link = flows.link(50_GBps), unused = flows.link(50_GBps);
  flows.task(10s, 50_GBps, {on(link)});
  const TaskId b = flows.task(2s, 50_GBps, {on(link)});
  const TaskId wait = flows.system.task(flows.system.stream("clock"), 4s, "wait");
  flows.system.edge(wait, b);
  const Timeline timeline = run(flows.system.build());
  EXPECT_EQ(timeline.links[link], (LinkUsage{.bytes = 600e9, .busy = 12s, .saturated = 12s, .delay = 4s}));
  EXPECT_EQ(timeline.links[unused], LinkUsage{});
}

// System: links wide (10 GB/s) and narrow (5 GB/s); a over both at 10 GB/s for 1 s.
// Expectation: 2 s, of which 1 s is lost on the narrow link; the wide one is busy, never full.
TEST(LinkUsage, BlamesTheBottleneckOnly) {
  Flows flows;
  const LinkId wide = flows.link(10_GBps), narrow = flows.link(5_GBps);
  flows.task(1s, 10_GBps, {on(wide), on(narrow)});
  const Timeline timeline = run(flows.system.build());
  EXPECT_EQ(timeline.links[wide], (LinkUsage{.bytes = 10e9, .busy = 2s, .saturated = 0s, .delay = 0s}));
  EXPECT_EQ(timeline.links[narrow], (LinkUsage{.bytes = 10e9, .busy = 2s, .saturated = 2s, .delay = 1s}));
}

// System: three transfers of 1 s at the whole rate over one link, as one task and as three.
// Expectation: 3 s; each transfer lost 2 s.
TEST(LinkUsage, CountsTheDelayOfEachTransferOfATask) {
  for (const int tasks : {1, 3}) {
    Flows flows;
    const LinkId link = flows.link(10_GBps);
    for (int i = 0; i < tasks; ++i) flows.task(1s, 10_GBps, {on(link, 3.0 / tasks)});
    EXPECT_EQ(run(flows.system.build()).links[link],
              (LinkUsage{.bytes = 30e9, .busy = 3s, .saturated = 3s, .delay = 6s}));
  }
}

// System: two of 200 days each at the whole rate, together: both through at 400 days.
// Expectation: each lost 200 days, more than 2^63 parts of a nanosecond hold.
TEST(LinkUsage, TellsWhatALinkCostOverMonths) {
  constexpr Duration kDay = 24h;
  Flows flows;
  const LinkId link = flows.link(50_GBps);
  flows.task(200 * kDay, 50_GBps, {on(link)});
  flows.task(200 * kDay, 50_GBps, {on(link)});
  EXPECT_EQ(run(flows.system.build()).links[link].delay, 400 * kDay);
}

TEST(LinkUsage, IsNotBusyDuringLatency) {
  Flows flows;
  const LinkId link = flows.link(50_GBps);
  flows.task(4s, 50_GBps, {on(link)}, 3s);
  EXPECT_EQ(run(flows.system.build()).links[link].busy, 1s);
}

// System: a, b (1 s at 50 GB/s) and c (3 s) with labels x, x, y on a link of 50 GB/s.
// Expectation: thirds until 3 s, when a and b end; c alone until 5 s. x met x and y for 3 s, y never met y.
TEST(Meeting, IsTheTimeThatLabelsSharedAFullLink) {
  ProgramBuilder builder;
  const ResourceId network =
      builder.add_resource({.kind = ResourceKind::kConcurrent, .rank = 0, .name = "network"});
  const LabelId x = builder.add_label({.name = "x", .parts = {}}),
                y = builder.add_label({.name = "y", .parts = {}});
  const LinkId link = builder.add_link({.name = "link", .capacity = 50_GBps});
  const RouteId route = builder.add_route({on(link)});
  for (const auto& [label, duration] : {std::pair<LabelId, Duration>{x, 1s}, {x, 1s}, {y, 3s}})
    builder.add_flow(builder.add_task(network, duration, label), duration, 50_GBps, route);
  const Timeline timeline = run(std::move(builder).build());
  EXPECT_THAT(timeline.end.raw(), ElementsAre(3s, 3s, 5s));
  EXPECT_THAT(timeline.meetings, ElementsAre(Meeting{.link = link, .first = x, .second = x, .time = 3s},
                                             Meeting{.link = link, .first = x, .second = y, .time = 3s}));
}

// All three labels have one name, x, and x met x until the second last of them had gone.
TEST(Meeting, OfLabelsOfOneNameIsCountedOnce) {
  ProgramBuilder builder;
  const ResourceId network =
      builder.add_resource({.kind = ResourceKind::kConcurrent, .rank = 0, .name = "network"});
  const LinkId link = builder.add_link({.name = "link", .capacity = 50_GBps});
  const RouteId route = builder.add_route({on(link)});
  for (const Duration duration : {1s, 1s, 3s}) {
    const LabelId label = builder.add_label({.name = "x", .parts = {}});
    builder.add_flow(builder.add_task(network, duration, label), duration, 50_GBps, route);
  }
  const Timeline timeline = run(std::move(builder).build());
  EXPECT_THAT(timeline.meetings,
              ElementsAre(Meeting{.link = link, .first = LabelId(0), .second = LabelId(0), .time = 3s}));
}

// System: two copies of a resource, each with micro-batch 0 (1 s at 50 GB/s) beside y on a link of 50 GB/s,
// then one copy of them with another micro-batch.
// Expectation: the copies of 0 meet y and not each other, until both have gone; 0 and 1 meet each other.
TEST(Meeting, OfCopiesIsNoneAmongThem) {
  const auto meetings = [](std::int32_t second_micro_batch) {
    ProgramBuilder builder;
    const LinkId link = builder.add_link({.name = "link", .capacity = 50_GBps});
    const RouteId route = builder.add_route({on(link)});
    const auto add = [&](int rank, const char* name, std::optional<std::int32_t> copy_of,
                         std::int32_t micro_batch) {
      const ResourceId resource = builder.add_resource(
          {.kind = ResourceKind::kStream, .rank = rank, .name = "stream", .copy_of = copy_of});
      const LabelId label = builder.add_label({.name = name, .parts = {}});
      builder.add_flow(builder.add_task(resource, 1s, label, micro_batch), 1s, 50_GBps, route);
    };
    add(0, "x", 7, 0);
    add(1, "x", 7, second_micro_batch);
    add(2, "y", std::nullopt, 0);
    return run(std::move(builder).build()).meetings;
  };
  const LabelId x(0), y(2);
  EXPECT_THAT(meetings(0), ElementsAre(Meeting{.link = LinkId(0), .first = x, .second = y, .time = 3s}));
  EXPECT_THAT(meetings(1), ElementsAre(Meeting{.link = LinkId(0), .first = x, .second = x, .time = 3s},
                                       Meeting{.link = LinkId(0), .first = x, .second = y, .time = 3s}));
}

TEST(Meeting, DoesNotHappenOnALinkWithRoom) {
  Flows flows;
  const LinkId link = flows.link(101_GBps);
  flows.task(1s, 50_GBps, {on(link)});
  flows.task(1s, 50_GBps, {on(link)});
  EXPECT_TRUE(run(flows.system.build()).meetings.empty());
}

}  // namespace
}  // namespace stagecraft
