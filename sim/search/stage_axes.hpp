// Axes of a search where the model is abstract stages.
//
//   Their costs are given for one stage on the scenario's ranks and one of its micro-batches. With half the
//   stages, or two samples in each micro-batch, a plan would do other work at the same cost, and win by that:
//   those degrees stay what the scenario says, and so does what stages take no notice of. Orders, replicas
//   and keys that are listed with values vary. Stages are as many in every plan: as there are costs, or as
//   the scenario has.
#pragma once

#include "base/diagnostic.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft {

// Moves the default axes that do not apply to the stages of `base` into `space.kept`; reports axes that the
// user requested. Other models are unchanged.
void keep_to_stages(const ScenarioTree& base, Library& library, SearchSpace& space, Diagnostics& diagnostics);

}  // namespace stagecraft
