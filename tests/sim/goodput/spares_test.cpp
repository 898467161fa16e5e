// Spares that keep the places of a job filled in 99 % of the time.
#include "sim/goodput/spares.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "sim/goodput/closed_forms.hpp"
#include "sim/goodput/expected_failures.hpp"
#include "tests/sim/goodput/failure_specs.hpp"

namespace stagecraft {
namespace {

using std::chrono::hours;

constexpr Duration kDay = hours(24);

FailureSpec losing(FailureLaw law, Duration repair) {
  FailureSpec spec = made::failures(std::move(law), {.name = "gpu"}, 100 * kDay);
  spec.repair = made::constant(repair);
  return spec;
}

// Domains of four nodes, all of which go at once.
FailureSpec losing_domains(double rate_per_node_day, Duration repair) {
  return losing(
      BurstFailures{
          .rate_per_node_day = rate_per_node_day, .domain_nodes = 4, .sizes = {{4, 1.0}}, .mean_size = 4},
      repair);
}

TEST(Spares, OfNodesThatAreLostOneByOneFollowABinomialLaw) {
  const FailureSpec spec = losing(ExponentialFailures{.rate_per_node_day = 0.02}, 3 * kDay);
  EXPECT_EQ(spares_for(spec, 64), standby_pool(64, 0.06 / 1.06, Spare::kLikeAnyNode));
  const FailureSpec ones =
      losing(BurstFailures{.rate_per_node_day = 0.02, .domain_nodes = 4, .mean_size = 1}, 3 * kDay);
  EXPECT_EQ(spares_for(ones, 64), spares_for(spec, 64));
}

// Pencil: a domain is away for 1 day in 51. Of two and a spare one, one in 5.8 % of the time and two in 0.1 %.
// Were nodes lost alone, 12 of them would have two away in 1.5 %.
TEST(Spares, OfDomainsThatAreLostAtOnceAreWholeDomains) {
  EXPECT_EQ(spares_for(losing_domains(0.02, kDay), 8), 4);
  // 1 day in 501 each, 0.4 % together: nobody needs a spare.
  EXPECT_EQ(spares_for(losing_domains(0.002, kDay), 8), 0);
}

// Away for an hour, 0.25 % of the time, though a day has a burst in 4 % of the cases.
TEST(Spares, AreForTheTimeOfRepairs) {
  EXPECT_EQ(spares_for(losing_domains(0.02, hours(1)), 8), 0);
}

TEST(Spares, AreNotForWhatTakesNoNode) {
  FailureSpec spec = losing(ExponentialFailures{.rate_per_node_day = 1}, kDay);
  spec.processes.front().causes.front().severity = FailureSeverity::kProcess;
  EXPECT_EQ(spares_for(spec, 16), 0);
  EXPECT_EQ(spares_for(losing(SilentCorruption{.rate_per_node_day = 1, .discovery = hours(1)}, kDay), 16), 0);
}

// As many failures as of the exponential law, but in clusters: of the whole cluster, or of nodes that are new. Those of
// lemons grow in number.
TEST(Spares, AreMoreWhereFailuresComeInClustersOrGrow) {
  const int alone = spares_for(losing(ExponentialFailures{.rate_per_node_day = 0.02}, kDay), 64);
  EXPECT_EQ(spares_for(losing(WeibullNodeFailures{.rate_per_node_day = 0.02}, kDay), 64), alone);
  EXPECT_GT(spares_for(losing(WeibullClusterFailures{.rate_per_node_day = 0.02, .shape = 0.5}, kDay), 64),
            alone);
  EXPECT_GT(spares_for(losing(WeibullNodeFailures{.rate_per_node_day = 0.02, .shape = 0.5}, kDay), 64),
            alone);
  EXPECT_GT(spares_for(losing(ExponentialFailures{.rate_per_node_day = 0.02, .lemon_factor = 1.5}, kDay), 64),
            alone);
}

// Nodes of which the software fails ten times a day are lemons within two days.
TEST(Spares, AreForLemonsThatOtherFailuresMake) {
  FailureSpec spec = losing(ExponentialFailures{.rate_per_node_day = 0.01, .lemon_factor = 1.2}, kDay);
  const int gpus = spares_for(spec, 64);
  spec.processes.push_back({.law = ExponentialFailures{.rate_per_node_day = 10},
                            .causes = {{.name = "software", .severity = FailureSeverity::kProcess}}});
  spec.horizon = 20 * kDay;
  EXPECT_GT(spares_for(spec, 64), gpus);
}

TEST(Spares, AreNotForNodesThatNeverComeBack) {
  FailureSpec spec = losing_domains(0.02, kDay);
  spec.repair = {.kind = RepairKind::kNone};
  EXPECT_EQ(spares_for(spec, 8), 0);
}

// Pencil: 0.02 nodes lost a day for each, away for a day.
TEST(Spares, CountEachNodeOfABurstAsAway) {
  EXPECT_NEAR(unavailable_share(losing_domains(0.02, kDay), 8), 0.02 / 1.02, 1e-12);
}

// What a trace takes away comes back when the trace says so, however long repairs are.
TEST(Spares, AreNotForNodesThatATraceTakesAndGives) {
  FailureSpec spec = losing(ExponentialFailures{.rate_per_node_day = 0.1}, kDay);
  const int alone = spares_for(spec, 6);
  TraceReplay law;
  law.trace.nodes = {"a", "b", "c", "d", "e", "f"};
  law.repeat = true;
  for (int node = 0; node < 6; ++node)
    law.trace.rows.push_back({.time = {}, .event = TraceEvent::kAdd, .node = node});
  for (int node = 0; node < 2; ++node)
    law.trace.rows.push_back({.time = hours(20 + node), .event = TraceEvent::kRemove, .node = node});
  spec.processes.push_back({.law = law, .causes = {{.name = "preemption"}}});
  EXPECT_EQ(spares_for(spec, 6), alone);
  spec.processes.erase(spec.processes.begin());
  EXPECT_EQ(unavailable_share(spec, 6), 0);
}

// Pencil: one of the four servers that were watched was away for 10 of 100 days: 2.5 % of the time of whichever
// is the node.
TEST(Spares, CountFaultsThatWereRecorded) {
  TraceReplay law;
  law.trace.form = TraceForm::kFaults;
  law.trace.nodes = {"a"};
  law.trace.causes = {"gpu"};
  law.trace.rows = {
      {.time = hours(1), .event = TraceEvent::kFaultStart, .node = 0, .cause = 0, .fault = 0},
      {.time = hours(1) + 10 * kDay, .event = TraceEvent::kFaultEnd, .node = 0, .cause = 0, .fault = 0}};
  law.servers = 4;
  EXPECT_EQ(spares_for(losing(law, {}), 1), 1);
}

}  // namespace
}  // namespace stagecraft
