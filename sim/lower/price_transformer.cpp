#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "models/compute_cost.hpp"
#include "models/memory.hpp"
#include "models/operators.hpp"
#include "models/partition.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/prices.hpp"
#include "sim/lower/stage_parameters.hpp"
#include "topology/collective.hpp"

namespace stagecraft {
namespace {

// Megatron-LM fills buckets of max(40 M, 1 M * d) parameters (DistributedDataParallelConfig).
std::int64_t bucket_parameters(int data) {
  return std::max<std::int64_t>(40'000'000, 1'000'000LL * data);
}

class TransformerPricing {
 public:
  TransformerPricing(const TransformerSpec& model, const Network& network, const PricingRequest& request)
      : model_(model), network_(network), request_(request), shard_(shard_of(request)) {}

  IterationPrices price();

 private:
  struct LayerKinds {
    PlacedGroup group;
    StagePrice layer, embedding, head;
  };

  StagePrice price_stage(int stage);
  const LayerKinds& kinds_of(int pipeline_rank);
  const LayerKinds& kinds_on(const PlacedGroup& group);
  StagePrice price_ops(const LayerOps& ops, int member, const GroupPlacement& group) const;
  PassPrice price_pass(const Ops& ops, Category category, int member, const GroupPlacement& group) const;
  void add_host_floor(PassPrice& price, const Ops& ops) const;
  Duration hidden_time(const LayerOps& ops, int member, const GroupPlacement& group, Duration cover) const;
  CollectiveCost tensor_collective(const Op& op, int member, const GroupPlacement& group) const;

  EdgePrice price_edge(int stage) const;
  RankPrice price_rank(int rank) const;
  std::vector<PassPrice> price_buckets(int rank, std::int64_t parameters, bool gather) const;
  PassPrice price_tied_embedding() const;
  PassPrice price_optimizer(std::int64_t parameters) const;
  PassPrice price_norm(int rank) const;

  const TransformerSpec& model_;
  const Network& network_;
  const PricingRequest& request_;
  const Shard shard_;
  std::deque<LayerKinds> kinds_;  // one per distinct placement of a tensor group; references last
};

CollectiveCost TransformerPricing::tensor_collective(const Op& op, int member,
                                                     const GroupPlacement& group) const {
  CollectiveCost cost =
      collective_cost(network_.cluster, network_.profile, DeviceId(static_cast<std::uint32_t>(member)), group,
                      op.collective, op.bytes);
  const FabricSpec& fabric = network_.cluster.spec().fabric;
  if (group.ranks == 1) return cost;
  if (fabric.tensor_collective_factor != 1) {
    cost.time = from_seconds(to_seconds(cost.time) * fabric.tensor_collective_factor);
  }
  cost.time += fabric.tensor_collective_overhead;
  return cost;
}

PassPrice TransformerPricing::price_pass(const Ops& ops, Category category, int member,
                                         const GroupPlacement& group) const {
  PassPrice price;
  for (const Op& op : ops) {
    if (op.kind == OpKind::kCollective) {
      const CollectiveCost cost = tensor_collective(op, member, group);
      price.add(Category::kTensorComm, cost.time * op.kernels, cost.provenance);
    } else {
      const Cost cost = compute_cost(network_.profile, shard_.precision, op);
      price.add(category, cost.time, cost.provenance);
    }
  }
  return price;
}

// A pass lasts at least as long as the host needs to launch its kernels; what it waits beyond the GPU's own
// time is `other`.
void TransformerPricing::add_host_floor(PassPrice& price, const Ops& ops) const {
  std::int64_t kernels = 0;
  for (const Op& op : ops) kernels += op.kernels;
  const auto& launch = network_.profile.host.launch;
  const Duration floor = launch.value * kernels;
  const Duration busy = price.total();
  if (floor > busy) price.add(Category::kOther, floor - busy, launch.provenance);
}

// A backward collective that is issued before its layer's weight-gradient GEMM runs beside it. The profile
// says which share of it the GEMM hides; never more than the GEMM lasts (`cover`).
Duration TransformerPricing::hidden_time(const LayerOps& ops, int member, const GroupPlacement& group,
                                         Duration cover) const {
  Duration hideable{};
  for (const Ops* pass : {&ops.input_gradient, &ops.weight_gradient}) {
    for (const Op& op : *pass) {
      if (op.kind == OpKind::kCollective && op.beside == Beside::kWeightGradient) {
        hideable += tensor_collective(op, member, group).time;
      }
    }
  }
  return std::min(cover, from_seconds(to_seconds(hideable) * network_.profile.tensor_overlap.value));
}

StagePrice TransformerPricing::price_ops(const LayerOps& ops, int member, const GroupPlacement& group) const {
  StagePrice price{.forward = price_pass(ops.forward, Category::kForward, member, group),
                   .recompute = price_pass(ops.recompute, Category::kRecompute, member, group),
                   .input_gradient = price_pass(ops.input_gradient, Category::kBackward, member, group),
                   .weight_gradient = price_pass(ops.weight_gradient, Category::kBackward, member, group)};
  Duration hidden = hidden_time(ops, member, group, price.weight_gradient.of(Category::kBackward));
  for (PassPrice* pass : {&price.input_gradient, &price.weight_gradient}) {
    hidden -= pass->hide(Category::kTensorComm, hidden);
  }
  add_host_floor(price.forward, ops.forward);
  add_host_floor(price.recompute, ops.recompute);
  add_host_floor(price.input_gradient, ops.input_gradient);
  add_host_floor(price.weight_gradient, ops.weight_gradient);
  return price;
}

const TransformerPricing::LayerKinds& TransformerPricing::kinds_on(const PlacedGroup& group) {
  const auto known = std::find_if(kinds_.begin(), kinds_.end(), [&](const LayerKinds& kinds) {
    return alike(network_.cluster, kinds.group, group);
  });
  if (known != kinds_.end()) return *known;
  kinds_.push_back(
      {.group = group,
       .layer = price_ops(layer_operators(model_, shard_), group.member, group.placement),
       .embedding = price_ops(embedding_operators(model_, shard_), group.member, group.placement),
       .head = price_ops(head_operators(model_, shard_), group.member, group.placement)});
  return kinds_.back();
}

Duration total(const StagePrice& price) {
  return price.forward.total() + price.recompute.total() + price.input_gradient.total() +
         price.weight_gradient.total();
}

// Of the tensor group with the slowest layer: the replicas of the others wait for it at the end.
const TransformerPricing::LayerKinds& TransformerPricing::kinds_of(int pipeline_rank) {
  const LayerKinds* slowest = nullptr;
  for (const PlacedGroup& group : groups_of(network_, pipeline_rank, Axis::kTensor)) {
    const LayerKinds& kinds = kinds_on(group);
    if (slowest == nullptr || total(kinds.layer) > total(slowest->layer)) slowest = &kinds;
  }
  SC_CHECK(slowest != nullptr, "a pipeline rank has a tensor group");
  return *slowest;
}

void add(StagePrice& sum, const StagePrice& price, std::int64_t times) {
  sum.forward.add(price.forward, times);
  sum.recompute.add(price.recompute, times);
  sum.input_gradient.add(price.input_gradient, times);
  sum.weight_gradient.add(price.weight_gradient, times);
}

StagePrice TransformerPricing::price_stage(int stage) {
  const StageContent& content = network_.plan.stages[static_cast<std::size_t>(stage)];
  const LayerKinds& kinds = kinds_of(network_.plan.rank_of_stage(stage));
  StagePrice price;
  add(price, kinds.layer, content.layers);
  if (content.embedding) add(price, kinds.embedding, 1);
  if (content.head) add(price, kinds.head, 1);
  return price;
}

EdgePrice TransformerPricing::price_edge(int stage) const {
  const Bytes whole = boundary_activation(model_, shard_);
  // Without sequence parallelism every tensor rank holds the same output: with scatter/gather each sends its
  // share, and the receivers put it together over NVLink (Narayanan et al., SC'21, section 4.1).
  const bool scatter = request_.options.scatter_gather && !shard_.sequence_parallel && shard_.tensor > 1;
  EdgePrice price =
      edge_price(network_.cluster, network_.plan, stage, scatter ? whole / shard_.tensor : whole);
  if (scatter && price.forward.total() > Duration::zero()) {
    const CollectiveJob gather{CollectiveKind::kAllGather, whole, Category::kPipelineComm};
    const auto groups = [&](int s) {
      return groups_of(network_, network_.plan.rank_of_stage(s), Axis::kTensor);
    };
    price.forward.add(group_price(network_, groups(stage + 1), gather));
    price.backward.add(group_price(network_, groups(stage), gather));
  }
  return price;
}

std::vector<PassPrice> TransformerPricing::price_buckets(int rank, std::int64_t parameters,
                                                         bool gather) const {
  const ParallelPlan& plan = network_.plan;
  const bool overlapped = gather ? request_.overlap.parameters : request_.overlap.gradients;
  const std::int64_t size = overlapped ? bucket_parameters(plan.data) : parameters;
  const StateBytes state = state_bytes(shard_.precision, shard_.gradient);
  const std::vector<PlacedGroup> groups = groups_of(network_, rank, Axis::kData);
  std::vector<PassPrice> buckets;
  for (std::int64_t done = 0; done < parameters; done += size) {
    const std::int64_t here = std::min(size, parameters - done);
    const bool sharded = request_.parallelism.zero_stage >= 1;
    const CollectiveKind reduce = sharded ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
    const CollectiveJob job =
        gather ? CollectiveJob{CollectiveKind::kAllGather, Bytes(here * state.weight), Category::kDataComm}
               : CollectiveJob{reduce, Bytes(here * state.gradient), Category::kDataComm};
    buckets.push_back(group_price(network_, groups, job));
  }
  return buckets;
}

PassPrice TransformerPricing::price_tied_embedding() const {
  const ParallelPlan& plan = network_.plan;
  PassPrice price;
  if (!model_.tied_embeddings || plan.pipeline == 1) return price;
  const int first = pipeline_member(plan, 0);
  const int last = pipeline_member(plan, plan.rank_of_stage(plan.stage_count() - 1));
  const auto device = [](int rank) { return DeviceId(static_cast<std::uint32_t>(rank)); };
  const bool one_node = network_.cluster.node_of(device(first)) == network_.cluster.node_of(device(last));
  const GroupPlacement pair{.ranks = 2,
                            .nodes = one_node ? 1 : 2,
                            .ranks_per_node = one_node ? 2 : 1,
                            .groups_per_node = same_stage_on_node(network_.cluster, plan, first)};
  const std::int64_t words = vocabulary_share(model_, shard_.tensor);
  const Bytes size(words * model_.hidden * state_bytes(shard_.precision, shard_.gradient).gradient);
  const CollectiveCost cost = collective_cost(network_.cluster, network_.profile, device(first), pair,
                                              CollectiveKind::kAllReduce, size);
  price.add(Category::kDataComm, cost.time, cost.provenance);
  return price;
}

PassPrice TransformerPricing::price_optimizer(std::int64_t parameters) const {
  const std::int64_t shards = request_.parallelism.zero_stage >= 1 ? network_.plan.data : 1;
  PassPrice price;
  for (const Op& op : optimizer_operators(parameters, (parameters + shards - 1) / shards, shard_)) {
    const Cost cost = compute_cost(network_.profile, shard_.precision, op);
    price.add(Category::kOptimizer, cost.time, cost.provenance);
  }
  return price;
}

// The norm is one number: an all-reduce of 4 bytes along the pipeline, and along the tensor group.
PassPrice TransformerPricing::price_norm(int rank) const {
  const CollectiveJob job{CollectiveKind::kAllReduce, Bytes(4), Category::kDataComm};
  PassPrice price = group_price(network_, groups_of(network_, rank, Axis::kPipeline), job);
  price.add(group_price(network_, groups_of(network_, rank, Axis::kTensor), job));
  return price;
}

RankPrice TransformerPricing::price_rank(int rank) const {
  RankPrice price;
  for (int stage = rank; stage < network_.plan.stage_count(); stage += network_.plan.pipeline) {
    if (network_.plan.data == 1) break;
    const std::int64_t here = stage_parameters(model_, network_.plan, stage);
    price.gradient_buckets.push_back(price_buckets(rank, here, false));
    if (request_.parallelism.zero_stage >= 1)
      price.parameter_buckets.push_back(price_buckets(rank, here, true));
  }
  price.tied_embedding = price_tied_embedding();
  price.gradient_norm = price_norm(rank);
  price.optimizer = price_optimizer(rank_parameters(model_, network_.plan, rank));
  return price;
}

IterationPrices TransformerPricing::price() {
  IterationPrices prices;
  for (int stage = 0; stage < network_.plan.stage_count(); ++stage) {
    prices.stages.push_back(price_stage(stage));
    if (stage + 1 < network_.plan.stage_count()) prices.edges.push_back(price_edge(stage));
  }
  for (int rank = 0; rank < network_.plan.pipeline; ++rank) prices.ranks.push_back(price_rank(rank));
  const auto& host = network_.profile.host.per_iteration;
  prices.host.add(Category::kOther, host.value, host.provenance);
  return prices;
}

}  // namespace

Shard shard_of(const PricingRequest& request) {
  return {.sequence = request.training.sequence_length,
          .micro_batch = request.training.micro_batch_size,
          .tensor = request.plan.tensor,
          .sequence_parallel = request.parallelism.sequence_parallel,
          .precision = request.training.precision,
          .gradient = request.training.gradient,
          .attention = request.training.attention,
          .recompute = request.training.recompute.granularity,
          .modules = request.training.recompute.modules,
          .fused_kernels = request.options.fused_kernels,
          .gradient_accumulation_fusion = request.options.gradient_accumulation_fusion,
          .software = request.options.memory};
}

IterationPrices price_transformer(const TransformerSpec& model, const HardwareProfile& profile,
                                  const Cluster& cluster, const PricingRequest& request) {
  const Network network{.cluster = cluster, .profile = profile, .plan = request.plan};
  return TransformerPricing(model, network, request).price();
}

}  // namespace stagecraft
