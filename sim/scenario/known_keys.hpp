// Keys that a scenario may have, as requested by its reader (base/key_survey.hpp).
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario_tree.hpp"

namespace stagecraft {

// Dotted paths of all keys that a scenario like this one may have, given or not ("[]" for the items of a
// list), in the order of the reader. For a scenario that does not load (for reasons besides unknown keys),
// the keys of its own sections.
[[nodiscard]] std::vector<std::string> known_keys(const ScenarioTree& tree, Library& library);

}  // namespace stagecraft
