// Traffic on the link to host memory in an iteration, and the bandwidth at which no pass would wait for it.
#pragma once

#include <algorithm>

#include "base/units.hpp"

namespace stagecraft {

struct OffloadPrice {
  Bandwidth available{};             // bandwidth of one GPU in one direction
  Bandwidth required_activations{};  // bandwidth at which writing and reading hide behind the passes
  Bandwidth required_weights{};
  Duration optimizer_step{};  // step on the host with its transfers; the longest of the pipeline ranks
  Duration stall{};           // stall of all passes of an iteration on the busiest rank

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
