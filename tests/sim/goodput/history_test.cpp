// Histories against the laws that they follow. Statistical bounds are four standard errors, with fixed seeds.
#include "sim/goodput/history.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "sim/goodput/expected_failures.hpp"
#include "sim/goodput/machines.hpp"
#include "sim/goodput/spares.hpp"
#include "sim/goodput/statistic.hpp"
#include "tests/sim/goodput/failure_specs.hpp"

namespace stagecraft {
namespace {

using made::constant;
using made::failures;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Duration kDay = hours(24);

Cause node_failure() {
  return {.name = "gpu", .severity = FailureSeverity::kNode, .detect = seconds(10), .repair = {}};
}
Cause process_failure() {
  return {.name = "software", .severity = FailureSeverity::kProcess, .detect = seconds(600), .repair = {}};
}
std::size_t count(const History& history, IncidentKind kind) {
  return static_cast<std::size_t>(std::ranges::count(history.incidents, kind, &Incident::kind));
}

// All laws at once on one cluster; every node that breaks is repaired.
FailureSpec everything(Duration horizon) {
  FailureSpec spec;
  const std::vector<Cause> mix{
      {.name = "gpu", .share = 0.7, .repair = {}},
      {.name = "software", .share = 0.3, .severity = FailureSeverity::kProcess, .repair = {}}};
  spec.processes = {
      {.law = ExponentialFailures{.rate_per_node_day = 0.05, .lemon_factor = 1.085}, .causes = mix},
      {.law = ComponentFailures{.rates_per_node_day = {0.03, 0.02}}, .causes = mix},
      {.law = WeibullNodeFailures{.rate_per_node_day = 0.03, .shape = 0.7}, .causes = mix},
      {.law = FailSlow{.share = 0.02,
                       .low_factor = 1.1,
                       .high_factor = 2,
                       .shortest = seconds(30),
                       .longest = hours(10)},
       .causes = {{.name = "slow", .repair = {}}}},
      {.law = SilentCorruption{.rate_per_node_day = 0.01, .discovery = hours(2)},
       .causes = {{.name = "corruption", .repair = {}}}}};
  spec.repair = {.kind = RepairKind::kEmpirical, .times = {minutes(5), hours(3), hours(30)}};
  spec.horizon = horizon;
  return spec;
}

// everything() and the laws that choose among the nodes of the cluster.
FailureSpec everything_and_the_cluster(Duration horizon) {
  FailureSpec spec = everything(horizon);
  const std::vector<Cause> mix = spec.processes.front().causes;
  spec.processes.push_back(
      {.law = WeibullClusterFailures{.rate_per_node_day = 0.02, .shape = 0.62}, .causes = mix});
  spec.processes.push_back(
      {.law = BurstFailures{.rate_per_node_day = 0.05, .domain_nodes = 4, .mean_size = 2}, .causes = mix});
  spec.processes.push_back(
      {.law = Maintenance{.period = kDay, .jitter = hours(2), .notice = hours(1), .duration = hours(1)},
       .causes = {{.name = "maintenance", .repair = {}}}});
  return spec;
}

// 100 nodes × 0.01 a day × 100 days: 100 failures a repeat, Poisson.
TEST(ExponentialFailures, HappenAtTheirRate) {
  const FailureSpec spec =
      failures(ExponentialFailures{.rate_per_node_day = 0.01}, process_failure(), 100 * kDay);
  double sum = 0;
  const int repeats = 200;
  for (int repeat = 0; repeat < repeats; ++repeat)
    sum += static_cast<double>(count(history_of(spec, 100, 1, repeat), IncidentKind::kFault));
  EXPECT_NEAR(sum / repeats, 100, 4 * std::sqrt(100.0 / repeats));
  EXPECT_DOUBLE_EQ(failures_per_second(spec, 100) * 86'400, 1);
}

// Twice the reference's nodes and an exponent of 1: twice the rate of a node, so 4 failures a day where 100
// nodes have 1.
TEST(ExponentialFailures, GrowWithTheExponent) {
  const FailureSpec spec =
      failures(ExponentialFailures{.rate_per_node_day = 0.01, .exponent = 1, .reference_nodes = 100},
               process_failure(), 100 * kDay);
  EXPECT_DOUBLE_EQ(failures_per_second(spec, 200) * 86'400, 4);
  const auto found = static_cast<double>(count(history_of(spec, 200, 1, 0), IncidentKind::kFault));
  EXPECT_NEAR(found, 400, 4 * std::sqrt(400));
}

TEST(ExponentialFailures, OfRateZeroNeverHappen) {
  EXPECT_THAT(history_of(failures(ExponentialFailures{}, node_failure(), 10'000 * kDay), 8, 1, 0).incidents,
              IsEmpty());
}

TEST(History, TellsCauseAndDetectionOfAFailure) {
  FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 1}, process_failure(), 10 * kDay);
  const History history = history_of(spec, 1, 1, 0);
  ASSERT_FALSE(history.incidents.empty());
  EXPECT_THAT(history.causes, ElementsAre("software"));
  EXPECT_EQ(history.incidents.front().cause, 0);
  EXPECT_EQ(history.incidents.front().detect, seconds(600));
  spec.detect = seconds(1);
  EXPECT_EQ(history_of(spec, 1, 1, 0).incidents.front().detect, seconds(1));
}

TEST(History, BringsANodeBackWhenItsRepairIsOver) {
  FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 1}, node_failure(), 50 * kDay);
  spec.repair = constant(hours(5));
  const History history = history_of(spec, 1, 1, 0);
  ASSERT_GT(history.incidents.size(), 10u);
  for (std::size_t i = 0; i + 1 < history.incidents.size(); i += 2) {
    EXPECT_EQ(history.incidents[i].kind, IncidentKind::kRemove);
    EXPECT_EQ(history.incidents[i + 1].kind, IncidentKind::kAdd);
    EXPECT_EQ(history.incidents[i + 1].time, history.incidents[i].time + hours(5));
    EXPECT_EQ(history.incidents[i + 1].due, history.incidents[i + 1].time);
  }
}

TEST(History, LosesANodeForGoodWhereNobodyRepairs) {
  const FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 1}, node_failure(), 1000 * kDay);
  const History history = history_of(spec, 5, 1, 0);
  EXPECT_THAT(history.incidents, SizeIs(5));
  EXPECT_EQ(count(history, IncidentKind::kRemove), 5u);
}

TEST(History, PrefersTheRepairOfTheCause) {
  Cause cause = node_failure();
  cause.repair = constant(hours(1));
  FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 1}, cause, 50 * kDay);
  spec.repair = constant(hours(5));
  const History history = history_of(spec, 1, 1, 0);
  EXPECT_EQ(history.incidents[1].time - history.incidents[0].time, hours(1));
}

// A repair that takes no time still ends after its failure: at equal times additions come first.
TEST(History, IsInOrderWhenRepairsTakeNoTime) {
  FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 1}, node_failure(), 50 * kDay);
  spec.repair = constant(Duration(0));
  const History history = history_of(spec, 1, 1, 0);
  EXPECT_EQ(history.incidents[0].kind, IncidentKind::kRemove);
  EXPECT_EQ(history.incidents[1].time, history.incidents[0].time + Duration(1));
}

// 70 % and 30 %: binomial.
TEST(History, DrawsCausesByTheirShares) {
  FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 1}, process_failure(), 10'000 * kDay);
  spec.processes.front().causes.front().share = 0.7;
  spec.processes.front().causes.push_back(
      {.name = "network", .share = 0.3, .severity = FailureSeverity::kProcess, .repair = {}});
  const History history = history_of(spec, 1, 1, 0);
  const auto n = static_cast<double>(history.incidents.size());
  const auto first = static_cast<double>(std::ranges::count(history.incidents, 0, &Incident::cause));
  EXPECT_NEAR(first / n, 0.7, 4 * std::sqrt(0.7 * 0.3 / n));
}

// Mean time to failure 10 days, repair 2.5 days: up 80 % of the time, whatever the law of the time to
// failure.
TEST(History, KeepsTheAvailabilityOfTheClosedForm) {
  const Duration horizon = 20'000 * kDay;
  const std::vector<FailureLaw> laws{ExponentialFailures{.rate_per_node_day = 0.1},
                                     WeibullNodeFailures{.rate_per_node_day = 0.1, .shape = 2},
                                     ComponentFailures{.rates_per_node_day = {0.1}}};
  for (std::size_t law = 0; law < laws.size(); ++law) {
    SCOPED_TRACE(kFailureLawNames[laws[law].index()]);
    FailureSpec spec = failures(laws[law], node_failure(), horizon);
    spec.repair = {.kind = RepairKind::kEmpirical, .times = {kDay, 4 * kDay}};
    std::vector<double> shares;
    for (int repeat = 0; repeat < 30; ++repeat) {
      double down = 0;
      for (const Incident& incident : history_of(spec, 1, 5, repeat).incidents)
        down += (incident.kind == IncidentKind::kRemove ? 1 : -1) * to_seconds(horizon - incident.time);
      shares.push_back(1 - down / to_seconds(horizon));
    }
    const Statistic measured = statistic_of(shares);
    EXPECT_NEAR(measured.mean, 0.8, 4 * measured.standard_error);
  }
}

// The k-th failure of a renewal process is at k mean gaps, give or take sqrt(k) standard deviations.
TEST(WeibullNodeFailures, HaveGapsOfMeanOneOverRate) {
  for (const double shape : {0.62, 1.0, 2.0}) {
    SCOPED_TRACE(shape);
    const FailureSpec spec = failures(WeibullNodeFailures{.rate_per_node_day = 1, .shape = shape},
                                      process_failure(), 20'000 * kDay);
    const History history = history_of(spec, 1, 3, 0);
    const std::size_t k = 10'000;
    ASSERT_GT(history.incidents.size(), k);
    const double mean = std::tgamma(1 + 1 / shape);
    const double deviation = std::sqrt(std::tgamma(1 + 2 / shape) / (mean * mean) - 1);
    EXPECT_NEAR(to_seconds(history.incidents[k - 1].time) / 86'400 / static_cast<double>(k), 1,
                4 * deviation / std::sqrt(static_cast<double>(k)));
  }
}

TEST(WeibullClusterFailures, HaveGapsOfTheWholeClusterAndHitAllNodesAlike) {
  const double shape = 0.62;
  const FailureSpec spec = failures(WeibullClusterFailures{.rate_per_node_day = 0.1, .shape = shape},
                                    process_failure(), 20'000 * kDay);
  const History history = history_of(spec, 10, 3, 0);  // one a day
  const std::size_t k = 10'000;
  ASSERT_GT(history.incidents.size(), k);
  const double mean = std::tgamma(1 + 1 / shape);
  const double deviation = std::sqrt(std::tgamma(1 + 2 / shape) / (mean * mean) - 1);
  EXPECT_NEAR(to_seconds(history.incidents[k - 1].time) / 86'400 / static_cast<double>(k), 1,
              4 * deviation / std::sqrt(static_cast<double>(k)));
  std::map<int, double> hits;
  for (const Incident& incident : history.incidents) ++hits[incident.node];
  const auto n = static_cast<double>(history.incidents.size());
  for (int node = 0; node < 10; ++node) EXPECT_NEAR(hits[node], n / 10, 4 * std::sqrt(n * 0.1 * 0.9)) << node;
}

// Who fails first fails 1.2 times as often afterwards, and so on: gaps of mean 1, 1/1.2, 1/1.44, … days.
TEST(LemonNodes, HaveNoRateByFormula) {
  FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 1, .lemon_factor = 1.1},
                              process_failure(), 100 * kDay);
  double found = 0;
  for (int repeat = 0; repeat < 8; ++repeat)
    found += static_cast<double>(count(history_of(spec, 8, 1, repeat), IncidentKind::kFault)) / 8 / 100;
  ASSERT_GT(found, 3 * 8);
  EXPECT_NEAR(failures_per_second(spec, 8) * 86'400, found, 0.1 * found);
  spec.processes.front().law = ExponentialFailures{.rate_per_node_day = 1e-9, .lemon_factor = 1.1};
  EXPECT_DOUBLE_EQ(failures_per_second(spec, 8) * 86'400, 8e-9) << "nobody has lived to see one";
}

TEST(LemonNodes, FailMoreOftenAfterEveryIncident) {
  const FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 1, .lemon_factor = 1.2},
                                    process_failure(), 15 * kDay);
  const int repeats = 2000;
  std::vector<double> sums(4);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const History history = history_of(spec, 1, 9, repeat);
    ASSERT_GE(history.incidents.size(), sums.size()) << repeat;
    Duration before{};
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += to_seconds(history.incidents[i].time - before) / 86'400;
      before = history.incidents[i].time;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double mean = std::pow(1.2, -static_cast<double>(i));
    EXPECT_NEAR(sums[i] / repeats, mean, 4 * mean / std::sqrt(repeats)) << "after " << i << " incidents";
  }
}

// Components fail at rates of their own: 3 and 1 a day.
TEST(ComponentFailures, HappenAtTheRateOfEachComponent) {
  FailureSpec spec =
      failures(ComponentFailures{.rates_per_node_day = {3, 1}}, process_failure(), 1000 * kDay);
  spec.processes.front().causes.push_back(
      {.name = "disk", .severity = FailureSeverity::kProcess, .repair = {}});
  const History history = history_of(spec, 1, 1, 0);
  const auto of = [&](int cause) {
    return static_cast<double>(std::ranges::count(history.incidents, cause, &Incident::cause));
  };
  EXPECT_NEAR(of(0), 3000, 4 * std::sqrt(3000));
  EXPECT_NEAR(of(1), 1000, 4 * std::sqrt(1000));
}

// Spares fail like the job's nodes, and those fail as they do without spares.
TEST(History, OfTheJobsNodesIsTheSameWithSpares) {
  const FailureLaw laws[] = {
      ExponentialFailures{.rate_per_node_day = 0.2, .exponent = 1, .reference_nodes = 4},
      ExponentialFailures{.rate_per_node_day = 0.2, .exponent = -1, .reference_nodes = 4},
      BurstFailures{.bursts_per_day = 2, .domain_nodes = 4, .mean_size = 2}};
  for (const FailureLaw& law : laws) {
    SCOPED_TRACE(law.index());
    const FailureSpec spec = failures(law, process_failure(), 100 * kDay);
    const std::vector<Incident> alone = history_of(spec, 8, 1, 0).incidents;
    std::vector<Incident> beside = history_of(spec, 24, 1, 0, 16).incidents;
    const auto in_all = static_cast<double>(beside.size());
    std::erase_if(beside, [](const Incident& incident) { return incident.node >= 8; });
    ASSERT_GT(alone.size(), 30u);
    EXPECT_EQ(beside, alone);
    EXPECT_NEAR(in_all, 3 * static_cast<double>(alone.size()), 0.5 * in_all);
  }
}

// Pencil: the GPU fails once in ten days and is away for a day, the disk three times as often for half of
// one; the software costs no node. (0.1 + 0.15) / (1 + 0.25).
TEST(ComponentFailures, KeepANodeAwayForTheRepairsOfEachAtItsRate) {
  FailureSpec spec = failures(ComponentFailures{.rates_per_node_day = {0.1, 0.3, 5}},
                              {.name = "gpu", .severity = FailureSeverity::kNode, .repair = {}}, 100 * kDay);
  const RepairSpec half_a_day{.kind = RepairKind::kConstant, .time = hours(12)};
  spec.repair = {.kind = RepairKind::kConstant, .time = hours(24)};
  spec.processes.front().causes.push_back(
      {.name = "disk", .severity = FailureSeverity::kNode, .repair = half_a_day});
  spec.processes.front().causes.push_back(
      {.name = "software", .severity = FailureSeverity::kProcess, .repair = {}});
  EXPECT_NEAR(unavailable_share(spec, 8), 0.25 / 1.25, 1e-12);
}

// Pencil: the k-th node is away from k days on, give or take the jitter.
TEST(Maintenance, NeedsASpareForEachNodeThatItTakesAtOnce) {
  const auto spares = [](Duration duration, Duration jitter) {
    return spares_for(failures(Maintenance{.period = kDay, .jitter = jitter, .duration = duration},
                               node_failure(), 100 * kDay),
                      8);
  };
  EXPECT_EQ(spares(hours(4), {}), 1);
  EXPECT_EQ(spares(hours(24), {}), 1);
  EXPECT_EQ(spares(hours(25), {}), 2);
  EXPECT_EQ(spares(hours(23), hours(1)), 2);
  EXPECT_EQ(spares_for(failures(ExponentialFailures{}, node_failure(), kDay), 8), 0);
}

TEST(ComponentFailures, OfOneComponentAreWhatTheyAreWithoutTheOthers) {
  FailureSpec one = failures(ComponentFailures{.rates_per_node_day = {3}}, process_failure(), 100 * kDay);
  FailureSpec two = one;
  two.processes.front() = {
      .law = ComponentFailures{.rates_per_node_day = {3, 1}},
      .causes = {process_failure(), {.name = "disk", .severity = FailureSeverity::kProcess, .repair = {}}}};
  std::vector<Incident> first = history_of(two, 4, 1, 0).incidents;
  std::erase_if(first, [](const Incident& incident) { return incident.cause != 0; });
  EXPECT_EQ(first, history_of(one, 4, 1, 0).incidents);
}

// Domains of 4 nodes, sizes 1 and 3 equally likely: 2 nodes a burst.
TEST(BurstFailures, TakeSeveralNodesOfOneDomainAtOnce) {
  FailureSpec spec =
      failures(BurstFailures{.rate_per_node_day = 0.01, .domain_nodes = 4, .sizes = {{1, 1}, {3, 1}}},
               process_failure(), 10'000 * kDay);
  const History history = history_of(spec, 8, 2, 0);
  std::map<Duration, std::set<int>> bursts;
  for (const Incident& incident : history.incidents) bursts[incident.time].insert(incident.node);
  double threes = 0;
  for (const auto& [time, nodes] : bursts) {
    EXPECT_TRUE(nodes.size() == 1 || nodes.size() == 3);
    EXPECT_EQ(*nodes.begin() / 4, *nodes.rbegin() / 4) << "one domain";
    threes += nodes.size() == 3 ? 1 : 0;
  }
  const auto n = static_cast<double>(bursts.size());
  EXPECT_NEAR(threes / n, 0.5, 4 * std::sqrt(0.25 / n));
  // 8 nodes × 0.01 a day × 10,000 days = 800 failures in 400 bursts; their number is Poisson, of variance 400
  // · E[size²] = 2000
  EXPECT_NEAR(static_cast<double>(history.incidents.size()), 800, 4 * std::sqrt(400 * 5.0));
  EXPECT_DOUBLE_EQ(failures_per_second(spec, 8) * 86'400, 0.04);
}

// A burst cannot take more nodes than its domain has: of mean 9.4, nearly all bursts take all four.
TEST(BurstFailures, AreCappedAtTheirDomainAndKeepTheRateOfANode) {
  const FailureSpec spec =
      failures(BurstFailures{.rate_per_node_day = 0.01, .domain_nodes = 4, .mean_size = 9.4},
               process_failure(), 10'000 * kDay);
  const auto found = static_cast<double>(history_of(spec, 4, 2, 0).incidents.size());
  EXPECT_NEAR(found, 400, 4 * std::sqrt(100 * 16.0));
}

TEST(BurstFailures, MayBeCountedForTheCluster) {
  const FailureSpec spec = failures(BurstFailures{.bursts_per_day = 1, .domain_nodes = 4, .mean_size = 1},
                                    process_failure(), 1000 * kDay);
  EXPECT_NEAR(static_cast<double>(history_of(spec, 10, 2, 0).incidents.size()), 1000, 4 * std::sqrt(1000));
}

// 2 % of the time, as a share of independent renewal cycles: onset after a mean of 98 parts, 2 parts slow.
TEST(FailSlow, SlowsItsShareOfTheTime) {
  const Duration horizon = 2'000 * kDay;
  const FailureSpec spec = failures(
      FailSlow{
          .share = 0.02, .low_factor = 1.2, .high_factor = 1.6, .shortest = minutes(1), .longest = hours(10)},
      node_failure(), horizon);
  std::vector<double> shares;
  for (int repeat = 0; repeat < 30; ++repeat) {
    double slow = 0;
    for (const Incident& incident : history_of(spec, 1, 4, repeat).incidents) {
      slow += (incident.kind == IncidentKind::kSlow ? 1 : -1) * to_seconds(horizon - incident.time);
      if (incident.kind == IncidentKind::kSlow) {
        EXPECT_GT(incident.factor, 1.2);
        EXPECT_LT(incident.factor, 1.6);
      }
    }
    shares.push_back(slow / to_seconds(horizon));
  }
  const Statistic measured = statistic_of(shares);
  EXPECT_NEAR(measured.mean, 0.02, 4 * measured.standard_error);
}

TEST(FailSlow, TellsALinkByItsTraffic) {
  const FailureSpec spec = failures(FailSlow{.rate_per_node_day = 1,
                                             .low_factor = 2,
                                             .high_factor = 2,
                                             .shortest = hours(1),
                                             .longest = hours(1),
                                             .part = SlowPart::kTraffic},
                                    node_failure(), 20 * kDay);
  const History history = history_of(spec, 1, 4, 0);
  ASSERT_GE(history.incidents.size(), 2u);
  EXPECT_EQ(history.incidents[0].kind, IncidentKind::kSlow);
  EXPECT_EQ(history.incidents[0].part, SlowPart::kTraffic);
  EXPECT_EQ(history.incidents[0].factor, 2);
  EXPECT_EQ(history.incidents[1].kind, IncidentKind::kNormal);
  EXPECT_EQ(history.incidents[1].time, history.incidents[0].time + hours(1));
}

// 0.5 a day for 2000 days; found out half a day later on average.
TEST(SilentCorruption, IsFoundOutLater) {
  const FailureSpec spec = failures(SilentCorruption{.rate_per_node_day = 0.5, .discovery = hours(12)},
                                    node_failure(), 2000 * kDay);
  const History history = history_of(spec, 1, 6, 0);
  double delay = 0;
  for (const Incident& incident : history.incidents) {
    EXPECT_EQ(incident.kind, IncidentKind::kCorruption);
    delay += to_seconds(incident.time - incident.onset) / 3600;
  }
  const auto n = static_cast<double>(history.incidents.size());
  EXPECT_NEAR(n, 1000, 4 * std::sqrt(1000));
  EXPECT_NEAR(delay / n, 12, 4 * 12 / std::sqrt(n));
}

TEST(Maintenance, IsAnnouncedThenTakesTheNodeAndGivesItBack) {
  const FailureSpec spec =
      failures(Maintenance{.period = kDay, .jitter = hours(3), .notice = minutes(30), .duration = hours(2)},
               node_failure(), 30 * kDay);
  const std::vector<Incident> incidents = history_of(spec, 4, 6, 0).incidents;
  ASSERT_GE(incidents.size(), 3u * 28);
  for (std::size_t i = 0; i + 2 < incidents.size(); i += 3) {
    const Duration middle = kDay * (static_cast<std::int64_t>(i / 3) + 1);
    EXPECT_EQ(incidents[i].kind, IncidentKind::kAnnounced);
    EXPECT_EQ(incidents[i].due, incidents[i].time + minutes(30));
    EXPECT_EQ(incidents[i + 1].kind, IncidentKind::kRemove);
    EXPECT_EQ(incidents[i + 1].time, incidents[i].due);
    EXPECT_EQ(incidents[i + 1].node, incidents[i].node);
    EXPECT_GE(incidents[i + 1].time, middle - hours(3));
    EXPECT_LE(incidents[i + 1].time, middle + hours(3));
    EXPECT_EQ(incidents[i + 2].kind, IncidentKind::kAdd);
    EXPECT_EQ(incidents[i + 2].time, incidents[i + 1].time + hours(2));
  }
}

// `detect` is of failures: an announced removal is none.
TEST(Maintenance, NeedsNoDetectionWhereItIsAnnounced) {
  FailureSpec spec = failures(Maintenance{.period = kDay, .notice = minutes(2), .duration = hours(1)},
                              {.name = "maintenance"}, 3 * kDay);
  spec.detect = seconds(10);
  for (const Incident& incident : history_of(spec, 2, 6, 0).incidents)
    EXPECT_EQ(incident.detect, Duration(0));
  spec.processes.front().law = Maintenance{.period = kDay, .duration = hours(1)};
  const History unannounced = history_of(spec, 2, 6, 0);
  ASSERT_GT(count(unannounced, IncidentKind::kRemove), 0u);
  for (const Incident& incident : unannounced.incidents)
    if (incident.kind == IncidentKind::kRemove) {
      EXPECT_EQ(incident.detect, seconds(10));
    }
}

// The job's own book of who is up refuses a removal of an absent node, an addition of a present one and a
// wrong order.
TEST(History, IsOneThatCanHappen) {
  const FailureSpec spec = everything_and_the_cluster(60 * kDay);
  for (int repeat = 0; repeat < 100; ++repeat) {
    SCOPED_TRACE(repeat);
    const History history = history_of(spec, 11, 12, repeat);
    Machines machines(history.nodes, history.all_up_at_start);
    Duration before{};
    for (const Incident& incident : history.incidents) {
      ASSERT_GE(incident.time, before);
      ASSERT_LT(incident.time, spec.horizon);
      if (incident.kind == IncidentKind::kFault || incident.kind == IncidentKind::kSlow) {
        ASSERT_TRUE(machines.up(incident.node));
      }
      ASSERT_NO_THROW(machines.apply(incident));
      before = incident.time;
    }
  }
}

// Property: the draws of a node are its own.
TEST(History, OfTheOtherNodesIsTheSameWithANodeMore) {
  const FailureSpec spec = everything(60 * kDay);
  for (int repeat = 0; repeat < 20; ++repeat) {
    const History nine = history_of(spec, 9, 12, repeat);
    History ten = history_of(spec, 10, 12, repeat);
    ASSERT_GT(ten.incidents.size(), 100u);
    std::erase_if(ten.incidents, [](const Incident& incident) { return incident.node == 9; });
    EXPECT_EQ(ten.incidents, nine.incidents);
  }
}

TEST(History, IsOnlyAddedToByALongerHorizon) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    const History month = history_of(everything_and_the_cluster(30 * kDay), 9, 12, repeat);
    History year = history_of(everything_and_the_cluster(365 * kDay), 9, 12, repeat);
    ASSERT_GT(month.incidents.size(), 20u);
    std::erase_if(year.incidents, [](const Incident& incident) { return incident.time >= 30 * kDay; });
    EXPECT_EQ(year.incidents, month.incidents);
  }
}

TEST(History, IsTheSameOnEveryThreadAndAnotherForEverySeedAndRepeat) {
  const FailureSpec spec = everything_and_the_cluster(60 * kDay);
  std::vector<History> histories(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < histories.size(); ++i)
    threads.emplace_back([&, i] { histories[i] = history_of(spec, 9, 12, static_cast<int>(i / 2)); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < histories.size(); i += 2) {
    EXPECT_EQ(histories[i], histories[i + 1]);
    EXPECT_NE(histories[i], histories[(i + 2) % histories.size()]);
  }
  EXPECT_NE(history_of(spec, 9, 13, 0), histories[0]);
}

}  // namespace
}  // namespace stagecraft
