#include "sim/lower/messages.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "sim/lower/network_patterns.hpp"
#include "sim/lower/own_links.hpp"

namespace stagecraft {
namespace {

// One rank per group is asked, at coordinate 0 on the group's axes. All are asked where nodes differ, for the
// pipeline group, and for parts of a cut group.
bool speaks_for_others(const Network& network, int member, RankGroup group) {
  const GroupShape shape = shape_of(group);
  if (network.cluster.spec().groups.size() > 1) return true;
  if (group == RankGroup::kPipeline || shape.cut != GroupCut::kNone) return true;
  return std::ranges::all_of(
      shape.axes, [&](Axis axis) { return shape.mesh(network.plan).coordinate(member, axis) == 0; });
}

// Megatron-LM's plain schedules make one call per message. Its interleaved schedules make one call for the
// messages of a forward and a backward chunk together (send_forward_backward_recv_forward_backward).
Sourced<Duration> exchange_overhead_of(const PricingRequest& request) {
  if (request.overlap.pipeline) return {};
  const int messages = request.plan.virtual_stages > 1 ? 2 : 1;
  Sourced<Duration> overhead = request.options.rules.exchange_overhead;
  overhead.value /= messages;
  return overhead;
}

std::vector<PlacedGroup> find_groups(const Network& network, int pipeline_rank, RankGroup group) {
  std::vector<PlacedGroup> groups;
  for (const int member : pipeline_members(network.plan, pipeline_rank)) {
    if (!speaks_for_others(network, member, group)) continue;
    PlacedGroup placed{.member = member, .placement = placement_of(network, member, group), .group = group};
    if (placed.placement.nodes > 1)
      placed.placement.uplinks = network.memo.uplinks.of(network, member, group);
    const bool known = std::any_of(groups.begin(), groups.end(), [&](const PlacedGroup& other) {
      return alike(network.cluster, placed, other);
    });
    if (!known) groups.push_back(placed);
  }
  return groups;
}

// `sent` bytes at a cost; on shared links they meet other traffic, and `pattern()` says on which.
template <class Pattern>
PassPrice price_of(const Network& network, Category category, const CollectiveCost& cost, double sent,
                   Pattern pattern) {
  PassPrice price;
  if (network.patterns == nullptr)
    price.add(category, cost.time, cost.provenance);
  else
    price.add(network_use(category, cost, pattern(), sent), cost.provenance);
  return price;
}

// Price of one direction of an edge, as its slowest pair of GPUs takes it.
PassPrice message_price(const Network& network, int from, int to, const CollectiveCost& cost, Bytes size) {
  PassPrice price = price_of(network, Category::kPipelineComm, cost, static_cast<double>(size.count()),
                             [&] { return message_pattern(network, from, to, cost); });
  if (network.patterns != nullptr)
    price.restate(network.exchange_overhead.value, cost.provenance, network.exchange_overhead.provenance);
  return price;
}

// Bandwidth of each message when all GPUs of one pipeline rank send to another rank at the same time:
// messages that leave a leaf share its uplinks, messages that enter one share its downlinks.
class LeafCrossings {
 public:
  LeafCrossings(const Network& network, const std::vector<int>& senders, const std::vector<int>& receivers)
      : cluster_(network.cluster) {
    // On shared links the flows compete for the uplinks themselves.
    if (network.patterns != nullptr || cluster_.spec().fabric.oversubscription == 1) return;
    for (std::size_t i = 0; i < senders.size(); ++i) {
      const int from = cluster_.leaf_of(device_of(senders[i])),
                to = cluster_.leaf_of(device_of(receivers[i]));
      if (from == to) continue;
      ++leaving_[from];
      ++coming_[to];
    }
  }

  // Nullopt inside one leaf, and where the fabric is not oversubscribed.
  [[nodiscard]] std::optional<Bandwidth> share(DeviceId from, DeviceId to) const {
    const auto leaving = leaving_.find(cluster_.leaf_of(from));
    const auto coming = coming_.find(cluster_.leaf_of(to));
    if (leaving == leaving_.end() || coming == coming_.end() || leaving->first == coming->first)
      return std::nullopt;
    return std::min(cluster_.leaf_uplinks(from) / leaving->second,
                    cluster_.leaf_uplinks(to) / coming->second);
  }

 private:
  const Cluster& cluster_;
  std::map<int, int> leaving_, coming_;  // messages, by leaf
};

EdgePrice slowest_message(const Network& network, int from, int to, Bytes size) {
  const Cluster& cluster = network.cluster;
  const ParallelPlan& plan = network.plan;
  EdgePrice price;
  const std::vector<int> senders = pipeline_members(plan, from);
  const std::vector<int> receivers = pipeline_members(plan, to);
  CollectiveCost there, back;
  const LeafCrossings out_ways(network, senders, receivers), home_ways(network, receivers, senders);
  std::pair<int, int> before{-1, -1};
  for (std::size_t i = 0; i < senders.size(); ++i) {
    const int a = senders[i], b = receivers[i];
    const std::pair nodes{cluster.node_of(device_of(a)), cluster.node_of(device_of(b))};
    if (nodes == before) continue;  // the same pair of nodes as the GPU before it
    before = nodes;
    price.between_nodes = price.between_nodes || nodes.first != nodes.second;
    const DeviceId from_gpu = device_of(a), to_gpu = device_of(b);
    const CollectiveCost out =
        message_cost(cluster, from_gpu, to_gpu, size, same_stage_on_node(cluster, plan, a),
                     out_ways.share(from_gpu, to_gpu));
    const CollectiveCost home =
        message_cost(cluster, to_gpu, from_gpu, size, same_stage_on_node(cluster, plan, b),
                     home_ways.share(to_gpu, from_gpu));
    if (out.time > there.time) there = out;
    if (home.time > back.time) back = home;
  }
  // On shared links the overhead is part of the network use; otherwise rank_message() adds it.
  if (network.patterns != nullptr) {
    there.time += network.exchange_overhead.value;
    back.time += network.exchange_overhead.value;
  }
  price.forward = message_price(network, from, to, there, size);
  price.backward = message_price(network, to, from, back, size);
  return price;
}

}  // namespace

Network network_of(const Cluster& cluster, const HardwareProfile& profile, const PricingRequest& request,
                   PlacementMemo& memo, PatternTable* patterns) {
  return {.cluster = cluster,
          .profile = profile,
          .plan = request.plan,
          .memo = memo,
          .patterns = request.shared_links ? patterns : nullptr,
          .collectives = request.collectives,
          .exchange_overhead = exchange_overhead_of(request),
          .tensor_collective_overhead = request.options.rules.tensor_collective_overhead,
          .host = host_costs(request.options),
          .slowest_gpu = profile.slowest_of(request.gpus.value_or(request.plan.gpus()))};
}

bool alike(const Cluster& cluster, const PlacedGroup& a, const PlacedGroup& b) {
  return a.placement == b.placement &&
         cluster.node_spec_of(device_of(a.member)) == cluster.node_spec_of(device_of(b.member));
}

const std::vector<PlacedGroup>& groups_of(const Network& network, int pipeline_rank, RankGroup group) {
  const auto [at, is_new] = network.memo.groups.try_emplace({pipeline_rank, group});
  if (is_new) at->second = find_groups(network, pipeline_rank, group);
  return at->second;
}

std::size_t CollectiveMemo::Hash::operator()(const Question& question) const {
  std::uint64_t mixed = 0;
  const auto mix = [&](std::uint64_t value) {  // a multiplier with bits all over: 2^64 / golden ratio
    mixed = (mixed ^ value) * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 32;
  };
  mix(reinterpret_cast<std::uintptr_t>(question.node));
  const GroupPlacement& group = question.placement;
  for (const int count : {group.ranks, group.nodes, group.ranks_per_node, group.groups_per_node,
                          group.least_ranks_per_node, group.groups_per_rank})
    mix(static_cast<std::uint64_t>(count));
  mix(static_cast<std::uint64_t>(question.kind));
  mix(static_cast<std::uint64_t>(question.size.count()));
  return mixed;
}

const CollectiveCost& CollectiveMemo::cost(const Cluster& cluster, const HardwareProfile& profile,
                                           const PlacedGroup& group, const CollectiveJob& job) {
  const DeviceId member = device_of(group.member);
  const auto [at, is_new] = known_.try_emplace({.node = &cluster.node_spec_of(member),
                                                .placement = group.placement,
                                                .kind = job.kind,
                                                .size = job.size});
  if (is_new) at->second = collective_cost({cluster, profile, member, group.placement, job.kind, job.size});
  return at->second;
}

CollectiveCost network_cost(const Network& network, const PlacedGroup& group, const CollectiveJob& job) {
  if (network.collectives != nullptr)
    return network.collectives->cost(network.cluster, network.profile, group, job);
  return collective_cost(
      {network.cluster, network.profile, device_of(group.member), group.placement, job.kind, job.size});
}

PassPrice group_price(const Network& network, const std::vector<PlacedGroup>& groups,
                      const CollectiveJob& job) {
  SC_CHECK(!groups.empty(), "a pipeline rank is in a group of every axis");
  CollectiveCost slowest;
  for (const PlacedGroup& group : groups) {
    const CollectiveCost cost = network_cost(network, group, job);
    if (cost.time > slowest.time) slowest = cost;
  }
  slowest.time += job.beside;
  const PlacedGroup& group = groups.front();
  const int rank = network.plan.mesh.coordinate(group.member, Axis::kPipeline);
  if (network.own_links != nullptr) {
    PassPrice price;
    price.add(own_links_use(network, rank, job.category, slowest), slowest.provenance);
    return price;
  }
  const double sent = bus_factor(job.kind, group.placement.ranks) * static_cast<double>(job.size.count());
  return price_of(network, job.category, slowest, sent,
                  [&] { return collective_pattern(network, rank, group.group, job.kind, slowest); });
}

EdgePrice edge_price(const Network& network, HeldStage held, Bytes size) {
  const StagePlaces places = network.plan.places();
  return rank_message(network, places.rank_of(held.stage, held.copy),
                      places.rank_of(held.stage + 1, held.copy), size);
}

EdgePrice rank_message(const Network& network, int from, int to, Bytes size) {
  if (from == to || size == Bytes(0)) return {};
  const auto [at, is_new] = network.memo.messages.try_emplace({from, to, size});
  if (is_new) at->second = slowest_message(network, from, to, size);
  EdgePrice price = at->second;
  if (network.patterns == nullptr) {
    for (PassPrice* way : {&price.forward, &price.backward})
      way->add(Category::kPipelineComm, network.exchange_overhead.value,
               network.exchange_overhead.provenance);
  }
  return price;
}

PassPrice pair_price(const Network& network, int rank, int other, Bytes size) {
  SC_CHECK(rank != other, "a rank has nothing to tell itself");
  const Cluster& cluster = network.cluster;
  const std::vector<int> ours = pipeline_members(network.plan, rank);
  const std::vector<int> theirs = pipeline_members(network.plan, other);
  const LeafCrossings ways(network, ours, theirs);
  CollectiveCost slowest;
  std::pair before{-1, -1};
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const std::pair nodes{cluster.node_of(device_of(ours[i])), cluster.node_of(device_of(theirs[i]))};
    if (nodes == before) continue;  // the same pair of nodes as the GPU before it
    before = nodes;
    const bool one_node = nodes.first == nodes.second;
    GroupPlacement pair{.ranks = 2,
                        .nodes = one_node ? 1 : 2,
                        .ranks_per_node = one_node ? 2 : 1,
                        .groups_per_node = same_stage_on_node(cluster, network.plan, ours[i])};
    if (const auto share = ways.share(device_of(ours[i]), device_of(theirs[i])))
      pair.uplinks.ring = pair.uplinks.tree = 1 / share->count();
    const CollectiveCost cost = network_cost(network, {.member = ours[i], .placement = pair},
                                             {CollectiveKind::kAllReduce, size, Category::kDataComm});
    if (cost.time > slowest.time) slowest = cost;
  }
  return price_of(network, Category::kDataComm, slowest, static_cast<double>(size.count()),
                  [&] { return pair_pattern(network, rank, other, slowest); });
}

}  // namespace stagecraft
