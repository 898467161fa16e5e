// Time of a pipeline rank's passes in one part of the breakdown, down to the operators of its layers.
#pragma once

#include <cstddef>
#include <optional>

#include "sim/explain/explanation.hpp"
#include "sim/explain/stage_pieces.hpp"
#include "sim/lower/category.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// Passes by their content, count times the time of one; and the extra time over their price on shared links
// or beside other traffic. nullopt where the rank spends no time on it.
//
//   requires  a simulation of one iteration.
struct RankPart {
  std::size_t rank = 0;  // simulated
  Category category = Category::kForward;
};
[[nodiscard]] std::optional<Explanation> explain_passes(const Scenario& scenario,
                                                        const Simulation& simulation, RankPart part,
                                                        StagePieces& pieces);

// What the rank's passes, in all simulated iterations, take of the category beyond their prices: they shared
// links, or computed beside other traffic or on a slow device.
[[nodiscard]] Duration longer_than_priced(const Simulation& simulation, RankPart part);

}  // namespace stagecraft
