// Traces the time of each label to a price.
//
// Prices of the same shape, lowered in the same way, give the same task graph with other times. A search over
// thousands of plans keeps one graph per shape with the sources of its labels, and reads only the times from
// the prices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/lower/lower.hpp"

namespace stagecraft {

struct TimeSource {
  enum class Kind : std::uint8_t {
    kNothing,  // no time
    kPrice,    // all of a price
    kPass,     // all of a pass
    kSegment,  // one of the segments of a pass, one per overlapped bucket
  };
  Kind kind = Kind::kNothing;
  Pass pass = Pass::kForward;
  bool recomputes = false;         // the pass includes recompute
  std::uint32_t number = 0;        // index of a price in the order of shape_of(), or the place of a pass
  std::uint32_t part = 0, of = 0;  // index and number of segments
};

struct TracedProgram {
  Program program;
  std::vector<TimeSource> sources;  // [label]
};

// The parts of the prices that change the graph: the numbers of buckets, which other prices are zero, and where the
// second word embedding is. The values have no meaning of their own; they are only compared.
[[nodiscard]] std::vector<std::uint32_t> shape_of(const IterationPrices& prices);

// Can every label be traced to a price? Not on shared or own links, with several iterations or copies, with
// roll-backs or fused pairs of other durations, or with passes cut into ZeRO units.
[[nodiscard]] bool is_traceable(const IterationPrices& prices, const LowerOptions& options);

// lower(), with the sources of the times.
//   requires  is_traceable().
[[nodiscard]] TracedProgram lower_traced(const Schedule& schedule, const IterationPrices& prices,
                                         const LowerOptions& options);

// The time of each label, equal to the durations in a program lowered from `prices`.
//   requires  prices of the shape, and options and an order equal to those, that the sources come from.
[[nodiscard]] std::vector<Duration> label_times(std::span<const TimeSource> sources,
                                                const IterationPrices& prices);

// Part `index` of `whole`, cut into `count` equal parts that add up to the whole.
[[nodiscard]] Duration equal_part(Duration whole, std::size_t index, std::size_t count);

}  // namespace stagecraft
