// Predictions against published measurements as a page: each row a mark, the diagonal, the band of 10 %.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/view/page.hpp"

namespace stagecraft {

struct ValidationPoint {
  std::string name;
  double predicted = 0, measured = 0;  // seconds of an iteration
  std::array<double, 2> interval{};    // 90 %, seconds
};

struct ValidationSeries {
  std::string name, title, profile;
  double mean_absolute = 0, bias = 0, median = 0;  // statistics of predicted / measured - 1
  std::vector<ValidationPoint> points;             // one at least
};

struct ValidationPage {
  PageHead head;
  std::vector<ValidationSeries> sets;
  std::vector<std::string> skipped{};  // rows without a prediction: which, and why
};
[[nodiscard]] std::string html_page(const ValidationPage& page);

}  // namespace stagecraft
