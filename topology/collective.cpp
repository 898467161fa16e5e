#include "topology/collective.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.hpp"
#include "topology/host_link.hpp"
#include "topology/in_node_curve.hpp"
#include "topology/network_ways.hpp"

namespace stagecraft {
namespace {

// Price of a collective inside a node, or of one way over nodes with its part inside them.
struct Priced {
  TierTime time;
  double node_bytes = 0, network_bytes = 0;  // of `time.bytes`, the seconds of each tier alone
  std::string_view algorithm;
  Provenance provenance = Provenance::kAnalytic;
  double network_efficiency = 1;
  double node_efficiency = 1;
};

struct Tier {
  TierTime time;
  Curve curve;
  double efficiency = 1;  // bytes of the algorithm on a GPU's link over the capacity of the link in that time
};

// What a GPU of a node has to so many of its GPUs, itself among them.
Bandwidth link_among(const NodeSpec& node, int ranks) {
  return node.nvlink > Bandwidth(0) ? node.nvlink_among(ranks) : node.pcie;
}

Tier inside(const CollectiveRequest& request, const Curve& curve) {
  const GroupPlacement& group = request.group;
  // An all-to-all sends to all n ranks, and only r - 1 of them are in the node.
  const double factor = request.kind == CollectiveKind::kAllToAll
                            ? static_cast<double>(group.ranks_per_node - 1) / group.ranks
                            : bus_factor(request.kind, group.ranks_per_node);
  const NodeSpec& node = request.cluster.node_spec_of(request.member);
  const Bandwidth link = link_among(node, group.ranks_per_node);
  const double sent = curve.algorithm == "nvls" ? 1 / factor : 1;  // S in place of f*S
  return {.time = time_of(curve, factor, request.size),
          .curve = curve,
          .efficiency = sent * curve.bus_rate / link.count()};
}

// NCCL pipelines the tiers: their transfers overlap, their latencies add. A chunk size k costs k for each
// step and 1/k for each start; at the best k the sum is twice the root of the product.
Priced over_nodes(const NetworkWay& way, const Tier& node) {
  const double bytes = std::max(node.time.bytes, way.bytes);
  const double fixed = node.time.fixed + way.latency + way.filling + 2 * std::sqrt(way.chunking * bytes);
  return {.time = {.fixed = fixed, .bytes = bytes},
          .node_bytes = node.time.bytes,
          .network_bytes = way.bytes,
          .algorithm = way.algorithm,
          .network_efficiency = way.efficiency,
          .node_efficiency = node.efficiency};
}

Priced price(const CollectiveRequest& request) {
  const auto& [cluster, profile, member, group, kind, size] = request;
  const NodeSpec& spec = cluster.node_spec_of(member);
  const int ranks = group.ranks_per_node;
  const NodeCollective in_node{.profile = profile, .node = spec, .kind = kind, .ranks = ranks, .size = size};
  if (group.nodes == 1) {
    const Tier node = inside(request, in_node_curve(in_node));
    return {.time = node.time,
            .node_bytes = node.time.bytes,
            .algorithm = node.curve.algorithm,
            .provenance = node.curve.provenance,
            .node_efficiency = node.efficiency};
  }
  const Tier passing = ranks > 1 ? inside(request, passing_curve(in_node)) : Tier{};
  std::optional<Priced> best;
  for (const NetworkWay& way : network_ways(request)) {
    const bool nvls = way.algorithm == "nvls-tree";
    const Priced priced = over_nodes(way, nvls ? inside(request, nvls_curve(profile, spec, ranks)) : passing);
    if (!best || priced.time.total() < best->time.total()) best = priced;
  }
  SC_CHECK(best, "there is a way between nodes");
  return *best;
}

double message_rate(const Cluster& cluster, DeviceId gpu, int concurrent) {
  const double share = cluster.node_network(gpu, concurrent).count() / concurrent;
  return std::min(share, cluster.gpu_network(gpu).count()) * cluster.spec().fabric.point_to_point_efficiency;
}

}  // namespace

CollectiveCost collective_cost(const CollectiveRequest& request) {
  const GroupPlacement& group = request.group;
  SC_CHECK(request.size >= Bytes(0), "a collective moves no negative bytes");
  SC_CHECK(group.nodes >= 1 && group.ranks_per_node >= 1 && group.groups_per_node >= 1 &&
               group.ranks >= group.nodes && group.ranks >= group.ranks_per_node &&
               group.least_ranks_per_node >= 1 && group.least_ranks_per_node <= group.ranks_per_node &&
               group.groups_per_rank >= 1,
           "a placement has a rank on every node");
  if (group.ranks == 1 || request.size == Bytes(0)) return {};

  const Priced best = price(request);
  const Duration time = from_seconds(best.time.total());
  return {.time = time,
          .transfer = std::min(from_seconds(best.time.bytes), time),
          .in_node = std::min(from_seconds(best.node_bytes), time),
          .between_nodes = std::min(from_seconds(best.network_bytes), time),
          .algorithm = best.algorithm,
          .relative_spread = request.profile.spread(best.provenance),
          .provenance = best.provenance,
          .network_efficiency = best.network_efficiency,
          .node_efficiency = best.node_efficiency};
}

CollectiveCost message_cost(const Cluster& cluster, DeviceId from, DeviceId to, Bytes size, int concurrent,
                            std::optional<Bandwidth> beyond_leaf) {
  SC_CHECK(size >= Bytes(0) && concurrent >= 1, "a message has a size and a sender");
  if (from == to || size == Bytes(0)) return {};
  if (cluster.node_of(from) == cluster.node_of(to)) {
    const NodeSpec& node = cluster.node_spec_of(from);
    const Duration bytes = size / (kCopyShare * link_among(node, 2));
    return {.time = 2 * node.nvlink_latency + bytes,
            .transfer = bytes,
            .in_node = bytes,
            .algorithm = "direct",
            .node_efficiency = kCopyShare};
  }
  const FabricSpec& fabric = cluster.spec().fabric;
  Bandwidth rate(std::min(message_rate(cluster, from, concurrent), message_rate(cluster, to, concurrent)));
  if (beyond_leaf) rate = std::min(rate, fabric.point_to_point_efficiency * *beyond_leaf);
  const Duration latency =
      fabric.point_to_point_latency + cluster.switches_between(from, to) * fabric.switch_latency;
  return {.time = latency + size / rate,
          .transfer = size / rate,
          .between_nodes = size / rate,
          .algorithm = "direct",
          .network_efficiency = fabric.point_to_point_efficiency};
}

}  // namespace stagecraft
