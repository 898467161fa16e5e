// Operators of one layer that take turns in a long loop, at the clock that the power limit leaves.
#pragma once

#include <vector>

#include "calibrate/bench/harness.hpp"

namespace stagecraft {

struct SustainedRun {
  Sample prototype;  // of the operator in a burst; the loop adds the tags `load` and `mix`
  Enqueue enqueue;   // owns its operands
  double max_error = 0;
};

// The attention of the 8-billion-parameter model over `tokens`, forward and backward, checked. Empty without
// cuDNN.
[[nodiscard]] std::vector<SustainedRun> sustained_attention(Harness& harness, std::int64_t tokens);

}  // namespace stagecraft
