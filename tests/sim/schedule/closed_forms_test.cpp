// The closed forms of the table against the orders themselves, over the whole of their stated ranges; the
// literature's numbers for one size with messages; and what holds for any order at any costs.
#include "sim/schedule/closed_forms.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <regex>
#include <utility>

#include "sim/schedule/interleaved_pytorch.hpp"
#include "sim/schedule/play.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/unrolled.hpp"
#include "tests/sampling.hpp"

namespace stagecraft {
namespace {

testing::Message name_of(const ScheduleKind& kind, const PipelineShape& shape) {
  return testing::Message() << kind.name << " p=" << shape.ranks << " m=" << shape.micro_batches
                            << " v=" << shape.chunks << " N=" << shape.group;
}

std::vector<PipelineShape> legal_shapes(const ScheduleKind& kind, int most_ranks, int most_micro_batches) {
  std::vector<PipelineShape> shapes;
  for (int p = 1; p <= most_ranks; ++p)
    for (int m = 1; m <= most_micro_batches; ++m)
      for (int v = 1; v <= (kind.chunked ? 4 : 1); ++v)
        for (int n = 0; n <= (kind.grouped ? most_micro_batches : 0); ++n) {
          const PipelineShape shape{.ranks = p, .micro_batches = m, .chunks = v, .group = n};
          if (!kind.constraint(shape)) shapes.push_back(shape);
        }
  return sampled(std::move(shapes));
}

ScheduleCosts uniform(const StageCosts& stage, std::int64_t message = 0) {
  return {.stages = {stage}, .message = message};
}

// F, I, W: the passes alike, and one shorter or longer than the others each.
constexpr StageCosts kCosts[] = {{1, 1, 1}, {2, 2, 1}, {2, 3, 1}, {3, 3, 2}, {1, 2, 3},
                                 {4, 1, 1}, {5, 6, 4}, {2, 1, 1}, {3, 2, 4}, {4, 2, 2}};

class EveryForm : public testing::TestWithParam<std::size_t> {
 protected:
  const ScheduleKind& kind() const { return schedule_kinds()[GetParam()]; }
};

TEST_P(EveryForm, IsTheBubbleOfTheOrderWhereverItSpeaks) {
  int spoken = 0;
  for (const PipelineShape& shape : legal_shapes(kind(), 6, 24)) {
    if (kind().bubble == nullptr) break;
    SCOPED_TRACE(name_of(kind(), shape));
    const Schedule schedule = generate(kind(), shape);
    for (const StageCosts& costs : kCosts) {
      const auto bubble = kind().bubble(shape, costs);
      if (!bubble) continue;
      SCOPED_TRACE(testing::Message() << "F=" << costs.forward << " I=" << costs.input_gradient
                                      << " W=" << costs.weight_gradient);
      const std::int64_t ideal = std::int64_t{shape.micro_batches} * shape.chunks *
                                 (costs.forward + costs.input_gradient + costs.weight_gradient);
      if (kind().flush) {
        const Play times = play(schedule, uniform(costs));
        ASSERT_EQ(times.ideal(), ideal);
        ASSERT_EQ(times.makespan - ideal, *bubble);
      } else {
        ASSERT_EQ(period(schedule, uniform(costs)) - ideal, *bubble);
      }
      ++spoken;
    }
  }
  if (kind().bubble != nullptr) {
    EXPECT_GE(spoken, sampled_count(25));
  }
}

TEST_P(EveryForm, IsThePeakOfTheOrderWhereverItSpeaks) {
  for (const PipelineShape& shape : legal_shapes(kind(), 6, 24)) {
    if (kind().peak == nullptr) break;
    SCOPED_TRACE(name_of(kind(), shape));
    const std::vector<int> peaks = peak_in_flight(generate(kind(), shape));
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const auto peak = kind().peak(shape, rank);
      if (peak) {
        ASSERT_EQ(peaks[static_cast<std::size_t>(rank)], *peak) << "rank " << rank;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kind, EveryForm, testing::Range(std::size_t{0}, schedule_kinds().size()));

std::int64_t makespan(const char* name, const PipelineShape& shape, const ScheduleCosts& costs) {
  return play(generate(*find_schedule(name), shape), costs).makespan;
}

// DualPipe's form bounds its bubble from above where W fits into the other passes. Source:
// deepseek-ai/DualPipe, README.
TEST(DualPipe, WastesAtMostWhatItsFormSaysAtUnequalCosts) {
  for (const StageCosts& costs : {StageCosts{2, 3, 2}, StageCosts{2, 3, 1}, StageCosts{5, 6, 4}}) {
    for (int p = 2; p <= 8; p += 2) {
      for (int m = 2 * p; m <= 2 * p + 12; m += 2) {
        const std::int64_t backward = costs.input_gradient + costs.weight_gradient;
        const std::int64_t each = costs.forward + 2 * backward - 3 * costs.weight_gradient;
        const std::int64_t work = m * (costs.forward + backward);
        EXPECT_LE(makespan("dualpipe", {.ranks = p, .micro_batches = m}, uniform(costs)),
                  work + (p / 2 - 1) * each);
        EXPECT_LE(makespan("dualpipe-v", {.ranks = p, .micro_batches = m, .chunks = 2}, uniform(costs)),
                  2 * work + (p - 1) * each);
      }
    }
  }
  // (F,I,W,[FB]) = (2,3,2,7 = F+B) with pairs of 6: the form says 5 and 15, the orders waste 4 and 11.
  const ScheduleCosts overlapped{.stages = {{2, 3, 2}}, .fused = 6.0 / 7};
  const Play pipe = play(generate(*find_schedule("dualpipe"), {.ranks = 4, .micro_batches = 16}), overlapped);
  EXPECT_EQ(pipe.makespan - pipe.ideal(), 4);
  const Play folded = play(
      generate(*find_schedule("dualpipe-v"), {.ranks = 4, .micro_batches = 16, .chunks = 2}), overlapped);
  EXPECT_EQ(folded.makespan - folded.ideal(), 11);
}

// With fewer micro-batches than 2p-1 the hand-crafted order idles 2(2p-1-m) within a rank's span at unit
// times.
TEST(ZbV, IdlesWithinARankOnlyWhenMicroBatchesAreFew) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 16; ++m) {
      const Play times =
          play(generate(*find_schedule("zb-v"), {.ranks = p, .micro_batches = m, .chunks = 2}), uniform({}));
      EXPECT_EQ(times.span - times.ideal(), 2 * std::max(0, 2 * p - 1 - m)) << "p=" << p << " m=" << m;
    }
  }
  const std::pair<StageCosts, std::int64_t> unequal[] = {
      {{2, 3, 1}, 12}, {{3, 3, 2}, 6}, {{5, 6, 4}, 12}, {{3, 4, 4}, 3}};
  for (const auto& [costs, idle] : unequal) {
    const Play times = play(generate(*find_schedule("zb-v"), {.ranks = 4, .micro_batches = 16, .chunks = 2}),
                            uniform(costs));
    EXPECT_EQ(times.span - times.ideal(), idle);
  }
}

// What a message time c adds to the makespan, in its stated range. Source: docs/notation.md names the
// symbols; 1F1B's form is in tests/sim/lower/closed_forms_test.cpp.
TEST(MessageTime, AddsWhatIsStatedForEverySchedule) {
  const StageCosts costs{40, 40, 40};
  for (int p = 2; p <= 6; ++p) {
    for (int m = 1; m <= 24; ++m) {
      SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m);
      const auto added = [&](const char* name, PipelineShape shape, std::int64_t c) {
        shape.ranks = p;
        shape.micro_batches = m;
        return makespan(name, shape, uniform(costs, c)) - makespan(name, shape, uniform(costs));
      };
      EXPECT_EQ(added("gpipe", {}, 77), 2 * (p - 1) * 77);
      if (m > p) {
        EXPECT_EQ(added("zb-h1", {}, 20), 4 * (p - 1) * 20);
      }
      for (int v = 2; v <= 3; ++v) {
        if (m % p == 0) {
          EXPECT_EQ(added("interleaved-1f1b", {.chunks = v}, 20), 2 * (v * p - 1) * 20);
        }
        const std::int64_t hidden = (m - p) * 40 / p;  // p*c <= (N-p)*min(F,B), N = m
        if (m > p) {
          EXPECT_EQ(added("looped-bfs", {.chunks = v}, hidden), 2 * (p - 1) * hidden);
          // Longer messages than half a forward reach the steady part as well.
          const std::int64_t half = std::min<std::int64_t>(hidden, 20);
          EXPECT_EQ(added("interleaved-1f1b", {.chunks = v, .group = m}, half), 2 * (p - 1) * half);
        } else {
          EXPECT_EQ(added("looped-bfs", {.chunks = v}, 1), 2 * (v * p - 1));
        }
      }
    }
  }
}

struct Printed {
  const char* name;
  int chunks;
  int group;
  std::array<std::int64_t, 4> makespan;  // at c = 0, 0.05, 0.1, 0.2 stage forwards, in hundredths of one
  double peak;                           // stage units
};

// p = 4, m = 16, a stage's F = 1 and B = 2 (I = W = 1), in hundredths. Source: derived from the published
// orders by an independent checker.
TEST(MessageTime, RanksSchedulesAsTheTableOfFourRanksSays) {
  const Printed rows[] = {{"gpipe", 1, 0, {5700, 5730, 5760, 5820}, 16},
                          {"1f1b", 1, 0, {5700, 5840, 5980, 6260}, 4},
                          {"interleaved-1f1b", 2, 0, {5250, 5320, 5390, 5530}, 5.5},
                          {"interleaved-1f1b", 2, 8, {5250, 5280, 5310, 5370}, 7.5},
                          {"looped-bfs", 2, 0, {5250, 5280, 5310, 5370}, 16},
                          {"interleaved-1f1b", 4, 0, {5025, 5175, 5325, 5625}, 4.75},
                          {"zb-h1", 1, 0, {5100, 5160, 5220, 5340}, 4},
                          {"zb-v", 2, 0, {4950, 5015, 5080, 5210}, 4},
                          {"interleaved-zb", 2, 0, {4950, 5030, 5110, 5270}, 4},
                          {"dualpipe", 1, 0, {5000, 5075, 5150, 5300}, 5},
                          {"dualpipe-v", 2, 0, {5100, 5240, 5390, 5730}, 4.5}};
  for (const Printed& row : rows) {
    const PipelineShape shape{.ranks = 4, .micro_batches = 16, .chunks = row.chunks, .group = row.group};
    const Schedule schedule = generate(*find_schedule(row.name), shape);
    const std::int64_t each = 100 / row.chunks;
    for (std::size_t i = 0; i < 4; ++i) {
      constexpr std::int64_t kMessages[] = {0, 5, 10, 20};
      SCOPED_TRACE(testing::Message() << name_of(*find_schedule(row.name), shape) << " c=" << kMessages[i]);
      EXPECT_EQ(play(schedule, uniform({each, each, each}, kMessages[i])).makespan, row.makespan[i]);
    }
    EXPECT_EQ(std::ranges::max(peak_in_flight(schedule)), row.peak * row.chunks) << row.name;
  }
}

// Property: any legal size gives a valid order that takes no less than its work, scales with its costs, and
// never gets shorter when one cost grows. 10,000 sizes and costs a schedule, from a fixed seed.
class AnySize : public testing::TestWithParam<std::size_t> {
 protected:
  static constexpr int kCases = sampled_count(10'000);
  const ScheduleKind& kind() const { return schedule_kinds()[GetParam()]; }
  int between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  PipelineShape legal_shape() {
    while (true) {
      const PipelineShape shape{.ranks = between(1, 7),
                                .micro_batches = between(1, 18),
                                .chunks = kind().chunked ? between(1, 4) : 1,
                                .group = kind().grouped ? between(0, 10) : 0};
      if (!kind().constraint(shape)) return shape;
    }
  }

  ScheduleCosts any_costs(const PipelineShape& shape) {
    ScheduleCosts costs{.stages = {}, .message = between(0, 1) * between(1, 40)};
    const int stages = between(0, 1) == 0 ? 1 : shape.ranks * shape.chunks;
    for (int s = 0; s < stages; ++s)
      costs.stages.push_back({between(1, 20), between(1, 20), between(1, 20), between(1, 20)});
    return costs;
  }

  std::mt19937 random_{20'261'121};
};

TEST_P(AnySize, GivesAValidOrderThatBehavesWithItsCosts) {
  for (int i = 0; i < kCases; ++i) {
    const PipelineShape shape = legal_shape();
    ScheduleCosts costs = any_costs(shape);
    SCOPED_TRACE(name_of(kind(), shape));
    const Schedule schedule = generate(kind(), shape, costs);
    ASSERT_EQ(check(schedule), std::vector<ScheduleProblem>{});
    const Schedule whole = schedule.flush ? schedule : unrolled(schedule, 2);
    const Play times = play(whole, costs);
    ASSERT_GE(times.makespan, times.span);
    ASSERT_GE(times.span, times.ideal());

    StageCosts& grown =
        costs.stages[static_cast<std::size_t>(between(0, static_cast<int>(costs.stages.size()) - 1))];
    (i % 2 == 0 ? grown.forward : grown.input_gradient) += 3;
    const Play longer = play(whole, costs);
    ASSERT_GE(longer.makespan, times.makespan);
    for (StageCosts& stage : costs.stages)
      stage = {2 * stage.forward, 2 * stage.input_gradient, 2 * stage.weight_gradient, 2 * stage.recompute};
    costs.message *= 2;
    ASSERT_EQ(play(whole, costs).makespan, 2 * longer.makespan);
  }
}

// The first number that a hint offers is taken, as often as need be: "2 or 4 ranks would be legal", "group
// 5".
TEST_P(AnySize, IsReachedFromAnIllegalOneByFollowingTheHints) {
  const std::regex group("group ([0-9]+)");
  const std::regex limits("give ([0-9]+) to");
  const std::regex number(
      "([0-9]+) or (?:[0-9]+ |more )?(micro-batches|chunks a rank|ranks)|([0-9]+) (micro-batches|chunks a "
      "rank|ranks)");
  for (int i = 0; i < sampled_count(2'000); ++i) {
    PipelineShape shape{.ranks = between(1, 9),
                        .micro_batches = between(1, 40),
                        .chunks = between(1, kind().chunked ? 5 : 1),
                        .group = kind().grouped ? between(0, 12) : 0};
    SCOPED_TRACE(name_of(kind(), shape));
    int turns = 0;
    while (const auto problem = kind().constraint(shape)) {
      ASSERT_LT(++turns, 5) << problem->message << ": " << problem->hint;
      std::smatch found;
      if (std::regex_search(problem->hint, found, limits)) {
        shape.group = std::stoi(found[1]);
      } else if (std::regex_search(problem->hint, found, group)) {
        shape.group = std::stoi(found[1]);
      } else {
        ASSERT_TRUE(std::regex_search(problem->hint, found, number)) << problem->hint;
        const std::string noun = found[2].matched ? found[2] : found[4];
        const int offered = std::stoi(found[1].matched ? found[1] : found[3]);
        (noun == "ranks"           ? shape.ranks
         : noun == "micro-batches" ? shape.micro_batches
                                   : shape.chunks) = offered;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kind, AnySize, testing::Range(std::size_t{0}, schedule_kinds().size()));

// System: two ranks, four micro-batches, F = 1, B = 2. In the steady state rank 0 runs F1 B0 F2 B1 F3 B2 F0'
// B3. Expectations: F0' of the next iteration stands behind B0, so that unrolled once it is gone, and F0
// comes first.
TEST(Unrolled, FillsAndDrainsAnOrderThatNeverDoes) {
  const Schedule steady = generate(*find_schedule("pipedream-2bw"), {.ranks = 2, .micro_batches = 4});
  const Schedule once = unrolled(steady, 1);
  EXPECT_TRUE(once.flush);
  EXPECT_EQ(once.ranks, generate(*find_schedule("1f1b"), {.ranks = 2, .micro_batches = 4}).ranks);
  EXPECT_EQ(unrolled(steady, 3).ranks,
            generate(*find_schedule("1f1b"), {.ranks = 2, .micro_batches = 12}).ranks);
  EXPECT_EQ(period(steady, {}), 4 * 3);
}

TEST(ScheduleCosts, LastAlikeWhenOneStageIsGivenAndAreOneWhenNoneIs) {
  EXPECT_EQ(ScheduleCosts{}.of(7), (StageCosts{1, 1, 1, 0}));
  EXPECT_EQ((ScheduleCosts{.stages = {{2, 3, 4}}}.of(7)), (StageCosts{2, 3, 4, 0}));
  EXPECT_EQ((ScheduleCosts{.stages = {{2, 3, 4}, {5, 6, 7}}}.of(1)), (StageCosts{5, 6, 7, 0}));
}

}  // namespace
}  // namespace stagecraft
