// Steps from a table of throughputs by nodes, in place of simulated ones.
//
//   rows    samples/s with so many usable nodes, in ascending order of nodes, each number of nodes once. A
//           number between two rows has the throughput of the lower one, a number beyond the last that of the
//           last; a throughput of 0, or fewer nodes than the first row has, do not train.
//   step    of `samples`, on the nodes of the row, rounded to the nanosecond
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/goodput/policy.hpp"

namespace stagecraft {

using ThroughputTable = std::vector<std::pair<int, double>>;

[[nodiscard]] double throughput_of(const ThroughputTable& table, int nodes);
[[nodiscard]] ShapeOf shapes_of(ThroughputTable table, std::int64_t samples);
// The row with the highest throughput among those of at most `nodes` nodes; absent where none trains.
[[nodiscard]] std::optional<ShapedStep> best_of(const ThroughputTable& table, std::int64_t samples,
                                                int nodes);

}  // namespace stagecraft
