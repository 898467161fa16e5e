#include "sim/resilience/pipeline_times.hpp"

#include <algorithm>
#include <numeric>
#include <variant>

#include "base/check.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

PipelineTimes::PipelineTimes(const Scenario& scenario) : base_(scenario) {
  Diagnostics refusals;
  const std::optional<Prepared> prepared = prepare(scenario, refusals);
  SC_CHECK(prepared && std::holds_alternative<TransformerSpec>(scenario.model) && scenario.cluster,
           "a transformer that runs somewhere");
  const ParallelPlan& plan = prepared->plan;
  const int ranks = plan.tensor * plan.context;
  const int holders = plan.expert * plan.expert_tensor;
  replicas_ = holders / std::gcd(holders, ranks);
  gpus_per_stage_ = ranks * replicas_;
  ParallelSpec& parallelism = base_.parallelism;
  parallelism.data = replicas_;
  parallelism.virtual_stages = 1;
  parallelism.embedding_as_layer = parallelism.loss_as_layer = false;
  parallelism.zero_stage = 0;
  parallelism.zero_group.reset();
  base_.order.reset();
  base_.schedule = {.name = "1f1b"};
  base_.network.background.clear();
  base_.cluster->links.clear();
  base_.cluster->gpus_used = 0;
}

Scenario PipelineTimes::scenario_of(const std::vector<int>& layers_per_stage, const std::vector<int>& nodes,
                                    int micro_batches) const {
  Scenario scenario = base_;
  ParallelSpec& parallelism = scenario.parallelism;
  parallelism.pipeline = static_cast<int>(layers_per_stage.size());
  parallelism.stage_layers.assign(layers_per_stage.begin(), layers_per_stage.end());
  --parallelism.stage_layers.front();  // the embedding
  --parallelism.stage_layers.back();   // the head
  scenario.training.global_batch_size =
      scenario.training.micro_batch_size * *parallelism.data * micro_batches;
  const std::vector<NodeGroup>& groups = base_.cluster->groups;
  SC_CHECK(nodes.size() == groups.size(), "every group of the cluster has a count");
  scenario.cluster->groups.clear();
  scenario.group_profiles.clear();
  int room = 0;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (nodes[group] == 0) continue;
    scenario.cluster->groups.push_back({.node = groups[group].node, .count = nodes[group] * replicas_});
    room += nodes[group] * replicas_ * groups[group].node.gpus;
    if (!base_.group_profiles.empty()) scenario.group_profiles.push_back(base_.group_profiles[group]);
  }
  if (!scenario.group_profiles.empty()) scenario.profile = scenario.group_profiles.front();
  if (scenario.group_profiles.size() == 1) scenario.group_profiles.clear();
  const int gpus = gpus_per_stage_ * parallelism.pipeline;
  if (gpus < room) scenario.cluster->gpus_used = gpus;
  return scenario;
}

Duration PipelineTimes::time(const std::vector<int>& layers_per_stage, const std::vector<int>& nodes,
                             int micro_batches) const {
  SC_CHECK(!layers_per_stage.empty() && std::ranges::min(layers_per_stage) >= 1 && micro_batches >= 1,
           "stages have layers, and work");
  return simulate(scenario_of(layers_per_stage, nodes, micro_batches)).iteration_time;
}

}  // namespace stagecraft
