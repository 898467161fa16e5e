// What crosses the link to host memory in an iteration, and what it would take not to wait for it.
#pragma once

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

}  // namespace stagecraft
