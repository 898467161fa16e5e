#include "sim/resilience/setup_parts.hpp"

#include <fmt/format.h>

#include <string_view>

#include "base/ceil_div.hpp"
#include "base/check.hpp"
#include "sim/goodput/policies/throughput_table.hpp"
#include "sim/resilience/held_states.hpp"

namespace stagecraft {

std::int64_t samples_of_table(const SetupRequest& request) {
  const std::int64_t given = request.spec.policy.samples_per_step;
  return given > 0 ? given : request.job.scenario.training.global_batch_size;
}

ShapedStep full_step(const SetupRequest& request) {
  const PolicySpec& policy = request.spec.policy;
  if (!policy.throughput.empty()) {
    const std::int64_t samples = samples_of_table(request);
    const auto best = best_of(policy.throughput, samples, request.job.shapes.nodes());
    SC_CHECK(best.has_value(), "a table that does not train is refused");
    return *best;
  }
  return {.duration = request.job.simulation.report.iteration_time,
          .samples = request.job.scenario.training.global_batch_size,
          .nodes = request.job.shapes.nodes()};
}

Duration reconfigure_time(const SetupRequest& request) {
  return request.spec.policy.reconfigure.value_or(request.spec.policy.swap);
}

int pipeline_nodes(const GoodputJob& job) {
  const JobCosts& costs = job.costs;
  return job.plan().pipeline * ceil_div(costs.stage_gpus, costs.gpus_per_node);
}

bool replicas_are_copies(const GoodputJob& job, int side_by_side) {
  const ParallelPlan& plan = job.plan();
  const JobStates states{
      .model = job.scenario.model, .plan = plan, .zero_stage = job.scenario.parallelism.zero_stage};
  return are_copies(held_by_replicas(states, side_by_side), ceil_div(plan.data, side_by_side));
}

std::string what_keeps_states_apart(const GoodputJob& job) {
  const ParallelPlan& plan = job.plan();
  const int zero = job.scenario.parallelism.zero_stage;
  if (zero > 0) return fmt::format("zero_stage {} shards each state over {} ranks", zero, plan.shard_group);
  const int holders = plan.expert * plan.expert_tensor;
  if (holders > plan.tensor * plan.context)
    return fmt::format("experts lie on {} ranks of several replicas", holders);
  return fmt::format("{} replicas on {} nodes", plan.data, job.shapes.nodes());
}

std::vector<std::string> notes_on_copies(const SetupRequest& request, int side_by_side) {
  if (replicas_are_copies(request.job, side_by_side)) return {};
  const std::string_view policy = kPolicyNames[static_cast<std::size_t>(request.spec.policy.kind)];
  return {
      fmt::format("{}: {} goes on with replicas that lack the states of a lost one, and what it takes to "
                  "have these again is not counted (checkpoint-restart counts it)",
                  what_keeps_states_apart(request.job), policy)};
}

}  // namespace stagecraft
