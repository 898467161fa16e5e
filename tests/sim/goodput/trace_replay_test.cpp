// Traces and the spot market as incidents, by hand.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/goodput/expected_failures.hpp"
#include "sim/goodput/history.hpp"
#include "sim/goodput/processes/spot.hpp"
#include "sim/goodput/trace_file.hpp"
#include "tests/sim/goodput/failure_specs.hpp"

namespace stagecraft {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr auto kAdd = IncidentKind::kAdd;
constexpr auto kRemove = IncidentKind::kRemove;

struct Row {
  Duration time;
  IncidentKind kind;
  int node;
  friend bool operator==(const Row&, const Row&) = default;
  friend void PrintTo(const Row& row, std::ostream* out) {
    *out << to_seconds(row.time) << (row.kind == kAdd ? " add " : " remove ") << row.node;
  }
};

std::vector<Row> rows_of(const History& history) {
  std::vector<Row> rows;
  for (const Incident& incident : history.incidents)
    rows.push_back({incident.time, incident.kind, incident.node});
  return rows;
}

TraceReplay replay_of(const std::string& text) {
  Diagnostics diagnostics;
  TraceReplay replay;
  replay.trace = parse_trace(text, "t.csv", diagnostics).value_or(Trace{});
  for (const Diagnostic& diagnostic : diagnostics.items()) ADD_FAILURE() << render(diagnostic);
  return replay;
}

FailureSpec spec_of(TraceReplay replay, Duration horizon = hours(1)) {
  return made::failures(std::move(replay), {.name = "preemption", .detect = seconds(1)}, horizon);
}

const char* const kEvents = "time_s,event,node\n0,add,a\n0,add,b\n10,remove,a\n20,add,a\n30,remove,b\n";

TEST(EventTrace, IsPlayedRowByRow) {
  TraceReplay replay = replay_of(kEvents);
  replay.creation = seconds(45);
  const History history = history_of(spec_of(replay), 2, 1, 0);
  EXPECT_FALSE(history.all_up_at_start);
  EXPECT_THAT(rows_of(history),
              ElementsAre(Row{seconds(0), kAdd, 0}, Row{seconds(0), kAdd, 1}, Row{seconds(10), kRemove, 0},
                          Row{seconds(20), kAdd, 0}, Row{seconds(30), kRemove, 1}));
  EXPECT_EQ(history.incidents[3].id, 3) << "the row of the trace";
  EXPECT_EQ(history.incidents[3].due, seconds(65)) << "creation takes its time";
  EXPECT_EQ(history.incidents[2].detect, seconds(1));
}

// At twice the length, from 15 s on: b is there already, a comes at (20 - 15)·2 = 10 s.
TEST(EventTrace, IsScaledFromItsOffset) {
  TraceReplay replay = replay_of(kEvents);
  replay.creation = seconds(45);
  replay.scale = 2;
  replay.offset = seconds(15);
  const History history = history_of(spec_of(replay), 2, 1, 0);
  EXPECT_THAT(rows_of(history),
              ElementsAre(Row{seconds(0), kAdd, 1}, Row{seconds(10), kAdd, 0}, Row{seconds(30), kRemove, 1}));
  EXPECT_EQ(history.incidents[0].due, seconds(15)) << "it was added 30 s before";
}

// A round lasts 30 s and the next one begins a nanosecond later: b is added again, a is there.
TEST(EventTrace, IsRepeatedWithWhoIsThere) {
  TraceReplay replay = replay_of(kEvents);
  replay.repeat = true;
  const Duration again = seconds(30) + Duration(1);
  EXPECT_THAT(rows_of(history_of(spec_of(replay, seconds(45)), 2, 1, 0)),
              ElementsAre(Row{seconds(0), kAdd, 0}, Row{seconds(0), kAdd, 1}, Row{seconds(10), kRemove, 0},
                          Row{seconds(20), kAdd, 0}, Row{seconds(30), kRemove, 1}, Row{again, kAdd, 1},
                          Row{again + seconds(10), kRemove, 0}));
}

// A removal and an addition at 5 s: the addition comes first, so b is there when a goes.
TEST(EventTrace, AddsBeforeItRemovesAtEqualTimes) {
  const TraceReplay replay = replay_of("time_s,event,node\n0,add,a\n5,remove,a\n5,add,b\n");
  EXPECT_THAT(rows_of(history_of(spec_of(replay), 2, 1, 0)),
              ElementsAre(Row{seconds(0), kAdd, 0}, Row{seconds(5), kAdd, 1}, Row{seconds(5), kRemove, 0}));
}

// Three names, two places: c finds none at 1 s and is skipped with its removal; d takes the place that a has
// left.
// A history tells additions first, so that whoever comes back at once is a nanosecond late.
TEST(EventTrace, BringsBackANodeThatIsAddedTheMomentItIsRemoved) {
  const TraceReplay replay =
      replay_of("time_s,event,node\n0,add,a\n0,add,b\n10,remove,a\n10,add,a\n20,remove,b\n");
  EXPECT_THAT(rows_of(history_of(spec_of(replay), 2, 1, 0)),
              ElementsAre(Row{seconds(0), kAdd, 0}, Row{seconds(0), kAdd, 1}, Row{seconds(10), kRemove, 0},
                          Row{seconds(10) + Duration(1), kAdd, 0}, Row{seconds(20), kRemove, 1}));
}

// On one node b takes the place that a leaves, and finds none where the rows are the other way round.
TEST(EventTrace, TakesEqualTimesInTheOrderOfTheRows) {
  const auto rows = [](const char* at_ten) {
    const TraceReplay replay = replay_of("time_s,event,node\n0,add,a\n" + std::string(at_ten));
    return rows_of(history_of(spec_of(replay), 1, 1, 0));
  };
  EXPECT_THAT(rows("10,remove,a\n10,add,b\n"),
              ElementsAre(Row{seconds(0), kAdd, 0}, Row{seconds(10), kRemove, 0},
                          Row{seconds(10) + Duration(1), kAdd, 0}));
  EXPECT_THAT(rows("10,add,b\n10,remove,a\n"),
              ElementsAre(Row{seconds(0), kAdd, 0}, Row{seconds(10), kRemove, 0}));
}

TEST(EventTrace, SkipsAdditionsWithoutAPlace) {
  const TraceReplay replay = replay_of(
      "time_s,event,node\n0,add,a\n0,add,b\n1,add,c\n2,remove,a\n3,remove,c\n4,add,d\n5,remove,d\n");
  EXPECT_THAT(rows_of(history_of(spec_of(replay), 2, 1, 0)),
              ElementsAre(Row{seconds(0), kAdd, 0}, Row{seconds(0), kAdd, 1}, Row{seconds(2), kRemove, 0},
                          Row{seconds(4), kAdd, 0}, Row{seconds(5), kRemove, 0}));
}

TEST(EventTrace, CountsItsRemovalTimesAsFailures) {
  EXPECT_DOUBLE_EQ(failures_per_second(spec_of(replay_of(kEvents), seconds(100)), 2), 0.02);
  EXPECT_DOUBLE_EQ(failures_per_second(spec_of(replay_of(kEvents), seconds(100)), 1), 0.01)
      << "b finds no place";
}

// A job that has fewer nodes than there ever are loses none.
TEST(CountTrace, CountsTheFallsThatReachTheJobAsFailures) {
  const TraceReplay replay = replay_of("time_s,available\n0,8\n10,6\n20,8\n30,3\n40,2\n");
  EXPECT_DOUBLE_EQ(failures_per_second(spec_of(replay, seconds(100)), 8), 0.03);
  EXPECT_DOUBLE_EQ(failures_per_second(spec_of(replay, seconds(100)), 4), 0.02);
  EXPECT_DOUBLE_EQ(failures_per_second(spec_of(replay, seconds(100)), 2), 0);
}

// What breaks by itself and is away when its repair ends stays away; a new instance is whole.
TEST(EventTrace, ReplacesWhatWasBroken) {
  FailureSpec spec =
      spec_of(replay_of("time_s,event,node\n0,add,a\n100,remove,a\n200,add,a\n"), seconds(300));
  spec.processes.push_back(
      {.law = ExponentialFailures{.rate_per_node_day = 86'400}, .causes = {{.name = "gpu"}}});
  spec.repair = {.kind = RepairKind::kConstant, .time = hours(1)};
  const History history = history_of(spec, 1, 1, 0);
  ASSERT_EQ(history.incidents.size(), 4u);
  EXPECT_EQ(history.incidents[1].kind, kRemove);
  EXPECT_LT(history.incidents[1].time, seconds(100)) << "once a second: it fails soon";
  EXPECT_EQ(history.incidents[2].time, seconds(200));
  EXPECT_EQ(history.incidents[2].kind, kAdd);
}

TEST(CountTrace, AddsAndRemovesAsManyAsItSays) {
  const TraceReplay replay = replay_of("time_s,available\n0,4\n10,4\n10,2\n20,3\n30,9\n40,0\n");
  const History history = history_of(spec_of(replay), 4, 1, 0);
  std::set<int> there;
  std::vector<std::pair<Duration, std::size_t>> counts;
  for (const Incident& incident : history.incidents) {
    EXPECT_TRUE(incident.kind == kAdd ? there.insert(incident.node).second : there.erase(incident.node) == 1);
    if (!counts.empty() && counts.back().first == incident.time) counts.pop_back();
    counts.emplace_back(incident.time, there.size());
  }
  EXPECT_THAT(counts, ElementsAre(Pair(Duration(seconds(0)), 4), Pair(Duration(seconds(10)), 2),
                                  Pair(Duration(seconds(20)), 3), Pair(Duration(seconds(30)), 4),
                                  Pair(Duration(seconds(40)), 0)));
}

// From 50 s on: two nodes came 50 s before, and of two that came 20 s before one has gone. Their creation takes 45 s.
TEST(CountTrace, BeginsWithNodesThatWereAddedBefore) {
  TraceReplay replay = replay_of("time_s,available\n0,2\n30,4\n40,3\n60,4\n");
  replay.creation = seconds(45);
  replay.offset = seconds(50);
  std::vector<Duration> due;
  for (const Incident& incident : history_of(spec_of(replay), 4, 1, 0).incidents) due.push_back(incident.due);
  EXPECT_THAT(due, ElementsAre(seconds(0), seconds(0), seconds(25), seconds(10 + 45)));
}

// Half of four nodes goes: each of them in half of the repeats.
TEST(CountTrace, DrawsWhoGoes) {
  const FailureSpec spec = spec_of(replay_of("time_s,available\n0,4\n10,2\n"));
  std::vector<double> gone(4);
  const int repeats = 1000;
  for (int repeat = 0; repeat < repeats; ++repeat)
    for (const Incident& incident : history_of(spec, 4, 1, repeat).incidents)
      if (incident.kind == kRemove) ++gone.at(static_cast<std::size_t>(incident.node));
  for (const double times : gone) EXPECT_NEAR(times / repeats, 0.5, 4 * std::sqrt(0.25 / repeats));
}

// GPUs of nodes of 8, rounded down.
TEST(CountTrace, CountsInOtherUnits) {
  TraceReplay replay = replay_of("time_s,available\n0,31\n10,16\n");
  replay.count_scale = 0.125;
  EXPECT_THAT(rows_of(history_of(spec_of(replay), 8, 1, 0)).size(), 4u);
}

// Of a year scaled a million times nothing but its first row comes before the end of any horizon.
TEST(CountTrace, LeavesOutRowsBeyondWhatIsCounted) {
  TraceReplay replay = replay_of("time_s,available\n0,4\n31536000,0\n");
  replay.scale = 1e6;
  for (const Incident& incident : history_of(spec_of(replay), 4, 1, 0).incidents)
    EXPECT_NE(incident.kind, kRemove);
  replay.count_scale = 1e6;
  EXPECT_EQ(scaled_count(replay, 2'000'000'000), std::numeric_limits<int>::max());
}

const std::string kFaults = "time_s,event,node,level,class,description\n";

// Two faults of one server overlap: it is down from the start of the first to the end of the last.
TEST(FaultTrace, KeepsAServerDownWhileAnyFaultIsOpen) {
  const TraceReplay replay =
      replay_of(kFaults +
                "10,fault_start,s,h,GPU,\n15,fault_start,s,h,NIC,\n"
                "20,fault_end,s,h,GPU,\n30,fault_end,s,h,NIC,\n40,fault_start,t,h,Test,\n");
  const History history = history_of(spec_of(replay), 3, 1, 0);
  EXPECT_TRUE(history.all_up_at_start);
  EXPECT_THAT(rows_of(history), ElementsAre(Row{seconds(10), kRemove, 0}, Row{seconds(30), kAdd, 0},
                                            Row{seconds(40), kRemove, 1}));
}

TEST(FaultTrace, NamesCausesAndLeavesClassesOut) {
  TraceReplay replay = replay_of(kFaults +
                                 "10,fault_start,s,h,GPU,\n20,fault_end,s,h,GPU,\n30,fault_start,t,h,Test,\n"
                                 "35,fault_end,t,h,Test,\n40,fault_start,t,h,NIC,\n");
  replay.leave_out = {"Test"};
  FailureSpec spec = spec_of(replay);
  spec.processes[0].causes = {{.name = "NIC", .detect = seconds(30)}, {.name = "GPU", .detect = seconds(10)}};
  const History history = history_of(spec, 2, 1, 0);
  ASSERT_EQ(history.incidents.size(), 3u);
  EXPECT_EQ(history.causes.at(static_cast<std::size_t>(history.incidents[0].cause)), "GPU");
  EXPECT_EQ(history.incidents[0].detect, seconds(10));
  EXPECT_EQ(history.causes.at(static_cast<std::size_t>(history.incidents[2].cause)), "NIC");
}

// From 15 s on the first fault is open at the start.
TEST(FaultTrace, BeginsWithTheFaultsThatAreOpenAtItsOffset) {
  TraceReplay replay = replay_of(kFaults +
                                 "1,fault_start,t,h,GPU,\n2,fault_end,t,h,GPU,\n10,fault_start,s,h,GPU,\n"
                                 "20,fault_end,s,h,GPU,\n");
  replay.offset = seconds(15);
  EXPECT_THAT(rows_of(history_of(spec_of(replay), 2, 1, 0)),
              ElementsAre(Row{seconds(0), kRemove, 1}, Row{seconds(5), kAdd, 1}));
  EXPECT_EQ(failures_per_second(spec_of(replay, seconds(100)), 2), 0) << "the node is away, it does not fail";
}

// The fault of `t` ends in the very moment in which the run begins: nobody goes down.
TEST(FaultTrace, BeginsWithoutTheFaultsThatEndAtItsOffset) {
  TraceReplay replay =
      replay_of(kFaults + "1,fault_start,t,h,GPU,\n15,fault_end,t,h,GPU,\n20,fault_start,s,h,GPU,\n");
  replay.offset = seconds(15);
  EXPECT_THAT(rows_of(history_of(spec_of(replay), 2, 1, 0)), ElementsAre(Row{seconds(5), kRemove, 1}));
}

TEST(FaultTrace, OfNoTimeAtAllLastsANanosecond) {
  const TraceReplay replay = replay_of(kFaults + "10,fault_start,s,h,GPU,\n10,fault_end,s,h,GPU,\n");
  EXPECT_THAT(rows_of(history_of(spec_of(replay), 1, 1, 0)),
              ElementsAre(Row{seconds(10), kRemove, 0}, Row{seconds(10) + Duration(1), kAdd, 0}));
}

// One of ten servers fails: a cluster of one node is it in a tenth of the repeats, a cluster of ten always
// has it.
TEST(FaultTrace, DrawsTheServersThatTheNodesAre) {
  TraceReplay replay = replay_of(kFaults + "10,fault_start,s,h,GPU,\n20,fault_end,s,h,GPU,\n");
  replay.servers = 10;
  const FailureSpec spec = spec_of(replay);
  const int repeats = 1000;
  double hit = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    hit += history_of(spec, 1, 1, repeat).incidents.empty() ? 0 : 1;
    EXPECT_EQ(history_of(spec, 10, 1, repeat).incidents.size(), 2u);
  }
  EXPECT_NEAR(hit / repeats, 0.1, 4 * std::sqrt(0.1 * 0.9 / repeats));
}

HourlySpot market(double add, double remove) {
  HourlySpot law;
  law.add.fill(add);
  law.remove.fill(remove);
  return law;
}

TEST(SpotMarket, FillsAllPlacesAtOnceWhereAdditionsAreCertain) {
  const auto rows = spot_rows(market(1, 0), {.capacity = 3, .horizon = hours(48)});
  ASSERT_EQ(rows.size(), 3u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(rows[static_cast<std::size_t>(i)],
              (TraceRow{.time = seconds(0), .event = TraceEvent::kAdd, .node = i}));
}

TEST(SpotMarket, StaysEmptyWhereNothingIsAdded) {
  EXPECT_THAT(spot_rows(market(0, 1), {.capacity = 3, .horizon = hours(48)}), IsEmpty());
}

// Tables that add at hour 0 only and remove at hour 2 only, from hour 23 on: filled in the second hour,
// emptied in the fourth.
TEST(SpotMarket, CountsHoursFromItsStartHour) {
  HourlySpot law;
  law.add[0] = 1;
  law.remove[2] = 1;
  law.start_hour = 23;
  const auto rows = spot_rows(law, {.capacity = 4, .horizon = hours(24)});
  ASSERT_EQ(rows.size(), 8u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].event, i < 4 ? TraceEvent::kAdd : TraceEvent::kRemove);
    EXPECT_EQ(rows[i].time / hours(1), i < 4 ? 1 : 3);
    EXPECT_EQ(rows[i].time % seconds(1), Duration(0)) << "whole seconds";
  }
}

// Nobody leaves before it has come, nobody leaves twice, and there are never more than K.
TEST(SpotMarket, KeepsItsBooks) {
  for (std::uint32_t repeat = 0; repeat < 50; ++repeat) {
    std::set<int> there;
    Duration before{};
    int added = 0;
    for (const TraceRow& row : spot_rows(
             market(0.6, 0.5), {.capacity = 7, .horizon = hours(72), .key = {.seed = 3, .repeat = repeat}})) {
      EXPECT_GE(row.time, before);
      before = row.time;
      if (row.event == TraceEvent::kAdd) {
        EXPECT_EQ(row.node, added++);
        there.insert(row.node);
      } else {
        EXPECT_EQ(there.erase(row.node), 1u);
      }
      EXPECT_LE(there.size(), 7u);
    }
  }
}

// With p added and nothing removed a place is still free after n hours, and at time 0, with (1 − p)^(n + 1).
TEST(SpotMarket, FillsPlacesAtTheirHourlyChance) {
  const int capacity = 1000;
  const auto rows = spot_rows(market(0.3, 0), {.capacity = capacity, .horizon = hours(2)});
  const double filled = 1 - std::pow(0.7, 3);
  EXPECT_NEAR(static_cast<double>(rows.size()) / capacity, filled,
              4 * std::sqrt(filled * (1 - filled) / capacity));
}

// A node that is there loses a tenth of its chances to stay every hour.
TEST(SpotMarket, RemovesNodesAtTheirHourlyChance) {
  const int capacity = 1000;
  HourlySpot law = market(0, 0.1);
  law.add[0] = 1;
  const auto rows = spot_rows(law, {.capacity = capacity, .horizon = hours(10)});
  // Additions of the first hour fill up whom that hour has removed, so count from what is there at its end.
  int after_first = 0, left = 0;
  for (const TraceRow& row : rows) {
    const int change = row.event == TraceEvent::kAdd ? 1 : -1;
    left += change;
    if (row.time < hours(1)) after_first += change;
  }
  const double stays = std::pow(0.9, 9);
  EXPECT_NEAR(static_cast<double>(left) / after_first, stays,
              4 * std::sqrt(stays * (1 - stays) / after_first));
}

// While they are there, nodes with a chance of 0.5 to leave in an hour leave 0.5 times in 0.75 hours.
TEST(SpotMarket, LosesNodesAsOftenAsExpectedWhileTheyAreThere) {
  HourlySpot law = market(0, 0.5);
  law.add[0] = 1;
  const auto rows = spot_rows(law, {.capacity = 20'000, .horizon = hours(4)});
  int there = 0, lost = 0;
  double present = 0;  // hours of all nodes together, without the first, in which nodes come as well
  for (const TraceRow& row : rows) {
    const bool comes = row.event == TraceEvent::kAdd;
    if (row.time < hours(1)) {
      there += comes ? 1 : -1;
      continue;
    }
    ++lost;
    present += to_seconds(row.time - hours(1)) / 3600;
  }
  present += (there - lost) * 3;
  FailureSpec spec;
  spec.processes = {{.law = market(0, 0.5), .causes = {{.name = "preemption"}}}};
  spec.horizon = hours(24);
  const double expected = failures_per_second(spec, 1) * 3600;
  EXPECT_DOUBLE_EQ(expected, 0.5 / 0.75);
  EXPECT_NEAR(lost / present, expected, 4 * std::sqrt(lost) / present);
}

TEST(SpotMarket, DrawsItsAdditionsOncePerRunIfTold) {
  HourlySpot law = market(0, 0);
  law.random_additions = true;
  std::set<std::size_t> sizes;
  for (std::uint32_t repeat = 0; repeat < 5; ++repeat)
    sizes.insert(spot_rows(law, {.capacity = 1000, .horizon = seconds(1), .key = {.repeat = repeat}}).size());
  EXPECT_GT(sizes.size(), 1u);
}

TEST(SpotMarket, IsAHistoryOfTheCluster) {
  FailureSpec spec;
  spec.processes = {{.law = market(0.6, 0.5), .causes = {{.name = "preemption"}}}};
  spec.horizon = hours(24);
  const History history = history_of(spec, 7, 3, 2);
  const auto rows =
      spot_rows(market(0.6, 0.5), {.capacity = 7, .horizon = hours(24), .key = {.seed = 3, .repeat = 2}});
  ASSERT_EQ(history.incidents.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(history.incidents[i].time, rows[i].time);
    EXPECT_EQ(history.incidents[i].kind == kAdd, rows[i].event == TraceEvent::kAdd);
    EXPECT_LT(history.incidents[i].node, 7);
  }
}

}  // namespace
}  // namespace stagecraft
