// Utilisation of links over time, with each transfer at its mean rate.
//
// A transfer moves its bytes evenly from the end of its latency to its end: the mean of the rates that the
// engine gave it, so that each link's bytes are exact and a burst within one transfer is not seen.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

// [link as in `links`][part]: share of the capacity in each of `parts` equal parts of the makespan. Transfers
// that never end are left out. requires parts > 0, and a program without loops, as that of a Simulation is.
[[nodiscard]] std::vector<std::vector<double>> link_use(const Program& program, const Timeline& timeline,
                                                        const std::vector<LinkId>& links, std::size_t parts);

}  // namespace stagecraft
