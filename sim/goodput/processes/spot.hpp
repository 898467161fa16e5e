// Bamboo's spot market: nodes arrive and leave by hourly probabilities.
//
//   source   docs/resilience.md, section 2, "Hourly spot process".
#pragma once

#include <vector>

#include "base/units.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/random.hpp"
#include "sim/goodput/trace.hpp"

namespace stagecraft {

struct SpotRun {
  int capacity = 0;  // nodes wanted, K
  Duration horizon{};
  StreamKey key = {};  // seed, repeat and process; entity and purpose are the market's own
};

// Additions and removals before the horizon, by (time, addition first, node). Every addition is a new node:
// its number counts additions from 0. Never more than K at once. throws InternalError when a probability is
// not in [0, 1].
[[nodiscard]] std::vector<TraceRow> spot_rows(const HourlySpot& law, const SpotRun& run);

}  // namespace stagecraft
