// ln Γ(x), for x > 0. std::lgamma leaves the sign of Γ in a global of the C library, which threads would race
// for.
#pragma once

#include <math.h>  // lgamma_r is POSIX, and not in <cmath>

namespace stagecraft {

[[nodiscard]] inline double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

}  // namespace stagecraft
