// A policy of a scenario, ready to run: its inputs from the job, and the ideal step of the job.
//
//   ideal   X*, the best throughput of the policy's shapes on up to all nodes, without redundant work. A
//           shape that would beat it on fewer nodes (its reductions are cheaper) counts as the ideal: all
//           nodes could leave some idle.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/policy.hpp"
#include "sim/goodput/run_repeats.hpp"
#include "sim/goodput/slowness.hpp"
#include "sim/resilience/degraded_shapes.hpp"
#include "sim/resilience/goodput_job.hpp"

namespace stagecraft {

struct SetupRequest {
  GoodputJob& job;
  const FailureSpec& spec;
  bool describe = false;  // --plan
};

struct GoodputSetup {
  PolicyFactory policy = {};  // empty where there is a replay
  ShapedStep ideal = {};
  std::string ideal_lacks = {};  // what each step of the policy has besides; empty: nothing
  int nodes = 1;                 // nodes of the job with its spares
  int spares = 0;                // among them
  bool checkpoints = true;       // does the job make any?
  std::optional<std::int64_t> checkpoint_every = {};  // steps, in place of a missing interval
  AccountOf replay = {};         // in place of `policy`: a published evaluation with a table of throughputs
  std::string description = {};  // the plan as text, when requested
  std::vector<std::string> notes = {};

  [[nodiscard]] int job_nodes() const { return nodes - spares; }  // those that train
};

// nullopt with diagnostics where the policy does not support the scenario; they have a path and no place.
[[nodiscard]] std::optional<GoodputSetup> set_up(const SetupRequest& request, Diagnostics& diagnostics);

// Effect of slow nodes on the job's shapes, as simulated; empty for steps from a table.
[[nodiscard]] SlowReplicas slow_replicas_of(DegradedShapes& shapes, const PolicySpec& policy);

}  // namespace stagecraft
