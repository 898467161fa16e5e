// The rows of a sweep as a page: lines, heat map, Pareto front, the best points, why others cannot run.
#pragma once

#include <string>
#include <vector>

#include "sim/study/row_columns.hpp"
#include "sim/view/page.hpp"

namespace stagecraft {

// Keeps the drawn fields of each row. A page has a maximum number of points, and states the total.
class SweepPage {
 public:
  static constexpr std::size_t kMostPoints = 50'000;

  // `columns`: row_columns() of the sweep.
  explicit SweepPage(std::vector<RowColumn> columns);

  void add(const RowDocument& row);
  [[nodiscard]] std::string html(const PageHead& head) const;

 private:
  std::vector<RowColumn> columns_;
  std::vector<std::string> rows_;  // JSON arrays, one value for each column
  std::size_t points_ = 0;
};

}  // namespace stagecraft
