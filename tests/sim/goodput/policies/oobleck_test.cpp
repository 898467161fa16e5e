// Oobleck's policy in the life of a job.
//
//   System        five nodes of one GPU; eight layers of 1 s a micro-batch and 1 GB; eight micro-batches a
//                 step; links of 1 GB/s; n0 = 2, f = 1; a reconfiguration takes 3 s beside the copy.
//   Expectations  by the equations, two nodes take 4 (nb + 1) s and three (layers 3 3 2) 3 nb + 4 s. Five
//                 nodes: [0 1] with three micro-batches, 16 s, and [2 3 4] with five, 19 s. Four: [0 1]
//                 [2 3], 20 s. Three: 28 s.
#include "sim/goodput/policies/oobleck.hpp"

#include <gtest/gtest.h>

#include <random>

#include "sim/goodput/job.hpp"
#include "sim/goodput/run_repeats.hpp"
#include "tests/sampling.hpp"
#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft {
namespace {

using namespace literals;
using made::addition;
using made::removal;
using made::seconds;

OobleckSpec spec_of(int nodes, Duration layer, Bytes state) {
  StageOption option;
  for (int index = 0; index < 8; ++index) option.layers.push_back({.forward = layer});
  return {.groups = {{.nodes = nodes, .options = {option}}},
          .min_nodes = 2,
          .max_failures = 1,
          .micro_batches = 8,
          .layer_state = std::vector<Bytes>(8, state),
          .links = {.in = 1_GBps, .out = 1_GBps}};
}

OobleckPolicySpec rules(std::int64_t between_changes = 200) {
  return {.samples = 8, .reconfigure = seconds(3), .between_changes = seconds(between_changes)};
}

Account life(std::int64_t horizon, std::vector<Incident> incidents, const OobleckPolicySpec& how = rules()) {
  SharedPlanner planner(spec_of(5, seconds(1), 1_GB));
  OobleckPolicy policy(planner, how);
  const JobSpec job{.horizon = seconds(horizon),
                    .ideal = {.duration = seconds(19), .samples = 8, .nodes = 5},
                    .timeline = true};
  return run_job(job, made::history(5, std::move(incidents)), policy);
}

TEST(OobleckPolicy, TrainsWithTheBestPipelinesWhileNothingFails) {
  const Account account = life(190, {});
  EXPECT_EQ(account.samples, 80);
  EXPECT_EQ(account[Bucket::kProductive], seconds(190));
}

// Node 4 goes at 100, in the sixth step. [2 3] take the smaller template: 2 gets layer 3 from 0; 3 gets 6 and
// 7 from 1: 2 s. Steps of 20 s from 110 on, the fifth unfinished at 200.
TEST(OobleckPolicy, LosesTheStepInFlightAndNoMore) {
  const Account account = life(200, {removal(100, 4, 5)});
  EXPECT_EQ(account.samples, 9 * 8);
  EXPECT_EQ(account[Bucket::kDetect], seconds(5));
  EXPECT_EQ(account[Bucket::kReconfigure], seconds(3));
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(2));
  EXPECT_EQ(account[Bucket::kLostWork], seconds(5 + 10));
  EXPECT_EQ(account[Bucket::kProductive], seconds(9 * 19));
  EXPECT_EQ(account[Bucket::kDegraded], seconds(4));
  EXPECT_EQ(account.undone_steps, 0);
}

// The processes of node 4 die: it stays, and gets its layers 6 and 7 from node 1.
TEST(OobleckPolicy, GivesANodeItsStateBackAfterAProcessFault) {
  const Account account = life(200, {made::fault(100, 4, 5)});
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(2));
  EXPECT_EQ(account.samples, (5 + 4) * 8);  // steps of 19 s from 110 on
  EXPECT_EQ(account[Bucket::kDegraded], seconds(0));
}

// Node 4 is back at 150, at a step end. Composed anew it takes 6 and 7 from 1, and node 3 layer 3 from 0: 3 +
// 2 s for steps of 19 s in place of 20: a gain of 1/20, which pays within more than 100 s.
TEST(OobleckPolicy, ComposesAnewWhereThatPays) {
  const std::vector<Incident> incidents{removal(100, 4, 5), addition(150, 4)};
  const Account soon = life(200, incidents, rules(99));
  EXPECT_EQ(soon.samples, (5 + 4) * 8);
  EXPECT_EQ(soon[Bucket::kReconfigure], seconds(3));
  const Account late = life(200, incidents, rules(101));
  EXPECT_EQ(late[Bucket::kReconfigure], seconds(3 + 3));
  EXPECT_EQ(late[Bucket::kStateTransfer], seconds(2 + 2));
  EXPECT_EQ(late.samples, (5 + 2 + 2) * 8);  // 174 and 193
  EXPECT_EQ(late[Bucket::kLostWork], seconds(5 + 7));
}

// Four train, node 4 stands by; node 3 goes at 170 and node 4 takes its place: layers 4 to 7 from node 1.
TEST(OobleckPolicy, PutsANodeThatStandsByInThePlaceOfALostOne) {
  OobleckPolicySpec never = rules();
  never.recompose = false;
  const Account account = life(260, {removal(100, 4, 5), addition(150, 4), removal(170, 3, 5)}, never);
  EXPECT_EQ(account[Bucket::kStateTransfer], seconds(2 + 4));
  EXPECT_EQ(account.samples,
            (5 + 2 + 3) * 8);  // 110..150 and, the step that ends with the loss lost, 182..242
}

// Nodes 1 and 4 held layers 6 and 7: without a checkpoint the job begins again, on three nodes.
TEST(OobleckPolicy, GoesBackToACheckpointWhenALayerHasNoOwner) {
  const Account account = life(200, {removal(100, 1, 5), removal(100, 4, 5)});
  EXPECT_EQ(account.undone_steps, 5);
  EXPECT_EQ(account.samples, 3 * 8);  // 108, 136, 164, 192
  EXPECT_EQ(account[Bucket::kLostWork], seconds(100 + 8));
}

// Layers 6 and 7 are on their way from node 1 to node 3 from 108 to 110. Lost at 109 they are gone; lost at
// 111 node 3 has them.
TEST(OobleckPolicy, HasMovedNothingWhenAStallIsCut) {
  EXPECT_EQ(life(200, {removal(100, 4, 5), removal(109, 1, 5)}).undone_steps, 5);
  EXPECT_EQ(life(200, {removal(100, 4, 5), removal(111, 1, 5)}).undone_steps, 0);
}

// One node is too few; with another the job goes on from its start.
TEST(OobleckPolicy, StopsWithTooFewNodes) {
  const Account account = life(
      300, {removal(19, 1, 1), removal(19, 2, 1), removal(19, 3, 1), removal(19, 4, 1), addition(100, 2)});
  EXPECT_EQ(account[Bucket::kIdle], seconds(80));
  EXPECT_EQ(account.samples, 5 * 8);  // steps of 36 s from 103 on
}

// Node 2 is half as fast from 38 on: stages of 6, 3 and 2 s, and a step takes as long as its pipeline does.
TEST(OobleckPolicy, SlowsDownWithTheStagesOfASlowNode) {
  Incident slow = made::fault(38, 2);
  slow.kind = IncidentKind::kSlow;
  slow.factor = 2;
  // Stages 6, 3, 2, five micro-batches: T1 = 11, T2 = (5 - 3 + 0 - 1) 6, T3 = 11: 28, but five passes of 6
  // are 30.
  const Account account = life(38 + 90, {slow});
  EXPECT_EQ(account.samples, (2 + 3) * 8);
  EXPECT_EQ(account[Bucket::kDegraded], seconds(3 * (30 - 19)));
}

// Node 4 is announced to go at 100. The step that ends at 76 is the first within two steps of that: five
// seconds later [0 1] [2 3] train, and when it goes nothing is lost.
TEST(OobleckPolicy, ChangesBeforeAnAnnouncedRemoval) {
  Incident announced = removal(10, 4);
  announced.kind = IncidentKind::kAnnounced;
  announced.due = seconds(100);
  const Account account = life(181, {announced, removal(100, 4, 5)});
  EXPECT_EQ(account[Bucket::kLostWork], Duration{});
  EXPECT_EQ(account.failures, 0);
  EXPECT_EQ(account.samples, (4 + 5) * 8);
}

// Four to seven nodes, one change at a time, free changes and steps that are short against the gaps: what is
// trained is the sum over time of X(n(t)), but for a step or two at each change.
TEST(OobleckPolicy, TrainsTheTimeAverageOfXWhenChangesAreFree) {
  const OobleckSpec spec = spec_of(7, std::chrono::milliseconds(1), 0_B);
  SharedPlanner shared(spec);
  OobleckPolicy policy(shared, {.samples = 8});
  OobleckPlanner own(spec);
  const auto step_with = [&](int up) {
    std::vector<int> nodes(static_cast<std::size_t>(up));
    for (int node = 0; node < up; ++node) nodes[static_cast<std::size_t>(node)] = node;
    return own.step(own.compose(nodes)).duration;
  };
  std::mt19937 draw(5);
  std::vector<Incident> incidents;
  std::vector<bool> up(7, true);
  int count = 7;
  std::int64_t now = 0;
  double expected = 0;
  for (int change = 0; change < 300; ++change) {
    const std::int64_t gap = 50 + static_cast<std::int64_t>(draw() % 100);
    expected += 8 * static_cast<double>(gap) / to_seconds(step_with(count));
    now += gap;
    const bool remove = count == 7 || (count > 4 && draw() % 2 == 0);
    std::size_t node = draw() % 7;
    while (up[node] != remove) node = (node + 1) % 7;
    up[node] = !remove;
    count += remove ? -1 : 1;
    incidents.push_back(remove ? removal(now, static_cast<int>(node))
                               : addition(now, static_cast<int>(node)));
  }
  const JobSpec job{.horizon = seconds(now),
                    .ideal = {.duration = own.least_step(), .samples = 8, .nodes = 7}};
  const Account account = run_job(job, made::history(7, incidents), policy);
  EXPECT_EQ(account.undone_steps, 0);
  EXPECT_NEAR(static_cast<double>(account.samples), expected, 8 * 300);
  EXPECT_LT(8 * 300, expected / 1000);  // the bound is tight
}

std::vector<Incident> random_incidents(std::mt19937& draw, int nodes) {
  std::vector<Incident> out;
  std::vector<bool> up(static_cast<std::size_t>(nodes), true);
  std::int64_t now = 0;
  for (int i = 0; i < 12; ++i) {
    now += 1 + static_cast<std::int64_t>(draw() % 60);
    const int node = static_cast<int>(draw() % static_cast<unsigned>(nodes));
    auto is_up = up[static_cast<std::size_t>(node)];
    Incident incident = removal(now, node, static_cast<std::int64_t>(draw() % 6));
    if (!is_up) {
      incident = addition(now, node);
      incident.due += seconds(static_cast<std::int64_t>(draw() % 30));
      is_up = true;
    } else {
      switch (draw() % 6) {
        case 0:
          incident.kind = IncidentKind::kFault;
          break;
        case 1:
          incident.kind = IncidentKind::kCorruption;
          incident.onset = incident.time - seconds(1);
          break;
        case 2:
          incident.kind = IncidentKind::kSlow;
          incident.factor = 1.5;
          break;
        case 3:
          incident.kind = IncidentKind::kNormal;
          break;
        case 4:
          incident.kind = IncidentKind::kAnnounced;
          incident.due = incident.time + seconds(50);
          break;
        default:
          is_up = false;
          break;
      }
    }
    up[static_cast<std::size_t>(node)] = is_up;
    out.push_back(incident);
  }
  return out;
}

// Property: 10,000 lives; the job itself checks that buckets fill the horizon and that plans use nodes that
// are up.
TEST(OobleckPolicy, SurvivesWhateverHappens) {
  SharedPlanner planner(spec_of(6, seconds(1), 1_GB));
  const Duration least = planner.ask([](OobleckPlanner& of) { return of.least_step(); });
  std::mt19937 draw(2);
  for (int trial = 0; trial < sampled_count(10'000); ++trial) {
    SCOPED_TRACE(testing::Message() << "trial " << trial);
    OobleckPolicySpec how = rules(static_cast<std::int64_t>(draw() % 500));
    how.recompose = draw() % 3 != 0;
    OobleckPolicy policy(planner, how);
    JobSpec job{.horizon = seconds(600), .ideal = {.duration = least, .samples = 8, .nodes = 6}};
    if (draw() % 2 == 0)
      job.checkpointing = Checkpointing{.interval = seconds(50), .block = seconds(2), .load = seconds(4)};
    const Account account = run_job(job, made::history(6, random_incidents(draw, 6)), policy);
    ASSERT_EQ(account.total(), seconds(600));
    ASSERT_EQ(account.samples, account.steps * 8);
  }
}

TEST(OobleckPolicy, GivesTheSameBitsOnAnyNumberOfThreads) {
  const auto run = [](int threads) {
    SharedPlanner planner(spec_of(6, seconds(1), 1_GB));
    const Duration least = planner.ask([](OobleckPlanner& of) { return of.least_step(); });
    const JobSpec job{.horizon = seconds(900), .ideal = {.duration = least, .samples = 8, .nodes = 6}};
    return run_repeats(
        job,
        [](int repeat) {
          std::mt19937 draw(static_cast<unsigned>(repeat));
          return made::history(6, random_incidents(draw, 6));
        },
        [&] { return std::make_unique<OobleckPolicy>(planner, rules()); },
        {.repeats = 64, .threads = threads});
  };
  EXPECT_EQ(run(1), run(8));
}

}  // namespace
}  // namespace stagecraft
