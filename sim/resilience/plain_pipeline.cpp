#include "sim/resilience/plain_pipeline.hpp"

#include <numeric>
#include <utility>

namespace stagecraft {

Scenario plain_pipeline(const Scenario& scenario, const ParallelPlan& plan) {
  Scenario plain = scenario;
  plain.job_gpus = plan.gpus();
  ParallelSpec& parallelism = plain.parallelism;
  const int ranks = plan.tensor * plan.context;
  parallelism.expert_tensor = std::gcd(plan.expert_tensor, ranks);
  parallelism.expert = std::gcd(plan.expert, ranks / parallelism.expert_tensor);
  const bool on_all = parallelism.expert * parallelism.expert_tensor == ranks;
  parallelism.order = {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kPipeline, Axis::kData};
  if (plan.has_experts() && !on_all) std::swap(parallelism.order[3], parallelism.order[4]);
  parallelism.virtual_stages = 1;
  parallelism.stage_layers.clear();
  parallelism.embedding_as_layer = parallelism.loss_as_layer = false;
  parallelism.zero_stage = 0;
  parallelism.zero_group.reset();
  plain.order.reset();
  plain.schedule = {.name = "1f1b"};
  plain.network.background.clear();
  return plain;
}

}  // namespace stagecraft
