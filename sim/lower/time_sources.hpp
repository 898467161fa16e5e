// Which price the time of a label comes from.
//
// Prices of the same shape, lowered in the same way, give the same task graph with other times. Whoever
// lowers thousands of plans keeps the graph of each shape with the sources of its labels, and asks prices for
// the times alone.
#pragma once

#include <compare>
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
    kSegment,  // a part of it, of as many as there are buckets beside it
  };
  Kind kind = Kind::kNothing;
  Pass pass = Pass::kForward;
  bool recomputes = false;         // the pass makes again what it needs
  std::uint32_t number = 0;        // of a price in the order of shape_of(), or the place of a pass
  std::uint32_t part = 0, of = 0;  // of a segment
};

struct TracedProgram {
  Program program;
  std::vector<TimeSource> sources;  // [label]
};

// What the graph depends on beside the order and the options: how many buckets there are, and which other
// prices are nothing. Numbers without a meaning of their own, to be compared.
[[nodiscard]] std::vector<std::uint32_t> shape_of(const IterationPrices& prices);

// Can every label be traced to a price? Not on shared links, in several iterations or copies, with roll-backs
// or fused pairs that last otherwise, or where passes are cut into units of sharded weights.
[[nodiscard]] bool is_traceable(const IterationPrices& prices, const LowerOptions& options);

// lower(), and where the times come from.
//   requires  is_traceable().
[[nodiscard]] TracedProgram lower_traced(const Schedule& schedule, const IterationPrices& prices,
                                         const LowerOptions& options);

// The time of each label: as long as the tasks of a program that is lowered from `prices` last.
//   requires  prices of the shape, and options and an order equal to those, that the sources come from.
[[nodiscard]] std::vector<Duration> label_times(std::span<const TimeSource> sources,
                                                const IterationPrices& prices);

// Part `index` of `whole`, cut into `count` equal ones. The parts add up to the whole.
[[nodiscard]] Duration equal_part(Duration whole, std::size_t index, std::size_t count);

}  // namespace stagecraft
