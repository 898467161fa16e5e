// Random choices of property tests.
#pragma once

#include <cstdint>
#include <random>

namespace stagecraft {

using Random = std::mt19937_64;

// A whole number from `low` to `high`.
inline int pick(Random& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
}

}  // namespace stagecraft
