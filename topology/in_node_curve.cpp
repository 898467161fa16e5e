#include "topology/in_node_curve.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "base/check.hpp"
#include "topology/nccl_model.hpp"

namespace stagecraft {
namespace {

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

// With a size: the points of a fit are used; without one its formula.
using AtSize = std::optional<Bytes>;

Curve stretched(Curve curve, double ratio) {
  curve.latency *= ratio;
  curve.bus_rate /= ratio;
  curve.sqrt_term *= ratio;
  return curve;
}

double ratio_at(const CollectiveFit& fit, AtSize size) {
  return size ? points_over_formula(fit, static_cast<double>(size->count())) : 1;
}

Curve formula(const CollectiveFit& fit) {
  return {.latency = to_seconds(fit.latency),
          .bus_rate = fit.bus_bandwidth.count(),
          .sqrt_term = fit.sqrt_seconds,
          .algorithm = algorithm_name(fit.algorithm),
          .provenance = fit.provenance};
}

Curve exact(const CollectiveFit& fit, AtSize size) {
  return stretched(formula(fit), ratio_at(fit, size));
}

Curve between(const CollectiveFit& low, const CollectiveFit& high, int ranks, AtSize size) {
  const double share = std::log2(static_cast<double>(ranks) / low.ranks) /
                       std::log2(static_cast<double>(high.ranks) / low.ranks);
  const Curve a = formula(low);
  const Curve b = formula(high);
  const Curve curve{.latency = std::lerp(a.latency, b.latency, share),
                    .bus_rate = std::lerp(a.bus_rate, b.bus_rate, share),
                    .sqrt_term = std::lerp(a.sqrt_term, b.sqrt_term, share),
                    .algorithm = a.algorithm,
                    .provenance = Provenance::kInterpolated};
  return stretched(curve, std::lerp(ratio_at(low, size), ratio_at(high, size), share));
}

// The curve of one algorithm for `ranks`, from its fits inside a node; nullopt when it has none (NVLS: none
// around `ranks`).
std::optional<Curve> fitted(const HardwareProfile& profile, CollectiveKind kind, std::string_view algorithm,
                            int ranks, AtSize size) {
  const CollectiveFit* low = nullptr;   // the largest size <= ranks
  const CollectiveFit* high = nullptr;  // the smallest size >= ranks
  for (const CollectiveFit& fit : profile.collectives) {
    if (fit.kind != kind || fit.nodes != 1 || fit.algorithm != algorithm) continue;
    if (fit.ranks <= ranks && (low == nullptr || fit.ranks > low->ranks)) low = &fit;
    if (fit.ranks >= ranks && (high == nullptr || fit.ranks < high->ranks)) high = &fit;
  }
  if (low == nullptr && high == nullptr) return std::nullopt;
  if (low != nullptr && high != nullptr)
    return low->ranks == ranks ? exact(*low, size) : between(*low, *high, ranks, size);
  if (algorithm == "nvls") return std::nullopt;
  Curve nearest = formula(low != nullptr ? *low : *high);
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

// Assumed curve of an unmeasured node: fractions of the link rate from other nodes.
//   NVLink  12 us, 0.78 of the link, 8 ns per square root of a byte: fit on 8 H100 through XLA.
//   PCIe    0.70 of the link for 2 GPUs, falling with log2 n to 0.42 for 8: SimuMax's all-reduce factors of
//   A100-PCIe.
Curve unmeasured(const NodeSpec& node, int ranks) {
  Curve curve{.latency = 12e-6, .sqrt_term = 8e-9, .provenance = Provenance::kAssumed};
  const double doublings = std::log2(static_cast<double>(ranks)) - 1;
  curve.bus_rate = node.nvlink > Bandwidth(0) ? 0.78 * node.nvlink_among(ranks).count()
                                              : std::max(0.42, 0.70 - 0.14 * doublings) * node.pcie.count();
  SC_CHECK(curve.bus_rate > 0, "GPUs of a node are joined by NVLink or PCIe");
  return curve;
}

// Were the curves of the profile taken over NVLinks that the node has not?
bool on_other_links(const NodeSpec& node, const HardwareProfile& profile) {
  return profile.device.nvlink > Bandwidth(0) && node.nvlink == Bandwidth(0);
}

// Bytes of a curve at the ratio of the NVLinks of a group in `node` and of the node that was measured.
Curve on_links_of(const NodeSpec& node, const HardwareProfile& profile, int ranks, Curve curve) {
  const Bandwidth measured_on = profile.device.nvlink;
  if (measured_on > Bandwidth(0) && node.nvlink > Bandwidth(0))
    curve.bus_rate *= node.nvlink_among(ranks) / measured_on;
  return curve;
}

bool nccl_runs_nvls(const NodeCollective& c) {
  if (c.kind != CollectiveKind::kAllReduce || !serves_nvls(c.profile, c.node, c.ranks)) return false;
  const NcclSystem system{.generation = *nccl_generation(c.profile, c.node.nvlink), .ranks = c.ranks};
  return nccl_choice(system, c.kind, c.size)->algorithm == "nvls";
}

// The fastest of the profile's curves for these algorithms; if there is none, a curve derived from
// all-reduce.
std::optional<Curve> fastest(const NodeCollective& c, AtSize points,
                             std::initializer_list<std::string_view> algorithms) {
  const double factor = bus_factor(c.kind, c.ranks);
  std::optional<Curve> best;
  const auto consider = [&](const std::optional<Curve>& curve) {
    if (curve && (!best || time_of(*curve, factor, c.size).total() < time_of(*best, factor, c.size).total()))
      best = curve;
  };
  for (const std::string_view algorithm : algorithms)
    consider(fitted(c.profile, c.kind, algorithm, c.ranks, points));
  if (best || c.kind == CollectiveKind::kAllReduce) return best;
  for (const std::string_view algorithm : {"any", "ring"})
    if (const auto curve = fitted(c.profile, CollectiveKind::kAllReduce, algorithm, c.ranks, std::nullopt))
      consider(derived(*curve, c.kind));
  return best;
}

// `curve` of the profile on the links of the node; without one, an assumed curve.
Curve or_unmeasured(const NodeCollective& c, const std::optional<Curve>& curve) {
  return curve ? on_links_of(c.node, c.profile, c.ranks, *curve) : unmeasured(c.node, c.ranks);
}

}  // namespace

TierTime time_of(const Curve& curve, double factor, Bytes size) {
  const auto s = static_cast<double>(size.count());
  return {.fixed = curve.latency + curve.sqrt_term * std::sqrt(s), .bytes = s * factor / curve.bus_rate};
}

bool serves_nvls(const HardwareProfile& profile, const NodeSpec& node, int ranks) {
  const auto generation = nccl_generation(profile, node.nvlink);
  return ranks > 2 && node.nvlink_pairs.empty() && generation && *generation >= NcclGeneration::kHopper;
}

Curve nvls_curve(const HardwareProfile& profile, const NodeSpec& node, int ranks) {
  SC_CHECK(serves_nvls(profile, node, ranks), "NVLS has an NVSwitch that adds");
  if (auto curve = fitted(profile, CollectiveKind::kAllReduce, "nvls", ranks, std::nullopt)) {
    curve->sqrt_term = 0;
    return on_links_of(node, profile, ranks, *curve);
  }
  const NcclGeneration generation = *nccl_generation(profile, node.nvlink);
  const double faster = node.nvlink / nccl_usual_nvlink(generation);
  return {.latency = to_seconds(kNcclNvlsLatency),
          .bus_rate = nccl_nvls_bandwidth(generation).count() * faster,
          .algorithm = "nvls",
          .provenance = Provenance::kAnalytic};
}

Curve passing_curve(const NodeCollective& c) {
  if (on_other_links(c.node, c.profile)) return unmeasured(c.node, c.ranks);
  return or_unmeasured(c, fastest(c, std::nullopt, {"any", "ring", "tree", "direct"}));
}

Curve in_node_curve(const NodeCollective& c) {
  if (on_other_links(c.node, c.profile)) return unmeasured(c.node, c.ranks);
  if (!c.node.nvlink_pairs.empty())
    return or_unmeasured(c, fastest(c, c.size, {"any", "ring", "tree", "direct"}));
  const std::optional<Curve> nvls = fitted(c.profile, c.kind, "nvls", c.ranks, c.size);
  if (nvls && nccl_runs_nvls(c)) return on_links_of(c.node, c.profile, c.ranks, *nvls);
  return or_unmeasured(c, fastest(c, c.size, {"any", "ring", "tree", "nvls", "direct"}));
}

}  // namespace stagecraft
