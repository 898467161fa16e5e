// Cost of a collective inside one node: the curves of the profile, or their substitutes.
#pragma once

#include <string_view>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// Seconds in two parts: latency, and the bytes, which overlap with those of another tier.
struct TierTime {
  double fixed = 0;
  double bytes = 0;
  [[nodiscard]] double total() const { return fixed + bytes; }
};

// t(S) = latency + S*factor/bus_rate + sqrt_term*sqrt(S), in seconds and bytes per second.
struct Curve {
  double latency = 0;
  double bus_rate = 0;
  double sqrt_term = 0;
  std::string_view algorithm = "any";
  Provenance provenance = Provenance::kAnalytic;
};

[[nodiscard]] TierTime time_of(const Curve& curve, double factor, Bytes size);

// A collective of `ranks` GPUs of one node.
struct NodeCollective {
  const HardwareProfile& profile;
  const NodeSpec& node;
  CollectiveKind kind;
  int ranks;
  Bytes size;
};

// The curve by the rules of collective.hpp: at its size, where the points of a fit have been followed.
[[nodiscard]] Curve in_node_curve(const NodeCollective& collective);

// The curve without NVLS and without points, so that a sum of two tiers rises with the size: the part inside
// a node of an algorithm over nodes whose GPUs forward all data themselves.
[[nodiscard]] Curve passing_curve(const NodeCollective& collective);

// The curve of the NVSwitch's own reduction, whatever else the profile knows: latency and rate of its fit,
// whose root is of chunks that an algorithm over nodes counts itself; or NCCL's own rate (tuning.cc 2.28.9: 8
// channels of 40 GB/s at 0.85 on Hopper), at the ratio of the node's NVLinks to the chip's usual ones, and
// its 25 us. requires serves_nvls(profile, node, ranks).
[[nodiscard]] Curve nvls_curve(const HardwareProfile& profile, const NodeSpec& node, int ranks);

// Hopper or later, all GPUs on an NVSwitch, more than two of them (NCCL leaves pairs to the ring).
[[nodiscard]] bool serves_nvls(const HardwareProfile& profile, const NodeSpec& node, int ranks);

}  // namespace stagecraft
