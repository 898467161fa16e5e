// Traffic on the link to host memory in an iteration, and the bandwidth at which no pass would wait for it.
#pragma once

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

}  // namespace stagecraft
