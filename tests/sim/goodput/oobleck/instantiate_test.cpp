// Oracle: the instantiation found by capacities is the one found by listing every multiset of sizes.
//
//   System        equal layers of 1 ns, one GPU a node, templates for n0 .. N - f n0 nodes, B micro-batches.
//   Expectations  resilience_planner_oracles.yaml, and our own listing for random layers, tails and groups.
#include "sim/goodput/oobleck/instantiate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <tuple>

#include "tests/sim/goodput/oobleck/oracle_file.hpp"

namespace stagecraft {
namespace {

AlikeNodes group_of(int nodes, const std::vector<int>& layer_work) {
  StageOption option;
  for (const int work : layer_work) option.layers.push_back({.forward = Duration{work}});
  return {.nodes = nodes, .options = {option}};
}

std::vector<int> sizes_of(const Instantiation& found) {
  std::vector<int> out;
  for (const Composition& pipeline : found.pipelines) out.push_back(nodes_of(pipeline));
  return out;
}

// Every ascending list of at least `fewest` sizes that adds up to `nodes`.
void each_multiset(int nodes, int least, int most, int fewest,
                   const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> sizes;
  const std::function<void(int, int)> extend = [&](int left, int from) {
    if (left == 0 && static_cast<int>(sizes.size()) >= fewest) visit(sizes);
    for (int size = from; size <= std::min(left, most); ++size) {
      sizes.push_back(size);
      extend(left - size, size);
      sizes.pop_back();
    }
  };
  extend(nodes, least);
}

TEST(Instantiate, FindsThePublishedInstantiations) {
  int rows = 0;
  for (const YamlNode& row : oracle_rows("resilience_planner_oracles.yaml", "instantiations").items) {
    const int nodes = integer(row, "N");
    const int n0 = integer(row, "n0");
    const int f = integer(row, "f");
    const std::vector<int> expected = integers(*row.find("templates"));
    SCOPED_TRACE(testing::Message() << "N=" << nodes << " f=" << f << " n0=" << n0);
    const TemplateRange range = template_range(nodes, n0, f, integer(row, "layers"));
    Templates templates(
        {group_of(nodes, std::vector<int>(static_cast<std::size_t>(integer(row, "layers")), 1))}, 1, {});
    const auto found = instantiate(templates, {.available = {nodes},
                                               .min_nodes = n0,
                                               .most_nodes = range.most_nodes,
                                               .max_failures = f,
                                               .micro_batches = integer(row, "B")});
    ASSERT_TRUE(found);
    EXPECT_EQ(sizes_of(*found), expected);
    EXPECT_EQ(found->shares.micro_batches, integers(*row.find("micro_batches_per_pipeline")));
    EXPECT_EQ(found->step, Duration{integer(row, "T")});
    EXPECT_EQ(found->idle, Composition{0});
    int multisets = 0;
    int equal = 0;
    each_multiset(nodes, n0, range.most_nodes, f + 1, [&](const std::vector<int>& sizes) {
      ++multisets;
      std::vector<int> numbers;
      for (const int size : sizes) numbers.push_back(templates.find({size}).value());
      if (share_micro_batches(templates, numbers, integer(row, "B")).makespan == found->step) ++equal;
    });
    EXPECT_EQ(multisets, integer(row, "multisets"));
    EXPECT_EQ(equal - 1, integer(row, "equal_T"));
    ++rows;
  }
  EXPECT_EQ(rows, 7);
}

// Property: random layers, and a tail that grows with the number of pipelines.
TEST(Instantiate, IsAsGoodAsListingEveryMultiset) {
  std::mt19937 draw(11);
  for (int trial = 0; trial < 150; ++trial) {
    std::vector<int> work;
    for (int layer = 0; layer < 12; ++layer) work.push_back(1 + static_cast<int>(draw() % 9));
    const int n0 = 1 + static_cast<int>(draw() % 3);
    const int f = static_cast<int>(draw() % 3);
    const int nodes = (f + 1) * n0 + static_cast<int>(draw() % 12);
    const int micro_batches = nodes + static_cast<int>(draw() % 40);
    const int growth = static_cast<int>(draw() % 8);
    SCOPED_TRACE(testing::Message() << "trial " << trial << " N=" << nodes << " n0=" << n0 << " f=" << f);
    const int most = template_range(nodes, n0, f, 12).most_nodes;
    Templates templates({group_of(nodes, work)}, 1, {});
    const StepTail tail = [growth](int pipelines) { return Duration{growth * pipelines}; };
    std::optional<std::tuple<Duration, int, std::vector<int>>> best;
    const auto consider = [&](const std::vector<int>& sizes) {
      std::vector<int> numbers;
      for (const int size : sizes) numbers.push_back(templates.find({size}).value());
      const auto count = static_cast<int>(sizes.size());
      const std::tuple candidate{
          share_micro_batches(templates, numbers, micro_batches).makespan + tail(count), -count, sizes};
      if (!best || candidate < *best) best = candidate;
    };
    InstantiateRequest request{.available = {nodes},
                               .min_nodes = n0,
                               .most_nodes = most,
                               .max_failures = f,
                               .micro_batches = micro_batches,
                               .tail = tail,
                               .may_idle = true};
    for (int used = n0; used <= nodes; ++used) each_multiset(used, n0, most, f + 1, consider);
    EXPECT_EQ(instantiate(templates, request)->step, std::get<0>(best.value())) << "where some may idle";
    best.reset();
    request.may_idle = false;
    each_multiset(nodes, n0, most, f + 1, consider);
    const auto found = instantiate(templates, request);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->idle == Composition{0}, best.has_value());
    if (!best) continue;  // a count that cannot be used whole
    EXPECT_EQ(found->step, std::get<0>(*best));
    EXPECT_EQ(sizes_of(*found), std::get<2>(*best));
  }
}

// Oracle: two groups, the second twice as slow; every pair of multisets.
TEST(Instantiate, IsExactAmongPipelinesThatDoNotMixGroups) {
  const std::vector<int> fast{4, 3, 5, 4, 6, 4, 3, 5};
  std::vector<int> slow;
  for (const int work : fast) slow.push_back(2 * work);
  for (int quick = 2; quick <= 7; ++quick)
    for (int lame = 2; lame <= 7; ++lame) {
      SCOPED_TRACE(testing::Message() << quick << " fast, " << lame << " slow");
      Templates templates({group_of(quick, fast), group_of(lame, slow)}, 1, {});
      std::optional<Duration> best;
      each_multiset(quick, 2, 6, 1, [&](const std::vector<int>& of_quick) {
        each_multiset(lame, 2, 6, 1, [&](const std::vector<int>& of_lame) {
          std::vector<int> numbers;
          for (const int size : of_quick) numbers.push_back(templates.find({size, 0}).value());
          for (const int size : of_lame) numbers.push_back(templates.find({0, size}).value());
          const Duration step = share_micro_batches(templates, numbers, 64).makespan;
          if (!best || step < *best) best = step;
        });
      });
      const auto found = instantiate(templates, {.available = {quick, lame},
                                                 .min_nodes = 2,
                                                 .most_nodes = 6,
                                                 .max_failures = 1,
                                                 .micro_batches = 64});
      ASSERT_TRUE(found);
      EXPECT_EQ(found->step, best);
    }
}

// Five fast nodes and one slow one, n0 = 2: the slow one works in a pipeline of fast ones, and is priced as
// slow.
TEST(Instantiate, LendsTheNodesOfAGroupThatIsTooSmall) {
  const std::vector<int> fast(12, 10);
  const std::vector<int> slow(12, 30);
  Templates templates({group_of(5, fast), group_of(1, slow)}, 1, {});
  const auto found = instantiate(
      templates,
      {.available = {5, 1}, .min_nodes = 2, .most_nodes = 4, .max_failures = 1, .micro_batches = 32});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->idle, (Composition{0, 0}));
  EXPECT_EQ(found->pipelines.back().at(1), 1);
  const PipelineTemplate& mixed = templates.at(templates.find(found->pipelines.back()).value());
  EXPECT_LT(mixed.layers_on(mixed.nodes() - 1, 12).end - mixed.layers_on(mixed.nodes() - 1, 12).first,
            12 / mixed.nodes());
}

// n0 = 3 and sizes up to 4: five nodes are no sum, one idles.
TEST(Instantiate, IdlesNodesThatNoSizesUse) {
  Templates templates({group_of(5, std::vector<int>(8, 1))}, 1, {});
  const auto found = instantiate(
      templates, {.available = {5}, .min_nodes = 3, .most_nodes = 4, .max_failures = 0, .micro_batches = 8});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->idle, Composition{1});
  EXPECT_EQ(sizes_of(*found), std::vector{4});
}

TEST(Instantiate, HasNothingForFewerNodesThanTheModelNeeds) {
  Templates templates({group_of(2, std::vector<int>(8, 1))}, 1, {});
  EXPECT_FALSE(instantiate(
      templates, {.available = {2}, .min_nodes = 3, .most_nodes = 4, .max_failures = 0, .micro_batches = 8}));
}

// A time from outside takes the place of the equations: here twice theirs, so that the step doubles.
TEST(Instantiate, TakesTimesFromOutside) {
  const std::vector<int> work{3, 1, 4, 1, 5, 9, 2, 6};
  Templates own({group_of(7, work)}, 1, {});
  Templates outside({group_of(7, work)}, 1,
                    {.time = [](const PipelineTemplate& of, int nb) { return 2 * of.line.time(nb); }});
  const InstantiateRequest request{
      .available = {7}, .min_nodes = 2, .most_nodes = 5, .max_failures = 1, .micro_batches = 24};
  const auto by_equations = instantiate(own, request);
  const auto by_outside = instantiate(outside, request);
  ASSERT_TRUE(by_equations && by_outside);
  EXPECT_EQ(by_outside->step, 2 * by_equations->step);
  EXPECT_EQ(by_outside->pipelines, by_equations->pipelines);
}

// Property: no other shares end earlier. Three pipelines, 9 micro-batches, all 28 ways.
TEST(ShareMicroBatches, EndsAsEarlyAsAnyShares) {
  std::mt19937 draw(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::vector<Duration>> times(3);
    for (auto& row : times) {
      Duration time{};
      for (int nb = 0; nb <= 10; ++nb) row.push_back(time += Duration{draw() % 7});
    }
    const auto time = [&](int pipeline, int nb) {
      return times[static_cast<std::size_t>(pipeline)][static_cast<std::size_t>(nb)];
    };
    Duration least = std::chrono::hours(1);
    for (int a = 1; a <= 7; ++a)
      for (int b = 1; a + b <= 8; ++b)
        least = std::min(least, std::max({time(0, a), time(1, b), time(2, 9 - a - b)}));
    EXPECT_EQ(share_micro_batches(3, 9, time).makespan, least);
  }
}

}  // namespace
}  // namespace stagecraft
