// Properties of every schedule over every legal shape of up to 8 ranks, 40 micro-batches and 3 chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/schedule/schedule.hpp"
#include "tests/sampling.hpp"

namespace stagecraft {
namespace {

constexpr int kMostRanks = 8;
constexpr int kMostMicroBatches = 40;
constexpr int kMostChunks = 3;

testing::Message name_of(const PipelineShape& shape) {
  return testing::Message() << "p=" << shape.ranks << " m=" << shape.micro_batches << " v=" << shape.chunks
                            << " N=" << shape.group;
}

// Every shape in range; group 0, the default, included.
std::vector<PipelineShape> all_shapes(const ScheduleKind& kind) {
  std::vector<PipelineShape> shapes;
  for (int p = 1; p <= kMostRanks; ++p)
    for (int m = 1; m <= kMostMicroBatches; ++m)
      for (int v = 1; v <= (kind.chunked ? kMostChunks : 1); ++v)
        for (int n = 0; n <= (kind.grouped ? kMostMicroBatches : 0); ++n)
          shapes.push_back({.ranks = p, .micro_batches = m, .chunks = v, .group = n});
  return sampled(std::move(shapes));
}

std::vector<PipelineShape> legal_shapes(const ScheduleKind& kind) {
  std::vector<PipelineShape> shapes = all_shapes(kind);
  std::erase_if(shapes, [&](const PipelineShape& shape) { return kind.constraint(shape).has_value(); });
  return shapes;
}

const ScheduleKind& kind_of(std::string_view name) {
  const ScheduleKind* kind = find_schedule(name);
  EXPECT_NE(kind, nullptr) << name;
  return *kind;
}

int group_of(const PipelineShape& shape) {
  return shape.group > 0 ? shape.group : shape.ranks;
}

// The peak of each rank, by a formula of the rank.
template <class Formula>
std::vector<int> by_rank(const PipelineShape& shape, Formula formula) {
  std::vector<int> peaks;
  for (int rank = 0; rank < shape.ranks; ++rank) peaks.push_back(formula(rank));
  return peaks;
}

// Property: a generated order is whole, in its place and free of deadlock.
class EverySchedule : public testing::TestWithParam<std::size_t> {
 protected:
  const ScheduleKind& kind() const { return schedule_kinds()[GetParam()]; }
};

TEST_P(EverySchedule, IsValidForEveryLegalShape) {
  const auto shapes = legal_shapes(kind());
  EXPECT_GE(std::ssize(shapes), sampled_count(40));
  for (const PipelineShape& shape : shapes) {
    SCOPED_TRACE(name_of(shape));
    const Schedule schedule = generate(kind(), shape);
    EXPECT_EQ(schedule.name, kind().name);
    EXPECT_EQ(schedule.shape, shape);
    ASSERT_EQ(check(schedule), std::vector<ScheduleProblem>{});
  }
}

TEST_P(EverySchedule, SplitsFusesAndRecomputesExactlyIfItSaysSo) {
  for (const PipelineShape& shape : legal_shapes(kind())) {
    SCOPED_TRACE(name_of(shape));
    const Schedule schedule = generate(kind(), shape);
    const auto any = [&](auto is) {
      return std::ranges::any_of(schedule.ranks,
                                 [&](const auto& order) { return std::ranges::any_of(order, is); });
    };
    ASSERT_EQ(any([](const Action& a) { return a.pass == Pass::kInputGradient; }), kind().split_backward);
    ASSERT_EQ(any([](const Action& a) { return a.fused; }), kind().fused_pairs);
    const bool recomputes = kind().recomputes && shape.ranks > 1;  // the last rank never does
    ASSERT_EQ(any([](const Action& a) { return a.pass == Pass::kRecompute; }), recomputes);
  }
}

// A message says both numbers that clash, and what would do instead.
TEST_P(EverySchedule, SaysTwoNumbersAndAWayOutWhenItRefuses) {
  for (const PipelineShape& shape : all_shapes(kind())) {
    const auto problem = kind().constraint(shape);
    if (!problem) continue;
    SCOPED_TRACE(name_of(shape));
    int numbers = 0;
    bool inside = false;
    for (const char c : problem->message) {
      const bool digit = c >= '0' && c <= '9';
      numbers += digit && !inside ? 1 : 0;
      inside = digit;
    }
    ASSERT_GE(numbers, 2) << problem->message;
    ASSERT_FALSE(problem->hint.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Kind, EverySchedule, testing::Range(std::size_t{0}, schedule_kinds().size()));

// Every forward precedes every backward.
TEST(GPipe, HoldsAllMicroBatches) {
  const ScheduleKind& kind = kind_of("gpipe");
  for (const PipelineShape& shape : legal_shapes(kind)) {
    SCOPED_TRACE(name_of(shape));
    ASSERT_EQ(peak_in_flight(generate(kind, shape)),
              by_rank(shape, [&](int) { return shape.micro_batches; }));
  }
}

TEST(OneFOneB, KeepsAtMostDistanceToEndActivationsLive) {
  const ScheduleKind& kind = kind_of("1f1b");
  for (const PipelineShape& shape : legal_shapes(kind)) {
    SCOPED_TRACE(name_of(shape));
    ASSERT_EQ(peak_in_flight(generate(kind, shape)),
              by_rank(shape, [&](int rank) { return std::min(shape.micro_batches, shape.ranks - rank); }));
  }
}

TEST(Interleaved, HoldsItsWarmUpAndOneChunk) {
  const ScheduleKind& kind = kind_of("interleaved-1f1b");
  for (const PipelineShape& shape : legal_shapes(kind)) {
    SCOPED_TRACE(name_of(shape));
    ASSERT_EQ(peak_in_flight(generate(kind, shape)), by_rank(shape, [&](int rank) {
                const int warm_up = 2 * (shape.ranks - 1 - rank) + (shape.chunks - 1) * group_of(shape);
                return std::min(warm_up + 1, shape.micro_batches * shape.chunks);
              }));
  }
}

TEST(Interleaved, IsLegalExactlyWhenNoGroupIsShorterThanThePipeline) {
  const ScheduleKind& kind = kind_of("interleaved-1f1b");
  for (const PipelineShape& shape : all_shapes(kind)) {
    SCOPED_TRACE(name_of(shape));
    const int shortest = shape.micro_batches % group_of(shape) == 0
                             ? group_of(shape)
                             : std::min(group_of(shape), shape.micro_batches % group_of(shape));
    const bool legal = shape.chunks >= 2 && group_of(shape) <= shape.micro_batches && shortest >= shape.ranks;
    ASSERT_EQ(!kind.constraint(shape).has_value(), legal);
  }
}

// The groups and micro-batch counts that a hint offers are legal: every number in "micro-batch group 5 or 10
// would be legal, or 8 or 12 micro-batches" is tried.
TEST(Interleaved, OffersOnlyWhatIsLegal) {
  const ScheduleKind& kind = kind_of("interleaved-1f1b");
  int offers = 0;
  for (const PipelineShape& shape : all_shapes(kind)) {
    if (shape.chunks < 2 || shape.micro_batches < shape.ranks) continue;
    const auto problem = kind.constraint(shape);
    if (!problem) continue;
    SCOPED_TRACE(name_of(shape));
    SCOPED_TRACE(problem->hint);
    const std::size_t end_of_groups = problem->hint.find(" would be legal");
    ASSERT_NE(end_of_groups, std::string::npos);
    for (std::size_t at = problem->hint.find_first_of("0123456789"); at != std::string::npos;) {
      std::size_t digits = 0;
      const int number = std::stoi(problem->hint.substr(at), &digits);
      PipelineShape offered = shape;
      (at < end_of_groups ? offered.group : offered.micro_batches) = number;
      ASSERT_EQ(kind.constraint(offered), std::nullopt) << number;
      ++offers;
      at = problem->hint.find_first_of("0123456789", at + digits);
    }
  }
  EXPECT_GT(offers, sampled_count(1000));
}

// Closed form where the last group is whole and the pipeline is full; it bounds every other shape.
TEST(InterleavedGroup, HoldsAGroupPerChunkButTheLastAndTheDistanceToTheEnd) {
  const ScheduleKind& kind = kind_of("interleaved-group");
  for (const PipelineShape& shape : legal_shapes(kind)) {
    SCOPED_TRACE(name_of(shape));
    const auto closed_form =
        by_rank(shape, [&](int rank) { return group_of(shape) * (shape.chunks - 1) + shape.ranks - rank; });
    const auto peaks = peak_in_flight(generate(kind, shape));
    if (shape.micro_batches >= shape.ranks && shape.micro_batches % group_of(shape) == 0) {
      ASSERT_EQ(peaks, closed_form);
    }
    for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
      ASSERT_LE(peaks[rank], std::min(closed_form[rank], shape.micro_batches * shape.chunks));
    }
  }
}

TEST(InterleavedGroup, IsLegalExactlyForGroupsOfHalfTheRanksToAllOfThem) {
  const ScheduleKind& kind = kind_of("interleaved-group");
  for (const PipelineShape& shape : all_shapes(kind)) {
    SCOPED_TRACE(name_of(shape));
    const bool legal =
        shape.chunks >= 2 && 2 * group_of(shape) >= shape.ranks && group_of(shape) <= shape.ranks;
    ASSERT_EQ(!kind.constraint(shape).has_value(), legal);
  }
}

// Property: check() notices every single mutilation of a valid order.
TEST(ScheduleCheck, NoticesAnyPassThatIsDroppedDoubledOrOnTheNextRank) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    const PipelineShape shape{.ranks = 4, .micro_batches = 8, .chunks = kind.chunked ? 2 : 1};
    const Schedule valid = generate(kind, shape);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      for (std::size_t place = 0; place < valid.ranks[rank].size(); ++place) {
        const Action action = valid.ranks[rank][place];
        SCOPED_TRACE(testing::Message() << kind.name << " " << to_string(action));
        const auto offset = static_cast<std::ptrdiff_t>(place);
        Schedule dropped = valid;
        dropped.ranks[rank].erase(dropped.ranks[rank].begin() + offset);
        EXPECT_EQ(check(dropped).empty(), action.pass == Pass::kRecompute);  // nothing obliges to recompute
        Schedule doubled = valid;
        doubled.ranks[rank].insert(doubled.ranks[rank].begin() + offset, action);
        EXPECT_FALSE(check(doubled).empty());
        Schedule moved = dropped;
        moved.ranks[(rank + 1) % 4].push_back(action);
        EXPECT_FALSE(check(moved).empty());
      }
    }
  }
}

// Property: a backward at the very front of its rank waits for a forward behind it, whatever the schedule.
TEST(ScheduleCheck, NoticesABackwardInFrontOfItsForward) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (!kind.flush) continue;  // there, such a backward is of the iteration before
    SCOPED_TRACE(kind.name);
    Schedule schedule = generate(kind, {.ranks = 4, .micro_batches = 8, .chunks = kind.chunked ? 2 : 1});
    for (std::vector<Action>& order : schedule.ranks) {
      const auto backward =
          std::ranges::find_if(order, [](const Action& a) { return a.pass != Pass::kForward; });
      std::rotate(order.begin(), backward, backward + 1);
    }
    const auto problems = check(schedule);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_TRUE(problems[0].message.starts_with("deadlock: ")) << problems[0].message;
  }
}

}  // namespace
}  // namespace stagecraft
