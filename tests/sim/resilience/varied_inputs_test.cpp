// Which inputs goodput depends on.
#include "sim/resilience/varied_inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/resilience/predict_goodput.hpp"
#include "tests/sim/resilience/failing_jobs.hpp"

namespace stagecraft {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(PredictGoodput, NamesTheInputsThatDominate) {
  const GoodputReport report = predict_goodput(with(failing(2)), {.inputs = true});
  ASSERT_FALSE(report.inputs.empty());
  EXPECT_EQ(report.inputs[0].name, "failures.process.rate_per_node_day");
  EXPECT_GT(report.inputs[0].half, 0);
  EXPECT_LT(report.inputs[0].twice, 0);
}

TEST(PredictGoodput, SaysWhereAnInputWasGiven) {
  const std::string rate = "failures.process.rate_per_node_day";
  const auto source = [&](const SourceLocation& where) {
    Scenario scenario = with(failing(2));
    scenario.origins[rate] = where;
    return predict_goodput(scenario, {.inputs = true}).inputs.at(0).source;
  };
  EXPECT_EQ(source({.file = "job.yaml", .line = 9, .column = 3}), "given, job.yaml:9");
  EXPECT_EQ(source({.file = "--set " + rate + "=2"}), "given, --set " + rate + "=2");
}

// Twice a repair of 150 years is more than a Duration holds.
TEST(PredictGoodput, DoublesATimeThatCannotBeDoubled) {
  FailureSpec spec = failing(0.1);
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.repair = {.kind = RepairKind::kConstant, .time = hours(24 * 54'750)};
  spec.policy.kind = PolicyKind::kHotSpares;
  spec.policy.spares = 2;
  const GoodputReport report = predict_goodput(with(spec), {.inputs = true});
  EXPECT_FALSE(report.inputs.empty());
}

// A pool that nobody gave is for what fails: twice the rate has one answer, whoever doubles it. As an input of
// its own it is cut in half beside the same failures.
TEST(PredictGoodput, VariesInputsAsIfTheyWereGiven) {
  FailureSpec spec = losing_nodes(PolicyKind::kHotSpares);
  spec.repeats = 4;
  spec.repair.time = hours(6);
  ASSERT_FALSE(spec.policy.spares.has_value());
  const GoodputReport own = predict_goodput(with(spec), {.inputs = true});
  ASSERT_GT(own.spares, 1);
  const auto change_to = [&](const FailureSpec& other) {
    return predict_goodput(with(other)).samples_per_s.mean / own.samples_per_s.mean - 1;
  };
  FailureSpec twice = spec, half = spec;
  std::get<ExponentialFailures>(twice.processes[0].law).rate_per_node_day *= 2;
  half.policy.spares = own.spares / 2;
  EXPECT_GT(predict_goodput(with(twice)).spares, own.spares);
  const auto row = [&](const std::string& name) {
    const auto found = std::ranges::find(own.inputs, "failures." + name, &GoodputInput::name);
    return found == own.inputs.end() ? GoodputInput{} : *found;
  };
  EXPECT_EQ(row("process.rate_per_node_day").twice, change_to(twice));
  EXPECT_EQ(row("policy.spares").value, std::to_string(own.spares));
  EXPECT_EQ(row("policy.spares").half, change_to(half));
}

TEST(PredictGoodput, VariesThePolicysOwnInputs) {
  const auto names = [](const FailureSpec& spec) {
    std::vector<std::string> found;
    for (const GoodputInput& input : predict_goodput(with(spec), {.inputs = true}).inputs)
      found.push_back(input.name);
    return found;
  };
  FailureSpec elastic = losing_nodes(PolicyKind::kElastic);
  elastic.policy.degraded = seconds(420);
  elastic.policy.rejoin = seconds(100);
  EXPECT_THAT(names(elastic), testing::IsSupersetOf({"failures.policy.stall", "failures.policy.rejoin"}));
  FailureSpec background = failing(0.5);
  background.checkpoint = {.mode = CheckpointMode::kAsync,
                           .bytes = Bytes(40'000'000'000),
                           .storage_write = Bandwidth(1e9),
                           .snapshot = Bandwidth(1e9),
                           .slowdown = 1.5};
  EXPECT_THAT(names(background),
              testing::IsSupersetOf({"failures.checkpoint.snapshot", "failures.checkpoint.slowdown"}));
  FailureSpec varuna = losing_nodes(PolicyKind::kVaruna);
  varuna.policy.checkpoint_every = 10;
  EXPECT_THAT(names(varuna),
              testing::IsSupersetOf({"failures.policy.checkpoint_every", "failures.policy.transient_wait"}));
  EXPECT_THAT(names(losing_nodes(PolicyKind::kBamboo)),
              testing::Contains("failures.policy.local_rendezvous"));
  EXPECT_THAT(names(losing_nodes(PolicyKind::kHotSpares)),
              testing::Not(testing::Contains("failures.policy.stall")));
}

}  // namespace
}  // namespace stagecraft
