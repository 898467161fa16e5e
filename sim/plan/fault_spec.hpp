// Faults inside one iteration.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

enum class FaultKind : std::uint8_t {
  kDeadNode,      // tasks of its GPUs never end
  kSlowNode,      // its GPUs compute slower by a factor
  kSlowGpu,       // one GPU does
  kDegradedLink,  // links that a name means have a share of their capacity
};
inline constexpr std::array<std::string_view, 4> kFaultKindNames = {"dead-node", "slow-node", "slow-gpu",
                                                                    "degraded-link"};

struct FaultSpec {
  FaultKind kind = FaultKind::kDeadNode;
  Duration at{};                    // time within the iteration
  std::optional<Duration> lasts{};  // absent: until its end
  int node = 0;                     // number in the cluster, for dead and slow nodes
  int gpu = 0;                      // number in the cluster, for a slow GPU
  std::string link{};               // a name with `*` for anything, as in cluster.links
  double factor = 1;                // slow: its time over the usual one, >= 1; links: the share left, <= 1
  std::vector<int> ranks{};         // ranks of the job on the GPU or node

  friend bool operator==(const FaultSpec&, const FaultSpec&) = default;
};

}  // namespace stagecraft
