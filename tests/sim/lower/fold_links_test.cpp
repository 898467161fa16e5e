// Folded links slow flows as all links do.
#include "sim/lower/fold_links.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sim/engine/engine.hpp"

namespace stagecraft {
namespace {

using ::testing::ElementsAre;
using Routes = std::vector<std::vector<LinkLoad>>;

constexpr Bandwidth kTen{10e9};

LinkLoad use(std::uint32_t link, double flows) {
  return {EdgeId(link), flows};
}

// System: four links of 10 GB/s, two routes; links 0 and 2 carry one flow of each, 1 half a flow of the
// first, 3 two of the second.
TEST(FoldLinks, KeepsOneOfThoseAlikeAndNoneBelowAnother) {
  const std::vector<Bandwidth> capacity(4, kTen);
  const Routes routes = {{use(0, 1), use(1, 0.5), use(2, 1)}, {use(0, 1), use(2, 1), use(3, 2)}};
  const FoldedLinks folded = fold_links(LinkEpochs{capacity}, routes);
  EXPECT_THAT(folded.links, ElementsAre(FoldedLink{EdgeId(0), 2}, FoldedLink{EdgeId(3), 1}));
  EXPECT_THAT(folded.routes[0], ElementsAre(LinkUse{LinkId(0), 1}));
  EXPECT_THAT(folded.routes[1], ElementsAre(LinkUse{LinkId(0), 1}, LinkUse{LinkId(1), 2}));
}

// A wide link is below a narrow one that carries the same, and never the other way.
TEST(FoldLinks, ComparesUsesWithCapacities) {
  const Routes routes = {{use(0, 1), use(1, 1)}};
  EXPECT_THAT(fold_links(LinkEpochs{{kTen, 2 * kTen}}, routes).links, ElementsAre(FoldedLink{EdgeId(0), 1}));
  EXPECT_THAT(fold_links(LinkEpochs{{2 * kTen, kTen}}, routes).links, ElementsAre(FoldedLink{EdgeId(1), 1}));
}

TEST(FoldLinks, TakesSumsInAnotherOrderForTheSame) {
  const double sum = 0.1 + 0.2 + 0.3, other = 0.3 + 0.2 + 0.1;
  ASSERT_NE(sum, other);
  EXPECT_EQ(fold_links(LinkEpochs{{kTen, kTen}}, Routes{{use(0, sum), use(1, other)}}).links.size(), 1);
}

struct Case {
  std::vector<Bandwidth> capacity;
  Routes routes;
  std::vector<int> start, route;  // of the tasks: microseconds, place in `routes`
};

// Many links alike, many within each other.
Case random_case(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<int>(random() % n); };
  Case one{.capacity = {}, .routes = Routes(4), .start = {}, .route = {}};
  for (int link = 0; link < 24; ++link) {
    one.capacity.push_back((1 + below(2)) * kTen);
    for (auto& route : one.routes)
      if (below(3) > 0) route.push_back(use(static_cast<std::uint32_t>(link), 0.5 * (1 + below(3))));
  }
  for (int task = 0; task < 12; ++task) {
    one.start.push_back(below(2000));
    one.route.push_back(below(4));
  }
  return one;
}

// Each task waits for its start and then moves 10 MB per unit flow at up to 10 GB/s: 1 ms alone.
Timeline run_on(const Case& one, const std::vector<Bandwidth>& capacity,
                const std::vector<std::vector<LinkUse>>& routes) {
  ProgramBuilder builder;
  const ResourceId waits = builder.add_resource({ResourceKind::kConcurrent, 0, "waits"});
  const ResourceId moves = builder.add_resource({ResourceKind::kConcurrent, 0, "moves"});
  const LabelId label = builder.add_label({.name = "flow", .stage = -1, .parts = {}});
  for (const Bandwidth rate : capacity) builder.add_link({.name = "link", .capacity = rate});
  std::vector<RouteId> ids;
  for (const auto& route : routes) ids.push_back(builder.add_route(route));
  for (std::size_t i = 0; i < one.start.size(); ++i) {
    const auto wait = builder.add_task(waits, std::chrono::microseconds(one.start[i]), label);
    const auto move = builder.add_task(moves, std::chrono::milliseconds(1), label);
    builder.add_flow(move, std::chrono::milliseconds(1), kTen, ids[static_cast<std::size_t>(one.route[i])]);
    builder.add_dependency(wait, move);
  }
  return run(std::move(builder).build());
}

TEST(FoldLinks, ChangesNoTime) {
  int left_out = 0, slowed = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Case one = random_case(seed);
    std::vector<std::vector<LinkUse>> all;
    for (const auto& route : one.routes) {
      all.emplace_back();
      for (const LinkLoad& load : route) all.back().push_back({LinkId(load.link.value()), load.bytes});
    }
    const FoldedLinks folded = fold_links(LinkEpochs{one.capacity}, one.routes);
    std::vector<Bandwidth> capacity;
    for (const FoldedLink& link : folded.links) capacity.push_back(one.capacity[link.first.index()]);
    const Timeline few = run_on(one, capacity, folded.routes), many = run_on(one, one.capacity, all);
    EXPECT_EQ(few.start, many.start);
    EXPECT_EQ(few.end, many.end);
    left_out += static_cast<int>(one.capacity.size() - capacity.size());
    slowed += many.makespan > std::chrono::milliseconds(3) ? 1 : 0;
  }
  EXPECT_GT(left_out, 200 * 8);  // or nothing would have been tried
  EXPECT_GT(slowed, 100);
}

}  // namespace
}  // namespace stagecraft
