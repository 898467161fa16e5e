// Jobs with failures that are given by hand.
//
// System: abstract stages of 1 s each, 2 replicas of 2 stages on 4 nodes; (m + 1) · 3 s an iteration for m
//         micro-batches each: 4 samples in 9 s.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/resilience/predict_goodput.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {

inline Scenario two_pipelines() {
  return scenario_of(
      "stagecraft: 1\n"
      "model: {family: stages, forward: 1 s, input_gradient: 1 s, weight_gradient: 1 s}\n"
      "parallelism: {pipeline: 2, data: 2}\n"
      "training: {global_batch_size: 4, micro_batch_size: 1}\n");
}

// Exponential failures of processes, found out at once.
inline FailureSpec failing(double rate_per_node_day) {
  FailureSpec spec;
  spec.processes = {{.law = ExponentialFailures{.rate_per_node_day = rate_per_node_day},
                     .causes = {{.name = "process", .severity = FailureSeverity::kProcess}}}};
  spec.policy = {.kind = PolicyKind::kCheckpointRestart, .restart = {{1, std::chrono::seconds(60)}}};
  spec.checkpoint = {.block = std::chrono::seconds(10), .load = std::chrono::seconds(30)};
  spec.horizon = std::chrono::hours(240);
  spec.repeats = 20;
  return spec;
}

inline Scenario with(FailureSpec spec) {
  Scenario scenario = two_pipelines();
  scenario.failures = std::move(spec);
  return scenario;
}

inline double sum_of(const std::array<double, kBuckets>& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), 0.0);
}

inline double seconds_in(const GoodputReport& report, Bucket bucket) {
  return report.buckets_s[static_cast<std::size_t>(bucket)];
}

// Nodes that are lost and come back, under the policy as its loader fills it in.
inline FailureSpec losing_nodes(PolicyKind kind) {
  FailureSpec spec = failing(0.5);
  spec.processes[0].causes[0].severity = FailureSeverity::kNode;
  spec.repair = {.kind = RepairKind::kConstant, .time = std::chrono::hours(2)};
  spec.policy.kind = kind;
  spec.policy.swap = std::chrono::seconds(7);
  spec.policy.global_rendezvous = std::chrono::seconds(30);
  spec.policy.local_rendezvous = std::chrono::seconds(20);
  spec.policy.takeover_slowdown = 1.5;
  spec.policy.rebalance_threshold = 0.05;
  spec.policy.transient_wait = std::chrono::seconds(60);
  spec.policy.stall = std::chrono::seconds(180);
  return spec;
}

inline std::vector<Diagnostic> refusal_of(const Scenario& scenario) {
  try {
    (void)predict_goodput(scenario);
  } catch (const ScenarioError& error) {
    return error.diagnostics();
  }
  ADD_FAILURE() << "was not refused";
  return {Diagnostic{}};
}

}  // namespace stagecraft
