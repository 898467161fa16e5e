#include "sim/goodput/policies/throughput_table.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

using Row = std::pair<int, double>;

// end() where there are fewer nodes than the first row has.
ThroughputTable::const_iterator row_of(const ThroughputTable& table, int nodes) {
  const auto above = std::upper_bound(table.begin(), table.end(), nodes,
                                      [](int n, const Row& row) { return n < row.first; });
  return above == table.begin() ? table.end() : std::prev(above);
}

std::optional<ShapedStep> step_of(const Row& row, std::int64_t samples) {
  if (row.second <= 0) return std::nullopt;
  return ShapedStep{.duration = from_seconds(static_cast<double>(samples) / row.second),
                    .samples = samples,
                    .nodes = row.first};
}

}  // namespace

double throughput_of(const ThroughputTable& table, int nodes) {
  const auto row = row_of(table, nodes);
  return row == table.end() ? 0 : row->second;
}

ShapeOf shapes_of(ThroughputTable table, std::int64_t samples) {
  return [table = std::move(table), samples](int nodes) -> std::optional<ShapedStep> {
    const auto row = row_of(table, nodes);
    return row == table.end() ? std::nullopt : step_of(*row, samples);
  };
}

std::optional<ShapedStep> best_of(const ThroughputTable& table, std::int64_t samples, int nodes) {
  const Row* best = nullptr;
  for (const Row& row : table)
    if (row.first <= nodes && (best == nullptr || row.second > best->second)) best = &row;
  return best == nullptr ? std::nullopt : step_of(*best, samples);
}

}  // namespace stagecraft
