// A job for goodput: what of it depends on neither its failures nor its policy, worked out once for all runs.
#pragma once

#include <memory>

#include "sim/goodput/policies/oobleck.hpp"
#include "sim/resilience/degraded_shapes.hpp"
#include "sim/resilience/job_costs.hpp"
#include "sim/resilience/pipeline_times.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

struct GoodputJob {
  const Scenario& scenario;
  Simulation simulation;
  DegradedShapes shapes;
  PipelineTimes pipelines;
  JobCosts costs;
  // Oobleck's: made by the first setup that needs it, for its `max_failures`, `cost` and `rules`, and kept for
  // those with other failures. It refers to the pipelines, and policies refer to it.
  std::unique_ptr<SharedPlanner> planner = {};

  explicit GoodputJob(const Scenario& job)
      : scenario(job),
        simulation(simulate_in_full(job)),
        shapes(job, simulation),
        pipelines(job),
        costs(job_costs(job, simulation)) {}

  [[nodiscard]] const ParallelPlan& plan() const { return simulation.prepared.plan; }
  [[nodiscard]] Duration iteration() const { return simulation.report.iteration_time; }
};

}  // namespace stagecraft
