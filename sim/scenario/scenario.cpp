#include "sim/scenario/scenario.hpp"

#include <algorithm>

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

bool has_replicas(const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  const std::int64_t replicas = replicas_of(scenario);
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr || model->layers_of(LayerKind::kExperts) == 0) return replicas > 1;
  return replicas > 1 || replicas * parallel.tensor > std::int64_t{parallel.expert} * parallel.expert_tensor;
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
