#include "sim/view/link_use.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <utility>

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using testing::DoubleNear;
using testing::ElementsAre;

// System: a link of 2 bytes/ns. A task of 4 ns moves 1 byte/ns behind a latency of 1 ns; 4 ns of compute
// behind it. Expectations: of the eight nanoseconds the link is half full in the second to the fourth; 3
// bytes in all.
TEST(LinkUse, ATransferFillsItsShareBehindItsLatency) {
  ProgramBuilder builder;
  const ResourceId resource = builder.add_resource({ResourceKind::kStream, 0, "messages"});
  const LabelId label = builder.add_label({.name = "send", .stage = 0, .parts = {}});
  const LinkId link = builder.add_link({.name = "up", .capacity = Bandwidth(2e9)});
  const LinkId other = builder.add_link({.name = "down", .capacity = Bandwidth(2e9)});
  const auto send = builder.add_task(resource, 4ns, label);
  builder.add_flow(send, 3ns, Bandwidth(1e9), builder.add_route({{.link = link, .flows = 1}}));
  builder.add_task(resource, 4ns, label);
  const Program program = std::move(builder).build();
  const auto use = link_use(program, run(program), {other, link}, 8);
  const auto is = [](double share) { return DoubleNear(share, 1e-9); };
  EXPECT_THAT(use[0], testing::Each(0.0));
  EXPECT_THAT(use[1], ElementsAre(is(0), is(0.5), is(0.5), is(0.5), is(0), is(0), is(0), is(0)));
  // In parts that cut the transfer the bytes are the same: 3 of 16.
  for (const std::size_t parts : {1U, 3U, 5U}) {
    const auto coarse = link_use(program, run(program), {link}, parts)[0];
    EXPECT_NEAR(std::accumulate(coarse.begin(), coarse.end(), 0.0) / static_cast<double>(parts), 3.0 / 16,
                1e-9);
  }
}

// Two such transfers of 2 bytes/ns share the link: each takes twice as long, and it is full throughout.
TEST(LinkUse, SharersFillItTogether) {
  ProgramBuilder builder;
  const LabelId label = builder.add_label({.name = "send", .stage = 0, .parts = {}});
  const LinkId link = builder.add_link({.name = "up", .capacity = Bandwidth(2e9)});
  const RouteId route = builder.add_route({{.link = link, .flows = 1}});
  for (int rank = 0; rank < 2; ++rank) {
    const ResourceId resource = builder.add_resource({ResourceKind::kStream, rank, "messages"});
    builder.add_flow(builder.add_task(resource, 4ns, label), 4ns, Bandwidth(2e9), route);
  }
  const Program program = std::move(builder).build();
  const Timeline timeline = run(program);
  EXPECT_EQ(timeline.makespan, 8ns);
  EXPECT_THAT(link_use(program, timeline, {link}, 4)[0], testing::Each(DoubleNear(1, 1e-9)));
}

}  // namespace
}  // namespace stagecraft
