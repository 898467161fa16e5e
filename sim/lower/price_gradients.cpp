#include "sim/lower/price_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/ceil_div.hpp"
#include "models/compute_cost.hpp"
#include "models/fp8_casts.hpp"
#include "models/memory.hpp"
#include "models/op_builder.hpp"
#include "sim/lower/network_patterns.hpp"
#include "sim/lower/stage_parameters.hpp"
#include "topology/nccl_model.hpp"

namespace stagecraft {
namespace {

// Merges dense and expert buckets in order of completion: by the completed fraction of their kind, dense
// first on ties.
std::vector<PassPrice> merged(const std::vector<PassPrice>& dense, const std::vector<PassPrice>& experts) {
  std::vector<PassPrice> all;
  std::size_t i = 0, j = 0;
  while (i < dense.size() || j < experts.size()) {
    const bool take_dense =
        j == experts.size() || (i < dense.size() && (i + 1) * experts.size() <= (j + 1) * dense.size());
    all.push_back(take_dense ? dense[i++] : experts[j++]);
  }
  return all;
}

// Bucket sizes in the order of the backward. All buckets but the last are full. The last ends with the whole
// embedding, whose gradient is complete only when the pass is.
//   source  NVIDIA/Megatron-LM, core/distributed/param_and_grad_buffer.py: parameters in reverse order and
//           whole; a bucket is closed when it is full.
std::vector<std::int64_t> bucket_sizes(std::int64_t parameters, std::int64_t size, std::int64_t embedding) {
  if (parameters == 0) return {};
  const std::int64_t full = (parameters - std::min(embedding, parameters)) / size;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(full), size);
  if (const std::int64_t last = parameters - full * size; last > 0) sizes.push_back(last);
  return sizes;
}

// Bytes of weights that are gathered after the step. Under mxfp8 they are gathered in 16 bit, and cast along
// rows and columns where they arrive.
//   source  NVIDIA/Megatron-LM @0f76128b, docs/user-guide/features/low_precision_training.md
ByteShare stepped_weight_bytes(const ParameterShare& share, const ParameterShare& products,
                               const Shard& shard) {
  if (shard.fp8_recipe == Fp8Recipe::kMxfp8) return share * Bytes(state_bytes(shard).weight);
  return weight_bytes(share, products, shard);
}

// Fraction of NCCL's channels that a group has on the links of a node, or on the NICs next to its ranks there.
double share_of_channels(const Cluster& cluster, const PlacedGroup& group) {
  const GroupPlacement& placement = group.placement;
  const NodeSpec& node = cluster.node_spec_of(device_of(group.member));
  if (placement.nodes == 1)
    return node.nvlink > Bandwidth(0) ? node.nvlink_among(placement.ranks) / node.nvlink : 1;
  const FabricSpec& fabric = cluster.spec().fabric;
  const int nics = std::max(1, fabric.nics_of(node) * placement.ranks_per_node / node.gpus);
  const int channels = nccl_network_channels(nics, fabric.nic_rate_of(node));
  return static_cast<double>(channels) / kNcclNetworkChannels;
}

}  // namespace

// Megatron-LM fills buckets of max(40 M, 1 M * d) parameters; d counts the context ranks as well
// (DistributedDataParallelConfig).
std::int64_t bucket_parameters(const PricingRequest& request) {
  if (request.options.bucket_parameters) return *request.options.bucket_parameters;
  return std::max<std::int64_t>(40'000'000, 1'000'000LL * request.plan.replicas());
}

std::int64_t stepped_parameters(const ParameterShare& share, const PricingRequest& request) {
  return (request.zero_stage() >= 1 ? sharded(share, request.plan) : share).all();
}

std::int64_t host_parameters(std::int64_t stepped, const PricingRequest& request) {
  return std::llround(request.offload.optimizer * static_cast<double>(stepped));
}

GradientPricing::GradientPricing(const TransformerSpec& model, const Network& network,
                                 const PricingRequest& request)
    : model_(model),
      network_(network),
      request_(request),
      shard_(request.shard),
      dense_(sharing(false)),
      experts_(sharing(true)) {}

GradientPricing::Sharing GradientPricing::sharing(bool experts) const {
  const ParallelPlan& plan = network_.plan;
  Sharing sharing = experts ? Sharing{.replicas = RankGroup::kExpertReplicas,
                                      .shards = RankGroup::kExpertShards,
                                      .shard_replicas = RankGroup::kExpertShardReplicas,
                                      .ranks = plan.expert_data(),
                                      .shards_n = plan.expert_shard_group()}
                            : Sharing{.replicas = RankGroup::kReplicas,
                                      .shards = RankGroup::kShards,
                                      .shard_replicas = RankGroup::kShardReplicas,
                                      .ranks = plan.replicas(),
                                      .shards_n = plan.shard_group};
  if (sharing.shards_n == sharing.ranks) sharing.shards = sharing.replicas;
  return sharing;
}

// All-reduce of one shard's gradients over its replicas; free where the shard has one replica.
PassPrice GradientPricing::replicate(int rank, const Sharing& sharing, Bytes gradients) const {
  if (sharing.shards_n == sharing.ranks) return {};
  return group_price(network_, groups_of(network_, rank, sharing.shard_replicas),
                     {CollectiveKind::kAllReduce, Bytes(ceil_div(gradients.count(), sharing.shards_n)),
                      Category::kDataComm});
}

double GradientPricing::channel_share() const {
  double most = 0;
  for (const PlacedGroup& group : groups_of(network_, 0, dense_.shards))
    most = std::max(most, share_of_channels(network_.cluster, group));
  return most;
}

bool GradientPricing::on_links_apart(int rank, const Sharing& sharing) const {
  const auto in_a_node = [](const PlacedGroup& group) { return group.placement.nodes == 1; };
  return std::ranges::all_of(groups_of(network_, rank, sharing.shards), in_a_node) &&
         std::ranges::none_of(groups_of(network_, rank, sharing.shard_replicas), in_a_node);
}

Bytes GradientPricing::gradients_of(std::int64_t parameters) const {
  return Bytes(parameters * state_bytes(shard_).gradient);
}

PassPrice GradientPricing::reduce(int rank, const Sharing& sharing, std::int64_t parameters) const {
  const Bytes size = gradients_of(parameters);
  if (request_.zero_stage() == 0)
    return group_price(network_, groups_of(network_, rank, sharing.replicas),
                       {CollectiveKind::kAllReduce, size, Category::kDataComm});
  PassPrice price = over_shards(rank, sharing, CollectiveKind::kReduceScatter, size);
  price.add(replicate(rank, sharing, size));
  return price;
}

PassPrice GradientPricing::over_shards(int rank, const Sharing& sharing, CollectiveKind kind, Bytes size,
                                       const CollectivePieces& pieces) const {
  const CollectiveJob job{.kind = kind,
                          .size = Bytes(ceil_div(size.count(), pieces.count)),
                          .category = Category::kDataComm,
                          .beside = pieces.copies};
  PassPrice price;
  price.add(group_price(network_, groups_of(network_, rank, sharing.shards), job), pieces.count);
  return price;
}

// Weights are gathered by the buckets of overlapped gradients, also where the gathers do not overlap;
// overlapped gathers are always cut.
//   source  NVIDIA/Megatron-LM, core/distributed/distributed_data_parallel.py: one bucket without
//           overlap_grad_reduce
std::vector<PassPrice> GradientPricing::price_buckets(int rank, int stage, bool gathers) const {
  const bool in_buckets = request_.overlap.gradients || (gathers && request_.overlap.parameters);
  const std::int64_t words = stage == 0 ? embedding_parameters(model_, shard_.embedding_ranks()) : 0;
  const auto of_kind = [&](const Sharing& sharing, std::int64_t parameters, Bytes weights) {
    std::vector<PassPrice> buckets;
    if (sharing.ranks == 1) return buckets;
    const std::int64_t size = in_buckets ? bucket_parameters(request_) : parameters;
    std::vector<std::int64_t> sizes = bucket_sizes(parameters, size, &sharing == &dense_ ? words : 0);
    if (gathers) std::ranges::reverse(sizes);
    const auto price_of = [&](std::int64_t here) {
      const double part = static_cast<double>(here) / static_cast<double>(parameters);
      return gathers ? over_shards(rank, sharing, CollectiveKind::kAllGather,
                                   to_bytes(static_cast<double>(weights.count()) * part))
                     : reduce(rank, sharing, here);
    };
    for (auto here = sizes.begin(); here != sizes.end();) {  // nearly all are alike
      const auto next = std::find_if(here, sizes.end(), [&](std::int64_t other) { return other != *here; });
      buckets.insert(buckets.end(), static_cast<std::size_t>(next - here), price_of(*here));
      here = next;
    }
    return buckets;
  };
  const ParameterShare share = stage_share(model_, network_.plan, stage);
  const ByteShare weights = stepped_weight_bytes(share, stage_products(model_, network_.plan, stage), shard_);
  return merged(of_kind(dense_, share.dense, weights.dense),
                of_kind(experts_, share.experts, weights.experts));
}

void GradientPricing::price_units(HeldStage held, StagePrice& price) const {
  const int rank = network_.plan.places().rank_of(held.stage, held.copy);
  const std::vector<StageUnit> units = stage_units(model_, network_.plan, held.stage);
  std::optional<MatricesOfUnits> matrices;
  if (request_.options.rules.gathers_matrices) matrices.emplace(model_, shard_);
  bool any = false;
  for (std::size_t i = 0; i < units.size(); ++i) {
    UnitPrice& unit = price.units[i];
    const ByteShare weights = weight_bytes(gathered_of(units[i], shard_), units[i].products, shard_);
    if (is_root(units[i]) && root_stays_gathered(shard_))
      unit.backward_gathers = 0;
    else if (request_.options.rules.recompute_gathers_again && units[i].recomputed)
      unit.backward_gathers = 2;
    for (const bool experts : {false, true}) {
      const Sharing& sharing = experts ? experts_ : dense_;
      const auto count = [&](const auto& share) { return experts ? share.experts : share.dense; };
      if (sharing.ranks == 1 || count(units[i].gathered) == 0) continue;
      any = true;
      const Bytes gradients = gradients_of(count(units[i].reduced));
      CollectivePieces pieces;
      if (matrices) {
        const UnitMatrices unit_matrices = matrices->of(units[i]);
        const std::size_t matrix_count = (experts ? unit_matrices.experts : unit_matrices.dense).size();
        pieces = {.count = std::max<std::int64_t>(static_cast<std::int64_t>(matrix_count), 1),
                  .copies = (network_.profile.host.launch.value + request_.options.rules.piece_overhead) *
                            sharing.shards_n};
      }
      unit.reduce.add(over_shards(rank, sharing, CollectiveKind::kReduceScatter, gradients, pieces));
      const bool beside = sharing.shards_n > 1 && on_links_apart(rank, sharing);
      (beside ? unit.replicate : unit.reduce).add(replicate(rank, sharing, gradients));
      if (request_.zero_stage() >= 3)
        unit.gather.add(over_shards(rank, sharing, CollectiveKind::kAllGather, count(weights), pieces));
    }
  }
  if (!any) price.units.clear();
  price.kept_gathered = !request_.reshards_after_forward();
}

// The first rank and another each hold a copy of the word embedding: the last where it is tied, or the one
// where multi-token prediction looks tokens up. They all-reduce its gradient in pairs; under ZeRO >= 2 each
// pair reduces one shard. No traffic where one rank has both.
//   source  Megatron-LM core/distributed/finalize_model_grads.py, _allreduce_word_embedding_grads.
PassPrice GradientPricing::price_tied_embedding() const {
  const ParallelPlan& plan = network_.plan;
  const std::optional<int> second = second_embedding(model_, plan);
  if (!second) return {};
  const std::int64_t words = word_parameters(model_, shard_.embedding_ranks());
  const std::int64_t shards = request_.zero_stage() >= 2 ? plan.shard_group : 1;
  const Bytes size(ceil_div(words * state_bytes(shard_).gradient, shards));
  return pair_price(network_, 0, plan.places().rank_of(*second), size);
}

// Two ranks hold the copies of a stage, and all-reduce its gradients.
PassPrice GradientPricing::price_copies(int stage) const {
  const ParallelPlan& plan = network_.plan;
  const StagePlaces places = plan.places();
  if (places.copies() == 1) return {};
  const ParameterShare share = stage_share(model_, plan, stage);
  const Bytes size(stepped_parameters(share, request_) * state_bytes(shard_).gradient);
  return pair_price(network_, places.rank_of(stage, 0), places.rank_of(stage, 1), size);
}

PassPrice GradientPricing::price_optimizer(int rank) const {
  const ParameterShare share = rank_share(model_, network_.plan, rank);
  const std::int64_t stepped = stepped_parameters(share, request_);
  const std::int64_t with_gradients = request_.zero_stage() >= 2 ? stepped : share.all();
  PassPrice price;
  Ops ops = optimizer_operators(with_gradients, stepped - host_parameters(stepped, request_), shard_);
  if (shard_.keeps_fp8() && !shard_.gathered_weights)
    if (const std::int64_t cast = rank_products(model_, network_.plan, rank).all(); cast > 0)
      ops.push_back(first_weight_cast(cast, shard_));
  for (const Op& op : ops) {
    const Cost cost = compute_cost(network_.profile, shard_.precision, op);
    price.add(Category::kOptimizer, cost.time, cost.provenance);
  }
  return price;
}

// All-reduces along the axes that split the optimizer step of a pipeline rank: under ZeRO a rank has the norm
// of its shard only. The expert ranks are a subset of all replicas and tensor ranks, but not always of a part
// of the replicas.
//   source  Megatron-LM core/optimizer/clip_grads.py: one all-reduce over the model-parallel ranks, over all
//           ranks under the distributed optimizer (get_grad_stats_parallel_group); DeepSpeed
//           runtime/zero/stage_1_and_2.py: over the data-parallel group, then the model-parallel one.
PassPrice GradientPricing::norm_of_rank(const Network& network, int rank) const {
  const CollectiveJob job{CollectiveKind::kAllReduce, Bytes(4), Category::kDataComm};
  PassPrice price = group_price(network, groups_of(network_, rank, RankGroup::kTensor), job);
  const bool sharded = request_.zero_stage() > 0 && dense_.shards_n > 1;
  if (sharded) price.add(group_price(network, groups_of(network_, rank, dense_.shards), job));
  const bool all_ranks = sharded && dense_.shards_n == dense_.ranks;
  if (network.plan.expert > 1 && !all_ranks)
    price.add(group_price(network, groups_of(network_, rank, RankGroup::kExpert), job));
  return price;
}

// The norm is one number: an all-reduce of 4 bytes along each axis that splits the model or its states. It is
// priced without link traffic: patterns of senders and receivers would cost most of the pricing time, for 4
// bytes.
void GradientPricing::price_norms(int rank, RankPrice& price) const {
  // On shared links a message has traffic in its price: one without it is not to be found among those.
  PlacementMemo own;
  const Network quiet{.cluster = network_.cluster,
                      .profile = network_.profile,
                      .plan = network_.plan,
                      .memo = network_.patterns == nullptr ? network_.memo : own,
                      .collectives = network_.collectives,
                      .exchange_overhead = {}};  // no rank waits for it
  price.partial_norm = norm_of_rank(quiet, rank);
  price.gradient_norm = group_price(quiet, groups_of(network_, rank, RankGroup::kPipeline),
                                    {CollectiveKind::kAllReduce, Bytes(4), Category::kDataComm});
  price.gradient_norm.add(price.partial_norm);
  if (rank + 1 < network_.plan.pipeline)
    price.norm_message = rank_message(quiet, rank, rank + 1, Bytes(4)).forward;
}

RankPrice GradientPricing::price_rank(int rank) const {
  const int zero = request_.zero_stage();
  RankPrice price;
  for (const HeldStage& held : network_.plan.places().held_by(rank)) {
    if (zero <= 1) price.gradient_buckets.push_back(price_buckets(rank, held.stage, false));
    if (zero == 1 || zero == 2) price.parameter_buckets.push_back(price_buckets(rank, held.stage, true));
    price.copies.push_back(price_copies(held.stage));
  }
  if (rank == 0) price.tied_embedding = price_tied_embedding();
  price_norms(rank, price);
  price.optimizer = price_optimizer(rank);
  return price;
}

}  // namespace stagecraft
