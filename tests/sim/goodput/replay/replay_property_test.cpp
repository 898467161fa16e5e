// What must hold of every replay, on ten thousand random traces each, in small whole seconds, so that
// ties are common.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "sim/goodput/replay/bamboo.hpp"
#include "sim/goodput/replay/oobleck_varuna.hpp"
#include "tests/sampling.hpp"

namespace stagecraft {
namespace {

constexpr int kRuns = sampled_count(10'000);

class Dice {
 public:
  explicit Dice(int seed) : engine_(static_cast<std::uint32_t>(seed)) {}
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  Duration seconds(int low, int high) { return std::chrono::seconds(between(low, high)); }

 private:
  std::mt19937 engine_;
};

// A node that went does not come back under its name, as in all traces of availability.
std::vector<NodeChange> random_changes(Dice& dice) {
  const Duration creation = dice.seconds(0, 20);
  std::vector<NodeChange> changes;
  std::vector<int> here;
  int next = 0;
  Duration now{};
  const int rows = dice.between(1, 60);
  for (int row = 0; row < rows; ++row) {
    if (dice.between(0, 2) == 0) now += dice.seconds(0, 60);
    if (here.empty() || dice.between(0, 9) < 6) {
      here.push_back(next);
      changes.push_back({.time = now, .node = next++, .ready = now + creation});
    } else {
      const auto gone = here.begin() + dice.between(0, static_cast<int>(here.size()) - 1);
      changes.push_back({.time = now, .joins = false, .node = *gone});
      here.erase(gone);
    }
  }
  return changes;
}

Replay random_bamboo(Dice& dice, const std::vector<NodeChange>& changes, const ReplayRules& rules) {
  RedundantPipelines policy{.stages = dice.between(1, 5)};
  policy.step = [](int pipelines, int) { return std::chrono::seconds(20) / pipelines; };
  policy.global_rendezvous = dice.seconds(0, 30);
  policy.local_rendezvous = dice.seconds(0, 20);
  policy.slowdown = 1.5;
  policy.rebalance_threshold = dice.between(0, 50) / 100.0;
  return replay_bamboo(changes, rules, policy);
}

Replay random_restarts(Dice& dice, const std::vector<NodeChange>& changes, const ReplayRules& rules) {
  GlobalRestart policy{.pipeline_nodes = dice.between(1, 5)};
  policy.step = [](int nodes) { return std::chrono::seconds(60) / nodes; };
  policy.rendezvous = dice.seconds(0, 30);
  policy.checkpoint_every = dice.between(0, 4);
  policy.checkpoint_write = dice.seconds(0, 9);
  return replay_global_restart(changes, rules, policy);
}

void expect_whole(const Replay& replay, Rules rules) {
  const Account account =
      account_of(replay, {.ideal_step = std::chrono::seconds(1), .samples_per_step = 1, .timeline = true});
  ASSERT_EQ(account.total(), replay.end);
  for (const Duration bucket : account.buckets) ASSERT_GE(bucket, Duration{});
  ASSERT_EQ(account.samples + account.undone_steps, static_cast<std::int64_t>(replay.steps.size()));
  Duration end{};
  for (const ReplayStep& step : replay.steps) {
    ASSERT_GE(step.start, end);
    ASSERT_GT(step.end, step.start);
    end = step.end;
  }
  ASSERT_LT(end, replay.end);
  if (rules == Rules::kPublished) return;
  // No step reaches over a change of the job's state.
  for (const ReplayStep& step : replay.steps)
    for (const Replay::Since& since : replay.states)
      ASSERT_FALSE(step.start < since.time && since.time < step.end);
}

template <class Run>
void try_all_rules(Run run) {
  for (int seed = 0; seed < kRuns; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    const std::vector<NodeChange> changes = random_changes(dice);
    const Duration end = changes.back().time + dice.seconds(1, 300);
    const Ties ties[] = {Ties::kTraceOrder, Ties::kHeap, Ties::kHeapRebuilt};
    const ReplayRules rules =
        seed % 2 == 0 ? ReplayRules{.end = end}
                      : ReplayRules{.rules = Rules::kPublished, .ties = ties[dice.between(0, 2)], .end = end};
    expect_whole(run(dice, changes, rules), rules.rules);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ReplayProperty, BamboosTimeAndStepsAddUp) {
  try_all_rules(random_bamboo);
}

TEST(ReplayProperty, OobleckAndVarunasTimeAndStepsAddUp) {
  try_all_rules(random_restarts);
}

}  // namespace
}  // namespace stagecraft
