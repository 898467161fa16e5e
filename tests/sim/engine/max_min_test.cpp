#include "sim/engine/max_min.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/sampling.hpp"

namespace stagecraft {
namespace {

constexpr double kExact = 1e-9;  // relative: what the integers of the sums and "the same rate" leave open

struct Case {
  std::vector<LinkUse> uses;
  double cap = 1e18;
};

IdVector<LinkId, SharedLink> links_of(const std::vector<double>& capacities) {
  IdVector<LinkId, SharedLink> links;
  for (const double capacity : capacities) links.push_back({.name = "link", .capacity = Bandwidth(capacity)});
  return links;
}

LinkUse on(std::uint32_t link, double flows = 1) {
  return {.link = LinkId(link), .flows = flows};
}

// The rates of transfers that start together, in their order.
std::vector<double> rates(const std::vector<double>& capacities, const std::vector<Case>& cases) {
  MaxMin network(links_of(capacities));
  for (std::uint32_t i = 0; i < cases.size(); ++i) network.insert(TransferId(i), cases[i].uses, cases[i].cap);
  network.solve();
  std::vector<double> result;
  for (std::uint32_t i = 0; i < cases.size(); ++i) result.push_back(network.rate(TransferId(i)));
  return result;
}

TEST(MaxMin, SharesALinkEqually) {
  EXPECT_EQ(rates({12}, {{{on(0)}}, {{on(0)}}, {{on(0)}}}), (std::vector<double>{4, 4, 4}));
}

TEST(MaxMin, GivesATransferAloneItsCap) {
  EXPECT_EQ(rates({12}, {{{on(0)}, 5}}), (std::vector<double>{5}));
}

TEST(MaxMin, GivesWhatACapLeavesToTheOthers) {
  EXPECT_EQ(rates({12}, {{{on(0)}, 2}, {{on(0)}}, {{on(0)}}}), (std::vector<double>{2, 5, 5}));
}

// System: links 0 (10), 1 (10), 2 (4). a crosses 0 and 1, b 0, c 1 and 2, d 2.
// Expectation: 2 fills at 2 (c, d); then 0 at 5 (a, b), while 1 has 5 + 2 and is not full.
TEST(MaxMin, FillsThreeLinksOneAfterTheOther) {
  EXPECT_EQ(rates({10, 10, 4}, {{{on(0), on(1)}}, {{on(0)}}, {{on(1), on(2)}}, {{on(2)}}}),
            (std::vector<double>{5, 5, 2, 2}));
}

// System: link of 12; a counts as two unit flows. Expectation: 3 unit flows of 4.
TEST(MaxMin, SharesByUnitFlows) {
  EXPECT_EQ(rates({12}, {{{on(0, 2)}}, {{on(0)}}}), (std::vector<double>{4, 4}));
}

// A quarter of a's bytes cross the link of 10: 0.25 x + x = 10, x = 8.
TEST(MaxMin, TakesFractionsOfAFlow) {
  EXPECT_EQ(rates({10}, {{{on(0, 0.25)}}, {{on(0)}}}), (std::vector<double>{8, 8}));
}

TEST(MaxMin, LetsEverythingThroughWhenUnlimited) {
  MaxMin network(links_of({1}), true);
  const std::vector<LinkUse> uses{on(0)};
  network.insert(TransferId(0), uses, 5);
  network.solve();
  EXPECT_EQ(network.rate(TransferId(0)), 5);
  EXPECT_FALSE(network.is_full(LinkId(0)));
}

TEST(MaxMin, NamesTheBottleneckAndWhatIsFull) {
  MaxMin network(links_of({10, 4, 4}));
  const std::vector<LinkUse> both{on(0), on(1)}, wide{on(0)}, other{on(2)};
  network.insert(TransferId(0), both, 100);
  network.insert(TransferId(1), wide, 3);
  network.insert(TransferId(2), other, 4);
  network.solve();
  EXPECT_EQ(network.bottleneck(TransferId(0)), LinkId(1));
  EXPECT_EQ(network.bottleneck(TransferId(1)), std::nullopt);
  EXPECT_FALSE(network.is_full(LinkId(0)));
  EXPECT_TRUE(network.is_full(LinkId(1)));
  EXPECT_TRUE(network.is_full(LinkId(2)));  // at its cap, and yet the link is full
  EXPECT_EQ(network.bottleneck(TransferId(2)), std::nullopt);
}

// System: links 0 and 1 of 10, each with two transfers; one of link 0 ends. Expectation: its neighbour alone
// is told, link 1 is not looked at.
TEST(MaxMin, TellsWhoseRateChangedAndNobodyElse) {
  MaxMin network(links_of({10, 10}));
  const std::vector<LinkUse> zero{on(0)}, one{on(1)};
  for (std::uint32_t i = 0; i < 4; ++i) network.insert(TransferId(i), i < 2 ? zero : one, 100);
  network.solve();
  EXPECT_EQ(network.changed().size(), 4u);
  network.remove(TransferId(0));
  network.solve();
  ASSERT_EQ(network.changed().size(), 1u);
  EXPECT_EQ(network.changed()[0], TransferId(1));
  EXPECT_EQ(network.rate(TransferId(1)), 10);
  ASSERT_EQ(network.touched().size(), 1u);
  EXPECT_EQ(network.touched()[0], LinkId(0));
}

// A transfer of a link that is full, whose cap falls to nothing before its first rate is found.
TEST(MaxMin, TellsOfANewTransferThatMayNotMove) {
  MaxMin network(links_of({1}));
  const std::vector<LinkUse> uses{{.link = LinkId(0), .flows = 1}};
  EXPECT_FALSE(network.insert(TransferId(0), uses, 2));
  network.set_cap(TransferId(0), 0);
  network.solve();
  ASSERT_EQ(network.changed().size(), 1u);
  EXPECT_EQ(network.rate(TransferId(0)), 0);
}

// Oracle: progressive filling word for word. All that grow grow by the largest common step that neither a
// link nor a cap forbids; who met a full link or the cap stops.
std::map<std::uint32_t, double> fill(const std::vector<double>& capacities,
                                     const std::map<std::uint32_t, Case>& cases) {
  std::map<std::uint32_t, double> rate;
  std::map<std::uint32_t, bool> grows;
  for (const auto& [id, item] : cases) rate[id] = 0, grows[id] = true;
  std::vector<double> room = capacities;
  while (std::any_of(grows.begin(), grows.end(), [](const auto& g) { return g.second; })) {
    std::vector<double> weight(capacities.size());
    double step = 1e300;
    for (const auto& [id, item] : cases)
      if (grows[id]) {
        for (const LinkUse& use : item.uses) weight[use.link.index()] += use.flows;
        step = std::min(step, item.cap - rate[id]);
      }
    for (std::size_t l = 0; l < room.size(); ++l)
      if (weight[l] > 0) step = std::min(step, room[l] / weight[l]);
    for (std::size_t l = 0; l < room.size(); ++l) room[l] -= step * weight[l];
    for (const auto& [id, item] : cases) {
      if (!grows[id]) continue;
      rate[id] += step;
      const bool stopped = std::any_of(item.uses.begin(), item.uses.end(), [&](const LinkUse& use) {
        return room[use.link.index()] <= 1e-12 * capacities[use.link.index()];
      });
      if (stopped || rate[id] >= item.cap * (1 - 1e-12)) grows[id] = false;
    }
  }
  return rate;
}

class RandomSystem {
 public:
  explicit RandomSystem(std::uint64_t seed) : random_(seed) {
    const std::uint64_t links = 1 + below(8);
    round_ = below(2) == 0;  // round numbers make ties
    for (std::uint64_t l = 0; l < links; ++l) capacities.push_back(round_ ? number(4) : 1 + fraction() * 9);
  }

  Case transfer() {
    Case item{.uses = {}, .cap = below(3) == 0 ? number(3) : 1e6};
    for (std::uint32_t l = 0; l < capacities.size(); ++l)
      if (below(3) == 0)
        item.uses.push_back(on(l, below(3) > 0 ? 1 : round_ ? number(3) : 0.01 + fraction()));
    return item;
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  std::vector<double> capacities;

 private:
  double number(std::uint64_t most) { return static_cast<double>(1 + below(most)); }
  double fraction() { return static_cast<double>(below(1 << 20)) / (1 << 20); }

  std::mt19937_64 random_;
  bool round_;
};

void expect_filled(const MaxMin& network, const std::vector<double>& capacities,
                   const std::map<std::uint32_t, Case>& cases) {
  for (const auto& [id, expected] : fill(capacities, cases))
    ASSERT_NEAR(network.rate(TransferId(id)), expected, expected * kExact) << "transfer " << id;
}

// Oracle: 2,000 systems, in each of which transfers come, go and change their caps for 40 steps of up to
// three changes; after each the rates are those of filling from nothing.
TEST(MaxMin, AgreesWithFillingFromNothingWhateverCameAndWent) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(sampled_count(2'000)); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    RandomSystem system(seed);
    MaxMin network(links_of(system.capacities));
    std::map<std::uint32_t, Case> present;
    for (int step = 0; step < 40; ++step) {
      std::vector<std::uint32_t> before;
      for (const auto& [id, item] : present) before.push_back(id);
      for (std::uint64_t change = 0; change <= system.below(3); ++change) {
        const std::uint64_t what = system.below(4 + 3 * (seed % 3));  // a few present, or some dozens
        if (what < 2 && !before.empty()) {
          const std::size_t at = system.below(before.size());
          network.remove(TransferId(before[at]));
          present.erase(before[at]);
          before.erase(before.begin() + static_cast<std::ptrdiff_t>(at));
        } else if (what == 2 && !before.empty()) {
          const std::uint32_t id = before[system.below(before.size())];
          before.erase(std::find(before.begin(), before.end(), id));
          present[id].cap = static_cast<double>(system.below(6)) / 2;
          network.set_cap(TransferId(id), present[id].cap);
        } else {
          std::uint32_t id = 0;
          while (present.contains(id)) ++id;
          present[id] = system.transfer();
          network.insert(TransferId(id), present[id].uses, present[id].cap);
        }
      }
      network.solve();
      ASSERT_NO_FATAL_FAILURE(expect_filled(network, system.capacities, present)) << "step " << step;
    }
  }
}

// Links get other capacities, after what came and went at that instant and before caps change.
TEST(MaxMin, AgreesWithFillingFromNothingWhateverLinksBecome) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(sampled_count(2'000)); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    RandomSystem system(seed);
    MaxMin network(links_of(system.capacities));
    std::vector<double> now = system.capacities;
    std::map<std::uint32_t, Case> present;
    for (std::uint32_t step = 0; step < 40; ++step) {
      if (step > 8 && system.below(2) == 0) {
        const std::uint32_t gone =
            std::next(present.begin(), static_cast<std::ptrdiff_t>(system.below(present.size())))->first;
        network.remove(TransferId(gone));
        present.erase(gone);
      }
      present[step] = system.transfer();
      network.insert(TransferId(step), present[step].uses, present[step].cap);
      const std::size_t link = system.below(now.size());
      now[link] = system.capacities[link] * static_cast<double>(1 + system.below(8)) / 8;
      network.set_capacity(LinkId(static_cast<std::uint32_t>(link)), Bandwidth(now[link]));
      Case& other = present.begin()->second;
      other.cap = static_cast<double>(system.below(6)) / 2;
      network.set_cap(TransferId(present.begin()->first), other.cap);
      network.solve();
      ASSERT_NO_FATAL_FAILURE(expect_filled(network, now, present)) << "step " << step;
    }
  }
}

// Property: the same bits, not nearly the same rates, in whatever order the transfers of one instant come.
TEST(MaxMin, DoesNotDependOnTheOrderOfArrival) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    RandomSystem system(seed);
    std::vector<Case> cases;
    for (int i = 0; i < 12; ++i) cases.push_back(system.transfer());
    const std::vector<double> expected = rates(system.capacities, cases);
    std::vector<std::uint32_t> order(cases.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[system.below(i + 1)]);

    MaxMin network(links_of(system.capacities));
    for (const std::uint32_t i : order) network.insert(TransferId(i), cases[i].uses, cases[i].cap);
    network.solve();
    for (std::uint32_t i = 0; i < cases.size(); ++i) ASSERT_EQ(network.rate(TransferId(i)), expected[i]);
  }
}

}  // namespace
}  // namespace stagecraft
