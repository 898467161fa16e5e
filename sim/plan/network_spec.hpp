// How the network is simulated, and who else is on it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

enum class NetworkMode : std::uint8_t {
  kClosedForm,  // everything takes what it takes on an idle network
  kFlow,        // what is under way at the same time shares links, max-min fair
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
  Bandwidth rate{};  // of all GPUs of the places together

  friend bool operator==(const BackgroundSpec&, const BackgroundSpec&) = default;
};

struct NetworkSpec {
  NetworkMode mode = NetworkMode::kClosedForm;
  std::vector<BackgroundSpec> background = {};
  // Nodes of the cluster that the job runs on, in the order of its ranks, as the cluster counts them; empty:
  // all of them. Not empty where there are other jobs.
  std::vector<int> placement = {};
  // Iterations of the job among others, in a row: more than one also tell their mean, as phases drift.
  int iterations = 1;

  [[nodiscard]] bool shared() const { return mode == NetworkMode::kFlow; }
  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

}  // namespace stagecraft
