#include "sim/lower/price_layers.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "models/compute_cost.hpp"
#include "sim/lower/network_patterns.hpp"
#include "sim/lower/stage_operators.hpp"

namespace stagecraft {
namespace {

Category category_of(CommGroup group) {
  switch (group) {
    case CommGroup::kTensor:
      return Category::kTensorComm;
    case CommGroup::kContext:
      return Category::kContextComm;
    case CommGroup::kExpert:
    case CommGroup::kExpertTensor:
      return Category::kExpertComm;
  }
  SC_CHECK(false, "every group is listed");
  return Category::kOther;
}

RankGroup group_of(CommGroup group) {
  switch (group) {
    case CommGroup::kTensor:
      return RankGroup::kTensor;
    case CommGroup::kContext:
      return RankGroup::kContext;
    case CommGroup::kExpert:
      return RankGroup::kExpert;
    case CommGroup::kExpertTensor:
      return RankGroup::kExpertTensor;
  }
  SC_CHECK(false, "every group is listed");
  return RankGroup::kTensor;
}

// What the software adds to one launch of a collective of a layer.
Duration software_overhead(const Network& network, const LayerGroups& groups, const Op& op) {
  if (op.nodes || op.group != CommGroup::kTensor || groups.of(op.group).ranks == 1) return {};
  const Duration whole = network.tensor_collective_overhead.value;
  return op.collective == CollectiveKind::kAllReduce ? whole : whole / 2;
}

// One operator list on one GPU: times of its operators, and what of its collectives stays exposed.
class PassPricing {
 public:
  PassPricing(const Ops& ops, const Network& network, const Shard& shard, const LayerGroups& groups)
      : ops_(ops), network_(network), groups_(groups), room_(ops.size()) {
    for (const Op& op : ops) {
      times_.push_back(op.kind == OpKind::kCollective ? collective(op)
                                                      : compute_cost(network.profile, shard.precision, op));
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind == OpKind::kCollective) continue;
      room_[i] = times_[i].time;
    }
  }

  PassPrice price(Category compute) {
    PassPrice price;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].kind == OpKind::kCollective) {
        add_exposed(price, i, times_[i].time - hidden(i));
      } else {
        price.add(compute, times_[i].time, times_[i].provenance);
      }
    }
    // Every step waits for the slowest GPU. Those before it in the pipeline, or beside it, compute and then wait.
    if (network_.slowest_gpu > 0)
      price.add(compute, from_seconds(to_seconds(price.of(compute)) * network_.slowest_gpu),
                network_.profile.gpu_variability->provenance);
    return price;
  }

  [[nodiscard]] const PassExchanges& exchanges() const { return exchanges_; }

  // Of the collectives that run beside the weight gradients; of those that bring an input together alone.
  [[nodiscard]] Duration beside_weight_gradient() const {
    return sum_beside([](const Op&) { return true; });
  }
  [[nodiscard]] Duration gathers_beside() const {
    return sum_beside([](const Op& op) { return op.collective == CollectiveKind::kAllGather; });
  }

 private:
  // What the software adds to a collective is hidden as the rest of it is.
  void add_exposed(PassPrice& price, std::size_t i, Duration exposed) const {
    price.add(category_of(ops_[i].group), exposed, times_[i].provenance);
    const Duration late = software_overhead(network_, groups_, ops_[i]) * ops_[i].kernels;
    if (late == Duration::zero()) return;
    const double share = to_seconds(late) / to_seconds(times_[i].time);
    price.restate(from_seconds(to_seconds(exposed) * share), times_[i].provenance,
                  network_.tensor_collective_overhead.provenance);
  }

  template <class Counts>
  [[nodiscard]] Duration sum_beside(Counts counts) const {
    Duration time{};
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      if (op.kind == OpKind::kCollective && op.beside == Beside::kWeightGradient && counts(op))
        time += times_[i].time;
    }
    return time;
  }

  // All launches of the operator.
  [[nodiscard]] Cost collective(const Op& op) {
    const CollectiveCost cost = layer_collective_cost(network_, groups_, op);
    if (network_.patterns != nullptr && cost.transfer > Duration::zero()) {
      if (op.nodes) {
        const NodeExchange exchange = node_exchange(network_, groups_, op);
        add_traffic(op, exchange.rails, exchange.between, exchange.over_rails);
        add_traffic(op, exchange.in_node, op.bytes, exchange.over_node);
      } else {
        add_traffic(op, {groups_.member, groups_.of(op.group), group_of(op.group)}, op.bytes, cost);
      }
      Exchanges& exchanges = exchanges_of(op);
      exchanges.time += cost.time * op.kernels;
      exchanges.transfer += cost.transfer * op.kernels;
      exchanges.launches += op.kernels;
    }
    return {.time = cost.time * op.kernels, .provenance = cost.provenance};
  }

  void add_traffic(const Op& op, const PlacedGroup& group, Bytes size, const CollectiveCost& cost) {
    if (cost.transfer == Duration::zero()) return;
    const int rank = network_.plan.mesh.coordinate(groups_.member, Axis::kPipeline);
    const double sent = bus_factor(op.collective, group.placement.ranks) * static_cast<double>(size.count());
    exchanges_of(op).traffic.add(collective_pattern(network_, rank, group.group, op.collective, cost),
                                 sent * static_cast<double>(op.kernels));
  }

  [[nodiscard]] Exchanges& exchanges_of(const Op& op) {
    return exchanges_[static_cast<std::size_t>(std::ranges::find(kInPass, category_of(op.group)) -
                                               kInPass.begin())];
  }

  // What `room` hides of `time`, of which `share` is left where both run; the room is used up.
  [[nodiscard]] static Duration behind(Duration& room, Duration time, double share) {
    const Duration beside = std::min(time, room);
    room -= beside;
    return from_seconds(to_seconds(beside) * share);
  }

  [[nodiscard]] Duration hidden(std::size_t i) {
    const Duration time = times_[i].time;
    switch (ops_[i].beside) {
      case Beside::kNothing:
      case Beside::kWeightGradient:  // over both backward passes together: price_operators
        return Duration::zero();
      case Beside::kNextGemm:
        return behind_gemm(time, i + 1, ops_.size(), 1);
      case Beside::kPreviousGemm:
        return behind_gemm(time, i, 0, -1);
      case Beside::kAttentionBlock:
        return behind_block(time, i);
      case Beside::kSharedExperts:
        return behind_shared(time, ops_[i].shared);
    }
    SC_CHECK(false, "every way to overlap is listed");
    return {};
  }

  // The nearest GEMM from `from` towards `end`; going back, index from - 1 is looked at first.
  [[nodiscard]] Duration behind_gemm(Duration time, std::size_t from, std::size_t end, int step) {
    for (std::size_t i = from; i != end; i = step > 0 ? i + 1 : i - 1) {
      const std::size_t at = step > 0 ? i : i - 1;
      if (ops_[at].kind == OpKind::kGemm)
        return behind(room_[at], time, network_.profile.tensor_overlap.value);
    }
    return Duration::zero();
  }

  // What one half of the shared experts hides.
  [[nodiscard]] Duration behind_shared(Duration time, SharedHalf half) {
    Duration hidden{}, covered{};
    for (std::size_t i = 0; i < ops_.size() && covered < time; ++i) {
      if (ops_[i].kind == OpKind::kCollective || ops_[i].shared != half) continue;
      const Duration beside = std::min(time - covered, room_[i]);
      covered += beside;
      hidden += behind(room_[i], beside, 1 / network_.profile.gradient_overlap_slowdown.value);
    }
    return hidden;
  }

  // The attention kernels that were launched last before the message: one flash kernel, or all of an unfused
  // core.
  [[nodiscard]] Duration behind_block(Duration time, std::size_t message) {
    Duration hidden{};
    for (std::size_t i = message; i-- > 0 && hidden < time;) {
      const OpKind kind = ops_[i].kind;
      if (kind == OpKind::kCollective || kind == OpKind::kGemm) break;
      const Duration beside = std::min(time - hidden, room_[i]);
      room_[i] -= beside;
      hidden += beside;
      if (kind == OpKind::kFlashForward || kind == OpKind::kFlashBackward) break;
    }
    return hidden;
  }

  const Ops& ops_;
  const Network& network_;
  const LayerGroups& groups_;
  std::vector<Cost> times_;
  std::vector<Duration> room_;  // of each compute operator, not yet used to hide something
  PassExchanges exchanges_;
};

void wait(PassPrice& price, Duration time) {
  if (time > Duration::zero()) price.add(Category::kOther, time, Provenance::kAssumed);
}

// Passes last at least as long as their host; what they wait beyond the GPUs' own time is `other`. Within a
// backward the host runs ahead: both parts of it, and what is made again before, wait together.
void wait_for_host(StagePrice& price) {
  wait(price.forward, price.forward.missing());
  Duration wanted{}, taken{};
  for (const PassPrice* part : {&price.recompute, &price.input_gradient, &price.weight_gradient}) {
    wanted += part->wanted();
    taken += part->total();
  }
  if (wanted <= taken) return;
  const Duration idle = wanted - taken;
  const double share = to_seconds(price.weight_gradient.wanted()) / to_seconds(wanted);
  const Duration of_weight = from_seconds(to_seconds(idle) * share);
  wait(price.input_gradient, idle - of_weight);
  wait(price.weight_gradient, of_weight);
  price.unhidden.hide(Category::kTensorComm, idle - of_weight);
}

// What is launched anew for each layer, because its shapes are known only when the router has run.
bool waits_in_each_layer(const LayerOps& ops, const HostCosts& costs) {
  return costs.graphs != CudaGraphs::kIteration &&
         std::ranges::any_of(ops.forward, [](const Op& op) { return op.routed; });
}

void add(StagePrice& sum, const StagePrice& price, std::int64_t times) {
  if (times == 0) return;
  sum.forward.add(price.forward, times);
  sum.recompute.add(price.recompute, times);
  sum.input_gradient.add(price.input_gradient, times);
  sum.weight_gradient.add(price.weight_gradient, times);
  sum.unhidden.add(price.unhidden, times);
  add(sum.traffic.forward, price.traffic.forward, times);
  add(sum.traffic.recompute, price.traffic.recompute, times);
  add(sum.traffic.input_gradient, price.traffic.input_gradient, times);
  add(sum.traffic.weight_gradient, price.traffic.weight_gradient, times);
}

bool alike(const Cluster& cluster, const LayerGroups& a, const LayerGroups& b) {
  const auto node = [&](const LayerGroups& groups) -> const NodeSpec& {
    return cluster.node_spec_of(device_of(groups.member));
  };
  return a.placement == b.placement && node(a) == node(b);
}

// The lowest rank of the group of `member` along one axis.
int first_of(const RankMesh& mesh, int member, Axis axis) {
  return member - mesh.coordinate(member, axis) * mesh.stride(axis);
}

std::vector<LayerGroups> find_layer_groups(const Network& network, int pipeline_rank) {
  // A group is asked once on each node that it lies on.
  std::array<std::map<std::pair<int, int>, GroupPlacement>, kCommGroupCount> known;
  std::vector<LayerGroups> all;
  for (const int member : pipeline_members(network.plan, pipeline_rank)) {
    LayerGroups groups{.member = member, .placement = {}};
    for (std::size_t i = 0; i < kCommGroupCount; ++i) {
      const RankGroup group = group_of(static_cast<CommGroup>(i));
      const GroupShape shape = shape_of(group);
      const RankMesh& mesh = shape.mesh(network.plan);
      const Axis axis = *shape.axes.begin();  // groups of layers lie along one
      if (mesh.degree(axis) == 1) continue;   // a group of one costs nothing, wherever it is
      const int node = network.cluster.node_of(device_of(member));
      const auto [at, is_new] = known[i].try_emplace({first_of(mesh, member, axis), node});
      if (is_new) at->second = placement_of(network, member, group);
      groups.placement[i] = at->second;
    }
    const bool seen = std::any_of(all.begin(), all.end(), [&](const LayerGroups& other) {
      return alike(network.cluster, groups, other);
    });
    if (!seen) all.push_back(groups);
  }
  return all;
}

}  // namespace

NodeExchange node_exchange(const Network& network, const LayerGroups& groups, const Op& op) {
  SC_CHECK(op.nodes && op.group == CommGroup::kExpert, "tokens go to experts by node");
  const GroupPlacement& whole = groups.of(op.group);
  NodeExchange exchange{.rails = {groups.member, rails_of(whole), RankGroup::kExpertRails},
                        .in_node = {groups.member, in_node_of(whole), RankGroup::kExpertInNode},
                        .between = op.nodes->over(whole.nodes)};
  const Category category = category_of(op.group);
  exchange.over_rails = network_cost(network, exchange.rails, {op.collective, exchange.between, category});
  exchange.over_node = network_cost(network, exchange.in_node, {op.collective, op.bytes, category});
  return exchange;
}

CollectiveCost NodeExchange::cost() const {
  CollectiveCost slower = over_rails.transfer > over_node.transfer ? over_rails : over_node;
  const CollectiveCost& other = over_rails.transfer > over_node.transfer ? over_node : over_rails;
  slower.time += other.time - other.transfer;
  slower.node_efficiency = over_node.node_efficiency;
  slower.network_efficiency = over_rails.network_efficiency;
  return slower;
}

namespace {

// PyTorch opens a communicator for each pair that sends outside a batch, and NCCL has the more channels for a
// message the fewer ranks a communicator has: in a node the length of a ring does not matter.
//   source  torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, getKeySendRecv; NCCL src/enqueue.cc,
//           nChannelsMin; TransformerEngine's context_parallel.py batches between two ranks alone.
GroupPlacement communicator_of(const GroupPlacement& group, CollectiveKind kind) {
  if (kind != CollectiveKind::kSendReceive || group.nodes > 1 || group.ranks == 1) return group;
  return {.ranks = 2, .ranks_per_node = 2, .groups_per_node = group.groups_per_node};
}

}  // namespace

CollectiveCost layer_collective_cost(const Network& network, const LayerGroups& groups, const Op& op) {
  if (op.nodes) return node_exchange(network, groups, op).cost();
  const GroupPlacement& group = groups.of(op.group);
  CollectiveCost cost =
      network_cost(network, {.member = groups.member, .placement = communicator_of(group, op.collective)},
                   {op.collective, op.bytes, category_of(op.group)});
  const FabricSpec& fabric = network.cluster.spec().fabric;
  if (op.group == CommGroup::kTensor && group.ranks > 1) {
    if (fabric.tensor_collective_factor != 1)
      cost.time = from_seconds(to_seconds(cost.time) * fabric.tensor_collective_factor);
    cost.time += fabric.tensor_collective_overhead + software_overhead(network, groups, op);
  }
  return cost;
}

std::vector<LayerGroups> layer_groups_of(const Network& network, int pipeline_rank) {
  if (network.memo == nullptr) return find_layer_groups(network, pipeline_rank);
  const auto [at, is_new] = network.memo->layers.try_emplace(pipeline_rank);
  if (is_new) at->second = find_layer_groups(network, pipeline_rank);
  return at->second;
}

StagePrice price_operators(const LayerOps& ops, const Network& network, const Shard& shard,
                           const LayerGroups& groups) {
  const auto pricing = [&](const Ops& pass) { return PassPricing(pass, network, shard, groups); };
  PassPricing forward = pricing(ops.forward), recompute = pricing(ops.recompute);
  PassPricing input = pricing(ops.input_gradient), weight = pricing(ops.weight_gradient);
  StagePrice price{.forward = forward.price(Category::kForward),
                   .recompute = recompute.price(Category::kRecompute),
                   .input_gradient = input.price(Category::kBackward),
                   .weight_gradient = weight.price(Category::kBackward),
                   .traffic = {.forward = forward.exchanges(),
                               .recompute = recompute.exchanges(),
                               .input_gradient = input.exchanges(),
                               .weight_gradient = weight.exchanges()}};
  // A backward collective that is issued before its layer's weight-gradient GEMM runs beside it; never more
  // than the GEMM lasts. Where that GEMM is put aside, gathers of inputs run beside the input-gradient GEMM
  // as before, and reductions are waited for.
  const auto overlapped = [&](Duration traffic) {
    return from_seconds(to_seconds(traffic) * network.profile.tensor_overlap.value);
  };
  const Duration hideable = input.beside_weight_gradient() + weight.beside_weight_gradient();
  Duration hidden = std::min(price.weight_gradient.of(Category::kBackward), overlapped(hideable));
  const Duration reductions = hidden - std::min(hidden, overlapped(input.gathers_beside()));
  const Duration exposed = std::min(reductions, price.input_gradient.of(Category::kTensorComm));
  for (PassPrice* pass : {&price.input_gradient, &price.weight_gradient})
    hidden -= pass->hide(Category::kTensorComm, hidden);
  price.unhidden.add(Category::kTensorComm, exposed, network.profile.tensor_overlap.provenance);
  const auto host = [&](const Ops& pass) { return host_time(pass, network.profile.host, network.host); };
  price.forward.keep_at_least(host(ops.forward));
  price.input_gradient.keep_at_least(host(ops.recompute) + host(ops.input_gradient));
  price.weight_gradient.keep_at_least(host(ops.weight_gradient));
  if (waits_in_each_layer(ops, network.host)) wait_for_host(price);
  return price;
}

const StagePrice& PiecePrices::of(const StageUnit& unit) const {
  switch (unit.kind) {
    case UnitKind::kEmbedding:
      return embedding;
    case UnitKind::kMtp:
      return mtp;
    case UnitKind::kHead:
      return head;
    case UnitKind::kLayer:
      break;
  }
  return (unit.recomputed ? recomputed : layer)[static_cast<std::size_t>(unit.layer)];
}

StagePricing::StagePricing(const TransformerSpec& model, const Network& network,
                           const PricingRequest& request)
    : model_(model),
      network_(network),
      request_(request),
      shard_(shard_of(request)),
      of_pipeline_rank_(static_cast<std::size_t>(network.plan.pipeline)) {}

// Full recompute repeats a prediction and its inner layer as it does any layer, block recompute only counts
// layers of the decoder.
StagePrice StagePricing::price_mtp(const PiecePrices& pieces, const LayerGroups& groups) const {
  const bool repeated = request_.training.recompute.repeats_mtp();
  StagePrice price = price_operators(mtp_operators(model_, shard_, repeated), network_, shard_, groups);
  add(price, pieces.of({.layer = model_.mtp_kind(), .recomputed = repeated}), 1);
  add(price, pieces.head, 1);
  return price;
}

PiecePrices StagePricing::price_pieces(const LayerGroups& groups) const {
  const auto priced = [&](const LayerOps& ops) { return price_operators(ops, network_, shard_, groups); };
  PiecePrices pieces{.groups = groups,
                     .embedding = priced(embedding_operators(model_, shard_)),
                     .head = priced(head_operators(model_, shard_))};
  for (const LayerKind kind : {LayerKind::kDense, LayerKind::kExperts}) {
    if (model_.layers_of(kind) == 0) continue;
    const auto i = static_cast<std::size_t>(kind);
    pieces.layer[i] = priced(layer_operators(model_, shard_, kind, false));
    if (shard_.recompute == Recompute::kFull)
      pieces.recomputed[i] = priced(layer_operators(model_, shard_, kind, true));
  }
  if (model_.mtp_layers > 0) pieces.mtp = price_mtp(pieces, groups);
  return pieces;
}

const std::vector<std::size_t>& StagePricing::placements_of(int pipeline_rank) {
  std::vector<std::size_t>& placements = of_pipeline_rank_[static_cast<std::size_t>(pipeline_rank)];
  if (!placements.empty()) return placements;
  for (const LayerGroups& groups : layer_groups_of(network_, pipeline_rank)) {
    const auto known = std::find_if(pieces_.begin(), pieces_.end(), [&](const PiecePrices& pieces) {
      return alike(network_.cluster, pieces.groups, groups) && same_links(pieces.groups, groups);
    });
    placements.push_back(static_cast<std::size_t>(known - pieces_.begin()));
    if (known == pieces_.end()) pieces_.push_back(price_pieces(groups));
  }
  return placements;
}

// Where links are shared, the traffic of a pipeline rank is on links of its own.
bool StagePricing::same_links(const LayerGroups& a, const LayerGroups& b) const {
  const auto rank = [&](const LayerGroups& groups) {
    return network_.plan.mesh.coordinate(groups.member, Axis::kPipeline);
  };
  return network_.patterns == nullptr || rank(a) == rank(b);
}

StagePrice StagePricing::sum_of(const PiecePrices& pieces, const StageContent& content) const {
  StagePrice price;
  for (const LayerKind kind : {LayerKind::kDense, LayerKind::kExperts}) {
    const auto i = static_cast<std::size_t>(kind);
    const std::int64_t again = content.recomputed_of(kind);
    add(price, pieces.layer[i], content.layers_of(kind) - again);
    add(price, pieces.recomputed[i], again);
  }
  if (content.embedding) add(price, pieces.embedding, 1);
  add(price, pieces.mtp, content.mtp_layers);
  // The head is last in a forward, where it covers nothing that was waited for, and first in a backward.
  wait(price.forward, price.forward.missing());
  if (content.head) add(price, pieces.head, 1);
  wait_for_host(price);
  return price;
}

StagePrice StagePricing::price(HeldStage held) {
  const StageContent& content = network_.plan.stages[static_cast<std::size_t>(held.stage)];
  const PiecePrices* slowest = nullptr;
  StagePrice price;
  for (const std::size_t i : placements_of(network_.plan.places().rank_of(held.stage, held.copy))) {
    const StagePrice here = sum_of(pieces_[i], content);
    if (slowest != nullptr && here.total() <= price.total()) continue;
    slowest = &pieces_[i];
    price = here;
  }
  SC_CHECK(slowest != nullptr, "a pipeline rank has a GPU");
  if (request_.parallelism.zero_stage < 2) return price;
  for (const StageUnit& unit : stage_units(model_, network_.plan, held.stage)) {
    const StagePrice& piece = slowest->of(unit);
    price.units.push_back({.gather = {},
                           .reduce = {},
                           .replicate = {},
                           .forward = piece.forward.total(),
                           .input_gradient = piece.recompute.total() + piece.input_gradient.total(),
                           .weight_gradient = piece.weight_gradient.total()});
  }
  return price;
}

}  // namespace stagecraft
