// Keys that a scenario may have, as requested by its reader (base/key_survey.hpp).
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/scenario/scenario_tree.hpp"

namespace stagecraft {

// Dotted paths of all keys that a scenario like this one may have, given or not ("[]" for the items of a
// list), in the order of the reader. For a scenario that does not load (for reasons besides unknown keys),
// the keys of its own sections.
[[nodiscard]] std::vector<std::string> known_keys(const ScenarioTree& tree, Library& library);

// Of keys that are not known where they stand, and that are keys of another place: the hints say of which. Keys that
// the same file gives are no suggestions.
void point_elsewhere(std::vector<Diagnostic>& said, const ScenarioTree& tree, Library& library);

}  // namespace stagecraft
