#include "sim/scenario/scenario.hpp"

#include <algorithm>

#include "sim/plan/parallel_plan.hpp"

namespace stagecraft {

SourceLocation place_of(const Scenario& scenario, const std::string& path) {
  const auto written = scenario.origins.find(path);
  return written != scenario.origins.end() ? written->second : SourceLocation{.file = scenario.source};
}

const ClusterSpec& whole_cluster(const Scenario& scenario) {
  return scenario.fabric ? *scenario.fabric : *scenario.cluster;
}

std::int64_t replicas_of(const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  if (parallel.data) return std::int64_t{*parallel.data} * parallel.context;
  if (!scenario.cluster) return parallel.context;
  return scenario.cluster->gpu_count() / (std::int64_t{parallel.tensor} * parallel.pipeline);
}

namespace {

// Do `ranks` replicas, data x context, have more than one of some weights?
bool are_several(const Scenario& scenario, std::int64_t ranks) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  const bool has_experts = model != nullptr && model->numbers().with_experts() > 0;
  return hold_weights_twice(ranks, scenario.parallelism, has_experts);
}

}  // namespace

bool has_replicas(const Scenario& scenario) {
  return are_several(scenario, replicas_of(scenario));
}

int zero_stage_in_effect(const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  const std::int64_t group = parallel.zero_group ? *parallel.zero_group : replicas_of(scenario);
  return are_several(scenario, group) ? parallel.zero_stage : 0;
}

bool reshards_after_forward(const Scenario& scenario) {
  return scenario.options.reshards(zero_stage_in_effect(scenario), scenario.parallelism.pipeline);
}

bool keeps_gradients_whole(const Scenario& scenario) {
  return scenario.options.keeps_gradients_whole(zero_stage_in_effect(scenario),
                                                scenario.parallelism.pipeline);
}

OptionsSpec options_in_effect(const Scenario& scenario) {
  OptionsSpec options = scenario.options;
  options.reshard_after_forward = reshards_after_forward(scenario);
  options.memory.whole_gradients = keeps_gradients_whole(scenario);
  return options;
}

bool names_software(const Scenario& scenario) {
  return scenario.origins.contains("options.software");
}

WhatRan what_ran(const Scenario& scenario) {
  if (names_software(scenario)) return WhatRan::kNamed;
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  const bool dense = model == nullptr || !model->experts;
  const bool over_stages = scenario.parallelism.pipeline > 1 && zero_stage_in_effect(scenario) < 2;
  return dense && over_stages ? WhatRan::kUnnamedPipeline : WhatRan::kUnnamed;
}

std::int64_t samples_at_once(const Scenario& scenario) {
  return replicas_of(scenario) / scenario.parallelism.context * scenario.training.micro_batch_size;
}

bool runs_fused_pairs(const Scenario& scenario) {
  if (!scenario.order) {
    const ScheduleKind* kind = find_schedule(scenario.schedule.name);
    return kind != nullptr && kind->fused_pairs;
  }
  return std::ranges::any_of(scenario.order->schedule.ranks,
                             [](const auto& order) { return std::ranges::any_of(order, &Action::fused); });
}

bool overlaps_expert_exchanges(const Scenario& scenario) {
  return scenario.overlap.expert && scenario.parallelism.expert > 1 && !runs_fused_pairs(scenario) &&
         scenario.training.global_batch_size > samples_at_once(scenario);
}

}  // namespace stagecraft
