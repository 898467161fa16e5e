// The rhythm of 1F1B and its kin: some forwards, then a forward and a backward in turn, then the backwards
// that are left.
#pragma once

#include <cstddef>

namespace stagecraft {

// Calls `forward(k)` and `backward(k)` once for each k in [0, steps), each in its order; backward k comes
// behind forward warm_up + k. requires warm_up <= steps.
template <class Forward, class Backward>
void alternate(std::size_t steps, std::size_t warm_up, const Forward& forward, const Backward& backward) {
  for (std::size_t k = 0; k < warm_up; ++k) forward(k);
  for (std::size_t k = 0; k < steps; ++k) {
    if (warm_up + k < steps) forward(warm_up + k);
    backward(k);
  }
}

}  // namespace stagecraft
