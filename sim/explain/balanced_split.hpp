// Layers over the stages of a pipeline so that its ranks work about as long as each other. The even split leaves
// the rank of the last stage with the head and the loss besides, and all others wait for it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// Of each split [stage]: its layers, as parallelism.stage_layers has them, with as few moved as do it. A layer
// takes its share of the price of its stage, on the last stage the mean of the others'. Two splits differ in who
// gets the odd layers: the first stages, which is the faster one mostly, or the last, which hold fewer
// micro-batches. Of two copies of the model the first is balanced. None where no move helps, and of abstract
// stages.
[[nodiscard]] std::vector<std::vector<std::int64_t>> balanced_splits(const Scenario& scenario,
                                                                     const Simulation& simulation);

}  // namespace stagecraft
