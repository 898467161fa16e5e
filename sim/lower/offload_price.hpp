// What crosses the link to host memory in an iteration, and what it would take not to wait for it.
#pragma once

#include <algorithm>

#include "base/units.hpp"

namespace stagecraft {

struct OffloadPrice {
  Bandwidth available{};             // of one GPU, one way
  Bandwidth required_activations{};  // so that writing and reading hide behind the passes
  Bandwidth required_weights{};
  Duration optimizer_step{};  // on the host, its transfers included; the longest of the pipeline ranks
  Duration stall{};           // of all passes of an iteration on the busiest rank

  // Is anything kept in host memory?
  [[nodiscard]] bool used() const { return available > Bandwidth(0); }
  friend bool operator==(const OffloadPrice&, const OffloadPrice&) = default;
};

// Of devices of two kinds, all of which have to wait for the slowest: each part as the worse of them has it.
[[nodiscard]] inline OffloadPrice worse_of(const OffloadPrice& a, const OffloadPrice& b) {
  return {.available = std::min(a.available, b.available),
          .required_activations = std::max(a.required_activations, b.required_activations),
          .required_weights = std::max(a.required_weights, b.required_weights),
          .optimizer_step = std::max(a.optimizer_step, b.optimizer_step),
          .stall = std::max(a.stall, b.stall)};
}

}  // namespace stagecraft
