// One value for each part of the passes of a micro-batch: the forward, what the backward repeats of it, and
// the gradients of inputs and of weights. A backward is the last three, or any of them alone where an order
// splits it.
#pragma once

#include <array>

namespace stagecraft {

template <class T>
struct ByPass {
  T forward{};
  T recompute{};  // runs again before the backward
  T input_gradient{};
  T weight_gradient{};

  // All four, in the order above.
  [[nodiscard]] std::array<T*, 4> each() { return {&forward, &recompute, &input_gradient, &weight_gradient}; }
  [[nodiscard]] std::array<const T*, 4> each() const {
    return {&forward, &recompute, &input_gradient, &weight_gradient};
  }
};

}  // namespace stagecraft
