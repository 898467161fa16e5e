// The `search` of a scenario that is not searched: its mistakes are mistakes of the file.
#pragma once

#include "base/diagnostic.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario_tree.hpp"

namespace stagecraft {

// Reports wrong keys and values of the section, and paths in it that no scenario has. What a value does to a
// plan is for the search to say.
void check_search_section(const ScenarioTree& tree, Library& library, Diagnostics& diagnostics);

}  // namespace stagecraft
