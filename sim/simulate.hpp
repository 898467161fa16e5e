// The composition of all steps: from a scenario to a report.
//
//   YAML -> Scenario -> (Model, Cluster, ParallelPlan) -> Schedule -> Program -> Timeline -> Report
//
// Pure and reentrant: call it from as many threads as you like.
#pragma once

#include <optional>

#include "base/diagnostic.hpp"
#include "sim/engine/engine.hpp"
#include "sim/lower/lower.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

struct SimulateOptions {
  bool unfold = false;  // simulate every replica
};

// A scenario that passed every check, ready to run.
struct Prepared {
  ParallelPlan plan;
  Schedule schedule;
};

// Feasibility without simulation: placement, divisibility, the schedule's own constraints, the profile's
// support.
[[nodiscard]] std::optional<Prepared> prepare(const Scenario& scenario, Diagnostics& diagnostics);

struct Simulation {
  Prepared prepared;
  IterationPrices prices;
  Program program;
  Timeline timeline;
  NetworkReport network;  // set on shared links
  Report report;
};

// throws ScenarioError when prepare() refuses.
[[nodiscard]] Simulation simulate_in_full(const Scenario& scenario, const SimulateOptions& options = {});
[[nodiscard]] Report simulate(const Scenario& scenario, const SimulateOptions& options = {});

// The ledger alone, without running.
[[nodiscard]] MemoryLedger memory_of(const Scenario& scenario);

}  // namespace stagecraft
