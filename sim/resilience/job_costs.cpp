#include "sim/resilience/job_costs.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/ceil_div.hpp"
#include "base/check.hpp"
#include "models/memory.hpp"
#include "models/operators.hpp"
#include "models/shard.hpp"
#include "sim/lower/prices.hpp"
#include "sim/lower/stage_parameters.hpp"
#include "sim/price_iteration.hpp"
#include "sim/resilience/plain_pipeline.hpp"
#include "sim/simulate.hpp"
#include "sim/simulate_parts.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {
namespace {

// Weights and optimizer, of which `weights` is nothing where the masters are all the weights.
struct KeptBytes {
  ByteShare weights, optimizer;
};

// Of `parameters`, of which the shard may keep `products` in fp8. What is cast from weights or gathered for a
// moment is no state; masters are written in fp32, also where 16 bits of them are kept.
KeptBytes kept_bytes(const ParameterShare& parameters, const ParameterShare& products, Shard shard) {
  shard.master_remainders = false;
  return {.weights = masters_alone(shard) ? ByteShare{} : weight_bytes(parameters, products, shard),
          .optimizer = parameters * Bytes(state_bytes(shard).optimizer)};
}

// The shard that a checkpoint holds: weights that a GPU keeps in fp8 are written in 16 bit.
//   source  NVIDIA/nvidia-resiliency-ext, checkpointing/async_ckpt/filesystem_async.py,
//           _clone_or_dequantize_if_needed
Shard saved_shard(const Scenario& scenario, const ParallelPlan& plan) {
  Shard shard = pricing_request(scenario, plan, false).shard;
  shard.fp8_parameters = false;
  return shard;
}

// The copy of a tied word embedding that the head's stage holds, on all tensor ranks: a checkpoint has it once.
//   source  NVIDIA/Megatron-LM, core/models/common/language_module/language_module.py,
//           tie_embeddings_and_output_weights_state_dict: the head's is a replica of the embedding's
Bytes tied_copy(const TransformerSpec& model, const ParallelPlan& plan, const Shard& shard) {
  if (!model.tied_embeddings) return {};
  const KeptBytes kept = kept_bytes({.dense = word_parameters(model, plan.tensor)}, {}, shard);
  return (kept.weights.dense + kept.optimizer.dense) * plan.tensor;
}

// The scenario with a stage for each layer and for each end.
Scenario layer_by_layer(const Scenario& scenario, const TransformerSpec& model, const ParallelPlan& plan) {
  Scenario probe = plain_pipeline(scenario, plan);
  ParallelSpec& parallelism = probe.parallelism;
  parallelism.pipeline = static_cast<int>(model.layers) + 2;
  parallelism.stage_layers.assign(static_cast<std::size_t>(parallelism.pipeline), 1);
  parallelism.stage_layers.front() = parallelism.stage_layers.back() = 0;
  parallelism.data = 1;
  probe.training.global_batch_size = probe.training.micro_batch_size;
  return probe;
}

ClusterSpec cluster_for(const ClusterSpec& cluster, std::size_t group, int gpus) {
  const NodeSpec& node = cluster.groups[group].node;
  return with_groups(cluster, {{.node = node, .count = ceil_div(gpus, node.gpus)}});
}

// The stage's state on all ranks together.
Bytes state_of_stage(const TransformerSpec& model, const ParallelPlan& plan, int stage, const Shard& shard) {
  const KeptBytes kept =
      kept_bytes(stage_share(model, plan, stage), stage_products(model, plan, stage), shard);
  const auto on_all = [&](const ByteShare& bytes) {
    return bytes.dense * plan.tensor + bytes.experts * (plan.expert * plan.expert_tensor);
  };
  return on_all(kept.weights) + on_all(kept.optimizer);
}

// On nodes of one group.
std::vector<JobLayer> transformer_layers(const Scenario& scenario, const TransformerSpec& model,
                                         const ParallelPlan& full, std::size_t group = 0) {
  const Scenario probe = layer_by_layer(scenario, model, full);
  Diagnostics refusals;
  const std::optional<ParallelPlan> plan = resolve({.model = probe.model,
                                                    .cluster = nullptr,
                                                    .parallelism = probe.parallelism,
                                                    .training = probe.training,
                                                    .origins = probe.origins,
                                                    .fallback = {.file = probe.source}},
                                                   refusals);
  SC_CHECK(plan.has_value(), "a model whose stages can be placed can be placed layer by layer");
  const Cluster cluster(cluster_for(*probe.cluster, group, plan->gpus()));
  const HardwareProfile& profile =
      scenario.group_profiles.empty() ? *scenario.profile : scenario.group_profiles[group];
  const PricingRequest request = pricing_request(probe, *plan, false);
  const IterationPrices prices = price_transformer(model, profile, cluster, request);
  const Shard saved = saved_shard(scenario, full);
  std::vector<JobLayer> layers;
  for (int stage = 0; stage < plan->stage_count(); ++stage) {
    const StagePrice& price = prices.stages[static_cast<std::size_t>(stage)];
    layers.push_back({.forward = price.forward.total(),
                      .backward = price.backward(),
                      .state = state_of_stage(model, *plan, stage, request.shard),
                      .saved = state_of_stage(model, *plan, stage, saved)});
  }
  layers.back().saved -= tied_copy(model, *plan, saved);
  return layers;
}

// Nothing of the software counts here but the precisions.
std::vector<JobLayer> abstract_layers(const Scenario& scenario, const StagesSpec& model,
                                      const Simulation& simulation) {
  const TrainingSpec& training = scenario.training;
  const StateBytes bytes = state_bytes(Shard{.precision = training.precision,
                                             .autocast = training.autocast,
                                             .gradient = training.gradient,
                                             .moment = training.moment,
                                             .master_weights = training.master_weights});
  std::vector<JobLayer> layers;
  // In a bidirectional pipeline there are two equal copies of each stage.
  for (std::size_t stage = 0; stage < simulation.prepared.plan.stages.size(); ++stage) {
    const StagePrice& price = simulation.prices.stages[stage];
    const Bytes state = of_stage(model.gradient, stage) * (bytes.weight + bytes.optimizer) / bytes.gradient;
    layers.push_back(
        {.forward = price.forward.total(), .backward = price.backward(), .state = state, .saved = state});
  }
  return layers;
}

// Of the fullest GPU, in its own memory or in its host's.
Bytes state_of_gpu(const Scenario& scenario, const TransformerSpec& model, const ParallelPlan& plan) {
  const Shard shard = pricing_request(scenario, plan, false).shard;
  const int zero = scenario.parallelism.zero_stage;
  const auto held = [&](const ByteShare& whole, bool cut) {
    return (cut ? sharded(whole, plan) : whole).all();
  };
  Bytes most{};
  for (int rank = 0; rank < plan.pipeline; ++rank) {
    const KeptBytes kept = kept_bytes(rank_share(model, plan, rank), rank_products(model, plan, rank), shard);
    most = std::max(most, held(kept.optimizer, zero >= 1) + held(kept.weights, zero >= 3));
  }
  return most;
}

// Abstract stages: a rank holds its stages'.
Bytes state_of_gpu(const std::vector<JobLayer>& layers, const ParallelPlan& plan) {
  std::vector<Bytes> ranks(static_cast<std::size_t>(plan.pipeline));
  for (const HeldStage& held : plan.places().all()) {
    const int rank = plan.places().rank_of(held.stage, held.copy);
    ranks[static_cast<std::size_t>(rank)] += layers[static_cast<std::size_t>(held.stage)].state;
  }
  return *std::max_element(ranks.begin(), ranks.end());
}

Duration sum_of(const std::vector<std::vector<PassPrice>>& buckets) {
  Duration sum{};
  for (const auto& chunk : buckets)
    for (const PassPrice& bucket : chunk) sum += bucket.total();
  return sum;
}

Duration network_busy(const Simulation& simulation) {
  const IterationPrices& prices = simulation.prices;
  Duration message{};
  for (const EdgePrice& edge : prices.edges)
    message = std::max(message, edge.forward.total() + edge.backward.total());
  Duration most{};
  for (const RankPrice& rank : prices.ranks)
    most = std::max(most, sum_of(rank.gradient_buckets) + sum_of(rank.parameter_buckets));
  // A rank in the middle sends and receives on both of its sides.
  const ParallelPlan& plan = simulation.prepared.plan;
  return most + message * (static_cast<std::int64_t>(plan.micro_batches) * plan.virtual_stages);
}

Bandwidth node_network(const ClusterSpec& cluster) {
  std::optional<Bandwidth> least;
  for (const NodeGroup& group : cluster.groups) {
    const FabricSpec& fabric = cluster.fabric;
    const int nics = fabric.nics_of(group.node);
    const Bandwidth nic = fabric.nic_rate_of(group.node);
    const Bandwidth all(nic.count() * nics * fabric.point_to_point_efficiency);
    least = least ? std::min(*least, all) : all;
  }
  return least.value_or(Bandwidth(0));
}

void fill_stages(const Simulation& simulation, JobCosts& costs) {
  for (std::size_t i = 0; i < simulation.prepared.plan.stages.size(); ++i) {
    const StagePrice& stage = simulation.prices.stages[i];
    costs.stage_forward.push_back(stage.forward.total());
    costs.stage_backward.push_back(stage.backward());
  }
}

}  // namespace

JobCosts job_costs(const Scenario& scenario, const Simulation& simulation) {
  const ParallelPlan& plan = simulation.prepared.plan;
  JobCosts costs;
  costs.stage_gpus = plan.tensor * plan.context;
  costs.replica_gpus = costs.stage_gpus * plan.pipeline;
  if (const auto* stages = std::get_if<StagesSpec>(&scenario.model)) {
    costs.layers = abstract_layers(scenario, *stages, simulation);
    costs.state_of_gpu = state_of_gpu(costs.layers, plan);
  } else {
    const auto& model = std::get<TransformerSpec>(scenario.model);
    costs.layers = transformer_layers(scenario, model, plan);
    costs.state_of_gpu = state_of_gpu(scenario, model, plan);
    for (std::size_t group = 0; group < scenario.group_profiles.size(); ++group)
      costs.group_layers.push_back(transformer_layers(scenario, model, plan, group));
  }
  for (const JobLayer& layer : costs.layers) costs.state += layer.saved;
  fill_stages(simulation, costs);
  if (scenario.cluster) {
    const ClusterSpec& cluster = *scenario.cluster;
    costs.node_network = node_network(cluster);
    costs.gpu_to_host = cluster.groups.front().node.pcie;
    for (const NodeGroup& group : cluster.groups) {  // the fullest node, and the slowest link
      costs.gpus_per_node = std::max(costs.gpus_per_node, cluster.gpus_of(group.node));
      costs.gpu_to_host = std::min(costs.gpu_to_host, group.node.pcie);
    }
  }
  costs.state_of_node = costs.state_of_gpu * costs.gpus_per_node;
  costs.network_busy = network_busy(simulation);
  return costs;
}

Duration peer_transfer(const JobCosts& costs) {
  if (costs.node_network.count() <= 0) return Duration::zero();
  return costs.state_of_node / costs.node_network;
}

}  // namespace stagecraft
