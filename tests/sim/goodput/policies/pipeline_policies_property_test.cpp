// What must hold of Bamboo, ReCycle and Varuna whatever happens: ten thousand random histories each, in
// small whole seconds, so that ties are common.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "sim/goodput/policies/bamboo.hpp"
#include "sim/goodput/policies/recycle.hpp"
#include "sim/goodput/policies/varuna.hpp"
#include "tests/sampling.hpp"
#include "tests/sim/goodput/made_job.hpp"
#include "tests/sim/goodput/random_history.hpp"

namespace stagecraft {
namespace {

using made::Dice;
using made::seconds;

constexpr int kRuns = sampled_count(10'000);
constexpr std::int64_t kStep = 12;  // seconds, of the ideal step

// The ideal is one sample in kStep; every shape takes that long or longer.
std::unique_ptr<Policy> random_bamboo(Dice& dice, int nodes) {
  const int stages = dice.between(1, nodes);
  const int pipelines = nodes / stages;
  return std::make_unique<Bamboo>(BambooSpec{
      .stages = stages,
      .pipelines = pipelines,
      .step =
          [=](int count) {
            return ShapedStep{
                .duration = seconds(kStep) * pipelines / count, .samples = 1, .nodes = count * stages};
          },
      .global_rendezvous = seconds(dice.between(0, 30)),
      .local_rendezvous = seconds(dice.between(0, 20)),
      .slowdown = 1 + dice.between(0, 2) / 2.0,
      .rebalance_threshold = dice.between(0, 20) / 100.0,
      .copies = dice.chance(70),
      .peer_transfer = seconds(dice.between(0, 5))});
}

std::unique_ptr<Policy> random_recycle(Dice& dice, int nodes) {
  const int stages = dice.between(1, nodes);
  return std::make_unique<Recycle>(RecycleSpec{
      .shape = {.stage_times = std::vector<Duration>(static_cast<std::size_t>(stages), seconds(1)),
                .micro_batches = dice.between(1, 5),
                .pipelines = nodes / stages,
                .fault_free = seconds(kStep)},
      .form = static_cast<RecycleForm>(dice.between(0, 1)),
      .samples = 1,
      .reconfigure = seconds(dice.between(0, 9)),
      .restart = seconds(dice.between(0, 20)),
      .peer_transfer = seconds(dice.between(0, 5))});
}

std::unique_ptr<Policy> random_varuna(Dice& dice, int nodes) {
  const int least = dice.between(1, nodes);
  return std::make_unique<Varuna>(VarunaSpec{
      .nodes = nodes,
      .shape = [=](int count) -> std::optional<ShapedStep> {
        if (count < least) return std::nullopt;
        return ShapedStep{.duration = seconds(kStep) * nodes / count, .samples = 1, .nodes = count};
      },
      .restart = {{1, seconds(dice.between(0, 20))}},
      .transient_wait = seconds(dice.between(0, 9)),
      .announced_wait = seconds(dice.between(0, 9)),
      .notice = seconds(dice.between(0, 9)),
      .checkpoint_cost = seconds(dice.between(0, 9))});
}

using MakePolicy = std::unique_ptr<Policy> (*)(Dice& dice, int nodes);

JobSpec random_job(Dice& dice, std::int64_t horizon) {
  JobSpec spec = made::job(horizon, kStep);
  if (dice.chance(20)) return spec;
  spec.checkpointing = Checkpointing{.mode = static_cast<CheckpointMode>(dice.between(0, 2)),
                                     .every_steps = dice.between(1, 6),
                                     .block = seconds(dice.between(0, 3)),
                                     .persist = seconds(dice.between(0, 20)),
                                     .load = seconds(dice.between(0, 5)),
                                     .copies = dice.between(1, 3),
                                     .copy_load = seconds(dice.between(0, 2))};
  return spec;
}

void expect_whole(const Account& account, Duration horizon) {
  ASSERT_EQ(account.total(), horizon);
  for (const Duration bucket : account.buckets) ASSERT_GE(bucket, Duration::zero());
  Duration trained{}, end{};
  for (const TimelineRow& row : account.timeline) {
    ASSERT_EQ(row.start, end);
    end = row.end;
    if (row.phase == Phase::kTraining) trained += row.end - row.start;
  }
  ASSERT_EQ(end, horizon);
  ASSERT_EQ(trained, account[Bucket::kProductive] + account[Bucket::kDegraded] + account[Bucket::kLostWork]);
  // One sample a step: none lost, none counted twice.
  ASSERT_EQ(account.samples, account.steps);
  ASSERT_EQ(account[Bucket::kProductive], account.samples * seconds(kStep));
  ASSERT_GE(account[Bucket::kLostWork], account.undone_steps * seconds(kStep));
}

class PipelinePolicies : public testing::TestWithParam<std::pair<const char*, MakePolicy>> {};

TEST_P(PipelinePolicies, TimeAndSamplesAddUpWhateverHappens) {
  for (int seed = 0; seed < kRuns; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    const int nodes = dice.between(1, 12);
    const std::int64_t horizon = dice.between(1, 900);
    const History history = made::random_history(dice, nodes, horizon, 60);
    const JobSpec spec = random_job(dice, horizon);
    const int policy_seed = dice.between(0, 1 << 30);
    const auto run = [&] {
      Dice again(policy_seed);
      return run_job(spec, history, *GetParam().second(again, nodes));
    };
    const Account account = run();
    expect_whole(account, spec.horizon);
    ASSERT_EQ(account, run());
  }
}

TEST_P(PipelinePolicies, WithoutIncidentsEveryStepIsIdeal) {
  for (int seed = 0; seed < 100; ++seed) {
    Dice dice(seed);
    const std::unique_ptr<Policy> policy = GetParam().second(dice, 12);
    const Account account = run_job(made::job(10 * kStep, kStep), made::history(12, {}), *policy);
    EXPECT_EQ(account.samples, 10);
    EXPECT_EQ(account[Bucket::kProductive], account.horizon);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PipelinePolicies,
                         testing::Values(std::pair("bamboo", &random_bamboo),
                                         std::pair("recycle", &random_recycle),
                                         std::pair("varuna", &random_varuna)),
                         [](const auto& which) { return std::string(which.param.first); });

}  // namespace
}  // namespace stagecraft
