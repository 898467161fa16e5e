#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "models/memory.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/own_links.hpp"
#include "sim/lower/pass_memory.hpp"
#include "sim/lower/price_gradients.hpp"
#include "sim/lower/price_layers.hpp"
#include "sim/lower/price_offload.hpp"
#include "sim/lower/prices.hpp"
#include "sim/lower/rank_states.hpp"
#include "sim/lower/stage_parameters.hpp"

namespace stagecraft {
namespace {

// Without sequence parallelism every tensor rank holds the same output. With scatter/gather each rank sends
// its share, and the receivers all-gather it over NVLink (Narayanan et al., SC'21, section 4.1).
bool scatters(const PricingRequest& request) {
  return request.options.scatter_gather && !request.parallelism.sequence_parallel && request.plan.tensor > 1;
}

// Output of a stage. That of multi-token prediction hands on the states of all predictions, one for each head.
//   source  Megatron-LM, core/transformer/multi_token_prediction.py @d98e8a64, MultiTokenPredictionBlock
Bytes outputs_of(const TransformerSpec& model, const PricingRequest& request, int stage) {
  const StageContent& content = request.plan.stages[static_cast<std::size_t>(stage)];
  return boundary_activation(model, request.shard) * (1 + content.mtp_layers);
}

EdgePrice price_edge(const TransformerSpec& model, const Network& network, const PricingRequest& request,
                     HeldStage held) {
  EdgePrice price = edge_price(network, held, message_bytes(model, request, held.stage));
  if (scatters(request) && price.forward.total() > Duration::zero()) {
    const CollectiveJob gather{CollectiveKind::kAllGather, outputs_of(model, request, held.stage),
                               Category::kPipelineComm};
    Network queued = network;
    queued.own_links = nullptr;  // the gather is a part of the message
    const auto price_of = [&](int stage) {
      const int rank = network.plan.places().rank_of(stage, held.copy);
      return group_price(queued, groups_of(network, rank, RankGroup::kTensor), gather);
    };
    price.forward.add(price_of(held.stage + 1));
    price.backward.add(price_of(held.stage));
  }
  return price;
}

// Under ZeRO 2 and 3 gradients are reduced after each pass and not accumulated. They are cast and copied into
// the reduction buffer, with the same traffic as an accumulation inside the GEMM, and are priced as one.
//   source  torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce_scatter_copy_in.
bool adds_in_products(const PricingRequest& request) {
  if (request.training.autocast) return false;  // autograd casts them to fp32 first
  const bool sharded = request.zero_stage() >= 2;
  return request.options.gradient_accumulation_fusion || (sharded && !accumulates_whole(request));
}

// `load`: the fraction of the slowdown by the traffic of units that compute really suffers.
OverlapCosts costs_beside(const StagePrice& stage, const HardwareProfile& profile,
                          const PricingRequest& request, double load) {
  OverlapCosts costs = overlap_costs(profile);
  if (stage.units.empty()) return costs;
  const double sharded =
      request.options.rules.sharded_overlap_slowdown.value_or(profile.sharded_overlap_slowdown.value);
  costs.slowdown = 1 + (sharded - 1) * load;
  return costs;
}

// Pass memory, computed once for stages of the same content.
class StageMemories {
 public:
  StageMemories(const TransformerSpec& model, const Shard& shard, PassHabits habits)
      : model_(model), shard_(shard), habits_(habits) {}

  const PassMemory& of(const StageContent& content) {
    const auto known = std::ranges::find(known_, content, &std::pair<StageContent, PassMemory>::first);
    if (known != known_.end()) return known->second;
    return known_.emplace_back(content, pass_memory(model_, shard_, content, habits_)).second;
  }

 private:
  const TransformerSpec& model_;
  const Shard& shard_;
  const PassHabits habits_;
  std::vector<std::pair<StageContent, PassMemory>> known_;
};

}  // namespace

Shard shard_of(const PricingRequest& request, double fp8_layouts, bool pairs) {
  const bool fp4 =
      casts_to_fp4(request.training.precision, request.options.fp8_recipe);  // for which no user buffers are
  return {.sequence = request.training.sequence_length,
          .micro_batch = request.training.micro_batch_size,
          .tensor = request.plan.tensor,
          .context = request.plan.context,
          .expert = request.plan.expert,
          .expert_tensor = request.plan.expert_tensor,
          .sequence_parallel = request.parallelism.sequence_parallel,
          .replicated_embedding = request.parallelism.replicated_embedding,
          .precision = request.training.precision,
          .autocast = request.training.autocast,
          .gradient = request.training.gradient,
          .moment = request.training.moment,
          .master_weights = request.training.master_weights,
          .master_remainders = request.training.master_remainders && request.offload.optimizer == 0,
          .foreach_step = request.options.foreach_step,
          .attention = request.training.attention,
          .recompute = request.training.recompute.granularity,
          .modules = request.training.recompute.modules,
          .joins_clamps = request.options.rules.joins_clamps,
          .repeats_flash = request.options.rules.repeats_flash,
          .recompute_stops_early = request.options.rules.stops_early(request.training.recompute),
          .fused_kernels = request.options.fused_kernels,
          .unfused = request.options.unfused | request.options.rules.unfused,
          .fused = request.options.fused,
          .gradient_accumulation_fusion = adds_in_products(request),
          .fp8_recipe = request.options.fp8_recipe,
          .fp8_layouts = fp8_layouts,
          .fp8_parameters = request.training.precision == Precision::kFp8 &&
                            request.options.holds_fp8(request.parallelism.zero_stage),
          .fp8_attention = request.options.fp8_attention,
          .fused_experts = request.options.fused_experts,
          .gathered_weights = request.zero_stage() >= 3,
          .context_exchange = request.parallelism.context_exchange,
          .expert_dispatcher = request.options.expert_dispatcher,
          .fp8_dispatch = request.options.fp8_dispatch,
          .overlap_tensor = request.overlap.tensor && !fp4,
          .functional_collectives = request.options.rules.functional_collectives,
          .overlap_context = request.overlap.context,
          .overlap_shared_experts = request.overlap.shared_experts && !pairs,
          .software = request.options.memory,
          .rules = request.options.rules.memory};
}

Bytes message_bytes(const TransformerSpec& model, const PricingRequest& request, int stage) {
  const Bytes whole = outputs_of(model, request, stage);
  return scatters(request) ? whole / request.plan.tensor : whole;
}

IterationPrices price_transformer(const TransformerSpec& model, const HardwareProfile& profile,
                                  const Cluster& cluster, const PricingRequest& request) {
  IterationPrices prices{.second_embedding = second_embedding(model, request.plan)};
  PlacementMemo own;
  PlacementMemo& memo = request.memo != nullptr && !request.shared_links ? *request.memo : own;
  Network network = network_of(cluster, profile, request, memo, &prices.patterns);
  if (meets_at_own_links(network, request)) network.own_links = &prices.own_links;
  StagePricing stages(model, network, request);
  const GradientPricing gradients(model, network, request);
  StageMemories memory(model, request.shard, habits_of(request));
  for (const HeldStage& held : request.plan.places().all()) {
    prices.stages.push_back(stages.price(held));
    prices.stages.back().memory = memory.of(request.plan.stages[static_cast<std::size_t>(held.stage)]);
    add_gradients_of_passes(prices.stages.back().memory, model, request, held.stage);
    if (!prices.stages.back().units.empty()) gradients.price_units(held, prices.stages.back());
    prices.edges.push_back(held.stage + 1 < request.plan.stage_count()
                               ? price_edge(model, network, request, held)
                               : EdgePrice{});
  }
  const double load = request.zero_stage() >= 2 ? gradients.channel_share() : 0;
  for (StagePrice& stage : prices.stages) stage.beside = costs_beside(stage, profile, request, load);
  for (int rank = 0; rank < request.plan.pipeline; ++rank) prices.ranks.push_back(gradients.price_rank(rank));
  const auto& host = profile.host.per_iteration;
  prices.host.add(Category::kOther, host.value, host.provenance);
  price_offload(model, network, request, prices);
  return prices;
}

}  // namespace stagecraft
