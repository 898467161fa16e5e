// ln Γ(x), for x > 0. std::lgamma leaves the sign of Γ in a global of the C library, which threads would race
// for.
#pragma once

#include <math.h>  // lgamma_r is POSIX, and not in <cmath>

namespace stagecraft {

[[nodiscard]] inline double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// ln C(n, k), for 0 <= k <= n.
[[nodiscard]] inline double log_choose(int n, int k) {
  return log_gamma(n + 1.0) - log_gamma(k + 1.0) - log_gamma(n - k + 1.0);
}

}  // namespace stagecraft
