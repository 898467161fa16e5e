#include "sim/resilience/pipeline_times.hpp"

#include <algorithm>
#include <variant>

#include "base/check.hpp"
#include "sim/resilience/plain_pipeline.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {
namespace {

// Sums the stages of each rank, in order; for the output to the next rank it takes the last.
template <class T>
std::vector<T> by_rank(const std::vector<T>& stages, const std::vector<int>& counts, bool last_alone) {
  std::vector<T> ranks;
  if (stages.empty()) return ranks;
  std::size_t stage = 0;
  for (const int count : counts) {
    T held{};
    for (int i = 0; i < count; ++i, ++stage) {
      const T one = of_stage(stages, stage);
      held = last_alone ? one : held + one;
    }
    ranks.push_back(held);
  }
  return ranks;
}

StagesSpec by_rank(const StagesSpec& model, const std::vector<int>& counts) {
  StagesSpec ranks = model;
  for (auto* costs : {&ranks.forward, &ranks.input_gradient, &ranks.weight_gradient, &ranks.recompute})
    *costs = by_rank(*costs, counts, false);
  ranks.gradient = by_rank(ranks.gradient, counts, false);
  ranks.activation = by_rank(ranks.activation, counts, true);
  ranks.message = by_rank(ranks.message, counts, true);
  return ranks;
}

}  // namespace

PipelineTimes::PipelineTimes(const Scenario& scenario) {
  Diagnostics refusals;
  const std::optional<Prepared> prepared = prepare(scenario, refusals);
  SC_CHECK(prepared.has_value(), "a scenario that can run");
  base_ = plain_pipeline(scenario, prepared->plan);
  stage_gpus_ = prepared->plan.tensor * prepared->plan.context;
}

// Places nodes[i] nodes of group i in the scenario.
void PipelineTimes::place(const std::vector<int>& nodes, Scenario& scenario) const {
  const std::vector<NodeGroup>& groups = base_.cluster->groups;
  SC_CHECK(nodes.size() == groups.size(), "every group of the cluster has a count");
  std::vector<NodeGroup> placed;
  scenario.group_profiles.clear();
  int room = 0;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (nodes[group] == 0) continue;
    const int count = nodes[group] * *scenario.parallelism.data;
    placed.push_back({.node = groups[group].node, .count = count});
    room += count * groups[group].node.gpus;
    if (!base_.group_profiles.empty()) scenario.group_profiles.push_back(base_.group_profiles[group]);
  }
  scenario.cluster = with_groups(*base_.cluster, std::move(placed));
  if (!scenario.group_profiles.empty()) scenario.profile = scenario.group_profiles.front();
  if (scenario.group_profiles.size() == 1) scenario.group_profiles.clear();
  const int gpus = stage_gpus_ * *scenario.parallelism.data * scenario.parallelism.pipeline;
  if (gpus < room) scenario.cluster->gpus_used = gpus;
}

Scenario PipelineTimes::scenario_of(const std::vector<int>& layers_per_stage, const std::vector<int>& nodes,
                                    int micro_batches, int pipelines) const {
  Scenario scenario = base_;
  ParallelSpec& parallelism = scenario.parallelism;
  parallelism.data = pipelines;
  parallelism.pipeline = static_cast<int>(layers_per_stage.size());
  if (auto* stages = std::get_if<StagesSpec>(&scenario.model)) {
    *stages = by_rank(*stages, layers_per_stage);
  } else {
    parallelism.stage_layers.assign(layers_per_stage.begin(), layers_per_stage.end());
    --parallelism.stage_layers.front();  // the embedding
    --parallelism.stage_layers.back();   // the head
  }
  scenario.training.global_batch_size = scenario.training.micro_batch_size * pipelines * micro_batches;
  if (scenario.cluster) place(nodes, scenario);
  return scenario;
}

Duration PipelineTimes::time(const std::vector<int>& layers_per_stage, const std::vector<int>& nodes,
                             int micro_batches, int pipelines) const {
  SC_CHECK(!layers_per_stage.empty() && std::ranges::min(layers_per_stage) >= 1 && micro_batches >= 1 &&
               pipelines >= 1,
           "pipelines have stages with layers, and work");
  return times_.answer({layers_per_stage, nodes, micro_batches, pipelines}, [&] {
    return simulate(scenario_of(layers_per_stage, nodes, micro_batches, pipelines)).iteration_time;
  });
}

}  // namespace stagecraft
