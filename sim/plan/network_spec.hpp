// The network model of a simulation, and the other users of the network.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

enum class NetworkMode : std::uint8_t {
  kClosedForm,  // every transfer takes its time on an idle network
  kFlow,        // concurrent transfers share links, max-min fair
};
inline constexpr std::array<std::string_view, 2> kNetworkModeNames = {"closed-form", "flow"};

// One GPU of a node, or all of them.
struct NodePlace {
  int node = 0;
  std::optional<int> gpu = {};  // within the node

  friend bool operator==(const NodePlace&, const NodePlace&) = default;
};

// Somebody else's traffic: a constant rate from one place to another, all the time.
struct BackgroundSpec {
  NodePlace from{}, to{};
  Bandwidth rate{};  // total rate of all GPUs of the places

  friend bool operator==(const BackgroundSpec&, const BackgroundSpec&) = default;
};

struct NetworkSpec {
  NetworkMode mode = NetworkMode::kClosedForm;
  std::vector<BackgroundSpec> background = {};
  // Nodes of the cluster that the job runs on, in the order of its ranks, as the cluster counts them; empty:
  // all of them. Not empty where there are other jobs.
  std::vector<int> placement = {};
  // Consecutive iterations of the job among others. With more than one the report also gives their mean,
  // since phases drift.
  int iterations = 1;

  [[nodiscard]] bool shared() const { return mode == NetworkMode::kFlow; }
  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

}  // namespace stagecraft
