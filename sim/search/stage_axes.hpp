// Axes of a search where the model is abstract stages.
//
//   Their costs are given for one stage on the scenario's ranks and one of its micro-batches. With half the
//   stages, or two samples in each micro-batch, a plan would do other work at the same cost, and win by that:
//   those degrees stay what the scenario says, and so does what stages take no notice of. Orders, replicas
//   and keys that are listed with values vary. A rank has the chunks that the loader gives it: as many as
//   the scenario writes, or else as the order has, among which it shares the costs of the rank.
#pragma once

#include "base/diagnostic.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft {

// Moves the default axes that do not apply to the stages of `base` into `space.kept`; reports axes that the
// user requested. Chunks that nobody counts belong to the order, and are not among those that are kept. Other
// models are unchanged.
void keep_to_stages(const ScenarioTree& base, Library& library, SearchSpace& space, Diagnostics& diagnostics);

}  // namespace stagecraft
