// The activations, and gradients that come and go, which a rank holds while it runs its passes in order,
// without a clock: what is taken and freed by a pass is the same whenever it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/lower/prices.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

// Micro-batches of one stage at a moment.
struct StageInFlight {
  std::int64_t whole = 0;  // with all that the forward kept
  std::int64_t again = 0;  // of them, with what a recompute pass made again
  std::int64_t held = 0;   // with what the weight gradients wait for: between I and W
  bool gradients = false;  // PassMemory::gradients are there
  friend bool operator==(const StageInFlight&, const StageInFlight&) = default;
};

struct ReplayPeak {
  Bytes live;                            // kept tensors at the worst moment
  Bytes transient;                       // and what the running pass needs beside them
  std::size_t action = 0;                // index of that pass in the rank's order; of equals the first
  std::size_t actions = 1;               // 2: it is the first of a fused pair, both of which run
  std::vector<StageInFlight> in_flight;  // [global stage], while it runs
};

// Taken by a forward, or a recompute pass, at its start; freed by B at its end, or by I and W in turn. The
// passes of a fused pair start together and end together. `memory` by global stage. requires a rank with a
// pass.
[[nodiscard]] ReplayPeak replay_memory(std::span<const Action> order, std::span<const PassMemory> memory);

}  // namespace stagecraft
