// Losses of copies in memory, with a pencil and against jobs.
#include "sim/goodput/memory_losses.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <optional>

#include "sim/goodput/history.hpp"
#include "sim/goodput/policies/checkpoint_restart.hpp"
#include "sim/goodput/trace_file.hpp"
#include "tests/sim/goodput/failure_specs.hpp"
#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft {
namespace {

using made::constant;
using made::failures;
using made::seconds;
using std::chrono::hours;

constexpr double kDay = 86'400;
constexpr Duration kDays = hours(24);

Cause node_failure() {
  return {.name = "gpu", .severity = FailureSeverity::kNode};
}

double losses_a_day(const FailureSpec& spec, int nodes, const HostCopies& how) {
  return memory_losses_per_second(spec, nodes, how) * kDay;
}

// A stall of 10 + 590 s begins again with p = 1 - e^(-λ · 600 s). Of eight nodes, d of which are lost, any two are
// a pair in 1/7 of the cases, three contain one in 24 of 56, four in 54 of 70, five always. Of six nodes three are
// a group of three in 2 of 20 cases, four contain one in 6 of 15, five always.
TEST(MemoryLosses, OfNodesAloneAreCoincidences) {
  FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 0.5}, node_failure(), 100 * kDays);
  spec.detect = seconds(10);
  const auto another = [](double p, double h) { return p * h / (1 - p * (1 - h)); };
  const auto pairs_of_eight = [&](double p) {
    const double second = another(p, 7 / 8.), third = another(p, 6 / 8.), fourth = another(p, 5 / 8.);
    const double five = third * fourth * another(p, 4 / 8.);
    return 4 * second *
           ((1 - third) / 7 + third * (1 - fourth) * 24 / 56 + (third * fourth - five) * 54 / 70 + five);
  };
  EXPECT_NEAR(losses_a_day(spec, 8, {.copies = 2, .stall = seconds(590)}),
              pairs_of_eight(-std::expm1(-4 * 600 / kDay)), 1e-9);
  const double p = -std::expm1(-3 * 600 / kDay);
  const double four = another(p, 3 / 6.), five = four * another(p, 2 / 6.);
  EXPECT_NEAR(
      losses_a_day(spec, 6, {.copies = 3, .stall = seconds(590)}),
      3 * another(p, 5 / 6.) * another(p, 4 / 6.) * ((1 - four) * 2 / 20 + (four - five) * 6 / 15 + five),
      1e-9);
  EXPECT_DOUBLE_EQ(losses_a_day(spec, 8, {.copies = 1, .stall = seconds(590)}), 4);
  EXPECT_DOUBLE_EQ(losses_a_day(spec, 1, {.copies = 2, .stall = seconds(590)}), 0.5);
  spec.repair = constant(hours(5));
  EXPECT_NEAR(losses_a_day(spec, 8, {.copies = 2, .stall = seconds(590), .waits = true}),
              pairs_of_eight(-std::expm1(-4 * (600 + 5 * 3600) / kDay)), 1e-9);
}

TEST(MemoryLosses, AreNoneOfProcesses) {
  Cause process = node_failure();
  process.severity = FailureSeverity::kProcess;
  const FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 9}, process, 100 * kDays);
  EXPECT_EQ(memory_losses_per_second(spec, 8, {.copies = 1, .stall = seconds(600)}), 0);
}

// A quarter of the components' failures costs the node.
TEST(MemoryLosses, CountTheComponentsThatCostANode) {
  FailureSpec spec;
  spec.processes = {{.law = ComponentFailures{.rates_per_node_day = {0.1, 0.3}},
                     .causes = {node_failure(), {.name = "bug", .severity = FailureSeverity::kProcess}}}};
  spec.horizon = 100 * kDays;
  EXPECT_DOUBLE_EQ(losses_a_day(spec, 8, {.copies = 1}), 0.8);
}

// Two of the six pairs of a domain of four are groups. Of three nodes one is in no group: one pair of three.
TEST(MemoryLosses, OfBurstsAreTheGroupsOfTheirDomain) {
  BurstFailures law{.bursts_per_day = 3, .domain_nodes = 4, .sizes = {{2, 1}}};
  EXPECT_NEAR(losses_a_day(failures(law, node_failure(), kDays), 8, {.copies = 2}), 1, 1e-12);
  law.domain_nodes = 3;
  EXPECT_NEAR(losses_a_day(failures(law, node_failure(), kDays), 6, {.copies = 2}), 1, 1e-12);
  // Geometric of mean 2 in a domain of two: half of the bursts take both.
  law = {.bursts_per_day = 3, .domain_nodes = 2, .mean_size = 2};
  EXPECT_NEAR(losses_a_day(failures(law, node_failure(), kDays), 8, {.copies = 2}), 1.5, 1e-12);
  EXPECT_NEAR(losses_a_day(failures(law, node_failure(), kDays), 8, {.copies = 1}), 3, 1e-12);
}

// All corruption that is found late: the copies are wrong by then.
TEST(MemoryLosses, OfCorruptionAreThoseFoundLate) {
  SilentCorruption law{.rate_per_node_day = 0.5};
  EXPECT_EQ(losses_a_day(failures(law, node_failure(), kDays), 8, {}), 0);
  law.discovery = hours(2);
  EXPECT_DOUBLE_EQ(losses_a_day(failures(law, node_failure(), kDays), 8, {}), 4);
}

// At most what a trace takes: here two moments.
TEST(MemoryLosses, OfATraceAreAtMostItsFailures) {
  Diagnostics diagnostics;
  const std::optional<Trace> trace = parse_trace(
      "time_s,event,node\n0,add,a\n0,add,b\n1000,remove,a\n1010,add,a\n2000,remove,a\n2000,remove,b\n",
      "t.csv", diagnostics);
  ASSERT_TRUE(trace);
  const FailureSpec spec = failures(TraceReplay{.trace = *trace}, node_failure(), kDays);
  EXPECT_DOUBLE_EQ(losses_a_day(spec, 2, {.copies = 2, .stall = seconds(100)}), 2);
}

// Jobs that load from storage only where they must: 7 s each time, and nothing from memory.
TEST(MemoryLosses, AreWhatSendsJobsToStorage) {
  FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 0.25}, node_failure(), 3000 * kDays);
  spec.repair = constant(Duration(1));
  spec.detect = seconds(10);
  const Checkpointing how{
      .mode = CheckpointMode::kInMemory, .interval = 10 * kDays, .load = seconds(7), .copies = 2};
  JobSpec job = made::job(3000 * 86'400, 1, how);
  job.timeline = false;
  Duration loading{};
  constexpr int kRepeats = 50;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    CheckpointRestart policy = made::restarted({.nodes = 8, .step = 1, .restart = 590});
    loading += run_job(job, history_of(spec, 8, 3, repeat), policy)[Bucket::kStateTransfer];
  }
  const double expected = losses_a_day(spec, 8, {.copies = 2, .stall = seconds(590)}) * 3000 * kRepeats;
  EXPECT_NEAR(to_seconds(loading) / 7, expected, 3 * std::sqrt(expected) + 0.03 * expected);
}

// Restarts of ten minutes with a failure about as often: most begin again, and empty more places.
TEST(MemoryLosses, AreWhatSendsJobsToStorageWhereFailuresComeAsFastAsRestarts) {
  FailureSpec spec = failures(ExponentialFailures{.rate_per_node_day = 5}, node_failure(), 300 * kDays);
  spec.repair = constant(Duration(1));
  spec.detect = seconds(10);
  for (const int copies : {2, 3}) {
    SCOPED_TRACE(copies);
    JobSpec job = made::job(300 * 86'400, 1,
                            Checkpointing{.mode = CheckpointMode::kInMemory,
                                          .interval = seconds(50),
                                          .block = seconds(1),
                                          .copies = copies});
    job.timeline = false;
    double losses = 0, training = 0;
    for (int repeat = 0; repeat < 4; ++repeat) {
      CheckpointRestart policy = made::restarted({.nodes = 30, .step = 1, .restart = 600});
      const Account account = run_job(job, history_of(spec, 30, 3, repeat), policy);
      losses += static_cast<double>(account.went_back);
      for (const Bucket bucket :
           {Bucket::kProductive, Bucket::kDegraded, Bucket::kLostWork, Bucket::kCheckpoint})
        training += to_seconds(account[bucket]);
    }
    const double expected =
        memory_losses_per_second(spec, 30, {.copies = copies, .stall = seconds(600)}) * training;
    EXPECT_NEAR(losses, expected, 3 * std::sqrt(expected) + 0.03 * expected);
  }
}

}  // namespace
}  // namespace stagecraft
