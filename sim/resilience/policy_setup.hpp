// A policy of a scenario, ready to run: its inputs from the job, and the ideal step of the job.
//
//   ideal   X*, the best throughput of the policy's shapes on up to all nodes, without redundant work. A
//           shape that would beat it on fewer nodes (its reductions are cheaper) counts as the ideal: all
//           nodes could leave some idle.
//   worker  what Bamboo and ReCycle call a node: it holds one stage, of several replicas where a stage is
//           smaller than a node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/job.hpp"
#include "sim/goodput/policy.hpp"
#include "sim/goodput/run_repeats.hpp"
#include "sim/goodput/slowness.hpp"
#include "sim/resilience/degraded_shapes.hpp"
#include "sim/resilience/goodput_job.hpp"
#include "sim/resilience/job_costs.hpp"

namespace stagecraft {

struct SetupRequest {
  GoodputJob& job;
  const FailureSpec& spec;
  bool describe = false;  // --plan
};

struct GoodputSetup {
  PolicyFactory policy = {};
  ShapedStep ideal = {};
  std::string ideal_lacks = {};  // what each step of the policy has besides; empty: nothing
  int nodes = 1;                 // nodes of the job with its spares
  int spares = 0;                // among them
  bool checkpoints = true;
  std::optional<std::int64_t> checkpoint_every = {};  // steps, in place of a missing interval
  AccountOf replay = {};         // replaces the policy: a published evaluation with a table of throughputs
  std::string description = {};  // the plan as text, when requested
  std::vector<std::string> notes = {};
};

// nullopt with diagnostics where the policy does not support the scenario; they have a path and no place.
[[nodiscard]] std::optional<GoodputSetup> set_up(const SetupRequest& request, Diagnostics& diagnostics);

// The parts of set_up that are long; defined in files of their own.
[[nodiscard]] std::optional<GoodputSetup> set_up_oobleck(const SetupRequest& request,
                                                         Diagnostics& diagnostics);
[[nodiscard]] std::optional<GoodputSetup> set_up_redundant(const SetupRequest& request,
                                                           Diagnostics& diagnostics);

// The step of the whole job, as simulated.
[[nodiscard]] ShapedStep full_step(const SetupRequest& request);
// Effect of slow nodes on the job's shapes, as simulated; empty for steps from a table.
[[nodiscard]] SlowReplicas slow_replicas_of(DegradedShapes& shapes, const PolicySpec& policy);
// Does each data replica hold all states? So many of them are lost as one, and hold them together.
[[nodiscard]] bool replicas_are_copies(const GoodputJob& job, int side_by_side);
// Notes where replicas are no full copies, for policies whose other replicas continue without one: the costs
// that are left out.
[[nodiscard]] std::vector<std::string> notes_on_copies(const SetupRequest& request, int side_by_side);
// The time of a node's states over its network; zero where the network is not known.
[[nodiscard]] Duration peer_transfer(const JobCosts& costs);
// The reconfiguration of Oobleck and ReCycle after a change: the whole of it as given, else processes and
// groups without the state.
[[nodiscard]] Duration reconfigure_time(const SetupRequest& request);

}  // namespace stagecraft
