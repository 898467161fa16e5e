// Mean of some values, and the 95 % interval around it.
#pragma once

#include <array>
#include <optional>
#include <vector>

namespace stagecraft {

struct Statistic {
  double mean = 0;
  double standard_error = 0;  // 0 of one value
  // Student's t; absent of one value, whose spread is unknown.
  std::optional<std::array<double, 2>> ci95 = {};

  friend bool operator==(const Statistic&, const Statistic&) = default;
};
// `values` is not empty.
[[nodiscard]] Statistic statistic_of(const std::vector<double>& values);

// The 97.5 % point of Student's t: half a 95 % interval is this many standard errors. degrees >= 1.
[[nodiscard]] double student_t_975(int degrees);

}  // namespace stagecraft
