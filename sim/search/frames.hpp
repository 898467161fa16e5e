// The scenarios that the points of a search are filled into: see search_point.hpp.
#pragma once

#include <optional>
#include <vector>

#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/search/enumerate.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft {

// Is a point set to its values in place? Else they are of frames.
[[nodiscard]] bool set_in_place(const SearchAxis& axis);

// Two for each number of GPUs, schedule and choice of other values: of replicated weights, and of weights or
// gradients that are sharded (ZeRO 2 and 3), for which other software is the usual one. Reports.
[[nodiscard]] std::optional<std::vector<SearchFrame>> load_frames(const ScenarioTree& base,
                                                                  const SearchSpace& space, Library& library,
                                                                  Diagnostics& diagnostics);

}  // namespace stagecraft
