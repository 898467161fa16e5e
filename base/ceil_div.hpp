// Division that rounds up: how many groups of `size` hold `count` things.
#pragma once

#include <concepts>

namespace stagecraft {

//   requires  count >= 0, size > 0.
template <std::integral A, std::integral B>
[[nodiscard]] constexpr auto ceil_div(A count, B size) {
  return (count + size - 1) / size;
}

}  // namespace stagecraft
