// Activations, and gradients that come and go, while a rank runs its passes in order. No clock is needed: a
// pass allocates and frees the same bytes whenever it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/lower/prices.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// Micro-batches of one stage that hold memory at a moment.
struct StageInFlight {
  std::int32_t stage = 0;  // global
  std::int64_t whole = 0;  // hold all tensors that the forward kept
  std::int64_t again = 0;  // of these, also hold the tensors of a recompute pass
  std::int64_t held = 0;   // hold the tensors for their weight gradients: between I and W
  bool gradients = false;  // PassMemory::gradients are there
  friend bool operator==(const StageInFlight&, const StageInFlight&) = default;
};

struct ReplayPeak {
  Bytes live;                            // kept tensors at the worst moment
  Bytes transient;                       // transients of the running pass at that moment
  std::size_t action = 0;                // index of that pass in the rank's order; of equals the first
  std::size_t actions = 1;               // 2: it is the first of a fused pair, both of which run
  std::vector<StageInFlight> in_flight;  // while it runs: the stages of the order, ascending
};

// A forward or a recompute pass allocates at its start; B frees at its end, or I and W in turn. The passes of
// a fused pair start and end together. `memory` is indexed by global stage. requires a rank with a pass.
[[nodiscard]] ReplayPeak replay_memory(std::span<const Action> order, std::span<const PassMemory> memory);

}  // namespace stagecraft
