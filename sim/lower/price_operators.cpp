#include "sim/lower/price_operators.hpp"

#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "models/compute_cost.hpp"
#include "sim/lower/host_time.hpp"
#include "sim/lower/network_patterns.hpp"
#include "sim/lower/own_links.hpp"

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

// PyTorch opens a communicator for each pair that sends outside a batch. NCCL uses more channels per message
// the fewer ranks a communicator has. So inside a node the length of a ring does not matter.
//   source  torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, getKeySendRecv; NCCL src/enqueue.cc,
//           nChannelsMin; TransformerEngine's context_parallel.py batches between two ranks alone.
GroupPlacement communicator_of(const GroupPlacement& group, CollectiveKind kind) {
  if (kind != CollectiveKind::kSendReceive || group.nodes > 1 || group.ranks == 1) return group;
  return {.ranks = 2, .ranks_per_node = 2, .groups_per_node = group.groups_per_node};
}

// Software overhead of one launch of a layer's collective.
Duration software_overhead(const Network& network, const LayerGroups& groups, const Op& op) {
  if (op.nodes || op.with_another || op.group != CommGroup::kTensor || groups.of(op.group).ranks == 1)
    return {};
  const Duration whole = network.tensor_collective_overhead.value;
  return op.collective == CollectiveKind::kAllReduce ? whole : whole / 2;
}

// Prices one operator list on one GPU: the times of its operators, and the exposed part of its collectives.
class PassPricing {
 public:
  PassPricing(const Ops& ops, const Network& network, const Shard& shard, const LayerGroups& groups)
      : ops_(ops), network_(network), groups_(groups) {
    for (const Op& op : ops) {
      const bool compute = op.kind != OpKind::kCollective;
      times_.push_back(compute ? compute_cost(network.profile, shard.precision, op) : collective(op));
      room_.push_back(compute ? times_.back().time : Duration::zero());
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
    // Every step waits for the slowest GPU. The other GPUs compute and then wait.
    if (network_.slowest_gpu > 0)
      price.add(compute, from_seconds(to_seconds(price.of(compute)) * network_.slowest_gpu),
                network_.profile.gpu_variability->provenance);
    return price;
  }

  [[nodiscard]] const PassExchanges& exchanges() const { return exchanges_; }

  // Time of the collectives that overlap the weight gradients, and of the all-gathers among them.
  [[nodiscard]] Duration beside_weight_gradient() const {
    return sum_beside([](const Op&) { return true; });
  }
  [[nodiscard]] Duration gathers_beside() const {
    return sum_beside([](const Op& op) { return op.collective == CollectiveKind::kAllGather; });
  }

 private:
  // The software overhead is hidden in the same proportion as the transfer.
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

  // Cost of all launches of the operator.
  [[nodiscard]] Cost collective(const Op& op) {
    const CollectiveCost cost = layer_collective_cost(network_, groups_, op);
    const bool shares = network_.patterns != nullptr || network_.own_links != nullptr;  // one of them
    if (shares && cost.transfer > Duration::zero()) note_exchange(op, cost);
    return {.time = cost.time * op.kernels, .provenance = cost.provenance};
  }

  void note_exchange(const Op& op, const CollectiveCost& cost) {
    Exchanges& exchanges = exchanges_of(op);
    if (network_.own_links != nullptr) {
      add_to_own_links(network_, pipeline_rank(), cost, op.kernels, exchanges.traffic);
    } else if (op.nodes) {
      const NodeExchange exchange = node_exchange(network_, groups_, op);
      add_traffic(op, exchange.rails, exchange.between, exchange.over_rails);
      add_traffic(op, exchange.in_node, op.bytes, exchange.over_node);
    } else {
      add_traffic(op, {groups_.member, groups_.of(op.group), group_of(op.group)}, op.bytes, cost);
    }
    exchanges.time += cost.time * op.kernels;
    exchanges.transfer += cost.transfer * op.kernels;
    exchanges.launches += op.kernels;
  }

  void add_traffic(const Op& op, const PlacedGroup& group, Bytes size, const CollectiveCost& cost) {
    if (cost.transfer == Duration::zero()) return;
    const double sent = bus_factor(op.collective, group.placement.ranks) * static_cast<double>(size.count());
    exchanges_of(op).traffic.add(
        collective_pattern(network_, pipeline_rank(), group.group, op.collective, cost),
        sent * static_cast<double>(op.kernels));
  }

  [[nodiscard]] int pipeline_rank() const {
    return network_.plan.mesh.coordinate(groups_.member, Axis::kPipeline);
  }

  [[nodiscard]] Exchanges& exchanges_of(const Op& op) {
    return exchanges_[static_cast<std::size_t>(std::ranges::find(kInPass, category_of(op.group)) -
                                               kInPass.begin())];
  }

  // Part of `time` that `room` of compute hides: the fraction `share` of their overlap. The overlap uses up
  // the room.
  [[nodiscard]] static Duration behind(Duration& room, Duration time, double share) {
    const Duration beside = std::min(time, room);
    room -= beside;
    return from_seconds(to_seconds(beside) * share);
  }

  [[nodiscard]] Duration hidden(std::size_t i) {
    const Duration time = times_[i].time;
    switch (ops_[i].beside) {
      case Beside::kNothing:
      case Beside::kWeightGradient:  // price_operators() hides it over both backward passes together
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

  // Hides `time` behind the nearest GEMM from `from` towards `end`. Going back, index from - 1 comes first.
  [[nodiscard]] Duration behind_gemm(Duration time, std::size_t from, std::size_t end, int step) {
    for (std::size_t i = from; i != end; i = step > 0 ? i + 1 : i - 1) {
      const std::size_t at = step > 0 ? i : i - 1;
      if (ops_[at].kind == OpKind::kGemm)
        return behind(room_[at], time, network_.profile.tensor_overlap.value);
    }
    return Duration::zero();
  }

  // Hides `time` behind one half of the shared experts.
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

  // Hides `time` behind the attention kernels launched last before the message: one flash kernel, or all
  // kernels of an unfused core.
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
  std::vector<Duration> room_;  // [operator]: its compute time that hides nothing yet
  PassExchanges exchanges_;
};

void wait(PassPrice& price, Duration time) {
  if (time > Duration::zero()) price.add(Category::kOther, time, Provenance::kAssumed);
}

// Kernels are launched layer by layer: shapes are known only after the router has run.
bool waits_in_each_layer(const LayerOps& ops, const HostCosts& costs) {
  return costs.graphs != CudaGraphs::kIteration &&
         std::ranges::any_of(ops.forward, [](const Op& op) { return op.routed; });
}

}  // namespace

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
  slower.in_node = over_node.in_node;
  slower.between_nodes = over_rails.between_nodes;
  slower.node_efficiency = over_node.node_efficiency;
  slower.network_efficiency = over_rails.network_efficiency;
  return slower;
}

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
    cost.time += software_overhead(network, groups, op);
    if (!op.with_another) cost.time += fabric.tensor_collective_overhead;
  }
  return cost;
}

void wait_for_host(PassPrice& pass) {
  wait(pass, pass.missing());
}

void wait_for_host(StagePrice& price) {
  wait_for_host(price.forward);
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

// What the exchanges of a layer have no time above its host's to be hidden in. Of a whole backward that is one: the
// host runs ahead in it.
void bind_exchanges(StagePrice& price) {
  const auto bind = [](PassPrice& pass, Duration exchanges, Duration of_experts, Duration spare) {
    const Duration free = std::max(Duration::zero(), spare);
    pass.bind_exchanges(std::max(Duration::zero(), exchanges - free),
                        std::max(Duration::zero(), of_experts - free));
  };
  const auto experts = [](const PassPrice& pass) { return pass.of(Category::kExpertComm); };
  bind(price.forward, price.forward.exchanges(), experts(price.forward),
       price.forward.total() - price.forward.wanted());
  Duration spare{};
  for (const PassPrice* part : {&price.recompute, &price.input_gradient, &price.weight_gradient})
    spare += part->total() - part->wanted();
  const Duration of_weight = price.weight_gradient.exchanges();
  bind(price.weight_gradient, of_weight, experts(price.weight_gradient), spare);
  bind(price.input_gradient, price.recompute.exchanges() + price.input_gradient.exchanges(),
       experts(price.recompute) + experts(price.input_gradient), spare - of_weight);
}

StagePrice price_operators(const LayerOps& ops, const Network& network, const Shard& shard,
                           const LayerGroups& groups) {
  const auto pricing = [&](const Ops& pass) { return PassPricing(pass, network, shard, groups); };
  PassPricing forward = pricing(ops.forward), recompute = pricing(ops.recompute);
  PassPricing input = pricing(ops.input_gradient), weight = pricing(ops.weight_gradient);
  StagePrice price{{.forward = forward.price(Category::kForward),
                    .recompute = recompute.price(Category::kRecompute),
                    .input_gradient = input.price(Category::kBackward),
                    .weight_gradient = weight.price(Category::kBackward)}};
  price.traffic = {.forward = forward.exchanges(),
                   .recompute = recompute.exchanges(),
                   .input_gradient = input.exchanges(),
                   .weight_gradient = weight.exchanges()};
  // A backward collective that is issued before its layer's weight-gradient GEMM overlaps it, for at most the
  // duration of the GEMM. In a split backward, where that GEMM runs later, gathers of inputs still overlap
  // the input-gradient GEMM, and reductions are exposed.
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
  if (waits_in_each_layer(ops, network.host)) {
    wait_for_host(price);
    bind_exchanges(price);
  }
  return price;
}

}  // namespace stagecraft
