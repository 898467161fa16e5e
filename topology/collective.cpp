#include "topology/collective.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

#include "base/check.hpp"

namespace stagecraft {
namespace {

constexpr double kPeerCopyShare = 0.87;  // see the header of message_cost
constexpr double kTreeBusShare =
    0.92;  // NCCL tuning.cc: tree rate min(0.92 * busBw, ...), halved for its two passes

// t(S) = latency + S*factor/bus_rate + sqrt_term*sqrt(S), in seconds and bytes per second.
struct Curve {
  double latency = 0;
  double bus_rate = 0;
  double sqrt_term = 0;
  std::string_view algorithm = "any";
  Provenance provenance = Provenance::kAnalytic;
};

// A time in two parts: what overlaps with another tier and what does not.
struct TierTime {
  double fixed = 0;
  double bytes = 0;
  [[nodiscard]] double total() const { return fixed + bytes; }
};

bool one_way(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kSendReceive;
}

// Names that outlive the profile.
std::string_view algorithm_name(std::string_view in_profile) {
  for (const std::string_view name : {"ring", "tree", "nvls", "direct"})
    if (in_profile == name) return name;
  return "any";
}

Curve exact(const CollectiveFit& fit) {
  return {.latency = to_seconds(fit.latency),
          .bus_rate = fit.bus_bandwidth.count(),
          .sqrt_term = fit.sqrt_seconds,
          .algorithm = algorithm_name(fit.algorithm),
          .provenance = fit.provenance};
}

Curve between(const CollectiveFit& low, const CollectiveFit& high, int ranks) {
  const double share = std::log2(static_cast<double>(ranks) / low.ranks) /
                       std::log2(static_cast<double>(high.ranks) / low.ranks);
  const Curve a = exact(low);
  const Curve b = exact(high);
  return {.latency = std::lerp(a.latency, b.latency, share),
          .bus_rate = std::lerp(a.bus_rate, b.bus_rate, share),
          .sqrt_term = std::lerp(a.sqrt_term, b.sqrt_term, share),
          .algorithm = a.algorithm,
          .provenance = Provenance::kInterpolated};
}

// The curve of one algorithm for `ranks`, from its fits inside a node; nullopt when it has none (NVLS: none
// around `ranks`).
std::optional<Curve> fitted(const HardwareProfile& profile, CollectiveKind kind, std::string_view algorithm,
                            int ranks) {
  const CollectiveFit* low = nullptr;   // the largest size <= ranks
  const CollectiveFit* high = nullptr;  // the smallest size >= ranks
  for (const CollectiveFit& fit : profile.collectives) {
    if (fit.kind != kind || fit.nodes != 1 || algorithm_name(fit.algorithm) != algorithm) continue;
    if (fit.ranks <= ranks && (low == nullptr || fit.ranks > low->ranks)) low = &fit;
    if (fit.ranks >= ranks && (high == nullptr || fit.ranks < high->ranks)) high = &fit;
  }
  if (low == nullptr && high == nullptr) return std::nullopt;
  if (low != nullptr && high != nullptr)
    return low->ranks == ranks ? exact(*low) : between(*low, *high, ranks);
  if (algorithm == "nvls") return std::nullopt;
  Curve nearest = exact(low != nullptr ? *low : *high);
  nearest.provenance = Provenance::kAnalytic;
  return nearest;
}

// All-reduce's curve for another kind: the same bus rate; one-way kinds pass the data once where all-reduce
// does twice.
Curve derived(Curve all_reduce, CollectiveKind kind) {
  if (one_way(kind)) {
    all_reduce.latency /= 2;
    all_reduce.sqrt_term /= 2;
  }
  if (kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kSendReceive)
    all_reduce.algorithm = "direct";
  all_reduce.provenance = Provenance::kAnalytic;
  return all_reduce;
}

// What is believed of a node that nobody measured: shares of the link rate seen elsewhere.
//   NVLink  12 us, 0.78 of the link, 8 ns per square root of a byte: fit on 8 H100 through XLA.
//   PCIe    0.70 of the link for 2 GPUs, falling with log2 n to 0.42 for 8: SimuMax's all-reduce factors of
//   A100-PCIe.
Curve unmeasured(const NodeSpec& node, int ranks) {
  Curve curve{.latency = 12e-6, .sqrt_term = 8e-9, .provenance = Provenance::kAssumed};
  const double doublings = std::log2(static_cast<double>(ranks)) - 1;
  curve.bus_rate = node.nvlink > Bandwidth(0) ? 0.78 * node.nvlink.count()
                                              : std::max(0.42, 0.70 - 0.14 * doublings) * node.pcie.count();
  SC_CHECK(curve.bus_rate > 0, "GPUs of a node are joined by NVLink or PCIe");
  return curve;
}

TierTime time_of(const Curve& curve, double factor, Bytes size) {
  const auto s = static_cast<double>(size.count());
  return {.fixed = curve.latency + curve.sqrt_term * std::sqrt(s), .bytes = s * factor / curve.bus_rate};
}

// The fastest of the profile's algorithms for a group inside one node.
Curve in_node_curve(const HardwareProfile& profile, const NodeSpec& node, CollectiveKind kind, int ranks,
                    Bytes size) {
  const double factor = bus_factor(kind, ranks);
  std::optional<Curve> best;
  const auto consider = [&](const std::optional<Curve>& curve) {
    if (curve && (!best || time_of(*curve, factor, size).total() < time_of(*best, factor, size).total()))
      best = curve;
  };
  for (const std::string_view algorithm : {"any", "ring", "tree", "nvls", "direct"})
    consider(fitted(profile, kind, algorithm, ranks));
  if (!best && kind != CollectiveKind::kAllReduce)
    for (const std::string_view algorithm : {"any", "ring"})
      if (const auto curve = fitted(profile, CollectiveKind::kAllReduce, algorithm, ranks))
        consider(derived(*curve, kind));
  if (!best) return unmeasured(node, ranks);
  // A node with other NVLinks than the one that was measured: bytes at the ratio of the rates.
  const Bandwidth measured_on = profile.device.nvlink;
  if (measured_on > Bandwidth(0) && node.nvlink > Bandwidth(0)) best->bus_rate *= node.nvlink / measured_on;
  return *best;
}

// Bytes that one group sends out of a node, were its uplinks not oversubscribed; see the header for each
// term.
double bytes_out(const GroupPlacement& group, CollectiveKind kind, Bytes size) {
  const auto s = static_cast<double>(size.count());
  const double nodes = group.nodes;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (nodes - 1) / nodes * s;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return (nodes - 1) / nodes * s;
    case CollectiveKind::kAllToAll:
      return group.ranks_per_node * s * (group.ranks - group.ranks_per_node) / group.ranks;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendReceive:
      return s;
  }
  SC_CHECK(false, "every kind of collective is listed");
  return 0;
}

// The all-to-all bytes that cross the spine, counted as often as its uplinks are oversubscribed.
double uplink_bytes(const FabricSpec& fabric, const GroupPlacement& group, Bytes size) {
  if (fabric.kind == FabricKind::kSingleSwitch) return 0;
  const int below = group.ranks_per_node * fabric.nodes_per_leaf;  // members below one leaf
  const double far_away = static_cast<double>(std::max(0, group.ranks - below)) / group.ranks;
  return fabric.oversubscription * group.ranks_per_node * static_cast<double>(size.count()) * far_away;
}

// Bytes per second that all groups on the node get out of it together.
double usable_network(const Cluster& cluster, DeviceId member, const GroupPlacement& group,
                      CollectiveKind kind) {
  const bool one_sender = kind == CollectiveKind::kSendReceive;
  const FabricSpec& fabric = cluster.spec().fabric;
  const int senders = group.groups_per_node * (one_sender ? 1 : group.ranks_per_node);
  const double rate =
      std::min(cluster.node_network(member).count(), senders * cluster.gpu_network(member).count());
  return rate * (one_sender ? fabric.point_to_point_efficiency : fabric.collective_efficiency);
}

double network_latency(const FabricSpec& fabric, CollectiveKind kind, int steps) {
  if (kind == CollectiveKind::kSendReceive) return to_seconds(fabric.point_to_point_latency);
  return to_seconds(fabric.collective_latency) + steps * to_seconds(fabric.step_latency);
}

struct NetworkTime {
  TierTime time;
  std::string_view algorithm;
};

// The two ways NCCL has for an all-reduce over nodes; the other kinds have one. The first is the ring (or
// direct).
std::array<NetworkTime, 2> network_times(const Cluster& cluster, DeviceId member, const GroupPlacement& group,
                                         CollectiveKind kind, Bytes size) {
  const FabricSpec& fabric = cluster.spec().fabric;
  const double rate = usable_network(cluster, member, group, kind) / group.groups_per_node;
  SC_CHECK(rate > 0, "a group over nodes has a network");
  const bool all_to_all = kind == CollectiveKind::kAllToAll;
  const bool all_reduce = kind == CollectiveKind::kAllReduce;

  double out = bytes_out(group, kind, size);
  if (all_to_all) out = std::max(out, uplink_bytes(fabric, group, size));
  const int ring_steps = (all_reduce ? 2 : 1) * (group.nodes - 1);
  const bool direct = all_to_all || kind == CollectiveKind::kSendReceive;
  const NetworkTime ring{{network_latency(fabric, kind, ring_steps), out / rate}, direct ? "direct" : "ring"};
  if (!all_reduce) return {ring, ring};

  const auto depth =
      static_cast<int>(std::bit_width(static_cast<unsigned>(group.nodes - 1)));  // ceil(log2 N)
  const double tree_bytes = 2 * static_cast<double>(size.count()) / kTreeBusShare;
  return {ring, NetworkTime{{network_latency(fabric, kind, 2 * depth), tree_bytes / rate}, "tree"}};
}

CollectiveCost finished(const HardwareProfile& profile, TierTime time, std::string_view algorithm,
                        Provenance provenance) {
  return {.time = from_seconds(time.total()),
          .transfer = std::min(from_seconds(time.bytes), from_seconds(time.total())),
          .algorithm = algorithm,
          .relative_spread = profile.relative_spread[static_cast<std::size_t>(provenance)],
          .provenance = provenance};
}

double message_rate(const Cluster& cluster, DeviceId gpu, int concurrent) {
  const double share = cluster.node_network(gpu).count() / concurrent;
  return std::min(share, cluster.gpu_network(gpu).count()) * cluster.spec().fabric.point_to_point_efficiency;
}

}  // namespace

CollectiveCost collective_cost(const Cluster& cluster, const HardwareProfile& profile, DeviceId member,
                               const GroupPlacement& group, CollectiveKind kind, Bytes size) {
  SC_CHECK(size >= Bytes(0), "a collective moves no negative bytes");
  SC_CHECK(group.nodes >= 1 && group.ranks_per_node >= 1 && group.groups_per_node >= 1 &&
               group.ranks >= group.nodes && group.ranks >= group.ranks_per_node,
           "a placement has a rank on every node");
  if (group.ranks == 1 || size == Bytes(0)) return {};

  TierTime inside;
  Curve curve;
  if (group.ranks_per_node > 1) {
    curve = in_node_curve(profile, cluster.node_spec_of(member), kind, group.ranks_per_node, size);
    // An all-to-all sends to all n ranks, and only r - 1 of them are in the node.
    const double factor = kind == CollectiveKind::kAllToAll
                              ? static_cast<double>(group.ranks_per_node - 1) / group.ranks
                              : bus_factor(kind, group.ranks_per_node);
    inside = time_of(curve, factor, size);
  }
  if (group.nodes == 1) return finished(profile, inside, curve.algorithm, curve.provenance);

  const auto both = [&](const NetworkTime& network) {
    return TierTime{inside.fixed + network.time.fixed, std::max(inside.bytes, network.time.bytes)};
  };
  const auto [ring, tree] = network_times(cluster, member, group, kind, size);
  const NetworkTime& best = both(tree).total() < both(ring).total() ? tree : ring;
  CollectiveCost cost = finished(profile, both(best), best.algorithm, Provenance::kAnalytic);
  const FabricSpec& fabric = cluster.spec().fabric;
  cost.network_efficiency =
      kind == CollectiveKind::kSendReceive ? fabric.point_to_point_efficiency : fabric.collective_efficiency;
  if (best.algorithm == "tree") cost.network_efficiency *= kTreeBusShare;
  return cost;
}

CollectiveCost message_cost(const Cluster& cluster, DeviceId from, DeviceId to, Bytes size, int concurrent) {
  SC_CHECK(size >= Bytes(0) && concurrent >= 1, "a message has a size and a sender");
  if (from == to || size == Bytes(0)) return {};
  if (cluster.node_of(from) == cluster.node_of(to)) {
    const NodeSpec& node = cluster.node_spec_of(from);
    const Bandwidth link = node.nvlink > Bandwidth(0) ? node.nvlink : node.pcie;
    const Duration bytes = size / (kPeerCopyShare * link);
    return {.time = 2 * node.nvlink_latency + bytes,
            .transfer = bytes,
            .algorithm = "direct",
            .node_efficiency = kPeerCopyShare};
  }
  const FabricSpec& fabric = cluster.spec().fabric;
  const Bandwidth rate(
      std::min(message_rate(cluster, from, concurrent), message_rate(cluster, to, concurrent)));
  const Duration latency =
      fabric.point_to_point_latency + cluster.switches_between(from, to) * fabric.switch_latency;
  return {.time = latency + size / rate,
          .transfer = size / rate,
          .algorithm = "direct",
          .network_efficiency = fabric.point_to_point_efficiency};
}

}  // namespace stagecraft
