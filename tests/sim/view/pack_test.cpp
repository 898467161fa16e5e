// A packed timeline is unpacked by the words of sim/view/pack.hpp and compared with the timeline.
#include "sim/view/pack.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/workload_a.hpp"
#include "sim/report/report.hpp"
#include "sim/view/idle.hpp"
#include "sim/view/lanes.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

class Numbers {
 public:
  Numbers(const std::string& bytes, std::size_t at) : bytes_(bytes), at_(at) {}
  bool done() const { return at_ == bytes_.size(); }
  std::uint64_t next() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.at(at_++));
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::int64_t next_signed() {
    const std::uint64_t value = next();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }

 private:
  const std::string& bytes_;
  std::size_t at_;
};

// Start, end, packed label, micro-batch.
using Unpacked = std::tuple<Duration, Duration, std::size_t, std::int64_t>;

std::vector<Unpacked> unpack(const PackedTimeline& packed, const PackedLane& lane) {
  Numbers numbers(packed.slices, lane.offset);
  std::vector<Unpacked> slices;
  std::map<std::size_t, std::int64_t> last;
  Duration at{};
  for (std::size_t i = 0; i < lane.slices; ++i) {
    const std::uint64_t head = numbers.next();
    const std::size_t label = head / 8;
    if (head & 4) at += Duration(static_cast<std::int64_t>(numbers.next()));
    const Duration start = at;
    at += head & 2 ? Duration(static_cast<std::int64_t>(numbers.next())) : packed.labels[label].time;
    std::int64_t micro_batch = -1;
    if (packed.labels[label].micro_batches)
      micro_batch = last[label] =
          last.try_emplace(label, -1).first->second + (head & 1 ? numbers.next_signed() : 1);
    slices.emplace_back(start, at, label, micro_batch);
  }
  return slices;
}

struct Ran {
  Program program;
  Timeline timeline;
};

Ran ran(Program program) {
  Timeline timeline = run(program);
  return {std::move(program), std::move(timeline)};
}

constexpr std::size_t kAll = std::size_t{1} << 30;

// What lanes have and takes time, as unpacked slices.
std::vector<Unpacked> tasks_of(const Ran& ran, const Lane& lane, const PackedTimeline& packed) {
  std::vector<Unpacked> tasks;
  for (const TaskId task : lane.tasks) {
    if (ran.timeline.end[task] == ran.timeline.start[task]) continue;
    std::size_t label = 0;
    while (packed.labels[label].label != ran.program.label[task]) ++label;
    tasks.emplace_back(ran.timeline.start[task], ran.timeline.end[task], label,
                       ran.program.micro_batch[task]);
  }
  return tasks;
}

TEST(PackedTimelines, UnpackToTheTasksThatTakeTime) {
  const Ran ran = stagecraft::ran(build({.stages = 4, .micro_batches = 8, .replicas = 2}));
  const PackedTimeline packed = pack_timeline(ran.program, ran.timeline, kAll);
  auto lane = packed.lanes.begin();
  for (const Lane& expected : lanes_of(ran.program, ran.timeline)) {
    const std::vector<Unpacked> tasks = tasks_of(ran, expected, packed);
    if (tasks.empty()) continue;
    ASSERT_NE(lane, packed.lanes.end());
    std::vector<Unpacked> slices = unpack(packed, *lane);
    std::erase_if(slices,
                  [&](const Unpacked& s) { return packed.labels[std::get<2>(s)].kind != SliceKind::kTask; });
    EXPECT_EQ(slices, tasks) << expected.rank << ' ' << expected.name;
    ++lane;
  }
  EXPECT_EQ(lane, packed.lanes.end());
}

TEST(PackedTimelines, LeaveNoTimeOfAComputeLaneWithoutASlice) {
  const Ran ran = stagecraft::ran(build({.stages = 4, .micro_batches = 8}));
  const PackedTimeline packed = pack_timeline(ran.program, ran.timeline, kAll);
  int lanes = 0;
  for (const PackedLane& lane : packed.lanes) {
    if (!lane.compute) continue;
    ++lanes;
    Duration at{};
    for (const auto& [start, end, label, micro_batch] : unpack(packed, lane)) {
      EXPECT_EQ(start, at);
      at = end;
    }
    EXPECT_EQ(at, ran.timeline.makespan);
  }
  EXPECT_EQ(lanes, 4);
}

TEST(PackedTimelines, HaveTheCriticalPath) {
  const Ran ran = stagecraft::ran(build({.stages = 4, .micro_batches = 8}));
  const PackedTimeline packed = pack_timeline(ran.program, ran.timeline, kAll);
  Numbers numbers(packed.path, 0);
  std::int64_t lane = 0, slice = 0;
  Duration at{};
  for (std::size_t i = 0; i < packed.path_tasks; ++i) {
    lane += numbers.next_signed();
    slice += numbers.next_signed();
    const auto slices = unpack(packed, packed.lanes.at(static_cast<std::size_t>(lane)));
    EXPECT_EQ(std::get<0>(slices.at(static_cast<std::size_t>(slice))), at);
    at = std::get<1>(slices.at(static_cast<std::size_t>(slice)));
  }
  EXPECT_TRUE(numbers.done());
  EXPECT_EQ(at, ran.timeline.makespan);
}

// 1F1B goes through the micro-batches of a stage in order: a head and, now and then, a gap.
TEST(PackedTimelines, TakeAboutTwoBytesASlice) {
  const Ran ran = stagecraft::ran(build({.stages = 8, .micro_batches = 256}));
  const PackedTimeline packed = pack_timeline(ran.program, ran.timeline, kAll);
  std::size_t slices = 0;
  for (const PackedLane& lane : packed.lanes) slices += lane.slices;
  EXPECT_GT(slices, 8u * 256 * 2);
  EXPECT_LT(packed.slices.size(), 4 * slices);
}

TEST(PackedTimelines, ShowWholeRanksWhileThereIsRoom) {
  const Ran ran = stagecraft::ran(build({.stages = 8, .micro_batches = 64}));
  const PackedTimeline all = pack_timeline(ran.program, ran.timeline, kAll);
  EXPECT_EQ(all.shown_ranks, 8);
  const PackedTimeline some = pack_timeline(ran.program, ran.timeline, all.slices.size() / 2);
  EXPECT_GT(some.shown_ranks, 1);
  EXPECT_LT(some.shown_ranks, 8);
  EXPECT_EQ(some.ranks, 8);
  EXPECT_EQ(some.lanes.back().rank, some.shown_ranks - 1);
  EXPECT_EQ(pack_timeline(ran.program, ran.timeline, 0).shown_ranks, 1);
}

// System: rank 0 computes [0, 10) and sends for 3; rank 1 computes [0, 4), and [13, 15) what has arrived.
// Expectations: rank 1 has nothing to do in [4, 10), and waits for the message in [10, 13).
TEST(Gaps, AreExposedAsFarBackAsCommunicationGoes) {
  ProgramBuilder builder;
  const LabelId pass = builder.add_label({.name = "F", .stage = 0, .parts = {}});
  const LabelId message = builder.add_label({.name = "send forward", .stage = -1, .parts = {}});
  std::array<ResourceId, 2> compute{};
  for (int rank = 0; rank < 2; ++rank)
    compute[static_cast<std::size_t>(rank)] = builder.add_resource({ResourceKind::kStream, rank, "compute"});
  const ResourceId send = builder.add_resource({ResourceKind::kConcurrent, 0, "send"});
  const auto first = builder.add_task(compute[0], 10ns, pass);
  (void)builder.add_task(compute[1], 4ns, pass);
  const auto sent = builder.add_task(send, 3ns, message);
  const auto second = builder.add_task(compute[1], 2ns, pass);
  builder.add_dependency(first, sent);
  builder.add_dependency(sent, second);
  const Ran ran = stagecraft::ran(std::move(builder).build());
  const std::vector<Lane> lanes = lanes_of(ran.program, ran.timeline);
  const Waits waits(ran.program, ran.timeline);
  ASSERT_EQ(lanes.back().name, "compute");
  const std::vector<Gap> gaps = waits.gaps_of(lanes.back());
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].begin, 4ns);
  EXPECT_EQ(gaps[0].exposed_from, 10ns);
  EXPECT_EQ(gaps[0].end, 13ns);
  EXPECT_EQ(ran.program.labels[ran.program.label[*gaps[0].waits_for]].name, "send forward");
  // Rank 0 has nothing to do from 10 to the end.
  const std::vector<Gap> tail = waits.gaps_of(lanes.front());
  ASSERT_EQ(tail.size(), 1u);
  EXPECT_EQ(tail[0], (Gap{.begin = 10ns, .end = 15ns, .exposed_from = 15ns, .waits_for = {}}));
}

// System: a pass of 2 ns, then two reductions of 5 ns behind each other on a stream of their own, then the
// step. Expectations: both reductions are exposed.
TEST(Gaps, AreExposedThroughAStreamOfTraffic) {
  ProgramBuilder builder;
  const ResourceId compute = builder.add_resource({ResourceKind::kStream, 0, "compute"});
  const ResourceId data = builder.add_resource({ResourceKind::kStream, 0, "data"});
  const LabelId label = builder.add_label({.name = "any", .stage = -1, .parts = {}});
  const auto pass = builder.add_task(compute, 2ns, label);
  const auto step = builder.add_task(compute, 1ns, label);
  for (int i = 0; i < 2; ++i) {
    const auto reduction = builder.add_task(data, 5ns, label);
    builder.add_dependency(pass, reduction);
    builder.add_dependency(reduction, step);
  }
  const Ran ran = stagecraft::ran(std::move(builder).build());
  const std::vector<Lane> lanes = lanes_of(ran.program, ran.timeline);
  const std::vector<Gap> gaps = Waits(ran.program, ran.timeline).gaps_of(lanes.front());
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].begin, 2ns);
  EXPECT_EQ(gaps[0].exposed_from, 2ns);
  EXPECT_EQ(gaps[0].end, 12ns);
}

}  // namespace
}  // namespace stagecraft
