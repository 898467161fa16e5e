// Background traffic: the constant rate that other users take of each link.
#pragma once

#include <span>

#include "sim/plan/network_spec.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {

// The load of each link. Traffic of a place is spread evenly over its GPUs: each sends the same share to
// every GPU at the other end.
//   requires  places of the cluster.
[[nodiscard]] IdVector<EdgeId, Bandwidth> background_load(const Cluster& cluster,
                                                          std::span<const BackgroundSpec> traffic);

}  // namespace stagecraft
